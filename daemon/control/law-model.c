/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The model that the control law works on: cgroups, leaves and promises. The caller
 * builds it, sets the measured use before each tick, and reads weights and grants after it.
 */

#include <math.h>

#include "control/law-internal.h"

/* ---- building ---- */

int control_new(uint32_t n_leaves, struct control **ret)
{
	struct control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->n_leaves = n_leaves;
	/* One more, because a plant without leaves is valid. */
	c->unweighted = calloc(n_leaves + 1, sizeof(*c->unweighted));
	c->reserves = calloc(n_leaves + 1, sizeof(*c->reserves));
	c->is_reserved = calloc(n_leaves + 1, sizeof(*c->is_reserved));
	c->capacity = calloc(n_leaves + 1, sizeof(*c->capacity));
	c->charged = calloc(n_leaves + 1, sizeof(*c->charged));
	c->fits = calloc(n_leaves + 1, sizeof(*c->fits));
	if (!c->unweighted || !c->reserves || !c->is_reserved || !c->capacity ||
	    !c->charged || !c->fits) {
		control_free(c);
		return -ENOMEM;
	}
	for (uint32_t l = 0; l < n_leaves; l++)
		c->capacity[l] = 1;
	r = control_add_node(c, CONTROL_NONE, NULL);
	if (r < 0) {
		control_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct control *control_free(struct control *c)
{
	if (!c)
		return NULL;
	for (uint32_t i = 0; i < c->n_promises; i++)
		free(c->promises[i].links);
	free(c->promises);
	free(c->order);
	for (uint32_t n = 0; n < c->n_nodes; n++)
		free(c->nodes[n].cells);
	free(c->nodes);
	free(c->weights);
	free(c->rivals);
	free(c->kids);
	free(c->unweighted);
	free(c->reserves);
	free(c->is_reserved);
	free(c->capacity);
	free(c->charged);
	free(c->fits);
	free(c);
	return NULL;
}

/* Make room for one more node. After a failure some arrays may stay larger. */
static int nodes_grow(struct control *c)
{
	size_t size = c->nodes_size ? 2 * c->nodes_size : 16;
	struct rival *rivals;
	struct weight *weights;
	struct node *nodes;
	uint32_t *kids;

	if (c->n_nodes < c->nodes_size)
		return 0;
	nodes = reallocarray(c->nodes, size, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	c->nodes = nodes;
	/* A level has the children and the own requests of the one above. */
	rivals = reallocarray(c->rivals, size + 1, sizeof(*rivals));
	if (!rivals)
		return -ENOMEM;
	c->rivals = rivals;
	kids = reallocarray(c->kids, size, sizeof(*kids));
	if (!kids)
		return -ENOMEM;
	c->kids = kids;
	weights = reallocarray(c->weights, size * (c->n_leaves + 1),
			       sizeof(*weights));
	if (!weights)
		return -ENOMEM;
	c->weights = weights;
	c->nodes_size = size;
	return 0;
}

int control_wake(struct control *c, uint32_t node)
{
	static const struct demand nothing = { .idle_s = LONG_AGO_S,
					       .calm_s = LONG_AGO_S };

	for (uint32_t n = node; n != CONTROL_NONE && is_dormant(&c->nodes[n]);
	     n = c->nodes[n].parent) {
		struct cell *cells = calloc(c->n_leaves + 1, sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		for (uint32_t l = 0; l < c->n_leaves; l++) {
			cells[l].all = nothing;
			cells[l].own = nothing;
		}
		c->nodes[n].cells = cells;
		if (n)
			c->nodes[c->nodes[n].parent].n_awake++;
	}
	return 0;
}

void control_rest(struct control *c, uint32_t node)
{
	free(c->nodes[node].cells);
	c->nodes[node].cells = NULL;
	c->nodes[c->nodes[node].parent].n_awake--;
}

int control_add_node(struct control *c, uint32_t parent, uint32_t *ret_node)
{
	uint32_t n = c->n_nodes;
	int r;

	if (n ? parent >= n : parent != CONTROL_NONE)
		return -EINVAL;
	r = nodes_grow(c);
	if (r < 0)
		return r;
	c->nodes[n] = (struct node){ .parent = parent,
				     .first_child = CONTROL_NONE,
				     .last_child = CONTROL_NONE,
				     .next = CONTROL_NONE,
				     .moved = true,
				     .promises = CONTROL_NONE };
	for (uint32_t l = 0; l < c->n_leaves; l++)
		*weight_of(c, n, l) =
			(struct weight){ WEIGHT_DEFAULT, WEIGHT_DEFAULT };
	if (!n) {
		r = control_wake(c, n);
		if (r < 0)
			return r;
	} else {
		struct node *above = &c->nodes[parent];

		if (above->last_child == CONTROL_NONE)
			above->first_child = n;
		else
			c->nodes[above->last_child].next = n;
		above->last_child = n;
	}
	c->n_nodes++;
	if (ret_node)
		*ret_node = n;
	return 0;
}

static int promises_grow(struct control *c)
{
	size_t size = c->promises_size ? 2 * c->promises_size : 16;
	struct promise *promises;
	uint32_t *order;

	if (c->n_promises < c->promises_size)
		return 0;
	promises = reallocarray(c->promises, size, sizeof(*promises));
	if (!promises)
		return -ENOMEM;
	c->promises = promises;
	order = reallocarray(c->order, size, sizeof(*order));
	if (!order)
		return -ENOMEM;
	c->order = order;
	c->promises_size = size;
	return 0;
}

static bool promise_is_valid(const struct control *c,
			     const struct control_promise *p,
			     const uint32_t *leaves, uint32_t n_leaves)
{
	if (p->part ? !(p->part > 0 && p->part <= 1)
		    : !(p->floor > 0 && isfinite(p->floor)))
		return false;
	if (p->node >= c->n_nodes)
		return false;
	for (uint32_t i = 0; i < n_leaves; i++) {
		if (leaves[i] >= c->n_leaves)
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (leaves[j] == leaves[i])
				return false;
	}
	return true;
}

/* Insert it behind promises of the same importance. */
static void order_insert(struct control *c, uint32_t promise)
{
	uint64_t importance = c->promises[promise].pub.importance;
	uint32_t low = 0, high = promise;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (c->promises[c->order[middle]].pub.importance >= importance)
			low = middle + 1;
		else
			high = middle;
	}
	memmove(&c->order[low + 1], &c->order[low],
		(promise - low) * sizeof(*c->order));
	c->order[low] = promise;
}

/* Link it to the promises of its cgroup, and mark the cells from there up to the root. */
static void promise_enter(struct control *c, uint32_t promise)
{
	struct promise *p = &c->promises[promise];
	struct node *node = &c->nodes[p->pub.node];

	p->first = promise;
	p->next = node->promises;
	node->promises = promise;
	for (uint32_t i = p->next; i != CONTROL_NONE; i = c->promises[i].next) {
		struct promise *other = &c->promises[i];

		if (other->pub.traffic != p->pub.traffic)
			continue;
		p->first = other->first;
		p->shares_traffic = true;
		other->shares_traffic = true;
	}
	for (uint32_t n = p->pub.node; n != CONTROL_NONE;
	     n = c->nodes[n].parent) {
		if (n != p->pub.node)
			c->nodes[n].steered = true;
		for (uint32_t i = 0; i < p->n_links; i++)
			cell_of(c, n, p->links[i].leaf)->is_promised = true;
	}
}

int control_add_promise(struct control *c, const struct control_promise *p,
			const uint32_t *leaves, uint32_t n_leaves,
			uint32_t *ret_promise)
{
	uint32_t n = c->n_promises;
	struct link *links;
	int r;

	if (!promise_is_valid(c, p, leaves, n_leaves))
		return -EINVAL;
	r = promises_grow(c);
	if (r >= 0)
		r = control_wake(c, p->node);
	if (r < 0)
		return r;
	links = calloc(n_leaves + 1, sizeof(*links));
	if (!links)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_leaves; i++)
		links[i].leaf = leaves[i];
	c->promises[n] =
		(struct promise){ .links = links, .n_links = n_leaves };
	c->promises[n].pub = (struct control_promise){
		.node = p->node,
		.floor = p->floor,
		.part = p->part,
		.importance = p->importance,
		.is_time = p->is_time,
		.wandering = p->wandering,
		.traffic = p->traffic,
	};
	control_promise_init(&c->promises[n]);
	c->n_promises++;
	order_insert(c, n);
	promise_enter(c, n);
	if (ret_promise)
		*ret_promise = n;
	return 0;
}

/* ---- input ---- */

struct control_use *control_use(struct control *c, uint32_t node, uint32_t leaf)
{
	return control_wake(c, node) < 0 ? NULL : &cell_of(c, node, leaf)->use;
}

bool control_is_dormant(const struct control *c, uint32_t node)
{
	return is_dormant(&c->nodes[node]);
}

void control_set_nominal(struct control *c, uint32_t node, uint32_t leaf,
			 uint32_t weight)
{
	struct weight *w = weight_of(c, node, leaf);

	weight = weight < WEIGHT_MIN ? WEIGHT_MIN : weight;
	weight = weight > WEIGHT_MAX ? WEIGHT_MAX : weight;
	/* Weights without a setpoint have their nominal value. */
	if (w->in_force == w->nominal)
		w->in_force = weight;
	w->nominal = weight;
}

uint32_t control_nominal(const struct control *c, uint32_t node, uint32_t leaf)
{
	return weight_of(c, node, leaf)->nominal;
}

void control_set_weighted(struct control *c, uint32_t leaf, bool weighted)
{
	c->unweighted[leaf] = !weighted;
}

void control_set_reserves(struct control *c, uint32_t leaf, bool reserves)
{
	c->reserves[leaf] = reserves;
}

struct control_promise *control_promise(struct control *c, uint32_t promise)
{
	return &c->promises[promise].pub;
}

/* ---- output ---- */

struct link *control_link(const struct control *c, uint32_t promise,
			  uint32_t leaf)
{
	struct promise *p = &c->promises[promise];

	for (uint32_t i = 0; i < p->n_links; i++)
		if (p->links[i].leaf == leaf)
			return &p->links[i];
	return NULL;
}

uint32_t control_weight(const struct control *c, uint32_t node, uint32_t leaf)
{
	return weight_of(c, node, leaf)->in_force;
}

bool control_is_moved(const struct control *c, uint32_t node)
{
	return c->nodes[node].moved;
}

double control_need(const struct control *c, uint32_t promise, uint32_t leaf)
{
	const struct link *k = control_link(c, promise, leaf);

	return k ? fmin(k->share, 1) : 0;
}

/* The need of a promise, unless another one about the same traffic of its cgroup needs more. */
static double need_of_traffic(const struct control *c, uint32_t promise,
			      uint32_t leaf)
{
	const struct promise *p = &c->promises[promise];
	double need = control_need(c, promise, leaf);

	if (!p->shares_traffic)
		return need;
	for (uint32_t i = c->nodes[p->pub.node].promises; i != CONTROL_NONE;
	     i = c->promises[i].next) {
		double other = control_need(c, i, leaf);

		if (c->promises[i].first == p->first &&
		    (other > need || (other == need && i < promise)))
			return 0;
	}
	return need;
}

static double needs_below(const struct control *c, uint32_t node, uint32_t leaf)
{
	double own = 0, below = 0;

	for (uint32_t i = c->nodes[node].promises; i != CONTROL_NONE;
	     i = c->promises[i].next)
		own += need_of_traffic(c, i, leaf);
	for (uint32_t i = c->nodes[node].first_child; i != CONTROL_NONE;
	     i = c->nodes[i].next)
		below += needs_below(c, i, leaf);
	return fmax(own, below);
}

double control_needs(const struct control *c, uint32_t leaf)
{
	return needs_below(c, 0, leaf);
}

double control_allotted(const struct control *c, uint32_t promise,
			uint32_t leaf)
{
	const struct link *k = control_link(c, promise, leaf);

	return k ? k->grant : 0;
}

bool control_is_measured(const struct control *c, uint32_t promise)
{
	return control_promise_is_measured(&c->promises[promise]);
}

double control_rate_alone(const struct control *c, uint32_t promise)
{
	const struct promise *p = &c->promises[promise];

	return control_promise_is_measured(p) ? 1 / control_cost_most(p) : 0;
}

double control_cost(const struct control *c, uint32_t promise, uint32_t leaf)
{
	const struct link *k = control_link(c, promise, leaf);

	return k ? k->cost_s : 0;
}
