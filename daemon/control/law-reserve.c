/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: time that is reserved for a promise.
 *
 * A weight divides a backlog. A unit with few requests on their way has none, and what
 * its requests wait for is at the device already: it cannot use its share, however
 * large that is. On a stripe each of its requests waits for the leaf that is busiest
 * with others. For such a unit a scheduler can reserve a part of the time, in windows
 * that begin at the same moments on all leaves (kernel/sutro-window.c). The part is the
 * same on all leaves of a promise, so that in its windows the unit has its volume for
 * itself.
 *
 * A reserve begins when a unit with few requests on their way, which uses little of its
 * share, was short of its floor for SHORT_S although that was granted. It begins with the
 * largest share that the floor takes of a leaf. Then it follows
 *
 *	d(log reserve) / dt = log(target / rate) / T
 *
 * with T = RISE_S below the target and FALL_S above it, for the rate is nearly
 * proportional to the reserve. The target is a little more than what is granted of the
 * floor. A reserve that has become small ends, and none is in force while a unit is idle.
 *
 *	A unit with a floor of 30 MB/s has 0.3 of the time, and receives 20 MB/s. Its
 *	target is 31.8: log(31.8 / 20) = 0.46, so in a tick of 250 ms the reserve grows
 *	by a factor of exp(0.46 * 0.25 / 0.8) = 1.15, to 0.35.
 *
 * What is reserved counts as needed (control_measure()), so that others are granted no
 * more than the rest, and a promise never reserves more than it is granted.
 */

#include <math.h>

#include "control/law-internal.h"

/* The whole of the time, in io.sutro.reserve. */
#define RESERVE_WHOLE 1000
/* A unit that gets all of this and is short cannot reach its floor. */
#define RESERVE_MAX 0.9
#define RESERVE_ENOUGH 0.88
/* Less is not worth a window. */
#define RESERVE_LEAST 0.02
#define RESERVE_FIRST_LEAST 0.2
#define RESERVE_FIRST_MOST 0.5
/* Against noise, as MARGIN of law-share.c. */
#define TARGET 1.06
/* Short of the target by less, or above it by less, changes nothing. */
#define CLOSE 0.02
#define RISE_S 0.8
#define FALL_S 2.0
/* Uses less than this part of its entitlement: its weight does not help. */
#define USES_LITTLE 0.7
/* A larger error says no more. */
#define ERROR_MOST 1.0
/* Requests on their way to each leaf, with which a unit can have a backlog. */
#define FEW 12
/* Has that many requests on their way: it would use more. */
#define ASKS 0.5
/* A unit that is back within this time finds its reserve in force. */
#define IDLE_S 1.0
/* What is in force changes by this part of it, or of the time. */
#define STEP 0.03
#define STEP_LEAST 0.005
/* Less tells nothing of how many requests it has. */
#define RUNNING_S 0.5
/*
 * It is short for so long before anything is reserved for it: with a small weight, a unit
 * has few request slots, and few requests at the disk, until its weight is raised.
 */
#define SHORT_S 2.0

/* It would use more. */
static bool promise_would_use(const struct promise *p)
{
	return p->pending >= ASKS || p->pub.backlog >= ASKS;
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

bool control_may_reserve(const struct control *c, const struct promise *p)
{
	return promise_is_reservable(c, p) && promise_would_use(p) &&
	       p->pub.reserve < RESERVE_ENOUGH;
}

static double promise_first(const struct promise *p)
{
	double most = 0;

	for (uint32_t i = 0; i < p->n_links; i++)
		most = fmax(most, p->links[i].share);
	return clampd(most, RESERVE_FIRST_LEAST, RESERVE_FIRST_MOST);
}

/* A leaf that is full has no more than it grants. */
static double promise_most(const struct promise *p)
{
	double most = RESERVE_MAX;

	for (uint32_t i = 0; i < p->n_links; i++)
		if (p->links[i].grant < p->links[i].need)
			most = fmin(most, p->links[i].grant);
	return most;
}

/*
 * A unit with many requests is helped by its weight; where floors do not fit, by nothing.
 * One with half of the requests that it had is about to end.
 */
static bool promise_begins(struct promise *p, double error, double dt_s)
{
	bool needs = error > 0 && p->pub.used < USES_LITTLE &&
		     p->pending < FEW * p->n_links &&
		     p->pending > p->pending_most / 2 &&
		     p->running_s >= RUNNING_S && control_is_granted(&p->pub);

	p->reserve_short_s = needs ? p->reserve_short_s + dt_s : 0;
	return p->reserve_short_s >= SHORT_S;
}

static void promise_follow(struct promise *p, double error, double dt_s)
{
	double follow_s = error > 0 ? RISE_S : FALL_S;

	p->reserve *= exp(error * fmin(dt_s / follow_s, 1));
	p->reserve = fmin(p->reserve, promise_most(p));
	if (p->reserve < RESERVE_LEAST)
		p->reserve = 0;
}

static void promise_reserve(struct promise *p, double dt_s)
{
	double target = TARGET * p->pub.floor * fmin(p->pub.phi, 1);
	double error;

	/* Nothing is granted. */
	if (!(target > 0)) {
		p->reserve = 0;
		return;
	}
	error = log(target / fmax(p->steady_rate, 1e-9 * target));
	error = clampd(error, -ERROR_MOST, ERROR_MOST);
	if (fabs(error) < CLOSE || (error > 0 && !promise_would_use(p)))
		return;
	if (p->reserve > 0)
		promise_follow(p, error, dt_s);
	else if (promise_begins(p, error, dt_s))
		p->reserve = promise_first(p);
}

/* In steps, for each is written to a file of each leaf; nothing for a unit that is idle. */
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
			promise_reserve(p, dt_s);
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
