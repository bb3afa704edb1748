/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ACTUATE_H
#define SUTRO_ACTUATE_H

#include "host/cgfile.h"
#include "host/topology.h"

/**
 * struct actuator - writes weights of policies to the weight files
 * @files: writer of cgroup files
 * @topology: the leaves; set again when it changes
 * @changed: a weight was written and read back
 * @iocost: numbers of the leaves that blk-iocost steers
 */
struct actuator {
	struct cgfiles *files;
	const struct topology *topology;
	void (*changed)(const struct cgroup *c, const struct device *leaf,
			uint64_t old, uint64_t new, const char *reason,
			void *userdata);
	void *userdata;
	dev_t *iocost;
	size_t n_iocost;
};

/** actuator_init() - write through @files, and follow the weights that it changes */
void actuator_init(struct actuator *a, struct cgfiles *files);
void actuator_done(struct actuator *a);

/**
 * actuator_survey() - find out which leaves blk-iocost steers
 *
 * Return: 1 if they are others than before, 0 or -ENOMEM.
 */
int actuator_survey(struct actuator *a, const struct cgroup *root);

/** actuator_backend() - the backend of lines for @leaf: "sutro", "bfq", "iocost"; NULL: none */
const char *actuator_backend(const struct actuator *a,
			     const struct device *leaf);

/** actuator_hidden_cause() - why no floor or target holds on @leaf, a hidden disk; to be freed */
char *actuator_hidden_cause(const struct device *leaf);

/**
 * actuate_children() - write the weights of all children of @parent that are due, and clear
 *	their mark
 *
 * Return: 0 or -ENOMEM; another failure is logged.
 */
int actuate_children(struct actuator *a, struct cgroup *parent);

/**
 * struct actuation - the weight of one cgroup on one leaf as it is in force now
 * @backend: "sutro", "bfq", "iocost", "none"
 * @file: full path of the file, "" when there is nothing to write
 * @written: the line that should be there, "" when the file is right without
 * @read_back: the line of the file that counts for the leaf
 * @error: for people, "" unless the kernel refused @written
 */
struct actuation {
	const char *backend;
	char *file;
	char *written;
	char *read_back;
	char *error;
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
