// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: direct mode, in which requests go past the elevator.
 *
 * While a disk takes all requests at once, nothing is to be ordered.  They then take the path
 * that they take without an elevator.
 *
 *	a reads 4 KiB, 50,000 times a second.  After 256 reads direct mode begins:
 *	limit_depth clears the flags by which a request belongs to the elevator.  b
 *	sends a read.  bio_merge, which gets each bio before its request is allocated,
 *	finds that b is no member of the lease and ends direct mode: b's request, and all
 *	that are allocated afterwards, are ordered.  Requests that a has at the device stay there.
 *	After 256 reads of both, of which none had to wait, direct mode begins for a and b.
 *	c, of the same weight, sends a read: it becomes a member, and the read goes past, too.
 *
 * 1. Which requests
 *
 * Reads and sync writes of the members of a lease (sutro-lease.c).  Others are ordered as ever,
 * during direct mode, too: requests with REQ_META or REQ_SWAP, which others may wait on,
 * writeback, flushes, and all operations that are neither reads nor writes.  When one of
 * these has to wait, direct mode ends.
 *
 * It also ends with the first request that would have to wait: when the driver was busy or
 * had no tag for a request, or when a task waits for a tag.  With several members it ends
 * as well when they had depth_ns at the device in the mean of a tick: then requests would
 * wait in the elevator (sutro-select.c), and with one when its requests took longer than a window
 * of sutro-alone.c.
 *
 * No member is a group that may need protection (sutro-protect.c): one with a latency target,
 * with reserved time, or favoured over others that are active.  Nor is one with requests of
 * several ioprios.
 *
 * There is no direct mode on rotational and zoned disks, with fairness=1, with group_requests,
 * with a discipline other than fifo, nor where the block layer does not count what completes
 * (iostats=0) or does not merge (nomerges).
 *
 * 2. Which path
 *
 * Without RQF_USE_SCHED a request is issued directly, or goes to hctx->dispatch from
 * sutro_direct_insert().  Linux 6.12 allows that as it is.  But then it takes
 * two tags, one of the scheduler and one of the driver.  Without RQF_SCHED_TAGS, too, it takes
 * a driver tag only, as without an elevator.  Stock kernels warn when such a request has
 * to be inserted after all (a quiesced queue, a requeue by the driver), so this needs the last
 * patch of the series, which defines BLK_MQ_SCHED_BYPASS.  From Linux 7.2 on,
 * RQF_USE_SCHED follows from RQF_SCHED_TAGS, and without the patch there is no
 * direct mode (sutro_direct_flags()).
 *
 * 3. Accounting
 *
 * The hot path takes no lock of the elevator, and writes a counter of the group and the CPU only.
 * A worker reads what the block layer has counted, by CPU, each 10 ms, and charges the members
 * for their parts of it (sutro-member.c) by the table of costs.  Sizes are means: n requests
 * that had b bytes together are charged as n of b / n.  Their vtime does not change: as long as
 * no request waits, no group owes anything to another one.
 *
 * Windows of completions and probes, which measure costs, are void meanwhile
 * (&sutro_device.unseen), as the elevator sees a part of the requests only.
 *
 * A bio of another group that uses a request which a plug had in reserve is charged to the
 * members: no more than a plug's requests for each time that direct mode ends.
 *
 * 4. Locks
 *
 * &sutro_queue.direct_lease is read without a lock, and compared only; any context may set it
 * to 0.  It is set with sutro_queue.lock held.  The state of the lease changes with
 * sutro_queue.lock and done_lock held; its sums and the list of members are protected by
 * done_lock.
 */
#include <linux/part_stat.h>

#include "sutro-cgroup.h"
#include "sutro-member.h"
#include "sutro-rq.h"
#include "sutro-service.h"

/* Of the requests of members, one in this many shows whether their group may still be one. */
#define SUTRO_DIRECT_LOOK 16

/**
 * sutro_direct_end - the next requests are ordered
 * @sq:		the leaf
 *
 * Context: any.
 */
void sutro_direct_end(struct sutro_queue *sq)
{
	if (READ_ONCE(sq->direct_lease))
		WRITE_ONCE(sq->direct_lease, 0);
}

/* Does a task wait for a tag?  Without the series, first for one of the scheduler. */
static bool sutro_direct_is_short(struct blk_mq_hw_ctx *hctx)
{
	return atomic_read(&hctx->tags->bitmap_tags.ws_active) ||
	       atomic_read(&hctx->sched_tags->bitmap_tags.ws_active);
}

