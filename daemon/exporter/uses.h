/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_USES_H
#define SUTRO_EXPORTER_USES_H

#include "exporter/folders.h"
#include "exporter/leaves.h"
#include "host/counters.h"

/* A counter that the kernel does not count. */
#define USE_UNKNOWN UINT64_MAX

/* The kernel counts reads in half octaves of latency from 2^14 ns; whole octaves are enough for a
 * percentile over time, and half the series. Bound @i is 2^(USE_MIN_SHIFT + i) ns.
 */
#define USE_MIN_SHIFT 15U
#define USE_BOUNDS ((LATENCY_BUCKETS - 2) / 2)

/**
 * struct use - the use of a leaf by a cgroup, without those below it
 * @counts: by enum counter, USE_UNKNOWN where the kernel does not count
 * @has_reads: @reads has the reads within each bound, and all reads at its end
 * @by_elevator: counted by sutro; else by io.stat
 * @weight: 0: there is none
 */
struct use {
	struct folder *folder;
	const struct leaf *leaf;
	uint64_t counts[COUNTERS];
	bool by_elevator;
	bool has_reads;
	uint64_t reads[USE_BOUNDS + 1];
	uint64_t weight;
};

/**
 * struct uses - the use of leaves by cgroups
 * @has_others: leaves with another scheduler are in use, so io.stat was read; without it
 *	@has_file_below of the folders is not known
 */
struct uses {
	struct use *items;
	size_t n;
	bool has_others;
};

/**
 * uses_read() - the counters of cgroups since the leaf was switched to the scheduler, or, of leaves
 * with another one, since the cgroup was made; no weights
 * @hierarchy: directory of the hierarchy
 * @folders: @used and @is_used of each @first are set
 *
 * Cgroups that are removed meanwhile are left out. Return: 0, or an error is_shortage().
 */
int uses_read(int hierarchy, const struct folders *folders, struct leaves *l,
	      struct uses *ret);
void uses_done(struct uses *u);

/** uses_filter() - drop those of cgroups that are not kept */
void uses_filter(struct uses *u);

/** uses_read_weights() - the weights in force on leaves with the scheduler sutro */
int uses_read_weights(int hierarchy, struct uses *u);

/**
 * uses_merge() - cgroups with one shown path count as one, with the weight of the first that has one
 *
 * Comes after uses_read_weights(): the first may have none, as one that has just been removed.
 */
void uses_merge(struct uses *u);

#endif
