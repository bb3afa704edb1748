// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: request slots.
 *
 * A group with many submitters could take all request slots, and weights have no
 * effect on a submitter that waits for one.  So a group may have its share of the
 * slots, and beyond that as many as are free: the more others use, the less it may have
 * beyond its share, and a newcomer finds slots.  A group alone leaves an eighth of them.  So
 * its submitters wait here, in an order, and not for a tag of blk-mq: there, a newcomer would come
 * after all that wait already, and each of these would come again after it.
 *
 *	256 slots, groups of weight 100 and 300.  Both have more to send than that:
 *	64 slots for the one, 192 for the other.  The second one has a request at a
 *	time: the first has 64 + (256 - 160) = 160.
 *
 * The same holds for a group together with all groups below it: a request needs a slot
 * of its own group, and of each ancestor but the root (sutro_group_slots()).  So a subtree
 * gains nothing by many groups.
 *
 * With more groups than slots, each of these would hold a request that waits for its turn, and
 * the next request of a heavy group would wait for a slot as long as theirs.  So while nearly
 * as many groups as slots are active, and once one without a request finds no slot, submitters
 * wait for their turn (sutro-turn.c).  Protected groups have an eighth of the slots without a
 * turn; groups that are held back for their sake leave it to them.  On a rotational disk, others
 * are held back for the next request of a group, which must find a slot meanwhile: groups with no
 * more than an even part leave an eighth of the slots, and the group in service has these without
 * a turn, and one slot more than its ancestors have left.  Hardware queues with slots of their own have no turns.
 *
 *	An hdd with 64 slots, 100 writers of weight 100, each with a stream, and a reader of 1000
 *	with a request at a time.  Without turns, the reader received 0.2 of its share, and the
 *	writers 28 MB/s: one had no request left after the first one of its slice.
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
 * While a group is protected (sutro-protect.c), or others are limited for its latency
 * target (sutro-latency.c), others leave an eighth of the slots to it: their requests may
 * be held back, and it must not wait for these.  Their writeback leaves an eighth to its
 * writeback, too: fsync() waits for pages that a kernel thread has begun to write.  limit_depth,
 * which does not get the bio, takes the limit of its cgroup from bio_merge, which the same task
 * calls before.
 *
 * During a probe (sutro-probe.c), only groups with requests that it counts have free
 * slots beyond their share.  These are served alone then.  The slots of their requests that
 * complete would be taken by all others that wait for one, until the probe had too few.
 *
 * With several hardware queues each has nr_requests slots of its own; a group's
 * limit is its share of one queue's, for all its requests may be on one CPU.
 */
#include <linux/sched/task.h>

#include "sutro-cgroup.h"

/*
 * Part of the slots, one in this many, that a group alone and groups which are held back leave to
 * others, that writeback may choose from in any case, and that may be taken uncounted.
 */
#define SUTRO_LEFT_PART 8U
/*
 * A submitter that sleeps looks again after this time: the one that was woken before it may send
 * a request of another cgroup, whose end wakes no submitter of this one.
 */
#define SUTRO_SLOT_LOOK (HZ / 10)
/* For how long at most a submitter waits for those of higher classes. */
#define SUTRO_SLOT_AGE HZ

/**
 * struct sutro_seen - writeback that bio_merge has seen last on a CPU
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

/**
 * struct sutro_quota - the slots of a group, or of a group and all below it
 * @sblkg:	the group
 * @turns:	those that wait for one of them: of the group, or of the leaf
 * @used:	slots that it uses
 * @limit:	slots that it may use
 */
struct sutro_quota {
	struct sutro_blkg *sblkg;
	struct sutro_turns *turns;
	unsigned int used;
	unsigned int limit;
};

static int sutro_quota_left(const struct sutro_quota *quota)
{
	return (int)quota->limit - (int)quota->used;
}

/*
 * Does a submitter rather wait for a slot of quota @a than of @b?  Where it waits already, @at, it
 * stays while there is none: slots that were promised to others there look as if they were used.
 * If it left for that, waiters would wake one another without end.
 */
static bool sutro_quota_binds(const struct sutro_quota *a,
			      const struct sutro_quota *b,
			      const struct sutro_turns *at)
{
	if (a->turns == at && sutro_quota_left(a) <= 0)
		return true;
	if (b->turns == at && sutro_quota_left(b) <= 0)
		return false;
	return sutro_quota_left(a) < sutro_quota_left(b);
}

/* Do all hardware queues have the same slots? */
static bool sutro_shares_slots(const struct request_queue *q)
{
	return q->nr_hw_queues == 1 || q->sched_shared_tags;
}

/* Slots in use, those just taken and those of kernel threads included. */
static unsigned int sutro_used_slots(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		return sbitmap_weight(&hctx->sched_tags->bitmap_tags.sb);
	return 0;
}

/*
 * Slots that no request uses.  Where hardware queues have slots of their own, those just taken are
 * not counted: a dispatch counts them, and there is none while the device is full.
 */
