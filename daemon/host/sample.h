/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_SAMPLE_H
#define SUTRO_SAMPLE_H

#include "host/cgroup.h"
#include "host/counters.h"
#include "host/topology.h"

/* Cgroups whose counters the governor reads, and which: see struct cgroup. */
#define SAMPLE_TIME 1U
#define SAMPLE_RATE 2U
#define SAMPLE_LATENCY 4U

/**
 * struct usage - use of one device by a cgroup and those below it
 * @time_ns: device time; 0 where the scheduler does not measure it
 * @wait_ns: sum over requests of the time they waited in the scheduler, counted
 *	when they are sent; 0 where the scheduler does not measure it
 * @pending_ns: sum over requests of the time from submission to completion, counted
 *	when they complete; 0 where the scheduler does not measure it
 * @busy_ns: time in which a cgroup had a request, waiting or at the device, added up over
 *	cgroups; 0 where the scheduler does not measure it
 * @backlog_ns: time in which a cgroup had a request waiting in the scheduler, added up over
 *	cgroups; 0 where the scheduler does not measure it
 * @queued: requests that waited when the sample was taken
 * @in_flight: requests that were at the device then
 * @active: it used the device, or waits for it
 * @is_timed: the scheduler of the device counts its late reads, for a latency target
 * @is_unreachable: the target is missed by reads that met no others, too
 */
struct usage {
	uint64_t time_ns;
	uint64_t rbytes;
	uint64_t wbytes;
	uint64_t rios;
	uint64_t wios;
	uint64_t wait_ns;
	uint64_t pending_ns;
	uint64_t busy_ns;
	uint64_t backlog_ns;
	uint64_t queued;
	uint64_t in_flight;
	bool active;
	bool is_timed;
	bool is_unreachable;
};

/** samples_drop() - free the samples of @c, which is about to be freed */
void samples_drop(struct cgroup *c);

/**
 * struct sampler - a series of samples, which outlives them and stays at its place
 * @slot: which of the samples of each cgroup are its own
 * @now_usec, @before_usec: when the last two were taken
 * @n: how many were taken
 * @cursor: the cgroups that the sample under way has not reached
 * @busy: samples in which a line was taken in one of the last two passes
 * @what: the counters that the last sample of the governor could read
 * @n_settled: samples since cgroups or their @sampled changed; at SAMPLER_SETTLED only @busy ones are
 *	looked at
 */
struct sampler {
	enum sampler_slot slot;
	uint64_t now_usec;
	uint64_t before_usec;
	unsigned int n;
	struct cgroup_cursor cursor;
	LIST_HEAD(, sample) busy;
	unsigned int what;
	unsigned int n_settled;
};

/**
 * sampler_take() - read the counters of @root and cgroups below
 *
 * The watcher's sampler reads all of them, the governor's those with @sampled.
 */
int sampler_take(struct sampler *s, struct cgroup *root,
		 const struct topology *t, uint64_t now_usec);

/**
 * sampler_begin(), sampler_next() - the watcher's sample in parts of CGROUP_BATCH cgroups
 *
 * Until its end there are no differences to query: sampler_is_fresh() returns false.
 *
 * Return: of sampler_next() 1: there are more cgroups; 0: the sample is complete; -ENOMEM.
 */
void sampler_begin(struct sampler *s, struct cgroup *root);
int sampler_next(struct sampler *s, const struct topology *t,
		 uint64_t now_usec);

/** sampler_renew() - cgroups with @sampled, or that field of some, are others than before */
void sampler_renew(struct sampler *s);

/** sampler_next_active() - cgroups for which sample_is_active(): start with @c = NULL */
struct cgroup *sampler_next_active(const struct sampler *s,
				   const struct cgroup *c);

/** sampler_forget() - free the samples, which are of no use before there are two new ones */
void sampler_forget(struct sampler *s, struct cgroup *root);

/** sample_counts_time() - are the counters of @d those of its scheduler, not io.stat? */
bool sample_counts_time(const struct device *d);

/** sampler_is_fresh() - are there two samples, not too old and not too close? */
bool sampler_is_fresh(const struct sampler *s, uint64_t now_usec);

/** sampler_interval_s() - time between the last two samples, 0: there are no two */
double sampler_interval_s(const struct sampler *s);

/**
 * sample_usage() - of @c and all below it, between the last two samples
 * @device: a leaf, or a device on leaves
 *
 * Return: never NULL; valid until the next sample is taken.
 */
const struct usage *sample_usage(const struct sampler *s,
				 const struct cgroup *c,
				 const struct device *device);

/** sample_is_active() - has @c used any device, or waited, between the last two? */
bool sample_is_active(const struct sampler *s, const struct cgroup *c);

/**
 * sample_add_latencies() - of the reads of @c and all below it, between the last two
 *
 * The governor's sampler has them where SAMPLE_LATENCY is set.
 */
void sample_add_latencies(const struct sampler *s, const struct cgroup *c,
			  const struct device *leaf, struct latencies *sum);

/**
 * sample_latency_us() - a percentile of the reads' latency
 * @part: 0.95 for P95
 *
 * Return: the upper bound of the bucket it is in; 0 without reads.
 */
uint64_t sample_latency_us(const struct latencies *l, double part);

/** sample_got() - share of @leaf that @c got between the last two samples, 0..1 */
double sample_got(const struct sampler *s, const struct cgroup *c,
		  const struct device *leaf);

/** sample_has_files() - did @c have files of the io controller in the last sample? */
bool sample_has_files(const struct sampler *s, const struct cgroup *c);

#endif
