// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: requests that are sent as they came.
 *
 * While one group alone has requests, and none of them waits, there is nothing to be
 * decided: no turn, no order, no slot.  Its next requests then go past the trees, the
 * lanes and the hash, straight to the device.  They are charged as ever, so that the
 * next group finds the right account.
 *
 *	a reads 4 KiB, again and again, without other groups: each read is
 *	collected, finds nothing queued, and is sent.  b comes: the requests that a has
 *	just sent stay at the device, and all others of both wait in their groups.
 *
 * Requests that were collected together pass together, if they are of one group and one ioprio
 * and others do not wait on any of it (REQ_META, REQ_SWAP).  As soon as the device
 * does not take it all, more requests come, and those that were to pass wait like any
 * other: so they are sorted, merged and limited where there is a backlog, and only
 * there.  A batch is not merged with itself: plugs have merged it already.
 *
 * With one active group, the notes of completions are processed at every 16th request
 * only.  And such a request does not hold its group, which is active, and so held, until
 * the note of its completion is read.
 *
 * With others active a request has its turn in the trees.  But if it is the only one, and
 * the device has room, nothing is to be ordered or merged: it goes past lanes and hash
 * into its turn, and waits there only if that is not now.
 *
 * While a group is protected, whether a request fits into a gap is decided when it is taken
 * from its group (sutro-dispatch.c): it waits there first.
 *
 * Not on rotational devices, where the order matters with one group, too, nor with
 * fairness=1, which waits for groups, nor with a discipline other than fifo, nor
 * during a probe.
 *
 * Context: all functions are called with sutro_queue.lock held.
 */
#include "sutro-arrival.h"
#include "sutro-report.h"
#include "sutro-requests.h"
#include "sutro-service.h"

/* Requests that pass between two looks at the notes of completions. */
#define SUTRO_PASS_LOOK 16

/**
 * sutro_may_pass - may requests be sent as they came?
 * @sq:		the leaf, with requests in @passing that were just collected
 *
 * Return: true if they are alike, and nothing else waits.
 */
bool sutro_may_pass(struct sutro_queue *sq)
{
	struct request *first, *rq;

	if (sq->core.queued || sq->device.rotational ||
	    list_empty(&sq->passing) || READ_ONCE(sq->discipline) != SUTRO_FIFO)
		return false;

	first = list_first_entry(&sq->passing, struct request, queuelist);
	sq->passer = sutro_bio_blkg(sq->q, first->bio);
	if (sutro_requests_turns(&sq->passer->requests, first))
		return false;
	list_for_each_entry(rq, &sq->passing, queuelist) {
		/* A request that has a group was returned by the driver. */
		if (sutro_rq_blkg(rq) || sutro_op_is_prompt(rq->cmd_flags) ||
		    rq->bio->bi_blkg != first->bio->bi_blkg ||
		    req_get_ioprio(rq) != req_get_ioprio(first))
			return false;
	}
	return true;
}

/*
 * May the next request be sent without being queued?  It is the only one, and the device has
 * room.  The selection decides; on a full device it would be made in vain.
 */
static bool sutro_pass_takes_turn(struct sutro_queue *sq, u64 now_ns)
{
	return !sq->probe.active && list_is_singular(&sq->passing) &&
	       !sutro_core_is_full(&sq->core) &&
	       !sutro_protects(&sq->core.protect) &&
	       now_ns >= sq->passer->requests.mixed_until_ns;
}

/* May the next request pass, too? */
static bool sutro_pass_goes_on(struct sutro_queue *sq, u64 now_ns)
{
	return !sq->probe.active &&
	       now_ns >= sq->passer->requests.mixed_until_ns &&
	       sutro_core_may_pass(&sq->core, &sq->passer->group, now_ns);
}

/* Send the only request.  Returns NULL if its group may not send it now: then it is queued. */
static struct request *sutro_pass_turn(struct sutro_queue *sq, u64 now_ns)
{
	struct sutro_blkg *sblkg = sq->passer;
	enum sutro_verdict verdict;
	struct request *rq;

	rq = list_first_entry(&sq->passing, struct request, queuelist);
	list_del_init(&rq->queuelist);
	sutro_attach(sq, rq);
	sutro_queue_one(sq, sblkg, sutro_requests_far(&sblkg->requests, rq),
			now_ns);
	sblkg->group.mixed = false;
	sutro_tunables(sq);
	sutro_core_select(&sq->core, now_ns, &verdict);
	if (verdict != SUTRO_SERVE) {
		sutro_keep(sq, sblkg, rq, now_ns);
		return NULL;
	}
	sutro_report(sq);
	sutro_rq_set_lane(rq, NULL);
	sutro_send(sq, rq, false, now_ns);
	sutro_direct_sent(sq, sblkg, now_ns);
	return rq;
}

/**
 * sutro_pass - send a request as it came
 * @sq:		the leaf, with requests in @passing
 * @now_ns:	the time
 *
 * Return: the request; NULL if it has to wait.  The rest of @passing then has to wait in its
 * groups.
 */
struct request *sutro_pass(struct sutro_queue *sq, u64 now_ns)
{
	struct sutro_blkg *sblkg = sq->passer;
	struct request *rq;

	/*
	 * With one active group, not each completion counts at once, nor each change of the
	 * latency by which room is left for a group that will soon be back.
	 */
	if (!(sq->passed++ % SUTRO_PASS_LOOK) || READ_ONCE(sq->kick)) {
		sutro_look(sq, now_ns);
		sutro_tunables(sq);
	}
	if (!sutro_pass_goes_on(sq, now_ns)) {
		sutro_look(sq, now_ns);
		if (!sutro_pass_goes_on(sq, now_ns)) {
			return sutro_pass_takes_turn(sq, now_ns)
				       ? sutro_pass_turn(sq, now_ns)
				       : NULL;
		}
	}
	rq = list_first_entry(&sq->passing, struct request, queuelist);
	list_del_init(&rq->queuelist);
	sutro_rq_set(rq, sblkg, SUTRO_RQ_PASSED);
	sutro_slot_taken(sblkg);
	/* An active group has a reference, until sutro_forget(). */
	if (!sblkg->group.self.active)
		blkg_get(sutro_to_blkg(sblkg));
	sutro_core_pass(&sq->core, &sblkg->group,
			sutro_requests_far(&sblkg->requests, rq),
			sutro_price(sq, sblkg, rq, false, now_ns), now_ns);
	sutro_rq_keep_sectors(rq);
	sutro_direct_sent(sq, sblkg, now_ns);
	return rq;
}
