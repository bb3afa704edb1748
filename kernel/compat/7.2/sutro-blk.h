/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: the block layer, where its form changed between kernels.
 *
 * There is one such file for each kernel series; a series whose block layer has
 * this form, too, is a symbolic link to this folder.  All others are written for the
 * newest one: functions that only an older kernel lacks are in its file, and not here.
 */
#ifndef SUTRO_BLK_H
#define SUTRO_BLK_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>

#include "elevator.h"
#include "blk.h"
#include "blk-cgroup.h"
#include "blk-mq.h"
#include "blk-mq-sched.h"
#include "blk-wbt.h"

/* sutro-iosched.c */
int sutro_start(struct request_queue *q, struct elevator_queue *eq);

/* sutro-flush.c */
void sutro_flush_after(struct request *rq);

/* An rq_end_io_fn, called when the flush after a write with REQ_FUA has completed. */
static inline enum rq_end_io_ret
sutro_flush_end_io(struct request *rq, blk_status_t error,
		   const struct io_comp_batch *iob)
{
	sutro_flush_after(rq);
	return RQ_END_IO_FREE;
}

/*
 * elevator_mq_ops.init_sched.  The queue is frozen, and reclaim kept from
 * waiting for it; q->elevator_lock is held.
 */
static inline int sutro_init_sched(struct request_queue *q,
				   struct elevator_queue *eq)
{
	/* Writeback leaves a quarter of the slots to tasks that wait. */
	q->async_depth = max(1U, 3 * q->nr_requests / 4);
	return sutro_start(q, eq);
}

/*
 * elevator_mq_ops.depth_updated: nr_requests or async_depth was written.  The
 * queue is frozen.
 */
static inline void sutro_depth_updated(struct request_queue *q)
{
	blk_mq_set_min_shallow_depth(q, 1);
}

/* How many slots may asynchronous requests have?  Administrators may set it. */
static inline unsigned int sutro_async_depth(struct request_queue *q)
{
	return q->async_depth;
}

/*
 * The flags without which a request goes past the elevator (sutro-direct.c), on a hardware
 * queue or tag set with these flags; none if it cannot.  The block layer does not divide
 * driver tags among queues that share them where one has an elevator.
 */
static inline req_flags_t sutro_direct_flags(unsigned long flags)
{
#ifdef BLK_MQ_SCHED_BYPASS
	if (!(flags & BLK_MQ_F_TAG_QUEUE_SHARED))
		return RQF_SCHED_TAGS;
#endif
	return 0;
}

/* Does the block layer count requests that are no reads, writes or discards? */
static inline bool sutro_counts_passthrough(struct request_queue *q)
{
	return blk_queue_passthrough_stat(q);
}

static inline void sutro_disable_wbt(struct request_queue *q)
{
	blk_queue_flag_set(QUEUE_FLAG_DISABLE_WBT_DEF, q);
	wbt_disable_default(q->disk);
}

static inline void sutro_enable_wbt(struct request_queue *q)
{
	blk_queue_flag_clear(QUEUE_FLAG_DISABLE_WBT_DEF, q);
	wbt_enable_default(q->disk);
}

/*
 * Files in debugfs live a little longer than the elevator: a reader keeps it from
 * changing, and checks which one it is.
 */
static inline void sutro_hold_elevator(struct request_queue *q)
{
	mutex_lock(&q->elevator_lock);
}

static inline void sutro_release_elevator(struct request_queue *q)
{
	mutex_unlock(&q->elevator_lock);
}

#endif /* SUTRO_BLK_H */
