/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TARGET_H
#define SUTRO_TARGET_H

#include "control/law.h"
#include "host/sample.h"

/**
 * struct target - a goal for the P95 of a unit's reads, and what is done for it
 * @goal_us: what is promised
 * @counts: reads by latency over about the last second
 * @p95_us: of these, 0: no reads
 * @wanted: device time per second on all its leaves together that it is to have
 * @most: and the most it may have
 * @missed_s: net time that it was missed with all that may be given
 */
struct target {
	double goal_us;
	double counts[LATENCY_BUCKETS];
	double p95_us;
	double wanted;
	double most;
	double missed_s;
	enum control_state state;
};

/** target_init() - @n_leaves: under the device */
void target_init(struct target *t, uint64_t goal_us, size_t n_leaves);

/**
 * target_tick() - one step
 * @new: reads of the unit on all leaves
 * @waits: it has requests that wait
 * @time: device time it used per second on all leaves together
 * @measured: every leaf counts latencies
 */
void target_tick(struct target *t, const struct latencies *new, bool waits,
		 double time, bool measured, double dt_s);

#endif
