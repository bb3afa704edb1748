/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PRIOR_H
#define SUTRO_PRIOR_H

#include <sys/types.h>

#include "policy/promise.h"

/* Most costs that are kept (a cost is that of a floor on a leaf), and the time for which. */
#define PRIORS_MAX 1024U
#define PRIOR_AGE_USEC (7ULL * 24 * 3600 * 1000000)

/**
 * struct prior - the measured cost of a promise on a leaf
 * @key, @device: of the promise
 * @leaf: where the cost was measured
 * @leaf_seq: diskseq of that leaf: another disk may have its number later
 * @cost_s: device time on @leaf for a byte or request at @device, in seconds
 * @usec: time of the measurement, on the monotonic clock
 * @unit: the unit that had the promise
 * @source: file and line that stated it
 */
struct prior {
	enum promise_key key;
	dev_t device;
	dev_t leaf;
	uint64_t leaf_seq;
	double cost_s;
	uint64_t usec;
	char *unit;
	char *source;
};

/** struct priors - measured costs; they outlive the units and the daemon */
struct priors {
	struct prior *items;
	size_t n;
};

void priors_done(struct priors *l);

/**
 * priors_find() - the cost of a promise most like @like
 * @like: @cost_s is not looked at; costs older than PRIOR_AGE_USEC at @usec are ignored
 *
 * For the same key, device and leaf: the unit's own, else the newest of an instance of
 * the same template, else the newest of a unit that the same statement is about.
 * Return: NULL without any of these.
 */
const struct prior *priors_find(const struct priors *l,
				const struct prior *like);

/**
 * priors_set() - remember a cost
 * @p: is copied; takes the place of an older one of the same unit, and, with PRIORS_MAX
 *	of them, of the oldest one
 *
 * A cost that priors_find() returned, and that was not measured again, is as old as it
 * was.
 */
int priors_set(struct priors *l, const struct prior *p);

/** priors_load() - add those in the file @path; lines with mistakes are ignored */
int priors_load(struct priors *l, const char *path);

/** priors_save() - replace the file @path */
int priors_save(const struct priors *l, const char *path);

#endif
