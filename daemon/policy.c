/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From what was said to one weight per (cgroup, leaf).
 *
 * Several statements can be about one leaf, for stacks share disks:
 *
 *	IOWeight=100
 *	IODeviceWeight=/dev/vg/db 300       db stands on sda and sdb
 *	IODeviceWeight=/srv/backup 50       on a volume that stands on sdb and sdc
 *	IODeviceWeight=/dev/sda 200
 *
 * 1. A statement that names the leaf itself or a partition of it wins: sda 200.
 *    Of several the largest.
 * 2. Else the largest of the stacks that stand on the leaf: sdb 300, sdc 50. A
 *    cgroup has one weight per leaf, and the promise to db must hold on sdb too;
 *    backup then gets more there than was asked, which takes from nobody who was
 *    promised more.
 * 3. Else IOWeight=: sdd 100.
 *
 * This file does no I/O but policy_resolve().
 */

#include "policy.h"

int policy_add(struct policy *p, const char *path, uint64_t weight)
{
	struct statement *grown;

	grown = reallocarray(p->statements, p->n_statements + 1,
			     sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->statements = grown;
	grown[p->n_statements] =
		(struct statement){ .path = strdup(path), .weight = weight };
	if (!grown[p->n_statements].path)
		return -ENOMEM;
	p->n_statements++;
	return 0;
}

void policy_done(struct policy *p)
{
	for (size_t i = 0; i < p->n_statements; i++)
		free(p->statements[i].path);
	free(p->statements);
	free(p->subject);
	*p = (struct policy){};
}

void policy_resolve(struct policy *p, const struct topology *t,
		    const struct roots *roots)
{
	for (size_t i = 0; i < p->n_statements; i++) {
		struct statement *s = &p->statements[i];
		struct device *d = NULL;
		int err;

		err = topology_resolve(t, roots, s->path, &d);
		/* Said once, not whenever a disk comes or goes. */
		if (err && !s->missed)
			log_warning_errno(err,
					  "%s: the weight %llu on %s has no "
					  "effect until that path is on a "
					  "disk: %m",
					  p->subject,
					  (unsigned long long)s->weight,
					  s->path);
		s->missed = err;
		s->device = d;
	}
}

struct asked policy_default(const struct policy *p)
{
	return (struct asked){
		.weight = p->weight,
		.reason = p->weight_set ? REASON_WEIGHT : REASON_UNSET,
	};
}

struct asked policy_weight(const struct policy *p, const struct device *leaf)
{
	struct asked best = policy_default(p);

	for (size_t i = 0; i < p->n_statements; i++) {
		const struct statement *s = &p->statements[i];
		enum reason reason;

		if (!s->device || !device_stands_on(s->device, leaf))
			continue;
		reason = device_is_part_of(s->device, leaf) ? REASON_LEAF
							    : REASON_STACK;
		if (best.reason == REASON_LEAF && reason == REASON_STACK)
			continue;
		if (best.statement && best.reason == reason &&
		    best.weight >= s->weight)
			continue;
		best = (struct asked){ .weight = s->weight,
				       .reason = reason,
				       .statement = s };
	}
	return best;
}

char *policy_reason(const struct policy *p, const struct asked *a)
{
	bool unit = p->source == POLICY_UNIT;

	switch (a->reason) {
	case REASON_UNSET:
		return asprintf_or_null(unit ? "IOWeight= of %s is not set"
					     : "io.weight of %s is not set",
					p->subject);
	case REASON_WEIGHT:
		return asprintf_or_null(
			unit ? "IOWeight=%llu of %s" : "io.weight %llu of %s",
			(unsigned long long)a->weight, p->subject);
	case REASON_LEAF:
	case REASON_STACK:
		return asprintf_or_null(
			"%s%s %llu of %s%s",
			unit ? "IODeviceWeight=" : "io.weight ",
			a->statement->path, (unsigned long long)a->weight,
			p->subject,
			a->reason == REASON_LEAF
				? ", which names this disk"
				: ", which stands on this disk");
	}
	return NULL;
}
