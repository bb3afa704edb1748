/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_MACHINE_H
#define SUTRO_MACHINE_H

#include <systemd/sd-event.h>

#include "host/cgroup.h"
#include "host/latency.h"
#include "host/lookup.h"
#include "host/priority.h"
#include "host/resync.h"
#include "host/roots.h"
#include "host/topology.h"

/**
 * struct machine - the machine that the daemon serves
 * @roots: where its files are
 * @dry_run: nothing is written to it
 * @max_sectors_kb: [Leaves] MaxSectorsKB=, of flash leaves in use; 0: they keep theirs
 * @nr_requests: [Leaves] NrRequests=, of leaves in use; 0: they keep theirs
 * @event: the loop in which its events arrive
 * @topology: block devices; replaced when they change
 * @tree: cgroups, each with its policy
 * @lookups: where paths of settings lead
 * @resyncs: of RAID arrays, those that run
 * @latency: latencies at devices; NULL on a fake machine
 */
struct machine {
	struct roots roots;
	bool dry_run;
	unsigned int max_sectors_kb;
	unsigned int nr_requests;
	sd_event *event;
	struct topology *topology;
	struct cgroup_tree *tree;
	struct lookups *lookups;
	struct resyncs resyncs;
	struct latency *latency;
};

/** machine_now_usec() - the monotonic clock when the loop began to serve its events */
uint64_t machine_now_usec(const struct machine *m);

#endif
