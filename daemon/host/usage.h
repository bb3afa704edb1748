/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_HOST_USAGE_H
#define SUTRO_HOST_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct usage - use of one device by a cgroup and those below it
 * @time_ns: device time; 0 where the scheduler does not measure it
 * @wait_ns: sum over requests of the time they waited in the scheduler, counted
 *	when they are sent; 0 where the scheduler does not measure it
 * @pending_ns: sum over requests of the time from submission to completion, counted
 *	when they complete; 0 where the scheduler does not measure it
 * @busy_ns: time in which a cgroup had a request, waiting or at the device, added up over
 *	cgroups; 0 where the scheduler does not measure it
 * @backlog_ns: time in which a cgroup had a request waiting in the scheduler, added up over
 *	cgroups; 0 where the scheduler does not measure it
 * @queued: requests that waited when the sample was taken
 * @in_flight: requests that were at the device then
 * @active: it used the device, or waits for it
 * @is_timed: the scheduler of the device counts its late reads, for a latency target
 * @is_unreachable: the target is missed by reads that met no others, too
 */
struct usage {
	uint64_t time_ns;
	uint64_t rbytes;
	uint64_t wbytes;
	uint64_t rios;
	uint64_t wios;
	uint64_t wait_ns;
	uint64_t pending_ns;
	uint64_t busy_ns;
	uint64_t backlog_ns;
	uint64_t queued;
	uint64_t in_flight;
	bool active;
	bool is_timed;
	bool is_unreachable;
};

#endif