static unsigned int sutro_free_slots(struct sutro_queue *sq)
{
	unsigned int used;

	if (sutro_shares_slots(sq->q))
		used = sutro_used_slots(sq->q);
	else
		used = READ_ONCE(sq->core.queued) +
		       READ_ONCE(sq->core.in_flight);
	return sq->q->nr_requests -
	       min_t(unsigned int, used, sq->q->nr_requests);
}

/* Is a group held back for others?  A hint. */
static bool sutro_is_held_back(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	if (sutro_protects(&sq->core.protect))
		return !sutro_group_protected(&sblkg->group);
	return READ_ONCE(sq->core.limit_ns) &&
	       !sutro_latency_late_ns(&sblkg->group);
}

/* Does a probe count no request like that which a group has queued last?  A hint. */
static bool sutro_is_not_probed(struct sutro_queue *sq,
				struct sutro_blkg *sblkg)
{
	/* Written under the lock of the dispatcher, which this does not hold. */
	return data_race(sq->probe.active &&
			 !sutro_probe_is_of(&sq->probe, sblkg->peer.class));
}

/* Do groups that are held back use all slots but those of protected ones? A hint. */
static bool sutro_leaves_slots(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	unsigned int left = sq->q->nr_requests / SUTRO_LEFT_PART;
	unsigned int others = READ_ONCE(sq->core.protect.requests);

	return sutro_is_held_back(sq, sblkg) &&
	       sutro_free_slots(sq) + others <= left;
}

/* Is at most one group active, and no group limited for a latency target?  A hint. */
static bool sutro_is_alone(struct sutro_queue *sq)
{
	return READ_ONCE(sq->core.nr_active) < 2 &&
	       !READ_ONCE(sq->core.limit_ns);
}

/* Slots of a group while no other one is active. */
static unsigned int sutro_slots_alone(struct sutro_queue *sq)
{
	unsigned int slots = sq->q->nr_requests;

	return sutro_shares_slots(sq->q) ? slots - slots / SUTRO_LEFT_PART
					 : UINT_MAX / 2;
}

/* Slots that protected groups have without a turn, and do not use.  A hint. */
static unsigned int sutro_kept_slots(struct sutro_queue *sq)
{
	unsigned int kept = sq->q->nr_requests / SUTRO_LEFT_PART;

	return kept - min(kept, READ_ONCE(sq->core.protect.requests));
}

/*
 * Are slots of a leaf taken in turn?  From when a group without a request finds none, and as long
 * as nearly as many groups as slots are active.  A hint.
 */
static bool sutro_is_in_turn(struct sutro_queue *sq)
{
	bool is_crowded = sutro_is_crowded(&sq->core, sq->q->nr_requests);
	bool waits = sutro_turns_pending(&sq->turns);
	bool crowd = READ_ONCE(sq->crowd);

	if (crowd != (is_crowded && (waits || crowd)))
		WRITE_ONCE(sq->crowd, !crowd);
	return waits || (crowd && is_crowded);
}

/* Are others held back for the next request of a group, because of seeks?  A hint. */
static bool sutro_is_in_service(struct sutro_queue *sq,
				struct sutro_blkg *sblkg)
{
	return sq->core.tunables.rotational &&
	       &sblkg->group == READ_ONCE(sq->core.in_service);
}

/* Does a group wait for its turn, when others do?  A hint. */
static bool sutro_takes_turns(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	if (!sutro_is_in_turn(sq))
		return false;
	if (sutro_group_protected(&sblkg->group))
		return !sutro_kept_slots(sq);
	return !sutro_is_in_service(sq, sblkg);
}

/* Slots that a group leaves to others in a crowd. */
static unsigned int sutro_left_in_crowd(struct sutro_queue *sq,
					struct sutro_blkg *sblkg)
{
	unsigned int nr = READ_ONCE(sq->core.nr_active);
	bool leaves;

	if (!sutro_is_crowded(&sq->core, sq->q->nr_requests) ||
	    !sutro_takes_turns(sq, sblkg))
		return 0;
	leaves = sq->core.tunables.rotational
			 ? !sutro_group_heavy(&sblkg->group, nr)
			 : sutro_is_held_back(sq, sblkg);
	return leaves ? sutro_kept_slots(sq) : 0;
}

static struct sutro_blkg *sutro_root_of(struct sutro_blkg *sblkg)
{
	struct sutro_group *group = &sblkg->group;

	while (group->parent)
		group = group->parent;
	return sutro_blkg_of(group);
}

/* The slots of the leaf, for one more request of a group.  No limit while there are no turns. */
static struct sutro_quota sutro_quota_of_leaf(struct sutro_queue *sq,
					      struct sutro_blkg *sblkg)
{
	struct sutro_quota all = { .turns = &sq->turns, .limit = UINT_MAX / 2 };
	bool in_turn;