/* Was the driver busy, or does a task wait for a tag?  Hints. */
static bool sutro_direct_is_full(struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hctx->dispatch_busy) || sutro_direct_is_short(hctx);
}

/* Is a request of a kind that may go past the elevator? */
static bool sutro_direct_may(blk_opf_t opf)
{
	/* The block layer does not call bio_merge for bios with one of the last three flags. */
	const blk_opf_t others = REQ_META | REQ_SWAP | REQ_PREFLUSH | REQ_FUA |
				 REQ_NOMERGE;
	enum req_op op = opf & REQ_OP_MASK;

	return !(opf & others) && (op == REQ_OP_READ || op == REQ_OP_WRITE) &&
	       op_is_sync(opf);
}

/* Does the leaf allow direct mode at all? */
static bool sutro_direct_is_possible(struct sutro_queue *sq)
{
	struct request_queue *q = sq->q;

	return READ_ONCE(sq->direct_allowed) &&
	       sutro_direct_flags(q->tag_set->flags) &&
	       !sq->device.rotational && !blk_queue_is_zoned(q) &&
	       blk_queue_io_stat(q) && !sutro_counts_passthrough(q) &&
	       !blk_queue_nomerges(q) && !READ_ONCE(sq->group_requests) &&
	       !READ_ONCE(sq->core.tunables.fairness) &&
	       READ_ONCE(sq->discipline) == SUTRO_FIFO;
}

/*
 * Does a group suit a lease, beside members of its weight?  In direct mode no room is left for a
 * group that was protected and will soon be back.
 */
static bool sutro_direct_suits(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			       u64 now_ns)
{
	struct sutro_group *group = &sblkg->group;

	return now_ns >= sblkg->requests.mixed_until_ns &&
	       !sutro_latency_late_ns(group) && !sutro_group_reserving(group) &&
	       !(sq->core.expected_protected &&
		 sutro_expects_other(&sq->core, group, now_ns)) &&
	       sutro_direct_is_possible(sq);
}

/* A group sends a bio, and is no member: it becomes one if it may.  Returns the member, or NULL. */
static noinline struct sutro_member *
sutro_direct_admit(struct sutro_queue *sq, u32 lease, struct sutro_blkg *sblkg,
		   struct bio *bio)
{
	struct sutro_member *member = NULL;

	spin_lock(&sq->lock);
	if (READ_ONCE(sq->direct_lease) == lease &&
	    sutro_direct_suits(sq, sblkg, ktime_get_ns()) &&
	    sutro_member_admit(sq, sblkg, bio))
		member = sutro_member_of(sblkg, lease);
	spin_unlock(&sq->lock);
	return member;
}

/**
 * sutro_direct_bio - a bio was sent in direct mode, and no request was allocated for it yet
 * @sq:		the leaf
 * @lease:	&sutro_queue.direct_lease
 * @bio:	the bio
 *
 * Return: true if it is one of a member, which its group may have become.  If not, direct mode is
 * over, unless it is a journal's write: the elevator, which orders that, finds the group that it
 * belongs to (sutro-flush.c).
 *
 * Context: process; takes sutro_queue.lock and done_lock for a group that is no member.
 */
bool sutro_direct_bio(struct sutro_queue *sq, u32 lease, struct bio *bio)
{
	struct sutro_blkg *sblkg = sutro_bio_blkg(sq->q, bio);
	struct sutro_member *member = sutro_member_of(sblkg, lease);
	bool may = sutro_direct_may(bio->bi_opf);

	if (!member && may)
		member = sutro_direct_admit(sq, lease, sblkg, bio);
	if (!member) {
		if (!sutro_op_commits(bio->bi_opf))
			sutro_direct_end(sq);
		return false;
	}
	if (may)
		sutro_member_sends(member, bio);
	return true;
}

/**
 * sutro_direct_takes - may a request that is being allocated go past the elevator?
 * @sq:		the leaf, in direct mode
 * @opf:	its operation and flags
 * @hctx:	its hardware queue
 *
 * Return: true if it may.
 */
bool sutro_direct_takes(struct sutro_queue *sq, blk_opf_t opf,
			struct blk_mq_hw_ctx *hctx)
{
	if (!sutro_direct_may(opf))
		return false;
	if (!sutro_direct_is_full(hctx))
		return true;
	WRITE_ONCE(sq->direct_full, true);
	sutro_direct_end(sq);
	return false;
}

/* Give those requests of a list to the driver that are not the elevator's. */
static noinline void sutro_direct_give(struct blk_mq_hw_ctx *hctx,
				       struct list_head *list, bool at_head)
{
	struct request *rq, *next;
	LIST_HEAD(direct);

