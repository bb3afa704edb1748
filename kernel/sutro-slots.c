// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: submitters, and the request slots that they take.
 *
 * sutro-quota.c decides how many slots a group may have.
 *
 * A submitter without a free slot sleeps until a request of the group or ancestor that has
 * too many is done.  A request that waits for a flush uses a slot, too, until its data come.
 * A submitter that may not sleep gets one of the few slots that blk-mq leaves to a shallow
 * depth, or none.  A plug that takes slots in reserve gets no more than there are.
 *
 * Kernel threads are exempt: one of them may carry requests of many groups, and
 * sleeping for one would hold up all.  So are requests that others may wait on
 * (REQ_META, REQ_SWAP), and those of tasks that free memory.
 *
 * Async requests of any submitter leave a quarter of the slots to sync ones.  While more than
 * half of all slots are in use, writeback of a group has its part of the rest.  Kernel threads
 * submit it.  One that has its part does not wait for requests of its own group: it may carry those
 * of others, or have a transaction open.  It waits for any of the first slots, as many as its part,
 * and at least an eighth of all.  These come free as fast as the device works.  Writeback of
 * groups that have less than their parts finds other slots meanwhile.
 *
 *	An hdd with 64 slots, 48 of them for writeback.  Two groups of weight 1000 and 100 write
 *	files.  The second one has 12, and the first one the rest.  Without parts, both get slots
 *	in turn, and the second one, which is served later, keeps them for longer.  The first one
 *	had nothing queued time and again: the ratio was 1.26, and the drive had 0.4 of its rate.
 *
 * limit_depth does not get the bio, so bio_merge, which the same task calls before, computes the
 * limit for the cgroup of the bio.  The block layer splits a large bio into requests and calls
 * bio_merge for the last part only.  The rest of the bio waits in the task's list meanwhile, and
 * limit_depth finds the cgroup there.
 *
 *	A flusher writes 8 MiB of the second group as one bio: six requests of 1.25 MiB, and one
 *	of 0.5 MiB.  When only that one had a limit, the group had 35 of the 48 slots.
 *
 * Writeback of others leaves an eighth to that of a protected group, too: fsync() waits for pages
 * that a kernel thread has begun to write.
 */
#include <linux/sched/task.h>

#include "sutro-arrival.h"
#include "sutro-cgroup.h"
#include "sutro-report.h"
#include "sutro-service.h"

/*
 * A submitter that sleeps looks again after this time: the one that was woken before it may send
 * a request of another cgroup, whose end wakes no submitter of this one.
 */
#define SUTRO_SLOT_LOOK (HZ / 10)
/* For how long at most a submitter waits for those of higher classes. */
#define SUTRO_SLOT_AGE HZ

/**
 * struct sutro_seen - writeback that was seen last on a CPU
 * @task:	the task that sends it; compared only
 * @q:		the leaf; compared only
 * @slots:	from how many it may choose
 */
struct sutro_seen {
	const struct task_struct *task;
	const struct request_queue *q;
	unsigned int slots;
};

/* A task that was moved to another CPU in between is not known there, and exempt. */
static DEFINE_PER_CPU(struct sutro_seen, sutro_seen);

/* Has a submitter waited for so long that it need not let higher classes go first? */
static bool sutro_has_waited(const struct sutro_group *at,
			     const struct sutro_turn *turn, unsigned long since)
{
	return time_after(jiffies, since + SUTRO_SLOT_AGE) &&
	       sutro_outranked(&at->level, &at->level.rank[turn->class]);
}

/* A submitter of a group, which is counted, waits: the group is active meanwhile. */
static void sutro_wait_for_slot(struct sutro_queue *sq,
				struct sutro_blkg *sblkg)
{
	if (READ_ONCE(sblkg->group.self.active))
		return;
	spin_lock(&sq->lock);
	/* As in sutro_queue_one(). */
	if (!sblkg->group.self.active && !sblkg->group.gone) {
		blkg_get(sutro_to_blkg(sblkg));
		sutro_core_wait_slot(&sq->core, &sblkg->group, ktime_get_ns());
	}
	spin_unlock(&sq->lock);
}

static void sutro_sleep_for_slot(struct sutro_queue *sq,
				 struct sutro_blkg *sblkg,
				 struct sutro_quota quota)
{
	unsigned long since = jiffies;
	bool is_full;

