// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: from the stages to the device.
 *
 * Each dispatch first collects the inserted requests (sutro-stage.c).  If no request is
 * queued, they are sent as they came (sutro-pass.c); else they go to the groups of
 * their owners, and merge with requests there.  Then it processes the notes of
 * completions (sutro-notes.c), releases groups that have left, selects a group
 * (sutro-select.c) and sends a request of it.
 *
 * During a probe (sutro-probe.c) only requests of one or two classes are sent: one of the
 * group whose turn it is, if it has any among its oldest; else of the groups that
 * queued one of that class last, by their shares.  A group with few requests is served
 * as without a probe.  When there is no request of the class although there is room for
 * one, the probe waits for a completion, which usually brings the next, or is over.
 *
 *	The class is 4 KiB reads.  It is the turn of a, which writes: b and c, which
 *	read 4 KiB, send one each, then b again, until the probe's depth is reached.
 *
 * Context: sutro_queue.lock is held, but for sutro_dispatch_request().
 */
#include "sutro-arrival.h"
#include "sutro-completion.h"
#include "sutro-report.h"
#include "sutro-requests.h"
#include "sutro-service.h"
#include "sutro-trace.h"

/* Groups that are tried for a request of the probed class. */
#define SUTRO_PROBE_TRIES 8
/*
 * Requests of a group that are looked at for one of the probed class.  A group of two jobs soon has
 * those of one of them behind many of the other.
 */
#define SUTRO_PROBE_SCAN 128
/* The shortest wait: a time that has passed must not make the queue run again and again. */
#define SUTRO_WAIT_LEAST_NS (100 * NSEC_PER_USEC)

/**
 * sutro_attach - the group that a request belongs to
 * @sq:		the leaf
 * @rq:		the request
 *
 * Return: the group; decided when the request is first seen.
 */
struct sutro_blkg *sutro_attach(struct sutro_queue *sq, struct request *rq)
{
	struct sutro_blkg *sblkg = sutro_rq_blkg(rq);

	if (sblkg)
		return sblkg;
	sblkg = sutro_flush_owner(sq, rq);
	sutro_slot_taken(sblkg);
	sutro_rq_set_blkg(rq, sblkg);
	return sblkg;
}

/**
 * sutro_queue_one - a request arrived
 * @sq:		the leaf
 * @sblkg:	its group
 * @far:	it is far from the group's last one
 * @now_ns:	the time
 */
void sutro_queue_one(struct sutro_queue *sq, struct sutro_blkg *sblkg, bool far,
		     u64 now_ns)
{
	/* An active group has a reference, until sutro_forget(). */
	if (!sblkg->group.self.active)
		blkg_get(sutro_to_blkg(sblkg));
	if (sq->direct)
		sutro_direct_waits(sq, sblkg);
	sutro_core_queue(&sq->core, &sblkg->group, far, now_ns);
}

/**
 * sutro_keep - a request waits
 * @sq:		the leaf
 * @sblkg:	its group, which is active
 * @rq:		the request
 * @now_ns:	the time
 */
void sutro_keep(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		struct request *rq, u64 now_ns)
{
	sutro_requests_add(sq, &sblkg->requests, rq, now_ns);
	if (!sq->device.rotational)
		sutro_probe_join(&sq->probe, &sblkg->peer,
				 sutro_request_class(rq));
}

/* A staged request goes to the group of its owner, or into another request. */
static void sutro_accept(struct sutro_queue *sq, struct request *rq, u64 now_ns,
			 struct list_head *free)
{
	struct sutro_blkg *sblkg = sutro_bio_blkg(sq->q, rq->bio);
	bool far = sutro_requests_far(&sblkg->requests, rq);

	/*
	 * The request arrives without its flush, which was not needed.  Only requests that wait in
	 * a group may have one when they join others (sutro_requests_merged()).
	 */
	if (sutro_rq_flushes(rq))
		sutro_flush_cancel(sq, rq);
	if (!blk_discard_mergable(rq) &&
	    blk_mq_sched_try_insert_merge(sq->q, rq, free))
		return;
	sblkg = sutro_attach(sq, rq);
	sutro_queue_one(sq, sblkg, far, now_ns);
	sutro_keep(sq, sblkg, rq, now_ns);
}