	if (!sutro_shares_slots(sq->q))
		return all;
	in_turn = sutro_takes_turns(sq, sblkg);
	if (!in_turn && (atomic_read(&sblkg->nr_requests) ||
			 !sutro_is_crowded(&sq->core, sq->q->nr_requests)))
		return all;
	all.sblkg = sutro_root_of(sblkg);
	all.used = sutro_used_slots(sq->q) + READ_ONCE(all.turns->promised);
	all.limit = sq->q->nr_requests - sutro_left_in_crowd(sq, sblkg);
	if (in_turn && sutro_quota_left(&all) > 0 &&
	    !sutro_turns_pass(sq, sblkg, &all.sblkg->group))
		all.limit = 0;
	return all;
}

/*
 * The quota with the fewest slots left, of a group and its ancestors, if all share @slots; or that
 * of @at, if that has none.
 */
static struct sutro_quota sutro_quota_of_slots(struct sutro_queue *sq,
					       struct sutro_blkg *sblkg,
					       unsigned int slots,
					       unsigned int free,
					       const struct sutro_turns *at)
{
	struct sutro_group *group = &sblkg->group;
	struct sutro_quota least = { .sblkg = sblkg, .turns = &sblkg->turns };
	struct sutro_quota quota;
	u32 limits[SUTRO_LEVELS + 1];

	least.used = atomic_read(&sblkg->nr_requests) +
		     READ_ONCE(sblkg->turns.promised);
	least.limit = sutro_group_slots(group, slots, free, limits);
	/* Its last slot was promised to another group of its subtree. */
	if (!least.used && sutro_is_in_service(sq, sblkg))
		return least;
	for (; group->parent; group = group->parent) {
		sblkg = sutro_blkg_of(group);
		quota = (struct sutro_quota){
			.sblkg = sblkg,
			.turns = &sblkg->turns,
			.used = atomic_read(&sblkg->nr_requests) +
				atomic_read(&sblkg->nr_below) +
				READ_ONCE(sblkg->turns.promised),
			.limit = limits[group->depth],
		};
		if (sutro_quota_binds(&quota, &least, at))
			least = quota;
	}
	return least;
}

/*
 * The quota with the fewest slots left for requests of a task; or that of @at, if it waits there
 * and that has none.  A slot of @promised has been promised to it.  Both may be NULL.
 */
static struct sutro_quota sutro_quota_of(struct sutro_queue *sq,
					 struct sutro_blkg *sblkg,
					 const struct sutro_turns *promised,
					 const struct sutro_turns *at)
{
	unsigned int each = READ_ONCE(sq->group_requests);
	struct sutro_quota own = {
		.sblkg = sblkg,
		.turns = &sblkg->turns,
		.used = atomic_read(&sblkg->nr_requests) +
			READ_ONCE(sblkg->turns.promised),
		.limit = each ?: UINT_MAX / 2,
	}, quota, all;
	bool leaves = sutro_leaves_slots(sq, sblkg);
	unsigned int free = 0;

	if (each)
		return own;
	if (sutro_is_alone(sq)) {
		own.limit = sutro_slots_alone(sq);
		return own;
	}
	if (!leaves && !sutro_is_not_probed(sq, sblkg))
		free = sutro_free_slots(sq);
	quota = sutro_quota_of_slots(sq, sblkg, sq->q->nr_requests, free, at);
	quota.used -= quota.turns == promised;
	if ((sutro_quota_left(&quota) > 0 || at == &sq->turns) &&
	    promised != &sq->turns) {
		all = sutro_quota_of_leaf(sq, sblkg);
		if (sutro_quota_binds(&all, &quota, at))
			quota = all;
	}
	if (!leaves)
		return quota;
	own.limit = 1;
	return sutro_quota_binds(&own, &quota, at) ? own : quota;
}

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
		struct sutro_waiter waiter = {
			.since = since,
			.left = sutro_left_in_crowd(sq, sblkg),
		};
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
			io_schedule_timeout(SUTRO_SLOT_LOOK);
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
				sutro_turns_serve(sq, sq->q->nr_requests,
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
		sutro_turns_serve(sq, sq->q->nr_requests,
				  sutro_used_slots(sq->q) - 1);
}

/* Is less than half of the slots in use, so that no group can have too many? */
static bool sutro_has_room(struct sutro_queue *sq)
{
	return !READ_ONCE(sq->group_requests) &&
	       2 * sutro_free_slots(sq) > sq->q->nr_requests;
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
			*ret_depth = sq->q->nr_requests - left;
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
		    counted + sq->q->nr_requests / SUTRO_LEFT_PART)
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
	unsigned int left = sq->q->nr_requests / SUTRO_LEFT_PART;
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

/* From how many slots may async requests of the running task choose?  A hint. */
static unsigned int sutro_async_slots(struct request_queue *q)
{
	const struct sutro_seen *seen = get_cpu_ptr(&sutro_seen);
	unsigned int slots = sutro_async_depth(q);

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
		data->shallow_depth = sutro_async_slots(data->q);
	if (!sutro_exempt(opf) && !sutro_has_room(sq))
		sutro_limit_group(sq, data);
}
