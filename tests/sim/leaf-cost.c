// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device time of requests before a drive: by the algorithm's estimates and measurements
 * (sutro-cost.c), or exact.  Exact device time is that of the drive's model.  Only garbage
 * collection is not in the estimate, and the estimate of a rotational drive is not exact.
 */
#include "leaf.h"

#include <assert.h>

/* Device time that a request will probably use. */
u64 leaf_estimate_ns(struct leaf *leaf, const struct leaf_group *group,
		     struct rq *rq)
{
	struct mdisk_drive *drive = &leaf->disk.drive;

	if (leaf->oracle && drive->model->charge_ns)
		return drive->model->charge_ns(drive, &rq->cmd);
	return sutro_cost_estimate(&leaf->device, &group->costs, rq->class,
				   rq->bytes);
}

/* No more is merged into a request: make it a command of the drive. */
void rq_prepare(struct leaf *leaf, struct rq *rq)
{
	static const enum mdisk_action actions[] = {
		[SUTRO_READ] = MDISK_READ,
		[SUTRO_WRITE] = MDISK_WRITE,
		[SUTRO_OTHER] = MDISK_DISCARD,
	};
	int r;

	/* It may have been prepared before, and waited, and grown since. */
	mdisk_cmd_exit(&rq->cmd);
	rq->cmd.action = rq->flush ? MDISK_FLUSH : actions[rq->op];
	rq->cmd.owner = &rq->group->owner;
	r = mdisk_cmd_init(&leaf->disk.drive, &rq->cmd, rq->sector, rq->bytes);
	assert(!r);
}

/* Estimate a request that may be sent now. */
void leaf_price(struct leaf *leaf, struct rq *rq)
{
	if (leaf->oracle)
		rq_prepare(leaf, rq);
	rq->class = sutro_cost_class(rq->op, rq->bytes);
	rq->estimate_ns = leaf_estimate_ns(leaf, rq->group, rq);
}

/* The table has the estimate of a request, from which the device learns its latency. */
static void leaf_learn(struct leaf *leaf, const struct rq *rq)
{
	u64 units = rq->estimate_ns << (SUTRO_NS16_SHIFT + SUTRO_UNIT_SHIFT);

	sutro_cost_measured(&leaf->device, rq->class,
			    div_u64(units, sutro_units(rq->class, rq->bytes)),
			    0);
}

/* Device time of a request that the drive has answered. */
u64 leaf_cost_ns(struct leaf *leaf, const struct rq *rq,
		 struct sutro_sample *sample)
{
	struct leaf_group *group = rq->group;
	u64 cost_ns;

	if (leaf->oracle && !leaf->core.tunables.rotational)
		leaf_learn(leaf, rq);
	cost_ns = sutro_cost_complete(&leaf->device, &group->costs, sample);
	if (!leaf->oracle)
		return cost_ns;
	/* With the destage of a rotational drive's cache since the last request. */
	cost_ns = group->owner.counts.time_ns - group->exact_ns;
	group->exact_ns += cost_ns;
	return cost_ns;
}
