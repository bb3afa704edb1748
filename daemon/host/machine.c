/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The machine: the clock of its event loop. */

#include "host/machine.h"

uint64_t machine_now_usec(const struct machine *m)
{
	uint64_t usec = 0;

	sd_event_now(m->event, CLOCK_MONOTONIC, &usec);
	return usec;
}
