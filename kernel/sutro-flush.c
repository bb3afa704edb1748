// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: flushes of the write cache, and journals of file systems.
 *
 * An fsync() of a file on ext4 or xfs takes steps that wait for one another:
 *
 *	1. the data are written, on behalf of the task's cgroup;
 *	2. a kernel thread in the root cgroup writes the journal (REQ_META | REQ_SYNC);
 *	3. it flushes the drive's cache and writes the commit record: a REQ_PREFLUSH |
 *	   REQ_FUA request, which the block layer takes apart (block/blk-flush.c).
 *
 * 1. The group of a journal
 *
 * Steps 2 and 3 belong to the cgroup that caused them.  The kernel does not pass that
 * on, so it is inferred: fsync() writes data as sync requests that are not direct I/O
 * (REQ_SYNC without REQ_IDLE).  The group that sent such a write last is the syncer.
 * In direct mode, bio_merge sees such writes.
 * Writes with REQ_META | REQ_SYNC of the root cgroup, and flushes by kernel threads
 * there, are requests of the syncer for SUTRO_SYNC_NS.
 *
 * The journal is shared: other tasks may wait for the same commit.  So these requests
 * never wait for the turn of their group (sutro-requests.c), however far it was served
 * in advance.  It pays for them with its next turns, before its next fsync().
 *
 *	a (weight 500) appends 4 KiB and calls fsync(), again and again, b (100) reads
 *	streams from the same disk, where each step takes 8.3 ms.  All three steps are
 *	a's: it has turns of some 100 ms, in which it is waited for between the steps,
 *	and pays for 25 ms each time.  If steps 2 and 3 were the root cgroup's, b's
 *	stream would be at the device before each of them, and would cost it 30 ms.
 *
 * The inference has limits.  A commit for direct I/O that allocates blocks, or for
 * changes of metadata without data, is charged to the syncer of another commit, or to
 * the root cgroup if there is none.  Data of other files that ext4 writes in a commit
 * are the root cgroup's.  Only the file system could name the owner: jbd2 and the log of
 * xfs would have to associate their writes with the cgroup that requested the commit.
 *
 * 2. Flushes
 *
 * The request that the drive gets, REQ_OP_FLUSH, is the block layer's own and never
 * comes to an elevator.  But the requests that wait for it do, at three points:
 *
 *	prepare_request		it is allocated: a flush begins
 *	insert_requests		its data come back, at the head: the flush is over
 *	completed_request	there were no data: the flush is over
 *
 * Between these points it is a request of its group at the device, without an estimate: the
 * group has not run empty, and is held for like any other (sutro-select.c).  When the
 * flush is over the group is charged on a rotational device for the time since the last
 * completion, less what was charged for the data in the cache (sutro-destage.c); elsewhere
 * for a write of 4 KiB at most.  Requests that shared a flush share its cost
 * (sutro_cost_flush()).
 *
 * At prepare_request there is no bio: the group is that of the running task.  It may be
 * another one than the bio's where a stacked driver flushes from a worker.
 *
 * A write with REQ_FUA to a drive without FUA (most SATA drives) is followed by another
 * flush.  It begins when the data are written.  For the elevator the request is finished
 * then, so the end of that flush is learned from the request's end_io, which the flush
 * machinery calls last.
 *
 * 3. Locks
 *
 * sutro_queue.done_lock protects the syncer, and the notes by which begin and end of a
 * flush reach the algorithm (sutro-notes.c).  It is taken under sutro_queue.lock, and
 * under mq_flush_lock, with which the end of a flush may come.
 */
#include "sutro-arrival.h"
#include "sutro-completion.h"

/* A commit that comes later than this is not for the last data. */
#define SUTRO_SYNC_NS (250 * NSEC_PER_MSEC)

static bool sutro_is_root(struct sutro_blkg *sblkg)
{
	return !sblkg->group.parent;
}

/* The group that root's commits are for now; NULL if it is not known. */
static struct sutro_blkg *sutro_syncer(struct sutro_queue *sq, u64 now_ns)
{
	lockdep_assert_held(&sq->done_lock);
	return sutro_before(now_ns, sq->synced_ns + SUTRO_SYNC_NS) ? sq->syncer
								   : NULL;
}

static void sutro_set_syncer(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	struct sutro_blkg *old = sq->syncer;

	lockdep_assert_held(&sq->done_lock);
	if (old == sblkg)
		return;
	if (sblkg)
		blkg_get(sutro_to_blkg(sblkg));
	WRITE_ONCE(sq->syncer, sblkg);
	if (old)
		blkg_put(sutro_to_blkg(old));
}

/**
 * sutro_flush_sent - a request leaves for the device: are they data of an fsync()?
 * @sq:		the leaf
 * @sblkg:	its group
 * @opf:	its operation and flags
 * @now_ns:	the time
 */
void sutro_flush_sent(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		      blk_opf_t opf, u64 now_ns)
{
	if (!sutro_op_syncs(opf) || sutro_is_root(sblkg))
		return;
	spin_lock_irq(&sq->done_lock);
	sutro_set_syncer(sq, sblkg->note.gone ? NULL : sblkg);
	WRITE_ONCE(sq->synced_ns, now_ns);
	spin_unlock_irq(&sq->done_lock);
}

/**
 * sutro_flush_saw - data of an fsync() may go past the elevator
 * @sq:		the leaf, in direct mode
 * @bio:	the data
 *
 * The time of the syncer may be half of SUTRO_SYNC_NS old, so that not each bio takes the lock.
 */
