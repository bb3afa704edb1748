/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_GOVERNOR_H
#define SUTRO_GOVERNOR_H

#include "control/law.h"
#include "control/target.h"
#include "host/cgroup.h"
#include "host/sample.h"
#include "policy/promise.h"

struct manager;

/* A row of history is a second; ten minutes are kept. */
#define HISTORY_ROWS 600U

/**
 * struct history - how a floor fared
 * @next: where the next row goes
 * @row: when, the rate, the rate that was promised then, the part of it granted
 * @n: rows there are
 */
struct history {
	struct history_row {
		uint64_t usec;
		double got;
		double promised;
		double granted;
	} row[HISTORY_ROWS];
	unsigned int next;
	unsigned int n;
};

/**
 * struct governed - a floor that is being kept, or a target, see target.c
 * @cgroup: whose; NULL when it is gone
 * @key, @path, @floor, @source: the promise, see promise.h
 * @part: of the promise; @floor is then what it is worth now, 0: not known
 * @devno: of the logical device
 * @number: of the promise in the plant
 * @rate: units per second in the last tick
 * @got: the same over the last second
 * @target: NULL for a floor; of a target @floor is the goal and @got the P95, in us
 * @bytes, @leaf_bytes: of late at the logical device and at its leaves, older ones weigh less
 * @copies: the second for each of the first, 0: unknown
 * @crowded_ticks: for how long it was short while a queue on the way was full; ...
 * @crowded: ... long enough to be the cause
 * @state: what was said last
 * @cause: why it does not hold, for people
 * @complained: the journal has it that it does not hold
 */
struct governed {
	struct cgroup *cgroup;
	enum promise_key key;
	char *path;
	uint64_t floor;
	uint32_t part;
	char *source;
	dev_t devno;
	uint32_t number;
	double rate;
	double got;
	struct target *target;
	double bytes;
	double leaf_bytes;
	double copies;
	unsigned int crowded_ticks;
	bool crowded;
	enum control_state state;
	char *cause;
	bool complained;
	struct history *history;
};

/**
 * struct governor - keeps floors: samples, asks the control law, gives setpoints
 * @stale: cgroups, policies or devices changed, a new plant is due
 * @nodes: cgroup of each node of the plant; NULL when it is gone
 * @leaves: numbers of the plant's leaves
 * @busy_ms: of each leaf, when it was read last
 * @ticks: since the daemon was started
 * @step_usec: CPU time of the last one
 */
struct governor {
	struct manager *manager;
	sd_event_source *timer;
	struct sampler sampler;
	bool stale;
	struct control *control;
	struct cgroup **nodes;
	size_t n_nodes;
	dev_t *leaves;
	uint64_t *busy_ms;
	size_t n_leaves;
	struct governed *floors;
	size_t n_floors;
	unsigned int ticks;
	uint64_t step_usec;
	struct learnt *learnt;
};

int governor_start(struct governor *g, struct manager *m);
void governor_stop(struct governor *g);

/** governor_renew() - cgroups, policies or devices changed */
void governor_renew(struct governor *g);

/** governor_look_at() - the nominal weights of @c are others than before */
void governor_look_at(struct governor *g, const struct cgroup *c);

/** governor_cgroup_gone() - @c is about to be freed */
void governor_cgroup_gone(struct governor *g, const struct cgroup *c);

/** governor_find() - the floor of @c for this key and path, NULL: there is none */
const struct governed *governor_find(const struct governor *g,
				     const struct cgroup *c,
				     const struct promise *p);

/**
 * governor_find_like() - a floor whose costs are known, and would be those of another one
 *
 * For @key of @c on @d: its own; else of those of other cgroups the one that costs
 * most. NULL: there is none.
 */
const struct governed *governor_find_like(const struct governor *g,
					  const struct cgroup *c,
					  enum promise_key key,
					  const struct device *d);

/** governor_leaf() - number of @leaf in the plant, CONTROL_NONE: it is not in it */
uint32_t governor_leaf(const struct governor *g, const struct device *leaf);

/** governor_save() - keep what was learnt about costs in /run/sutro */
int governor_save(const struct governor *g);

#endif
