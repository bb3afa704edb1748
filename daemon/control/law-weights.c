/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: from grants to weights.
 *
 * From the root down, on each leaf: the children of a cgroup, and its own requests as
 * one more child, divide its share X. lambda, the worth of a weight of 1, is where
 *
 *	sigma_i = min(demand_i, max(reserved_i, least, lambda * nominal_i))
 *
 * adds up to X over the active competitors. If their demand adds up to less than X, none
 * will be short, and demand is left out. Weights are sigma / lambda, which without a
 * promise is the nominal weight: the weights of systemd stay in the files. A promised
 * cgroup has max(nominal, reserved / lambda).
 *
 *	X = 1. a (weight 100) has 0.5 reserved, b (100) and c (300) are backlogged,
 *	d (100) is too, but uses 0.05 at most.
 *	lambda * (100 + 300) + 0.05 = 0.5: lambda = 0.001125. a's weight is 444.
 *	444 / (444 + 100 + 300 + the use of d) is 0.5 of the leaf.
 *
 * A promised cgroup that is idle, or has less demand than its floor, needs its share x at
 * the moment when its demand returns. The same holds for a promised cgroup that is alone,
 * at the moment when competitors return. So its weight is at least
 *
 *	x / (1 - x) * (sum of the others' sigma / lambda + weights of absent competitors)
 *
 * which takes nothing from others: a cgroup without demand takes no part above. A
 * competitor is absent if it waited within the last 10 s, but does not wait now.
 *
 * Where a ratio does not fit into 1..10000, all weights of the level are shrunk
 * together, also those without a promise. This is done only when the ratio has not
 * fitted for 1 s: a temporary gain must not change weights of others. Steps are a tenth,
 * and the last two are kept for a while, so that weights do not follow each small change
 * of lambda. A change of less than 3 % is not made: it is less than the margin, and with
 * 1 % there are twice as many writes.
 *
 * While only the one promised cgroup of a level waits, the level has its nominal weights.
 */

#include <math.h>

#include "control/law-internal.h"

/* Part of a level, divided by the active competitors: the least for a promised cgroup. */
#define LEAST 0.01
/* Upper bound of the part of a level for a weight that stands by. */
#define STANDING_MAX 0.9
/* Weights stay under control for this long after the last wait. */
#define CALM_S 10.0F
#define SHRINK_STEP 1.1
#define SHRINK_AFTER_S 1.0F
#define DEAD_BAND 0.03
/* Relative error of lambda. */
#define CLOSE 1e-6
#define TRIES_MAX 60

/**
 * struct level - the competitors that divide a cgroup's share of a leaf
 * @dt_s: length of the tick
 * @share: X
 * @n: active ones, in @rivals of struct control
 * @demand: sum of their demand
 * @lightest: of their nominal weights
 * @used: sum of their sigma
 * @away: nominal weights of absent competitors
 * @least: for a promised one
 * @squeeze: factor by which all reserved shares fit into @share
 * @lambda: worth of a weight of 1
 * @scale: of the nominal weights of those that are dormant; 0: their weights stay
 */
struct level {
	struct control *c;
	uint32_t node;
	uint32_t leaf;
	float dt_s;
	double share;
	uint32_t n;
	double demand;
	double lightest;
	double used;
	double away;
	double least;
	double squeeze;
	double lambda;
	double scale;
};

/* Dormant cgroups do not compete. */
#define FOREACH_KID(level, n)                      \
	for (const uint32_t *n = (level)->c->kids; \
	     n < (level)->c->kids + (level)->c->n_kids; n++)

static struct cell *child(const struct level *v, uint32_t node)
{
	return cell_of(v->c, node, v->leaf);
}

static struct weight *child_weight(const struct level *v, uint32_t node)
{
	return weight_of(v->c, node, v->leaf);
}

static void rival_add(struct level *v, const struct demand *a, double nominal,
		      const struct cell *promised)
{
	if (is_active(a)) {
		v->c->rivals[v->n++] =
			(struct rival){ a->demand,
					promised ? promised->reserved : 0,
					nominal, promised };
		v->demand += a->demand;
		v->lightest = fmin(v->lightest, nominal);
	} else if (!promised && a->calm_s <= CALM_S) {
		v->away += nominal;
	}
}

/* Is there a promised cgroup, and a competitor? */
static bool level_is_contended(const struct level *v)
{
	uint32_t promised = 0, waiting = 0, promised_waiting = 0;

	waiting += cell_of(v->c, v->node, v->leaf)->own.calm_s <= CALM_S;
	FOREACH_KID(v, n)
	{
		const struct cell *cell = child(v, *n);
		bool waits = cell->all.calm_s <= CALM_S;

		waiting += waits;
		promised += cell->is_promised;
		promised_waiting += waits && cell->is_promised;
	}
	if (waiting == 1)
		return promised > promised_waiting;
	return waiting && promised;
}

/* Set the least share of each competitor. Least shares fit, apart from rounding and demands
 * of this tick.
 */
static void level_reserve(struct level *v)
{
	double sum = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		struct rival *r = &v->c->rivals[i];

		if (v->demand <= v->share)
			r->demand = v->share;
		if (r->is_promised)
			r->least = fmax(r->least, v->least);
		sum += r->least;
	}
	v->squeeze = sum > v->share ? v->share / sum : 1;
	for (uint32_t i = 0; i < v->n; i++)
		v->c->rivals[i].least *= v->squeeze;
}

