/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CONTEXT_H
#define SUTRO_CONTEXT_H

#include "control/actuate.h"
#include "control/governed.h"
#include "host/machine.h"

/**
 * struct control_context - input and callbacks of the governor
 * @machine: devices and cgroups
 * @actuator: has the backend of each leaf
 * @setpoint_changed: the files of @c are to be compared with its policy, soon
 * @state_changed: of a floor or target
 */
struct control_context {
	const struct machine *machine;
	const struct actuator *actuator;
	void (*setpoint_changed)(struct cgroup *c, void *userdata);
	void (*state_changed)(const struct governed *f, void *userdata);
	void *userdata;
};

#endif
