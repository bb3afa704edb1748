/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law.
 *
 * A promise says: this unit gets at least so many bytes per second from that logical
 * device. What can be set is something else: for each cgroup and each leaf a weight,
 * by which siblings divide the leaf's time.
 *
 * 1. What a promise needs (law-promise.c)
 *
 * Between a byte at the logical device and the time it takes on a leaf are stripes,
 * mirrors, parity, hot spots, seeks. None of it is modelled. Both ends are measured,
 * and their quotient is the cost, on each leaf by itself:
 *
 *	cost = device time used per second / units per second	(smoothed, 0.6 s)
 *	share = floor * cost
 *
 * 2. What it is granted (law-share.c)
 *
 * By falling importance, promises of equal importance together: as long as the shares
 * fit on the leaves they are granted. Where they do not, all are cut to the same
 * part; one that is cut on a leaf is cut on all its leaves alike, for on a stripe the
 * slowest leaf decides, and what the others would have is free for somebody else.
 * Who does not ask for his share does not get it: it stays with the others.
 *
 * 3. From shares to weights (law-weights.c)
 *
 * Level by level from the root. On each, lambda is what a weight of 1 is worth:
 *
 *	sigma_i = min(demand_i, max(granted_i, lambda * nominal_i)),  sum sigma_i = X
 *
 * where X is the share of the cgroup above. Who has no promise keeps its nominal
 * weight, to the unit; who has one is given granted / lambda, if that is more than
 * nominal. A promised unit that is idle takes no part, but has a weight standing by
 * with which it would get its share if it came back this moment.
 *
 * 4. Correction
 *
 * Feed-forward does the work. A gain for each promise, 1 to 1.6, corrects what
 * remains between a share that was set and one that was received. It grows only while
 * the unit asks for more than it gets, uses what it is entitled to, and is granted
 * its floor, so that nothing winds up.
 *
 * Example. A stripe over two disks, each 150 MB/s. db (weight 100) has a floor of
 * 180 MB/s on it; four others of weight 1000 read without end.
 *
 *	In the first tick db gets 1/41 of the disks: 7.3 MB/s, for 0.0244 s/s of
 *	device time on each. So a byte costs 3.33 ns on each disk (half of it is there,
 *	at 6.67 ns), and 180 MB/s are a share of 0.6.
 *	It is granted 0.6, and 4 % more against errors: 0.624. The others divide
 *	1 - 0.624 = 0.376 by 4000, so lambda is 0.000094,
 *	and db's weight is 0.624 / 0.000094 = 6638. The others keep their 1000.
 *	6638 / (6638 + 4000) is 0.624. 250 ms later db gets 187 MB/s.
 *
 *	db stops. Nothing of it is granted: the others have the disks. Its weight
 *	stands by at 0.624 / (1 - 0.624) * 4000 = 6638, as before.
 *
 *	A second unit, as important, has a floor of 120 MB/s on the same stripe: 0.4,
 *	1.0 in all. 0.98 is there to be granted. Each is granted 0.98 of its floor,
 *	which db is told: phi is 0.98.
 */

#include <math.h>

#include "control/law-internal.h"

/* Who asks for less than it uses now and a third, and this, has what it wants. */
#define DEMAND_FACTOR 1.3
#define DEMAND_EXTRA 0.02
/* Demand rises at once and falls with this: a short pause frees nothing yet. */
#define DEMAND_RELEASE_S 1.0
/* Less time than this is no use of a leaf. */
#define USE_MIN 0.002
/* A leaf may say a little more than all of the time; not a multiple of it. */
#define USE_MAX 2.0
/* No more requests can be on their way. */
#define PENDING_MAX 1e6
/* Somebody waits for all of a tick: the leaf is busy. */
#define BUSY 0.9
/* What it is then charged for. Less than half is a leaf that does not tell. */
#define CAPACITY_S 2.0
#define CAPACITY_MIN 0.5
#define CAPACITY_MAX 1.25
/* A tick longer than this was a pause of the caller. */
#define TICK_MAX_S 5.0
/* Nothing here asks for what was longer ago. */
#define LONG_AGO_S 15.0F

