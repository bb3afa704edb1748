// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: between blk-mq and the algorithm.
 *
 * A request's way:
 *
 *  insert	into the stage of its CPU, under the stage's lock only; bios merge
 *		there, too; unless it goes past the elevator (sutro-direct.c)
 *  drain	with sutro_queue.lock held: from the stages to the groups of their
 *		owners, and merge with requests there; or past them (sutro-pass.c)
 *  dispatch	the algorithm picks a group, the group a request
 *  complete	in interrupt context: its cost is added to a note of its group,
 *		under done_lock; no other lock, nothing is decided
 *  fold	at the next dispatch: notes go to the algorithm
 *
 * So sutro_queue.lock is taken in process context only, and the algorithm sees
 * one caller at a time.  A request in a group, and an active group, hold a
 * reference to their blkg; so do a note, and a group that io.sutro.active lists.
 *
 * When the algorithm has to wait for a completion, @waiting makes completions run the
 * queue.  It is set before the notes are looked at for the last time, under done_lock;
 * a completion adds its note under that lock before it looks at @waiting.  Either the
 * dispatcher sees the note or the completion sees @waiting: no wake-up is lost.
 * Documentation/block/sutro-locking.rst has all such arguments.
 *
 * Several hardware queues.  There is one scheduler for all of them: whichever is
 * run may be given requests of any, and blk-mq sorts them.  So one run is
 * enough after a completion or for the timer; with QUEUE_FLAG_SQ_SCHED,
 * blk_mq_run_hw_queues() runs that of the running CPU, and of the others only those
 * with requests that bypass the scheduler.
 */
#include <linux/module.h>

#include "blk-stat.h"
#include "sutro-arrival.h"
#include "sutro-cgroup.h"
#include "sutro-completion.h"
#include "sutro-report.h"
#include "sutro-requests.h"
#include "sutro-service.h"

/*
 * A slice long enough that the seek to the next group's stream (some 10 ms)
 * costs a tenth of it; on other devices, as long as BFQ waits without measurable harm,
 * and as a sleeping group may be owed.
 */
#define SUTRO_ROT_SLICE_NS (100 * NSEC_PER_MSEC)
#define SUTRO_SLICE_NS (4 * NSEC_PER_MSEC)
/* As in CFQ and BFQ. On devices without seeks, waiting is only worth while for exact shares. */
#define SUTRO_ROT_IDLE_NS (8 * NSEC_PER_MSEC)
#define SUTRO_IDLE_NS (1 * NSEC_PER_MSEC)

/*
 * Is a dispatch useful?  Not for requests of other CPUs while another CPU dispatches: that
 * CPU tests again before it returns, and finds them.  A second dispatch would find nothing,
 * and blk-mq then waits for 3 ms, which costs more than the lock.
 */
static bool sutro_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct sutro_queue *sq = hctx->queue->elevator->elevator_data;

	if (sutro_stage_has_any(sq))
		return true;
	if (!sutro_has_news(sq) && !READ_ONCE(sq->core.queued) &&
	    list_empty_careful(&sq->passing))
		return false;
	/* Pairs with the barrier in sutro_dispatch_request(). */
	smp_mb();
	return !READ_ONCE(sq->dispatching);
}

static enum hrtimer_restart sutro_timer(struct hrtimer *timer)
{
	struct sutro_queue *sq = container_of(timer, struct sutro_queue, timer);

	WRITE_ONCE(sq->fired, true);
	blk_mq_run_hw_queues(sq->q, true);
	return HRTIMER_NORESTART;
}

/*
 * Requests that the driver returned are queued ahead of others of their kind.  Data that
 * are written after a flush arrive here for the first time, and are queued like others.
 */
static void sutro_insert_head(struct sutro_queue *sq, struct list_head *list)
{
	u64 now_ns = ktime_get_ns();
	struct request *rq;

	spin_lock(&sq->lock);
	sutro_fold(sq);
	/* From the last to the first, each before the one added last. */
	while (!list_empty(list)) {
		struct sutro_blkg *sblkg;
		bool first;

		rq = list_last_entry(list, struct request, queuelist);
		list_del_init(&rq->queuelist);
		if (sutro_rq_flushes(rq))
			sutro_flush_end(sq, rq, now_ns);
		first = !sutro_rq_blkg(rq);
		if (!first)
			sutro_direct_sends(sq, rq, -(s64)blk_rq_bytes(rq));
		sblkg = sutro_attach(sq, rq);
		if (first && sutro_op_is_prompt(rq->cmd_flags))
			sutro_requests_add(sq, &sblkg->requests, rq, now_ns);
		else
			sutro_requests_add_head(sq, &sblkg->requests, rq);
		sutro_queue_one(sq, sblkg, false, now_ns);
	}
	spin_unlock(&sq->lock);
}

