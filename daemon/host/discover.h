/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_DISCOVER_H
#define SUTRO_DISCOVER_H

#include "host/roots.h"
#include "host/topology.h"

/** topology_new() - read the block devices of the machine from sysfs */
int topology_new(const struct roots *roots, struct topology **ret);

/** device_is_current() - is it still this disk that bears the name in sysfs? */
bool device_is_current(const struct device *d, const struct roots *roots);

/** device_is_readable() - has sysfs what a topology needs of the device @name? */
bool device_is_readable(const char *name, const struct roots *roots);

/** device_read_scheduler() - read queue/scheduler of a leaf again */
int device_read_scheduler(struct device *leaf, const struct roots *roots);

/**
 * dm_kind() - the kind of a device-mapper device
 * @table: type and first word of the first line of its table ("raid raid5_ls"),
 *	NULL when it is not known
 *
 * Reading a table takes CAP_SYS_ADMIN, which the daemon does without: a udev rule
 * stores the words. Where that did not happen, uuid, slaves and queue limits tell
 * most kinds apart.
 */
enum device_kind dm_kind(const char *table, const char *uuid,
			 struct device *const *slaves, size_t n_slaves,
			 bool stripe_limits);

#endif