void sutro_flush_saw(struct sutro_queue *sq, struct bio *bio)
{
	struct sutro_blkg *sblkg = sutro_bio_blkg(sq->q, bio);
	u64 now_ns = blk_time_get_ns();

	if (READ_ONCE(sq->syncer) != sblkg ||
	    !sutro_before(now_ns, READ_ONCE(sq->synced_ns) + SUTRO_SYNC_NS / 2))
		sutro_flush_sent(sq, sblkg, bio->bi_opf, now_ns);
}

/**
 * sutro_flush_forget - a group no longer syncs
 * @sq:		the leaf
 * @sblkg:	the group, NULL for any
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_flush_forget(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	if (!sblkg || sq->syncer == sblkg)
		sutro_set_syncer(sq, NULL);
}

/**
 * sutro_flush_owner - the group that an arriving request belongs to
 * @sq:		the leaf
 * @rq:		the request, which no group has yet
 *
 * Return: the group of its bio, or the syncing group for a journal; with a reference.
 */
struct sutro_blkg *sutro_flush_owner(struct sutro_queue *sq, struct request *rq)
{
	struct sutro_blkg *sblkg = sutro_bio_blkg(sq->q, rq->bio);

	if (!sutro_is_root(sblkg) || !sutro_op_commits(rq->cmd_flags)) {
		blkg_get(sutro_to_blkg(sblkg));
		return sblkg;
	}
	spin_lock_irq(&sq->done_lock);
	sblkg = sutro_syncer(sq, ktime_get_ns()) ?: sblkg;
	blkg_get(sutro_to_blkg(sblkg));
	spin_unlock_irq(&sq->done_lock);
	return sblkg;
}

/**
 * sutro_flush_begin - a request with a flush was allocated
 * @sq:		the leaf
 * @rq:		the request
 */
void sutro_flush_begin(struct sutro_queue *sq, struct request *rq)
{
	struct sutro_blkg *sblkg;
	unsigned long flags;

	rcu_read_lock();
	sblkg = sutro_current_blkg(sq->q);
	if (sblkg && blkg_tryget(sutro_to_blkg(sblkg))) {
		struct sutro_blkg *syncer = NULL;

		spin_lock_irqsave(&sq->done_lock, flags);
		if (sutro_is_root(sblkg) && current->flags & PF_KTHREAD)
			syncer = sutro_syncer(sq, blk_time_get_ns());
		if (syncer) {
			blkg_get(sutro_to_blkg(syncer));
			blkg_put(sutro_to_blkg(sblkg));
			sblkg = syncer;
		}
		sutro_note_flush(sq, sblkg);
		spin_unlock_irqrestore(&sq->done_lock, flags);
		sutro_rq_set(rq, sblkg, SUTRO_RQ_FLUSHES);
		sutro_slot_taken(sblkg);
	}
	rcu_read_unlock();
}

static void sutro_flush_release(struct request *rq)
{
	struct sutro_queue *sq = rq->q->elevator->elevator_data;
	struct sutro_blkg *sblkg = sutro_rq_blkg(rq);

	sutro_rq_init(rq, 0);
	sutro_slot_freed(sq, sblkg);
	blkg_put(sutro_to_blkg(sblkg));
}

/**
 * sutro_flush_end - the flush of a request is over
 * @sq:		the leaf
 * @rq:		the request, which belongs to no group afterwards
 * @now_ns:	the time
 */
void sutro_flush_end(struct sutro_queue *sq, struct request *rq, u64 now_ns)
{
	sutro_note_flushed(sq, sutro_rq_blkg(rq), rq->start_time_ns, now_ns);
	sutro_flush_release(rq);
}

/**
 * sutro_flush_cancel - a request will not be flushed for
 * @sq:		the leaf
 * @rq:		the request, which belongs to no group afterwards: a plug had it in
 *		reserve, or it needs no flush after all
 */
void sutro_flush_cancel(struct sutro_queue *sq, struct request *rq)
{
	sutro_note_unflushed(sq, sutro_rq_blkg(rq));
	sutro_flush_release(rq);
}

/* Does the block layer flush the cache after it has written the data of a request? */
static bool sutro_rq_flushes_after(struct request *rq)
{
	return blk_queue_write_cache(rq->q) &&
	       !(rq->q->limits.features & BLK_FEAT_FUA) &&
	       rq->biotail->bi_opf & REQ_FUA && !rq->flush.saved_end_io;
}

/**
 * sutro_flush_written - a request of a group was served: does a flush follow?
 * @sq:		the leaf
 * @sblkg:	the group
 * @rq:		the request, before sutro_note_completed()
 */
void sutro_flush_written(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			 struct request *rq)
{
	unsigned long flags;

	if (!(rq->rq_flags & RQF_FLUSH_SEQ) || !sutro_rq_flushes_after(rq))
		return;
	blkg_get(sutro_to_blkg(sblkg));
	rq->end_io_data = sblkg;
	rq->flush.saved_end_io = sutro_flush_end_io;
	spin_lock_irqsave(&sq->done_lock, flags);
	sutro_note_flush(sq, sblkg);
	spin_unlock_irqrestore(&sq->done_lock, flags);
}

/**
 * sutro_flush_after - the flush that follows a request is over
 * @rq:		the request, which was given to sutro_flush_written()
 *
 * Context: mq_flush_lock is held, interrupts are off.
 */
void sutro_flush_after(struct request *rq)
{
	struct sutro_queue *sq = rq->q->elevator->elevator_data;
	struct sutro_blkg *sblkg = rq->end_io_data;

	sutro_note_flushed(sq, sblkg, rq->io_start_time_ns, blk_time_get_ns());
	sutro_wake_dispatcher(sq);
	blkg_put(sutro_to_blkg(sblkg));
}
