/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The plant: the cgroups, leaves and floors that the control law works on.
 *
 * Nodes are the cgroups on the way from the root to a promised one, and the children of
 * those on the way: all competitors of a promise at each level. Measured costs of a floor
 * go on from plant to plant, and outlive its unit and the daemon in prior.c, so that the
 * first weights of a new unit are right. Until its first samples, a new daemon leaves the
 * lines of its predecessor alone.
 */

#include <malloc.h>
#include <math.h>

#include "control/enforce.h"
#include "control/plant.h"
#include "policy/policy.h"

/* ---- memory ---- */

static char *learnt_path(const struct machine *machine)
{
	return asprintf_or_null("%s/" PLANT_FILE, machine->roots.run);
}

int plant_load(struct plant *plant, const struct machine *machine)
{
	_cleanup_free_ char *path = learnt_path(machine);

	return path ? priors_load(&plant->priors, path) : -ENOMEM;
}

int plant_remember(struct plant *plant, const struct machine *machine,
		   const struct cgroup *c)
{
	int err = 0;

	for (size_t i = 0; i < plant->n_floors && !err; i++) {
		const struct governed *f = &plant->floors[i];
		struct prior p = { .key = f->key,
				   .device = f->devno,
				   .usec = machine_now_usec(machine),
				   .source = f->source };

		if (!f->cgroup || (c && f->cgroup != c) ||
		    !control_is_measured(plant->control, f->number))
			continue;
		p.unit = f->cgroup->policy->subject;
		for (uint32_t l = 0; l < plant->n_leaves && !err; l++) {
			p.leaf = plant->leaves[l];
			p.leaf_seq = plant->leaf_seqs[l];
			p.cost_s = control_cost(plant->control, f->number, l);
			if (p.cost_s > 0)
				err = priors_set(&plant->priors, &p);
		}
	}
	return err;
}

int plant_save(struct plant *plant, const struct machine *machine)
{
	_cleanup_free_ char *path = learnt_path(machine);
	int err = path ? plant_remember(plant, machine, NULL) : -ENOMEM;

	if (err || machine->dry_run)
		return err;
	return priors_save(&plant->priors, path);
}

/* ---- nodes and leaves ---- */

/* The device of a promise that the governor keeps by weights; NULL for other promises, and where
 * a leaf can have no weights.
 */
static const struct device *device_of(const struct promise *p)
{
	if (!promise_is_governed(p) || !p->device || !p->device->n_leaves)
		return NULL;
	return device_hidden_leaf(p->device) ? NULL : p->device;
}

static bool is_promised(const struct cgroup *c)
{
	for (size_t i = 0; i < c->policy->promises.n; i++)
		if (device_of(&c->policy->promises.items[i]))
			return true;
	return false;
}

static int add_leaf(struct plant *plant, dev_t devno)
{
	dev_t *grown;

	for (size_t l = 0; l < plant->n_leaves; l++)
		if (plant->leaves[l] == devno)
			return 0;
	grown = reallocarray(plant->leaves, plant->n_leaves + 1,
			     sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	plant->leaves = grown;
	grown[plant->n_leaves++] = devno;
	return 0;
}

static int add_leaves_of(struct plant *plant, const struct cgroup *c)
{
	int err = 0;

	for (size_t i = 0; i < c->policy->promises.n && !err; i++) {
		const struct device *d =
			device_of(&c->policy->promises.items[i]);

		for (size_t l = 0; d && l < d->n_leaves && !err; l++)
			err = add_leaf(plant, d->leaves[l]->devno);
	}
	return err;
}

/* Add the node of a cgroup while the plant is made. The children of an open node are nodes, too. */
static int add_node(struct plant *plant, struct cgroup *c)
{
	struct cgroup **grown;
	uint32_t number = 0;
	int err = 0;

	grown = reallocarray(plant->nodes, plant->n_nodes + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	plant->nodes = grown;
	if (c->parent)
		err = control_add_node(plant->control, c->parent->node,
				       &number);
	if (err)
		return err;
	c->node = number;
	grown[plant->n_nodes++] = c;
	return 0;
}

static void mark_way(struct cgroup *c)
{
	for (; c && !c->on_way; c = c->parent)
		c->on_way = true;
}

static bool has_target(const struct cgroup *c)
{
	for (size_t i = 0; i < c->policy->promises.n; i++) {
		const struct promise *p = &c->policy->promises.items[i];

		if (device_of(p) &&
		    promise_info(p->key)->kind == PROMISE_KIND_TARGET)
			return true;
	}
	return false;
}

/*
 * The rate at a volume is read from io.stat, that at a disk from the counters of the
 * scheduler. So a promise for a disk needs no io.stat.
 */
static bool needs_rates(const struct cgroup *c)
{
	for (size_t i = 0; i < c->policy->promises.n; i++) {
		const struct device *d =
			device_of(&c->policy->promises.items[i]);

		if (d && !(device_is_lowest(d) && sample_counts_time(d)))
			return true;
	}
	return false;
}

/* The cgroups above are sampled, too, as a limit of one of them may be used up. */
static void mark_rates(struct cgroup *c)
{
	for (; c->parent; c = c->parent)
		c->sampled |= SAMPLE_RATE;
}

/* Mark the counters that the sampler reads. */
static void mark_sampled(struct plant *plant, bool measured, bool guessed)
{
	for (size_t n = 0; n < plant->n_nodes; n++) {
		struct cgroup *top = plant->nodes[n];

		if (guessed)
			top->sampled |= SAMPLE_RATE;
		if (needs_rates(top))
			mark_rates(top);
		if (!measured)
			continue;
		top->sampled |= SAMPLE_TIME;
		/* The children of a cgroup on the way to a floor are nodes of their own. */
		for (struct cgroup *c = cgroup_next(top, top);
		     c && !top->on_way; c = cgroup_next(top, c))
			c->sampled |= SAMPLE_TIME;
		for (struct cgroup *c = top; c && has_target(top);
		     c = cgroup_next(top, c))
			c->sampled |= SAMPLE_LATENCY;
	}
}

static int add_nodes(struct plant *plant, struct cgroup *root)
{
	int err = 0;

	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c))
		if (!c->parent || c->parent->on_way)
			err = add_node(plant, c);
	return err;
}

