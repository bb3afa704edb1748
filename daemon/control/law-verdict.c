/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: the verdict of each promise, by its rate (law-promise.c).
 *
 * A promise that is short has a cause: its requests are not charged to its cgroup, its unit is slow
 * by itself, a leaf has no weights, or the floors do not fit. One tick proves none, as causes compare
 * noisy values. So time with a cause is counted, less time without one, and the verdict follows
 * when that is enough.
 *
 *	The leaves have time for 0.8 of a floor of 100 MB/s, and its rate is 80 MB/s. In 0.75 s the
 *	floor is infeasible. When the rate was 98 MB/s for 2 s, it is held.
 */

#include <math.h>

#include "control/law-internal.h"

/* With less use than this, and little waiting, the unit itself is the cause. */
#define USED_ENOUGH 0.7
#define WAITS_A_LITTLE 0.15
/* HELD: a rate of this part of the floor begins to count as held. */
#define HELD_FROM 0.97
/* A held floor counts as held until its rate falls below this part, so that noise does not
 * change the state.
 */
#define HELD_UNTIL 0.95
/* On leaves that are too small for the floors, a rate below this part counts as short. */
#define SHORT_BELOW 0.98
/* Net time of evidence before the verdict that the floors do not fit, and before any other
 * verdict, which compares noisier values; time without evidence before it is withdrawn.
 */
#define INFEASIBLE_S 0.75
#define VERDICT_S 2.0
#define VERDICT_FROM_S 0.5
#define CLEAR_S 2.0
/* A unit without requests for this long is idle. Journals of file systems are written each 5 s,
 * and each change of a state is a signal on the bus.
 */
#define IDLE_AFTER_S 6.0
/* A missed floor is unattributed if the unit needs less than this share of all its leaves, */
#define SHARE_NOTHING 1e-3
/* and if it has fewer requests per second there than this. */
#define IOS_NOTHING 10

static bool promise_is_unattributed(const struct promise *p)
{
	double share = p->charged * p->pub.floor / fmax(p->fast_rate, 1e-300);

	if (p->fast_rate < 0.01 * p->pub.floor)
		return false;
	return p->charged < 1e-9 ||
	       (share < SHARE_NOTHING && p->ios < IOS_NOTHING);
}

static bool promise_is_unweighted(const struct control *c,
				  const struct promise *p)
{
	for (uint32_t i = 0; i < p->n_links; i++)
		if (p->links[i].share > SHARE_TELLING &&
		    c->unweighted[p->links[i].leaf])
			return true;
	return false;
}

/* Why is the promise short? CONTROL_HELD if the unit only has no demand for more. */
static enum control_state promise_why(const struct control *c,
				      const struct promise *p)
{
	double part = c->nodes[p->pub.node].fraction;

	if (promise_is_unattributed(p))
		return CONTROL_UNATTRIBUTED;
	if (p->pub.backlog < WAITS_A_LITTLE && !control_has_demand(p))
		return CONTROL_HELD;
	if (promise_is_unweighted(c, p))
		return CONTROL_UNWEIGHTED;
	/* Less than the demand is granted: on a hdd, requests may wait in the drive. */
	if (!control_is_granted(&p->pub))
		return CONTROL_INFEASIBLE;
	if (p->pub.used < USED_ENOUGH || p->released_from > 0)
		return control_may_reserve(c, p) ? CONTROL_SETTLING
						 : CONTROL_LIMITED;
	if (control_has_demand(p) && part > 0 &&
	    part * control_others(c, p) < 0.95)
		return CONTROL_CROWDED;
	return control_has_demand(p) ? CONTROL_SETTLING : CONTROL_LIMITED;
}

/* Is the promise short, and why? CONTROL_HELD if it is not, or if its rate cannot be judged. */
static enum control_state promise_short(const struct control *c,
					const struct promise *p)
{
	double held = p->pub.state == CONTROL_HELD ? HELD_UNTIL : HELD_FROM;
	double floor = p->pub.floor;
	enum control_state why;

	if (p->idle_s)
		return CONTROL_HELD;
	if (p->pub.part && !control_promise_is_measured(p))
		return promise_is_unattributed(p) ? CONTROL_UNATTRIBUTED
						  : CONTROL_HELD;
	why = promise_why(c, p);
	if (why == CONTROL_INFEASIBLE)
		return p->fast_rate < SHORT_BELOW * floor ? why : CONTROL_HELD;
	/* One of the means suffices: the first is faster, the second has less noise. */
	return fmax(p->fast_rate, p->steady_rate) < held * floor ? why
								 : CONTROL_HELD;
}

/*
 * A verdict needs net evidence, and is withdrawn after a while without evidence. It is
 * replaced when another cause has been the only one for as long. Floors that fit again are not
 * infeasible, even if this one has not settled yet.
 */
static void promise_weigh(struct promise *p, enum control_state why,
			  double dt_s)
{
	double due_s = why == CONTROL_INFEASIBLE ? INFEASIBLE_S : VERDICT_S;

	if (why == CONTROL_HELD) {
		p->short_s = fmax(p->short_s - dt_s, 0);
		p->good_s += dt_s;
		if (p->good_s >= CLEAR_S)
			p->verdict = CONTROL_HELD;
		return;
	}
	/* The cost is not known well enough yet. */
	if (p->running_s > VERDICT_FROM_S)
		p->short_s = fmin(p->short_s + dt_s, VERDICT_S);
	p->good_s = 0;
	p->other_s = why == p->verdict || why != p->cause ? 0
							  : p->other_s + dt_s;
	p->cause = why;
	if (p->verdict == CONTROL_INFEASIBLE && control_is_granted(&p->pub) &&
	    p->other_s >= due_s)
		p->verdict = CONTROL_HELD;
	if (why == CONTROL_SETTLING || p->short_s < due_s)
		return;
	if (p->verdict == CONTROL_HELD || p->other_s >= due_s)
		p->verdict = why;
}

/* Without requests a floor keeps its state at first: one that does not hold is not held because its
 * unit has stopped. The first look at a unit has no former state to keep.
 */
static bool promise_keeps_state(const struct promise *p)
{
	return p->idle_s > 0 && p->idle_s < IDLE_AFTER_S &&
	       p->pub.state != CONTROL_UNKNOWN;
}

static void promise_judge(struct control *c, struct promise *p, double dt_s)
{
	enum control_state why = promise_short(c, p);

	promise_weigh(p, why, dt_s);
	if (p->pub.part && !control_promise_is_measured(p))
		p->pub.state = p->verdict != CONTROL_HELD ? p->verdict
							  : CONTROL_UNMEASURED;
	else if (promise_keeps_state(p))
		return;
	else if (p->idle_s > 0)
		p->pub.state = CONTROL_IDLE;
	else if (p->verdict != CONTROL_HELD)
		p->pub.state = p->verdict;
	else if (why == CONTROL_HELD)
		p->pub.state = CONTROL_HELD;
	else if (p->pub.state != CONTROL_HELD || p->short_s >= INFEASIBLE_S)
		p->pub.state = CONTROL_SETTLING;
}

void control_judge(struct control *c, double dt_s)
{
	for (uint32_t i = 0; i < c->n_promises; i++)
		promise_judge(c, &c->promises[i], dt_s);
}
