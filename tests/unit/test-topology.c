/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kind of a device-mapper device by the words of its table, which udev has. */

#include "fake.h"
#include "host/kind.h"

int main(void)
{
	static const struct {
		const char *table;
		enum device_kind kind;
	} tables[] = {
		{ "linear 8:16", DEVICE_LINEAR },
		{ "striped 2", DEVICE_STRIPED },
		{ "crypt aes-xts-plain64", DEVICE_CRYPT },
		{ "raid raid1", DEVICE_RAID1 },
		{ "raid raid10", DEVICE_RAID10 },
		{ "raid raid5_ls", DEVICE_RAID5 },
		{ "raid raid6_zr", DEVICE_RAID6 },
		{ "raid raid4", DEVICE_RAID4 },
		{ "raid raid0_meta", DEVICE_RAID0 },
		{ "mirror core", DEVICE_MIRROR },
		{ "thin 254:3", DEVICE_THIN },
		{ "thin-pool 254:1", DEVICE_THIN_POOL },
		{ "cache 254:1", DEVICE_CACHE },
		{ "writecache s", DEVICE_CACHE },
		{ "snapshot 254:1", DEVICE_SNAPSHOT },
		{ "snapshot-origin 254:1", DEVICE_SNAPSHOT },
		{ "multipath 0", DEVICE_MULTIPATH },
		{ "zero", DEVICE_UNKNOWN },
		{ "linear", DEVICE_LINEAR },
		{ "lin", DEVICE_UNKNOWN },
		{ "raid", DEVICE_UNKNOWN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		check(dm_kind(tables[i].table, "CRYPT-x", NULL, 0, false) ==
		      tables[i].kind);
	check(dm_kind("", "CRYPT-x", NULL, 0, false) == DEVICE_CRYPT);
	return 0;
}