/* ---- finding ---- */

const struct governed *plant_find(const struct plant *plant,
				  const struct cgroup *c,
				  const struct promise *p)
{
	for (size_t i = 0; i < plant->n_floors; i++) {
		const struct governed *f = &plant->floors[i];

		if (f->cgroup == c && f->key == p->key &&
		    streq(f->path, p->path))
			return f;
	}
	return NULL;
}

const struct governed *plant_find_like(const struct plant *plant,
				       const struct cgroup *c,
				       enum promise_key key,
				       const struct device *d)
{
	const struct governed *best = NULL;
	double least = INFINITY;

	for (size_t i = 0; i < plant->n_floors; i++) {
		const struct governed *f = &plant->floors[i];
		double rate;

		if (f->key != key || f->devno != d->devno || f->target ||
		    !control_is_measured(plant->control, f->number))
			continue;
		if (c && f->cgroup == c)
			return f;
		rate = control_rate_alone(plant->control, f->number);
		if (rate < least) {
			least = rate;
			best = f;
		}
	}
	return best;
}

uint32_t plant_leaf(const struct plant *plant, const struct device *leaf)
{
	for (uint32_t l = 0; l < plant->n_leaves; l++)
		if (plant->leaves[l] == leaf->devno)
			return l;
	return CONTROL_NONE;
}

/* ---- floors ---- */

static bool is_mirror(enum device_kind kind)
{
	return kind == DEVICE_RAID1 || kind == DEVICE_RAID10 ||
	       kind == DEVICE_MIRROR;
}

static bool wanders_on(const struct device *d, bool write, uint64_t walk)
{
	bool some = d->kind == DEVICE_LINEAR || d->kind == DEVICE_THIN ||
		    d->kind == DEVICE_THIN_POOL ||
		    (is_mirror(d->kind) && !write);

	if (d->n_leaves < 2 || !device_enter(d, walk))
		return false;
	for (size_t i = 0; i < d->n_slaves && !some; i++)
		some = wanders_on(d->slaves[i], write, walk);
	return some;
}

/* May traffic move between the leaves? A mirror writes to all disks, and reads from any. */
static bool wanders(const struct device *d, enum promise_key key)
{
	return wanders_on(d, promise_info(key)->write, device_walk());
}

/* A new unit begins with the cost of a similar one. */
static void recall(struct plant *plant, const struct governed *f,
		   const struct machine *machine)
{
	struct prior like = { .key = f->key,
			      .device = f->devno,
			      .usec = machine_now_usec(machine),
			      .unit = f->cgroup->policy->subject,
			      .source = f->source };

	for (uint32_t l = 0; l < plant->n_leaves; l++) {
		const struct prior *p;

		like.leaf = plant->leaves[l];
		like.leaf_seq = plant->leaf_seqs[l];
		p = priors_find(&plant->priors, &like);
		if (p)
			control_learnt(plant->control, f->number, l, p->cost_s);
	}
}

uint32_t plant_traffic(const struct topology *t, const struct device *d,
		       enum promise_key key)
{
	uint32_t i = 0;

	while (t->devices[i] != d)
		i++;
	return 2 * i + promise_info(key)->write;
}

