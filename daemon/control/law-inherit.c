/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: measured costs and the state of the loops outlive a plant. A new plant
 * is built when leaves, cgroups or promises come and go, and its loops continue.
 */

#include <math.h>

#include "control/law-internal.h"

void control_learnt(struct control *c, uint32_t promise, uint32_t leaf,
		    double cost_s)
{
	struct promise *p = &c->promises[promise];
	struct link *k = control_link(c, promise, leaf);
	double rate;

	if (!k || !(cost_s >= 0) || !isfinite(cost_s))
		return;
	/* As if it had run for long at its floor, or at the rate that a need of SHARE_MAX gives. */
	if (!p->is_known)
		for (uint32_t i = 0; i < p->n_links; i++)
			p->links[i].cost_s = 0;
	p->is_known = true;
	k->cost_s = cost_s;
	control_follow_part(p);
	rate = fmin(p->pub.floor, SHARE_MAX / control_cost_most(p));
	p->smooth_rate = rate;
	p->slow_rate = rate;
	for (uint32_t i = 0; i < p->n_links; i++) {
		struct link *other = &p->links[i];

		other->time = other->cost_s * rate;
		other->slow_time = other->time;
		other->share = other->time;
	}
}

void control_inherit(struct control *to, uint32_t to_promise,
		     const struct control *from, uint32_t from_promise,
		     const uint32_t *leaf_of)
{
	struct promise *p = &to->promises[to_promise];
	struct promise learnt = from->promises[from_promise];

	/* The floor may have changed: gains and verdicts of the old one are better than none,
	 * and wrong ones are corrected in a moment.
	 */
	learnt.pub.node = p->pub.node;
	learnt.pub.floor = p->pub.floor;
	learnt.pub.part = p->pub.part;
	learnt.pub.importance = p->pub.importance;
	learnt.pub.is_time = p->pub.is_time;
	learnt.pub.wandering = p->pub.wandering;
	learnt.pub.traffic = p->pub.traffic;
	learnt.pub.bottleneck = CONTROL_NONE;
	learnt.links = p->links;
	learnt.n_links = p->n_links;
	learnt.first = p->first;
	learnt.next = p->next;
	learnt.shares_traffic = p->shares_traffic;
	for (uint32_t i = 0; i < p->n_links; i++) {
		uint32_t leaf = p->links[i].leaf;
		const struct link *k = leaf_of[leaf] == CONTROL_NONE
					       ? NULL
					       : control_link(from,
							      from_promise,
							      leaf_of[leaf]);

		p->links[i] = k ? *k : (struct link){};
		p->links[i].leaf = leaf;
	}
	*p = learnt;
	control_follow_part(p);
}

int control_inherit_node(struct control *to, uint32_t to_node,
			 const struct control *from, uint32_t from_node,
			 const uint32_t *leaf_of)
{
	bool rested = is_dormant(&from->nodes[from_node]);
	int r = rested ? 0 : control_wake(to, to_node);

	for (uint32_t l = 0; l < to->n_leaves && r >= 0; l++) {
		const struct cell *old;
		struct cell *cell;

		if (leaf_of[l] == CONTROL_NONE)
			continue;
		to->capacity[l] = from->capacity[leaf_of[l]];
		to->charged[l] = from->charged[leaf_of[l]];
		weight_of(to, to_node, l)->in_force =
			weight_of(from, from_node, leaf_of[l])->in_force;
		if (rested)
			continue;
		old = cell_of(from, from_node, leaf_of[l]);
		cell = cell_of(to, to_node, l);
		cell->all = old->all;
		cell->own = old->own;
		cell->shrink = old->shrink;
		cell->over_s = old->over_s;
	}
	return r;
}
