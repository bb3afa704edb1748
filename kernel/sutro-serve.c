// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a request of the group whose turn it is, or of another one
 * that a probe selects.
 *
 * During a probe (sutro-probe.c) requests of one class only are sent: one of the
 * group whose turn it is, if it has any among its oldest; else of the groups that
 * queued one of that class last, by their shares.  A group with few requests
 * is served as ever.  When there is no request of the class although there is room
 * for one, the probe waits for a completion, which usually brings the next, or is
 * over.
 *
 *	The class is 4 KiB reads.  It is the turn of a, which writes: b and c, which
 *	read 4 KiB, send one each, then b again, until the probe's depth is reached.
 *
 * Context: all functions are called with sutro_queue.lock held.
 */
#include "sutro.h"
#include "sutro-trace.h"

/* Groups that are tried for a request of the probed class. */
#define SUTRO_PROBE_TRIES 8

/**
 * sutro_serve_probe - begin, go on with or end a probe, when it is time
 * @sq:		the leaf
 * @now_ns:	the time
 */
void sutro_serve_probe(struct sutro_queue *sq, u64 now_ns)
{
	unsigned int class = sq->probe.class;
	u64 *ns16 = &sq->device.costs.ns16[class], old;

	spin_lock_irq(&sq->done_lock);
	old = *ns16;
	sutro_probe_step(&sq->probe, &sq->device, now_ns);
	if (*ns16 != old)
		trace_sutro_cost(sq->q->disk, 0, class, old, *ns16);
	sutro_probe_tunables(&sq->probe, &sq->device, &sq->core.tunables);
	spin_unlock_irq(&sq->done_lock);
}

static u64 sutro_probe_cost_ns(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			       unsigned int class, struct request *rq)
{
	/* Read without done_lock: an estimate may be a completion behind. */
	return data_race(sutro_cost_estimate(&sq->device, &sblkg->costs, class,
					     blk_rq_bytes(rq)));
}

/* A request of the class that is being probed, of the groups that have any. */
static struct request *sutro_probe_find(struct sutro_queue *sq, u64 now_ns)
{
	unsigned int class = sq->probe.class;
	struct request *rq = NULL;
	struct sutro_blkg *sblkg;
	struct sutro_peer *peer;
	u64 cost_ns;
	int i;

	for (i = 0; i < SUTRO_PROBE_TRIES && !rq; i++) {
		peer = sutro_probe_ask(&sq->probe, now_ns);
		if (!peer)
			return NULL;
		sblkg = container_of(peer, struct sutro_blkg, peer);
		rq = sutro_requests_next_of(sq, &sblkg->requests, class);
		cost_ns = rq ? sutro_probe_cost_ns(sq, sblkg, class, rq) : 0;
		sutro_probe_gave(&sq->probe, peer, cost_ns,
				 sutro_group_share(&sblkg->group,
						   SUTRO_PROBE_WHOLE),
				 now_ns);
	}
	return rq;
}

/* There is room, but no request for it: will there be one? */
static bool sutro_probe_waits(struct sutro_queue *sq, u64 now_ns)
{
	bool over;

	spin_lock_irq(&sq->done_lock);
	over = sutro_probe_starved(&sq->probe, &sq->device, now_ns);
	spin_unlock_irq(&sq->done_lock);
	return !over;
}

/**
 * sutro_serve - take out the next request
 * @sq:		the leaf
 * @sblkg:	whose turn it is
 * @now_ns:	the time
 *
 * Return: a request of @sblkg; during a probe, one of the probed class, or of
 * @sblkg if that is let through; NULL if a completion must come first.
 */
struct request *sutro_serve(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			    u64 now_ns)
{
	struct sutro_group *group = &sblkg->group;
	struct request *rq = NULL;
	bool room;

	if (!sq->probe.active)
		goto next;

	/* Without done_lock: sutro_wait() finds the completions not seen here. */
	room = data_race(sutro_probe_has_room(&sq->probe, &sq->device));
	if (room)
		rq = sutro_requests_next_of(sq, &sblkg->requests,
					    sq->probe.class);
	if (rq)
		return rq;
	/* As above. */
	if (data_race(sutro_probe_admits(&sq->probe, &sq->device, &sblkg->peer,
					 group->queued + group->in_flight)))
		goto next;
	if (!room)
		return NULL;
	rq = sutro_probe_find(sq, now_ns);
	if (rq || sutro_probe_waits(sq, now_ns))
		return rq;
next:
	rq = sutro_requests_next(sq, &sblkg->requests, now_ns);
	group->mixed = sblkg->requests.mixed;
	return rq;
}