/* A floor that changed its value keeps its costs. */
static void take_costs(struct plant *plant, const struct governed *f,
		       const struct plant *was, const struct governed *old,
		       const uint32_t *leaf_was)
{
	if (f->target || !control_is_measured(was->control, old->number))
		return;
	for (uint32_t l = 0; l < plant->n_leaves; l++)
		if (leaf_was[l] != CONTROL_NONE)
			control_learnt(plant->control, f->number, l,
				       control_cost(was->control, old->number,
						    leaf_was[l]));
}

/* @was: the former plant. */
static int add_floor(struct plant *plant, struct plant *was,
		     const struct machine *machine, const uint32_t *leaf_was,
		     struct cgroup *c, const struct promise *p,
		     const struct device *d)
{
	struct governed *grown, *f, *old;
	uint32_t leaves[d->n_leaves];
	struct control_promise cp = {
		.node = c->node,
		.floor = p->value,
		.part = (double)p->part / PART_ALL,
		.importance = promises_importance(&c->policy->promises),
		.wandering = wanders(d, p->key),
		.traffic = plant_traffic(machine->topology, d, p->key),
	};
	int err;

	for (size_t i = 0; i < d->n_leaves; i++)
		leaves[i] = plant_leaf(plant, d->leaves[i]);
	grown = reallocarray(plant->floors, plant->n_floors + 1,
			     sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	plant->floors = grown;
	f = &grown[plant->n_floors++];
	*f = (struct governed){ .cgroup = c,
				.key = p->key,
				.path = strdup(p->path),
				.source = strdup(p->source ?: ""),
				.floor = p->value,
				.part = p->part,
				.devno = d->devno };
	if (promise_info(p->key)->kind == PROMISE_KIND_TARGET) {
		f->target = calloc(1, sizeof(*f->target));
		if (!f->target)
			return -ENOMEM;
		target_init(f->target, p->value,
			    (double)p->percentile / PART_ALL,
			    promise_info(p->key)->op, d->n_leaves);
		f->is_enforceable = enforce_takes(p, d);
		cp.floor = f->target->wanted;
		cp.is_time = true;
	}
	err = control_add_promise(plant->control, &cp, leaves, d->n_leaves,
				  &f->number);
	if (err || !f->path || !f->source)
		return err ?: -ENOMEM;
	old = (struct governed *)plant_find(was, c, p);
	if (!old) {
		f->history = calloc(1, sizeof(*f->history));
		recall(plant, f, machine);
		return f->history ? 0 : -ENOMEM;
	}
	f->got = old->got;
	f->reserve = old->reserve;
	f->bytes = old->bytes;
	f->leaf_bytes = old->leaf_bytes;
	f->copies = old->copies;
	f->state = old->state;
	f->complained = old->complained;
	f->cause = TAKE_PTR(old->cause);
	f->history = TAKE_PTR(old->history);
	f->remembered_usec = old->remembered_usec;
	if (old->devno != f->devno)
		return 0;
	f->partition = old->partition;
	f->lost_bytes = old->lost_bytes;
	f->passed_bytes = old->passed_bytes;
	f->passed_usec = old->passed_usec;
	if (old->part != f->part || (!f->part && old->floor != f->floor)) {
		take_costs(plant, f, was, old, leaf_was);
		return 0;
	}
	if (f->part)
		f->floor = old->floor;
	if (f->target)
		target_inherit(f->target, old->target);
	control_inherit(plant->control, f->number, was->control, old->number,
			leaf_was);
	return 0;
}

static int add_floors(struct plant *plant, struct plant *was,
		      const struct machine *machine, const uint32_t *leaf_was)
{
	int err = 0;

	for (size_t n = 0; n < plant->n_nodes && !err; n++) {
		struct cgroup *c = plant->nodes[n];

		for (size_t i = 0; i < c->policy->promises.n && !err; i++) {
			const struct promise *p = &c->policy->promises.items[i];
			const struct device *d = device_of(p);

			if (d)
				err = add_floor(plant, was, machine, leaf_was,
						c, p, d);
		}
	}
	return err;
}

/* ---- old and new ---- */

static void drop(struct plant *plant)
{
	for (size_t i = 0; i < plant->n_floors; i++) {
		free(plant->floors[i].path);
		free(plant->floors[i].source);
		free(plant->floors[i].cause);
		free(plant->floors[i].target);
		free(plant->floors[i].history);
	}
	free(plant->floors);
	free(plant->nodes);
	free(plant->leaves);
	free(plant->busy_ms);
	free(plant->leaf_seqs);
	control_free(plant->control);
}

static void clear(struct plant *plant)
{
	plant->control = NULL;
	plant->nodes = NULL;
	plant->n_nodes = 0;
	plant->leaves = NULL;
	plant->busy_ms = NULL;
	plant->leaf_seqs = NULL;
	plant->n_leaves = 0;
	plant->floors = NULL;
	plant->n_floors = 0;
}

void plant_free(struct plant *plant)
{
	drop(plant);
	priors_done(&plant->priors);
	*plant = (struct plant){};
}

/* A cgroup that is no longer in a plant gets its nominal weights back. When the daemon has
 * just started, nodes keep their present lines until there are samples.
 */
static int settle_setpoints(const struct plant *plant,
			    const struct control_context *context,
			    bool keep_lines)
{
	struct cgroup *root = cgroup_tree_root(context->machine->tree);
	int r = 0;

	for (struct cgroup *c = root; c && r >= 0; c = cgroup_next(root, c)) {
		bool is_node = c->parent && c->parent->on_way;

		for (size_t i = c->policy->n_setpoints; i-- > 0;) {
			dev_t devno = c->policy->setpoints[i].devno;
			bool known = false;

			for (size_t l = 0; l < plant->n_leaves; l++)
				known |= plant->leaves[l] == devno;
			if (is_node && known)
				continue;
			policy_clear_point(c->policy, devno);
			context->setpoint_changed(c, context->userdata);
		}
		for (size_t l = 0;
		     keep_lines && is_node && l < plant->n_leaves && r >= 0;
		     l++)
			r = policy_set_point(c->policy, plant->leaves[l],
					     SETPOINT_KEEP, NULL);
	}
	return r < 0 ? r : 0;
}

/* A floor may be gone, and its reserve ends with it. */
static void settle_reserve(const struct plant *was, const struct governed *f,
			   const struct control_context *context)
{
	if (f->cgroup && control_promise(was->control, f->number)->reserve > 0)
		context->setpoint_changed(f->cgroup, context->userdata);
}

static int make(struct plant *plant, struct plant *was,
		const struct control_context *context, bool keep_lines)
{
	const struct topology *t = context->machine->topology;
	struct cgroup *root = cgroup_tree_root(context->machine->tree);
	bool measured = false, guessed = false;
	uint32_t *leaf_was;
	int err = 0;

	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c)) {
		c->node = CONTROL_NONE;
		c->on_way = false;
		c->sampled = 0;
		err = add_leaves_of(plant, c);
	}
	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c))
		if (c->parent && is_promised(c))
			mark_way(c->parent);
	if (err || !plant->n_leaves)
		return err ?: settle_setpoints(plant, context, keep_lines);
	err = control_new(plant->n_leaves, &plant->control);
	plant->busy_ms = calloc(plant->n_leaves, sizeof(*plant->busy_ms));
	plant->leaf_seqs = calloc(plant->n_leaves, sizeof(*plant->leaf_seqs));
	leaf_was = calloc(plant->n_leaves, sizeof(*leaf_was));
	if (!err && (!plant->busy_ms || !plant->leaf_seqs || !leaf_was))
		err = -ENOMEM;
	for (uint32_t l = 0; l < plant->n_leaves && !err; l++) {
		const struct device *d = topology_by_devno(t, plant->leaves[l]);
		const char *backend = actuator_backend(context->actuator, d);

		leaf_was[l] = plant_leaf(was, d);
		plant->leaf_seqs[l] = d->diskseq;
		control_set_weighted(plant->control, l, backend);
		if (backend && streq(backend, "sutro")) {
			measured = true;
			control_set_reserves(plant->control, l, true);
		} else {
			guessed = true;
		}
	}
	if (!err)
		err = add_nodes(plant, root);
	if (!err)
		err = add_floors(plant, was, context->machine, leaf_was);
	for (uint32_t n = 0; n < was->n_nodes && !err; n++)
		if (was->nodes[n] && was->nodes[n]->node != CONTROL_NONE)
			err = control_inherit_node(plant->control,
						   was->nodes[n]->node,
						   was->control, n, leaf_was);
	free(leaf_was);
	if (err)
		return err;
	mark_sampled(plant, measured, guessed);
	return settle_setpoints(plant, context, keep_lines);
}

int plant_make(struct plant *plant, const struct control_context *context,
	       bool keep_lines)
{
	struct plant was;
	int err;

	err = plant_remember(plant, context->machine, NULL);
	if (err)
		return err;
	was = *plant;
	clear(plant);
	err = make(plant, &was, context, keep_lines);
	for (size_t i = 0; i < was.n_floors; i++)
		settle_reserve(&was, &was.floors[i], context);
	drop(&was);
	/* The tables of a large machine have megabytes, and glibc keeps freed ones in its heap. */
	malloc_trim(0);
	/* An incomplete plant is of no use. */
	if (err) {
		drop(plant);
		clear(plant);
	}
	return err;
}
