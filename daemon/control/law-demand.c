/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Demand: how much of each leaf each cgroup would use if it could, by its use and its
 * waiting in the last tick.
 */

#include <math.h>

#include "control/law-internal.h"

/* Demand of a competitor that never waits: its use times this, and this much more. */
#define DEMAND_FACTOR 1.3
#define DEMAND_EXTRA 0.02
/* Demand rises at once and falls with this time constant: a short pause frees no share. */
#define DEMAND_RELEASE_S 1.0
/* A smaller share of a leaf counts as no use. */
#define USE_MIN 0.002
/* The costs of the scheduler may be wrong, and a leaf be charged for more than real time. */
#define USE_MAX 4.0
/* Upper bound of the requests in flight. */
#define PENDING_MAX 1e6
/* With requests waiting for this part of a tick, the leaf is busy. */
#define BUSY 0.9
/* Time constant and bounds of the capacity. Below the minimum a leaf does not charge all
 * of its requests.
 */
#define CAPACITY_S 2.0
#define CAPACITY_MIN 0.5
#define CAPACITY_MAX USE_MAX

/* NaN and negative values become 0. */
static double sane(double x, double high)
{
	return x > 0 ? fmin(x, high) : 0;
}

/*
 * A competitor that waits a little may be held back on another leaf of its stripe, and
 * would use more here if it got more there. So with more waiting, demand depends less on
 * use. Demand by use alone oscillates: two units without a promise that are short on
 * another leaf look satisfied here. Then the weight of the promised unit falls to nominal,
 * its rate to a fifth, and both rise again, every three seconds.
 */
static double demand_of(double time, double backlog)
{
	double use = fmin(1, DEMAND_FACTOR * time + DEMAND_EXTRA);
	double waits = fmin(1, backlog / BACKLOGGED);

	return use + (1 - use) * waits * waits;
}

static void make_sane(struct control *c)
{
	for (uint32_t n = 0; n < c->n_nodes; n++)
		for (uint32_t l = 0;
		     l < c->n_leaves && !is_dormant(&c->nodes[n]); l++) {
			struct control_use *use = &cell_of(c, n, l)->use;

			use->time = sane(use->time, USE_MAX);
			use->backlog = sane(use->backlog, 1);
			use->pending = sane(use->pending, PENDING_MAX);
			use->busy = sane(use->busy, 1);
			use->queued = sane(use->queued, 1);
		}
	for (uint32_t i = 0; i < c->n_promises; i++) {
		struct control_promise *p = &c->promises[i].pub;

		p->rate = sane(p->rate, 1e30);
		p->fraction = sane(p->fraction, 1);
	}
}

static void follow(struct demand *a, double time, double backlog, double dt_s,
		   double release)
{
	double now = demand_of(time, backlog);
	bool waits = backlog > WAITING, uses = time > USE_MIN;

	a->demand = fmax(now, a->demand + release * (now - a->demand));
	a->calm_s = waits ? 0 : fminf(a->calm_s + (float)dt_s, LONG_AGO_S);
	a->idle_s = waits || uses ? 0
				  : fminf(a->idle_s + (float)dt_s, LONG_AGO_S);
	if (a->idle_s >= LONG_AGO_S)
		a->demand = now;
}

/*
 * The capacity of a leaf is the device time that is charged per second while it is busy.
 * It should be one second. But the costs of flash are learnt per class of requests and can
 * be wrong for a mix, and weights divide the charged time.
 *
 * Where time is reserved, others wait for a leaf that has some to spare, so less than a
 * second is no news there. More than a second is always an error of the costs.
 */
static void observe_capacity(struct control *c, double dt_s)
{
	double a = -expm1(-dt_s / CAPACITY_S);

	for (uint32_t l = 0; l < c->n_leaves; l++) {
		struct control_use *use = &cell_of(c, 0, l)->use;
		double time = fmin(use->time, CAPACITY_MAX);

		c->charged[l] += a * (time - c->charged[l]);
		if (!c->is_reserved[l]) {
			if (use->backlog >= BUSY && use->time >= CAPACITY_MIN)
				c->capacity[l] += a * (time - c->capacity[l]);
		} else if (c->capacity[l] > 1 || c->charged[l] > 1) {
			c->capacity[l] +=
				a * (fmax(c->charged[l], 1) - c->capacity[l]);
		}
	}
}

static void observe_node(struct control *c, uint32_t n, double dt_s,
			 double release)
{
	const struct node *node = &c->nodes[n];
	bool rests = n && !node->n_awake && node->promises == CONTROL_NONE;

	if (is_dormant(node))
		return;
	for (uint32_t l = 0; l < c->n_leaves; l++) {
		struct cell *cell = cell_of(c, n, l);

		cell->time = cell->use.time / c->capacity[l];
		cell->own_time = cell->time;
		cell->rivals = 0;
		cell->margin = 1;
		follow(&cell->all, cell->time, cell->use.backlog, dt_s,
		       release);
		rests &= cell->use.time <= 0 &&
			 cell->all.calm_s >= LONG_AGO_S &&
			 cell->all.idle_s >= LONG_AGO_S;
	}
	if (rests)
		control_rest(c, n);
}

/* The times of a cgroup include those of the cgroups below it. */
static void observe_cgroups(struct control *c, double dt_s)
{
	double release = -expm1(-dt_s / DEMAND_RELEASE_S);

	for (uint32_t n = 0; n < c->n_nodes; n++)
		observe_node(c, n, dt_s, release);
	for (uint32_t n = 1; n < c->n_nodes; n++) {
		uint32_t parent = c->nodes[n].parent;

		if (!c->nodes[parent].steered || is_dormant(&c->nodes[n]))
			continue;
		for (uint32_t l = 0; l < c->n_leaves; l++) {
			struct cell *cell = cell_of(c, n, l);
			struct cell *above = cell_of(c, parent, l);

			above->own_time -= cell->time;
			above->rivals +=
				weight_of(c, n, l)->in_force * cell->use.queued;
			if (!cell->is_promised && is_active(&cell->all))
				above->margin = 1 / (1 - RESIDUAL);
		}
	}
}

/*
 * A cgroup's own requests beside its children's. Their waiting is not measured apart from
 * the children's: if the cgroup has own requests, its backlog counts as theirs. A backlog
 * that is too large does no harm: it makes lambda smaller, and unused time is divided
 * among all competitors by weight.
 */
static void observe_own(struct control *c, double dt_s)
{
	double release = -expm1(-dt_s / DEMAND_RELEASE_S);

	for (uint32_t n = 0; n < c->n_nodes; n++) {
		if (!c->nodes[n].steered)
			continue;
		for (uint32_t l = 0; l < c->n_leaves; l++) {
			struct cell *cell = cell_of(c, n, l);
			double time = fmax(cell->own_time, 0);
			double backlog = time > USE_MIN ? cell->use.backlog : 0;

			follow(&cell->own, time, backlog, dt_s, release);
			cell->rivals += OWN_WEIGHT * backlog;
			if (is_active(&cell->own))
				cell->margin = 1 / (1 - RESIDUAL);
		}
	}
}

void control_observe(struct control *c, double dt_s)
{
	make_sane(c);
	observe_capacity(c, dt_s);
	observe_cgroups(c, dt_s);
	observe_own(c, dt_s);
}
