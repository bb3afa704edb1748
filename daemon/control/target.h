/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TARGET_H
#define SUTRO_TARGET_H

#include "control/law.h"
#include "host/histogram.h"

/** enum target_source - where the latencies of a target are measured */
enum target_source {
	TARGET_AT_LEAVES, /* sum of the reads on the leaves, by their elevators */
	TARGET_AT_VOLUME,
};

/**
 * struct target - a goal for a percentile of a unit's latencies, and its control
 * @goal_us: the promised latency
 * @percentile: of all requests, 0..1
 * @op: which requests
 * @source: of the last tick
 * @total: all requests so far
 * @counts: requests by latency over about the last second, longer if they are few
 * @latency_us: the percentile of these, 0: no requests
 * @wanted: device time per second that it needs on all its leaves together
 * @most: upper bound of @wanted
 * @is_enforced: the elevators of all leaves enforce it, and nothing is searched
 * @is_unreachable: they report that it is missed without requests of others, too
 * @missed_s: net time that it was missed with all that may be given
 */
struct target {
	double goal_us;
	double percentile;
	enum latency_op op;
	enum target_source source;
	struct histogram total;
	struct histogram counts;
	double latency_us;
	double wanted;
	double most;
	bool is_enforced;
	bool is_unreachable;
	double missed_s;
	enum control_state state;
};

/** target_init() - @n_leaves: under the device */
void target_init(struct target *t, uint64_t goal_us, double percentile,
		 enum latency_op op, size_t n_leaves);

/** target_inherit() - keep counts and share of @old; another percentile or number of leaves holds */
void target_inherit(struct target *t, const struct target *old);

/**
 * target_limit() - set the bound of @wanted, so that no leaf is needed for more than CONTROL_TIME_MOST
 * @alone: device time per second of such requests on all leaves together, if the unit has all of the
 *	leaf on which it uses most
 */
void target_limit(struct target *t, double alone);

/**
 * target_tick() - one step
 * @new: requests of the unit since the tick before
 * @waits: it has requests that wait
 * @time: device time it used per second on all leaves together
 * @obstacle: why the target cannot be kept: CONTROL_UNWEIGHTED, a leaf counts no
 *	device time; CONTROL_UNOBSERVED, @new is not known; CONTROL_UNKNOWN: nothing
 */
void target_tick(struct target *t, const struct histogram *new, bool waits,
		 double time, enum control_state obstacle, double dt_s);

#endif
