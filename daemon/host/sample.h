/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_SAMPLE_H
#define SUTRO_SAMPLE_H

#include "host/cgroup.h"
#include "host/counters.h"
#include "host/topology.h"
#include "host/usage.h"

/* Cgroups whose counters the governor reads, and which: see struct cgroup. */
#define SAMPLE_TIME 1U
#define SAMPLE_RATE 2U
#define SAMPLE_LATENCY 4U

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

/** sampler_next_active() - cgroups for which sample_is_active(): start with @c = NULL */
struct cgroup *sampler_next_active(const struct sampler *s,
				   const struct cgroup *c);

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