static void level_gather(struct level *v)
{
	const struct cell *above = cell_of(v->c, v->node, v->leaf);

	rival_add(v, &above->own, OWN_WEIGHT, NULL);
	FOREACH_KID(v, n)
	{
		const struct cell *cell = child(v, *n);

		rival_add(v, &cell->all, child_weight(v, *n)->nominal,
			  cell->is_promised ? cell : NULL);
	}
	v->least = v->n ? LEAST * v->share / v->n : 0;
	level_reserve(v);
}

static double sigma(double demand, double least, double nominal, double lambda)
{
	return fmin(demand, fmax(least, lambda * nominal));
}

static double level_sum(const struct level *v, double lambda)
{
	double sum = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		const struct rival *r = &v->c->rivals[i];

		sum += sigma(r->demand, r->least, r->nominal, lambda);
	}
	return sum;
}

/*
 * Find the largest lambda with which all fits, by chords and halving. Where all of a level
 * is promised to active cgroups, lambda is the one at which the first of them would exceed
 * its promise. So a sum slightly above or below X makes no difference.
 */
static void level_solve(struct level *v)
{
	double low = 0, high = v->share / v->lightest;
	double low_sum = level_sum(v, 0), high_sum = level_sum(v, high);
	double room = v->share * (1 + CLOSE);

	for (int tries = 0; high_sum > room && tries < TRIES_MAX; tries++) {
		double try = (low + high) / 2, sum;

		if (tries % 2 == 0 && low_sum < room)
			try = low + (room - low_sum) * (high - low) /
					    (high_sum - low_sum);
		sum = level_sum(v, try);
		if (sum <= room) {
			low = try;
			low_sum = sum;
		} else {
			high = try;
			high_sum = sum;
		}
		if (high - low <= CLOSE * high)
			break;
	}
	v->lambda = high_sum > room ? fmax(low, CLOSE * high) : high;
	v->used = level_sum(v, v->lambda);
}

/* The weight of a promised cgroup, beside the nominal weights of the others. */
static double level_weight(const struct level *v, struct cell *cell,
			   uint32_t nominal)
{
	bool active = is_active(&cell->all);
	bool has_demand = active && cell->all.demand >= cell->standing;
	double x = has_demand ? cell->reserved : cell->standing;
	double weight = nominal, part = 0;

	x = fmin(x / v->share, STANDING_MAX);
	if (active) {
		double least = fmax(cell->reserved, v->least) * v->squeeze;
		double demand = v->demand <= v->share ? v->share
						      : cell->all.demand;

		part = sigma(demand, least, nominal, v->lambda);
		weight = fmax(weight, least / v->lambda);
	}
	/* The level below computes with a part as large as with the shares that stand by. */
	cell->part = fmax(part, x * v->share);
	return fmax(weight,
		    x / (1 - x) *
			    (fmax(v->used - part, 0) / v->lambda + v->away));
}

