// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: requests just inserted.
 *
 * Submitters do not take sutro_queue.lock: they leave their requests in the stage
 * of their CPU, where bios merge with them, too.  A stage that gets its first
 * request is put on a list without a lock, sutro_queue.busy.  The next
 * dispatcher takes that list and collects these stages: the cost depends on the number
 * of CPUs that inserted something, not on the number of all CPUs.
 *
 *	CPU 0: stage 0: A, B	busy: 0, 1	collect: A, B, C, by stage and there
 *	CPU 1: stage 1: C			by arrival
 *
 * No request is left behind.  A stage is marked busy, and put on the list, under its
 * lock and together with its first request; it is unmarked under its lock and
 * together with the removal of all.  So a request in a stage means that the stage is
 * on sutro_queue.busy, or that a collector has taken it from there and will get the
 * stage's lock.  A stage may be marked anew while a collector still walks along the old
 * list: it reads the next entry before it unmarks a stage.
 *
 * No request waits for a dispatch that does not come: a CPU that has inserted one runs
 * the queue, and sutro_has_work() decides whether it dispatches.  If the CPU sees an
 * empty list, although its stage was put there before (by itself, or by the CPU that
 * had the stage's lock before), then a collector has taken the list with that stage:
 * llist_del_all() read from llist_add(), which is an acquire of a release.  The
 * collector did not have the stage's lock yet, for the stage was still marked, and
 * will find the request.  A collector that is no dispatcher (sutro_collect()) runs the queue
 * afterwards.
 */
#include <trace/events/block.h>

#include "sutro-arrival.h"

/**
 * sutro_stages_init - make a leaf's stages
 * @sq:		the leaf
 *
 * Return: 0 or -ENOMEM.
 */
int sutro_stages_init(struct sutro_queue *sq)
{
	unsigned int cpu;

	sq->stages = kvcalloc_node(nr_cpu_ids, sizeof(*sq->stages), GFP_NOIO,
				   sq->q->node);
	if (!sq->stages)
		return -ENOMEM;
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		spin_lock_init(&sq->stages[cpu].lock);
		INIT_LIST_HEAD(&sq->stages[cpu].list);
	}
	init_llist_head(&sq->busy);
	return 0;
}

/* Free the stages, which are empty. */
void sutro_stages_exit(struct sutro_queue *sq)
{
	kvfree(sq->stages);
}

/**
 * sutro_stage_insert - let requests wait for the next dispatch
 * @sq:		the leaf
 * @list:	the requests, usually of one CPU; empty afterwards
 */
void sutro_stage_insert(struct sutro_queue *sq, struct list_head *list)
{
	struct request *rq = list_first_entry(list, struct request, queuelist);
	struct sutro_stage *stage = &sq->stages[rq->mq_ctx->cpu];

	if (trace_block_rq_insert_enabled())
		list_for_each_entry(rq, list, queuelist)
			trace_block_rq_insert(rq);

	spin_lock(&stage->lock);
	list_splice_tail_init(list, &stage->list);
	if (!stage->busy) {
		stage->busy = true;
		llist_add(&stage->node, &sq->busy);
	}
	spin_unlock(&stage->lock);
}

/**
 * sutro_stage_merge - put a bio into a request of the running CPU's stage
 * @sq:		the leaf
 * @bio:	the bio
 * @nr_segs:	its segments
 *
 * Return: true if it has found a request to go into.
 */
bool sutro_stage_merge(struct sutro_queue *sq, struct bio *bio,
		       unsigned int nr_segs)
{
	struct sutro_stage *stage = &sq->stages[raw_smp_processor_id()];
	bool merged;

	spin_lock(&stage->lock);
	merged = blk_bio_list_merge(sq->q, &stage->list, bio, nr_segs);
	spin_unlock(&stage->lock);
	return merged;
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
	struct llist_node *busy = llist_del_all(&sq->busy);
	struct sutro_stage *stage;

	lockdep_assert_held(&sq->lock);

	/* Begin with the stage that became busy first. */
	if (busy && busy->next)
		busy = llist_reverse_order(busy);
	while (busy) {
		stage = llist_entry(busy, struct sutro_stage, node);
		busy = busy->next;
		spin_lock(&stage->lock);
		stage->busy = false;
		list_splice_tail_init(&stage->list, list);
		spin_unlock(&stage->lock);
	}
}
