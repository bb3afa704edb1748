/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: the need of each promise.
 *
 * Of each promise, each tick, from the rate R at its logical device and the device
 * time T of its cgroup on each leaf, of which a part @fraction is this promise's:
 *
 *	cost = smooth(fraction * T) / smooth(R)
 *	share = floor * cost * others
 *	need = min(share, demand)
 *
 * Both means decay with the same time constant, so the quotient is right after the
 * first tick with traffic, and does not change without traffic. "others" is above 1
 * where other traffic of the unit takes a part of its share: the elevator divides among
 * cgroups, not within.
 *
 * A promise may be a part of its leaves' time, "30 % of the device". Its floor is then
 * the rate of requests like the unit's own that this part allows,
 *
 *	floor = part / largest cost
 *
 * so that its share of the worst leaf is the part at any cost of its requests, and the
 * floor follows the mean of the costs. Until a cost is known no floor can be missed,
 * and the share is the part on each leaf.
 *
 * The gain is a sum of two terms. The first grows by 0.4 per second and missing part of
 * the floor. The second is 1.5 times the missing part. The gain corrects errors of the
 * elevator of some percent. It does not grow while
 *
 *	the unit has no demand: nothing waits on any leaf, or
 *	it cannot use its share: it uses less than half of its entitlement, or
 *	the floors do not fit: a larger share of one is a smaller share of another
 *
 * because in these three cases the correction would wind up.
 */

#include <math.h>

#include "control/law-internal.h"

/* Time constant of costs: 1 s finds an overload too late (2.25 s), 0.3 s follows noise. */
#define COST_S 0.6
/* A slower mean, for the trend of traffic that moves from leaf to leaf. */
#define COST_SLOW 2.5
/* Smoothing of the rate by which an overload is found. */
#define RATE_S 0.4
/* Smoothing of the rate that the gain corrects and that decides whether a floor is held. On
 * a hdd with several streams a turn of all of them takes a second, and a part of a turn is
 * no measure.
 */
#define RATE_STEADY_S 1.0
/* More than this many times the floor does not count for later ticks. A unit that reads a hdd in
 * order has 50 times a floor for small reads: with all of that, its mean would be above the floor
 * for 4 s after it began to read at random. With 1.5, the means of few requests on a hdd are too
 * low, and one floor of ten beside a heavy unit has 0.94 instead of 0.95.
 */
#define SURPLUS_MOST 2.0
/* A cost that rose by more than exp(0.2), and by more than the random error of so few
 * requests (twice 1 / sqrt(n), as the costs of a hdd differ), is followed faster. A cost
 * that rose by exp(0.3) more than that is followed almost at once. A cost that fell does
 * no harm meanwhile.
 */
#define JUMP_FROM 0.2
#define JUMP_CHANCE 2.0
#define JUMP_WIDTH 0.3
#define JUMP_MOST 0.85
#define JUMP_IOS 10
/* The assumed share of a unit that waits and is not served: half of the leaves, evenly. */
#define SHARE_UNKNOWN 0.5
/* The floor of a part whose cost is unknown: any rate is above it. */
#define FLOOR_UNKNOWN 1.0
/* Upper bound of the correction for a unit's other traffic. */
#define OTHERS_MAX 4.0
/* The correction ends when the rate exceeds the floor by more than the margin. A rate at
 * the floor depends on the correction, and would fall without it.
 */
#define OTHERS_UNTIL 1.1
/* With gains three times as large the loop begins to oscillate. */
#define GAIN_P 1.5
#define GAIN_P_MOST 0.3
#define GAIN_I_PER_S 0.4
#define GAIN_MAX 1.6
/* A gain that no longer helps decays with this time constant. */
#define GAIN_RELEASE_S 3.0
/* The rate before the first weights are in force, and of requests that were in flight then,
 * does not count as a miss.
 */
#define BEGIN_S 0.5
/* A unit that has just begun has few requests in flight. */
#define GAIN_FROM_S 0.6
/* A unit that uses this part of a leaf uses all of it. */
#define ALL_OF_IT 0.85
/* Mean number of requests in flight over 1 s of a unit that always has one. */
#define NEVER_WITHOUT 0.9
/* With less use of its entitlement than this, a larger share would not help the unit. */
#define LIMITED_BELOW 0.5
/* A smaller granted part of the floor counts as a cut. */
#define GRANTED_FROM 0.97
#define CHARGED_S 1.0
/* Weight of a tick in the mean of requests in flight when a unit begins. */
#define PENDING_FIRST 0.5
/* A smaller part of the floor counts as no rate. */
#define RATE_NOTHING 1e-6

