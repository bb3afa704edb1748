/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From settings to one weight per (cgroup, leaf).
 *
 * Several statements can be about one leaf, for stacks share disks:
 *
 *	IOWeight=100
 *	IODeviceWeight=/dev/vg/db 300       db stands on sda and sdb
 *	IODeviceWeight=/srv/backup 50       on a volume that stands on sdb and sdc
 *	IODeviceWeight=/dev/sda 200
 *
 * 1. A statement that names the leaf itself or a partition of it wins: sda 200.
 *    Of several the largest.
 * 2. Else the largest of the stacks that stand on the leaf: sdb 300, sdc 50. A
 *    cgroup has one weight per leaf, and the promise to db must hold on sdb too;
 *    backup then gets more there than its setting, which takes nothing from a unit
 *    with a larger one.
 * 3. Else IOWeight=: sdd 100.
 *
 * These are nominal weights. Where floors need others, the governor gives a setpoint
 * for the leaf, which is what is written then.
 *
 * This file does no I/O.
 */

#include "host/event.h"
#include "host/path.h"
#include "policy/policy.h"

int policy_add(struct policy *p, const char *path, uint64_t weight)
{
	struct statement *grown;

	grown = reallocarray(p->statements, p->n_statements + 1,
			     sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->statements = grown;
	grown[p->n_statements] =
		(struct statement){ .path = strdup(path), .weight = weight };
	if (!grown[p->n_statements].path)
		return -ENOMEM;
	p->n_statements++;
	return 0;
}

/* The kernel drops these lines with the device. Settings of systemd and of policies stay. */
static bool is_line(const struct policy *p, const struct statement *s)
{
	return s->file || (p->source == POLICY_FILE && !s->source);
}

void policy_device_gone(struct policy *p, const char *node)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n_statements; i++) {
		struct statement *s = &p->statements[i];

		if (is_line(p, s) && streq(s->path, node))
			free(s->path);
		else
			p->statements[kept++] = *s;
	}
	p->n_statements = kept;
}

static int add_weight(struct policy *p, const struct promise *weight)
{
	struct statement *s = NULL;
	char *source = strdup(weight->source ?: "");
	int err;

	if (!source)
		return -ENOMEM;
	if (!weight->path) {
		free(p->weight_source);
		p->weight_source = source;
		p->weight = weight->value;
		p->weight_set = true;
		return 0;
	}
	for (size_t i = 0; i < p->n_statements && !s; i++)
		if (streq(p->statements[i].path, weight->path))
			s = &p->statements[i];
	if (!s) {
		err = policy_add(p, weight->path, weight->value);
		if (err) {
			free(source);
			return err;
		}
		s = &p->statements[p->n_statements - 1];
	}
	free(s->source);
	s->source = source;
	s->file = NULL;
	s->weight = weight->value;
	return 0;
}

int policy_promise(struct policy *p, struct promises *promises)
{
	int err = 0;

	promises_done(&p->promises);
	p->promises = *promises;
	*promises = (struct promises){};
	for (size_t i = 0; i < p->promises.n && !err; i++)
		if (p->promises.items[i].key == PROMISE_WEIGHT)
			err = add_weight(p, &p->promises.items[i]);
	return err;
}

void policy_done(struct policy *p)
{
	for (size_t i = 0; i < p->n_statements; i++) {
		free(p->statements[i].path);
		free(p->statements[i].source);
	}
	free(p->statements);
	free(p->weight_source);
	promises_done(&p->promises);
	policy_clear_points(p);
	free(p->left_out);
	free(p->subject);
	*p = (struct policy){};
}

static void report_path(const struct policy *p, const char *setting,
			const char *path, int err)
{
	if (err)
		log_event(EVENT_PATH_UNRESOLVED, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_UNIT", p->subject },
				       { "SUTRO_SETTING", setting },
				       { "SUTRO_PATH", path }),
			  "%s: %s on %s has no effect until that path is on a "
			  "disk: %s",
			  p->subject, setting, path, strerror(-err));
	else
		log_event(EVENT_PATH_RESOLVED, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_UNIT", p->subject },
				       { "SUTRO_SETTING", setting },
				       { "SUTRO_PATH", path }),
			  "%s: %s on %s is in force: that path is on a disk "
			  "now.",
			  p->subject, setting, path);
}

