/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_MACHINE_H
#define SUTRO_MACHINE_H

#include <systemd/sd-event.h>

#include "host/cgroup.h"
#include "host/latency.h"
#include "host/resync.h"
#include "host/roots.h"
#include "host/topology.h"

/*
 * Priorities of the loop. Setpoints are written before anything else is done, and calls of others
 * come last but one: no number of calls delays what weights follow from. Only cgroups that became
 * dirty otherwise wait until nothing else is ready, because their changes come in crowds; they
 * wait FLUSH_DELAY_USEC at most.
 */
#define MACHINE_PRIORITY_SETPOINTS SD_EVENT_PRIORITY_IMPORTANT
#define MACHINE_PRIORITY_CALLS 50
#define MACHINE_PRIORITY_IDLE SD_EVENT_PRIORITY_IDLE

/**
 * struct machine - the machine that the daemon serves
 * @roots: where its files are
 * @dry_run: nothing is written to it
 * @event: the loop in which its events arrive
 * @topology: block devices; replaced when they change
 * @tree: cgroups, each with its policy
 * @resyncs: of RAID arrays, those that run
 * @latency: latencies at devices; NULL on a fake machine
 */
struct machine {
	struct roots roots;
	bool dry_run;
	sd_event *event;
	struct topology *topology;
	struct cgroup_tree *tree;
	struct resyncs resyncs;
	struct latency *latency;
};

/** machine_now_usec() - the monotonic clock when the loop began to serve its events */
uint64_t machine_now_usec(const struct machine *m);

#endif
