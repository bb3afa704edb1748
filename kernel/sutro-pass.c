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
 *	collected, finds nothing queued, and is sent.  b comes: what a has just sent
 *	stays with the device, and all other requests of both wait in their groups.
 *
 * What was collected together passes together, if it is of one group and one ioprio
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
 * the device has few, nothing is to be ordered or merged: it goes past lanes and hash
 * into its turn, and waits there only if that is not now.
 *
 * Not on rotational devices, where the order matters with one group, too, nor with
 * fairness=1, which waits for groups, nor with a discipline other than fifo, nor
 * during a probe.
 *
 * Context: all functions are called with sutro_queue.lock held.
 */
#include "sutro.h"

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
		/* One with a group was given back by the driver. */
		if (sutro_rq_blkg(rq) || sutro_op_is_prompt(rq->cmd_flags) ||
		    rq->bio->bi_blkg != first->bio->bi_blkg ||
		    req_get_ioprio(rq) != req_get_ioprio(first))
			return false;
	}
	return true;
}

/* With fewer than so many at it, no device is full. */
#define SUTRO_PASS_FEW 8

/**
 * sutro_pass_takes_turn - may the next request be sent without a place to wait in?
 * @sq:		the leaf
 * @now_ns:	the time
 *
 * Return: true if it is the only one that is not at the device, where there are few.
 */
bool sutro_pass_takes_turn(struct sutro_queue *sq, u64 now_ns)
{
	return !sq->probe.active && list_is_singular(&sq->passing) &&
	       sq->core.in_flight < SUTRO_PASS_FEW &&
	       now_ns >= sq->passer->requests.mixed_until_ns;
}

/**
 * sutro_pass_goes_on - may the next request still be sent as it came?
 * @sq:		the leaf
 * @now_ns:	the time
 */
bool sutro_pass_goes_on(struct sutro_queue *sq, u64 now_ns)
{
	return !sq->probe.active &&
	       now_ns >= sq->passer->requests.mixed_until_ns &&
	       sutro_core_may_pass(&sq->core, &sq->passer->group, now_ns);
}
