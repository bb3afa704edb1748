/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ACTUATE_H
#define SUTRO_ACTUATE_H

#include "host/cgroup.h"
#include "host/record.h"
#include "host/topology.h"
#include "host/weights.h"

/**
 * struct actuator - writes what is asked into the cgroup files
 * @topology: the leaves; set again when it changes
 * @dry_run: compute and log, write nothing
 * @changed: a weight was written and read back
 * @iocost: numbers of the leaves that blk-iocost steers
 * @held: lines of ours in io.weight, "8:16 /system.slice/db.service"
 */
struct actuator {
	const struct roots *roots;
	const struct topology *topology;
	bool dry_run;
	void (*changed)(const struct cgroup *c, const struct device *leaf,
			uint64_t old, uint64_t new, const char *reason,
			void *userdata);
	void *userdata;
	dev_t *iocost;
	size_t n_iocost;
	struct record held;
};

/** actuator_init() - read what a predecessor left in /run/sutro */
int actuator_init(struct actuator *a, const struct roots *roots);
void actuator_done(struct actuator *a);

/** actuator_survey() - find out which leaves blk-iocost steers */
int actuator_survey(struct actuator *a, const struct cgroup *root);

/** actuator_backend() - what steers @leaf: "sutro", "bfq", "iocost"; NULL: nothing */
const char *actuator_backend(const struct actuator *a,
			     const struct device *leaf);

/** actuator_needs_siblings() - does a weight depend on those beside it? */
bool actuator_needs_siblings(const struct actuator *a);

/**
 * actuate_children() - make the files of all dirty children of @parent say what is
 * asked, and clear their mark
 *
 * Return: 0 or -ENOMEM; what else fails is logged.
 */
int actuate_children(struct actuator *a, struct cgroup *parent);

/** actuate_restore() - take back all that was written to @c and below */
int actuate_restore(struct actuator *a, struct cgroup *c);

/**
 * struct actuation - how one cgroup is steered on one leaf, now
 * @backend: "sutro", "bfq", "iocost", "none"
 * @file: full path of the file, "" when there is nothing to write
 * @written: the line that is wanted there, "" when the file is right without
 * @read_back: the line of the file that counts for the leaf
 */
struct actuation {
	const char *backend;
	char *file;
	char *written;
	char *read_back;
};

int actuate_explain(const struct actuator *a, const struct cgroup *c,
		    const struct device *leaf, struct actuation *ret);
void actuation_done(struct actuation *e);

/**
 * struct scale - how weights of 1..10000 become those of bfq, 1..1000
 *
 * All children of a cgroup are scaled alike, so that their ratios stay.
 */
struct scale {
	uint64_t max;
	uint64_t gcd;
};

void scale_add(struct scale *s, uint64_t weight);
uint64_t scale_apply(const struct scale *s, uint64_t weight);

#endif
