// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: room that a group alone leaves for one that comes for the first time.
 *
 * The first request of a job that begins waits for all that the device has.  A group that was alone
 * for SUTRO_ALONE_WINDOWS windows has no more there than its last window completed: a device that
 * always has work for a window has no pause.  Costs are not known with one group, so both are
 * measured in the same estimates, whose error cancels out.  On a device with a long latency it has
 * what completes in eight times that: some channels have a queue while others have none, and with
 * four times, large reads on 64 channels of 20 ms lose a tenth (tests/sim/test_devices.py).
 *
 *	b writes 1 MiB with 32 in flight, 7.4 ms each: a read of 4 KiB would wait for 237 ms.  In a
 *	window of 64 ms nine writes complete, so b has nine at the device, and as many MB/s.  The
 *	estimate may be 1 ms: then 9 ms complete in a window, and 9 ms may be in flight.
 *
 * Not on rotational devices, which serve the nearest of many first: there streams have half a slice
 * at the device (sutro-select.c).
 */
#include <linux/math64.h>

#include "sutro-core.h"

/* A group has as much at the device as completes in a window when it was alone for this many. */
#define SUTRO_ALONE_WINDOWS 8

/**
 * sutro_alone_completed - requests have completed: how much may a group alone have at the device?
 * @core:	the leaf, without these requests
 * @estimate_ns: their estimated device time
 * @now_ns:	the time
 */
void sutro_alone_completed(struct sutro_core *core, u64 estimate_ns, u64 now_ns)
{
	struct sutro_alone *window = &core->alone_window;
	s64 length_ns = now_ns - window->begin_ns;
	u64 most_us;

	if (!core->in_flight || core->nr_active > 1 ||
	    core->tunables.rotational) {
		*window = (struct sutro_alone){ .begin_ns = now_ns };
		return;
	}
	window->done_ns += estimate_ns;
	if (length_ns < (s64)SUTRO_ALONE_NS)
		return;
	if (window->nr < SUTRO_ALONE_WINDOWS)
		window->nr++;
	if (window->nr == SUTRO_ALONE_WINDOWS) {
		/* Estimates may be far too high: in ns, the product could overflow. */
		most_us = div_u64(sutro_alone_ns(core->tunables.latency_ns),
				  1000);
		window->most_ns = div64_u64(window->done_ns * most_us,
					    div_u64(length_ns, 1000));
	}
	window->begin_ns = now_ns;
	window->done_ns = 0;
}
