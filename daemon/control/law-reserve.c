/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: time that is reserved for a promise.
 *
 * A weight divides a backlog. A unit with few requests in flight has no backlog: its
 * requests wait for those that are at the device already, and it cannot use its share,
 * however large that is. On a stripe each of its requests waits for the leaf that is
 * busiest with others. For such a unit a scheduler can reserve a part of the time, in
 * windows that begin at the same moments on all leaves (kernel/sutro-window.c). The part
 * is the same on all leaves of a promise, so that in its windows the unit has its volume
 * for itself.
 *
 * A reserve begins when a unit is short of its target, although the target is granted, and
 * has missed enough of its entitlement while it had requests, or of the target itself:
 *
 *	sum over ticks of max(USABLE * busy - used, 1 - rate / target) * dt >= MISSED_S
 *
 * where "used" is the used part of its entitlement by weights, and "busy" the part of the
 * time in which it had at least one request, waiting or at a leaf. A unit that has
 * requests all of the time and can use its share has used = busy = 1. On a stripe of
 * rotational disks it may use all of that and miss its target, because its slices on the
 * disks do not fall on the same time. For a promised part of the time only the entitlement
 * counts: its target follows the costs of its requests. Until the rate is judged, half a
 * second after the unit began, only the entitlement counts as well: the weight is hardly in
 * force yet.
 *
 *	A unit that is always waiting for a single request uses 0.1 of its entitlement:
 *	it misses 0.8 of it, and its reserve begins after 0.88 s.
 *
 * A unit that had its target and loses more than half of it is no case for weights, which are
 * in force already. On a stripe, a scheduler may reserve one leaf for a unit of more weight that
 * waits at another leaf. Then the faster mean of the rate counts, up to MISSED_LOST_S.
 *
 * The reserve begins with the largest share that the floor takes of a leaf. Then it is the
 * price of the target in reserved time, as a share is its price in device time:
 *
 *	reserve = mean(reserve in force) * target / mean(rate)
 *
 * Both means begin with the reserve and decay with FOLLOW_S, so the quotient is right as
 * soon as a tick has measured the rate of its windows. It converges, because the rate is
 * X * (reserve - d) + s, where d is lost to draining and s is received in shared windows.
 * As s does not grow with the reserve, a unit below its target would have it after some
 * seconds only. So its quotient is squared, less SHORT: near the target, a square would exceed
 * it, and the rate would go up and down. It doubles in a tick at most, because requests that
 * were sent before complete first.
 * Without competitors, any reserve gives the unit all of its demand, which shows nothing. So
 * the reserve stays for CALM_S, for competitors that come and go.
 * The target is a little more than the granted part of the floor. A reserve that has
 * become small ends, and none is in force while a unit is idle. Where the demand of the
 * unit is less than the target, law-release.c finds the reserve.
 *
 *	A unit with a floor of 30 MB/s had 0.3 of the time in the last second, and
 *	received 25 MB/s. Its target is 31.8, and its reserve 0.3 * (31.8 / 25)^2 / 1.02 = 0.48.
 *
 * Time is reserved for a cgroup, so the windows serve all floors of the unit: the largest
 * of their reserves is in force. It counts as needed, together with the needs of the
 * other floors (control_need_reserves()), and others are granted no more than the rest.
 * A unit reserves at most its grant on a leaf and the part that no promise is granted.
 * The target is the whole floor, even where a part of it is granted: in shorter windows
 * a request costs more, so that a smaller target would be too expensive as well.
 *
 *	A database has a reserve of 0.6 for its reads and 0.3 for its writes. 0.6 is in
 *	force. Its writes take 0.2 by their cost, so its reads count as 0.4.
 */

#include <math.h>

#include "control/law-internal.h"

/* The whole of the time, in io.sutro.reserve. */
#define RESERVE_WHOLE 1000
#define RESERVE_MAX 0.9
/* A unit that is short with this part of the largest reserve cannot reach its floor. */
#define RESERVE_ENOUGH 0.97
/* The smallest first reserve. */
#define RESERVE_FIRST 0.2
/* A reserve aims above the floor, to have room for noise, as MARGIN of law-share.c. */
#define TARGET 1.06
/* A rate below the target by less than this is near it. */
#define SHORT 1.02
/* Time constant of the means; cycles take up to a second. */
#define FOLLOW_S 1.0
/* Part of its entitlement that a unit with requests uses, where weights help it. */
#define USABLE 0.9
/*
 * Missed entitlement before time is reserved. With a small weight, a unit has few request
 * slots, and few requests at the disk, until its weight is raised: that takes a tick, and the
 * mean of "used" follows with RATE_S of law-promise.c. So a unit with a backlog misses
 * USABLE * (0.25 s + 0.4 s) = 0.59 s, which must not begin a reserve.
 */
