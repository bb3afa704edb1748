/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What each cgroup used of each device.
 *
 * A sutro leaf counts device time in io.sutro.stat, for each cgroup alone. On other
 * leaves, and on what stands on leaves, io.stat is all there is: bytes, no time, and
 * a cgroup's counters include those below it. A share there is a share of the bytes.
 *
 * Two series of samples are kept apart: the watcher's, of all cgroups each second
 * while somebody looks, and the governor's, several times a second of the few cgroups
 * that matter for a promise. The latter is one read of io.sutro.active, which has a
 * line for each cgroup in use; the counters of those without a line stand still. An
 * elevator without that file costs a read for each cgroup.
 *
 * Entitlement, for db in this tree on one leaf, with backup idle:
 *
 *	/ --- system.slice 100 --- db 300            3/4 * 100/(100+100) = 0.375
 *	  |                   `--- web 100
 *	  |                   `--- backup 500 (idle)
 *	  `-- user.slice 100 --- ...
 *
 * at each level the weight over the sum of those that were active in the interval,
 * the one that is asked about included. A cgroup without files of the io
 * controller is served as part of the nearest one above that has them.
 */

#include <inttypes.h>
#include <stdio.h>

#include "sample.h"

/* The interval is a second; a timer may be late, and a short interval says little. */
#define INTERVAL_MIN_USEC 500000U
#define INTERVAL_MAX_USEC 3000000U
#define AGE_MAX_USEC 1500000U

struct counters {
	dev_t devno;
	uint64_t time_ns;
	uint64_t rbytes;
	uint64_t wbytes;
	uint64_t rios;
	uint64_t wios;
	uint64_t wait_ns;
	uint64_t queued;
	uint32_t rlat[LATENCY_BUCKETS];
};

struct reading {
	struct counters *l;
	size_t n;
};

/**
 * struct sample - the last two readings of a cgroup
 * @n: readings taken, 0..2
 */
struct sample {
	struct reading now;
	struct reading before;
	unsigned int n;
	bool has_files;
};

struct sample *sample_free(struct sample *s)
{
	if (!s)
		return NULL;
	free(s->now.l);
	free(s->before.l);
	free(s);
	return NULL;
}

/* Does io.sutro.stat have the device, or io.stat? */
static bool is_sutro(const struct device *d)
{
	return d->leaf && d->scheduler && streq(d->scheduler, "sutro");
}

/* "0,0,7,1": what is missing is 0. */
static void parse_latencies(const char *text, uint32_t *ret)
{
	for (size_t i = 0; i < LATENCY_BUCKETS && *text; i++) {
		char *end;

		ret[i] = strtoul(text, &end, 10);
		text = *end == ',' ? end + 1 : end;
	}
}

/* "time_ns=1 rbytes=2 wbytes=3 ... queued=4": keys in any order. */
static void parse_counters(char *text, struct counters *c)
{
	const struct {
		const char *key;
		uint64_t *value;
	} keys[] = {
		{ "time_ns=", &c->time_ns }, { "rbytes=", &c->rbytes },
		{ "wbytes=", &c->wbytes },   { "rios=", &c->rios },
		{ "wios=", &c->wios },	     { "wait_ns=", &c->wait_ns },
		{ "queued=", &c->queued },
	};
	char *save = NULL;

	for (char *word = strtok_r(text, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		const char *v = startswith(word, "rlat=");

		if (v)
			parse_latencies(v, c->rlat);
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
			v = startswith(word, keys[i].key);
			if (v)
				parse_u64(v, keys[i].value);
		}
	}
}

static struct counters *find(const struct reading *r, dev_t devno)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->l[i].devno == devno)
			return &r->l[i];
	return NULL;
}

static int add(struct reading *r, const struct counters *c)
{
	struct counters *grown;

	grown = reallocarray(r->l, r->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->l = grown;
	grown[r->n++] = *c;
	return 0;
}

/* "8:16 ..." of a device that the file is about. */
static int parse_line(struct reading *r, const struct topology *t, bool sutro,
		      char *line)
{
	struct counters c = {};
	const struct device *d;
	char *rest = strchr(line, ' ');

	if (!rest)
		return 0;
	*rest++ = '\0';
	if (parse_devno(line, &c.devno) < 0)
		return 0;
	d = topology_by_devno(t, c.devno);
	if (!d || sutro != is_sutro(d))
		return 0;
	parse_counters(rest, &c);
	return add(r, &c);
}

static int read_file(struct cgroup *c, const struct topology *t,
		     struct reading *r, const char *file, bool sutro)
{
	_cleanup_free_ char *text = NULL;
	char *save = NULL;
	int err;

	err = cgroup_read(c, file, &text);
	if (err)
		return err;
	for (char *line = strtok_r(text, "\n", &save); line && !err;
	     line = strtok_r(NULL, "\n", &save))
		err = parse_line(r, t, sutro, line);
	return err;
}

/* Counters of sutro leaves go on from what they were. */
static int carry(struct reading *r, const struct reading *from,
		 const struct topology *t)
{
	int err = 0;

	for (size_t i = 0; i < from->n && !err; i++) {
		const struct device *d = topology_by_devno(t, from->l[i].devno);

		if (d && is_sutro(d))
			err = add(r, &from->l[i]);
	}
	return err;
}

/* @active: the counters of sutro leaves come from io.sutro.active. */
static int sample_cgroup(struct cgroup *c, enum sampler_slot slot,
			 const struct topology *t, unsigned int what,
			 bool active)
{
	struct sample *sample = c->samples[slot];
	struct reading r = {};
	bool has_files = false;
	int err = 0;

	if (!sample)
		sample = c->samples[slot] = calloc(1, sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	if (what & SAMPLE_TIME && active) {
		err = carry(&r, &sample->now, t);
	} else if (what & SAMPLE_TIME) {
		err = read_file(c, t, &r, "io.sutro.stat", true);
		has_files = !err;
	}
	if (what & SAMPLE_RATE && err != -ENOMEM) {
		err = read_file(c, t, &r, "io.stat", false);
		has_files |= !err;
	}
	if (err == -ENOMEM) {
		free(r.l);
		return err;
	}
	free(sample->before.l);
	sample->before = sample->now;
	sample->now = r;
	sample->has_files = has_files;
	if (sample->n < 2)
		sample->n++;
	return 0;
}

/* A line that was not there before says nothing about when its numbers came about. */
static int update(struct sample *s, const struct counters *c)
{
	struct counters *now = find(&s->now, c->devno);

	if (now) {
		*now = *c;
		return 0;
	}
	return add(&s->now, c) ?: add(&s->before, c);
}

/* "8:16 4711 time_ns=... ": the cgroup by its inode number. */
static int parse_active(struct cgroup *root, const struct topology *t,
			enum sampler_slot slot, char *line)
{
	char *save = NULL, *devno = strtok_r(line, " ", &save);
	char *id = strtok_r(NULL, " ", &save);
	struct counters counters = {};
	const struct device *d;
	struct cgroup *c;
	uint64_t inode;

	if (!id || parse_devno(devno, &counters.devno) < 0 ||
	    parse_u64(id, &inode) < 0)
		return 0;
	c = cgroup_by_inode(root->tree, inode);
	d = topology_by_devno(t, counters.devno);
	if (!c || !d || !is_sutro(d) || !(c->sampled & SAMPLE_TIME) ||
	    !c->samples[slot])
		return 0;
	parse_counters(save, &counters);
	return update(c->samples[slot], &counters);
}

static int update_active(struct cgroup *root, const struct topology *t,
			 enum sampler_slot slot, char *text)
{
	char *save = NULL;
	int err = 0;

	for (char *line = strtok_r(text, "\n", &save); line && !err;
	     line = strtok_r(NULL, "\n", &save))
		err = parse_active(root, t, slot, line);
	return err;
}

/* What was read before a cgroup was left out is too old to compare with. */
static void forget(struct cgroup *c, enum sampler_slot slot)
{
	c->samples[slot] = sample_free(c->samples[slot]);
}

int sampler_take(struct sampler *s, struct cgroup *root,
		 const struct topology *t, uint64_t now_usec)
{
	_cleanup_free_ char *active = NULL;
	unsigned int all = SAMPLE_RATE;
	int err = 0;

	for (size_t i = 0; i < t->n_devices; i++)
		if (is_sutro(t->devices[i]))
			all |= SAMPLE_TIME;
	if (s->slot == SAMPLER_GOVERNOR && all & SAMPLE_TIME &&
	    cgroup_read(root, "io.sutro.active", &active) == -ENOMEM)
		return -ENOMEM;
	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c)) {
		unsigned int what;

		what = s->slot == SAMPLER_WATCHER ? all : c->sampled & all;
		if (what)
			err = sample_cgroup(c, s->slot, t, what, active);
		else
			forget(c, s->slot);
	}
	if (active && !err)
		err = update_active(root, t, s->slot, active);
	if (err)
		return err;
	s->before_usec = s->now_usec;
	s->now_usec = now_usec;
	return 0;
}

double sampler_interval_s(const struct sampler *s)
{
	return s->before_usec ? (s->now_usec - s->before_usec) / 1e6 : 0;
}

bool sampler_is_fresh(const struct sampler *s, uint64_t now_usec)
{
	uint64_t interval = s->now_usec - s->before_usec;

	return s->before_usec && interval >= INTERVAL_MIN_USEC &&
	       interval <= INTERVAL_MAX_USEC &&
	       now_usec - s->now_usec <= AGE_MAX_USEC;
}

/* A counter that went back was reset (the scheduler was switched): start over. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

static struct usage own_usage(const struct sampler *s, const struct cgroup *c,
			      const struct device *device)
{
	static const struct counters none;
	const struct sample *sample = c->samples[s->slot];
	const struct counters *now, *before;
	struct usage u = {};

	if (!sample || sample->n < 2)
		return u;
	now = find(&sample->now, device->devno);
	if (!now)
		return u;
	before = find(&sample->before, device->devno) ?: &none;
	u.time_ns = since(now->time_ns, before->time_ns);
	u.rbytes = since(now->rbytes, before->rbytes);
	u.wbytes = since(now->wbytes, before->wbytes);
	u.rios = since(now->rios, before->rios);
	u.wios = since(now->wios, before->wios);
	u.wait_ns = since(now->wait_ns, before->wait_ns);
	u.queued = now->queued;
	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		u.rlat[i] = now->rlat[i] - before->rlat[i];
	u.active = u.time_ns || u.rbytes || u.wbytes || u.queued;
	return u;
}

struct usage sample_usage(const struct sampler *s, const struct cgroup *top,
			  const struct device *device)
{
	struct usage sum = own_usage(s, top, device);
	struct cgroup *c = (struct cgroup *)top;

	/* io.stat has what is below in it, but for the root of a cgroup whose
	 * children do without the controller nothing is there to add either.
	 */
	if (!is_sutro(device))
		return sum;
	while ((c = cgroup_next(top, c))) {
		struct usage u = own_usage(s, c, device);

		sum.time_ns += u.time_ns;
		sum.rbytes += u.rbytes;
		sum.wbytes += u.wbytes;
		sum.rios += u.rios;
		sum.wios += u.wios;
		sum.wait_ns += u.wait_ns;
		sum.queued += u.queued;
		for (size_t i = 0; i < LATENCY_BUCKETS; i++)
			sum.rlat[i] += u.rlat[i];
		sum.active |= u.active;
	}
	return sum;
}

static const struct cgroup *root_of(const struct cgroup *c)
{
	while (c->parent)
		c = c->parent;
	return c;
}

double sample_got(const struct sampler *s, const struct cgroup *c,
		  const struct device *leaf)
{
	struct usage all = sample_usage(s, root_of(c), leaf);
	struct usage mine = sample_usage(s, c, leaf);

	if (all.time_ns)
		return (double)mine.time_ns / all.time_ns;
	if (all.rbytes + all.wbytes)
		return (double)(mine.rbytes + mine.wbytes) /
		       (all.rbytes + all.wbytes);
	return 0;
}

double sample_hweight(const struct sampler *s, const struct cgroup *c,
		      const struct device *leaf)
{
	double share = 1;

	while (c->parent &&
	       !(c->samples[s->slot] && c->samples[s->slot]->has_files))
		c = c->parent;
	for (; c->parent; c = c->parent) {
		const struct cgroup *one;
		uint64_t sum = 0;

		TAILQ_FOREACH(one, &c->parent->children, siblings)
			if (one == c || sample_usage(s, one, leaf).active)
				sum += policy_weight(&one->policy, leaf).weight;
		share *= (double)policy_weight(&c->policy, leaf).weight / sum;
	}
	return share;
}

uint64_t sample_latency_us(const struct usage *u, double part)
{
	uint64_t all = 0, sum = 0;

	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		all += u->rlat[i];
	for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
		sum += u->rlat[i];
		if (sum && sum >= part * all) {
			/* Where the next bucket begins. */
			uint64_t octave = 1ULL << (14 + i / 2);

			return (i % 2 ? octave + octave / 2 : octave) / 1000;
		}
	}
	return 0;
}