static double smooth(double old, double now, double a)
{
	return old + a * (now - old);
}

/* Weight of a tick in a mean over a time. */
static double tick_part(double dt_s, double mean_s)
{
	return -expm1(-dt_s / mean_s);
}

void control_promise_init(struct promise *p)
{
	uint32_t n = p->n_links ?: 1;

	if (p->pub.part)
		p->pub.floor = FLOOR_UNKNOWN;
	for (uint32_t i = 0; i < p->n_links; i++) {
		p->links[i].share = p->pub.part;
		p->links[i].cost_s =
			p->pub.part ? 0 : SHARE_UNKNOWN / n / p->pub.floor;
	}
	p->pub.state = CONTROL_UNKNOWN;
	p->pub.phi = 1;
	p->pub.bottleneck = CONTROL_NONE;
	p->pub.gain = 1;
	p->push = 1;
	p->running_s = -BEGIN_S;
	p->verdict = CONTROL_HELD;
}

static struct cell *cell_of_link(const struct control *c,
				 const struct promise *p, const struct link *k)
{
	return cell_of(c, p->pub.node, k->leaf);
}

/* ---- cost ---- */

/* The cost on the leaf that limits the unit when it is alone. */
double control_cost_most(const struct promise *p)
{
	double most = 0;

	for (uint32_t i = 0; i < p->n_links; i++)
		most = fmax(most, p->links[i].cost_s);
	return most;
}

bool control_promise_is_measured(const struct promise *p)
{
	return p->is_known && control_cost_most(p) > 0;
}

void control_follow_part(struct promise *p)
{
	if (p->pub.part && control_promise_is_measured(p))
		p->pub.floor = p->pub.part / control_cost_most(p);
}

/* The weight of a tick in the means: larger when the cost has risen significantly. */
static double promise_learning(const struct control *c, const struct promise *p,
			       double dt_s)
{
	double a = tick_part(dt_s, COST_S), now = 0, known = 0, rise;
	uint64_t ios = 0;

	for (uint32_t i = 0; i < p->n_links; i++) {
		const struct cell *cell = cell_of_link(c, p, &p->links[i]);

		now += cell->time * p->pub.fraction;
		known += p->links[i].time;
		ios += cell->use.ios;
	}
	if (ios < JUMP_IOS || !(p->pub.rate > 0) || !(known > 0) ||
	    !(p->smooth_rate > 0))
		return a;
	rise = log(now / p->pub.rate / (known / p->smooth_rate)) - JUMP_FROM -
	       JUMP_CHANCE / sqrt((double)ios);
	if (rise > 0)
		a = fmax(a, fmin(JUMP_MOST, rise / JUMP_WIDTH));
	return a;
}

/*
 * Traffic may move from leaf to leaf as the unit goes from one place to another. The cost
 * of a leaf whose part grows is extrapolated, by the difference from the slower mean.
 */
static void promise_lead(struct promise *p)
{
	double sum = 0, slow_sum = 0;

	for (uint32_t i = 0; i < p->n_links; i++) {
		sum += control_cost_bounded(p, &p->links[i]);
		slow_sum += p->links[i].slow_time;
	}
	if (!(sum > 0) || !(slow_sum > 0))
		return;
	for (uint32_t i = 0; i < p->n_links; i++) {
		struct link *k = &p->links[i];
		double part = control_cost_bounded(p, k) / sum;

		k->cost_s += sum * fmax(0, part - k->slow_time / slow_sum);
	}
}

