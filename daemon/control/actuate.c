/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From what is asked to what the cgroup files say.
 *
 * A leaf's scheduler decides which file steers it (the table "backends"):
 *
 *	sutro	io.sutro.weight. It is ours alone: the default line is IOWeight=,
 *		a line "8:16 N" holds what a statement asks for that leaf.
 *	bfq	io.bfq.weight. systemd owns the default line and compresses it
 *		(200 becomes 109), so a line per leaf corrects it where it is not
 *		what is asked. bfq ends at 1000: above that all children of a
 *		cgroup are scaled together (struct scale).
 *	iocost	io.weight. systemd writes the default line exactly; only what a
 *		statement about a stack asks for is added. Others write there too,
 *		so each line of ours is recorded in /run/sutro before it is written.
 *
 * The wanted lines follow from the statements alone, the present ones are read, and
 * only differences are written; doing it again changes nothing. So neither a crash
 * nor another writer needs memory here. Every write is read back.
 */

#include <stdio.h>
#include <sys/sysmacros.h>

#include "control/actuate.h"
#include "policy/policy.h"

#define BFQ_WEIGHT_MAX 1000U

/**
 * struct backend - the file for one kind of leaf
 * @owns_default: the default line is ours, too
 * @owns_lines: nobody else means to write lines per leaf
 * @line: the wanted weight in the line for @leaf, 0: no line
 */
struct backend {
	const char *name;
	const char *file;
	bool owns_default;
	bool owns_lines;
	uint64_t (*line)(const struct actuator *a, const struct cgroup *c,
			 const struct device *leaf, const struct scale *scale,
			 const struct weights *present);
};

/* ---- scaling for bfq ---- */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void scale_add(struct scale *s, uint64_t weight)
{
	if (weight > s->max)
		s->max = weight;
	s->gcd = greatest_divisor(weight, s->gcd);
}

/* Unchanged if all fit; else an exact multiple of the shortened ratio if that
 * fits; else rounded, and never 0.
 */
uint64_t scale_apply(const struct scale *s, uint64_t weight)
{
	uint64_t scaled;

	if (s->max <= BFQ_WEIGHT_MAX)
		return weight;
	if (s->max / s->gcd <= BFQ_WEIGHT_MAX)
		return weight / s->gcd * (BFQ_WEIGHT_MAX / (s->max / s->gcd));
	scaled = (weight * BFQ_WEIGHT_MAX + s->max / 2) / s->max;
	return scaled ?: 1;
}

static struct scale scale_of_children(const struct cgroup *parent,
				      const struct device *leaf)
{
	struct scale s = {};
	struct cgroup *c;

	TAILQ_FOREACH(c, &parent->children, siblings)
		scale_add(&s, policy_weight(c->policy, leaf).weight);
	return s;
}

/* ---- lines of ours in a file that others write, too ---- */

static char *held_key(const struct cgroup *c, const struct device *leaf)
{
	return asprintf_or_null("%u:%u %s", major(leaf->devno),
				minor(leaf->devno), c->path);
}

static bool is_held(const struct actuator *a, const struct cgroup *c,
		    const struct device *leaf)
{
	_cleanup_free_ char *key = held_key(c, leaf);

	return key && record_get(&a->held, key);
}

static int hold(struct actuator *a, const struct cgroup *c,
		const struct device *leaf)
{
	_cleanup_free_ char *key = held_key(c, leaf);

	return key ? record_set(&a->held, key, "") : -ENOMEM;
}

static int let_go(struct actuator *a, const struct cgroup *c,
		  const struct device *leaf)
{
	_cleanup_free_ char *key = held_key(c, leaf);

	return key ? record_drop(&a->held, key) : -ENOMEM;
}

/* ---- the backends ---- */

static uint64_t sutro_line(const struct actuator *a, const struct cgroup *c,
			   const struct device *leaf, const struct scale *scale,
			   const struct weights *present)
{
	struct asked asked = policy_weight(c->policy, leaf);

	return asked.weight == c->policy->weight ? 0 : asked.weight;
}

static uint64_t bfq_line(const struct actuator *a, const struct cgroup *c,
			 const struct device *leaf, const struct scale *scale,
			 const struct weights *present)
{
	struct asked asked = policy_weight(c->policy, leaf);
	uint64_t scaled = scale_apply(scale, asked.weight);

	return scaled == present->fallback ? 0 : scaled;
}

static uint64_t iocost_line(const struct actuator *a, const struct cgroup *c,
			    const struct device *leaf,
			    const struct scale *scale,
			    const struct weights *present)
{
	struct asked asked = policy_weight(c->policy, leaf);

	/* In a foreign cgroup the file is the statement itself. */
	if (asked.setpoint || c->policy->weight_source ||
	    (c->origin == CGROUP_UNIT && asked.statement))
		return asked.weight;
	return is_held(a, c, leaf) ? 0 : weights_get(present, leaf->devno);
}

