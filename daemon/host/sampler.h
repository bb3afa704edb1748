/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_SAMPLER_H
#define SUTRO_SAMPLER_H

#include "host/sample.h"

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

/** sampler_forget() - free the samples, which are of no use before there are two new ones */
void sampler_forget(struct sampler *s, struct cgroup *root);

#endif
