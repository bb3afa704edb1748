/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Time that is reserved for units whose floors weights cannot keep (law-reserve.c): lines of
 * io.sutro.reserve, for leaves with the scheduler sutro.
 */

#include "control/reserve.h"
#include "policy/policy.h"

int reserve_apply(struct cgfiles *files, const struct plant *plant,
		  struct cgroup *c)
{
	struct cgchange changes[plant->n_leaves ?: 1];
	size_t n = 0;

	for (uint32_t l = 0; c->node != CONTROL_NONE && l < plant->n_leaves;
	     l++) {
		uint32_t reserve = control_reserve(plant->control, c->node, l);

		if (policy_keeps(c->policy, plant->leaves[l]))
			return 0;
		if (reserve && plant->leaves[l])
			changes[n++] = (struct cgchange){
				.devno = plant->leaves[l],
				.value = cgvalue(reserve),
				.reason =
					"its floor, which a weight cannot keep",
				.is_routine = true,
			};
	}
	return cgfile_set(files, c, CGFILE_SUTRO_RESERVE, changes, n);
}
