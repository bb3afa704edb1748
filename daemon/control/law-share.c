/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: the grant of each promise on each leaf.
 *
 * Promises belong to cgroups, which are nested. A slice with 0.4 of a leaf that
 * contains a service with 0.3 needs 0.4, not 0.7. So from the leaves of the cgroup
 * tree up:
 *
 *	promised = sum over kinds of traffic of the largest grant about it
 *	reserved = max(promised, margin * sum of the children's reserved)
 *
 * where the margin leaves 2 % of a level to cgroups beside the promised ones, if there
 * are any, so that none starves. The sum at the root must not exceed the leaf. It is a
 * convex function of each grant: a chord finds how far grants may grow, and no attempt
 * exceeds the leaf by much.
 *
 * Promises of one importance form a class, and classes are served by falling importance.
 * On each leaf the part of the needs of a class that fits is found, and a promise gets on
 * all its leaves the part of the worst one. A promise is done when it ends on a full leaf
 * or has all that it needs. The next round divides the rest of the other leaves among the
 * remaining promises (max-min fairness of the parts). Without rounds, space is wasted in
 * 2 % of random cases.
 *
 *	Disks 0, 1, 2. a needs 0.8 of 0 and 1, b 0.8 of 1 and 2, c 0.3 of 2.
 *	Round 1: disk 0 has room for all of a, 1 for 0.61 of a and b, 2 for 0.89 of b
 *	and c. a and b get 0.61: disk 1 is full, they are done, with 0.49 each.
 *	Round 2: c may have all of its 0.3, because b leaves that much of disk 2.
 *
 * This is done three times:
 *
 * - with full needs, for the shares that stand by;
 * - with present needs, from which the granted part of each floor (phi) follows;
 * - with these parts, and a margin of 4 %, the gain and the share of requests in flight on top,
 *   class by class: the margin of an important class comes before the floors of the others.
 */

#include <math.h>

#include "control/law-internal.h"

/* Grants are larger than needs by this, to have room for noise. With 2 %, the worst 2 s are
 * at 0.93 to 0.95 of the floor.
 */
#define MARGIN 1.04
/* A cgroup of weight 1 beside one of 10000 still receives this share. */
#define SHARE_LEAST 1e-4
/* Rounds; each ends for those that share the fullest leaf. */
#define ROUNDS_MAX 8
/* Smaller needs on one leaf do not cut the needs on other leaves. */
#define NEED_TELLING 5e-4
/* Relative differences below this count as none. */
#define CLOSE 1e-9
#define TRIES_MAX 24

/* The largest grant of a cgroup's promises about the same traffic: it serves them all. */
static double traffic_grant(const struct control *c, const struct promise *p,
			    uint32_t leaf)
{
	double most = 0;

	for (uint32_t i = c->nodes[p->pub.node].promises; i != CONTROL_NONE;
	     i = c->promises[i].next) {
		const struct promise *other = &c->promises[i];

		if (other->first != p->first)
			continue;
		for (uint32_t j = 0; j < other->n_links; j++)
			if (other->links[j].leaf == leaf)
				most = fmax(most, other->links[j].grant);
	}
	return most;
}

/* Set a grant, and update the reserved shares from its cgroup up to the root. */
static void grant(struct control *c, struct promise *p, struct link *k,
		  double share)
{
	double old = k->grant, delta;
	uint32_t n = p->pub.node;
	struct cell *cell = cell_of(c, n, k->leaf);

	if (p->shares_traffic) {
		old = traffic_grant(c, p, k->leaf);
		k->grant = share;
		share = traffic_grant(c, p, k->leaf);
	} else {
		k->grant = share;
	}
	cell->promised += share - old;
	for (;;) {
		double reserved =
			fmax(cell->promised, cell->margin * cell->below);

		delta = reserved - cell->reserved;
		cell->reserved = reserved;
		n = c->nodes[n].parent;
		if (delta == 0 || n == CONTROL_NONE)
			return;
		cell = cell_of(c, n, k->leaf);
		cell->below += delta;
	}
}

/* Can a node have grants? Other nodes never have anything reserved. */
static bool may_have_grants(const struct node *node)
{
	return node->steered || node->promises != CONTROL_NONE;
}

static void grants_clear(struct control *c)
{
	for (uint32_t i = 0; i < c->n_promises; i++)
		for (uint32_t j = 0; j < c->promises[i].n_links; j++)
			c->promises[i].links[j].grant = 0;
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		if (!may_have_grants(&c->nodes[n]))
			continue;
		for (uint32_t l = 0; l < c->n_leaves; l++) {
			struct cell *cell = cell_of(c, n, l);

			cell->promised = 0;
			cell->below = 0;
			cell->reserved = 0;
		}
	}
}

/* ---- one class ---- */

/**
 * struct class - promises of one importance
 * @order: their numbers
 */
struct class
{
	struct control *c;
	const uint32_t *order;
	uint32_t n;
};

