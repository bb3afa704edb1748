/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: state of the elevator in a struct request.
 */
#ifndef SUTRO_RQ_H
#define SUTRO_RQ_H

#include "sutro-blk.h"
#include "sutro-cost.h"

struct sutro_blkg;
struct sutro_lane;

/*
 * rq->elv.priv[0] is the group of a request, NULL if it has none yet.  rq->elv.priv[1] is
 * tagged: its lowest bits are the state of the request, the others belong to the state.
 */
enum sutro_rq_state {
	/*
	 * Queued in its group, or sent from there.  The value is its lane, NULL without one; once
	 * it is sent, that of sutro_rq_keep_sectors().
	 */
	SUTRO_RQ_QUEUED,
	/* Without a group yet.  The value is its submitter. */
	SUTRO_RQ_NEW,
	/*
	 * Past the queue of its group, without a reference to it: the group stays the only
	 * active one until the completion is processed.  The value is that of
	 * sutro_rq_keep_sectors().
	 */
	SUTRO_RQ_PASSED,
	/* Waiting for a flush (sutro-flush.c), with a reference to its group. */
	SUTRO_RQ_FLUSHES,
};

#define SUTRO_RQ_STATE_BITS 2
#define SUTRO_RQ_STATE_MASK ((uintptr_t)BIT(SUTRO_RQ_STATE_BITS) - 1)

static inline struct sutro_blkg *sutro_rq_blkg(struct request *rq)
{
	return rq->elv.priv[0];
}

static inline enum sutro_rq_state sutro_rq_state(struct request *rq)
{
	return (uintptr_t)rq->elv.priv[1] & SUTRO_RQ_STATE_MASK;
}

static inline void sutro_rq_set(struct request *rq, struct sutro_blkg *sblkg,
				enum sutro_rq_state state)
{
	rq->elv.priv[0] = sblkg;
	rq->elv.priv[1] = (void *)(uintptr_t)state;
}

/* A request is, or no longer is, one of a group; its state stays. */
static inline void sutro_rq_set_blkg(struct request *rq,
				     struct sutro_blkg *sblkg)
{
	rq->elv.priv[0] = sblkg;
}

/* A request was allocated; the submitter is 0 where it does not matter. */
static inline void sutro_rq_init(struct request *rq, unsigned long submitter)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] =
		(void *)(submitter << SUTRO_RQ_STATE_BITS | SUTRO_RQ_NEW);
}

/* The submitter of a request that has no group yet. */
static inline unsigned long sutro_rq_submitter(struct request *rq)
{
	return (uintptr_t)rq->elv.priv[1] >> SUTRO_RQ_STATE_BITS;
}

/* The lane of a request that waits. */
static inline struct sutro_lane *sutro_rq_lane(struct request *rq)
{
	return rq->elv.priv[1];
}

static inline void sutro_rq_set_lane(struct request *rq,
				     struct sutro_lane *lane)
{
	/* The state SUTRO_RQ_QUEUED is 0. */
	rq->elv.priv[1] = lane;
}

static inline bool sutro_rq_flushes(struct request *rq)
{
	return rq->elv.priv[0] && sutro_rq_state(rq) == SUTRO_RQ_FLUSHES;
}

/*
 * The submitter of the running task's requests.  For the workers of an io_uring, that is
 * the thread group they work for.
 */
static inline unsigned long sutro_current_submitter(void)
{
	return current->flags & PF_IO_WORKER ? current->tgid : current->pid;
}

/*
 * While a request is at the device, rq->fifo_time holds its estimate, its class,
 * whether few others were there, whether others were held back for it, and whether it is of
 * more sectors than rq->stats_sectors can hold, as discards and write zeroes may be.
 */
#define SUTRO_RQ_SHALLOW 0x80
#define SUTRO_RQ_COMMIT 0x40
#define SUTRO_RQ_HUGE 0x20
#define SUTRO_RQ_CLASS 0x1f
#define SUTRO_RQ_SHIFT 8

/*
 * When the submitter of a request began to wait for a slot; on kernels that do not
 * record that, when it got one.
 */
static inline u64 sutro_rq_submitted_ns(struct request *rq)
{
#ifdef CONFIG_BLK_RQ_ALLOC_TIME
	if (rq->alloc_time_ns)
		return rq->alloc_time_ns;
#endif
	return rq->start_time_ns;
}

