// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: request slots.
 *
 * A group with many submitters could take all request slots, and weights have no
 * effect on a submitter that waits for one.  So a group may have its share of the
 * slots, and beyond that as many as are free: the more others use, the less it may have
 * beyond its share, and a newcomer finds slots.
 *
 *	256 slots, groups of weight 100 and 300.  Both have more to send than that:
 *	64 slots for the one, 192 for the other.  The second one has a request at a
 *	time: the first has 64 + (256 - 160) = 160.
 *
 * A submitter without a slot sleeps until a request of its group is done: the group has
 * some, or it could have another slot.  A submitter that may not sleep gets one of the few slots
 * that blk-mq leaves to a shallow depth, or none.
 *
 * Kernel threads are exempt: one of them may carry requests of many groups, and
 * sleeping for one would hold up all.  So are requests that others may wait on
 * (REQ_META, REQ_SWAP), and those of tasks that free memory.
 *
 * Async requests of any submitter leave a quarter of the slots to sync ones.
 * For writeback that is the only limit, since kernel threads submit it: a group that
 * writes much is held back where it makes pages dirty, not here.
 *
 * While a group is protected (sutro-protect.c), others leave an eighth of the slots to it:
 * their requests may be held back, and it must not wait for these.
 *
 * With several hardware queues each has nr_requests slots of its own; a group's
 * limit is its share of one queue's, for all its requests may be on one CPU.
 */
#include <linux/sched/task.h>

#include "sutro.h"

/* Half an even share of the slots, but no more than this, is never refused. */
#define SUTRO_MIN_SLOTS 16U
/* This part of the slots is left to protected groups. */
#define SUTRO_LEFT_PART 8U

/* Slots that every group may use, whatever its share. */
static unsigned int sutro_min_slots(struct sutro_queue *sq)
{
	unsigned int even =
		sq->q->nr_requests / max(READ_ONCE(sq->core.nr_active), 1U);

	return clamp(even / 2, 1U, SUTRO_MIN_SLOTS);
}

/* Slots that no request of any group uses; those just taken are not counted yet. */
static unsigned int sutro_free_slots(struct sutro_queue *sq)
{
	unsigned int used =
		READ_ONCE(sq->core.queued) + READ_ONCE(sq->core.in_flight);

	return sq->q->nr_requests -
	       min_t(unsigned int, used, sq->q->nr_requests);
}

/* Do groups that are not protected use all slots but those of others?  A hint. */
static bool sutro_leaves_slots(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	const struct sutro_protect *protect = &sq->core.protect;
	unsigned int left = sq->q->nr_requests / SUTRO_LEFT_PART;

	return sutro_protects(protect) &&
	       !sutro_group_protected(&sblkg->group) &&
	       sutro_free_slots(sq) + READ_ONCE(protect->requests) <= left;
}

/* How many requests may a group have? */
static unsigned int sutro_slot_limit(struct sutro_queue *sq,
				     struct sutro_blkg *sblkg)
{
	unsigned int limit = READ_ONCE(sq->group_requests);

	if (READ_ONCE(sq->core.nr_active) < 2)
		return UINT_MAX;
	if (limit)
		return limit;
	if (sutro_leaves_slots(sq, sblkg))
		return 1;
	limit = sutro_group_share(&sblkg->group, sq->q->nr_requests) +
		sutro_free_slots(sq);
	return max(limit, sutro_min_slots(sq));
}

static bool sutro_over_slots(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	return atomic_read(&sblkg->nr_requests) >= sutro_slot_limit(sq, sblkg);
}

static void sutro_sleep_for_slot(struct sutro_queue *sq,
				 struct sutro_blkg *sblkg)
{
	DEFINE_WAIT(wait);

	for (;;) {
		prepare_to_wait_exclusive(&sblkg->slot_wait, &wait,
					  TASK_UNINTERRUPTIBLE);
		if (!sutro_over_slots(sq, sblkg))
			break;
		io_schedule();
	}
	finish_wait(&sblkg->slot_wait, &wait);
	/* Each completed request wakes one submitter; the limit may have risen by more. */
	if (!sutro_over_slots(sq, sblkg))
		wake_up(&sblkg->slot_wait);
}

/* A request of a group is done: there is room for another. */
void sutro_slot_freed(struct sutro_blkg *sblkg)
{
	/* Pairs with the acquire in sutro_active_in_use(). */
	smp_mb__before_atomic();
	/* The barrier of wq_has_sleeper() pairs with that of prepare_to_wait(). */
	atomic_dec(&sblkg->nr_requests);
	if (wq_has_sleeper(&sblkg->slot_wait))
		wake_up(&sblkg->slot_wait);
}

/* Is a group that has so many slots certainly below its limit? */
static bool sutro_has_room(struct sutro_queue *sq, unsigned int used)
{
	return !READ_ONCE(sq->group_requests) &&
	       used < max(sutro_free_slots(sq), sutro_min_slots(sq));
}

/* The running task's group, held by a reference, if it may have no more slots now. */
static struct sutro_blkg *sutro_limited(struct sutro_queue *sq,
					unsigned int *ret_used,
					unsigned int *ret_limit)
{
	struct sutro_blkg *sblkg;

	rcu_read_lock();
	sblkg = sutro_current_blkg(sq->q);
	/* A cgroup that has not used this leaf before has none. */
	if (sblkg) {
		*ret_used = atomic_read(&sblkg->nr_requests);
		if (sutro_has_room(sq, *ret_used) &&
		    !sutro_leaves_slots(sq, sblkg)) {
			sblkg = NULL;
		} else {
			*ret_limit = sutro_slot_limit(sq, sblkg);
			if (*ret_used < *ret_limit ||
			    !blkg_tryget(sutro_to_blkg(sblkg)))
				sblkg = NULL;
		}
	}
	rcu_read_unlock();
	return sblkg;
}

/* Who is never refused: see above. */
static bool sutro_exempt(blk_opf_t opf)
{
	return current->flags & (PF_KTHREAD | PF_MEMALLOC) ||
	       sutro_op_is_prompt(opf);
}

/* The running task may have to wait. */
static noinline void sutro_limit_group(struct sutro_queue *sq,
				       struct blk_mq_alloc_data *data)
{
	struct sutro_blkg *sblkg;
	unsigned int used, limit;

	sblkg = sutro_limited(sq, &used, &limit);
	if (!sblkg)
		return;
	sutro_report_refused(sq, sblkg, used, limit);
	if (data->flags & BLK_MQ_REQ_NOWAIT)
		data->shallow_depth = 1;
	else
		sutro_sleep_for_slot(sq, sblkg);
	blkg_put(sutro_to_blkg(sblkg));
}

/* How many slots may a submitter choose from?  elevator_mq_ops.limit_depth. */
void sutro_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct sutro_queue *sq = data->q->elevator->elevator_data;

	if (!op_is_sync(opf))
		data->shallow_depth = sutro_async_depth(data->q);
	/* One active group is not limited. */
	if (READ_ONCE(sq->core.nr_active) > 1 && !sutro_exempt(opf))
		sutro_limit_group(sq, data);
}
