// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: direct mode, in which requests go past the elevator.
 *
 * While one group alone uses a disk that takes all its requests, nothing is to be ordered.
 * Its requests then take the path that they take without an elevator.
 *
 *	a reads 4 KiB, 50,000 times a second.  After 256 reads direct mode begins:
 *	limit_depth clears the flags by which a request belongs to the elevator.  b
 *	sends a read.  bio_merge, which gets each bio before its request is allocated,
 *	sees another owner than a and ends direct mode: b's request, and all that are
 *	allocated afterwards, are ordered.  Requests that a has at the device stay there.
 *
 * 1. Which requests
 *
 * Reads and sync writes of one group.  Others are ordered as ever, during direct mode, too:
 * requests with REQ_META or REQ_SWAP, which others may wait on, writeback, flushes, and
 * all operations that are neither reads nor writes.  When one of these has to wait, or
 * may not pass (sutro-pass.c), direct mode ends.
 *
 * It also ends with the first request that would have to wait: when the driver was busy or
 * had no tag for a request, or when a task waits for a tag.
 * sutro-lease.c decides when it may begin again.
 *
 * There is no direct mode on rotational and zoned disks, with fairness=1, with group_requests,
 * with a discipline other than fifo, for a group with a latency target, nor where the block
 * layer does not count what completes (iostats=0) or does not merge (nomerges).
 *
 * 2. Which path
 *
 * Without RQF_USE_SCHED a request is issued directly, or goes to hctx->dispatch from
 * sutro_direct_insert().  Linux 6.12 allows that as it is.  But then it takes
 * two tags, one of the scheduler and one of the driver.  Without RQF_SCHED_TAGS, too, it takes
 * a driver tag only, as without an elevator.  Stock kernels warn when such a request has
 * to be inserted after all (a quiesced queue, a requeue by the driver), so this needs the first
 * patch of our series, which defines BLK_MQ_SCHED_BYPASS.  From Linux 7.2 on,
 * RQF_USE_SCHED follows from RQF_SCHED_TAGS, and without the patch there is no
 * direct mode (sutro_direct_flags()).
 *
 * 3. Accounting
 *
 * The hot path writes nothing and takes no lock of the elevator.  A worker reads what the block
 * layer has counted, by CPU, each 10 ms, and charges the group for it by the table
 * of costs (sutro-lease.c).  Sizes are means: n requests that had b bytes together are
 * charged as n of b / n.  The vtime of the group does not change: with no other group active,
 * it owes nothing to another one (sutro-core.c).
 *
 * Windows of completions and probes, which measure costs, are void meanwhile
 * (&sutro_device.unseen), as the elevator sees a part of the requests only.
 *
 * A bio of another group that uses a request which a plug had in reserve is charged to the
 * group of the lease: no more than a plug's requests for each time that direct mode ends.
 *
 * 4. Locks
 *
 * &sutro_queue.direct_for is read without a lock, and compared only; any context may set it
 * to NULL.  It is set with sutro_queue.lock held.  The state of the lease changes with
 * sutro_queue.lock and done_lock held; its sums and its owner are protected by done_lock.
 */
#include <linux/part_stat.h>

#include "sutro.h"

/**
 * sutro_direct_end - the next requests are ordered
 * @sq:		the leaf
 *
 * Context: any.
 */
void sutro_direct_end(struct sutro_queue *sq)
{
	if (READ_ONCE(sq->direct_for))
		WRITE_ONCE(sq->direct_for, NULL);
}

/* Was the driver busy, or does a task wait for a tag?  Hints. */
static bool sutro_direct_is_full(struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hctx->dispatch_busy) ||
	       atomic_read(&hctx->tags->bitmap_tags.ws_active);
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
	/* The block layer does not call bio_merge for bios with one of the last three flags. */
	const blk_opf_t others = REQ_META | REQ_SWAP | REQ_PREFLUSH | REQ_FUA |
				 REQ_NOMERGE;
	enum req_op op = opf & REQ_OP_MASK;

	if (opf & others || (op != REQ_OP_READ && op != REQ_OP_WRITE) ||
	    !op_is_sync(opf))
		return false;
	if (!sutro_direct_is_full(hctx))
		return true;
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