static void sutro_accept_all(struct sutro_queue *sq, struct list_head *list,
			     u64 now_ns, struct list_head *free)
{
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		sutro_accept(sq, rq, now_ns, free);
	}
}

static void sutro_drain(struct sutro_queue *sq, u64 now_ns,
			struct list_head *free)
{
	bool first = list_empty(&sq->passing);

	sutro_stage_collect(sq, &sq->passing);
	/* Requests that were to pass arrived before the staged ones. */
	if (!first || !sutro_may_pass(sq))
		sutro_accept_all(sq, &sq->passing, now_ns, free);
}

/**
 * sutro_request_cost_ns - the estimated cost of a request
 * @sq:		the leaf
 * @costs:	those of its group; NULL for those of the device
 * @rq:		the request
 */
u64 sutro_request_cost_ns(struct sutro_queue *sq,
			  const struct sutro_costs *costs, struct request *rq)
{
	unsigned int class = sutro_request_class(rq);
	u32 bytes = blk_rq_bytes(rq);

	/* Read without done_lock: an estimate may lack the latest completion. */
	return data_race(sutro_cost_estimate(&sq->device, costs, class, bytes));
}

/* Allocate the costs of a group.  Without memory, the next request tries again. */
static void sutro_costs_make(struct sutro_blkg *sblkg)
{
	struct sutro_costs *costs =
		kzalloc(sizeof(*costs), GFP_NOWAIT | __GFP_NOWARN);

	/* Pairs with READ_ONCE() in sutro_blkg_costs(). */
	smp_store_release(&sblkg->costs, costs);
}

/**
 * sutro_price - a request leaves for the device
 * @sq:		the leaf
 * @sblkg:	its group
 * @rq:		the request
 * @prompt:	it did not wait for the turn of its group
 * @now_ns:	the time
 *
 * Return: its estimated cost.
 */
u64 sutro_price(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		struct request *rq, bool prompt, u64 now_ns)
{
	unsigned int class = sutro_request_class(rq);
	struct sutro_device *device = &sq->device;
	u64 cost_ns, wait_ns;

	if (sblkg->rotational && !sblkg->costs)
		sutro_costs_make(sblkg);
	cost_ns = sutro_request_cost_ns(sq, sutro_blkg_costs(sblkg), rq);
	wait_ns = sutro_rq_waited_ns(rq, now_ns);

	trace_sutro_dispatch(rq, sutro_cgroup_id(sblkg), cost_ns, wait_ns,
			     prompt);
	sblkg->stat.wait_ns += wait_ns;
	if (!sq->core.in_flight)
		WRITE_ONCE(device->idle, true);
	sutro_rq_pack(rq, cost_ns, class,
		      !READ_ONCE(device->unseen) &&
			      sq->core.in_flight < SUTRO_DEPTH_MIN &&
			      sq->core.in_flight_ns <= cost_ns);
	if (unlikely(sutro_rq_is_polled(rq)))
		atomic_inc(&sq->polled);
	sutro_probe_sent(&sq->probe, class);
	sutro_flush_sent(sq, sblkg, rq->cmd_flags, now_ns);
	sutro_direct_sends(sq, rq, blk_rq_bytes(rq));
	return cost_ns;
}

/**
 * sutro_send - a queued request leaves for the device
 * @sq:		the leaf
 * @rq:		the request, which is in no list
 * @prompt:	it did not wait for the turn of its group
 * @now_ns:	the time
 */
