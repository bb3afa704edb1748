/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The use of each device by each cgroup.
 *
 * A sutro leaf counts device time in io.sutro.stat, for each cgroup alone. Other leaves,
 * and devices that stand on leaves, have io.stat only: bytes, no time, and a cgroup's
 * counters include those below it. A share there is a share of the bytes.
 *
 * Two series of samples are kept apart: the watcher's, of all cgroups each second
 * while a client watches, and the governor's, several times a second of the few cgroups
 * that matter for a promise. The latter is one read of io.sutro.active, which has a
 * line for each cgroup in use; the counters of those without a line stand still. An
 * elevator without that file costs a read for each cgroup.
 *
 * Each line that is read is compared with its former values, and the difference is
 * added to the cgroup and, for a sutro leaf, to all above it. So a query returns a
 * stored sum, and a line that is read twice in one pass (the kernel may give it again, with
 * newer numbers) is no mistake.
 */

#include <inttypes.h>
#include <stdio.h>

#include "host/sample.h"

/* The interval is a second; a timer may be late, and a short interval is too noisy. */
#define INTERVAL_MIN_USEC 500000U
#define INTERVAL_MAX_USEC 3000000U
#define AGE_MAX_USEC 1500000U

/* Samples after which counters of removed disks are dropped. */
#define CLEAN_ROUNDS 256U

/* After two samples of all cgroups, each has both, and only those with new lines change. */
#define SAMPLER_SETTLED 2U

/** struct latency_line - reads by latency: the counters, and the difference of the last pass */
struct latency_line {
	struct latencies total;
	struct latencies use;
};

/**
 * struct line - counters of one device
 * @total: of the cgroup, as read last
 * @use: difference of the last pass, also of all below, if the device is a sutro leaf; NULL if
 *	the last two passes had nothing of the cgroup: most of a large machine are idle
 * @known: @total was read; false: the line is only for those below
 * @sutro: @total is from a file about sutro leaves
 * @seen: in this pass
 * @latency: NULL where it is not sampled
 */
struct line {
	dev_t devno;
	uint64_t total[COUNTERS_GROWING];
	struct usage *use;
	bool known;
	bool sutro;
	bool seen;
	struct latency_line *latency;
};

/**
 * struct sample - the last reading of a cgroup, and the difference to the one before
 * @c: the cgroup
 * @others: in the list of its sampler while @is_busy: @touched or @was_touched
 * @passes: readings taken, 0..2
 * @active: a line has something new
 * @touched: in this pass a line was taken or a file was read
 * @was_touched: the same of the pass before
 */
struct sample {
	struct cgroup *c;
	LIST_ENTRY(sample) others;
	bool is_busy;
	struct line *l;
	size_t n;
	unsigned int passes;
	bool has_files;
	bool active;
	bool touched;
	bool was_touched;
};

static void line_done(struct line *l)
{
	free(l->use);
	free(l->latency);
}

static struct sample *sample_free(struct sample *s)
{
	if (!s)
		return NULL;
	if (s->is_busy)
		LIST_REMOVE(s, others);
	for (size_t i = 0; i < s->n; i++)
		line_done(&s->l[i]);
	free(s->l);
	free(s);
	return NULL;
}

void samples_drop(struct cgroup *c)
{
	for (size_t i = 0; i < SAMPLER_SLOTS; i++)
		c->samples[i] = sample_free(c->samples[i]);
}

bool sample_counts_time(const struct device *d)
{
	return d->leaf && d->scheduler && streq(d->scheduler, "sutro");
}

static struct line *find(const struct sample *s, dev_t devno)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->l[i].devno == devno)
			return &s->l[i];
	return NULL;
}

static struct line *find_or_add(struct sample *s, dev_t devno)
{
	struct line *l = find(s, devno), *grown;