/**
 * sutro_direct_passed - a request of the only active group was sent as it came
 * @sq:		the leaf
 * @now_ns:	the time
 *
 * Begins direct mode if it is time.
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_direct_passed(struct sutro_queue *sq, u64 now_ns)
{
	struct sutro_blkg *sblkg = sq->passer;
	struct sutro_tally disk;

	lockdep_assert_held(&sq->lock);

	/* In direct mode no room is left for a group that will soon be back. */
	if (sutro_expects_other(&sq->core, &sblkg->group, now_ns)) {
		sq->lease.streak = 0;
		return;
	}
	if (!sutro_lease_passed(&sq->lease, now_ns) ||
	    !sutro_direct_is_possible(sq) || sq->core.alone != &sblkg->group ||
	    sutro_latency_of(&sblkg->group))
		return;

	spin_lock_irq(&sq->done_lock);
	if (!sblkg->note.gone && !sq->exiting) {
		/*
		 * Set it first, so that the elevator counts each request that completes
		 * from now on.
		 */
		WRITE_ONCE(sq->device.unseen, true);
		sutro_direct_read(sq->q, &disk);
		sq->direct_ticks = sutro_direct_ticks(sq->q);
		sutro_lease_begin(&sq->lease, &disk, now_ns);
		blkg_get(sutro_to_blkg(sblkg));
		sq->direct_owner = sblkg;
		sq->direct = true;
		WRITE_ONCE(sq->direct_for, sutro_to_blkg(sblkg));
		sutro_direct_tick_later(sq);
	}
	spin_unlock_irq(&sq->done_lock);
}

/**
 * sutro_direct_look - the elevator has requests in direct mode
 * @sq:		the leaf, which has collected what was inserted
 * @now_ns:	the time
 *
 * Ends direct mode unless they pass and are of the same group.
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_direct_look(struct sutro_queue *sq, u64 now_ns)
{
	struct blkcg_gq *blkg = READ_ONCE(sq->direct_for);

	if (!sq->direct)
		return;
	if (blkg && !sq->core.queued && !sq->probe.active && sq->core.alone &&
	    sutro_to_blkg(sutro_blkg_of(sq->core.alone)) == blkg &&
	    sutro_core_may_pass(&sq->core, sq->core.alone, now_ns) &&
	    !sutro_expects_other(&sq->core, sq->core.alone, now_ns) &&
	    (list_empty(&sq->passing) || sutro_to_blkg(sq->passer) == blkg))
		return;
	sq->direct = false;
	sutro_direct_end(sq);
	sutro_core_alone_until(&sq->core, now_ns);
}

/**
 * sutro_direct_ordered - a request of the elevator has completed
 * @sq:		the leaf
 * @rq:		the request
 * @now_ns:	the time
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_direct_ordered(struct sutro_queue *sq, struct request *rq,
			  u64 now_ns)
{
	struct sutro_tally *ordered = &sq->lease.ordered;
	bool write = op_is_write(req_op(rq));

	lockdep_assert_held(&sq->done_lock);

	/* The block layer counts these elsewhere. */
	if (op_is_discard(req_op(rq)))
		return;
	ordered->ios[write]++;
	ordered->sectors[write] += rq->stats_sectors;
	ordered->took_ns[write] += now_ns - rq->start_time_ns;
}

/* Release the owner of the lease, because the lease is over or the group is removed. */
static void sutro_direct_release(struct sutro_queue *sq)
{
	struct sutro_blkg *sblkg = sq->direct_owner;

	lockdep_assert_held(&sq->done_lock);

	sutro_direct_end(sq);
	if (!sblkg)
		return;
	sq->direct_owner = NULL;
	blkg_put(sutro_to_blkg(sblkg));
}

