/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_KIND_H
#define SUTRO_KIND_H

#include "host/topology.h"

/** raid_kind() - the kind of a RAID device by its level, "raid1" or "raid5_ls" */
enum device_kind raid_kind(const char *level);

/**
 * dm_kind() - the kind of a device-mapper device
 * @table: type and first word of the first line of its table ("raid raid5_ls"),
 *	NULL when it is not known
 *
 * Reading a table needs CAP_SYS_ADMIN, which the daemon does not have: a udev rule
 * stores the words. Without them the kind follows from UUID, slaves and queue limits,
 * and some kinds remain unknown.
 */
enum device_kind dm_kind(const char *table, const char *uuid,
			 struct device *const *slaves, size_t n_slaves,
			 bool stripe_limits);

#endif
