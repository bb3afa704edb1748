/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: reserved time that a unit cannot use.
 *
 * A floor may exceed the demand of its unit: the unit sends one small request at a time,
 * or rests between requests. No reserve then gives the unit its target (law-reserve.c),
 * and the largest one takes the time of all others. The share of the unit includes its
 * reserve, so its weight rises, too.
 *
 * The demand of a unit that misses its target is the cause, not its reserve, if
 *
 *	it had no request for more than half of the tick, or of the last second, or
 *	its verdict is "limited": it was short with the largest reserve for 2 s
 *
 * Such a reserve decays with RELEASE_S, down to the least one. That one is enough where
 * the scheduler protects the unit: it does so for any unit with a reserve
 * (kernel/sutro-protect.c). Elsewhere the requests of the unit take longer, which costs it a
 * part of its rate:
 *
 *	latency = requests in flight / requests per second	(both smoothed, 1 s)
 *	loss = min(requests in flight, 1) * (1 - shortest latency / latency)
 *
 * A unit that rests loses little: its latency is a small part of the time between two
 * requests. Above LOSS_MAX, the reserve doubles each tick. When it is as large as before,
 * the unit needs it, and no smaller one is tried for KEEP_S. Meanwhile it follows the target again
 * if the unit is near that (law-reserve.c).
 *
 *	A log sends four writes and rests for 20 ms. With the reserve from which the trial began, it
 *	has 0.85 of a floor of 0.9 of its rate alone. With a larger one it has all of it.
 *
 *	A reader of 4 KiB has 11.4 MB/s alone, and a floor of 40 MB/s. With 0.9 of the time
 *	it receives 11.0 MB/s, and is limited. 15 s later its reserve is 0.02, and it
 *	receives 10.8 MB/s: its loss is 0.02. A reader of weight 1000 beside it has 0.93
 *	of its rate alone; it had 0.08.
 *
 *	A reader of 4 KiB on a stripe, beside large writes, receives 4.9 MB/s with 0.9 of
 *	the time, which is less than its floor. One second after the release began, its
 *	reserve is 0.7, and its loss 0.08: 0.9 are reserved again.
 */

#include <math.h>

#include "control/law-internal.h"

/* The first mean latencies include requests that waited without a reserve. */
#define SETTLED_S 3.0
/* After four times this, others have their rates. With 3 s, a unit that needs its reserve
 * loses more until that is known.
 */
#define RELEASE_S 4.0
/* The loss of a protected unit varies by 0.075 within a cycle of a second. */
#define LOSS_MAX 0.08
/* A unit that needs its reserve loses 1 % of its rate to a trial in this time. */
#define KEEP_S 30.0

bool control_is_limited(const struct promise *p)
{
	return fmin(p->busy, p->pending) < ASKS ||
	       p->verdict == CONTROL_LIMITED;
}

/* The part of its rate that the unit loses because its requests take longer than they did. */
static double promise_loss(struct promise *p, double latency_s)
{
	p->latency_s = fmin(p->latency_s, latency_s);
	return fmin(p->pending, 1) * (1 - p->latency_s / latency_s);
}

static double promise_take_back(struct promise *p)
{
	double reserve = fmin(2 * p->reserve, p->released_from);

	if (reserve >= p->released_from) {
		p->released_from = 0;
		p->keep_s = KEEP_S;
	}
	return reserve;
}

double control_release(struct promise *p, double dt_s)
{
	double latency_s = p->ios > 0 ? p->pending / p->ios : 0;

	if (p->keep_s > 0 || p->reserve_s < SETTLED_S || !(latency_s > 0))
		return p->reserve;
	if (!(p->released_from > 0)) {
		p->released_from = p->reserve;
		p->latency_s = latency_s;
	}
	if (promise_loss(p, latency_s) > LOSS_MAX)
		return promise_take_back(p);
	return fmax(p->reserve * exp(-dt_s / RELEASE_S), RESERVE_LEAST);
}
