/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * LatencyTarget= and its like: a percentile of a unit's reads, writes or fsyncs.
 *
 * Where the elevators of all leaves enforce a target (enforce.c), it is only judged here: it is
 * infeasible if it is missed for two seconds while they report it as unreachable, or for
 * ten. For all other targets a share is searched.
 *
 * Latency is not a rate: no share can be computed from it beforehand. So the share is
 * searched for. For the control law a target is a floor in device time: the unit
 * gets @wanted seconds per second of its leaves by weights, as for any floor.
 *
 * - While the percentile is above the goal, @wanted grows by a factor of 2.4 in a second.
 * - While it is below 80 % of the goal, @wanted shrinks by a tenth in a second, so that
 *   unneeded time goes back to the others.
 * - Between the two it stays.
 *
 * At most it is 90 % of the busiest of the leaves. On a linear volume over four disks whose data lie
 * on one of them, this is 0.9, and not 3.6.
 *
 * A step up is larger than a step down because a miss breaks the promise, while too much
 * time costs the others little, for a short time.
 *
 * Example. Two leaves, goal 5 ms; the unit used 0.04 of their time and sees 20 ms.
 *
 *	tick	P95	@wanted
 *	1	20 ms	0.04 * 1.25 + 0.01 = 0.06
 *	2	14 ms	0.085
 *	...
 *	7	4.6 ms	0.27, and stays
 *
 * Only the wait in the scheduler can be shortened. Requests of others that are at the
 * disk already are waited for; a goal below that is missed with all the time that there
 * is, and is reported as missed after two seconds.
 */

#include <math.h>

#include "control/target.h"

/* Time constant of a mean: a sample from one second ago counts for a third. */
#define COUNTS_S 0.9
/* With fewer requests there is no P95, which one request in 20 exceeds. */
#define REQUESTS_MIN 20
#define PERCENTILE_USUAL 0.95

#define GROW 1.25
#define GROW_EXTRA 0.01
#define SHRINK_PER_S 0.9
#define CALM 0.8
/* The device time in a second that a unit has at first, and at least. */
#define WANTED_MIN 0.01
#define VERDICT_S 2.0
/* The elevators of a stripe adapt to a target within this time. */
#define ENFORCED_VERDICT_S 10.0

void target_init(struct target *t, uint64_t goal_us, double percentile,
		 enum latency_op op, size_t n_leaves)
{
	*t = (struct target){
		.goal_us = goal_us,
		.percentile = percentile,
		.op = op,
		.wanted = WANTED_MIN,
		.most = CONTROL_TIME_MOST * n_leaves,
		.state = CONTROL_UNKNOWN,
	};
}

void target_inherit(struct target *t, const struct target *old)
{
	double percentile = t->percentile, most = t->most;

	*t = *old;
	t->percentile = percentile;
	t->most = most;
	t->wanted = fmin(t->wanted, most);
}

void target_limit(struct target *t, double alone)
{
	t->most = CONTROL_TIME_MOST * alone;
	t->wanted = fmin(t->wanted, t->most);
}

/* Requests of which (1 - percentile) is as many as 0.05 of REQUESTS_MIN. */
static double requests_min(const struct target *t)
{
	double min =
		REQUESTS_MIN * (1 - PERCENTILE_USUAL) / (1 - t->percentile);

	return fmax(min, REQUESTS_MIN);
}

/* The part of the counts that is kept each tick. A percentile that needs more requests than
 * come in a second keeps them for longer.
 */
static double kept(const struct target *t, double dt_s)
{
	double min = requests_min(t), all = histogram_sum(&t->counts);
	double quick = exp(-dt_s / COUNTS_S);
	double slow = exp(-dt_s / COUNTS_S * REQUESTS_MIN / min);

	if (all <= 0)
		return quick;
	return fmin(slow, fmax(quick, min / all));
}

/* A verdict waits until counts from before the last change have decayed. */
static void judge(struct target *t, double keep, double dt_s)
{
	bool is_hopeful = t->is_enforced && !t->is_unreachable;
	double limit_s = is_hopeful ? ENFORCED_VERDICT_S : VERDICT_S;
	double verdict_s = limit_s / COUNTS_S * dt_s / -log(keep);
	bool missed = t->latency_us > t->goal_us;

	if (missed && (t->is_enforced || t->wanted >= t->most))
		t->missed_s = fmin(t->missed_s + dt_s, verdict_s);
	else
		t->missed_s = fmax(t->missed_s - dt_s, 0);
	if (t->missed_s >= verdict_s)
		t->state = CONTROL_INFEASIBLE;
	else if (!missed)
		t->state = CONTROL_HELD;
	else if (t->state != CONTROL_INFEASIBLE)
		t->state = CONTROL_SETTLING;
}

void target_tick(struct target *t, const struct histogram *new, bool waits,
		 double time, enum control_state obstacle, double dt_s)
{
	double keep = kept(t, dt_s);

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		t->counts.count[i] = t->counts.count[i] * keep + new->count[i];
	histogram_add(&t->total, new);
	t->latency_us = histogram_percentile_us(&t->counts, t->percentile);
	if (obstacle != CONTROL_UNKNOWN) {
		t->state = obstacle;
		return;
	}
	if (histogram_sum(&t->counts) < requests_min(t)) {
		/* Too few completed requests for a percentile. With waiting requests, the
		 * unit may be starved.
		 */
		t->state = waits ? CONTROL_SETTLING : CONTROL_IDLE;
		if (waits && !t->is_enforced)
			t->wanted =
				fmin(t->wanted * GROW + GROW_EXTRA, t->most);
		return;
	}
	if (t->is_enforced)
		t->wanted = WANTED_MIN;
	else if (t->latency_us > t->goal_us)
		t->wanted = fmin(fmax(t->wanted, fmin(time, t->most)) * GROW +
					 GROW_EXTRA,
				 t->most);
	else if (t->latency_us < CALM * t->goal_us)
		t->wanted =
			fmax(t->wanted * pow(SHRINK_PER_S, dt_s), WANTED_MIN);
	judge(t, keep, dt_s);
}
