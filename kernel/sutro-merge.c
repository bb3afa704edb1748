// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: merging.
 *
 * Requests merge with all requests of their group that wait, of any lane: two tasks
 * that read one file in alternating pieces make one stream.  Writeback that a sync
 * write joins waits among the sync ones from then on: a task waits for it.
 *
 * Discards for a drive that takes several ranges in a command are not merged with one
 * another: the block layer would not call elevator_mq_ops.requests_merged for them
 * (attempt_merge() in blk-merge.c), and elv_attempt_insert_merge() would free a request
 * that waits here.  Bios still join them.
 *
 * Context: sutro_queue.lock is held, but for sutro_bio_merge().
 */
#include "sutro-arrival.h"
#include "sutro-completion.h"
#include "sutro-requests.h"
#include "sutro-service.h"

/* The waiting request that starts where a bio ends, or NULL. */
static struct request *sutro_requests_find(struct sutro_requests *requests,
					   struct bio *bio)
{
	return elv_rb_find(&requests->sorted[op_is_sync(bio->bi_opf)],
			   bio_end_sector(bio));
}

/* A waiting request now starts earlier. */
static void sutro_requests_moved(struct sutro_requests *requests,
				 struct request *rq)
{
	struct rb_root *sorted = sutro_sorted_of(requests, rq);

	elv_rb_del(sorted, rq);
	elv_rb_add(sorted, rq);
}

/* Move @rq to @lane, behind @after. */
static void sutro_requests_move(struct sutro_queue *sq,
				struct sutro_requests *requests,
				struct request *rq, struct sutro_lane *lane,
				struct list_head *after)
{
	elv_rb_del(sutro_sorted_of(requests, rq), rq);
	if (sutro_rq_lane(rq))
		sutro_lane_del(&sq->pool, rq);
	else
		list_del_init(&rq->queuelist);

	if (lane) {
		sutro_lane_add(lane, rq, after);
	} else {
		sutro_rq_set_lane(rq, NULL);
		list_add(&rq->queuelist, after);
	}
	elv_rb_add(sutro_sorted_of(requests, rq), rq);
}

/* Does a waiting request wait among sync or prompt ones? */
static bool sutro_waits_sync(struct request *rq)
{
	struct sutro_lane *lane = sutro_rq_lane(rq);

	return !lane || lane->ring->sync;
}

/* @next, which arrives, has been merged into @rq: its waiters wait for @rq now. */
static void sutro_requests_join(struct sutro_queue *sq,
				struct sutro_requests *requests,
				struct request *rq, struct request *next,
				u64 now_ns)
{
	struct sutro_lane *lane;
	struct sutro_ring *ring;

	if (rq->fifo_time == SUTRO_IN_PROMPT)
		return;
	if (sutro_op_is_prompt(next->cmd_flags)) {
		sutro_requests_move(sq, requests, rq, NULL, sq->prompt.prev);
		rq->fifo_time = SUTRO_IN_PROMPT;
	} else if (op_is_sync(next->cmd_flags) && !sutro_waits_sync(rq)) {
		ring = &requests->rings->of[1][sutro_prio_of(rq)];
		lane = sutro_lane_find(&sq->pool, ring, next,
				       READ_ONCE(sq->discipline));
		sutro_requests_move(sq, requests, rq, lane, lane->fifo.prev);
		rq->fifo_time =
			min(rq->fifo_time, now_ns + SUTRO_SYNC_EXPIRE_NS);
	}
}

/*
 * @next, one of @others, has been merged into @rq.  The merged request waits at the place of
 * the sync one of both, or else of the older.  The two may be of different groups if one is
 * a journal's.
 */
static void sutro_requests_merge(struct sutro_queue *sq,
				 struct sutro_requests *requests,
				 struct request *rq,
				 struct sutro_requests *others,
				 struct request *next)
{
	bool sync = sutro_waits_sync(next);

