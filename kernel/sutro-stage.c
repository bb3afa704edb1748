// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: requests just inserted.
 *
 * Submitters do not take sutro_queue.lock: they leave their requests in the stage
 * of their software queue, where bios merge with them, too.  Whoever dispatches
 * next collects all stages.
 *
 *	CPU 0: stage 0: A, B	collect: A, B, C, by stage and there by arrival
 *	CPU 1: stage 1: C
 *
 * No request is left behind: who inserts adds to the stage, then looks whether
 * sutro_queue.staged is set, and sets it if not; who collects clears it, then
 * looks at the stages.  With a full barrier between the two steps of each, either
 * the collector sees the request, or the inserter sees @staged cleared.
 */
#include <trace/events/block.h>

#include "sutro.h"

static struct sutro_stage *sutro_stage_of(struct blk_mq_hw_ctx *hctx,
					  struct blk_mq_ctx *ctx)
{
	struct sutro_hctx *sh = hctx->sched_data;

	return &sh->stages[ctx->index_hw[hctx->type]];
}

/**
 * sutro_stage_insert - let requests wait for the next dispatch
 * @hctx:	the hardware queue that they are mapped to
 * @list:	the requests; empty afterwards
 */
void sutro_stage_insert(struct blk_mq_hw_ctx *hctx, struct list_head *list)
{
	struct sutro_queue *sq = hctx->queue->elevator->elevator_data;
	struct sutro_hctx *sh = hctx->sched_data;
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		struct sutro_stage *stage = sutro_stage_of(hctx, rq->mq_ctx);

		spin_lock(&stage->lock);
		trace_block_rq_insert(rq);
		list_move_tail(&rq->queuelist, &stage->list);
		sbitmap_set_bit(&sh->busy, rq->mq_ctx->index_hw[hctx->type]);
		spin_unlock(&stage->lock);
	}
	/* Pairs with the barrier in sutro_stage_collect(). */
	smp_mb();
	if (!READ_ONCE(sq->staged))
		WRITE_ONCE(sq->staged, true);
}

/**
 * sutro_stage_merge - put a bio into a request of the running CPU's stage
 * @q:		the leaf's queue
 * @bio:	the bio
 * @nr_segs:	its segments
 *
 * Return: true if it has found a request to go into.
 */
bool sutro_stage_merge(struct request_queue *q, struct bio *bio,
		       unsigned int nr_segs)
{
	struct blk_mq_ctx *ctx = blk_mq_get_ctx(q);
	struct blk_mq_hw_ctx *hctx = blk_mq_map_queue(bio->bi_opf, ctx);
	struct sutro_stage *stage = sutro_stage_of(hctx, ctx);
	bool merged;

	if (list_empty_careful(&stage->list))
		return false;
	spin_lock(&stage->lock);
	merged = blk_bio_list_merge(q, &stage->list, bio, nr_segs);
	spin_unlock(&stage->lock);
	return merged;
}

struct sutro_collect {
	struct sutro_hctx *sh;
	struct list_head *list;
};

static bool sutro_collect_stage(struct sbitmap *busy, unsigned int bit,
				void *data)
{
	struct sutro_collect *collect = data;
	struct sutro_stage *stage = &collect->sh->stages[bit];

	spin_lock(&stage->lock);
	list_splice_tail_init(&stage->list, collect->list);
	sbitmap_clear_bit(busy, bit);
	spin_unlock(&stage->lock);
	return true;
}

/**
 * sutro_stage_collect - take all requests out of all stages
 * @sq:		the leaf
 * @list:	where they are added
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_stage_collect(struct sutro_queue *sq, struct list_head *list)
{
	struct sutro_collect collect = { .list = list };
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	lockdep_assert_held(&sq->lock);

	WRITE_ONCE(sq->staged, false);
	/* Pairs with the barrier in sutro_stage_insert(). */
	smp_mb();
	queue_for_each_hw_ctx(sq->q, hctx, i) {
		collect.sh = hctx->sched_data;
		sbitmap_for_each_set(&collect.sh->busy, sutro_collect_stage,
				     &collect);
	}
}

/* The stages of a hardware queue that comes; elevator_mq_ops.init_hctx. */
int sutro_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct sutro_hctx *sh;
	unsigned int i;

	sh = kzalloc_node(sizeof(*sh), GFP_NOIO, hctx->numa_node);
	if (!sh)
		return -ENOMEM;
	sh->stages = kcalloc_node(hctx->nr_ctx, sizeof(*sh->stages), GFP_NOIO,
				  hctx->numa_node);
	if (!sh->stages)
		goto free_sh;
	for (i = 0; i < hctx->nr_ctx; i++) {
		spin_lock_init(&sh->stages[i].lock);
		INIT_LIST_HEAD(&sh->stages[i].list);
	}
	if (sbitmap_init_node(&sh->busy, hctx->nr_ctx, ilog2(8), GFP_NOIO,
			      hctx->numa_node, false, false))
		goto free_stages;

	hctx->sched_data = sh;
	return 0;

free_stages:
	kfree(sh->stages);
free_sh:
	kfree(sh);
	return -ENOMEM;
}

/* ... and of one that goes; elevator_mq_ops.exit_hctx. */
void sutro_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct sutro_hctx *sh = hctx->sched_data;

	sbitmap_free(&sh->busy);
	kfree(sh->stages);
	kfree(sh);
}
