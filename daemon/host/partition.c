/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The use of a partition by a cgroup.
 *
 * The kernel keeps no counter for a cgroup on a partition. A cgroup is counted on the
 * disk, a partition for all cgroups. The smaller of the two is
 *
 *	the cgroup's own use	if it uses no other partition of the disk,
 *				or no other cgroup uses this one;
 *	at most what others	if it uses another partition, and others use this one.
 *	used here too much
 *
 * Volumes that stand on another partition have counters of their own: a cgroup's use of
 * them is subtracted from its use of the disk first.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/partition.h"
#include "host/sysblock.h"

const struct device *partition_disk(const struct device *d)
{
	return d->kind == DEVICE_PARTITION && d->n_slaves == 1 ? d->slaves[0]
							       : NULL;
}

static bool disk_counts(const struct roots *roots, const struct device *disk)
{
	uint64_t iostats;

	return queue_number(roots, disk, "iostats", &iostats) < 0 || iostats;
}

/* Requests that were merged are one in io.sutro.stat, and several in io.stat. */
static bool read_counters(const struct roots *roots, const struct device *d,
			  struct usage *ret)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	uint64_t rios, rmerged, rsectors, wios, wmerged, wsectors;
	const struct device *disk = partition_disk(d);
	bool merged = !disk->leaf || !disk->scheduler ||
		      !streq(disk->scheduler, "sutro");

	path = asprintf_or_null("%s/class/block/%s/stat", roots->sysfs,
				d->name);
	if (!path || read_file_at(AT_FDCWD, path, &text) < 0 ||
	    sscanf(text,
		   "%" SCNu64 " %" SCNu64 " %" SCNu64 " %*u %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &rios, &rmerged, &rsectors, &wios, &wmerged, &wsectors) != 6)
		return false;
	*ret = (struct usage){ .rbytes = rsectors * 512,
			       .wbytes = wsectors * 512,
			       .rios = rios + (merged ? rmerged : 0),
			       .wios = wios + (merged ? wmerged : 0) };
	return true;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

bool partition_take(struct partition *p, const struct roots *roots,
		    const struct device *d, struct usage *ret)
{
	struct usage now, before = p->total;
	bool was_known = p->is_known;

	*ret = (struct usage){};
	p->is_known = disk_counts(roots, partition_disk(d)) &&
		      read_counters(roots, d, &now);
	if (!p->is_known)
		return false;
	p->total = now;
	if (!was_known)
		return false;
	*ret = (struct usage){ .rbytes = since(now.rbytes, before.rbytes),
			       .wbytes = since(now.wbytes, before.wbytes),
			       .rios = since(now.rios, before.rios),
			       .wios = since(now.wios, before.wios) };
	return true;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct usage partition_use(const struct usage *disk, const struct usage *all)
{
	struct usage use = *disk;

	use.rbytes = smaller(disk->rbytes, all->rbytes);
	use.wbytes = smaller(disk->wbytes, all->wbytes);
	use.rios = smaller(disk->rios, all->rios);
	use.wios = smaller(disk->wios, all->wios);
	return use;
}