#define MISSED_S 0.7
/*
 * The same for a unit that had its target and now has less than this part of it: its weight is
 * in force, and noise is smaller.
 */
#define MISSED_LOST_S 0.3
#define LOST 0.5
/* A unit that is back within this time finds its reserve in force. */
#define IDLE_S 1.0
/* A unit that needs its reserve, and has this part of its target, has it with a larger one. */
#define NEARLY_ENOUGH 0.7
/* A leaf of which others use less than this part has no competitors. */
#define CONTESTED 0.02
/* For this time, a reserve stays for competitors that are away. */
#define CALM_S 4.0
/* Smallest change of a reserve in force: part of it, and part of the time. */
#define STEP 0.03
#define STEP_LEAST 0.005

static bool promise_would_use(const struct promise *p)
{
	return p->busy >= ASKS;
}

static bool promise_is_reservable(const struct control *c,
				  const struct promise *p)
{
	for (uint32_t i = 0; i < p->n_links; i++)
		if (!c->reserves[p->links[i].leaf])
			return false;
	return p->n_links && !p->pub.is_time &&
	       (!p->pub.part || control_promise_is_measured(p));
}

static double promise_first(const struct promise *p)
{
	double most = RESERVE_FIRST;

	for (uint32_t i = 0; i < p->n_links; i++)
		most = fmax(most, p->links[i].share);
	return most;
}

/* The grant of the promise and the free part of the leaf together, on the leaf with the least. */
static double promise_most(const struct control *c, const struct promise *p)
{
	double most = RESERVE_MAX;

	for (uint32_t i = 0; i < p->n_links; i++) {
		uint32_t l = p->links[i].leaf;
		double free = c->fits[l].room - cell_of(c, 0, l)->reserved;

		most = fmin(most, cell_of(c, p->pub.node, l)->promised +
					  fmax(free, 0));
	}
	return most;
}

bool control_may_reserve(const struct control *c, const struct promise *p)
{
	return promise_is_reservable(c, p) && promise_would_use(p) &&
	       !(p->released_from > 0) &&
	       p->pub.reserve < RESERVE_ENOUGH * promise_most(c, p);
}

/* ---- what it takes from others ---- */

/* Is the reserve of this promise the one in force for the unit on the leaf? */
static bool promise_reserves_most(const struct control *c, uint32_t number,
				  uint32_t leaf)
{
	const struct promise *p = &c->promises[number];

	for (uint32_t i = c->nodes[p->pub.node].promises; i != CONTROL_NONE;
	     i = c->promises[i].next) {
		double other = control_link(c, i, leaf)
				       ? c->promises[i].pub.reserve
				       : 0;

		if (other > p->pub.reserve ||
		    (other == p->pub.reserve && i < number))
			return false;
	}
	return true;
}

/* Sum of the shares or the needs of the unit's promises about other traffic. */
static double others_have(const struct control *c, const struct promise *p,
			  uint32_t leaf, bool share)
{
	double sum = 0;

	for (uint32_t i = c->nodes[p->pub.node].promises; i != CONTROL_NONE;
	     i = c->promises[i].next) {
		const struct link *k = control_link(c, i, leaf);

		if (k && c->promises[i].first == i && p->first != i)
			sum += share ? k->share : k->need;
	}
	return sum;
}

/* Raise the share and the need of a link, so that the unit has its reserve. */
static void link_reserve(const struct control *c, const struct promise *p,
			 struct link *k)
{
	double share = p->pub.reserve - others_have(c, p, k->leaf, true);
	double need = p->pub.reserve - others_have(c, p, k->leaf, false);

	k->share = fmax(k->share, share);
	k->need = fmax(k->need, need);
}

void control_need_reserves(struct control *c)
{
	for (uint32_t i = 0; i < c->n_promises; i++) {
		struct promise *p = &c->promises[i];

		for (uint32_t j = 0; j < p->n_links && p->pub.reserve > 0; j++)
			if (promise_reserves_most(c, i, p->links[j].leaf))
				link_reserve(c, p, &p->links[j]);
	}
}

/* Does a reserve begin? Not if weights suffice for the target, or the floors do not fit. */
static bool promise_begins(struct promise *p, double target, double dt_s)
{
	double missed = USABLE * p->busy - p->pub.used;
	/* One of the means above the target suffices: the first reacts sooner, the second
	 * has less noise.
	 */
	double rate = fmax(p->fast_rate, p->steady_rate);
	bool is_lost = p->is_met && p->fast_rate < LOST * target;

	if (!p->pub.part && p->running_s > 0)
		missed = fmax(missed,
			      1 - (is_lost ? p->fast_rate : rate) / target);
	if (rate >= target || !control_is_granted(&p->pub))
		p->reserve_missed_s = 0;
	else
		p->reserve_missed_s += fmax(missed, 0) * dt_s;
	p->is_met = p->running_s > 0 && (p->is_met || rate >= target);
	return p->reserve_missed_s >= (is_lost ? MISSED_LOST_S : MISSED_S);
}