	if (l)
		return l;
	grown = reallocarray(s->l, s->n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	s->l = grown;
	l = &grown[s->n++];
	*l = (struct line){ .devno = devno };
	return l;
}

/* ---- differences ---- */

/* A counter that went back was reset (the scheduler was switched): start over. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

/* Times up to the moment of reading may fall by those of a request that ends meanwhile, and
 * not all kernels hide that. Such a fall is no reset: the time has been counted.
 */
static void hold_times(uint64_t *now, const uint64_t *before)
{
	static const enum counter times[] = { COUNTER_BUSY_NS,
					      COUNTER_BACKLOG_NS };

	if (now[COUNTER_TIME_NS] < before[COUNTER_TIME_NS] ||
	    now[COUNTER_RIOS] < before[COUNTER_RIOS] ||
	    now[COUNTER_WIOS] < before[COUNTER_WIOS])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (now[times[i]] < before[times[i]])
			now[times[i]] = before[times[i]];
}

static int add_usage(struct line *l, const struct usage *u)
{
	struct usage *sum = l->use ?: calloc(1, sizeof(*sum));

	if (!sum)
		return -ENOMEM;
	l->use = sum;
	sum->time_ns += u->time_ns;
	sum->rbytes += u->rbytes;
	sum->wbytes += u->wbytes;
	sum->rios += u->rios;
	sum->wios += u->wios;
	sum->wait_ns += u->wait_ns;
	sum->pending_ns += u->pending_ns;
	sum->busy_ns += u->busy_ns;
	sum->backlog_ns += u->backlog_ns;
	sum->queued += u->queued;
	sum->in_flight += u->in_flight;
	sum->active |= u->active;
	sum->is_timed |= u->is_timed;
	sum->is_unreachable |= u->is_unreachable;
	return 0;
}

static struct usage difference(const uint64_t *now, const uint64_t *before)
{
	struct usage u = {
		.time_ns = since(now[COUNTER_TIME_NS], before[COUNTER_TIME_NS]),
		.rbytes = since(now[COUNTER_RBYTES], before[COUNTER_RBYTES]),
		.wbytes = since(now[COUNTER_WBYTES], before[COUNTER_WBYTES]),
		.rios = since(now[COUNTER_RIOS], before[COUNTER_RIOS]),
		.wios = since(now[COUNTER_WIOS], before[COUNTER_WIOS]),
		.wait_ns = since(now[COUNTER_WAIT_NS], before[COUNTER_WAIT_NS]),
		.pending_ns = since(now[COUNTER_PENDING_NS],
				    before[COUNTER_PENDING_NS]),
		.busy_ns = since(now[COUNTER_BUSY_NS], before[COUNTER_BUSY_NS]),
		.backlog_ns = since(now[COUNTER_BACKLOG_NS],
				    before[COUNTER_BACKLOG_NS]),
		.queued = now[COUNTER_QUEUED],
		.in_flight = now[COUNTER_IN_FLIGHT],
		.is_timed = now[COUNTER_LATENCY],
		.is_unreachable = now[COUNTER_LATENCY] == STATE_UNREACHABLE,
	};

	u.active = u.time_ns || u.rbytes || u.wbytes || u.queued || u.in_flight;
	return u;
}

static int read_latencies(struct line *l, const struct latencies *now,
			  bool compare)
{
	bool first = !l->latency;

	if (first)
		l->latency = calloc(1, sizeof(*l->latency));
	if (!l->latency)
		return -ENOMEM;
	for (size_t i = 0; i < LATENCY_BUCKETS && compare && !first; i++)
		l->latency->use.count[i] +=
			now->count[i] - l->latency->total.count[i];
	l->latency->total = *now;
	return 0;
}

/* ---- a pass over all cgroups ---- */

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
		struct line *l = s ? find_or_add(s, devno) : NULL;

		if (s && !l)
			return -ENOMEM;
		if (!l)
			continue;
		s->active = true;
		touch(p, s);
		if (add_usage(l, u) < 0)
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
	struct line *l = find_or_add(s, devno);
	uint64_t now[COUNTERS] = {};
	struct latencies latencies = {};
	struct usage u;
	bool compare, reset;
	int err;

	if (!l)
		return -ENOMEM;
	counters_parse(counters, now, latency ? &latencies : NULL);
	hold_times(now, l->total);
	compare = s->passes && (l->known ? l->sutro == p->sutro : !p->active);
	u = difference(now, compare ? l->total : now);
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
	err = add_usage(l, &u);
	if (!err && latency)
		err = read_latencies(l, &latencies, compare && !reset);
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

static void free_usage(struct sample *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->l[i].use);
		s->l[i].use = NULL;
	}
}