static void promise_learn(struct control *c, struct promise *p, double dt_s)
{
	double a = promise_learning(c, p, dt_s), slow = a / COST_SLOW;

	p->smooth_rate = smooth(p->smooth_rate, p->pub.rate, a);
	p->slow_rate = smooth(p->slow_rate, p->pub.rate, slow);
	for (uint32_t i = 0; i < p->n_links; i++) {
		struct link *k = &p->links[i];
		double time = cell_of_link(c, p, k)->time * p->pub.fraction;

		k->time = smooth(k->time, time, a);
		k->slow_time = smooth(k->slow_time, time, slow);
	}
	if (!(p->smooth_rate > RATE_NOTHING * p->pub.floor))
		return;
	p->is_known = true;
	for (uint32_t i = 0; i < p->n_links; i++) {
		struct link *k = &p->links[i];

		k->cost_s = k->time / p->smooth_rate;
		/* The floor of a part, and that of a target, follow the cost. */
		if (p->pub.part || p->pub.is_time)
			k->cost_s = control_cost_bounded(p, k);
	}
	if (p->pub.wandering)
		promise_lead(p);
	control_follow_part(p);
}

/* ---- need ---- */

/*
 * A unit has demand if it waits, or if it uses all of a leaf, with all its requests at the
 * disk. It also has demand if it always has a request: waits in the queue of the drive are
 * not seen.
 */
bool control_has_demand(const struct promise *p)
{
	return p->pub.backlog > BACKLOGGED || p->most >= ALL_OF_IT ||
	       p->pending >= NEVER_WITHOUT;
}

/* The factor by which a promise needs more than its own share; see above. */
double control_others(const struct control *c, const struct promise *p)
{
	double part = c->nodes[p->pub.node].fraction;

	if (!(part > 0) || part >= 1 || !control_has_demand(p) ||
	    p->steady_rate >= OTHERS_UNTIL * p->pub.floor)
		return 1;
	return fmax(1, fmin(1 / part, OTHERS_MAX * part));
}

/*
 * A rate whose cost is unknown needs nothing until the unit has waited for a while
 * without a completed request: only then is a guess better than its nominal weight. With a
 * guess that stands by, each start of a unit would take half of the leaves from the floors
 * of others, and one tick measures the need of the floor.
 */
static bool promise_awaits_cost(const struct promise *p)
{
	return !p->is_known && !p->pub.part && p->running_s <= 0;
}

/* Do requests of the unit wait, but none of this promise has completed for a long time? */
static bool promise_is_elsewhere(const struct promise *p)
{
	return p->idle_s >= ACTIVE_S && !(p->pub.fraction > 0);
}

static void promise_need(struct control *c, struct promise *p)
{
	double most = p->pub.is_time ? CONTROL_TIME_MOST : SHARE_MAX;
	bool guessed = p->pub.part && !control_promise_is_measured(p);
	double others = promise_awaits_cost(p) ? 0 : control_others(c, p);

	for (uint32_t i = 0; i < p->n_links; i++) {
		struct link *k = &p->links[i];
		double demand = cell_of_link(c, p, k)->all.demand;

		k->share =
			guessed ? p->pub.part
				: fmin(p->pub.floor * k->cost_s * others, most);
		k->need = demand < 1 ? fmin(k->share, demand) : k->share;
		k->in_flight = fmin(others * law_share_in_flight(c, p, k),
				    fmin(demand, most));
		if (!guessed && promise_is_elsewhere(p))
			k->need = k->in_flight = 0;
	}
}

/* The needs with unlimited demand. */
void control_need_all(struct control *c)
{
	for (uint32_t i = 0; i < c->n_promises; i++) {
		struct promise *p = &c->promises[i];

		for (uint32_t j = 0; j < p->n_links; j++) {
			struct link *k = &p->links[j];

			cell_of_link(c, p, k)->all.demand = 1;
			if (!p->is_known)
				k->cost_s = 0;
		}
		promise_need(c, p);
	}
	control_need_reserves(c);
}

bool control_is_granted(const struct control_promise *p)
{
	return p->phi >= GRANTED_FROM;
}

/* ---- entitlement ---- */

/* The share of a cgroup with full demand, by the weights in force. */
static double entitlement(const struct control *c, uint32_t node, uint32_t leaf)
{
	double part = 1;

	for (uint32_t n = node; n; n = c->nodes[n].parent) {
		double weight = weight_of(c, n, leaf)->in_force;
		double others = cell_of(c, c->nodes[n].parent, leaf)->rivals -
				weight * cell_of(c, n, leaf)->use.queued;

		part *= weight / (weight + fmax(others, 0));
	}
	return part;
}