static const struct {
	const char *word;
	const char *cause;
} states[_CONTROL_STATE_MAX] = {
	[CONTROL_UNKNOWN] = { "unknown", "" },
	[CONTROL_IDLE] = { "idle", "" },
	[CONTROL_HELD] = { "held", "" },
	[CONTROL_SETTLING] = { "settling",
			       "It is short of its floor since a moment ago." },
	[CONTROL_INFEASIBLE] = { "infeasible",
				 "The floors on a disk add up to more than it "
				 "can do." },
	[CONTROL_LIMITED] = { "limited",
			      "It has too few requests on their way to use the "
			      "share that it has." },
	[CONTROL_CROWDED] = { "crowded",
			      "The unit's other traffic on the same disks "
			      "takes its share." },
	[CONTROL_UNATTRIBUTED] = { "unattributed",
				   "Its requests are served, but a layer "
				   "between charges their device time to "
				   "somebody else." },
	[CONTROL_UNWEIGHTED] = { "unweighted",
				 "The scheduler of a disk has no weights." },
	[CONTROL_UNOBSERVED] = { "unobserved",
				 "Nothing measures the latencies of its "
				 "requests." },
	[CONTROL_UNMEASURED] = { "unknown-capacity",
				 "The capacity of the device for its requests "
				 "is unknown until it uses the device." },
};

const char *control_state_to_string(enum control_state s)
{
	return s < _CONTROL_STATE_MAX ? states[s].word : "unknown";
}

const char *control_state_cause(enum control_state s)
{
	return s < _CONTROL_STATE_MAX ? states[s].cause : "";
}

/* ---- building ---- */

