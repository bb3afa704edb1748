/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Passes over cgroups, which read their counters of each device.
 *
 * Two series of samples are kept apart: the watcher's, of all cgroups each second
 * while a client watches, and the governor's, several times a second of the few cgroups
 * that matter for a promise. The latter is one read of io.sutro.active, which has a
 * line for each cgroup in use; the counters of those without a line stand still. An
 * elevator without that file costs a read for each cgroup.
 *
 * Each line that is read is compared with its former values, and the difference is
 * added to the cgroup and, for a sutro leaf, to all above it. So a query (sample.c) returns a
 * stored sum, and a line that is read twice in one pass (the kernel may give it again, with
 * newer numbers) is no mistake.
 */

#include "host/sample-lines.h"
#include "host/sampler.h"

/* Samples after which counters of removed disks are dropped. */
#define CLEAN_ROUNDS 256U

/* After two samples of all cgroups, each has both, and only those with new lines change. */
#define SAMPLER_SETTLED 2U

/**
 * struct pass - one sample being taken
 * @sutro: the file is about sutro leaves
 * @active: it is io.sutro.active
 * @c: the cgroup of the file; in io.sutro.active, of the last line
 */
struct pass {
	struct sampler *sampler;
	const struct topology *t;
	struct cgroup *root;
	bool sutro;
	bool active;
	struct cgroup *c;
};

static void touch(const struct pass *p, struct sample *s)
{
	s->touched = true;
	if (s->is_busy)
		return;
	s->is_busy = true;
	LIST_INSERT_HEAD(&p->sampler->busy, s, others);
}

