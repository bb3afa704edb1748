/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_POLICY_H
#define SUTRO_POLICY_H

#include "topology.h"

/**
 * struct statement - "this weight on this device"
 * @path: as it was stated: a node, a link, a mount point, any path
 * @device: where @path leads now, NULL while it leads nowhere; belongs to the
 *	topology
 * @missed: it has been said that @path leads nowhere
 */
struct statement {
	char *path;
	uint64_t weight;
	const struct device *device;
	bool missed;
};

enum policy_source {
	POLICY_UNIT,
	POLICY_FILE,
};

/**
 * struct policy - what is said about one cgroup
 * @source: POLICY_UNIT: systemd, for the unit @subject; POLICY_FILE: the io.weight
 *	file of @subject, a cgroup that systemd did not make
 * @weight: IOWeight=, or the default line of io.weight
 * @weight_set: false: nobody said anything, @weight is 100
 * @statements: IODeviceWeight=, or the other lines of io.weight
 */
struct policy {
	enum policy_source source;
	char *subject;
	uint64_t weight;
	bool weight_set;
	struct statement *statements;
	size_t n_statements;
};

/** enum reason - which statement a weight follows from */
enum reason {
	REASON_UNSET,
	REASON_WEIGHT,
	REASON_LEAF,
	REASON_STACK,
};

/**
 * struct asked - the weight asked for one cgroup on one leaf, and why
 * @statement: for REASON_LEAF and REASON_STACK
 */
struct asked {
	uint64_t weight;
	enum reason reason;
	const struct statement *statement;
};

int policy_add(struct policy *p, const char *path, uint64_t weight);
void policy_done(struct policy *p);

/** policy_resolve() - find the devices of all statements in a new topology */
void policy_resolve(struct policy *p, const struct topology *t,
		    const struct roots *roots);

/** policy_default() - what is asked on every leaf that no statement is about */
struct asked policy_default(const struct policy *p);

/** policy_weight() - what is asked on @leaf; policy.c has the rules */
struct asked policy_weight(const struct policy *p, const struct device *leaf);

/** policy_reason() - the statement as a sentence for people; to be freed */
char *policy_reason(const struct policy *p, const struct asked *a);

#endif