static void sutro_insert_requests(struct blk_mq_hw_ctx *hctx,
				  struct list_head *list, blk_insert_t flags)
{
	struct sutro_queue *sq = hctx->queue->elevator->elevator_data;
	bool at_head = flags & BLK_MQ_INSERT_AT_HEAD;

	sutro_direct_insert(hctx, list, at_head);
	if (list_empty(list))
		return;
	if (at_head)
		sutro_insert_head(sq, list);
	else
		sutro_stage_insert(sq, list);
}

static void sutro_prepare_request(struct request *rq)
{
	sutro_rq_init(rq, sutro_current_submitter());
	if (rq->cmd_flags & REQ_PREFLUSH && blk_queue_write_cache(rq->q))
		sutro_flush_begin(rq->q->elevator->elevator_data, rq);
}

static void sutro_completed_request(struct request *rq, u64 now_ns)
{
	struct sutro_queue *sq = rq->q->elevator->elevator_data;
	struct sutro_blkg *sblkg = sutro_rq_blkg(rq);

	/*
	 * Requests without a group, such as flushes of one that did not use this leaf
	 * before.
	 */
	if (!sblkg) {
		sutro_note_counted(sq, rq, now_ns);
		return;
	}

	if (sutro_rq_flushes(rq)) {
		sutro_note_counted(sq, rq, now_ns);
		sutro_flush_end(sq, rq, now_ns);
	} else {
		sutro_flush_written(sq, sblkg, rq);
		sutro_note_completed(sq, sblkg, rq, now_ns);
	}
	sutro_wake_dispatcher(sq);
}

/*
 * The driver returns a request, which will be inserted again.  A request that the driver
 * has prepared is not inserted again, and completes once: it still counts as at the device.
 */
static void sutro_requeue_request(struct request *rq)
{
	struct sutro_queue *sq = rq->q->elevator->elevator_data;
	struct sutro_blkg *sblkg = sutro_rq_blkg(rq);

	if (sblkg && !(rq->rq_flags & RQF_DONTPREP))
		sutro_note_requeued(sq, sblkg, rq);
}

static void sutro_finish_request(struct request *rq)
{
	struct sutro_queue *sq = rq->q->elevator->elevator_data;
	struct sutro_blkg *sblkg = sutro_rq_blkg(rq);

	if (!sblkg)
		return;
	if (sutro_rq_flushes(rq)) {
		sutro_flush_cancel(sq, rq);
		sutro_wake_dispatcher(sq);
		return;
	}
	sutro_rq_set_blkg(rq, NULL);
	sutro_slot_freed(sq, sblkg);
	blkg_put(sutro_to_blkg(sblkg));
}

static void sutro_init_tunables(struct sutro_tunables *tunables,
				bool rotational)
{
	tunables->rotational = rotational;
	tunables->slice_ns = rotational ? SUTRO_ROT_SLICE_NS : SUTRO_SLICE_NS;
	tunables->group_idle_ns = rotational ? SUTRO_ROT_IDLE_NS
					     : SUTRO_IDLE_NS;
	tunables->protect = SUTRO_PROTECT_DFL;
}

/**
 * sutro_start - a queue gets the elevator
 * @q:		the queue, frozen
 * @eq:		becomes its elevator
 *
 * Return: 0 or a negative error; then @q has no elevator.
 * Context: may sleep; reclaim must not wait for @q.
 */
