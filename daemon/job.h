/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_JOB_H
#define SUTRO_JOB_H

#include <systemd/sd-bus.h>

/** enum job - the job that systemd has for this service */
enum job {
	JOB_NONE, /* no known job: the request failed, or this is no service */
	JOB_RESTART,
	JOB_STOP,
};

/**
 * job_kind() - the job of systemd for this service
 * @bus: the system bus
 */
enum job job_kind(sd_bus *bus);

#endif
