/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_DISCOVER_H
#define SUTRO_DISCOVER_H

#include "host/roots.h"
#include "host/topology.h"

/**
 * topology_new() - read the block devices of the machine from sysfs
 * @before: the last topology, which has the scheduler of a disk that hangs; NULL: there is none
 */
int topology_new(const struct roots *roots, const struct topology *before,
		 struct topology **ret);

/** device_is_current() - is it still this disk that bears the name in sysfs? */
bool device_is_current(const struct device *d, const struct roots *roots);

/** device_is_readable() - does sysfs have the files of @name that a topology needs? */
bool device_is_readable(const char *name, const struct roots *roots);

/** device_read_scheduler() - read queue/scheduler of a leaf again; -ETIMEDOUT: see queue_read() */
int device_read_scheduler(struct device *leaf, const struct roots *roots);

#endif
