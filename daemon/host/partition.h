/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PARTITION_H
#define SUTRO_PARTITION_H

#include "host/sample.h"

/**
 * struct partition - counters of a partition, which count the requests of all cgroups
 * @total: as read last
 * @is_known: @total was read
 */
struct partition {
	struct usage total;
	bool is_known;
};

/** partition_disk() - the device whose queue a partition shares, NULL: @d is none */
const struct device *partition_disk(const struct device *d);

/**
 * partition_take() - read the counters of @d
 * @ret: difference from the last reading
 *
 * Return: are there two readings, and does the disk count? If not, @ret is not set.
 */
bool partition_take(struct partition *p, const struct roots *roots,
		    const struct device *d, struct usage *ret);

/**
 * partition_use() - part of a cgroup's use of the disk that the partition accounts for
 * @disk: of the cgroup on the disk, without its known use of other partitions
 * @all: of all cgroups on the partition
 *
 * The smaller of both; partition.c has the cases in which that is exact.
 */
struct usage partition_use(const struct usage *disk, const struct usage *all);

#endif
