// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the requests of one group.
 *
 * Which group sends next is decided in sutro-select.c; which of its requests, here.
 *
 * 1. Special requests
 *
 * Requests that the driver gave back go first, then those that others may wait on
 * (REQ_META, REQ_SWAP): a journal's, or those of a page that a task needs to get memory.
 * The latter do not even wait for their group's turn, as long as the group has not
 * been served more than half a slice in advance: they wait in sutro_queue.prompt,
 * by arrival, and are charged to their group, which pays for them with its next
 * turns.  So a group that marks all its requests gets no more than its share; from half
 * a slice in advance on, its prompt requests only go before its others.  Journals that
 * are written on behalf of a group (sutro-flush.c) are sent whatever the group was
 * served, as tasks of other groups may wait for the same commit.
 *
 * Flushes and passthrough requests never come here: the block layer sends them
 * past the elevator.  The data part of a write that needs a flush does, when the
 * flush is over, like any write, and is never merged.  Discards, write zeroes, zone
 * resets and the like wait among writes, and are charged as a kind of their own.
 * Zoned writes are put into order by the block layer above.
 *
 * 2. ioprio
 *
 * rt goes before be, be before idle.  But a class that has requests waiting is
 * served at least one each 200 ms, whatever the others do, for a task of a higher
 * class may wait for a lock that it holds.  Within rt and be, levels share device
 * time 8 : 7 : ... : 1 (see sutro-lanes.c).
 *
 *	Levels 0 and 7 of be, both with more requests than are served: 8 ninths of
 *	the group's device time for level 0.
 *
 * 3. Sync and async
 *
 * Requests that a task waits for (sync: reads, and writes marked so) are kept
 * apart from the others (async: mostly writeback).  Sync ones are served in
 * batches of 32, async ones of 16, and a kind without the other is served alone.
 *
 * 4. How many at the device
 *
 * The device does not keep this order.  While requests of different ioprio or of
 * different lanes take turns, the group sends no more than a group with slices, or
 * than one among others (depth_ns), so that the rest waits here.
 *
 * 5. Disciplines
 *
 * fifo		as they came, each ioprio level.
 *
 * deadline	in one direction of rising sectors, from where the last request of
 *		the group ended, and again from the lowest sector; a request that has
 *		waited too long is served first.  Each ioprio level by itself.
 *
 *		Sync requests at 10, 90, 50; the last one ended at 40: 50, 90, 10.
 *
 * process	turns of the submitters (see sutro-lanes.c); in its turn each is
 *		served as with deadline if the leaf is rotational, else as with fifo.
 *
 * The discipline is looked at when a request comes and when one is chosen, and may
 * change at any time: requests in a lane of the old discipline have their turn there.
 *
 * 6. Without rings
 *
 * A group has rings while it is active (see sutro-lanes.c).  If there was no memory
 * for them, its requests wait among the prompt ones, and are sent as they came.
 *
 * Context: all functions are called with sutro_queue.lock held.
 */
#include <linux/ioprio.h>

#include "sutro-requests.h"

#define SUTRO_SYNC_BATCH 32
#define SUTRO_ASYNC_BATCH 16

/* A lower ioprio class is served after this time: 5 requests a second, of at least 100. */
#define SUTRO_PRIO_AGE_NS (200 * NSEC_PER_MSEC)

/*
 * Length of a turn of a lane of weight 1, and four times that at the default ioprio level:
 * long enough to pay for the seek to a stream, or for some requests of a fast device.
 */
#define SUTRO_ROT_QUANTUM_NS (10 * NSEC_PER_MSEC)
#define SUTRO_QUANTUM_NS (50 * NSEC_PER_USEC)

/* Lanes count as competing for this time after the last change of turn. */
#define SUTRO_MIXED_NS (500 * NSEC_PER_MSEC)

/* Requests of other lanes that are skipped to find one of this lane. */
#define SUTRO_SORTED_LOOK 32

/* A request farther than this from the last one is a seek: 1 MiB. */
#define SUTRO_FAR_SECTORS 2048

void sutro_requests_init(struct sutro_requests *requests)
{
	INIT_LIST_HEAD(&requests->prompt);
	requests->sorted[0] = RB_ROOT;
	requests->sorted[1] = RB_ROOT;
}

/**
 * sutro_requests_leave - the group is no longer active
 * @sq:		the leaf
 * @requests: the group's requests, empty
 */
void sutro_requests_leave(struct sutro_queue *sq,
			  struct sutro_requests *requests)
{
	struct sutro_rings *rings = requests->rings;

	if (!rings)
		return;
	WRITE_ONCE(requests->rings, NULL);
	sutro_rings_put(&sq->pool, rings);
}

/**
 * sutro_prio_of - the ioprio class of a request
 * @rq:	the request
 */
