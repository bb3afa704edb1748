/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The share of a leaf that a cgroup is entitled to by its weights.
 *
 * Example: db in this tree on one leaf, with backup idle:
 *
 *	/ --- system.slice 100 --- db 300            3/4 * 100/(100+100) = 0.375
 *	  |                   `--- web 100
 *	  |                   `--- backup 500 (idle)
 *	  `-- user.slice 100 --- ...
 *
 * The share is a product with one factor for each level: the weight over the sum of the
 * weights of the siblings that were active in the interval. The cgroup itself counts as
 * active. The elevator serves a cgroup without files of the io controller as part of the
 * nearest cgroup above that has them.
 */

#include "policy/entitlement.h"
#include "policy/policy.h"

double entitlement(const struct sampler *s, const struct cgroup *c,
		   const struct device *leaf)
{
	double share = 1;

	while (c->parent && !sample_has_files(s, c))
		c = c->parent;
	for (; c->parent; c = c->parent) {
		const struct cgroup *one;
		uint64_t sum = 0;

		TAILQ_FOREACH(one, &c->parent->children, siblings)
			if (one == c || sample_usage(s, one, leaf)->active)
				sum += policy_weight(one->policy, leaf).weight;
		share *= (double)policy_weight(c->policy, leaf).weight / sum;
	}
	return share;
}