void sutro_send(struct sutro_queue *sq, struct request *rq, bool prompt,
		u64 now_ns)
{
	struct sutro_blkg *sblkg = sutro_rq_blkg(rq);
	u64 estimate_ns = sutro_price(sq, sblkg, rq, prompt, now_ns);

	sutro_lane_charge(rq, estimate_ns);
	sutro_rq_keep_sectors(rq);
	sblkg->group.caches = sutro_rq_caches(rq);
	sq->core.async = !rq_is_sync(rq);
	sutro_core_dispatch(&sq->core, &sblkg->group, estimate_ns);
	if (prompt && sutro_op_commits(rq->cmd_flags)) {
		rq->fifo_time |= SUTRO_RQ_COMMIT;
		sutro_core_commit(&sq->core, &sblkg->group, now_ns);
	}
	if (!sblkg->group.queued && !sblkg->rotational)
		sutro_probe_leave(&sblkg->peer);
	if (!sq->core.queued)
		sq->probe.dry = true;
}

/**
 * sutro_forget - release the groups that are no longer active
 * @sq:		the leaf
 * @now_ns:	the time
 */
void sutro_forget(struct sutro_queue *sq, u64 now_ns)
{
	struct sutro_group *group;

	while ((group = sutro_core_forget(&sq->core, now_ns))) {
		struct sutro_blkg *sblkg = sutro_blkg_of(group);

		sutro_report(sq);
		sutro_requests_leave(sq, &sblkg->requests);
		blkg_put(sutro_to_blkg(sblkg));
	}
}

static void sutro_start_timer(struct sutro_queue *sq, u64 now_ns)
{
	/* Completions may be later than @now_ns. */
	u64 wait_ns = max_t(s64, sq->core.idle_until_ns - now_ns,
			    SUTRO_WAIT_LEAST_NS);

	sutro_report_idle(sq, wait_ns);
	hrtimer_start(&sq->timer, ns_to_ktime(wait_ns), HRTIMER_MODE_REL);
}

/* Request a run at the next completion.  Returns false if a completion has come already. */
static bool sutro_wait(struct sutro_queue *sq)
{
	bool nothing;

	WRITE_ONCE(sq->waiting, true);
	spin_lock_irq(&sq->done_lock);
	nothing = list_empty(&sq->notes);
	spin_unlock_irq(&sq->done_lock);
	return nothing;
}

/* Begin, go on with or end a probe, when it is time. */
static void sutro_serve_probe(struct sutro_queue *sq, u64 now_ns)
{
	unsigned int class = sq->probe.class;
	u64 *ns16 = &sq->device.costs.ns16[class], old;

	spin_lock_irq(&sq->done_lock);
	old = *ns16;
	/* That of a SCSI device may be changed, by its driver too. */
	if (!sq->probe.active)
		sq->probe.limit = sutro_driver_depth(sq->q);
	sq->probe.equal = sutro_level_is_equal(&sq->core.root->level);
	sq->probe.wide = sutro_core_wide(&sq->core, now_ns);
	sutro_probe_step(&sq->probe, &sq->device, now_ns);
	if (*ns16 != old)
		trace_sutro_cost(sq->q->disk, 0, class, old, *ns16);
	sutro_probe_tunables(&sq->probe, &sq->device, &sq->core.tunables);
	spin_unlock_irq(&sq->done_lock);
}

static bool sutro_is_probed(struct request *rq, void *data)
{
	const struct sutro_queue *sq = data;

	return sutro_probe_is_of(&sq->probe, sutro_request_class(rq));
}

/* Take out one of the oldest requests of a group that is of the class that is being probed. */
static struct request *sutro_probe_take(struct sutro_queue *sq,
					struct sutro_blkg *sblkg)
{
	struct sutro_requests *requests = &sblkg->requests;
	struct request *rq;

	rq = sutro_requests_search(requests, SUTRO_PROBE_SCAN, sutro_is_probed,
				   sq);
	if (rq)
		sutro_requests_take(sq, requests, rq);
	return rq;
}

/* A request of the class that is being probed, of the groups that have any. */
static struct request *sutro_probe_find(struct sutro_queue *sq, u64 now_ns)
{
	struct request *rq = NULL;
	struct sutro_blkg *sblkg;
	struct sutro_peer *peer;
	u64 cost_ns;
	int i;