enum sutro_prio sutro_prio_of(struct request *rq)
{
	switch (IOPRIO_PRIO_CLASS(req_get_ioprio(rq))) {
	case IOPRIO_CLASS_RT:
		return SUTRO_PRIO_RT;
	case IOPRIO_CLASS_IDLE:
		return SUTRO_PRIO_IDLE;
	default:
		return SUTRO_PRIO_BE;
	}
}

/**
 * sutro_sorted_of - the tree that a request belongs into
 * @requests: the requests of its group
 * @rq:		the request
 *
 * Return: that of its lane's kind; of its own kind if it has no lane.
 */
struct rb_root *sutro_sorted_of(struct sutro_requests *requests,
				struct request *rq)
{
	struct sutro_lane *lane = sutro_rq_lane(rq);
	bool sync = lane ? lane->ring->sync : op_is_sync(rq->cmd_flags);

	return &requests->sorted[sync];
}

/**
 * sutro_requests_far - is an arriving request far from the one before it?
 * @requests: the group's requests
 * @rq:	the one that arrives
 */
bool sutro_requests_far(struct sutro_requests *requests, struct request *rq)
{
	sector_t last = requests->arrival_position, pos = blk_rq_pos(rq);

	/* A prompt request is served out of order, so others are not compared with it. */
	if (sutro_op_is_prompt(rq->cmd_flags))
		return false;
	requests->arrival_position = pos + blk_rq_sectors(rq);
	return (pos > last ? pos - last : last - pos) > SUTRO_FAR_SECTORS;
}

static bool sutro_prio_waits(struct sutro_rings *rings, int prio)
{
	return rings->of[0][prio].nr || rings->of[1][prio].nr;
}

/* Let a request wait until those before it are sent. */
static void sutro_requests_append(struct list_head *list, struct request *rq)
{
	sutro_rq_set_lane(rq, NULL);
	rq->fifo_time = SUTRO_IN_PROMPT;
	list_add_tail(&rq->queuelist, list);
}

/* Queue a request in its lane. */
static void sutro_requests_line_up(struct sutro_queue *sq,
				   struct sutro_requests *requests,
				   struct request *rq, u64 now_ns)
{
	bool sync = op_is_sync(rq->cmd_flags);
	enum sutro_prio prio = sutro_prio_of(rq);
	struct sutro_rings *rings = requests->rings;
	struct sutro_lane *lane;

	if (!rings) {
		rings = sutro_rings_get(&sq->pool);
		if (!rings) {
			sutro_requests_append(&requests->prompt, rq);
			return;
		}
		/* Pairs with READ_ONCE() in sutro_show_prio(). */
		smp_store_release(&requests->rings, rings);
	}
	lane = sutro_lane_find(&sq->pool, &rings->of[sync][prio], rq,
			       READ_ONCE(sq->discipline));
	if (!sutro_prio_waits(rings, prio))
		rings->prio_ns[prio] = now_ns;
	rq->fifo_time =
		now_ns + (sync ? SUTRO_SYNC_EXPIRE_NS : SUTRO_ASYNC_EXPIRE_NS);
	sutro_lane_add(lane, rq, lane->fifo.prev);
}

/**
 * sutro_requests_add - let a request wait
 * @sq:		the leaf
 * @requests: the group's requests
 * @rq:		the request
 * @now_ns:	the time
 */
void sutro_requests_add(struct sutro_queue *sq, struct sutro_requests *requests,
			struct request *rq, u64 now_ns)
{
	if (sutro_op_is_prompt(rq->cmd_flags))
		sutro_requests_append(&sq->prompt, rq);
	else
		sutro_requests_line_up(sq, requests, rq, now_ns);
	if (rq->rq_flags & RQF_FLUSH_SEQ)
		sq->core.flush_data++;
	elv_rb_add(sutro_sorted_of(requests, rq), rq);
	if (rq_mergeable(rq) && !blk_discard_mergable(rq)) {
		elv_rqhash_add(rq->q, rq);
		if (!rq->q->last_merge)
			rq->q->last_merge = rq;
	}
}

/**
 * sutro_requests_add_head - let a request wait that comes back from the driver
 * @sq:		the leaf
 * @requests: the group's requests
 * @rq:		the request
 */
void sutro_requests_add_head(struct sutro_queue *sq,
			     struct sutro_requests *requests,
			     struct request *rq)
{
	if (rq->rq_flags & RQF_FLUSH_SEQ)
		sq->core.flush_data++;
	sutro_rq_set_lane(rq, NULL);
	rq->fifo_time = SUTRO_IN_HEAD;
	list_add(&rq->queuelist, &requests->prompt);
}

/**
 * sutro_requests_del - a request no longer waits
 * @sq:		the leaf
 * @requests: the group's requests
 * @rq:		the request
 */
