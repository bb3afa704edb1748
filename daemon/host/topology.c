/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Block devices and their dependencies; discover.c fills a topology from sysfs. */

#include "host/topology.h"

static const char *const kind_names[] = {
	[DEVICE_UNKNOWN] = "unknown",	  [DEVICE_DISK] = "disk",
	[DEVICE_PARTITION] = "partition", [DEVICE_LINEAR] = "linear",
	[DEVICE_STRIPED] = "striped",	  [DEVICE_CRYPT] = "crypt",
	[DEVICE_MIRROR] = "mirror",	  [DEVICE_RAID0] = "raid0",
	[DEVICE_RAID1] = "raid1",	  [DEVICE_RAID10] = "raid10",
	[DEVICE_RAID4] = "raid4",	  [DEVICE_RAID5] = "raid5",
	[DEVICE_RAID6] = "raid6",	  [DEVICE_THIN] = "thin",
	[DEVICE_THIN_POOL] = "thin-pool", [DEVICE_CACHE] = "cache",
	[DEVICE_SNAPSHOT] = "snapshot",	  [DEVICE_MULTIPATH] = "multipath",
	[DEVICE_LOOP] = "loop",		  [DEVICE_BCACHE] = "bcache",
};

const char *device_kind_name(enum device_kind kind)
{
	return kind_names[kind];
}

struct device *device_free(struct device *d)
{
	if (!d)
		return NULL;
	free(d->name);
	free(d->node);
	free(d->label);
	free(d->slaves);
	free(d->leaves);
	strv_free(d->aliases);
	free(d->scheduler);
	free(d);
	return NULL;
}

struct topology *topology_free(struct topology *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->n_devices; i++)
		device_free(t->devices[i]);
	free(t->devices);
	free(t);
	return NULL;
}

struct device *topology_by_name(const struct topology *t, const char *name)
{
	for (size_t i = 0; i < t->n_devices; i++)
		if (streq(t->devices[i]->name, name))
			return t->devices[i];
	return NULL;
}

struct device *topology_by_devno(const struct topology *t, dev_t devno)
{
	for (size_t i = 0; devno && i < t->n_devices; i++)
		if (t->devices[i]->devno == devno)
			return t->devices[i];
	return NULL;
}

uint64_t device_id(const struct device *d)
{
	return d->devno ?: 1ULL << 63 | d->diskseq;
}

bool device_is_same(const struct device *d, uint64_t diskseq, uint64_t queue)
{
	return d->diskseq == diskseq || (queue && d->queue == queue);
}

bool device_stands_on(const struct device *d, const struct device *leaf)
{
	for (size_t i = 0; i < d->n_leaves; i++)
		if (d->leaves[i] == leaf)
			return true;
	return false;
}

const struct device *device_hidden_leaf(const struct device *d)
{
	for (size_t i = 0; i < d->n_leaves; i++)
		if (!d->leaves[i]->devno)
			return d->leaves[i];
	return NULL;
}

const char *device_scheduler(const struct device *leaf)
{
	return leaf->scheduler ?: "unknown";
}

const char *device_label(const struct device *d)
{
	return d->aliases ? d->aliases[0] : d->node;
}

uint64_t device_walk(void)
{
	static uint64_t walks;

	return ++walks;
}

bool device_enter(const struct device *d, uint64_t walk)
{
	bool is_new = d->walk != walk;

	((struct device *)d)->walk = walk;
	return is_new;
}

static bool leads_to(const struct device *from, const struct device *d,
		     uint64_t walk)
{
	if (from == d)
		return true;
	if (!device_enter(from, walk))
		return false;
	for (size_t i = 0; i < from->n_slaves; i++)
		if (leads_to(from->slaves[i], d, walk))
			return true;
	return false;
}

bool device_is_above(const struct device *top, const struct device *d)
{
	return leads_to(top, d, device_walk());
}

bool device_is_part_of(const struct device *d, const struct device *leaf)
{
	return d == leaf || (d->kind == DEVICE_PARTITION && d->n_slaves == 1 &&
			     d->slaves[0] == leaf);
}

bool device_is_lowest(const struct device *d)
{
	return d->leaf && d->kind != DEVICE_LOOP;
}