/* Is the error none of the path? */
static bool is_momentary(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
	       err == -EIO;
}

/* Where does @path lead? Logged once when it leads nowhere, not whenever a disk comes or
 * goes, and once when it leads to a device again.
 *
 * @before: its device, which it keeps while the machine cannot be read; NULL: not known
 */
static const struct device *resolve(const struct policy *p,
				    const struct topology *t,
				    struct lookups *lookups, const char *path,
				    const struct device *before, bool *missed,
				    const char *setting)
{
	struct device *d = NULL;
	int err;

	err = lookups_find(lookups, t, path, &d);
	/* All paths are resolved again when the answer arrives. */
	if (err == -EINPROGRESS)
		return NULL;
	if (before && is_momentary(err))
		return before;
	if (*missed != (err != 0) && !p->is_proposed)
		report_path(p, setting, path, err);
	*missed = err;
	return d;
}

static const char *weight_name(const struct policy *p,
			       const struct statement *s)
{
	if (s->source)
		return "Weight";
	return p->source == POLICY_UNIT ? "IODeviceWeight" : "io.weight";
}

/* Derived promises are the last ones of the list. */
static void drop_derived(struct promises *l)
{
	while (l->n > 0 && l->items[l->n - 1].derived)
		promise_done(&l->items[--l->n]);
}

/* Return: does a path lead to another device than before? */
static bool resolve_all(struct policy *p, const struct topology *t,
			struct lookups *lookups, bool is_new_topology)
{
	bool is_other = false;

	for (size_t i = 0; i < p->n_statements; i++) {
		struct statement *s = &p->statements[i];
		const struct device *before = is_new_topology ? NULL
							      : s->device;

		s->device = resolve(p, t, lookups, s->path, before, &s->missed,
				    weight_name(p, s));
		is_other |= s->device != before;
	}
	for (size_t i = 0; i < p->promises.n; i++) {
		struct promise *one = &p->promises.items[i];
		const struct device *before = is_new_topology ? NULL
							      : one->device;

		/* A weight of a device is a statement, too. */
		if (!one->path || promise_is_any(one) || one->derived ||
		    one->key == PROMISE_WEIGHT)
			continue;
		one->device = resolve(p, t, lookups, one->path, before,
				      &one->missed,
				      promise_info(one->key)->name);
		is_other |= one->device != before;
	}
	return is_other;
}

static void clear_left_out(struct policy *p)
{
	free(p->left_out);
	p->left_out = NULL;
	p->n_left_out = 0;
}

void policy_resolve(struct policy *p, const struct topology *t,
		    struct lookups *lookups)
{
	drop_derived(&p->promises);
	clear_left_out(p);
	resolve_all(p, t, lookups, true);
}

bool policy_resolve_again(struct policy *p, const struct topology *t,
			  struct lookups *lookups)
{
	return resolve_all(p, t, lookups, false);
}

static bool statement_was_missed(const struct policy *former, const char *path)
{
	for (size_t i = 0; i < former->n_statements; i++)
		if (streq(former->statements[i].path, path))
			return former->statements[i].missed;
	return false;
}

void policy_keep_missed(struct policy *p, const struct policy *former)
{
	for (size_t i = 0; i < p->n_statements; i++)
		p->statements[i].missed =
			statement_was_missed(former, p->statements[i].path);
	for (size_t i = 0; i < p->promises.n; i++) {
		struct promise *one = &p->promises.items[i], *was;

		was = promises_find(&former->promises, one->key, one->path);
		one->missed = was && was->missed;
	}
}

void policy_each_path(const struct policy *p, paths_fn *fn, void *userdata)
{
	for (size_t i = 0; i < p->n_statements; i++)
		fn(p->statements[i].path, userdata);
	promises_each_path(&p->promises, fn, userdata);
}