/* The former rate of a unit that has just begun does not count. */
static double rate_part(const struct promise *p, double dt_s, double mean_s)
{
	double a = tick_part(dt_s, mean_s);

	return p->running_s > 0 ? fmax(a, fmin(dt_s / p->running_s, 1)) : a;
}

/* The mean over a time, to which a former surplus adds no more than SURPLUS_MOST. */
static double mean_rate(const struct promise *p, double mean, double dt_s,
			double mean_s)
{
	return smooth(fmin(mean, SURPLUS_MOST * p->pub.floor), p->pub.rate,
		      rate_part(p, dt_s, mean_s));
}

static void promise_look(struct control *c, struct promise *p, double dt_s)
{
	double a = tick_part(dt_s, RATE_S), b = tick_part(dt_s, CHARGED_S);
	double backlog = 0, used = 0, charged = 0, ios = 0, most = 0;
	double pending = 0, busy = 0;

	for (uint32_t i = 0; i < p->n_links; i++) {
		const struct link *k = &p->links[i];
		const struct cell *cell = cell_of_link(c, p, k);

		backlog = fmax(backlog, cell->use.backlog);
		most = fmax(most, cell->time);
		pending += cell->use.pending;
		busy += cell->use.busy;
		charged += cell->time * p->pub.fraction;
		ios += (double)cell->use.ios;
		if (k->share > SHARE_TELLING)
			used = fmax(used,
				    cell->time / entitlement(c, p->pub.node,
							     k->leaf));
	}
	p->pub.backlog = smooth(p->pub.backlog, backlog, a);
	/* More than twice the entitlement counts as twice. */
	p->pub.used =
		smooth(p->pub.used, fmin(used, 2), rate_part(p, dt_s, RATE_S));
	p->most = smooth(p->most, most, a);
	p->pending = smooth(p->pending, pending,
			    p->running_s > 0 ? b : PENDING_FIRST);
	p->busy = fmin(busy, 1);
	p->charged = smooth(p->charged, charged, b);
	p->ios = smooth(p->ios, ios / dt_s, b);
	/* If only other requests of the unit complete, the waiting ones may be others, too. */
	if (p->pub.rate > RATE_NOTHING * p->pub.floor ||
	    (fmax(backlog, pending) > WAITING && p->pub.fraction > 0)) {
		p->running_s += dt_s;
		p->idle_s = 0;
	} else {
		p->running_s = p->is_known ? 0 : -BEGIN_S;
		p->idle_s += dt_s;
	}
	p->fast_rate = mean_rate(p, p->fast_rate, dt_s, RATE_S);
	p->steady_rate = mean_rate(p, p->steady_rate, dt_s, RATE_STEADY_S);
}

/* ---- gain ---- */

static void promise_gain(struct promise *p, double dt_s)
{
	double missing = clampd(1 - p->steady_rate / p->pub.floor, -1, 1);
	bool limited = !control_has_demand(p) || p->pub.used < LIMITED_BELOW;
	double gain = p->pub.gain;

	p->push = gain;
	if (limited) {
		/* As an exponential: a late tick must not take it below 1. */
		p->pub.gain = smooth(gain, 1, tick_part(dt_s, GAIN_RELEASE_S));
		p->push = p->pub.gain;
		return;
	}
	if (p->running_s < GAIN_FROM_S || !control_is_granted(&p->pub))
		return;
	gain += GAIN_I_PER_S * fmin(dt_s, 1) * missing;
	p->pub.gain = clampd(gain, 1, GAIN_MAX);
	p->push = clampd(p->pub.gain + GAIN_P * clampd(missing, 0, GAIN_P_MOST),
			 1, GAIN_MAX);
}

void control_measure(struct control *c, double dt_s)
{
	for (uint32_t i = 0; i < c->n_promises; i++)
		c->nodes[c->promises[i].pub.node].fraction = 0;
	for (uint32_t i = 0; i < c->n_promises; i++) {
		struct promise *p = &c->promises[i];

		if (p->first == i)
			c->nodes[p->pub.node].fraction += p->pub.fraction;
	}
	for (uint32_t i = 0; i < c->n_promises; i++) {
		struct promise *p = &c->promises[i];

		promise_look(c, p, dt_s);
		if (!p->idle_s) {
			promise_learn(c, p, dt_s);
			promise_gain(p, dt_s);
		}
		promise_need(c, p);
	}
	control_need_reserves(c);
}