	for (i = 0; i < SUTRO_PROBE_TRIES && !rq; i++) {
		peer = sutro_probe_pick(&sq->probe, now_ns);
		if (!peer)
			return NULL;
		sblkg = container_of(peer, struct sutro_blkg, peer);
		rq = sutro_probe_take(sq, sblkg);
		cost_ns = rq ? sutro_request_cost_ns(sq, NULL, rq) : 0;
		sutro_probe_gave(&sq->probe, peer, cost_ns,
				 sutro_group_share(&sblkg->group,
						   SUTRO_PROBE_WHOLE),
				 now_ns);
	}
	return rq;
}

/* The probe has room, and no group has a request for it: does the probe wait, or end? */
static bool sutro_probe_waits(struct sutro_queue *sq, u64 now_ns)
{
	bool over;

	spin_lock_irq(&sq->done_lock);
	over = sutro_probe_starved(&sq->probe, &sq->device, now_ns);
	spin_unlock_irq(&sq->done_lock);
	return !over;
}

/*
 * Take out the next request: of @sblkg, whose turn it is; during a probe, one of the probed
 * class, or of @sblkg if that is let through; NULL if a completion must come first.
 */
static struct request *sutro_serve(struct sutro_queue *sq,
				   struct sutro_blkg *sblkg, u64 now_ns)
{
	struct sutro_group *group = &sblkg->group;
	struct request *rq = NULL;
	bool room;
	u32 nr;

	while (sq->probe.active) {
		/* Without done_lock: sutro_wait() finds the completions not seen here. */
		room = data_race(sutro_probe_has_room(&sq->probe, &sq->device));
		if (room)
			rq = sutro_probe_take(sq, sblkg);
		if (rq)
			return rq;
		nr = group->queued + group->in_flight;
		/* Read without done_lock for the same reason. */
		if (data_race(sutro_probe_admits(&sq->probe, &sq->device,
						 &sblkg->peer, nr)))
			break;
		if (!room)
			return NULL;
		rq = sutro_probe_find(sq, now_ns);
		if (rq || sutro_probe_waits(sq, now_ns))
			return rq;
	}
	rq = sutro_requests_next(sq, &sblkg->requests, now_ns);
	group->mixed = sblkg->requests.mixed;
	return rq;
}

/**
 * sutro_tunables - give the measured latency of the device to the algorithm
 * @sq:		the leaf; its device is read without done_lock
 */
void sutro_tunables(struct sutro_queue *sq)
{
	sutro_probe_tunables(&sq->probe, &sq->device, &sq->core.tunables);
}

/**
 * sutro_look - process what has happened since the last dispatch
 * @sq:		the leaf
 * @now_ns:	the time
 */
void sutro_look(struct sutro_queue *sq, u64 now_ns)
{
	if (READ_ONCE(sq->waiting))
		WRITE_ONCE(sq->waiting, false);
	sq->probe.rare = sutro_protects(&sq->core.protect);
	sq->probe.reserved = sq->core.protect.reserve;
	/* No probe begins in a reserved window or in direct mode. */
	if (!sq->device.rotational &&
	    (sq->probe.active ||
	     (!sq->core.protect.reserved && !READ_ONCE(sq->device.unseen))) &&
	    sutro_probe_look(&sq->probe, now_ns))
		sutro_serve_probe(sq, now_ns);
	if (!list_empty_careful(&sq->notes))
		sutro_fold(sq);
	if (!list_empty(&sq->core.leaving) || !list_empty(&sq->core.slotless))
		sutro_forget(sq, now_ns);
}

static struct request *sutro_select(struct sutro_queue *sq, u64 now_ns)
{
	enum sutro_verdict verdict;
	struct sutro_group *group;
	struct request *rq;

	rq = sutro_requests_prompt(sq);
	if (rq) {
		sutro_core_interrupt(&sq->core, now_ns);
		sutro_report(sq);
		sutro_send(sq, rq, true, now_ns);
		return rq;
	}