void sutro_requests_del(struct sutro_queue *sq, struct sutro_requests *requests,
			struct request *rq)
{
	if (rq->rq_flags & RQF_FLUSH_SEQ)
		sq->core.flush_data--;
	if (rq->fifo_time == SUTRO_IN_HEAD) {
		list_del_init(&rq->queuelist);
		return;
	}
	elv_rb_del(sutro_sorted_of(requests, rq), rq);
	if (sutro_rq_lane(rq))
		sutro_lane_del(&sq->pool, rq);
	else
		list_del_init(&rq->queuelist);
	elv_rqhash_del(rq->q, rq);
	if (rq->q->last_merge == rq)
		rq->q->last_merge = NULL;
}

/* The first request at or behind @position, or the lowest of all. */
static struct rb_node *sutro_sorted_from(struct rb_root *sorted,
					 sector_t position)
{
	struct rb_node *node = sorted->rb_node, *best = NULL;

	while (node) {
		if (blk_rq_pos(rb_entry_rq(node)) >= position) {
			best = node;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best ?: rb_first(sorted);
}

/* The lane's request that is next in the direction of rising sectors. */
static struct request *sutro_lane_nearest(struct sutro_requests *requests,
					  struct sutro_lane *lane)
{
	struct rb_root *sorted = &requests->sorted[lane->ring->sync];
	struct rb_node *node =
		sutro_sorted_from(sorted, requests->rings->position);
	int look;

	for (look = 0; look < SUTRO_SORTED_LOOK; look++) {
		if (sutro_rq_lane(rb_entry_rq(node)) == lane)
			return rb_entry_rq(node);
		node = rb_next(node) ?: rb_first(sorted);
	}
	return rq_entry_fifo(lane->fifo.next);
}

/* The ioprio class to be served now; at least one has requests. */
static enum sutro_prio sutro_rings_prio(struct sutro_rings *rings, u64 now_ns)
{
	int prio, first = SUTRO_PRIOS;

	for (prio = SUTRO_PRIOS - 1; prio >= 0; prio--) {
		if (!sutro_prio_waits(rings, prio))
			continue;
		if (now_ns > rings->prio_ns[prio] + SUTRO_PRIO_AGE_NS)
			return prio;
		first = prio;
	}
	return first;
}

/* Is a sync request served now?  A batch goes on beyond its end if the other kind has none. */
static bool sutro_requests_sync(struct sutro_requests *requests, int prio)
{
	struct sutro_rings *rings = requests->rings;
	bool sync = requests->batch_sync;

	if (!rings->of[sync][prio].nr ||
	    (!requests->batch_left && rings->of[!sync][prio].nr)) {
		sync = !sync;
		requests->batch_sync = sync;
		requests->batch_left = sync ? SUTRO_SYNC_BATCH
					    : SUTRO_ASYNC_BATCH;
	}
	if (requests->batch_left)
		requests->batch_left--;
	return sync;
}

/* A turn as a number: an ioprio class and a lane. */
static u32 sutro_requests_turn_of(enum sutro_prio prio, u64 key)
{
	return key * SUTRO_PRIOS + prio + 1;
}

/**
 * sutro_requests_turns - does a request belong to another turn than the last one?
 * @requests: the group's requests
 * @rq:		the request; the discipline is fifo
 */
bool sutro_requests_turns(struct sutro_requests *requests, struct request *rq)
{
	unsigned int ioprio = req_get_ioprio(rq);
	u32 turn;

	if (requests->alike_valid && ioprio == requests->alike)
		return false;
	turn = sutro_requests_turn_of(sutro_prio_of(rq), sutro_level(rq));
	if (requests->turn != turn)
		return true;
	requests->alike = ioprio;
	requests->alike_valid = true;
	return false;
}

/*
 * Note whether requests that differ in prio or lane, but not only in kind, take
 * turns.
 */
static void sutro_requests_mix(struct sutro_requests *requests,
			       enum sutro_prio prio, u64 key, u64 now_ns)
{
	u32 turn = sutro_requests_turn_of(prio, key);

	if (turn != requests->turn) {
		requests->mixed_until_ns =
			requests->turn ? now_ns + SUTRO_MIXED_NS : 0;
		requests->turn = turn;
		requests->alike_valid = false;
	}
	requests->mixed = now_ns < requests->mixed_until_ns;
}

/* The next request of the rings. */
static struct request *sutro_requests_turn(struct sutro_queue *sq,
					   struct sutro_requests *requests,
					   u64 now_ns)
{
	enum sutro_discipline discipline = READ_ONCE(sq->discipline);
	bool rotational = sq->core.tunables.rotational;
	struct sutro_rings *rings = requests->rings;
	enum sutro_prio prio = sutro_rings_prio(rings, now_ns);
	bool sync = sutro_requests_sync(requests, prio);
	struct sutro_lane *lane;
	struct request *rq;

	rings->prio_ns[prio] = now_ns;
	lane = sutro_ring_turn(&rings->of[sync][prio],
			       rotational ? SUTRO_ROT_QUANTUM_NS
					  : SUTRO_QUANTUM_NS);
	sutro_requests_mix(requests, prio, lane->key, now_ns);
	rq = rq_entry_fifo(lane->fifo.next);
	if (rq->fifo_time > now_ns &&
	    (discipline == SUTRO_DEADLINE ||
	     (discipline == SUTRO_PROCESS && rotational)))
		rq = sutro_lane_nearest(requests, lane);
	rings->position = blk_rq_pos(rq) + blk_rq_sectors(rq);
	return rq;
}

/**
 * sutro_requests_next - take out the request to be sent next
 * @sq:		the leaf
 * @requests: the group's requests, at least one
 * @now_ns:	the time
 *
 * Return: the request, to be given to sutro_lane_charge() at once.
 */
struct request *sutro_requests_next(struct sutro_queue *sq,
				    struct sutro_requests *requests, u64 now_ns)
{
	struct request *rq;

	if (!list_empty(&requests->prompt))
		rq = rq_entry_fifo(requests->prompt.next);
	else
		rq = sutro_requests_turn(sq, requests, now_ns);
	sutro_requests_del(sq, requests, rq);
	return rq;
}

/**
 * sutro_requests_prompt - take out a prompt request, before the turn of its group
 * @sq:		the leaf
 *
 * If a group is half a slice ahead of the others, its prompt requests are moved to its own list,
 * where they wait for its turn.
 *
 * Return: the request, or NULL if there is none.
 */
struct request *sutro_requests_prompt(struct sutro_queue *sq)
{
	u64 most_ns = sq->core.tunables.slice_ns / 2;

	while (!list_empty(&sq->prompt)) {
		struct request *rq = rq_entry_fifo(sq->prompt.next);
		struct sutro_blkg *sblkg = sutro_rq_blkg(rq);

		/* A request that is charged to another group than its bio is a journal's. */
		if (sutro_bio_blkg(sq->q, rq->bio) != sblkg ||
		    sutro_tree_may_borrow(&sblkg->group, most_ns)) {
			sutro_requests_del(sq, &sblkg->requests, rq);
			return rq;
		}
		list_move_tail(&rq->queuelist, &sblkg->requests.prompt);
	}
	return NULL;
}

/* Among the oldest requests of a list, the first for which @wanted() is true. */
static struct request *sutro_list_find(struct list_head *list,
				       sutro_wanted_t wanted, void *data,
				       unsigned int *left)
{
	struct request *rq;

	list_for_each_entry(rq, list, queuelist) {
		if (!*left)
			return NULL;
		(*left)--;
		if (wanted(rq, data))
			return rq;
	}
	return NULL;
}

/* The same of a ring. */
static struct request *sutro_ring_find(struct sutro_ring *ring,
				       sutro_wanted_t wanted, void *data,
				       unsigned int *left)
{
	struct sutro_lane *lane;
	struct request *rq;

	list_for_each_entry(lane, &ring->lanes, node) {
		rq = sutro_list_find(&lane->fifo, wanted, data, left);
		if (rq || !*left)
			return rq;
	}
	return NULL;
}

/**
 * sutro_requests_search - find a request that need not be the next one
 * @requests: the group's requests
 * @most:	how many are looked at
 * @wanted:	is it one of these?
 * @data:	for @wanted
 *
 * Return: one of the oldest requests, to be given to sutro_requests_take(); or NULL.
 */
struct request *sutro_requests_search(struct sutro_requests *requests,
				      unsigned int most, sutro_wanted_t wanted,
				      void *data)
{
	struct sutro_rings *rings = requests->rings;
	unsigned int left = most;
	struct request *rq;
	int sync, prio;

	rq = sutro_list_find(&requests->prompt, wanted, data, &left);
	if (!rings)
		return rq;
	for (sync = 1; sync >= 0 && !rq; sync--)
		for (prio = 0; prio < SUTRO_PRIOS && left && !rq; prio++)
			rq = sutro_ring_find(&rings->of[sync][prio], wanted,
					     data, &left);
	return rq;
}

/**
 * sutro_requests_take - take out a request that was found
 * @sq:		the leaf
 * @requests: the group's requests
 * @rq:		the request, to be given to sutro_lane_charge() at once
 */
void sutro_requests_take(struct sutro_queue *sq,
			 struct sutro_requests *requests, struct request *rq)
{
	if (requests->rings)
		requests->rings->position = blk_rq_pos(rq) + blk_rq_sectors(rq);
	sutro_requests_del(sq, requests, rq);
}
