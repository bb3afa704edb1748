/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_SAMPLE_H
#define SUTRO_SAMPLE_H

#include "cgroup.h"

/**
 * struct usage - what a cgroup used of one leaf
 * @time_ns: device time; 0 where the scheduler does not measure it
 * @active: it used the leaf, or waits for it
 */
struct usage {
	uint64_t time_ns;
	uint64_t rbytes;
	uint64_t wbytes;
	bool active;
};

struct sample;
struct sample *sample_free(struct sample *s);

/**
 * struct sampler - the clock of the samples
 * @now_usec, @before_usec: when the last two samples of all cgroups were taken
 */
struct sampler {
	uint64_t now_usec;
	uint64_t before_usec;
};

/** sampler_take() - read the counters of @root and all cgroups below */
int sampler_take(struct sampler *s, struct cgroup *root,
		 const struct topology *t, uint64_t now_usec);

/** sampler_is_fresh() - are there two samples, not too old and not too close? */
bool sampler_is_fresh(const struct sampler *s, uint64_t now_usec);

/** sample_usage() - of @c and all below it, between the last two samples */
struct usage sample_usage(const struct cgroup *c, const struct device *leaf);

/** sample_got() - share of @leaf that @c got between the last two samples, 0..1 */
double sample_got(const struct cgroup *c, const struct device *leaf);

/** sample_hweight() - share of @leaf that the weights entitle @c to, 0..1 */
double sample_hweight(const struct cgroup *c, const struct device *leaf);

#endif