int sutro_start(struct request_queue *q, struct elevator_queue *eq)
{
	struct sutro_queue *sq;
	int ret;

	sq = kzalloc_node(sizeof(*sq), GFP_NOIO, q->node);
	if (!sq)
		return -ENOMEM;

	sq->q = q;
	spin_lock_init(&sq->lock);
	spin_lock_init(&sq->done_lock);
	spin_lock_init(&sq->turn_lock);
	INIT_LIST_HEAD(&sq->notes);
	INIT_LIST_HEAD(&sq->prompt);
	INIT_LIST_HEAD(&sq->passing);
	INIT_LIST_HEAD(&sq->members);
	sutro_lease_init(&sq->lease);
	ret = sutro_stages_init(sq);
	if (ret)
		goto free_sq;
	ret = sutro_pool_init(&sq->pool, q->node);
	if (ret)
		goto exit_stages;
	hrtimer_setup(&sq->timer, sutro_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL);
	INIT_DELAYED_WORK(&sq->direct_work, sutro_direct_tick);
	INIT_DELAYED_WORK(&sq->polled_work, sutro_polled_look);
	sq->direct_allowed = sutro_direct_flags(0);
	sutro_device_init(&sq->device, blk_queue_rot(q));
	sutro_probe_init(&sq->probe, sutro_driver_depth(q));
	sutro_init_tunables(&sq->core.tunables, sq->device.rotational);
	sq->discipline = sq->device.rotational ? SUTRO_DEADLINE : SUTRO_FIFO;
	sutro_probe_tunables(&sq->probe, &sq->device, &sq->core.tunables);
	eq->elevator_data = sq;
	spin_lock_irq(&q->queue_lock);
	q->elevator = eq;
	spin_unlock_irq(&q->queue_lock);

	ret = blkcg_activate_policy(q->disk, &sutro_policy);
	if (ret)
		goto exit_pool;
	sutro_core_init(&sq->core, &sutro_bio_blkg(q, NULL)->group);
	sq->core.leaves_of = sutro_leaves_of;

	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	blk_mq_set_min_shallow_depth(q, 1);
	blk_stat_enable_accounting(q);
	/* Stays set after us: iocost sets the same flag, and flags have no count. */
	blk_queue_flag_set(QUEUE_FLAG_RQ_ALLOC_TIME, q);
	/* Two throttles of writeback would fight each other. */
	sutro_disable_wbt(q);
	return 0;

exit_pool:
	spin_lock_irq(&q->queue_lock);
	q->elevator = NULL;
	spin_unlock_irq(&q->queue_lock);
	sutro_pool_exit(&sq->pool);
exit_stages:
	sutro_stages_exit(sq);
free_sq:
	kfree(sq);
	return ret;
}

static void sutro_exit_sched(struct elevator_queue *eq)
{
	struct sutro_queue *sq = eq->elevator_data;

	/* Cgroups may still be written to and removed; see sutro_note(). */
	spin_lock_irq(&sq->done_lock);
	sutro_flush_forget(sq, NULL);
	sutro_direct_end(sq);
	sq->exiting = true;
	spin_unlock_irq(&sq->done_lock);
	hrtimer_cancel(&sq->timer);
	cancel_delayed_work_sync(&sq->direct_work);
	cancel_delayed_work_sync(&sq->polled_work);

	/* No request is left, and others are not held back for any group. */
	spin_lock(&sq->lock);
	sutro_fold(sq);
	sutro_core_settle(&sq->core);
	sutro_forget(sq, ktime_get_ns() + SUTRO_CORE_EVER_NS);
	WARN_ON_ONCE(sq->core.queued || sq->core.in_flight ||
		     sq->core.nr_active);
	spin_unlock(&sq->lock);

	blk_stat_disable_accounting(sq->q);
	sutro_enable_wbt(sq->q);

	blkcg_deactivate_policy(sq->q->disk, &sutro_policy);
	sutro_pool_exit(&sq->pool);
	sutro_stages_exit(sq);
	kfree(sq);
}

static struct elevator_type sutro_iosched = {
	.ops = {
		.init_sched		= sutro_init_sched,
		.exit_sched		= sutro_exit_sched,
		.depth_updated		= sutro_depth_updated,
		.bio_merge		= sutro_bio_merge,
		.allow_merge		= sutro_allow_merge,
		.request_merge		= sutro_request_merge,
		.request_merged		= sutro_request_merged,
		.requests_merged	= sutro_requests_merged,
		.former_request		= elv_rb_former_request,
		.next_request		= elv_rb_latter_request,
		.limit_depth		= sutro_limit_depth,
		.prepare_request	= sutro_prepare_request,
		.finish_request		= sutro_finish_request,
		.insert_requests	= sutro_insert_requests,
		.dispatch_request	= sutro_dispatch_request,
		.has_work		= sutro_has_work,
		.completed_request	= sutro_completed_request,
		.requeue_request	= sutro_requeue_request,
	},
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = sutro_debugfs_attrs,
#endif
	.elevator_attrs	= sutro_attrs,
	.elevator_name	= "sutro",
	.elevator_owner	= THIS_MODULE,
};

static int __init sutro_init(void)
{
	int ret;

	ret = sutro_cgroup_register();
	if (ret)
		return ret;
	ret = elv_register(&sutro_iosched);
	if (ret)
		sutro_cgroup_unregister();
	return ret;
}

static void __exit sutro_exit(void)
{
	elv_unregister(&sutro_iosched);
	sutro_cgroup_unregister();
}

module_init(sutro_init);
module_exit(sutro_exit);

MODULE_DESCRIPTION("Sutro: proportional device time for cgroups");
MODULE_LICENSE("GPL");
/* sutrod compares it with its own. */
MODULE_VERSION("0.1.0");
MODULE_ALIAS("sutro-iosched");