static struct promise *member(const struct class *class, uint32_t i)
{
	return &class->c->promises[class->order[i]];
}

/* Grant each live promise its base, and the tried part of its @want. */
static void class_try(const struct class *class)
{
	for (uint32_t i = 0; i < class->n; i++) {
		struct promise *p = member(class, i);

		for (uint32_t j = 0; p->is_live && j < p->n_links; j++) {
			struct link *k = &p->links[j];
			double part = class->c->fits[k->leaf].part;

			grant(class->c, p, k, k->base + part * k->want);
		}
	}
}

/* After an attempt: select the part to try next, or settle. */
static void fit_step(struct leaf_fit *fit, double total, uint32_t tries)
{
	if (fit->is_settled)
		return;
	if (total <= fit->room + CLOSE) {
		fit->low = fit->part;
		fit->low_total = total;
	} else {
		fit->high = fit->part;
		fit->high_total = total;
	}
	fit->is_settled = fit->low >= fit->high ||
			  fit->room - fit->low_total <= CLOSE ||
			  fit->high - fit->low <= CLOSE || tries == TRIES_MAX;
	if (fit->is_settled)
		fit->part = fit->low;
	else if (tries % 4 == 3)
		fit->part = (fit->low + fit->high) / 2;
	else
		fit->part =
			fit->low + (fit->room - fit->low_total) *
					   (fit->high - fit->low) /
					   (fit->high_total - fit->low_total);
}

/*
 * Find on each leaf the largest part of all @want that fits, and grant it. The part is 0
 * where not even the grants of former classes fit.
 */
static void class_fit(const struct class *class)
{
	struct control *c = class->c;
	bool settled = true;

	for (uint32_t l = 0; l < c->n_leaves; l++)
		c->fits[l].part = 1;
	class_try(class);
	for (uint32_t l = 0; l < c->n_leaves; l++) {
		struct leaf_fit *fit = &c->fits[l];

		fit->high = 1;
		fit->high_total = cell_of(c, 0, l)->reserved;
		fit->is_settled = fit->high_total <= fit->room + CLOSE;
		if (!fit->is_settled) {
			settled = false;
			fit->part = 0;
		}
	}
	if (settled)
		return;
	for (uint32_t tries = 0; !settled && tries <= TRIES_MAX; tries++) {
		class_try(class);
		settled = true;
		for (uint32_t l = 0; l < c->n_leaves; l++) {
			struct leaf_fit *fit = &c->fits[l];

			/* The first try has part 0: the lower end. */
			if (!tries && !fit->is_settled) {
				fit->low = 0;
				fit->low_total = 0;
			}
			fit_step(fit, cell_of(c, 0, l)->reserved, tries);
			settled = settled && fit->is_settled;
		}
	}
	class_try(class);
}

/* Cut a promise to the part of its worst leaf. Return: may it still grow? */
static bool promise_cut(struct control *c, struct promise *p)
{
	double part = 1;

	p->worst = CONTROL_NONE;
	for (uint32_t i = 0; i < p->n_links; i++) {
		struct link *k = &p->links[i];
		double fits = c->fits[k->leaf].part;

		if (k->want > NEED_TELLING && fits < part) {
			part = fits;
			p->worst = k->leaf;
		}
	}
	for (uint32_t i = 0; i < p->n_links; i++) {
		struct link *k = &p->links[i];

		grant(c, p, k, k->want * fmin(part, c->fits[k->leaf].part));
	}
	p->part = part;
	return part < 1;
}

static bool promise_ends_full(const struct control *c, const struct promise *p)
{
	for (uint32_t i = 0; i < p->n_links; i++) {
		const struct link *k = &p->links[i];

		if (k->want > NEED_TELLING &&
		    cell_of(c, 0, k->leaf)->reserved >=
			    c->fits[k->leaf].room - 1e-6)
			return true;
	}
	return false;
}

/* Grant the members their @want, or the same part of it as far as it fits. */
static void class_grant(const struct class *class)
{
	struct control *c = class->c;
	bool live = true;

	for (uint32_t i = 0; i < class->n; i++)
		member(class, i)->is_live = true;
	for (uint32_t round = 0; live && round < ROUNDS_MAX; round++) {
		bool grows = false;

		class_fit(class);
		for (uint32_t i = 0; i < class->n; i++) {
			struct promise *p = member(class, i);

			if (p->is_live) {
				p->is_live = promise_cut(c, p);
				grows = grows || p->is_live;
			}
		}
		live = false;
		for (uint32_t i = 0; grows && i < class->n; i++) {
			struct promise *p = member(class, i);

			p->is_live = p->is_live && !promise_ends_full(c, p);
			live = live || p->is_live;
		}
	}
}

