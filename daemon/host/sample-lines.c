/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The sample of a cgroup: a line for each device, with the counters that were read last and their
 * difference to those of the pass before.
 *
 * sampler.c reads the counters, sample.c returns sums of the differences.
 */

#include "host/sample-lines.h"

static void line_done(struct line *l)
{
	free(l->use);
	free(l->latency);
}

struct sample *sample_free(struct sample *s)
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

struct line *sample_find(const struct sample *s, dev_t devno)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->l[i].devno == devno)
			return &s->l[i];
	return NULL;
}

struct line *sample_find_or_add(struct sample *s, dev_t devno)
{
	struct line *l = sample_find(s, devno), *grown;

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

void sample_remove(struct sample *s, struct line *l)
{
	line_done(l);
	*l = s->l[--s->n];
}

static void free_usage(struct sample *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->l[i].use);
		s->l[i].use = NULL;
	}
}

void sample_clear(struct sample *s)
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

/* ---- differences ---- */

/* A counter that went back was reset (the scheduler was switched): start over. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

/* Times up to the moment of reading may fall by those of a request that ends meanwhile, and
 * not all kernels hide that. Such a fall is no reset: the time has been counted.
 */
void counters_hold(uint64_t *now, const uint64_t *before)
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

int line_add_usage(struct line *l, const struct usage *u)
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

struct usage counters_difference(const uint64_t *now, const uint64_t *before)
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

int line_read_latencies(struct line *l, const struct latencies *now,
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