/* ---- promises about any volume ---- */

bool policy_has_any(const struct policy *p)
{
	for (size_t i = 0; i < p->promises.n; i++)
		if (promise_is_any(&p->promises.items[i]))
			return true;
	return false;
}

/* A path may lead to a partition, whose volume is the disk. */
static bool is_named(const struct policy *p, enum promise_key key,
		     const struct device *volume)
{
	for (size_t i = 0; i < p->promises.n; i++) {
		const struct promise *one = &p->promises.items[i];

		if (one->key == key && !one->derived && one->device &&
		    device_is_part_of(one->device, volume))
			return true;
	}
	return false;
}

/* No weights are there for the governor. */
static bool can_hold_none(const struct device *volume)
{
	return !volume->n_leaves || device_hidden_leaf(volume);
}

static int derive(const struct policy *p, const struct device *const *used,
		  size_t n_used, struct promises *ret)
{
	int err = 0;

	for (size_t i = 0; i < p->promises.n; i++) {
		struct promise one = p->promises.items[i];

		for (size_t u = 0; promise_is_any(&one) && u < n_used && !err;
		     u++) {
			const struct device *d = used[u];
			struct promise derived = one;

			if (is_named(p, one.key, d) ||
			    (promise_is_governed(&one) && can_hold_none(d)))
				continue;
			derived.path = (char *)device_label(d);
			derived.device = d;
			derived.derived = true;
			err = promises_add(ret, &derived);
		}
	}
	return err;
}

static bool is_same(const struct promise *a, const struct promise *b)
{
	return a->key == b->key && a->device == b->device &&
	       a->value == b->value && a->part == b->part &&
	       a->percentile == b->percentile && streq(a->path, b->path) &&
	       streq(a->source, b->source);
}

static int set_left_out(struct policy *p, const struct device *const *used,
			size_t n_used)
{
	clear_left_out(p);
	p->left_out = calloc(n_used + 1, sizeof(*p->left_out));
	if (!p->left_out)
		return -ENOMEM;
	for (size_t u = 0; u < n_used; u++)
		if (can_hold_none(used[u]))
			p->left_out[p->n_left_out++] = used[u];
	return 0;
}

const struct device *policy_left_out(const struct policy *p,
				     enum promise_key key, size_t *i)
{
	while (*i < p->n_left_out) {
		const struct device *d = p->left_out[(*i)++];

		if (!is_named(p, key, d))
			return d;
	}
	return NULL;
}

int policy_expand(struct policy *p, const struct device *const *used,
		  size_t n_used)
{
	struct promises derived = {}, *l = &p->promises, all = {};
	size_t first = l->n;
	bool same;
	int err;

	while (first > 0 && l->items[first - 1].derived)
		first--;
	err = set_left_out(p, used, n_used)
		      ?: derive(p, used, n_used, &derived);
	same = !err && derived.n == l->n - first;
	for (size_t i = 0; i < derived.n && same; i++)
		same = is_same(&derived.items[i], &l->items[first + i]);
	for (size_t i = 0; i < first && !same && !err; i++)
		err = promises_add(&all, &l->items[i]);
	for (size_t i = 0; i < derived.n && !same && !err; i++)
		err = promises_add(&all, &derived.items[i]);
	promises_done(&derived);
	if (err || same) {
		promises_done(&all);
		return err;
	}
	promises_done(l);
	*l = all;
	return 1;
}

struct leaf_weight policy_default(const struct policy *p)
{
	return (struct leaf_weight){
		.weight = p->weight,
		.reason = p->weight_set ? REASON_WEIGHT : REASON_UNSET,
	};
}

struct leaf_weight policy_nominal(const struct policy *p,
				  const struct device *leaf)
{
	struct leaf_weight best = policy_default(p);

	for (size_t i = 0; i < p->n_statements; i++) {
		const struct statement *s = &p->statements[i];
		enum reason reason;

		if (!s->device || !device_stands_on(s->device, leaf))
			continue;
		reason = device_is_part_of(s->device, leaf) ? REASON_LEAF
							    : REASON_STACK;
		if (best.reason == REASON_LEAF && reason == REASON_STACK)
			continue;
		if (best.statement && best.reason == reason &&
		    best.weight >= s->weight)
			continue;
		best = (struct leaf_weight){ .weight = s->weight,
					     .reason = reason,
					     .statement = s };
	}
	return best;
}