/* Device time of @ios requests of @bytes together; the disk is not rotational. */
static u64 sutro_direct_cost_ns(struct sutro_queue *sq, enum sutro_op op,
				unsigned long ios, u64 bytes)
{
	u32 each = min_t(u64, div64_u64(bytes, ios), U32_MAX);

	return ios * sutro_cost_estimate(&sq->device, NULL,
					 sutro_cost_class(op, each), each);
}

/* Part of the last tick in which the group had a request at the device. */
static u64 sutro_direct_busy_ns(struct sutro_queue *sq,
				const struct sutro_tally *new)
{
	unsigned long ticks = sutro_direct_ticks(sq->q);
	u64 busy_ns = jiffies_to_nsecs(ticks - sq->direct_ticks);

	sq->direct_ticks = ticks;
	return min(busy_ns, new->took_ns[0] + new->took_ns[1]);
}

static void sutro_direct_charge(struct sutro_queue *sq,
				struct sutro_blkg *sblkg,
				const struct sutro_tally *tally, u64 now_ns)
{
	static const enum sutro_op ops[] = { SUTRO_READ, SUTRO_WRITE };
	struct sutro_group *group = &sblkg->group;
	u64 busy_ns, cost_ns;
	int i;

	lockdep_assert_held(&sq->lock);
	lockdep_assert_held(&sq->done_lock);

	for (i = 0; i < 2; i++) {
		u64 bytes = (u64)tally->sectors[i] << SECTOR_SHIFT;
		unsigned long ios = tally->ios[i];
		enum sutro_op op = ops[i];

		if (ios) {
			cost_ns = sutro_direct_cost_ns(sq, op, ios, bytes);
			sblkg->stat.time_ns += cost_ns;
			WRITE_ONCE(sblkg->stat.used_ticks, sutro_ticks(now_ns));
		}
		sblkg->stat.ios[op] += ios;
		sblkg->stat.bytes[op] += bytes;
		sblkg->stat.pending_ns += tally->took_ns[i];
	}
	busy_ns = sutro_direct_busy_ns(sq, tally);
	/* With requests in the elevator, the algorithm counts this time. */
	if (!group->queued && !group->in_flight)
		WRITE_ONCE(group->stat.busy_ns, group->stat.busy_ns + busy_ns);
}

/* Is there still nothing to order?  Settings may change without a request. */
static bool sutro_direct_goes_on(struct sutro_queue *sq)
{
	return READ_ONCE(sq->direct_for) && sutro_direct_is_possible(sq);
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
	long completed;
	u64 now_ns;

	spin_lock(&sq->lock);
	spin_lock_irq(&sq->done_lock);
	now_ns = ktime_get_ns();
	sutro_direct_read(sq->q, &disk);
	completed = sutro_lease_account(&sq->lease, &disk, &new);
	if (sq->direct_owner)
		sutro_direct_charge(sq, sq->direct_owner, &new, now_ns);
	state = sutro_lease_tick(&sq->lease, completed, num_online_cpus(),
				 sutro_direct_goes_on(sq), now_ns);
	if (state != SUTRO_LEASE_ON)
		sutro_direct_end(sq);
	if (state == SUTRO_LEASE_OFF) {
		sutro_direct_release(sq);
		WRITE_ONCE(sq->device.unseen, false);
	}
	spin_unlock_irq(&sq->done_lock);
	spin_unlock(&sq->lock);

	if (state != SUTRO_LEASE_OFF)
		sutro_direct_tick_later(sq);
}

/**
 * sutro_direct_forget - a group has no direct mode any more
 * @sq:		the leaf
 * @sblkg:	the group, NULL for any
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_direct_forget(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	if (!sblkg || sq->direct_owner == sblkg)
		sutro_direct_release(sq);
}
