/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Admission: do floors fit the measured capacity of devices, before they are in force?
 *
 *	policies that would hold -> floors of all units -> a plant of their own
 *	costs that the governor has learnt -> control_admit() -> a verdict per device
 *
 * The plant has the units with floors and the cgroups above them. The allotment is the
 * one of the control loop, with full demand: the loop would report a floor that does not
 * fit here as infeasible. Example, on a volume that does 100 MB/s for both units:
 *
 *	db.service	ReadBandwidthMin=/dev/vg/db 60M		0.6 of the leaf
 *	web.service	ReadBandwidthMin=/dev/vg/db 50%		0.5
 *
 * need 1.1 of the leaf and do not fit. A rate on a device of which nothing is known
 * takes nothing in the plant, and makes what would fit unknown; a percentage needs no
 * knowledge. So does not-fits never follow from a guess.
 *
 * A unit that a file or a client names and that does not run counts as a child of the
 * root. Declared capacities are promised.c's. Latency targets have no share before they are searched for, and do not count.
 */

#include "control/admission.h"
#include "control/plant.h"
#include "host/volume.h"
#include "policy/unit-cgroup.h"

const char *fit_to_string(enum fit f)
{
	static const char *const words[] = {
		[FIT_FITS] = "fits",
		[FIT_UNKNOWN] = "unknown",
		[FIT_DOES_NOT] = "does-not-fit",
	};

	return words[f];
}

/* ---- units and their floors ---- */

static bool is_floor(const struct promise *p)
{
	return promise_info(p->key)->kind == PROMISE_KIND_FLOOR;
}

/* A promise about any volume counts as a floor while the unit uses no volume. */
static bool counts(const struct policy *policy, const struct promise *p)
{
	bool counts = is_floor(p);

	for (size_t i = 0; i < policy->promises.n && promise_is_any(p); i++)
		counts &= policy->promises.items[i].key != p->key ||
			  !policy->promises.items[i].device;
	return counts;
}