/* ---- setpoints ---- */

static struct setpoint *find_point(const struct policy *p, dev_t devno)
{
	for (size_t i = 0; i < p->n_setpoints; i++)
		if (p->setpoints[i].devno == devno)
			return &p->setpoints[i];
	return NULL;
}

struct leaf_weight policy_weight(const struct policy *p,
				 const struct device *leaf)
{
	const struct setpoint *point = find_point(p, leaf->devno);

	if (!point || point->weight == SETPOINT_KEEP)
		return policy_nominal(p, leaf);
	return (struct leaf_weight){ .weight = point->weight,
				     .reason = REASON_SETPOINT,
				     .setpoint = point };
}

bool policy_keeps(const struct policy *p, dev_t devno)
{
	const struct setpoint *point = find_point(p, devno);

	return point && point->weight == SETPOINT_KEEP;
}

void policy_move_points(struct policy *to, struct policy *from)
{
	policy_clear_points(to);
	to->setpoints = from->setpoints;
	to->n_setpoints = from->n_setpoints;
	from->setpoints = NULL;
	from->n_setpoints = 0;
}

int policy_set_point(struct policy *p, dev_t devno, uint64_t weight, char *why)
{
	struct setpoint *point = find_point(p, devno), *grown;

	if (!point) {
		grown = reallocarray(p->setpoints, p->n_setpoints + 1,
				     sizeof(*grown));
		if (!grown) {
			free(why);
			return -ENOMEM;
		}
		p->setpoints = grown;
		point = &grown[p->n_setpoints++];
		*point = (struct setpoint){ .devno = devno };
	} else if (point->weight == weight) {
		free(why);
		return 0;
	}
	free(point->why);
	point->weight = weight;
	point->why = why;
	return 1;
}

bool policy_clear_point(struct policy *p, dev_t devno)
{
	struct setpoint *point = find_point(p, devno);

	if (!point)
		return false;
	free(point->why);
	*point = p->setpoints[--p->n_setpoints];
	return true;
}

bool policy_clear_points(struct policy *p)
{
	bool any = p->n_setpoints;

	while (p->n_setpoints)
		free(p->setpoints[--p->n_setpoints].why);
	free(p->setpoints);
	p->setpoints = NULL;
	return any;
}

char *policy_reason(const struct policy *p, const struct leaf_weight *a)
{
	bool unit = p->source == POLICY_UNIT;

	switch (a->reason) {
	case REASON_UNSET:
		return asprintf_or_null(unit ? "IOWeight= of %s is not set"
					     : "io.weight of %s is not set",
					p->subject);
	case REASON_WEIGHT:
		if (p->weight_source)
			return asprintf_or_null("Weight=%llu of %s, %s",
						(unsigned long long)a->weight,
						p->subject, p->weight_source);
		if (p->weight_file)
			return asprintf_or_null("%s %llu of %s", p->weight_file,
						(unsigned long long)a->weight,
						p->subject);
		return asprintf_or_null("IOWeight=%llu of %s",
					(unsigned long long)a->weight,
					p->subject);
	case REASON_LEAF:
	case REASON_STACK:
		return asprintf_or_null(
			"%s%s %llu of %s%s%s%s",
			a->statement->source ? "Weight="
			: a->statement->file ? "io.bfq.weight "
			: unit		     ? "IODeviceWeight="
					     : "io.weight ",
			a->statement->path, (unsigned long long)a->weight,
			p->subject,
			a->reason == REASON_LEAF
				? ", which names this disk"
				: ", whose device is on this disk",
			a->statement->source ? ", " : "",
			a->statement->source ?: "");
	case REASON_SETPOINT:
		return strdup(a->setpoint->why ?: "");
	}
	return NULL;
}