static const struct backend backends[] = {
	{ .name = "sutro",
	  .file = "io.sutro.weight",
	  .owns_default = true,
	  .owns_lines = true,
	  .line = sutro_line },
	{ .name = "bfq",
	  .file = "io.bfq.weight",
	  .owns_lines = true,
	  .line = bfq_line },
	{ .name = "iocost", .file = "io.weight", .line = iocost_line },
};

static const struct backend *backend_of(const struct actuator *a,
					const struct device *leaf)
{
	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		if (leaf->scheduler && streq(leaf->scheduler, backends[i].name))
			return &backends[i];
	for (size_t i = 0; i < a->n_iocost; i++)
		if (a->iocost[i] == leaf->devno)
			return &backends[ARRAY_SIZE(backends) - 1];
	return NULL;
}

const char *actuator_backend(const struct actuator *a,
			     const struct device *leaf)
{
	const struct backend *b = backend_of(a, leaf);

	return b ? b->name : NULL;
}

static bool has_leaves(const struct actuator *a, const struct backend *b)
{
	for (size_t i = 0; i < a->topology->n_devices; i++) {
		const struct device *d = a->topology->devices[i];

		if (d->leaf && backend_of(a, d) == b)
			return true;
	}
	return false;
}

bool actuator_needs_siblings(const struct actuator *a)
{
	return has_leaves(a, &backends[1]);
}

/* ---- differences ---- */

/**
 * struct change - one line of a file that has to change
 * @leaf: NULL: the default line
 * @old, @new: weights; 0: no such line
 * @asked: somebody asked for this weight; setpoints change too often to be told
 * @reason: for people
 */
struct change {
	const struct device *leaf;
	uint64_t old;
	uint64_t new;
	bool asked;
	char *reason;
};

/* A cgroup or disk that is gone is normal. */
static void log_failure(int err, const struct cgroup *c, const char *file,
			const char *line)
{
	bool gone = err == -ENOENT || err == -ENODEV;
	int level = gone ? LOG_DEBUG : LOG_WARNING;
	const char *end = gone ? ", ignoring." : ".";

	if (line)
		log_write(level, err, "%s: cannot write \"%s\" to %s: %m%s",
			  c->path, line, file, end);
	else
		log_write(level, err, "%s: cannot read %s: %m%s", c->path, file,
			  end);
}

static int read_weights(const struct cgroup *c, const struct backend *b,
			struct weights *ret)
{
	_cleanup_free_ char *text = NULL;
	int r = cgroup_read(c, b->file, &text);

	if (r)
		return r;
	r = weights_parse(ret, text);
	if (r > 0)
		log_warning("%s: %d line(s) of %s are no weights in 1..10000, "
			    "ignoring.",
			    c->path, r, b->file);
	return r < 0 ? r : 0;
}

static char *line_text(const struct device *leaf, uint64_t weight)
{
	if (!leaf)
		return asprintf_or_null("default %llu",
					(unsigned long long)weight);
	if (!weight)
		return asprintf_or_null("%u:%u default", major(leaf->devno),
					minor(leaf->devno));
	return asprintf_or_null("%u:%u %llu", major(leaf->devno),
				minor(leaf->devno), (unsigned long long)weight);
}

static uint64_t present_weight(const struct weights *w,
			       const struct device *leaf)
{
	return leaf ? weights_get(w, leaf->devno) : w->fallback;
}

/* What counts for a leaf: its line, else the default. */
static uint64_t effective(const struct weights *w, uint64_t line)
{
	return line ?: w->fallback;
}

static int write_change(struct actuator *a, struct cgroup *c,
			const struct backend *b, const struct change *ch)
{
	_cleanup_free_ char *line = line_text(ch->leaf, ch->new);
	int err = 0;

	if (!line)
		return -ENOMEM;
	if (a->dry_run) {
		log_info("%s: would write \"%s\" to %s: %s", c->path, line,
			 b->file, ch->reason);
		return 0;
	}
	if (!b->owns_lines && ch->leaf && ch->new)
		err = hold(a, c, ch->leaf);
	if (!err)
		err = cgroup_write(c, b->file, line);
	if (err == -ENOMEM)
		return err;
	if (err) {
		c->refused = true;
		log_failure(err, c, b->file, line);
	} else if (!b->owns_lines && ch->leaf && !ch->new) {
		err = let_go(a, c, ch->leaf);
	}
	return err;
}

/* The kernel may take a write and do something else, or another may have written
 * in between; only the file itself tells.
 */