	if (sync == sutro_waits_sync(rq) ? next->fifo_time < rq->fifo_time
					 : sync)
		sutro_requests_move(sq, requests, rq, sutro_rq_lane(next),
				    &next->queuelist);
	rq->fifo_time = min(rq->fifo_time, next->fifo_time);
	sutro_requests_del(sq, others, next);
}

static void sutro_unqueue_one(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	sutro_core_unqueue(&sq->core, &sblkg->group);
	if (!sblkg->group.queued && !sblkg->rotational)
		sutro_probe_leave(&sblkg->peer);
}

/* elevator_mq_ops.bio_merge: merge a bio without waiting for sutro_queue.lock. */
bool sutro_bio_merge(struct request_queue *q, struct bio *bio,
		     unsigned int nr_segs)
{
	struct sutro_queue *sq = q->elevator->elevator_data;
	u32 lease = READ_ONCE(sq->direct_lease);
	struct request *free = NULL;
	bool merged;

	sutro_slots_see(sq, bio);
	if (lease && sutro_op_syncs(bio->bi_opf))
		sutro_flush_saw(sq, bio);
	/* Nothing waits here that the bio could join. */
	if (lease && (READ_ONCE(sq->direct_only) == bio->bi_blkg ||
		      sutro_direct_bio(sq, lease, bio)))
		return false;
	if (sutro_stage_has_any(sq) && sutro_stage_merge(sq, bio, nr_segs))
		return true;
	/* Do not wait for the lock: the request is merged when the stage is collected. */
	if (!READ_ONCE(sq->core.queued) || !spin_trylock(&sq->lock))
		return false;

	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	spin_unlock(&sq->lock);
	if (free)
		blk_mq_free_request(free);
	return merged;
}

/*
 * elevator_mq_ops.allow_merge.  A bio that others may wait for (prompt) joins prompt
 * requests only, and a sync bio does not join a request that is queued among writeback.
 */
bool sutro_allow_merge(struct request_queue *q, struct request *rq,
		       struct bio *bio)
{
	return sutro_op_is_prompt(rq->cmd_flags) ==
		       sutro_op_is_prompt(bio->bi_opf) &&
	       (op_is_sync(rq->cmd_flags) || !op_is_sync(bio->bi_opf));
}

/* elevator_mq_ops.request_merge: the waiting request that a bio precedes. */
int sutro_request_merge(struct request_queue *q, struct request **ret_rq,
			struct bio *bio)
{
	struct sutro_blkg *sblkg = sutro_bio_blkg(q, bio);
	struct request *rq = sutro_requests_find(&sblkg->requests, bio);

	if (!rq || !elv_bio_merge_ok(rq, bio))
		return ELEVATOR_NO_MERGE;
	*ret_rq = rq;
	return blk_discard_mergable(rq) ? ELEVATOR_DISCARD_MERGE
					: ELEVATOR_FRONT_MERGE;
}

/* elevator_mq_ops.request_merged: a bio has joined a waiting request. */
void sutro_request_merged(struct request_queue *q, struct request *rq,
			  enum elv_merge type)
{
	struct sutro_requests *requests = &sutro_rq_blkg(rq)->requests;

	requests->arrival_position = blk_rq_pos(rq) + blk_rq_sectors(rq);
	if (type == ELEVATOR_FRONT_MERGE)
		sutro_requests_moved(requests, rq);
}

/* elevator_mq_ops.requests_merged: @next has joined @rq and will be freed. */
void sutro_requests_merged(struct request_queue *q, struct request *rq,
			   struct request *next)
{
	struct sutro_queue *sq = q->elevator->elevator_data;
	struct sutro_blkg *sblkg = sutro_rq_blkg(next);

	lockdep_assert_held(&sq->lock);

	sutro_rq_submitted_first(rq, next);
	/* A request that is just being accepted has no group yet. */
	if (!sblkg) {
		sutro_requests_join(sq, &sutro_rq_blkg(rq)->requests, rq, next,
				    ktime_get_ns());
		return;
	}
	sutro_requests_merge(sq, &sutro_rq_blkg(rq)->requests, rq,
			     &sblkg->requests, next);
	sutro_unqueue_one(sq, sblkg);
}
