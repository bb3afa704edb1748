/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * LatencyTarget=: the P95 of a unit's reads.
 *
 * Latency is not a rate: no share can be worked out from it beforehand. So the share
 * is searched for. To the control law a target is a floor in device time: the unit
 * gets @wanted seconds per second of its leaves, which weights can do as for any
 * floor. While the P95 is above the goal that grows, in a second to 2.4 times what it
 * was; while it is below 80 % of it, it shrinks by a tenth in a second, so that what
 * is not needed goes back to the others; between the two it stays. A step up is
 * larger than one down because a miss hurts the one who was promised something, and
 * too much hurts only a little for a little while.
 *
 * Example. Two leaves, goal 5 ms; the unit used 0.04 of their time and sees 20 ms.
 *
 *	tick	P95	wanted
 *	1	20 ms	0.04 * 1.25 + 0.01 = 0.06
 *	2	14 ms	0.085
 *	...
 *	7	4.6 ms	0.29, and stays
 *
 * Only the wait in the scheduler can be shortened. What others have at the disk
 * already is waited for; a goal below that is missed with all there is, which is said
 * after two seconds.
 */

#include <math.h>

#include "control/target.h"

/* The mean that a second ago counts for a third in. */
#define COUNTS_S 0.9
/* Fewer reads than that in it say nothing about a 20th. */
#define READS_MIN 20

#define GROW 1.25
#define GROW_EXTRA 0.01
#define SHRINK_PER_S 0.9
#define CALM 0.8
/* A unit that has nothing begins with this. */
#define WANTED_MIN 0.01
/* Of each leaf; the others must live, too. */
#define WANTED_MOST 0.9
#define VERDICT_S 2.0

void target_init(struct target *t, uint64_t goal_us, size_t n_leaves)
{
	*t = (struct target){
		.goal_us = goal_us,
		.wanted = WANTED_MIN,
		.most = WANTED_MOST * n_leaves,
		.state = CONTROL_UNKNOWN,
	};
}

static double bucket_end_us(size_t i)
{
	/* As in io.sutro.stat: 2^14 ns, 1.5 * 2^14, 2^15 ... */
	return ldexp(i % 2 ? 1.5 : 1, 14 + i / 2) / 1000;
}

static double percentile_us(const double *counts, double part, double *ret_all)
{
	double all = 0, sum = 0;

	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		all += counts[i];
	*ret_all = all;
	for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
		double begin_us = i ? bucket_end_us(i - 1) : 0;

		if (all > 0 && sum + counts[i] >= part * all)
			return begin_us + (bucket_end_us(i) - begin_us) *
						  (part * all - sum) /
						  counts[i];
		sum += counts[i];
	}
	return 0;
}

static void judge(struct target *t, double dt_s)
{
	bool missed = t->p95_us > t->goal_us;

	if (missed && t->wanted >= t->most)
		t->missed_s = fmin(t->missed_s + dt_s, VERDICT_S);
	else
		t->missed_s = fmax(t->missed_s - dt_s, 0);
	if (t->missed_s >= VERDICT_S)
		t->state = CONTROL_INFEASIBLE;
	else if (!missed)
		t->state = CONTROL_HELD;
	else if (t->state != CONTROL_INFEASIBLE)
		t->state = CONTROL_SETTLING;
}

void target_tick(struct target *t, const struct latencies *new, bool waits,
		 double time, bool measured, double dt_s)
{
	double keep = exp(-dt_s / COUNTS_S), reads;

	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		t->counts[i] = t->counts[i] * keep + new->count[i];
	t->p95_us = percentile_us(t->counts, 0.95, &reads);
	if (!measured) {
		t->state = CONTROL_UNWEIGHTED;
		return;
	}
	if (reads < READS_MIN) {
		/* Too few to say, or none that are done: it may be starved. */
		t->state = waits ? CONTROL_SETTLING : CONTROL_IDLE;
		if (waits)
			t->wanted =
				fmin(t->wanted * GROW + GROW_EXTRA, t->most);
		return;
	}
	if (t->p95_us > t->goal_us)
		t->wanted = fmin(fmax(t->wanted, fmin(time, t->most)) * GROW +
					 GROW_EXTRA,
				 t->most);
	else if (t->p95_us < CALM * t->goal_us)
		t->wanted =
			fmax(t->wanted * pow(SHRINK_PER_S, dt_s), WANTED_MIN);
	judge(t, dt_s);
}
