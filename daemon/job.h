/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_JOB_H
#define SUTRO_JOB_H

#include <systemd/sd-bus.h>

/**
 * job_is_restart() - does systemd stop this service only to start it again?
 * @bus: the system bus
 *
 * Return: 1: it does; 0: it does not, or this is no service; -errno: unknown.
 */
int job_is_restart(sd_bus *bus);

#endif
