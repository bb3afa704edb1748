/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_MANAGER_H
#define SUTRO_MANAGER_H

#include <systemd/sd-bus.h>
#include <systemd/sd-device.h>
#include <systemd/sd-event.h>

#include "actuate.h"
#include "cgroup.h"
#include "conf.h"
#include "leaf.h"
#include "sample.h"
#include "unit.h"

/**
 * struct manager - the daemon
 *
 * What is known:
 * @topology: block devices; replaced when they change
 * @tree: cgroups, each with what is said about it
 * @units: questions to systemd
 * @sampler: when the cgroups were sampled
 *
 * What is to be done:
 * @actuator: writes weights
 * @flush: armed while a cgroup is dirty
 * @rescan: armed while the topology is out of date
 * @reconcile: the periodic comparison of everything
 * @sampling: armed while somebody asks for shares, until @sample_until_usec
 * @schedulers: watches on queue/scheduler of the leaves
 */
struct manager {
	struct roots roots;
	bool dry_run;
	struct conf *conf;
	sd_event *event;
	sd_bus *bus;
	sd_bus_slot *vtable;
	sd_device_monitor *monitor;

	struct topology *topology;
	struct cgroup_tree *tree;
	struct units *units;
	struct sampler sampler;

	struct actuator actuator;
	sd_event_source *flush;
	sd_event_source *rescan;
	sd_event_source *reconcile;
	sd_event_source *sampling;
	sd_event_source **schedulers;
	size_t n_schedulers;
	uint64_t sample_until_usec;
	struct bus_waiter *waiters;
	bool ready;
};

/**
 * manager_new() - read configuration and topology
 * @root: "" for this machine, or the directory of a fake one
 */
int manager_new(const char *root, bool dry_run, struct manager **ret);
struct manager *manager_free(struct manager *m);
DEFINE_CLEANUP(struct manager *, manager_free);

/** manager_run() - serve until SIGTERM, then restore the weights */
int manager_run(struct manager *m);

/**
 * manager_reload() - read configuration, topology and all units again
 *
 * A configuration with mistakes is logged, and the last good one stays.
 */
int manager_reload(struct manager *m);

/** manager_renew_topology() - look at all block devices again, resolve all paths */
int manager_renew_topology(struct manager *m);

/** manager_mark_all() - compare all files with what is asked, soon */
void manager_mark_all(struct manager *m);

/** manager_want_samples() - keep sampling for a while */
int manager_want_samples(struct manager *m);

/** manager_find_unit() - by unit name or cgroup path, NULL: unknown */
struct cgroup *manager_find_unit(const struct manager *m, const char *name);

/** manager_leaf_switched() - the scheduler of a leaf changed */
void manager_leaf_switched(struct manager *m, const struct device *leaf);

#endif