static void promise_start(const struct control *c, struct promise *p)
{
	p->reserve = fmin(promise_first(p), promise_most(c, p));
	p->reserve_s = 0;
	p->reserve_mean = 0;
	p->reserve_rate = 0;
	p->released_from = 0;
	p->keep_s = 0;
}

/* Did a smaller reserve cost the unit too much lately, and is it near its target? */
static bool promise_needs_more(const struct promise *p, double target)
{
	return p->keep_s > 0 && p->steady_rate >= NEARLY_ENOUGH * target;
}

/* The reserve that gives the unit its target, by the means. */
static double promise_price(const struct promise *p, double target)
{
	double ratio = target / fmax(p->reserve_rate, 1e-9 * target);

	return p->reserve_mean * ratio * fmax(ratio / SHORT, 1);
}

/* Do other cgroups use a leaf of the unit? */
static bool promise_is_contested(const struct control *c,
				 const struct promise *p)
{
	for (uint32_t i = 0; i < p->n_links; i++) {
		uint32_t l = p->links[i].leaf;

		if (cell_of(c, 0, l)->time - cell_of(c, p->pub.node, l)->time >
		    CONTESTED)
			return true;
	}
	return false;
}

static void promise_follow(const struct control *c, struct promise *p,
			   double target, double dt_s)
{
	double reserve, a;

	p->calm_s = promise_is_contested(c, p) ? 0 : p->calm_s + dt_s;
	if (p->calm_s > 0 && p->calm_s < CALM_S && p->pub.rate >= target)
		return;
	p->reserve_s += dt_s;
	p->keep_s = fmax(p->keep_s - dt_s, 0);
	a = fmax(-expm1(-dt_s / FOLLOW_S), dt_s / p->reserve_s);
	p->reserve_mean += a * (p->pub.reserve - p->reserve_mean);
	p->reserve_rate += a * (p->pub.rate - p->reserve_rate);
	if (p->steady_rate < target && control_is_limited(p) &&
	    !promise_needs_more(p, target)) {
		reserve = control_release(p, dt_s);
	} else {
		p->released_from = 0;
		reserve = fmin(promise_price(p, target), 2 * p->reserve);
	}
	p->reserve = fmin(reserve, promise_most(c, p));
	if (p->reserve < RESERVE_LEAST)
		p->reserve = 0;
}

static void promise_reserve(const struct control *c, struct promise *p,
			    double dt_s)
{
	double target = TARGET * p->pub.floor;

	/* Nothing is granted. */
	if (!(p->pub.phi > 0)) {
		p->reserve = 0;
		return;
	}
	if (p->reserve > 0)
		promise_follow(c, p, target, dt_s);
	else if ((p->steady_rate >= target || promise_would_use(p)) &&
		 promise_begins(p, target, dt_s))
		promise_start(c, p);
}

/* Publish the reserve in steps, because each change writes a file for each leaf. The
 * reserve of an idle unit is 0.
 */
static void promise_publish(struct promise *p)
{
	double step = fmax(p->pub.reserve * STEP, STEP_LEAST);
	double reserve = p->idle_s < IDLE_S ? p->reserve : 0;

	if (!(reserve > 0) || fabs(reserve - p->pub.reserve) >= step)
		p->pub.reserve = reserve;
}

void control_reserve_all(struct control *c, double dt_s)
{
	for (uint32_t l = 0; l < c->n_leaves; l++)
		c->is_reserved[l] = false;
	for (uint32_t i = 0; i < c->n_promises; i++) {
		struct promise *p = &c->promises[i];

		if (!promise_is_reservable(c, p))
			p->reserve = 0;
		else if (!p->idle_s)
			promise_reserve(c, p, dt_s);
		promise_publish(p);
		for (uint32_t j = 0; j < p->n_links && p->pub.reserve > 0; j++)
			c->is_reserved[p->links[j].leaf] = true;
	}
}

uint32_t control_reserve(const struct control *c, uint32_t node, uint32_t leaf)
{
	double most = 0;

	for (uint32_t i = c->nodes[node].promises; i != CONTROL_NONE;
	     i = c->promises[i].next)
		if (control_link(c, i, leaf))
			most = fmax(most, c->promises[i].pub.reserve);
	return (uint32_t)lround(RESERVE_WHOLE * most);
}

double control_price(const struct control *c, uint32_t promise, uint32_t leaf)
{
	const struct link *k = control_link(c, promise, leaf);

	if (!k)
		return 0;
	return fmax(c->promises[promise].pub.reserve - k->time, 0) *
	       cell_of(c, 0, leaf)->use.backlog;
}