	list_for_each_entry_safe(rq, next, list, queuelist)
		if (!(rq->rq_flags & RQF_USE_SCHED))
			list_move_tail(&rq->queuelist, &direct);
	spin_lock(&hctx->lock);
	if (at_head)
		list_splice(&direct, &hctx->dispatch);
	else
		list_splice_tail(&direct, &hctx->dispatch);
	spin_unlock(&hctx->lock);
}

/**
 * sutro_direct_insert - give requests that go past the elevator to the driver
 * @hctx:	their hardware queue
 * @list:	requests; those of the elevator are left there
 * @at_head:	before all others
 */
void sutro_direct_insert(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			 bool at_head)
{
	struct request *rq;

	list_for_each_entry(rq, list, queuelist) {
		if (!(rq->rq_flags & RQF_USE_SCHED)) {
			sutro_direct_give(hctx, list, at_head);
			return;
		}
	}
}

/* All requests that the disk has completed, in direct mode or not. */
static void sutro_direct_read(struct request_queue *q, struct sutro_tally *disk)
{
	struct block_device *part = q->disk->part0;

	disk->ios[0] = part_stat_read(part, ios[STAT_READ]);
	disk->ios[1] = part_stat_read(part, ios[STAT_WRITE]);
	disk->sectors[0] = part_stat_read(part, sectors[STAT_READ]);
	disk->sectors[1] = part_stat_read(part, sectors[STAT_WRITE]);
	disk->took_ns[0] = part_stat_read(part, nsecs[STAT_READ]);
	disk->took_ns[1] = part_stat_read(part, nsecs[STAT_WRITE]);
}

static unsigned long sutro_direct_ticks(struct request_queue *q)
{
	return part_stat_read(q->disk->part0, io_ticks);
}

static void sutro_direct_tick_later(struct sutro_queue *sq)
{
	kblockd_mod_delayed_work_on(WORK_CPU_UNBOUND, &sq->direct_work,
				    nsecs_to_jiffies(SUTRO_LEASE_TICK_NS));
}

/* May a group be a member of the next lease? */
static bool sutro_direct_may_join(struct sutro_queue *sq,
				  struct sutro_blkg *sblkg, u64 now_ns)
{
	return sutro_direct_suits(sq, sblkg, now_ns) &&
	       !sutro_group_favoured_inside(&sblkg->group);
}

/* A group that has sent a request of the streak becomes, or stays, a member of the next lease. */
static bool sutro_direct_joins(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			       u64 now_ns)
{
	const struct sutro_lease *lease = &sq->lease;

	if (lease->streak % SUTRO_DIRECT_LOOK &&
	    sutro_member_of(sblkg, lease->number))
		return true;
	return sutro_direct_may_join(sq, sblkg, now_ns) &&
	       sutro_member_join(sq, sblkg);
}

static void sutro_direct_begin(struct sutro_queue *sq, u64 now_ns)
{
	struct sutro_tally disk;

	spin_lock_irq(&sq->done_lock);
	if (!sq->exiting) {
		/*
		 * Set it first, so that the elevator counts each request that completes
		 * from now on.
		 */
		WRITE_ONCE(sq->device.unseen, true);
		sutro_direct_read(sq->q, &disk);
		sq->direct_ticks = sutro_direct_ticks(sq->q);
		sq->direct_tick_ns = now_ns;
		sutro_lease_begin(&sq->lease, &disk, now_ns);
		WRITE_ONCE(sq->direct_only, sutro_members_begin(sq));
		sq->direct = true;
		WRITE_ONCE(sq->direct_full, false);
		WRITE_ONCE(sq->direct_lease, sq->lease.number);
		sutro_direct_tick_later(sq);
	}
	spin_unlock_irq(&sq->done_lock);
}

/**
 * sutro_direct_sent - a request was sent, and did not wait for others
 * @sq:		the leaf
 * @sblkg:	its group
 * @now_ns:	the time
 *
 * Begins direct mode if it is time.
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_direct_sent(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		       u64 now_ns)
{
	struct sutro_lease *lease = &sq->lease;

	lockdep_assert_held(&sq->lock);

	if (lease->state != SUTRO_LEASE_OFF)
		return;
	if (sutro_lease_admits(lease) && !sutro_direct_joins(sq, sblkg, now_ns))
		sutro_lease_restart(lease);
	else if (sutro_lease_passed(lease, now_ns))
		sutro_direct_begin(sq, now_ns);
}

/* Is nothing to be ordered although the elevator has requests? */
static bool sutro_direct_is_calm(struct sutro_queue *sq)
{
	u32 lease = READ_ONCE(sq->direct_lease);

	return lease && !sq->probe.active &&
	       !sutro_protects(&sq->core.protect) &&
	       !READ_ONCE(sq->core.limit_ns) &&
	       (list_empty(&sq->passing) || sutro_member_of(sq->passer, lease));
}

