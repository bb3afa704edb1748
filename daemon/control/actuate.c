/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Weights of policies become lines of weight files.
 *
 * A leaf's scheduler decides which file steers it (the table "backends"):
 *
 *	sutro	io.sutro.weight. The daemon alone writes it: the default line is IOWeight=,
 *		a line "8:16 N" holds the weight that a setting states for that leaf.
 *	bfq	io.bfq.weight. systemd owns the default line and compresses it
 *		(200 becomes 109), so a line per leaf corrects it where it is not
 *		the requested weight. bfq ends at 1000: above that all children of a
 *		cgroup are scaled together (struct scale).
 *	iocost	io.weight. systemd writes the default line exactly; only what a
 *		setting for a stack requests is added.
 *
 * A hidden disk, a path of native NVMe multipath, has no lines: there the default line holds.
 *
 * The lines follow from the statements and from the present lines of others. cgfile.c writes
 * only differences, so a repetition changes nothing, and a crash or another writer needs no
 * state here.
 */

#include "control/actuate.h"
#include "policy/policy.h"

#define BFQ_WEIGHT_MAX 1000U

/**
 * struct backend - the file for one kind of leaf
 * @owns_default: the daemon writes the default line, too
 * @line: the weight to set in the line for @leaf, 0: no line
 */
