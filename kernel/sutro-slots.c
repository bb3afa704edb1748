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
 * sleeping for one would hold up all.
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

/* Has the running task's group more requests than its share of the slots? */
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
	if (sutro_over_slots(sq))
		data->shallow_depth = 1;
}
