// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: requests that complete when a task polls for them.
 *
 * The driver has no interrupt for requests with REQ_POLLED.  They complete when a task looks at
 * their hardware queue, most often the one that sent them.  If that is stopped, or does not look,
 * they stay at the device for the driver's timeout, 30 s as a rule.  The elevator lets requests
 * of other groups wait for those at the device, and so for that task.
 *
 *	a sends 32 polled reads, and is stopped.  They are all that the device should have, and
 *	b's read waits.  After two jiffies at most the reads of a complete, and b's read is sent.
 *
 * So while requests wait and polled ones are at the device, a worker polls in the place of their
 * tasks, once a jiffy.  As bio_poll() it only needs a reference to the queue.  Where a task polls
 * without a pause, the worker finds what has completed since.
 */
#include "sutro-service.h"

#define SUTRO_POLLED_JIFFIES 1

/**
 * sutro_polled_waits - requests wait in the elevator
 * @sq:		the leaf
 *
 * Context: process, or with sutro_queue.lock held.
 */
void sutro_polled_waits(struct sutro_queue *sq)
{
	if (atomic_read(&sq->polled) && !delayed_work_pending(&sq->polled_work))
		kblockd_mod_delayed_work_on(WORK_CPU_UNBOUND, &sq->polled_work,
					    SUTRO_POLLED_JIFFIES);
}

/**
 * sutro_polled_look - let polled requests complete
 * @work:	&sutro_queue.polled_work
 */
void sutro_polled_look(struct work_struct *work)
{
	struct sutro_queue *sq = container_of(to_delayed_work(work),
					      struct sutro_queue, polled_work);
	struct request_queue *q = sq->q;
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	/* In a frozen queue without requests there is nothing to poll for. */
	if (!percpu_ref_tryget(&q->q_usage_counter))
		return;
	queue_for_each_hw_ctx(q, hctx, i)
		if (hctx->type == HCTX_TYPE_POLL && q->mq_ops->poll)
			q->mq_ops->poll(hctx, NULL);
	/* The next dispatch does this, if there is one. */
	if (READ_ONCE(sq->core.queued))
		sutro_polled_waits(sq);
	percpu_ref_put(&q->q_usage_counter);
}
