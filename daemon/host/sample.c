/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The use of each device by each cgroup.
 *
 * A sutro leaf counts device time in io.sutro.stat, for each cgroup alone. Other leaves,
 * and devices that stand on leaves, have io.stat only: bytes, no time, and a cgroup's
 * counters include those below it. A share there is a share of the bytes.
 *
 * sampler.c takes the samples, at some times and of some cgroups. Here are the queries about the
 * last two of a series.
 */

#include "host/sample-lines.h"
#include "host/sample.h"

/*
 * The interval is a second and the time of a sample, which takes some seconds with very many cgroups:
 * it has no upper bound. A short interval is too noisy.
 */
#define INTERVAL_MIN_USEC 500000U
#define AGE_MAX_USEC 1500000U

void samples_drop(struct cgroup *c)
{
	for (size_t i = 0; i < SAMPLER_SLOTS; i++)
		c->samples[i] = sample_free(c->samples[i]);
}

bool sample_counts_time(const struct device *d)
{
	return d->leaf && d->scheduler && streq(d->scheduler, "sutro");
}

double sampler_interval_s(const struct sampler *s)
{
	return s->before_usec ? (s->now_usec - s->before_usec) / 1e6 : 0;
}

bool sampler_is_fresh(const struct sampler *s, uint64_t now_usec)
{
	uint64_t interval = s->now_usec - s->before_usec;

	return !cgroup_cursor_goes_on(&s->cursor) && s->before_usec &&
	       interval >= INTERVAL_MIN_USEC &&
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

	return sample && sample->passes == 2 ? sample_find(sample, devno)
					     : NULL;
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