	do {
		sutro_look(sq, now_ns);
		sutro_tunables(sq);
		group = sutro_core_select(&sq->core, now_ns, &verdict);
		if (verdict == SUTRO_SERVE) {
			rq = sutro_serve(sq, sutro_blkg_of(group), now_ns);
			verdict = rq ? SUTRO_SERVE : SUTRO_WAIT;
			if (rq && sq->core.gap)
				rq = sutro_fitting(sq, rq, now_ns, &verdict);
		}
	} while ((verdict == SUTRO_WAIT || verdict == SUTRO_IDLE) &&
		 !sutro_wait(sq));

	/* The device could take the held requests, so its measuring window does not count. */
	if (sutro_holds_back(&sq->core, verdict))
		WRITE_ONCE(sq->device.unsaturated, true);
	if (verdict != SUTRO_SERVE && sq->core.queued) {
		sutro_direct_waits(sq, NULL);
		sutro_polled_waits(sq);
	}
	sutro_report(sq);
	switch (verdict) {
	case SUTRO_SERVE:
		sutro_send(sq, rq, false, now_ns);
		sutro_direct_sent(sq, sutro_rq_blkg(rq), now_ns);
		break;
	case SUTRO_IDLE:
		sutro_start_timer(sq, now_ns);
		break;
	case SUTRO_EMPTY:
		/* Read and written under done_lock otherwise: a hint. */
		WRITE_ONCE(sq->device.unsaturated, true);
		break;
	case SUTRO_WAIT:
		break;
	}
	return rq;
}

/*
 * The current time.  A plug caches the time of its first request, which is accurate enough
 * on devices without seeks, but not if the dispatcher looks @again.  Time never goes back.
 */
static u64 sutro_now_ns(struct sutro_queue *sq, bool again)
{
	u64 now_ns = sq->device.rotational || again ? ktime_get_ns()
						    : blk_time_get_ns();

	sq->now_ns = max(sq->now_ns, now_ns);
	return sq->now_ns;
}

static struct request *sutro_next(struct sutro_queue *sq, bool again,
				  struct list_head *free)
{
	u64 now_ns = sutro_now_ns(sq, again);
	struct request *rq = NULL;

	if (sutro_staged(sq))
		sutro_drain(sq, now_ns, free);
	if (sq->direct)
		sutro_direct_look(sq, now_ns);
	if (!list_empty(&sq->passing))
		rq = sutro_pass(sq, now_ns);
	if (!rq && !list_empty(&sq->passing))
		sutro_accept_all(sq, &sq->passing, now_ns, free);
	return rq ?: sutro_select(sq, now_ns);
}

/**
 * sutro_collect - queue all requests that were inserted, before the next dispatch does
 * @sq:		the leaf
 *
 * The CPUs that inserted them may have found nothing to dispatch meanwhile, so the queue runs.
 *
 * Context: process; takes sutro_queue.lock.
 */
void sutro_collect(struct sutro_queue *sq)
{
	LIST_HEAD(free);
	u64 now_ns;

	spin_lock(&sq->lock);
	now_ns = sutro_now_ns(sq, true);
	sutro_stage_collect(sq, &sq->passing);
	sutro_accept_all(sq, &sq->passing, now_ns, &free);
	spin_unlock(&sq->lock);

	if (!list_empty(&free))
		blk_mq_free_requests(&free);
	blk_mq_run_hw_queues(sq->q, true);
}

/* The next request for the device; elevator_mq_ops.dispatch_request. */
struct request *sutro_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct sutro_queue *sq = hctx->queue->elevator->elevator_data;
	struct request *rq;
	bool again = false;
	LIST_HEAD(free);

	spin_lock(&sq->lock);
	do {
		WRITE_ONCE(sq->dispatching, true);
		/* Cleared before the time is read, so that no expiry of the timer is lost. */
		if (READ_ONCE(sq->fired))
			WRITE_ONCE(sq->fired, false);
		rq = sutro_next(sq, again, &free);
		again = true;
		WRITE_ONCE(sq->dispatching, false);
		/* Pairs with the barrier in sutro_has_work(). */
		smp_mb();
	} while (!rq && (sutro_has_news(sq) || sutro_is_awaited(sq)));
	spin_unlock(&sq->lock);

	if (!list_empty(&free))
		blk_mq_free_requests(&free);
	return rq;
}