/* Clear the differences. A sample that the last pass did not touch has nothing to clear. */
static void clear(struct sample *s)
{
	if (!s->touched && s->was_touched)
		free_usage(s);
	s->was_touched = s->touched;
	if (!s->touched) {
		if (s->is_busy)
			LIST_REMOVE(s, others);
		s->is_busy = false;
		return;
	}
	s->touched = false;
	s->has_files = false;
	s->active = false;
	for (size_t i = 0; i < s->n; i++) {
		struct line *l = &s->l[i];

		if (l->use)
			*l->use = (struct usage){};
		l->seen = false;
		if (l->latency)
			l->latency->use = (struct latencies){};
	}
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
	clear(*s);
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
		if (clean && !topology_by_devno(p->t, l->devno)) {
			line_done(l);
			*l = s->l[--s->n];
		}
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
		clear(sample);
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

/* ---- queries ---- */

double sampler_interval_s(const struct sampler *s)
{
	return s->before_usec ? (s->now_usec - s->before_usec) / 1e6 : 0;
}

bool sampler_is_fresh(const struct sampler *s, uint64_t now_usec)
{
	uint64_t interval = s->now_usec - s->before_usec;

	return !cgroup_cursor_goes_on(&s->cursor) && s->before_usec &&
	       interval >= INTERVAL_MIN_USEC && interval <= INTERVAL_MAX_USEC &&
	       now_usec - s->now_usec <= AGE_MAX_USEC;
}

bool sample_is_active(const struct sampler *s, const struct cgroup *c)
{
	const struct sample *sample = c->samples[s->slot];

	return sample && sample->passes == 2 && sample->active;
}

struct cgroup *sampler_next_active(const struct sampler *s,
				   const struct cgroup *c)
{
	const struct sample *next = c ? LIST_NEXT(c->samples[s->slot], others)
				      : LIST_FIRST(&s->busy);

	while (next && !sample_is_active(s, next->c))
		next = LIST_NEXT(next, others);
	return next ? next->c : NULL;
}

static const struct line *line_of(const struct sampler *s,
				  const struct cgroup *c, dev_t devno)
{
	const struct sample *sample = c->samples[s->slot];

	return sample && sample->passes == 2 ? find(sample, devno) : NULL;
}

const struct usage *sample_usage(const struct sampler *s,
				 const struct cgroup *c,
				 const struct device *device)
{
	static const struct usage none;
	const struct line *l = line_of(s, c, device->devno);

	return l && l->use ? l->use : &none;
}

void sample_add_latencies(const struct sampler *s, const struct cgroup *top,
			  const struct device *leaf, struct latencies *sum)
{
	struct cgroup *c = (struct cgroup *)top;

	for (; c; c = cgroup_next(top, c)) {
		const struct line *l = line_of(s, c, leaf->devno);

		for (size_t i = 0; l && l->latency && i < LATENCY_BUCKETS; i++)
			sum->count[i] += l->latency->use.count[i];
	}
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
	const struct usage *all = sample_usage(s, root_of(c), leaf);
	const struct usage *mine = sample_usage(s, c, leaf);

	if (all->time_ns)
		return (double)mine->time_ns / all->time_ns;
	if (all->rbytes + all->wbytes)
		return (double)(mine->rbytes + mine->wbytes) /
		       (all->rbytes + all->wbytes);
	return 0;
}

bool sample_has_files(const struct sampler *s, const struct cgroup *c)
{
	return c->samples[s->slot] && c->samples[s->slot]->has_files;
}

uint64_t sample_latency_us(const struct latencies *l, double part)
{
	uint64_t all = 0, sum = 0;

	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		all += l->count[i];
	for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
		sum += l->count[i];
		if (sum && sum >= part * all) {
			/* The begin of the next bucket. */
			uint64_t octave = 1ULL << (14 + i / 2);

			return (i % 2 ? octave + octave / 2 : octave) / 1000;
		}
	}
	return 0;
}