static int add_guarantees(struct admission *a, const struct policy *policy)
{
	uint64_t importance = promises_importance(&policy->promises);
	struct guarantee *grown;

	for (size_t i = 0; i < policy->promises.n; i++) {
		const struct promise *p = &policy->promises.items[i];
		const struct device *d = p->device;

		if (!counts(policy, p))
			continue;
		grown = reallocarray(a->guarantees, a->n_guarantees + 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		a->guarantees = grown;
		grown[a->n_guarantees++] =
			(struct guarantee){ .unit = policy->subject,
					    .promise = p,
					    .importance = importance,
					    .device = d && d->n_leaves ? d
								       : NULL };
	}
	return 0;
}

int admission_expand(const struct admission_base *base, struct policy *policy,
		     const struct cgroup *c)
{
	_cleanup_free_ const struct device **used = NULL;
	size_t n = 0;
	int err;

	if (!c || !policy_has_any(policy))
		return 0;
	err = volumes_used(c, base->machine->topology, &used, &n);
	if (!err)
		err = policy_expand(policy, used, n);
	return err < 0 ? err : 0;
}

int admission_find_devices(const struct admission_base *base,
			   struct policy *policy, const struct cgroup *c)
{
	/* Report a path that leads to no device in the answer, and not in the log. */
	policy->is_proposed = true;
	policy_resolve(policy, base->machine->topology, base->machine->lookups);
	return admission_expand(base, policy, c);
}

/* @c: NULL for a unit that is not running, or a cgroup that does not exist. */
static int add_unit(struct admission *a, const char *name,
		    const struct cgroup *c)
{
	struct admission_unit *u, **grown;
	struct stated stated = {};
	int err;

	grown = reallocarray(a->units, a->n_units + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	a->units = grown;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	grown[a->n_units++] = u;
	u->cgroup = c;
	u->policy.subject = strdup(c ? c->policy->subject : name);
	if (!u->policy.subject)
		return -ENOMEM;
	err = clients_state(a->base->clients, a->policies, name, &stated);
	if (err)
		return err;
	u->policy.promises = stated.in_force;
	stated.in_force = (struct promises){};
	u->hidden = stated.hidden;
	stated.hidden = (struct promises){};
	stated_done(&stated);
	return admission_find_devices(a->base, &u->policy, c)
		       ?: add_guarantees(a, &u->policy);
}

/* The patterns of proposed files may match any cgroup. Without such files, a cgroup has the settings
 * that it has now, and most have none: a user may make any number of cgroups, and may call all the time.
 */
static bool may_have_settings(const struct cgroup *c, bool is_proposed)
{
	return c->origin != CGROUP_PENDING &&
	       (is_proposed || c->policy->promises.n);
}

static int add_units(struct admission *a, bool is_proposed)
{
	struct cgroup *root = cgroup_tree_root(a->base->machine->tree);
	_cleanup_strv_ char **names = NULL;
	int err = 0;

	for (struct cgroup *c = cgroup_next(root, root); c && !err;
	     c = cgroup_next(root, c))
		if (may_have_settings(c, is_proposed))
			err = add_unit(a, cgroup_subject(c), c);
	if (!err)
		err = policies_named(a->policies, &names)
			      ?: clients_units(a->base->clients, &names);
	for (char **name = names; name && *name && !err; name++) {
		const struct cgroup *c =
			unit_find_cgroup(a->base->machine->tree, *name);

		/* Settings made at run time count before systemd has answered about their unit. */
		if (!c || (c->origin != CGROUP_PENDING &&
			   !may_have_settings(c, is_proposed)))
			err = add_unit(a, *name, c);
	}
	return err;
}

/* ---- the plant ---- */

static uint32_t leaf_number(const struct admission *a, const struct device *d)
{
	uint32_t l = 0;

	while (l < a->n_leaves && a->leaves[l] != d)
		l++;
	return l;
}

static int add_leaves(struct admission *a)
{
	a->leaves = calloc(a->base->machine->topology->n_devices + 1,
			   sizeof(*a->leaves));
	if (!a->leaves)
		return -ENOMEM;
	for (size_t i = 0; i < a->n_guarantees; i++) {
		const struct device *d = a->guarantees[i].device;

		for (size_t l = 0; d && l < d->n_leaves; l++)
			if (leaf_number(a, d->leaves[l]) == a->n_leaves)
				a->leaves[a->n_leaves++] = d->leaves[l];
	}
	return 0;
}

static int add_node(struct admission *a, uint32_t parent,
		    const struct cgroup *c, uint32_t *ret)
{
	const struct cgroup **grown;

	grown = reallocarray(a->nodes, a->n_nodes + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	a->nodes = grown;
	grown[a->n_nodes++] = c;
	return control_add_node(a->control, parent, ret);
}

/* Find or make the node of a cgroup, and the nodes of its ancestors. */
static int find_node(struct admission *a, const struct cgroup *c, uint32_t *ret)
{
	uint32_t parent;
	int err;

	for (uint32_t n = 0; n < a->n_nodes; n++)
		if (a->nodes[n] == c) {
			*ret = n;
			return 0;
		}
	err = find_node(a, c->parent, &parent);
	return err ?: add_node(a, parent, c, ret);
}

static void take_costs(struct admission *a, const struct guarantee *g,
		       const struct cgroup *c)
{
	const struct plant *plant = a->base->plant;
	const struct governed *like;

	like = plant_find_like(plant, c, g->promise->key, g->device);
	for (uint32_t l = 0; like && l < a->n_leaves; l++) {
		uint32_t n = plant_leaf(plant, a->leaves[l]);

		if (n != CONTROL_NONE &&
		    device_stands_on(g->device, a->leaves[l]))
			control_learnt(a->control, g->number, l,
				       control_cost(plant->control,
						    like->number, n));
	}
}

static int add_promise(struct admission *a, struct guarantee *g, uint32_t node,
		       const struct cgroup *c)
{
	const struct device *d = g->device;
	_cleanup_free_ uint32_t *leaves = calloc(d->n_leaves, sizeof(*leaves));
	struct control_promise cp = {
		.node = node,
		.floor = g->promise->value,
		.part = (double)g->promise->part / PART_ALL,
		.importance = g->importance,
		.traffic = plant_traffic(a->base->machine->topology, d,
					 g->promise->key),
	};
	int err;

	if (!leaves)
		return -ENOMEM;
	for (size_t i = 0; i < d->n_leaves; i++)
		leaves[i] = leaf_number(a, d->leaves[i]);
	err = control_add_promise(a->control, &cp, leaves, d->n_leaves,
				  &g->number);
	if (!err)
		take_costs(a, g, c);
	return err;
}

static int make_plant(struct admission *a)
{
	struct cgroup *root = cgroup_tree_root(a->base->machine->tree);
	size_t next = 0;
	int err = add_leaves(a);

	a->nodes = calloc(1, sizeof(*a->nodes));
	if (!err && !a->nodes)
		err = -ENOMEM;
	if (!err)
		err = control_new(a->n_leaves, &a->control);
	if (err)
		return err;
	a->nodes[a->n_nodes++] = root;
	for (size_t u = 0; u < a->n_units && !err; u++) {
		const struct cgroup *c = a->units[u]->cgroup;
		const char *unit = a->units[u]->policy.subject;
		uint32_t node = CONTROL_NONE;

		for (; next < a->n_guarantees && !err &&
		       a->guarantees[next].unit == unit;
		     next++) {
			if (!a->guarantees[next].device)
				continue;
			if (node == CONTROL_NONE)
				err = c ? find_node(a, c, &node)
					: add_node(a, 0, NULL, &node);
			if (!err)
				err = add_promise(a, &a->guarantees[next], node,
						  c);
		}
	}
	return err;
}

/* ---- verdicts ---- */

static bool is_known(const struct guarantee *g)
{
	return g->promise->part || g->rate_alone > 0;
}

static void read_plant(struct admission *a)
{
	for (size_t i = 0; i < a->n_guarantees; i++) {
		struct guarantee *g = &a->guarantees[i];

		if (!g->device)
			continue;
		g->rate_alone = control_rate_alone(a->control, g->number);
		if (is_known(g))
			g->granted =
				control_promise(a->control, g->number)->phi;
		for (uint32_t l = 0; l < a->n_leaves; l++) {
			double need = control_need(a->control, g->number, l);

			g->share = need > g->share ? need : g->share;
		}
	}
}

static bool share_leaf(const struct device *a, const struct device *b)
{
	for (size_t i = 0; i < a->n_leaves; i++)
		if (device_stands_on(b, a->leaves[i]))
			return true;
	return false;
}

/* A guarantee on the device that cannot be kept. */
static const struct guarantee *find_cut(const struct admission *a,
					const struct device *d)
{
	const struct guarantee *worst = NULL;

	for (size_t i = 0; i < a->n_guarantees; i++) {
		const struct guarantee *g = &a->guarantees[i];

		if (g->device == d &&
		    !control_is_granted(
			    control_promise(a->control, g->number)) &&
		    (!worst || g->granted < worst->granted))
			worst = g;
	}
	return worst;
}

/* A guarantee of unknown cost on the device, or on one that shares a leaf with it. */
static const struct guarantee *find_unknown(const struct admission *a,
					    const struct device *d)
{
	for (size_t i = 0; i < a->n_guarantees; i++) {
		const struct guarantee *g = &a->guarantees[i];

		if (g->device && !is_known(g) && share_leaf(g->device, d))
			return g;
	}
	return NULL;
}

static const struct device *find_unweighted(const struct admission *a,
					    const struct device *d)
{
	for (size_t i = 0; i < d->n_leaves; i++)
		if (!actuator_backend(a->base->actuator, d->leaves[i]))
			return d->leaves[i];
	return NULL;
}

static char *judge(const struct admission *a, struct admitted *on)
{
	const struct device *leaf = find_unweighted(a, on->device);
	const struct guarantee *g = find_cut(a, on->device);
	_cleanup_free_ char *needed = format_percent(on->needed);

	if (!needed)
		return NULL;
	if (g) {
		on->fit = FIT_DOES_NOT;
		return asprintf_or_null(
			"the floors need %s of %s, where 2 %% at each level "
			"of the cgroup tree is kept for units without a floor. "
			"%s=%s of %s would get %.0f %% of its rate. Lower a "
			"floor, or move a unit to another device",
			needed, on->leaf->node,
			promise_info(g->promise->key)->name, g->promise->path,
			g->unit, g->granted * 100);
	}
	if (leaf && !leaf->devno) {
		on->fit = FIT_UNKNOWN;
		return actuator_hidden_cause(leaf);
	}
	if (leaf && !leaf->scheduler) {
		on->fit = FIT_UNKNOWN;
		return asprintf_or_null(
			"the scheduler of %s cannot be read. Errors of the "
			"disk are in the output of \"journalctl -k\"; check "
			"again when the disk answers",
			leaf->node);
	}
	if (leaf) {
		on->fit = FIT_UNKNOWN;
		return asprintf_or_null("the scheduler of %s (%s) has no "
					"weights, so no floor holds; run "
					"\"sutroctl use %s\"",
					leaf->node, leaf->scheduler, on->path);
	}
	g = find_unknown(a, on->device);
	if (g) {
		on->fit = FIT_UNKNOWN;
		return asprintf_or_null(
			"the capacity of %s for %s= of %s is unknown; the "
			"other floors need %s of %s. Check again when the "
			"unit has used the device with this floor, or state it "
			"in percent",
			g->device->node, promise_info(g->promise->key)->name,
			g->unit, needed, on->leaf->node);
	}
	on->fit = FIT_FITS;
	return asprintf_or_null("the floors need %s of %s", needed,
				on->leaf->node);
}

/* The answer for a floor without a device. */
static char *judge_nowhere(const struct guarantee *g, struct admitted *on)
{
	on->fit = FIT_UNKNOWN;
	if (promise_is_any(g->promise))
		return asprintf_or_null(
			"%s has used no volume yet on which a floor can hold; "
			"check again when it has",
			g->unit);
	if (g->promise->device)
		return asprintf_or_null("%s has no request queue, so no floor "
					"holds there",
					g->promise->device->node);
	return asprintf_or_null("%s is on no block device; correct the path, "
				"or check again when the device is there",
				g->promise->path);
}

static struct admitted *find_admitted(const struct admission *a,
				      const struct device *d)
{
	for (size_t i = 0; i < a->n_devices && d; i++)
		if (a->devices[i].device == d)
			return &a->devices[i];
	return NULL;
}

static int add_admitted(struct admission *a, const struct guarantee *g)
{
	const struct device *d = g->device;
	struct admitted *on;

	if (find_admitted(a, d))
		return 0;
	on = reallocarray(a->devices, a->n_devices + 1, sizeof(*on));
	if (!on)
		return -ENOMEM;
	a->devices = on;
	on += a->n_devices++;
	*on = (struct admitted){ .device = d,
				 .path = d ? device_label(d)
					   : g->promise->path };
	for (size_t i = 0; d && i < d->n_leaves; i++) {
		double needed = control_needed(a->control,
					       leaf_number(a, d->leaves[i]));

		if (on->leaf && needed <= on->needed)
			continue;
		on->leaf = d->leaves[i];
		on->needed = needed;
	}
	on->reason = d ? judge(a, on) : judge_nowhere(g, on);
	if (!on->reason)
		return -ENOMEM;
	a->fit = on->fit > a->fit ? on->fit : a->fit;
	return 0;
}

int admission_check(const struct admission_base *base,
		    const struct proposals *files, struct admission *a,
		    char **ret_error)
{
	int err;

	*a = (struct admission){ .base = base };
	err = policies_propose(base->policies, files, &a->policies, ret_error);
	if (!err)
		err = add_units(a, files->n);
	if (!err)
		err = make_plant(a);
	if (err)
		return err;
	control_admit(a->control);
	read_plant(a);
	for (size_t i = 0; i < a->n_guarantees && !err; i++)
		err = add_admitted(a, &a->guarantees[i]);
	return err;
}

void admission_done(struct admission *a)
{
	for (size_t i = 0; i < a->n_devices; i++)
		free(a->devices[i].reason);
	for (size_t i = 0; i < a->n_units; i++) {
		policy_done(&a->units[i]->policy);
		promises_done(&a->units[i]->hidden);
		free(a->units[i]);
	}
	free(a->devices);
	free(a->guarantees);
	free(a->units);
	free(a->leaves);
	free(a->nodes);
	control_free(a->control);
	policies_free(a->policies);
	*a = (struct admission){};
}