struct backend {
	const char *name;
	enum cgfile file;
	bool owns_default;
	uint64_t (*line)(const struct actuator *a, const struct cgroup *c,
			 const struct device *leaf, const struct scale *scale,
			 const struct cglines *present);
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

/* Keep the weight if all weights fit; else use the shortened ratio if that fits exactly;
 * else round, to at least 1.
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

/* ---- the backends ---- */

/* The number in the line for @devno, 0: the file has no such line. */
static uint64_t weight_of(const struct cglines *l, dev_t devno)
{
	return cglines_get(l, devno).number[0];
}

static uint64_t sutro_line(const struct actuator *a, const struct cgroup *c,
			   const struct device *leaf, const struct scale *scale,
			   const struct cglines *present)
{
	struct leaf_weight wanted = policy_weight(c->policy, leaf);

	return wanted.weight == c->policy->weight ? 0 : wanted.weight;
}

static uint64_t bfq_line(const struct actuator *a, const struct cgroup *c,
			 const struct device *leaf, const struct scale *scale,
			 const struct cglines *present)
{
	struct leaf_weight wanted = policy_weight(c->policy, leaf);
	uint64_t scaled = scale_apply(scale, wanted.weight);

	return scaled == weight_of(present, CGFILE_DEFAULT) ? 0 : scaled;
}

static uint64_t iocost_line(const struct actuator *a, const struct cgroup *c,
			    const struct device *leaf,
			    const struct scale *scale,
			    const struct cglines *present)
{
	struct leaf_weight wanted = policy_weight(c->policy, leaf);

	/* The file of a foreign cgroup is the setting of its owner, unless a policy sets a
	 * weight.
	 */
	if (wanted.setpoint || c->policy->weight_source ||
	    (wanted.statement &&
	     (c->origin == CGROUP_UNIT || wanted.statement->source)))
		return wanted.weight;
	return cgfile_of_others(a->files, c, present, leaf->devno).number[0];
}

enum { BACKEND_SUTRO, BACKEND_BFQ, BACKEND_IOCOST };

static const struct backend backends[] = {
	[BACKEND_SUTRO] = { .name = "sutro",
			    .file = CGFILE_SUTRO_WEIGHT,
			    .owns_default = true,
			    .line = sutro_line },
	[BACKEND_BFQ] = { .name = "bfq",
			  .file = CGFILE_BFQ_WEIGHT,
			  .line = bfq_line },
	[BACKEND_IOCOST] = { .name = "iocost",
			     .file = CGFILE_WEIGHT,
			     .line = iocost_line },
};

static const struct backend *backend_of(const struct actuator *a,
					const struct device *leaf)
{
	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		if (leaf->scheduler && streq(leaf->scheduler, backends[i].name))
			return &backends[i];
	for (size_t i = 0; i < a->n_iocost; i++)
		if (a->iocost[i] == leaf->devno)
			return &backends[BACKEND_IOCOST];
	return NULL;
}

const char *actuator_backend(const struct actuator *a,
			     const struct device *leaf)
{
	const struct backend *b = leaf->devno ? backend_of(a, leaf) : NULL;

	return b ? b->name : NULL;
}

static bool is_leaf_of(const struct actuator *a, const struct device *d,
		       const struct backend *b)
{
	return d->leaf && backend_of(a, d) == b;
}

static bool has_leaves(const struct actuator *a, const struct backend *b)
{
	for (size_t i = 0; i < a->topology->n_devices; i++)
		if (is_leaf_of(a, a->topology->devices[i], b))
			return true;
	return false;
}

/* ---- changes ---- */

/** struct changes - lines of a file that have to change */
struct changes {
	struct cgchange *items;
	size_t n;
};

/* Does the weight follow from files that the user of a delegated cgroup writes? */
static bool is_of_user(const struct cgroup *c, const struct leaf_weight *wanted)
{
	const struct policy *p = c->policy;

	if (!c->is_delegated || p->source != POLICY_FILE ||
	    wanted->reason == REASON_SETPOINT)
		return false;
	return wanted->statement ? !wanted->statement->source
				 : !p->weight_source;
}

static int add_change(struct changes *l, const struct cgroup *c,
		      const struct cglines *present, dev_t devno,
		      uint64_t weight, const struct leaf_weight *wanted)
{
	struct cgchange *grown;
	char *reason;

	if (weight_of(present, devno) == weight)
		return 0;
	grown = reallocarray(l->items, l->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->items = grown;
	reason = policy_reason(c->policy, wanted);
	if (!reason)
		return -ENOMEM;
	grown[l->n++] = (struct cgchange){
		.devno = devno,
		.value = cgvalue(weight),
		.reason = reason,
		/* Setpoints change several times a second. */
		.is_routine = wanted->reason == REASON_UNSET ||
			      wanted->reason == REASON_SETPOINT ||
			      is_of_user(c, wanted),
		.is_of_user = is_of_user(c, wanted),
		.is_setpoint = wanted->reason == REASON_SETPOINT,
	};
	return 0;
}

static void changes_done(struct changes *l)
{
	for (size_t i = 0; i < l->n; i++)
		free((char *)l->items[i].reason);
	free(l->items);
}

/* Write one file of one cgroup. @scales: one for each device; entries of leaves of bfq are used. */
static int actuate_file(struct actuator *a, struct cgroup *c,
			const struct backend *b, const struct scale *scales)
{
	struct leaf_weight wanted = policy_default(c->policy);
	struct cglines present = {};
	struct changes l = {};
	int err;

	err = cgfile_read(c, b->file, &present);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (b->owns_default)
		err = add_change(&l, c, &present, CGFILE_DEFAULT, wanted.weight,
				 &wanted);
	for (size_t i = 0; i < a->topology->n_devices && !err; i++) {
		const struct device *leaf = a->topology->devices[i];

		if (!leaf->devno || !is_leaf_of(a, leaf, b) ||
		    policy_keeps(c->policy, leaf->devno))
			continue;
		wanted = policy_weight(c->policy, leaf);
		err = add_change(&l, c, &present, leaf->devno,
				 b->line(a, c, leaf, &scales[i], &present),
				 &wanted);
	}
	if (!err)
		err = cgfile_write(a->files, c, &present, l.items, l.n);
	changes_done(&l);
	cglines_done(&present);
	return err;
}

static uint64_t hash_scale(uint64_t hash, dev_t devno, const struct scale *s)
{
	const uint64_t words[] = { devno, s->max, s->gcd };

	if (s->max <= BFQ_WEIGHT_MAX)
		return hash;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		hash = (hash ^ words[i]) * 0x100000001b3;
	return hash;
}

/* Return: a hash of the scales, 0: no leaf needs one. */
static uint64_t find_scales(const struct actuator *a,
			    const struct cgroup *parent, struct scale *scales)
{
	const struct topology *t = a->topology;
	uint64_t hash = 0;

	for (size_t i = 0; i < t->n_devices; i++) {
		const struct device *d = t->devices[i];

		if (!is_leaf_of(a, d, &backends[BACKEND_BFQ]))
			continue;
		scales[i] = scale_of_children(parent, d);
		hash = hash_scale(hash, d->devno, &scales[i]);
	}
	return hash;
}

/* Weights of siblings are read and written where their scale has changed only: one cgroup of
 * thousands may change all the time.
 */
int actuate_children(struct actuator *a, struct cgroup *parent)
{
	struct scale *scales;
	struct cgroup *c;
	uint64_t hash;
	int err = 0;

	scales = calloc(a->topology->n_devices + 1, sizeof(*scales));
	if (!scales)
		return -ENOMEM;
	hash = find_scales(a, parent, scales);
	for (size_t i = 0; i < ARRAY_SIZE(backends) && !err; i++) {
		bool all = i == BACKEND_BFQ && hash != parent->scales;

		if (!has_leaves(a, &backends[i]))
			continue;
		TAILQ_FOREACH(c, &parent->children, siblings) {
			if ((!c->due && !all) || c->waiting ||
			    c->origin == CGROUP_PENDING)
				continue;
			err = actuate_file(a, c, &backends[i], scales);
			if (err)
				break;
		}
	}
	free(scales);
	TAILQ_FOREACH(c, &parent->children, siblings)
		c->due = c->due && err;
	if (err)
		return err;
	parent->scales = hash;
	parent->has_lost_child = false;
	return 0;
}

/* The weight that counts for a leaf: that of its line, else the default. */
static uint64_t effective(const struct cglines *l, dev_t devno)
{
	return weight_of(l, devno) ?: weight_of(l, CGFILE_DEFAULT);
}

static bool is_weight(enum cgfile file)
{
	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		if (backends[i].file == file)
			return true;
	return false;
}

static void on_changed(const struct cgroup *c, const struct cgchange *ch,
		       const struct cglines *before,
		       const struct cglines *after, void *userdata)
{
	struct actuator *a = userdata;
	const struct device *leaf = NULL;

	/* A signal for each setpoint would be thousands of signals in a second. */
	if (!a->changed || !is_weight(after->file) || ch->is_setpoint)
		return;
	if (ch->devno != CGFILE_DEFAULT) {
		leaf = topology_by_devno(a->topology, ch->devno);
		if (!leaf)
			return;
	}
	a->changed(c, leaf, effective(before, ch->devno),
		   effective(after, ch->devno), ch->reason, a->userdata);
}

/* ---- explaining ---- */

#define NO_LINES                                                            \
	"a path of NVMe multipath can have no weight of its own, only that" \
	" of all disks"

char *actuator_hidden_cause(const struct device *leaf)
{
	return asprintf_or_null("%s is a path of NVMe multipath and has no "
				"device number, so no cgroup file can have a "
				"weight for it; state IOWeight=, which holds "
				"there, or use dm-multipath",
				leaf->node);
}

static bool lacks_line(const struct cgroup *c, const struct device *leaf)
{
	return !leaf->devno &&
	       policy_weight(c->policy, leaf).weight != c->policy->weight;
}

static int explain_file(const struct actuator *a, const struct cgroup *c,
			const struct backend *b, const struct device *leaf,
			const struct cglines *present, struct actuation *e)
{
	dev_t there = weight_of(present, leaf->devno) ? leaf->devno
						      : CGFILE_DEFAULT;
	const struct cgrefusal *refusal;
	struct scale scale = {};
	uint64_t line;

	if (b->line == bfq_line)
		scale = scale_of_children(c->parent, leaf);
	line = leaf->devno ? b->line(a, c, leaf, &scale, present) : 0;
	e->file = asprintf_or_null("%s%s/%s", cgroup_tree_mount(c->tree),
				   c->path, cgformat(b->file)->name);
	if (line)
		e->written = cgline_text(b->file, leaf->devno, cgvalue(line));
	else if (b->owns_default)
		e->written = cgline_text(b->file, CGFILE_DEFAULT,
					 cgvalue(c->policy->weight));
	else
		e->written = strdup("");
	e->read_back = cgline_text(b->file, there, cglines_get(present, there));
	refusal =
		cgfile_refusal(c, b->file, line ? leaf->devno : CGFILE_DEFAULT);
	e->error = refusal ? cgrefusal_text(refusal)
			   : strdup(lacks_line(c, leaf) ? NO_LINES : "");
	return e->file && e->written && e->read_back && e->error ? 0 : -ENOMEM;
}

static int explain_nothing(struct actuation *e)
{
	e->file = strdup("");
	e->written = strdup("");
	e->read_back = strdup("");
	e->error = strdup("");
	return e->file && e->written && e->read_back && e->error ? 0 : -ENOMEM;
}

int actuate_explain(const struct actuator *a, const struct cgroup *c,
		    const struct device *leaf, struct actuation *ret)
{
	const struct backend *b = backend_of(a, leaf);
	struct actuation e = { .backend = b ? b->name : "none" };
	struct cglines present = {};
	int err;

	err = b && c->parent ? cgfile_read(c, b->file, &present) : -ENOENT;
	if (err == -ENOMEM)
		return err;
	err = err ? explain_nothing(&e)
		  : explain_file(a, c, b, leaf, &present, &e);
	cglines_done(&present);
	if (err)
		actuation_done(&e);
	else
		*ret = e;
	return err;
}

void actuation_done(struct actuation *e)
{
	free(e->file);
	free(e->written);
	free(e->read_back);
	free(e->error);
	*e = (struct actuation){};
}

/* ---- beginning and end ---- */

void actuator_init(struct actuator *a, struct cgfiles *files)
{
	*a = (struct actuator){ .files = files };
	files->changed = on_changed;
	files->userdata = a;
}

void actuator_done(struct actuator *a)
{
	free(a->iocost);
	*a = (struct actuator){};
}

int actuator_survey(struct actuator *a, const struct cgroup *root)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ dev_t *was = a->iocost;
	size_t n_was = a->n_iocost;
	char *save = NULL;
	int err;

	a->iocost = NULL;
	a->n_iocost = 0;
	err = cgroup_read(root, "io.cost.qos", &text);
	if (err)
		return err == -ENOMEM ? err : n_was > 0;
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
	return n_was != a->n_iocost ||
	       (n_was && memcmp(was, a->iocost, n_was * sizeof(*was)) != 0);
}