static void check_change(struct actuator *a, struct cgroup *c,
			 const struct backend *b, const struct change *ch,
			 const struct weights *before,
			 const struct weights *after)
{
	uint64_t now = present_weight(after, ch->leaf);
	uint64_t was = effective(before, ch->old);

	if (now != ch->new) {
		c->refused = true;
		log_warning("%s: %s for %s: %llu was written, but the file "
			    "says %llu.",
			    c->path, b->file,
			    ch->leaf ? ch->leaf->node : "all leaves",
			    (unsigned long long)ch->new,
			    (unsigned long long)now);
		return;
	}
	now = effective(after, now);
	/* bfq scales all children of a cgroup when one of them changes. */
	log_write(ch->asked ? LOG_INFO : LOG_DEBUG, 0,
		  "%s: weight on %s %llu -> %llu: %s", c->path,
		  ch->leaf ? ch->leaf->node : "all sutro leaves",
		  (unsigned long long)was, (unsigned long long)now, ch->reason);
	if (a->changed)
		a->changed(c, ch->leaf, was, now, ch->reason, a->userdata);
}

static int apply_changes(struct actuator *a, struct cgroup *c,
			 const struct backend *b, struct change *changes,
			 size_t n, const struct weights *before)
{
	struct weights after = {};
	bool *done = calloc(n, sizeof(*done));
	int err = done ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && err != -ENOMEM; i++) {
		err = write_change(a, c, b, &changes[i]);
		if (!err)
			done[i] = !a->dry_run;
	}
	if (err != -ENOMEM && !a->dry_run) {
		if (!b->owns_lines)
			cgroup_remember_weight(c);
		err = read_weights(c, b, &after);
		if (err && err != -ENOMEM)
			log_failure(err, c, b->file, NULL);
		for (size_t i = 0; i < n && !err; i++)
			if (done[i])
				check_change(a, c, b, &changes[i], before,
					     &after);
	}
	weights_done(&after);
	free(done);
	return err == -ENOMEM ? err : 0;
}

/**
 * add_change() - remember one line that is not as wanted
 * @asked: why it is wanted, NULL: to restore
 */
static int add_change(struct change **l, size_t *n, const struct cgroup *c,
		      const struct device *leaf, uint64_t old, uint64_t new,
		      const struct asked *asked)
{
	struct change *grown;
	char *reason;

	if (old == new)
		return 0;
	reason = asked ? policy_reason(c->policy, asked) : strdup("restored");
	grown = reallocarray(*l, *n + 1, sizeof(**l));
	if (grown)
		*l = grown;
	if (!reason || !grown) {
		free(reason);
		return -ENOMEM;
	}
	grown[(*n)++] = (struct change){
		.leaf = leaf,
		.old = old,
		.new = new,
		.asked = asked && asked->reason != REASON_UNSET &&
			 asked->reason != REASON_SETPOINT,
		.reason = reason,
	};
	return 0;
}

static void free_changes(struct change *l, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(l[i].reason);
	free(l);
}

/* One file of one cgroup. @scales: one for each device, used for leaves. */
static int actuate_file(struct actuator *a, struct cgroup *c,
			const struct backend *b, const struct scale *scales)
{
	struct weights present = {};
	struct change *changes = NULL;
	struct asked asked = policy_default(c->policy);
	size_t n = 0;
	int err;

	err = read_weights(c, b, &present);
	if (err) {
		/* No such file: the io controller is off for this cgroup. */
		if (err != -ENOMEM && err != -ENOENT)
			log_failure(err, c, b->file, NULL);
		return err == -ENOMEM ? err : 0;
	}
	if (b->owns_default)
		err = add_change(&changes, &n, c, NULL, present.fallback,
				 asked.weight, &asked);
	for (size_t i = 0; i < a->topology->n_devices && !err; i++) {
		const struct device *leaf = a->topology->devices[i];

		if (!leaf->leaf || backend_of(a, leaf) != b ||
		    policy_keeps(c->policy, leaf))
			continue;
		asked = policy_weight(c->policy, leaf);
		err = add_change(&changes, &n, c, leaf,
				 weights_get(&present, leaf->devno),
				 b->line(a, c, leaf, &scales[i], &present),
				 &asked);
	}
	if (!err && n)
		err = apply_changes(a, c, b, changes, n, &present);
	free_changes(changes, n);
	weights_done(&present);
	return err;
}

static bool has_dirty_child(const struct cgroup *parent)
{
	const struct cgroup *c;

	TAILQ_FOREACH(c, &parent->children, siblings)
		if (c->dirty)
			return true;
	return false;
}

