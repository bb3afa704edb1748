/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_GOVERNOR_H
#define SUTRO_GOVERNOR_H

#include "control/context.h"
#include "control/plant.h"
#include "host/sample.h"

struct leaf_now;

/**
 * struct governor - keeps floors: samples, runs the control law, gives setpoints
 * @leaves: of the plant, as they are in this step
 * @has_setpoints: of each node of the plant, whether it has had one since the last step
 * @has_begun: there is a plant; before, the settings of some units are not known
 * @stale: cgroups, policies or devices changed, a new plant is due
 * @ticks: since the daemon was started
 * @step_usec: CPU time of the last one
 * @latency_complained: it was logged that latencies are not measured at volumes
 * @is_unsaved: the last attempt to save costs failed, which was logged
 * @has_failed: the last step failed, which was logged
 */
struct governor {
	struct control_context context;
	sd_event_source *timer;
	struct sampler sampler;
	bool has_begun;
	bool stale;
	struct plant plant;
	struct leaf_now *leaves;
	bool *has_setpoints;
	unsigned int ticks;
	uint64_t step_usec;
	bool latency_complained;
	bool has_failed;
	bool is_unsaved;
};

int governor_start(struct governor *g, const struct control_context *context);
void governor_stop(struct governor *g);

/**
 * governor_begin() - the settings of all units are known: make the plant, unless it is there
 *
 * From now on, the lines that floors need stay as a predecessor left them until there are samples.
 */
int governor_begin(struct governor *g);

/** governor_renew() - cgroups, policies or devices changed */
void governor_renew(struct governor *g);

/**
 * governor_cgroup_added() - @c was made
 *
 * Counters of one below a cgroup that floors depend on count for that one.
 */
void governor_cgroup_added(struct governor *g, struct cgroup *c);

/** governor_look_at() - the nominal weights of @c are others than before */
void governor_look_at(struct governor *g, const struct cgroup *c);

/** governor_cgroup_gone() - @c is about to be freed */
void governor_cgroup_gone(struct governor *g, const struct cgroup *c);

/** governor_save() - keep what was learnt about costs over a restart; a failure is logged */
int governor_save(struct governor *g);

#endif