int control_new(uint32_t n_leaves, struct control **ret)
{
	struct control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->n_leaves = n_leaves;
	/* One more: there is no error in not having a leaf. */
	c->unweighted = calloc(n_leaves + 1, sizeof(*c->unweighted));
	c->reserves = calloc(n_leaves + 1, sizeof(*c->reserves));
	c->is_reserved = calloc(n_leaves + 1, sizeof(*c->is_reserved));
	c->capacity = calloc(n_leaves + 1, sizeof(*c->capacity));
	c->fits = calloc(n_leaves + 1, sizeof(*c->fits));
	if (!c->unweighted || !c->reserves || !c->is_reserved || !c->capacity ||
	    !c->fits) {
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
	free(c->nodes);
	free(c->cells);
	free(c->rivals);
	free(c->kids);
	free(c->unweighted);
	free(c->reserves);
	free(c->is_reserved);
	free(c->capacity);
	free(c->fits);
	free(c);
	return NULL;
}

/* Make room for one more node; what has grown may stay so after a failure. */
static int nodes_grow(struct control *c)
{
	size_t size = c->nodes_size ? 2 * c->nodes_size : 16;
	struct rival *rivals;
	struct node *nodes;
	struct cell *cells;
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
	cells = reallocarray(c->cells, size * (c->n_leaves + 1),
			     sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	c->cells = cells;
	c->nodes_size = size;
	return 0;
}

int control_add_node(struct control *c, uint32_t parent, uint32_t *ret_node)
{
	static const struct asking nothing = { .idle_s = LONG_AGO_S,
					       .calm_s = LONG_AGO_S };
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
		*cell_of(c, n, l) = (struct cell){ .all = nothing,
						   .own = nothing,
						   .nominal = WEIGHT_DEFAULT,
						   .weight = WEIGHT_DEFAULT };
	if (n) {
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

/* Behind those that are as important. */
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

/* Among the promises of its cgroup, and in the cells from there up to the root. */
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
	c->nodes[node].rests = false;
	return &cell_of(c, node, leaf)->use;
}

void control_wake(struct control *c, uint32_t node)
{
	c->nodes[node].rests = false;
}

bool control_rests(const struct control *c, uint32_t node)
{
	return c->nodes[node].rests;
}

void control_set_nominal(struct control *c, uint32_t node, uint32_t leaf,
			 uint32_t weight)
{
	struct cell *cell = cell_of(c, node, leaf);

	weight = weight < WEIGHT_MIN ? WEIGHT_MIN : weight;
	weight = weight > WEIGHT_MAX ? WEIGHT_MAX : weight;
	/* Weights without a setpoint have their nominal value. */
	if (cell->weight == cell->nominal)
		cell->weight = weight;
	cell->nominal = weight;
}

uint32_t control_nominal(const struct control *c, uint32_t node, uint32_t leaf)
{
	return cell_of(c, node, leaf)->nominal;
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

/* ---- a tick ---- */

/* Not a number, and below 0, are 0. */
static double sane(double x, double high)
{
	return x > 0 ? fmin(x, high) : 0;
}

/*
 * Who waits a little may be held back elsewhere, on another leaf of its stripe, and
 * would take more here if it got more there: the more it waits, the less its use says
 * about its demand. With use alone, two units that were promised nothing, and were
 * short on another leaf, looked content; then the promised one's weight fell to
 * nominal, its rate to a fifth, and up again, every three seconds.
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
		for (uint32_t l = 0; l < c->n_leaves && !c->nodes[n].rests;
		     l++) {
			struct control_use *use = &cell_of(c, n, l)->use;

			use->time = sane(use->time, USE_MAX);
			use->backlog = sane(use->backlog, 1);
			use->pending = sane(use->pending, PENDING_MAX);
			use->busy = sane(use->busy, 1);
		}
	for (uint32_t i = 0; i < c->n_promises; i++) {
		struct control_promise *p = &c->promises[i].pub;

		p->rate = sane(p->rate, 1e30);
		p->fraction = sane(p->fraction, 1);
	}
}

static void ask(struct asking *a, double time, double backlog, double dt_s,
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
 * How much device time is charged per second of a busy leaf? It ought to be one
 * second. But costs on flash are learnt by class of request and may be off by some
 * percent for a mix, and weights divide what is charged.
 */
static void observe_capacity(struct control *c, double dt_s)
{
	double a = -expm1(-dt_s / CAPACITY_S);

	for (uint32_t l = 0; l < c->n_leaves; l++) {
		struct control_use *use = &cell_of(c, 0, l)->use;

		/* Where time is reserved, others wait for a leaf that has some to spare. */
		if (!c->is_reserved[l] && use->backlog >= BUSY &&
		    use->time >= CAPACITY_MIN)
			c->capacity[l] += a * (fmin(use->time, CAPACITY_MAX) -
					       c->capacity[l]);
	}
}

static void observe_node(struct control *c, uint32_t n, double dt_s,
			 double release)
{
	struct node *node = &c->nodes[n];

	if (node->rests)
		return;
	node->rests = !node->steered && node->promises == CONTROL_NONE;
	for (uint32_t l = 0; l < c->n_leaves; l++) {
		struct cell *cell = cell_of(c, n, l);

		cell->time = cell->use.time / c->capacity[l];
		cell->own_time = cell->time;
		cell->rivals = 0;
		cell->margin = 1;
		ask(&cell->all, cell->time, cell->use.backlog, dt_s, release);
		node->rests &= cell->use.time <= 0 &&
			       cell->all.calm_s >= LONG_AGO_S &&
			       cell->all.idle_s >= LONG_AGO_S;
	}
}

/* Who asks for how much? Times of cgroups include what is below them. */
static void observe(struct control *c, double dt_s)
{
	double release = -expm1(-dt_s / DEMAND_RELEASE_S);

	for (uint32_t n = 0; n < c->n_nodes; n++)
		observe_node(c, n, dt_s, release);
	for (uint32_t n = 1; n < c->n_nodes; n++) {
		uint32_t parent = c->nodes[n].parent;

		if (!c->nodes[parent].steered || c->nodes[n].rests)
			continue;
		for (uint32_t l = 0; l < c->n_leaves; l++) {
			struct cell *cell = cell_of(c, n, l);
			struct cell *above = cell_of(c, parent, l);

			above->own_time -= cell->time;
			above->rivals += cell->weight * cell->use.backlog;
			if (!cell->is_promised && is_active(&cell->all))
				above->margin = 1 / (1 - RESIDUAL);
		}
	}
}

/*
 * A cgroup's own requests beside its children's. Whether they wait is not known
 * apart from the children's: if they are there at all, the cgroup's backlog is
 * taken for theirs. Too much of it does no harm: it makes lambda smaller, and what is
 * then not used goes to all by weight.
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

			ask(&cell->own, time, backlog, dt_s, release);
			cell->rivals += OWN_WEIGHT * backlog;
			if (is_active(&cell->own))
				cell->margin = 1 / (1 - RESIDUAL);
		}
	}
}

void control_tick(struct control *c, double dt_s)
{
	if (!(dt_s > 0))
		return;
	dt_s = fmin(dt_s, TICK_MAX_S);
	make_sane(c);
	observe_capacity(c, dt_s);
	observe(c, dt_s);
	observe_own(c, dt_s);
	control_measure(c, dt_s);
	control_allot(c);
	control_judge(c, dt_s);
	control_reserve_all(c, dt_s);
	control_weigh(c, dt_s);
}

/* ---- output ---- */

double control_capacity(const struct control *c, uint32_t leaf)
{
	return c->capacity[leaf];
}

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
	return cell_of(c, node, leaf)->weight;
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