/**
 * sutro_direct_look - the elevator has requests in direct mode
 * @sq:		the leaf, which has collected what was inserted
 * @now_ns:	the time
 *
 * Ends direct mode unless nothing has to be ordered.
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_direct_look(struct sutro_queue *sq, u64 now_ns)
{
	if (!sq->direct || sutro_direct_is_calm(sq))
		return;
	sq->direct = false;
	sutro_direct_end(sq);
	sutro_core_alone_until(&sq->core, now_ns);
}

/**
 * sutro_direct_waits - requests wait in the elevator, or one was queued of a group that is no
 *			member
 * @sq:		the leaf
 * @sblkg:	that group, NULL if requests wait
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_direct_waits(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	u32 lease = READ_ONCE(sq->direct_lease);

	lockdep_assert_held(&sq->lock);

	if (!sblkg) {
		sutro_lease_restart(&sq->lease);
		if (lease)
			WRITE_ONCE(sq->direct_full, true);
	}
	if (lease && !(sblkg && sutro_member_of(sblkg, lease)))
		sutro_direct_end(sq);
}

/**
 * sutro_direct_sends - a request of the elevator is sent, or came back from the driver
 * @sq:		the leaf
 * @rq:		the request
 * @bytes:	its size, negative if it came back
 *
 * Its cgroup is that of its bio, which a journal's request is not charged to.
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_direct_sends(struct sutro_queue *sq, struct request *rq, s64 bytes)
{
	lockdep_assert_held(&sq->lock);

	if (READ_ONCE(sq->device.unseen) && !op_is_discard(req_op(rq)))
		sutro_member_ordered(sutro_bio_blkg(sq->q, rq->bio),
				     op_is_write(req_op(rq)), bytes);
}

/**
 * sutro_direct_ordered - a request of the elevator has completed
 * @sq:		the leaf
 * @rq:		the request
 * @sectors:	its size
 * @now_ns:	the time
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_direct_ordered(struct sutro_queue *sq, struct request *rq,
			  u32 sectors, u64 now_ns)
{
	struct sutro_tally *ordered = &sq->lease.ordered;
	bool write = op_is_write(req_op(rq));

	lockdep_assert_held(&sq->done_lock);

	/* The block layer counts these elsewhere. */
	if (op_is_discard(req_op(rq)))
		return;
	ordered->ios[write]++;
	ordered->sectors[write] += sectors;
	ordered->took_ns[write] += now_ns - rq->start_time_ns;
}

/* Device time of @ios requests of @bytes together; the disk is not rotational. */
static u64 sutro_direct_cost_ns(struct sutro_queue *sq, enum sutro_op op,
				unsigned long ios, u64 bytes)
{
	u32 each = min_t(u64, div64_u64(bytes, ios), U32_MAX);

	return ios * sutro_cost_estimate(&sq->device, NULL,
					 sutro_cost_class(op, each), each);
}

/* Charge a member for its part of the requests that the disk has completed. */
static void sutro_direct_charge(struct sutro_queue *sq,
				struct sutro_blkg *sblkg,
				const struct sutro_tally *tally)
{
	static const enum sutro_op ops[] = { SUTRO_READ, SUTRO_WRITE };
	struct sutro_group *group = &sblkg->group;
	u64 busy_ns =
		min(sq->direct_busy_ns, tally->took_ns[0] + tally->took_ns[1]);
	u64 cost_ns;
	int i;

	lockdep_assert_held(&sq->lock);
	lockdep_assert_held(&sq->done_lock);

	for (i = 0; i < 2; i++) {
		u64 bytes = (u64)tally->sectors[i] << SECTOR_SHIFT;
		unsigned long ios = tally->ios[i];
		enum sutro_op op = ops[i];

		if (ios) {
			cost_ns = sutro_direct_cost_ns(sq, op, ios, bytes);
			sq->direct_cost_ns += cost_ns;
			sblkg->stat.time_ns += cost_ns;
			WRITE_ONCE(sblkg->stat.used_ticks,
				   sutro_ticks(sq->direct_tick_ns));
			/* Pairs with the barrier in sutro_active_leave(). */
			smp_mb();
			sutro_active_enter(sblkg);
		}
		sblkg->stat.ios[op] += ios;
		sblkg->stat.bytes[op] += bytes;
		sblkg->stat.pending_ns += tally->took_ns[i];
	}
	/* With requests in the elevator, the algorithm counts this time. */
	if (!group->queued && !group->in_flight)
		WRITE_ONCE(group->stat.busy_ns, group->stat.busy_ns + busy_ns);
}

