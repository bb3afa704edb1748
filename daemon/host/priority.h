/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PRIORITY_H
#define SUTRO_PRIORITY_H

#include <systemd/sd-event.h>

/*
 * Priorities of the loop. Setpoints are written before anything else is done, and calls of others
 * come last but one: no number of calls delays what weights follow from. Only cgroups that became
 * dirty otherwise wait until nothing else is ready, because their changes come in crowds; they
 * wait 50 ms at most. Events of delegated cgroups are served like calls.
 */
#define MACHINE_PRIORITY_SETPOINTS SD_EVENT_PRIORITY_IMPORTANT
#define MACHINE_PRIORITY_CALLS 50
#define MACHINE_PRIORITY_IDLE SD_EVENT_PRIORITY_IDLE

#endif
