/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_POLICY_H
#define SUTRO_POLICY_H

#include "host/lookup.h"
#include "host/topology.h"
#include "policy/promise.h"

/**
 * struct statement - "this weight on this device"
 * @path: as it was stated: a node, a link, a mount point, any path
 * @device: where @path leads now, NULL while it leads nowhere; belongs to the
 *	topology
 * @missed: it was logged that @path leads nowhere
 * @source: of a Weight= in a policy; NULL: systemd or a cgroup file
 * @file: "io.bfq.weight", whose line it is; NULL: another source
 */
struct statement {
	char *path;
	uint64_t weight;
	const struct device *device;
	bool missed;
	char *source;
	const char *file;
};

/* A setpoint that leaves a line as it is. */
#define SETPOINT_KEEP 0U

/**
 * struct setpoint - a weight that the governor requests for a leaf, above the settings
 * @weight: 1..10000, or SETPOINT_KEEP
 * @why: for people
 */
struct setpoint {
	dev_t devno;
	uint64_t weight;
	char *why;
};

enum policy_source {
	POLICY_UNIT,
	POLICY_FILE,
};

/**
 * struct policy - the settings of one cgroup
 * @source: POLICY_UNIT: systemd, for the unit @subject; POLICY_FILE: the io.weight
 *	file of @subject, a cgroup that systemd did not make
 * @weight: IOWeight=, or the default line of io.weight
 * @weight_set: false: there is no setting, @weight is 100
 * @weight_source: of a Weight= in a policy; NULL: systemd or @weight_file
 * @weight_file: "io.weight" or "io.bfq.weight", whose default line is @weight; NULL: another source
 * @bfq_weight: default line of io.bfq.weight when the policy was made, 0: none
 * @bfq_lines: a hash of the lines of others for devices in that file, at the same time
 * @statements: IODeviceWeight=, or the other lines of io.weight
 * @promises: of [X-Sutro] sections, policy files and clients of the bus
 * @setpoints: of the governor, so that floors hold
 * @left_out: volumes that the unit uses, and on which no floor and no target can hold; see
 *	policy_left_out()
 * @is_proposed: no cgroup has it, so its paths are not logged
 */
struct policy {
	enum policy_source source;
	bool is_proposed;
	char *subject;
	uint64_t weight;
	bool weight_set;
	char *weight_source;
	const char *weight_file;
	uint64_t bfq_weight;
	uint64_t bfq_lines;
	struct statement *statements;
	size_t n_statements;
	struct promises promises;
	struct setpoint *setpoints;
	size_t n_setpoints;
	const struct device **left_out;
	size_t n_left_out;
};

/** enum reason - which statement a weight follows from */
enum reason {
	REASON_UNSET,
	REASON_WEIGHT,
	REASON_LEAF,
	REASON_STACK,
	REASON_SETPOINT,
};

/**
 * struct leaf_weight - the weight of one cgroup on one leaf, and its reason
 * @statement: for REASON_LEAF and REASON_STACK
 * @setpoint: for REASON_SETPOINT
 */
struct leaf_weight {
	uint64_t weight;
	enum reason reason;
	const struct statement *statement;
	const struct setpoint *setpoint;
};

int policy_add(struct policy *p, const char *path, uint64_t weight);

/**
 * policy_device_gone() - drop the weights that lines of cgroup files had for a device
 * @node: of the device; another one may have this name next
 */
void policy_device_gone(struct policy *p, const char *node);

void policy_done(struct policy *p);

/**
 * policy_promise() - take over settings of policies, above those of systemd
 * @promises: one for each key and path; empty afterwards
 *
 * Weight= replaces IOWeight=, with a path IODeviceWeight= for the same path.
 */
int policy_promise(struct policy *p, struct promises *promises);

/**
 * policy_resolve() - find the devices of all statements in a new topology
 *
 * Promises that policy_expand() derived are gone after it.
 */
void policy_resolve(struct policy *p, const struct topology *t,
		    struct lookups *lookups);

/**
 * policy_keep_missed() - take over which paths led nowhere, which is then not logged again
 * @former: the policy of the same cgroup before, resolved
 */
void policy_keep_missed(struct policy *p, const struct policy *former);

/**
 * policy_resolve_again() - find the devices of all statements in the same topology as before
 *
 * A file system may have been mounted over a path, or a file made. Derived promises stay, and so do
 * the devices of paths while files of the machine cannot be read.
 * Return: does a path lead to another device than before?
 */
bool policy_resolve_again(struct policy *p, const struct topology *t,
			  struct lookups *lookups);

/** policy_each_path() - call @fn for each path of the settings */
void policy_each_path(const struct policy *p, paths_fn *fn, void *userdata);

/** policy_has_any() - is there a promise about each volume that the unit uses? */
bool policy_has_any(const struct policy *p);

/**
 * policy_expand() - derive a promise for each volume from those with PROMISE_ANY
 * @used: the volumes
 *
 * A volume that a promise with the same key names by a path has that one only. Floors and targets
 * leave out volumes on which they cannot hold.
 * Return: 1 if other ones are derived than before, 0, or -ENOMEM: then all is as before.
 */
int policy_expand(struct policy *p, const struct device *const *used,
		  size_t n_used);

/**
 * policy_left_out() - a volume that a promise about any volume leaves out
 * @i: 0 at first, for the next one afterwards
 *
 * Return: NULL after the last one.
 */
const struct device *policy_left_out(const struct policy *p,
				     enum promise_key key, size_t *i);

/** policy_default() - the weight on leaves without a setting of their own */
struct leaf_weight policy_default(const struct policy *p);

/** policy_nominal() - the stated weight for @leaf; policy.c has the rules */
struct leaf_weight policy_nominal(const struct policy *p,
				  const struct device *leaf);

/** policy_weight() - the weight to write for @leaf: the setpoint, else the nominal weight */
struct leaf_weight policy_weight(const struct policy *p,
				 const struct device *leaf);

/** policy_keeps() - are the lines for the leaf @devno to be left as they are? */
bool policy_keeps(const struct policy *p, dev_t devno);

/**
 * policy_set_point() - set the setpoint of a leaf
 * @why: owned by the policy from now on, also on failure
 *
 * Return: 1 if it was something else before, 0, or -ENOMEM.
 */
int policy_set_point(struct policy *p, dev_t devno, uint64_t weight, char *why);

/** policy_clear_points() - no setpoints any more; returns if there were any */
bool policy_clear_points(struct policy *p);
bool policy_clear_point(struct policy *p, dev_t devno);

/** policy_move_points() - give the setpoints of one policy to its successor */
void policy_move_points(struct policy *to, struct policy *from);

/** policy_reason() - the statement as a sentence for people; to be freed */
char *policy_reason(const struct policy *p, const struct leaf_weight *a);

#endif
