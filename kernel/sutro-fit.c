// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: requests that fit into a gap.
 *
 * While a protected group thinks, others are served in the gap (sutro-gap.c).  A request that
 * would take longer than the rest of the gap would delay the next one of the protected group.  So
 * the next request of the group whose turn it is must fit.  If it does not, another one of its
 * oldest requests is sent, or one of the groups that have waited longest, drawn by their shares.
 *
 *	80 us of a gap are left.  It is the turn of a, whose oldest requests are writes of
 *	1 MiB, 300 us each.  b has waited for as long, with reads of 4 KiB: one of them is sent.
 *
 * Context: sutro_queue.lock is held.
 */
#include "sutro-requests.h"
#include "sutro-service.h"

/* Groups that have waited longest, which are tried. */
#define SUTRO_GAP_TRIES 8
/*
 * Requests of a group that are looked at.  A group of two jobs soon has those of one of them behind
 * many of the other.
 */
#define SUTRO_GAP_SCAN 32

/**
 * struct sutro_fit - a search for a request that fits into the rest of a gap
 * @sq:		the leaf
 * @now_ns:	the time
 * @in_turn:	the next one of the group that was selected is looked at
 * @cost_ns:	estimate of the one that was found
 * @least_ns:	estimate of the cheapest of those that do not fit
 */
struct sutro_fit {
	struct sutro_queue *sq;
	u64 now_ns;
	bool in_turn;
	u64 cost_ns;
	u64 least_ns;
};

static bool sutro_fits(struct request *rq, void *data)
{
	const struct sutro_costs *costs = sutro_blkg_costs(sutro_rq_blkg(rq));
	struct sutro_fit *fit = data;

	fit->cost_ns = sutro_request_cost_ns(fit->sq, costs, rq);
	if (sutro_core_fits(&fit->sq->core, fit->cost_ns, fit->in_turn,
			    fit->now_ns))
		return true;
	fit->least_ns = min(fit->least_ns, fit->cost_ns);
	return false;
}

/* One of the oldest requests of a group that fits into the rest of a gap; it stays. */
static struct request *sutro_find_fitting(struct sutro_fit *fit,
					  struct sutro_blkg *sblkg)
{
	struct request *rq;

	fit->least_ns = U64_MAX;
	rq = sutro_requests_search(&sblkg->requests, SUTRO_GAP_SCAN, sutro_fits,
				   fit);
	if (!rq)
		sutro_gap_missed(&fit->sq->core, fit->least_ns);
	return rq;
}

/* The same of one of the other groups. */
static struct request *sutro_find_out_of_turn(struct sutro_fit *fit,
					      const struct sutro_group *in_turn)
{
	struct sutro_core *core = &fit->sq->core;
	unsigned int left = SUTRO_GAP_TRIES;
	struct request *rq, *drawn = NULL;
	struct sutro_group *group;
	u64 chances = 0;

	list_for_each_entry(group, &core->waiting, node) {
		if (!left--)
			break;
		if (group == in_turn)
			continue;
		rq = sutro_find_fitting(fit, sutro_blkg_of(group));
		if (rq && sutro_gap_draw(&core->protect, group, fit->cost_ns,
					 &chances))
			drawn = rq;
	}
	core->beside = drawn;
	return drawn;
}

/**
 * sutro_fitting - in a gap, a request that fits into its rest
 * @sq:		the leaf
 * @rq:		the next one of the group that was selected, which was taken out
 * @now_ns:	the time
 * @ret_verdict: set if none fits
 *
 * If @rq does not fit it is put back, and stays the next of its group.
 *
 * Return: @rq, or another one that was taken out, or NULL.
 */
struct request *sutro_fitting(struct sutro_queue *sq, struct request *rq,
			      u64 now_ns, enum sutro_verdict *ret_verdict)
{
	struct sutro_fit fit = { .sq = sq, .now_ns = now_ns, .in_turn = true };
	struct sutro_blkg *sblkg = sutro_rq_blkg(rq);

	if (sutro_fits(rq, &fit))
		return rq;
	if (sutro_rq_waited_ns(rq, now_ns) > SUTRO_GAP_PATIENCE_NS)
		sutro_gap_missed(&sq->core, fit.cost_ns);
	sutro_lane_charge(rq, fit.cost_ns);
	sutro_requests_add_head(sq, &sblkg->requests, rq);
	fit.in_turn = false;
	rq = sutro_find_fitting(&fit, sblkg)
		     ?: sutro_find_out_of_turn(&fit, &sblkg->group);
	if (rq)
		sutro_requests_take(sq, &sutro_rq_blkg(rq)->requests, rq);
	else
		*ret_verdict = sutro_core_wait(&sq->core, now_ns);
	return rq;
}