	do {
		const struct sutro_group *at = &quota.sblkg->group;
		struct sutro_turns *turns = quota.turns;
		struct sutro_waiter waiter = { .since = since };
		bool is_promised;

		sutro_turns_wait(sq, sblkg, turns, at, &waiter);
		for (;;) {
			/* Its barrier pairs with that of sutro_slot_freed(). */
			set_current_state(TASK_UNINTERRUPTIBLE);
			is_promised = READ_ONCE(waiter.is_promised);
			quota = sutro_quota_of(sq, sblkg,
					       is_promised ? turns : NULL,
					       is_promised ? NULL : turns);
			is_full = sutro_quota_left(&quota) <= 0 &&
				  !sutro_has_waited(at, &waiter.turn, since);
			if (is_promised || !is_full || quota.turns != turns)
				break;
			sutro_wait_for_slot(sq, sblkg);
			if (!io_schedule_timeout(SUTRO_SLOT_LOOK))
				sutro_turns_renew(sq, turns, at, &waiter);
		}
		__set_current_state(TASK_RUNNING);
		is_promised = sutro_turns_end(sq, turns, &waiter);
		/*
		 * A completed request wakes one waiter.  Wake another one, because the
		 * limit may have risen by more than one slot, or this waiter now waits for
		 * another group.  If the limit has fallen, there is no slot for any: waiters
		 * would wake one another without end.  So would two that have the promise of the
		 * last slot of the leaf and of that of an ancestor: each finds the other one
		 * taken, and passes its own on.  A submitter that leaves for the leaf does not.
		 */
		if (turns == &sq->turns) {
			if (is_full && is_promised)
				sutro_turns_serve(sq, sutro_all_slots(sq->q),
						  sutro_used_slots(sq->q));
		} else if (is_full ? is_promised && quota.turns != turns &&
					     quota.turns != &sq->turns
				   : sutro_quota_left(&quota) > 1) {
			sutro_turns_next(sq, turns);
		}
	} while (is_full);
}

/**
 * sutro_slot_taken - a group has one more request
 * @sblkg:	the group
 */
void sutro_slot_taken(struct sutro_blkg *sblkg)
{
	struct sutro_group *group = sblkg->group.parent;

	for (; group && group->parent; group = group->parent)
		atomic_inc(&sutro_blkg_of(group)->nr_below);
	atomic_inc(&sblkg->nr_requests);
	sutro_active_enter(sblkg);
}

/**
 * sutro_slot_freed - a request of a group is done: there is room for another
 * @sq:		the leaf
 * @sblkg:	the group
 *
 * The request still has its tag.
 */
void sutro_slot_freed(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	struct sutro_group *group = sblkg->group.parent;

	/* Pairs with the acquire in sutro_active_in_use(). */
	smp_mb__before_atomic();
	atomic_dec(&sblkg->nr_requests);
	/* Pairs with the barrier of set_current_state() in sutro_sleep_for_slot(). */
	smp_mb__after_atomic();
	sutro_turns_next(sq, &sblkg->turns);
	for (; group && group->parent; group = group->parent) {
		sblkg = sutro_blkg_of(group);
		atomic_dec(&sblkg->nr_below);
		/* As above. */
		smp_mb__after_atomic();
		sutro_turns_next(sq, &sblkg->turns);
	}
	if (sutro_turns_pending(&sq->turns))
		sutro_turns_serve(sq, sutro_all_slots(sq->q),
				  sutro_used_slots(sq->q) - 1);
}

/* Is less than half of the slots in use, so that no group can have too many? */
static bool sutro_has_room(struct sutro_queue *sq)
{
	return !READ_ONCE(sq->group_requests) &&
	       2 * sutro_free_slots(sq) > sutro_all_slots(sq->q);
}

/*
 * The running task's group, held by a reference, if it may have no more slots now.  Sets
 * @ret_depth, if it is 0, to the number of slots that the group may choose from, if these are
 * not all.
 */
static struct sutro_blkg *sutro_limited(struct sutro_queue *sq,
					struct sutro_quota *ret_quota,
					unsigned int *ret_depth)
{
	unsigned int left;
	struct sutro_blkg *sblkg;

	rcu_read_lock();
	sblkg = sutro_current_blkg(sq->q);
	/* A cgroup that has not used this leaf before has none. */
	if (sblkg) {
		left = sutro_left_in_crowd(sq, sblkg);
		if (left && !*ret_depth)
			*ret_depth = sutro_all_slots(sq->q) - left;
		*ret_quota = sutro_quota_of(sq, sblkg, NULL, NULL);
		if (sutro_quota_left(ret_quota) > 0 ||
		    !blkg_tryget(sutro_to_blkg(sblkg)))
			sblkg = NULL;
	}
	rcu_read_unlock();
	return sblkg;
}

/* Submitters that are never refused: see above. */
static bool sutro_exempt(blk_opf_t opf)
{
	return current->flags & (PF_KTHREAD | PF_MEMALLOC) ||
	       sutro_op_is_prompt(opf);
}