static int add_to_those_above(const struct pass *p, const struct cgroup *c,
			      dev_t devno, const struct usage *u)
{
	while ((c = c->parent)) {
		struct sample *s = c->samples[p->sampler->slot];
		struct line *l = s ? sample_find_or_add(s, devno) : NULL;

		if (s && !l)
			return -ENOMEM;
		if (!l)
			continue;
		s->active = true;
		touch(p, s);
		if (line_add_usage(l, u) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The counters of a new line in io.sutro.active may be old. Those of a new line in a file
 * of the cgroup began after the last pass.
 */
static int take_line(const struct pass *p, struct cgroup *c, dev_t devno,
		     const char *counters)
{
	bool latency = p->sutro && (p->sampler->slot == SAMPLER_WATCHER ||
				    c->sampled & SAMPLE_LATENCY);
	struct sample *s = c->samples[p->sampler->slot];
	struct line *l = sample_find_or_add(s, devno);
	uint64_t now[COUNTERS] = {};
	struct latencies latencies = {};
	struct usage u;
	bool compare, reset;
	int err;

	if (!l)
		return -ENOMEM;
	counters_parse(counters, now, latency ? &latencies : NULL);
	counters_hold(now, l->total);
	compare = s->passes && (l->known ? l->sutro == p->sutro : !p->active);
	u = counters_difference(now, compare ? l->total : now);
	reset = now[COUNTER_RIOS] < l->total[COUNTER_RIOS];
	/* Requests that waited in the last pass still wait in this one. */
	if (l->seen)
		u.queued = 0;
	memcpy(l->total, now, sizeof(l->total));
	l->known = true;
	l->sutro = p->sutro;
	l->seen = true;
	touch(p, s);
	s->active |= u.active;
	err = line_add_usage(l, &u);
	if (!err && latency)
		err = line_read_latencies(l, &latencies, compare && !reset);
	if (!err && p->sutro && u.active)
		err = add_to_those_above(p, c, devno, &u);
	return err;
}

/* "8:16 ..." of a device that the file is about; in io.sutro.active "8:16 4711 ...",
 * the cgroup by its inode number.
 */
static int on_line(char *line, void *userdata)
{
	struct pass *p = userdata;
	const struct device *d;
	const char *rest = line;
	uint64_t inode;
	dev_t devno;

	if (!skip_devno(&rest, &devno) || *rest != ' ')
		return 0;
	rest++;
	if (p->active) {
		rest = skip_u64(rest, &inode);
		/* Most lines of a cgroup follow each other. */
		if (!p->c || p->c->inode != inode)
			p->c = cgroup_by_inode(p->root->tree, inode);
		if (*rest != ' ' || !p->c || !(p->c->sampled & SAMPLE_TIME) ||
		    !p->c->samples[p->sampler->slot])
			return 0;
	}
	d = topology_by_devno(p->t, devno);
	if (!d || p->sutro != sample_counts_time(d))
		return 0;
	return take_line(p, p->c, devno, rest);
}

/* Counters from before a cgroup was left out are too old to compare with. */
static int begin(struct cgroup *c, const struct sampler *sampler,
		 unsigned int what)
{
	struct sample **s = &c->samples[sampler->slot];

	if (!what) {
		*s = sample_free(*s);
		return 0;
	}
	if (!*s)
		*s = calloc(1, sizeof(**s));
	if (!*s)
		return -ENOMEM;
	(*s)->c = c;
	sample_clear(*s);
	return 0;
}

/* Drop devices without a line in the file: their counters began anew. io.sutro.active
 * has lines of groups in use only.
 */
static void end(struct sample *s, const struct pass *p, bool from_active)
{
	bool clean = p->sampler->n % CLEAN_ROUNDS == 0;

	if (s->passes < 2)
		s->passes++;
	if (!s->touched && !s->was_touched && !clean)
		return;
	for (size_t i = s->n; i-- > 0;) {
		struct line *l = &s->l[i];

		if (!l->seen && !(from_active && l->sutro)) {
			l->known = false;
			memset(l->total, 0, sizeof(l->total));
		}
		if (clean && !topology_by_devno(p->t, l->devno))
			sample_remove(s, l);
	}
}

static int read_files(struct pass *p, struct cgroup *c, unsigned int what)
{
	struct sample *s = c->samples[p->sampler->slot];
	int err = 0;

	if (!what)
		return 0;
	p->c = c;
	touch(p, s);
	s->has_files = false;
	if (what & SAMPLE_TIME) {
		p->sutro = true;
		err = cgroup_read_lines(c, "io.sutro.stat", on_line, p);
		s->has_files = !err;
	}
	if (what & SAMPLE_RATE && err != -ENOMEM) {
		p->sutro = false;
		err = cgroup_read_lines(c, "io.stat", on_line, p);
		s->has_files |= !err;
	}
	return err == -ENOMEM ? err : 0;
}

static unsigned int what_of(const struct sampler *s, const struct cgroup *c,
			    unsigned int all)
{
	return s->slot == SAMPLER_WATCHER ? all : c->sampled & all;
}

/* Return: 1; 0: there is no such file; -ENOMEM. */
static int read_active(struct pass *p)
{
	int err;

	p->active = true;
	p->sutro = true;
	err = cgroup_read_lines(p->root, "io.sutro.active", on_line, p);
	p->active = false;
	return err == -ENOMEM ? err : !err;
}

static unsigned int what_all(const struct topology *t)
{
	unsigned int all = SAMPLE_RATE;

	for (size_t i = 0; i < t->n_devices; i++)
		if (sample_counts_time(t->devices[i]))
			all |= SAMPLE_TIME;
	return all;
}

static void count_sample(struct sampler *s, uint64_t now_usec)
{
	s->before_usec = s->now_usec;
	s->now_usec = now_usec;
	s->n++;
}

void sampler_renew(struct sampler *s)
{
	s->n_settled = 0;
}

static int begin_all(struct sampler *s, struct cgroup *root, unsigned int all)
{
	int err = 0;

	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c))
		err = begin(c, s, what_of(s, c, all));
	return err;
}

static void begin_busy(struct sampler *s)
{
	struct sample *sample, *next;

	for (sample = LIST_FIRST(&s->busy); sample; sample = next) {
		next = LIST_NEXT(sample, others);
		sample_clear(sample);
	}
}

/* Return: the number of cgroups with files that were read, or -ENOMEM. */
static int end_all(struct pass *p, unsigned int all, bool from_active)
{
	const struct sampler *s = p->sampler;
	int n = 0;

	for (struct cgroup *c = p->root; c; c = cgroup_next(p->root, c)) {
		unsigned int what = what_of(s, c, all);
		int err;

		if (!c->samples[s->slot])
			continue;
		err = read_files(p, c, what);
		if (err)
			return err;
		end(c->samples[s->slot], p, from_active);
		n += what != 0;
	}
	return n;
}

static void end_busy(struct pass *p)
{
	struct sample *sample;

	LIST_FOREACH(sample, &p->sampler->busy, others)
		end(sample, p, true);
}

/* The governor's counters of leaves of sutro are in one file, which is read before the others. While
 * there are no others to read, cgroups without a line in it do not change.
 */
static int take_at_once(struct sampler *s, struct cgroup *root,
			const struct topology *t, uint64_t now_usec)
{
	struct pass p = { .sampler = s, .t = t, .root = root };
	unsigned int all = what_all(t), n_settled = s->n_settled;
	bool is_settled = n_settled >= SAMPLER_SETTLED && s->what == all &&
			  s->n % CLEAN_ROUNDS;
	int r = 0;

	s->n_settled = 0;
	s->what = all;
	if (is_settled)
		begin_busy(s);
	else
		r = begin_all(s, root, all);
	if (!r && all & SAMPLE_TIME)
		r = read_active(&p);
	if (r < 0)
		return r;
	if (is_settled && r > 0) {
		end_busy(&p);
		s->n_settled = n_settled;
	} else {
		int n = end_all(&p, r > 0 ? all & ~SAMPLE_TIME : all, r > 0);

		if (n < 0)
			return n;
		s->n_settled = n || !r ? 0 : n_settled + 1;
	}
	count_sample(s, now_usec);
	return 0;
}

/* Those above @c have begun before it, so that its differences can be added to theirs. */
static int sample_cgroup(struct pass *p, struct cgroup *c, unsigned int what)
{
	int err = begin(c, p->sampler, what) ?: read_files(p, c, what);

	if (!err)
		end(c->samples[p->sampler->slot], p, false);
	return err;
}

void sampler_begin(struct sampler *s, struct cgroup *root)
{
	cgroup_cursor_begin(&s->cursor, root);
}

int sampler_next(struct sampler *s, const struct topology *t, uint64_t now_usec)
{
	struct pass p = { .sampler = s, .t = t, .root = s->cursor.top };
	unsigned int all = what_all(t);

	for (unsigned int i = 0; i < CGROUP_BATCH; i++) {
		struct cgroup *c = cgroup_cursor_next(&s->cursor);
		int err = c ? sample_cgroup(&p, c, all) : 0;

		if (err)
			return err;
	}
	if (cgroup_cursor_goes_on(&s->cursor))
		return 1;
	count_sample(s, now_usec);
	return 0;
}

int sampler_take(struct sampler *s, struct cgroup *root,
		 const struct topology *t, uint64_t now_usec)
{
	int r = 1;

	if (s->slot == SAMPLER_GOVERNOR)
		return take_at_once(s, root, t, now_usec);
	sampler_begin(s, root);
	while (r > 0)
		r = sampler_next(s, t, now_usec);
	return r;
}

void sampler_forget(struct sampler *s, struct cgroup *root)
{
	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		c->samples[s->slot] = sample_free(c->samples[s->slot]);
	s->now_usec = 0;
	s->before_usec = 0;
	sampler_renew(s);
}