/* Is there still nothing to order?  Settings may change without a request. */
static enum sutro_lease_news sutro_direct_news(struct sutro_queue *sq,
					       const struct sutro_tally *new,
					       u64 elapsed_ns)
{
	const struct sutro_device *device = &sq->device;

	if (READ_ONCE(sq->direct_full) ||
	    sutro_lease_is_deep(&sq->lease, new, elapsed_ns, sq->direct_cost_ns,
				sutro_cost_depth_ns(device),
				sutro_alone_ns(sutro_cost_latency_ns(device))))
		return SUTRO_LEASE_FULL;
	return READ_ONCE(sq->direct_lease) && sutro_direct_is_possible(sq)
		       ? SUTRO_LEASE_CALM
		       : SUTRO_LEASE_OVER;
}

/*
 * Is a request that went past the elevator left, at the device or in the plug of a task that does
 * not run?  Those that are allocated while this looks are the elevator's.
 */
static bool sutro_hctx_has_direct(const struct blk_mq_hw_ctx *hctx)
{
	const req_flags_t flags = sutro_direct_flags(hctx->flags);
	const struct blk_mq_tags *tags =
		flags & RQF_SCHED_TAGS ? hctx->tags : hctx->sched_tags;
	unsigned int i;

	/* A hardware queue to which no CPU is mapped has no tags of the driver. */
	for (i = 0; tags && i < tags->nr_tags; i++) {
		struct request *rq = tags->static_rqs[i];

		if (atomic_read(&rq->ref) && rq->q == hctx->queue &&
		    !(READ_ONCE(rq->rq_flags) & flags) &&
		    !blk_rq_is_passthrough(rq))
			return true;
	}
	return false;
}

static bool sutro_direct_is_left(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	bool left = false;
	unsigned long i;

	/* The tags of a queue that is being frozen may be replaced. */
	if (!percpu_ref_tryget_live(&q->q_usage_counter))
		return false;
	queue_for_each_hw_ctx(q, hctx, i)
		left |= sutro_hctx_has_direct(hctx);
	percpu_ref_put(&q->q_usage_counter);
	return left;
}

/**
 * sutro_direct_tick - account for requests in direct mode, and see whether that is over
 * @work:	&sutro_queue.direct_work
 */
void sutro_direct_tick(struct work_struct *work)
{
	struct sutro_queue *sq = container_of(to_delayed_work(work),
					      struct sutro_queue, direct_work);
	struct sutro_tally disk, new;
	enum sutro_lease_state state;
	unsigned long ticks;
	long completed;
	u64 elapsed_ns;
	bool left;

	/* Before the counts of the disk are read, which then have all that is not left. */
	left = !READ_ONCE(sq->direct_lease) && sutro_direct_is_left(sq->q);
	spin_lock(&sq->lock);
	spin_lock_irq(&sq->done_lock);
	elapsed_ns = ktime_get_ns() - sq->direct_tick_ns;
	sq->direct_tick_ns += elapsed_ns;
	ticks = sutro_direct_ticks(sq->q);
	sq->direct_busy_ns = jiffies_to_nsecs(ticks - sq->direct_ticks);
	sq->direct_ticks = ticks;
	sq->direct_cost_ns = 0;
	sutro_direct_read(sq->q, &disk);
	completed = sutro_lease_account(&sq->lease, &disk, &new);
	sutro_members_account(sq, &new, sutro_direct_charge);
	state = sutro_lease_tick(&sq->lease, completed, left,
				 sutro_direct_news(sq, &new, elapsed_ns),
				 sq->direct_tick_ns);
	if (state != SUTRO_LEASE_ON)
		sutro_direct_end(sq);
	if (state == SUTRO_LEASE_OFF)
		WRITE_ONCE(sq->device.unseen, false);
	spin_unlock_irq(&sq->done_lock);
	spin_unlock(&sq->lock);

	if (state != SUTRO_LEASE_OFF)
		sutro_direct_tick_later(sq);
}

/**
 * sutro_direct_forget - the cgroup or the leaf of a group is removed
 * @sq:		the leaf
 * @sblkg:	the group
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_direct_forget(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	u32 lease = READ_ONCE(sq->direct_lease);

	if (lease && sutro_member_of(sblkg, lease))
		sutro_direct_end(sq);
	sutro_member_leave(sblkg);
}
