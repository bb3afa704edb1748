/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kind of an md or device-mapper device, from its RAID level, table, UUID and slaves. */

#include "host/kind.h"

enum device_kind raid_kind(const char *level)
{
	static const struct {
		const char *prefix;
		enum device_kind kind;
	} levels[] = {
		/* raid10 stands before raid1, because these are prefixes (raid5_ls, raid6_zr). */
		{ "raid10", DEVICE_RAID10 }, { "raid0", DEVICE_RAID0 },
		{ "raid1", DEVICE_RAID1 },   { "raid4", DEVICE_RAID4 },
		{ "raid5", DEVICE_RAID5 },   { "raid6", DEVICE_RAID6 },
		{ "linear", DEVICE_LINEAR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (startswith(level, levels[i].prefix))
			return levels[i].kind;
	return DEVICE_UNKNOWN;
}

static enum device_kind kind_by_table(const char *table)
{
	static const struct {
		const char *target;
		enum device_kind kind;
	} targets[] = {
		{ "linear", DEVICE_LINEAR },
		{ "striped", DEVICE_STRIPED },
		{ "crypt", DEVICE_CRYPT },
		{ "mirror", DEVICE_MIRROR },
		{ "thin", DEVICE_THIN },
		{ "thin-pool", DEVICE_THIN_POOL },
		{ "cache", DEVICE_CACHE },
		{ "writecache", DEVICE_CACHE },
		{ "snapshot", DEVICE_SNAPSHOT },
		{ "multipath", DEVICE_MULTIPATH },
		{ "snapshot-origin", DEVICE_SNAPSHOT },
		{ "snapshot-merge", DEVICE_SNAPSHOT },
	};
	size_t n = strcspn(table, " ");

	if (n == 4 && startswith(table, "raid "))
		return raid_kind(table + 5);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		if (strlen(targets[i].target) == n &&
		    strncmp(table, targets[i].target, n) == 0)
			return targets[i].kind;
	return DEVICE_UNKNOWN;
}

static bool any_slave_label(struct device *const *slaves, size_t n,
			    const char *part)
{
	for (size_t i = 0; i < n; i++)
		if (slaves[i]->label && strstr(slaves[i]->label, part))
			return true;
	return false;
}

enum device_kind dm_kind(const char *table, const char *uuid,
			 struct device *const *slaves, size_t n_slaves,
			 bool stripe_limits)
{
	if (table && *table)
		return kind_by_table(table);
	if (startswith(uuid, "CRYPT-") && !startswith(uuid, "CRYPT-VERITY"))
		return DEVICE_CRYPT;
	if (startswith(uuid, "mpath-"))
		return DEVICE_MULTIPATH;
	if (startswith(uuid, "LVM-")) {
		/* lvm2 marks layers by the end of the uuid, and internal
		 * volumes by their names.
		 */
		if (endswith(uuid, "-tpool"))
			return DEVICE_THIN_POOL;
		if (any_slave_label(slaves, n_slaves, "-tpool"))
			return DEVICE_THIN;
		if (any_slave_label(slaves, n_slaves, "_mimage_"))
			return DEVICE_MIRROR;
		if (any_slave_label(slaves, n_slaves, "_corig"))
			return DEVICE_CACHE;
		if (any_slave_label(slaves, n_slaves, "-cow") ||
		    any_slave_label(slaves, n_slaves, "-real"))
			return DEVICE_SNAPSHOT;
		if (any_slave_label(slaves, n_slaves, "_rimage_"))
			return DEVICE_UNKNOWN; /* image of a RAID volume of unknown level */
	}
	if (n_slaves == 0)
		return DEVICE_UNKNOWN;
	return n_slaves > 1 && stripe_limits ? DEVICE_STRIPED : DEVICE_LINEAR;
}
