// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the requests of one group.
 *
 * Which group sends next is decided in sutro-core.c; which of its requests, here.
 * Requests that somebody waits for (sync: reads, and writes marked so) are kept
 * apart from the others (async: mostly writeback).  Sync ones are served in
 * batches of 32, async ones of 16, and a kind without the other is served alone.
 *
 * On a rotational leaf a batch is served in one direction of rising sectors,
 * from where the last request of the group ended, and starts again at the lowest
 * sector; a request that has waited too long is served first.  Where nothing
 * moves, requests are served as they came.
 *
 *	sync requests at 10, 90, 50; the last one ended at 40: 50, 90, 10.
 *
 * Context: all functions are called with sutro_queue.lock held.
 */
#include "sutro.h"

#define SUTRO_SYNC_BATCH 32
#define SUTRO_ASYNC_BATCH 16

/* As mq-deadline's read_expire and write_expire. */
#define SUTRO_SYNC_EXPIRE_NS (500 * NSEC_PER_MSEC)
#define SUTRO_ASYNC_EXPIRE_NS (5 * NSEC_PER_SEC)

/* Farther than this from the last request is a seek: 1 MiB. */
#define SUTRO_FAR_SECTORS 2048

/* rq->fifo_time of requests in @head, which are in no other list. */
#define SUTRO_IN_HEAD U64_MAX

void sutro_requests_init(struct sutro_requests *requests)
{
	int sync;

	INIT_LIST_HEAD(&requests->head);
	for (sync = 0; sync < 2; sync++) {
		requests->list[sync].sorted = RB_ROOT;
		INIT_LIST_HEAD(&requests->list[sync].fifo);
	}
}

static struct sutro_list *sutro_list_of(struct sutro_requests *requests,
					struct request *rq)
{
	return &requests->list[op_is_sync(rq->cmd_flags)];
}

/**
 * sutro_requests_far - is an arriving request far from the one before it?
 * @requests: the group's requests
 * @rq:	the one that arrives
 */
bool sutro_requests_far(struct sutro_requests *requests, struct request *rq)
{
	sector_t last = requests->arrival_position, pos = blk_rq_pos(rq);

	requests->arrival_position = pos + blk_rq_sectors(rq);
	return (pos > last ? pos - last : last - pos) > SUTRO_FAR_SECTORS;
}

/**
 * sutro_requests_add - let a request wait
 * @requests: the group's requests
 * @rq:	the request
 * @now_ns:	the time
 */
void sutro_requests_add(struct sutro_requests *requests, struct request *rq,
			u64 now_ns)
{
	struct sutro_list *list = sutro_list_of(requests, rq);

	rq->fifo_time = now_ns + (op_is_sync(rq->cmd_flags)
					  ? SUTRO_SYNC_EXPIRE_NS
					  : SUTRO_ASYNC_EXPIRE_NS);
	elv_rb_add(&list->sorted, rq);
	list_add_tail(&rq->queuelist, &list->fifo);
	if (rq_mergeable(rq)) {
		elv_rqhash_add(rq->q, rq);
		if (!rq->q->last_merge)
			rq->q->last_merge = rq;
	}
}

/**
 * sutro_requests_add_head - let a request wait that comes back from the driver
 * @requests: the group's requests
 * @rq:	the request
 */
void sutro_requests_add_head(struct sutro_requests *requests,
			     struct request *rq)
{
	rq->fifo_time = SUTRO_IN_HEAD;
	list_add(&rq->queuelist, &requests->head);
}

/**
 * sutro_requests_del - a request no longer waits
 * @requests: the group's requests
 * @rq:	the request
 */
void sutro_requests_del(struct sutro_requests *requests, struct request *rq)
{
	list_del_init(&rq->queuelist);
	if (rq->fifo_time == SUTRO_IN_HEAD)
		return;
	elv_rb_del(&sutro_list_of(requests, rq)->sorted, rq);
	elv_rqhash_del(rq->q, rq);
	if (rq->q->last_merge == rq)
		rq->q->last_merge = NULL;
}

/* The first request at or behind @position, or the lowest of all. */
static struct request *sutro_list_from(struct sutro_list *list,
				       sector_t position)
{
	struct rb_node *node = list->sorted.rb_node;
	struct request *best = NULL;

	while (node) {
		struct request *rq = rb_entry_rq(node);

		if (blk_rq_pos(rq) >= position) {
			best = rq;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best ?: rb_entry_rq(rb_first(&list->sorted));
}

/* Which kind is served now?  A batch goes on beyond its end when alone. */
static struct sutro_list *sutro_requests_batch(struct sutro_requests *requests)
{
	bool sync = requests->batch_sync;

	if (list_empty(&requests->list[sync].fifo) ||
	    (!requests->batch_left &&
	     !list_empty(&requests->list[!sync].fifo))) {
		sync = !sync;
		requests->batch_sync = sync;
		requests->batch_left = sync ? SUTRO_SYNC_BATCH
					    : SUTRO_ASYNC_BATCH;
	}
	if (requests->batch_left)
		requests->batch_left--;
	return &requests->list[sync];
}

/**
 * sutro_requests_next - take out the request to be sent next
 * @requests: the group's requests, at least one
 * @rotational: distance matters
 * @now_ns:	the time
 *
 * Return: the request.
 */
struct request *sutro_requests_next(struct sutro_requests *requests,
				    bool rotational, u64 now_ns)
{
	struct request *rq;

	if (!list_empty(&requests->head)) {
		rq = rq_entry_fifo(requests->head.next);
	} else {
		struct sutro_list *list = sutro_requests_batch(requests);

		rq = rq_entry_fifo(list->fifo.next);
		if (rotational && rq->fifo_time > now_ns)
			rq = sutro_list_from(list, requests->position);
	}
	sutro_requests_del(requests, rq);
	requests->position = blk_rq_pos(rq) + blk_rq_sectors(rq);
	return rq;
}

/**
 * sutro_requests_find - a waiting request that starts where a bio ends
 * @requests: the group's requests
 * @bio:	the bio
 *
 * Return: the request or NULL.
 */
struct request *sutro_requests_find(struct sutro_requests *requests,
				    struct bio *bio)
{
	return elv_rb_find(&requests->list[op_is_sync(bio->bi_opf)].sorted,
			   bio_end_sector(bio));
}

/**
 * sutro_requests_moved - a waiting request now starts earlier
 * @requests: the group's requests
 * @rq:	the request
 */
void sutro_requests_moved(struct sutro_requests *requests, struct request *rq)
{
	struct rb_root *sorted = &sutro_list_of(requests, rq)->sorted;

	elv_rb_del(sorted, rq);
	elv_rb_add(sorted, rq);
}