/* @next has been merged into @rq, which then has the earlier time of both. */
static inline void sutro_rq_submitted_first(struct request *rq,
					    struct request *next)
{
#ifdef CONFIG_BLK_RQ_ALLOC_TIME
	rq->alloc_time_ns = min(rq->alloc_time_ns, next->alloc_time_ns);
#endif
}

/* The time for which the submitter has waited for a slot. */
static inline u64 sutro_rq_waited_ns(struct request *rq, u64 now_ns)
{
	u64 submitted_ns = sutro_rq_submitted_ns(rq);

	/* The block layer may take the time once for several requests. */
	return now_ns > submitted_ns ? now_ns - submitted_ns : 0;
}

/* Others may wait on such a request: a journal, a page that is reclaimed. */
static inline bool sutro_op_is_prompt(blk_opf_t opf)
{
	return opf & (REQ_META | REQ_SWAP);
}

/* A journal's write: a task waits for it, and nothing comes after it until then. */
static inline bool sutro_op_commits(blk_opf_t opf)
{
	return op_is_write(opf) && (opf & REQ_META) && (opf & REQ_SYNC);
}

static inline void sutro_rq_pack(struct request *rq, u64 estimate_ns,
				 unsigned int class, bool shallow)
{
	BUILD_BUG_ON((SUTRO_CLASSES - 1) & ~SUTRO_RQ_CLASS);

	rq->fifo_time = estimate_ns << SUTRO_RQ_SHIFT | class;
	if (shallow)
		rq->fifo_time |= SUTRO_RQ_SHALLOW;
	if (blk_rq_sectors(rq) > U16_MAX)
		rq->fifo_time |= SUTRO_RQ_HUGE;
}

/* The size of a request that was sent, for its cost: that of a huge one counts as U32_MAX. */
static inline u32 sutro_rq_sent_bytes(struct request *rq)
{
	return rq->fifo_time & SUTRO_RQ_HUGE
		       ? U32_MAX
		       : rq->stats_sectors << SECTOR_SHIFT;
}

/* A request was sent, and has no lane any more.  If it is huge, keep its size there. */
static inline void sutro_rq_keep_sectors(struct request *rq)
{
	if (rq->fifo_time & SUTRO_RQ_HUGE)
		rq->elv.priv[1] = (void *)((uintptr_t)blk_rq_sectors(rq)
						   << SUTRO_RQ_STATE_BITS |
					   sutro_rq_state(rq));
}

/* The sectors of a request that was sent. */
static inline u32 sutro_rq_sent_sectors(struct request *rq)
{
	return rq->fifo_time & SUTRO_RQ_HUGE
		       ? (uintptr_t)rq->elv.priv[1] >> SUTRO_RQ_STATE_BITS
		       : rq->stats_sectors;
}

static inline u64 sutro_rq_estimate_ns(struct request *rq)
{
	return rq->fifo_time >> SUTRO_RQ_SHIFT;
}

static inline unsigned int sutro_rq_class(struct request *rq)
{
	return rq->fifo_time & SUTRO_RQ_CLASS;
}

static inline bool sutro_rq_commits(struct request *rq)
{
	return rq->fifo_time & SUTRO_RQ_COMMIT;
}

static inline bool sutro_rq_shallow(struct request *rq)
{
	return rq->fifo_time & SUTRO_RQ_SHALLOW;
}

/* May the drive complete a write before its data are on the medium? */
static inline bool sutro_rq_caches(struct request *rq)
{
	return req_op(rq) == REQ_OP_WRITE && !(rq->cmd_flags & REQ_FUA) &&
	       blk_queue_write_cache(rq->q);
}

/* Does a write have to wait for the medium although the drive has a cache? */
static inline bool sutro_rq_through(struct request *rq)
{
	return rq->cmd_flags & REQ_FUA && blk_queue_write_cache(rq->q);
}

/* Does a request complete only when a task polls for it? */
static inline bool sutro_rq_is_polled(struct request *rq)
{
	return rq->cmd_flags & REQ_POLLED;
}

static inline enum sutro_op sutro_rq_op(struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return SUTRO_READ;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND:
		return SUTRO_WRITE;
	default:
		return SUTRO_OTHER;
	}
}

static inline unsigned int sutro_request_class(struct request *rq)
{
	return sutro_cost_class(sutro_rq_op(rq), blk_rq_bytes(rq));
}

#endif /* SUTRO_RQ_H */