/*
 * A group's requests count once they are collected.  While the device is full no dispatch does
 * that, and a crowd that comes in one moment would take all slots.
 */
static void sutro_count_staged(struct sutro_queue *sq)
{
	unsigned int counted =
		READ_ONCE(sq->core.queued) + READ_ONCE(sq->core.in_flight);

	if (sutro_staged(sq) && sutro_shares_slots(sq->q) &&
	    sutro_used_slots(sq->q) >
		    counted + sutro_all_slots(sq->q) / SUTRO_LEFT_PART)
		sutro_collect(sq);
}

/* Let the running task wait, or limit its slots, if its group has too many requests. */
static noinline void sutro_limit_group(struct sutro_queue *sq,
				       struct blk_mq_alloc_data *data)
{
	struct sutro_quota quota = { .limit = UINT_MAX / 2 };
	struct sutro_blkg *sblkg;

	if (!(data->flags & BLK_MQ_REQ_NOWAIT))
		sutro_count_staged(sq);
	sblkg = sutro_limited(sq, &quota, &data->shallow_depth);
	if (!sblkg) {
		data->nr_tags = min_t(unsigned int, data->nr_tags,
				      max(sutro_quota_left(&quota), 1));
		return;
	}
	sutro_report_refused(sq, quota.sblkg, quota.used, quota.limit);
	data->nr_tags = 1;
	if (data->flags & BLK_MQ_REQ_NOWAIT)
		data->shallow_depth = 1;
	else
		sutro_sleep_for_slot(sq, sblkg, quota);
	blkg_put(sutro_to_blkg(sblkg));
}

/* From how many slots may writeback of a group choose?  A hint. */
static unsigned int sutro_writeback_slots(struct sutro_queue *sq,
					  struct sutro_blkg *sblkg)
{
	unsigned int left = sutro_all_slots(sq->q) / SUTRO_LEFT_PART;
	unsigned int all = sutro_async_depth(sq->q), slots = all;
	struct sutro_quota quota;

	if (!READ_ONCE(sq->group_requests) && !sutro_is_alone(sq) &&
	    !sutro_has_room(sq)) {
		quota = sutro_quota_of_slots(sq, sblkg, all, 0, NULL);
		if (sutro_quota_left(&quota) <= 0)
			slots = max(quota.limit, left);
	}
	if (sutro_is_held_back(sq, sblkg))
		all -= min(left, all - 1);
	return min(slots, all);
}

/**
 * sutro_slots_see - a bio will get a request, if it does not join one
 * @sq:		the leaf
 * @bio:	the bio, of the running task
 */
void sutro_slots_see(struct sutro_queue *sq, struct bio *bio)
{
	struct sutro_seen *seen;

	if (op_is_sync(bio->bi_opf) || !(current->flags & PF_KTHREAD))
		return;
	seen = get_cpu_ptr(&sutro_seen);
	seen->task = current;
	seen->q = sq->q;
	seen->slots = sutro_writeback_slots(sq, sutro_bio_blkg(sq->q, bio));
	put_cpu_ptr(&sutro_seen);
}

/* A part of a bio was split off: see the rest of that bio instead. */
static void sutro_slots_see_split(struct sutro_queue *sq, blk_opf_t opf)
{
	struct bio *rest;

	if (!(opf & REQ_NOMERGE) || !current->bio_list)
		return;
	rest = bio_list_peek(current->bio_list);
	if (rest && bdev_get_queue(rest->bi_bdev) == sq->q)
		sutro_slots_see(sq, rest);
}

/* From how many slots may async requests of the running task choose?  A hint. */
static unsigned int sutro_async_slots(struct sutro_queue *sq, blk_opf_t opf)
{
	struct request_queue *q = sq->q;
	unsigned int slots = sutro_async_depth(q);
	const struct sutro_seen *seen;

	sutro_slots_see_split(sq, opf);
	seen = get_cpu_ptr(&sutro_seen);
	if (seen->task == current && seen->q == q)
		slots = min(slots, seen->slots);
	put_cpu_ptr(&sutro_seen);
	return slots;
}

/* How many slots may a submitter choose from?  elevator_mq_ops.limit_depth. */
void sutro_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct sutro_queue *sq = data->q->elevator->elevator_data;

	if (READ_ONCE(sq->direct_lease) &&
	    sutro_direct_takes(sq, opf, data->hctx)) {
		data->rq_flags &= ~sutro_direct_flags(data->hctx->flags);
		return;
	}
	if (!op_is_sync(opf))
		data->shallow_depth = sutro_async_slots(sq, opf);
	if (!sutro_exempt(opf) && !sutro_has_room(sq))
		sutro_limit_group(sq, data);
}
