// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: request slots.
 *
 * A group with many submitters could take all request slots, and weights mean
 * nothing to those who wait for one.  So a group's submitters get few slots
 * beyond the group's share of them:
 *
 *	256 slots, groups of weight 100 and 300, both with more to send than that:
 *	64 slots for the one, 192 for the other.
 *
 * Kernel threads are exempt: one of them may carry requests of many groups, and
 * sleeping for one would hold up all.  So are requests that others may wait on
 * (REQ_META, REQ_SWAP).
 *
 * Async requests, whoever makes them, leave a quarter of the slots to sync ones.
 * For writeback that is the only limit, since kernel threads submit it: a group that
 * writes much is held back where it makes pages dirty, not here.
 *
 * With several hardware queues each has nr_requests slots of its own; a group's
 * limit is its share of one queue's, for all its requests may be on one CPU.
 */
#include "sutro.h"

/* Half an even share of the slots, but no more than this, is never refused. */
#define SUTRO_MIN_SLOTS 16U

/* Slots that every group may use, whatever its share. */
static unsigned int sutro_min_slots(struct sutro_queue *sq)
{
	unsigned int even =
		sq->q->nr_requests / max(READ_ONCE(sq->core.nr_active), 1U);

	return clamp(even / 2, 1U, SUTRO_MIN_SLOTS);
}

/* Has the running task's group as many requests as its share of the slots? */
static bool sutro_over_slots(struct sutro_queue *sq)
{
	unsigned int limit = READ_ONCE(sq->group_requests);
	struct sutro_blkg *sblkg;
	bool over = false;

	if (current->flags & PF_KTHREAD || READ_ONCE(sq->core.nr_active) < 2)
		return false;

	rcu_read_lock();
	sblkg = sutro_current_blkg(sq->q);
	if (sblkg) {
		unsigned int used = atomic_read(&sblkg->nr_requests);

		if (!limit)
			limit = max_t(u64, sutro_min_slots(sq),
				      sutro_group_share(&sblkg->group,
							sq->q->nr_requests));
		over = used >= limit;
		if (over)
			sutro_report_refused(sq, sblkg, used, limit);
	}
	rcu_read_unlock();
	return over;
}

/* How many slots may a submitter choose from?  elevator_mq_ops.limit_depth. */
void sutro_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct sutro_queue *sq = data->q->elevator->elevator_data;

	if (!op_is_sync(opf))
		data->shallow_depth = sutro_async_depth(data->q);
	/* Who others wait on does not wait for his group's slots. */
	if (!sutro_op_is_prompt(opf) && sutro_over_slots(sq))
		data->shallow_depth = 1;
}
