/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LATENCY_H
#define SUTRO_LATENCY_H

#include "host/histogram.h"

/**
 * struct latency_series - latencies of a pair at the device itself
 * @total: since the pair is measured
 * @recent: between the last two calls of latency_sample()
 */
struct latency_series {
	struct histogram total[LATENCY_OPS];
	struct histogram recent[LATENCY_OPS];
};

/** struct latency - the BPF programs of latency.bpf.c and their counts */
struct latency;

/**
 * latency_open() - load the programs, and give up the capabilities that this needs
 *
 * To be called before any input is read. It succeeds where the programs cannot be
 * loaded, too: see latency_error().
 *
 * Return: 0 or -ENOMEM.
 */
int latency_open(struct latency **ret);
struct latency *latency_close(struct latency *l);

/** latency_error() - why nothing is measured, -errno; 0: it is. @l may be NULL */
int latency_error(const struct latency *l);

/**
 * latency_watch() - measure these pairs and no others
 *
 * Counts of a pair that was measured before are kept. Without pairs the programs are
 * detached.
 *
 * Return: 0 or -errno; latency_error() has a permanent one.
 */
int latency_watch(struct latency *l, const struct latency_pair *pairs,
		  size_t n);

/** latency_sample() - read what was counted since the last call */
int latency_sample(struct latency *l);

/** latency_find() - the counts of a pair, NULL: it is not measured */
const struct latency_series *latency_find(const struct latency *l,
					  uint64_t cgroup, dev_t devno);

/** latency_pair() - the pair of a cgroup's inode number and a device */
struct latency_pair latency_pair(uint64_t cgroup, dev_t devno);

#endif
