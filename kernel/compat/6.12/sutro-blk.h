/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: the block layer, where its form changed between kernels.
 *
 * There is one such file for each kernel series.  All others are written for the
 * newest one: the first half of this file has what Linux 6.12 lacks of that.
 */
#ifndef SUTRO_BLK_H
#define SUTRO_BLK_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/sched/mm.h>

#include "elevator.h"
#include "blk.h"
#include "blk-cgroup.h"
#include "blk-mq.h"
#include "blk-mq-sched.h"
#include "blk-wbt.h"

static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}

static inline bool blk_queue_rot(struct request_queue *q)
{
	return !blk_queue_nonrot(q);
}

static inline void blk_mq_set_min_shallow_depth(struct request_queue *q,
						unsigned int depth)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags,
						depth);
}

/* Not exported; blkg_conf_prep() calls it. */
#define blkg_conf_open_bdev(ctx) ((void)(ctx), 0)

/* blkg_conf_exit() does the work of both of these, so nothing comes between. */
static inline void blkg_conf_unprep(struct blkg_conf_ctx *ctx)
{
}

static inline void blkg_conf_close_bdev(struct blkg_conf_ctx *ctx)
{
	blkg_conf_exit(ctx);
}

/* sutro-iosched.c */
int sutro_start(struct request_queue *q, struct elevator_queue *eq);

/* sutro-flush.c */
void sutro_flush_after(struct request *rq);

/* An rq_end_io_fn: the flush that follows a write with REQ_FUA is over. */
static inline enum rq_end_io_ret sutro_flush_end_io(struct request *rq,
						    blk_status_t error)
{
	sutro_flush_after(rq);
	return RQ_END_IO_FREE;
}

/*
 * elevator_mq_ops.init_sched.  The queue is frozen, and nothing but we keep
 * reclaim from waiting for it; q->sysfs_lock is held.
 */
static inline int sutro_init_sched(struct request_queue *q,
				   struct elevator_type *type)
{
	unsigned int noio = memalloc_noio_save();
	struct elevator_queue *eq = elevator_alloc(q, type);
	int ret = eq ? sutro_start(q, eq) : -ENOMEM;

	if (eq && ret)
		kobject_put(&eq->kobj);
	memalloc_noio_restore(noio);
	return ret;
}

/*
 * elevator_mq_ops.depth_updated, once for each hardware queue: nr_requests was
 * written.  The queue is frozen.
 */
static inline void sutro_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	blk_mq_set_min_shallow_depth(hctx->queue, 1);
}

/* Writeback leaves a quarter of the slots to tasks that wait. */
static inline unsigned int sutro_async_depth(struct request_queue *q)
{
	return max(1U, 3 * (unsigned int)q->nr_requests / 4);
}

/*
 * The flags without which a request goes past the elevator (sutro-direct.c), on a hardware
 * queue or tag set with these flags.  The block layer does not divide driver tags
 * among queues that share them where one has an elevator.
 */
static inline req_flags_t sutro_direct_flags(unsigned long flags)
{
#ifdef BLK_MQ_SCHED_BYPASS
	if (!(flags & BLK_MQ_F_TAG_QUEUE_SHARED))
		return RQF_USE_SCHED | RQF_SCHED_TAGS;
#endif
	return RQF_USE_SCHED;
}

/* Does the block layer count requests that are no reads, writes or discards? */
static inline bool sutro_counts_passthrough(struct request_queue *q)
{
	return false;
}

static inline void sutro_disable_wbt(struct request_queue *q)
{
	set_bit(ELEVATOR_FLAG_DISABLE_WBT, &q->elevator->flags);
	wbt_disable_default(q->disk);
}

static inline void sutro_enable_wbt(struct request_queue *q)
{
	clear_bit(ELEVATOR_FLAG_DISABLE_WBT, &q->elevator->flags);
	wbt_enable_default(q->disk);
}

/*
 * Files in debugfs are removed before the elevator goes, and that waits for their
 * readers.
 */
static inline void sutro_hold_elevator(struct request_queue *q)
{
}

static inline void sutro_release_elevator(struct request_queue *q)
{
}

#endif /* SUTRO_BLK_H */
