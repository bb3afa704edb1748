/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_RESYNC_GROUP_H
#define SUTRO_RESYNC_GROUP_H

#include "host/machine.h"

/**
 * resyncs_follow() - find the resyncs that run, and put their threads where they belong
 * @wanted: into the cgroup of RESYNC_UNIT; else back into the root cgroup
 *
 * Return: 0, also where a thread cannot be moved; -ENOMEM.
 */
int resyncs_follow(struct machine *machine, bool wanted);

#endif