int actuate_children(struct actuator *a, struct cgroup *parent)
{
	const struct topology *t = a->topology;
	struct scale *scales;
	struct cgroup *c;
	int err = 0;

	if (!has_dirty_child(parent))
		return 0;
	scales = calloc(t->n_devices + 1, sizeof(*scales));
	if (!scales)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(backends) && !err; i++) {
		const struct backend *b = &backends[i];

		if (!has_leaves(a, b))
			continue;
		for (size_t j = 0; b->line == bfq_line && j < t->n_devices; j++)
			scales[j] = scale_of_children(parent, t->devices[j]);
		TAILQ_FOREACH(c, &parent->children, siblings) {
			if (!c->dirty || c->waiting ||
			    c->origin == CGROUP_PENDING)
				continue;
			err = actuate_file(a, c, b, scales);
			if (err)
				break;
		}
	}
	free(scales);
	TAILQ_FOREACH(c, &parent->children, siblings)
		c->dirty = c->dirty && err;
	return err;
}

static int restore_file(struct actuator *a, struct cgroup *c,
			const struct backend *b)
{
	struct weights present = {};
	struct change *changes = NULL;
	size_t n = 0;
	int err;

	err = read_weights(c, b, &present);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (b->owns_default)
		err = add_change(&changes, &n, c, NULL, present.fallback,
				 WEIGHT_DEFAULT, NULL);
	for (size_t i = 0; i < present.n_lines && !err; i++) {
		const struct weight_line *l = &present.lines[i];
		const struct device *leaf;

		leaf = topology_by_devno(a->topology, l->devno);
		if (leaf && (b->owns_lines || is_held(a, c, leaf)))
			err = add_change(&changes, &n, c, leaf, l->weight, 0,
					 NULL);
	}
	if (!err && n)
		err = apply_changes(a, c, b, changes, n, &present);
	free_changes(changes, n);
	weights_done(&present);
	return err;
}

int actuate_restore(struct actuator *a, struct cgroup *top)
{
	for (struct cgroup *c = top; c; c = cgroup_next(top, c)) {
		for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
			int err = restore_file(a, c, &backends[i]);

			if (err)
				return err;
		}
	}
	return 0;
}

/* ---- explaining ---- */

int actuate_explain(const struct actuator *a, const struct cgroup *c,
		    const struct device *leaf, struct actuation *ret)
{
	const struct backend *b = backend_of(a, leaf);
	struct actuation e = { .backend = b ? b->name : "none" };
	struct weights present = {};
	struct scale scale = {};
	uint64_t line, there;
	int err;

	err = b && c->parent ? read_weights(c, b, &present) : -ENOENT;
	if (err == -ENOMEM)
		return err;
	if (err) {
		e.file = strdup("");
		e.written = strdup("");
		e.read_back = strdup("");
	} else {
		if (b->line == bfq_line)
			scale = scale_of_children(c->parent, leaf);
		line = b->line(a, c, leaf, &scale, &present);
		there = weights_get(&present, leaf->devno);
		e.file = asprintf_or_null("%s%s/%s", cgroup_tree_mount(c->tree),
					  c->path, b->file);
		if (line)
			e.written = line_text(leaf, line);
		else if (b->owns_default)
			e.written = line_text(NULL, c->policy->weight);
		else
			e.written = strdup("");
		e.read_back = there ? line_text(leaf, there)
				    : line_text(NULL, present.fallback);
	}
	weights_done(&present);
	if (!e.file || !e.written || !e.read_back) {
		actuation_done(&e);
		return -ENOMEM;
	}
	*ret = e;
	return 0;
}

void actuation_done(struct actuation *e)
{
	free(e->file);
	free(e->written);
	free(e->read_back);
	*e = (struct actuation){};
}

/* ---- beginning and end ---- */

int actuator_init(struct actuator *a, const struct roots *roots)
{
	*a = (struct actuator){ .roots = roots };
	return record_open(&a->held, roots, "iocost");
}

void actuator_done(struct actuator *a)
{
	free(a->iocost);
	record_done(&a->held);
	*a = (struct actuator){};
}

int actuator_survey(struct actuator *a, const struct cgroup *root)
{
	_cleanup_free_ char *text = NULL;
	char *save = NULL;
	int err;

	a->n_iocost = 0;
	err = cgroup_read(root, "io.cost.qos", &text);
	if (err)
		return err == -ENOMEM ? err : 0;
	/* 8:0 enable=1 ctrl=auto rpct=... */
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *blank = strchr(line, ' ');
		dev_t *grown, devno;

		if (!blank || !strstr(blank, "enable=1"))
			continue;
		*blank = '\0';
		if (parse_devno(line, &devno) < 0)
			continue;
		grown = reallocarray(a->iocost, a->n_iocost + 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		a->iocost = grown;
		grown[a->n_iocost++] = devno;
	}
	return 0;
}