/* Add margin, gain, and the share of requests in flight to the grants, as far as they fit. */
static void class_add_margin(const struct class *class)
{
	for (uint32_t i = 0; i < class->n; i++) {
		struct promise *p = member(class, i);

		p->is_live = true;
		for (uint32_t j = 0; j < p->n_links; j++) {
			struct link *k = &p->links[j];

			k->base = k->grant;
			k->want = fmax(k->grant * p->push, k->in_flight) *
					  MARGIN -
				  k->grant;
		}
	}
	class_fit(class);
}

/* ---- all of them ---- */

typedef void class_fn(const struct class *class);

static void by_class(struct control *c, class_fn *fn)
{
	uint32_t first, last;

	grants_clear(c);
	for (first = 0; first < c->n_promises; first = last) {
		uint64_t importance =
			c->promises[c->order[first]].pub.importance;

		for (last = first + 1; last < c->n_promises; last++)
			if (c->promises[c->order[last]].pub.importance !=
			    importance)
				break;
		fn(&(struct class){ c, &c->order[first], last - first });
	}
}

/*
 * Grant what all units would need with full demand. A promise whose traffic moves may need all
 * of it on a leaf that it does not use now. Where it uses a leaf already, such a weight would
 * be one for twice its floor.
 */
static void class_stand_by(const struct class *class)
{
	for (uint32_t i = 0; i < class->n; i++) {
		struct promise *p = member(class, i);
		double sum = 0;

		for (uint32_t j = 0; j < p->n_links; j++)
			sum += p->links[j].share;
		for (uint32_t j = 0; j < p->n_links; j++) {
			struct link *k = &p->links[j];
			const struct cell *cell =
				cell_of(class->c, p->pub.node, k->leaf);
			bool comes = p->pub.wandering && !is_active(&cell->all);

			k->base = 0;
			k->want = fmin((comes ? sum : k->share) * MARGIN, 1);
		}
	}
	class_grant(class);
}

static void class_decide(const struct class *class)
{
	for (uint32_t i = 0; i < class->n; i++) {
		struct promise *p = member(class, i);

		for (uint32_t j = 0; j < p->n_links; j++) {
			p->links[j].base = 0;
			p->links[j].want = p->links[j].need;
		}
	}
	class_grant(class);
	for (uint32_t i = 0; i < class->n; i++) {
		struct promise *p = member(class, i);

		p->pub.phi = p->part;
		p->pub.bottleneck = p->worst;
	}
}

static void class_allot(const struct class *class)
{
	for (uint32_t i = 0; i < class->n; i++) {
		struct promise *p = member(class, i);

		for (uint32_t j = 0; j < p->n_links; j++) {
			p->links[j].base = 0;
			p->links[j].want = p->links[j].need * p->pub.phi;
		}
	}
	class_grant(class);
	class_add_margin(class);
}

static uint32_t count_active(const struct control *c, uint32_t leaf)
{
	uint32_t n = 0;

	for (uint32_t i = c->nodes[0].first_child; i != CONTROL_NONE;
	     i = c->nodes[i].next)
		n += !is_dormant(&c->nodes[i]) &&
		     is_active(&cell_of(c, i, leaf)->all);
	return n;
}

static void find_room(struct control *c)
{
	for (uint32_t l = 0; l < c->n_leaves; l++)
		c->fits[l].room =
			fmax(1 - SHARE_LEAST * count_active(c, l), 0.5);
}

/* Grant all needs, whether they fit or not. */
static void class_grant_needs(const struct class *class)
{
	for (uint32_t i = 0; i < class->n; i++) {
		struct promise *p = member(class, i);

		for (uint32_t j = 0; j < p->n_links; j++)
			grant(class->c, p, &p->links[j], p->links[j].need);
	}
}

static void set_margins(struct control *c, double margin)
{
	for (uint32_t n = 0; n < c->n_nodes; n++)
		for (uint32_t l = 0;
		     l < c->n_leaves && !is_dormant(&c->nodes[n]); l++)
			cell_of(c, n, l)->margin = margin;
}

void control_admit(struct control *c)
{
	control_need_all(c);
	set_margins(c, 1);
	by_class(c, class_grant_needs);
	for (uint32_t l = 0; l < c->n_leaves; l++)
		cell_of(c, 0, l)->standing = cell_of(c, 0, l)->reserved;
	/* There will be units without a promise at each level. */
	set_margins(c, 1 / (1 - RESIDUAL));
	find_room(c);
	by_class(c, class_decide);
}

double control_needed(const struct control *c, uint32_t leaf)
{
	return cell_of(c, 0, leaf)->standing;
}

void control_allot(struct control *c)
{
	find_room(c);
	by_class(c, class_stand_by);
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		if (!may_have_grants(&c->nodes[n]))
			continue;
		for (uint32_t l = 0; l < c->n_leaves; l++) {
			struct cell *cell = cell_of(c, n, l);

			cell->standing = cell->reserved;
		}
	}

	by_class(c, class_decide);
	by_class(c, class_allot);
}