/* The factor that brings the largest weight of the level down to WEIGHT_MAX. */
static double level_scale(const struct level *v, double largest)
{
	struct cell *above = cell_of(v->c, v->node, v->leaf);
	double over = log(largest / WEIGHT_MAX) / log(SHRINK_STEP);

	over = fmin(over, 1000);
	above->over_s = over > above->shrink ? above->over_s + v->dt_s : 0;
	if (above->over_s >= SHRINK_AFTER_S || over < (double)above->shrink - 2)
		above->shrink = (uint32_t)fmax(ceil(over), 0);
	return pow(SHRINK_STEP, -(double)above->shrink);
}

static uint32_t in_range(double weight)
{
	return (uint32_t)lrint(clampd(weight, WEIGHT_MIN, WEIGHT_MAX));
}

static void child_set_weight(const struct level *v, uint32_t node)
{
	const struct cell *cell = child(v, node);
	uint32_t weight = in_range(cell->wanted * v->scale);
	struct weight *w = child_weight(v, node);

	if (!cell->is_promised || cell->wanted <= w->nominal ||
	    fabs(log((double)weight / w->in_force)) > DEAD_BAND)
		w->in_force = weight;
}

static void set_dormant(const struct level *v)
{
	struct node *nodes = v->c->nodes;

	for (uint32_t n = nodes[v->node].first_child; n != CONTROL_NONE;
	     n = nodes[n].next) {
		struct weight *w = child_weight(v, n);

		if (!is_dormant(&nodes[n]))
			continue;
		if (v->scale > 0)
			w->in_force = in_range(w->nominal * v->scale);
		nodes[n].moved |= w->in_force != w->nominal;
	}
}

static void level_decide(struct level *v)
{
	double largest = 0;

	level_gather(v);
	/* For a moment no cgroup is active: the weights in force stay. */
	v->scale = 0;
	if (!v->n)
		return;
	level_solve(v);
	FOREACH_KID(v, n)
	{
		struct cell *cell = child(v, *n);

		uint32_t nominal = child_weight(v, *n)->nominal;

		cell->wanted = cell->is_promised
				       ? level_weight(v, cell, nominal)
				       : nominal;
		largest = fmax(largest, cell->wanted);
	}
	v->scale = level_scale(v, largest);
	FOREACH_KID(v, n)
	child_set_weight(v, *n);
}

static void level_reset(struct level *v)
{
	struct cell *above = cell_of(v->c, v->node, v->leaf);

	above->shrink = 0;
	above->over_s = 0;
	v->scale = 1;
	FOREACH_KID(v, n)
	{
		struct weight *w = child_weight(v, *n);

		w->in_force = w->nominal;
		child(v, *n)->part = v->share;
	}
}

static void node_decide(struct control *c, uint32_t node, uint32_t leaf,
			float dt_s)
{
	const struct cell *cell = cell_of(c, node, leaf);
	struct level v = { .c = c,
			   .node = node,
			   .leaf = leaf,
			   .dt_s = dt_s,
			   .share = node ? cell->part : 1,
			   .lightest = WEIGHT_MAX };

	if (c->nodes[node].steered && cell->is_promised && v.share > 0 &&
	    !c->unweighted[leaf] && level_is_contended(&v))
		level_decide(&v);
	else
		level_reset(&v);
	FOREACH_KID(&v, n)
	{
		const struct weight *w = child_weight(&v, *n);

		c->nodes[*n].moved |= w->in_force != w->nominal;
	}
	if (v.scale < 1 || c->some_moved)
		set_dormant(&v);
}

/* None of its children competes: they have their nominal weights. */
static void node_reset(struct control *c, uint32_t node, uint32_t leaf)
{
	const struct level v = {
		.c = c, .node = node, .leaf = leaf, .scale = 1
	};

	set_dormant(&v);
}

static void find_kids(struct control *c, uint32_t node)
{
	c->n_kids = 0;
	c->some_moved = false;
	for (uint32_t n = c->nodes[node].first_child; n != CONTROL_NONE;
	     n = c->nodes[n].next) {
		struct node *kid = &c->nodes[n];

		if (is_dormant(kid))
			c->some_moved |= kid->moved;
		else
			c->kids[c->n_kids++] = n;
		kid->moved = false;
	}
}

void control_weigh(struct control *c, double dt_s)
{
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		find_kids(c, n);
		for (uint32_t l = 0; l < c->n_leaves && c->n_kids; l++)
			node_decide(c, n, l, (float)dt_s);
		for (uint32_t l = 0;
		     l < c->n_leaves && !c->n_kids && c->some_moved; l++)
			node_reset(c, n, l);
	}
}
