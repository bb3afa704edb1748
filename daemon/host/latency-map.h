/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LATENCY_MAP_H
#define SUTRO_LATENCY_MAP_H

/*
 * Keys and values of the BPF maps, for latency.bpf.c and latency.c.
 *
 * A latency is counted in one of 209 buckets, eight of equal width for each power of
 * two of nanoseconds from 2^10 (1 us) to 2^36 (69 s):
 *
 *	bucket	0	1	2	...	8	9	...	208
 *	from ns	0	1024	1152	...	1920	2048	...	1.875 * 2^35
 *
 * The upper end of a bucket is at most 1.125 times its lower end.
 */

#include <linux/types.h>

#define HISTOGRAM_MIN_SHIFT 10
#define HISTOGRAM_MAX_SHIFT 36
#define HISTOGRAM_STEPS_SHIFT 3
#define HISTOGRAM_STEPS (1 << HISTOGRAM_STEPS_SHIFT)
#define HISTOGRAM_BUCKETS \
	(1 + HISTOGRAM_STEPS * (HISTOGRAM_MAX_SHIFT - HISTOGRAM_MIN_SHIFT))

/* Pairs of a cgroup and a device that are measured at a time. */
#define LATENCY_PAIRS_MAX 1024

/** enum latency_op - requests whose latencies are counted apart */
enum latency_op {
	LATENCY_READ,
	LATENCY_WRITE,
	LATENCY_FSYNC, /* flushes, and writes that wait for the medium */
	LATENCY_OPS,
};

/**
 * struct latency_pair - key: requests of this cgroup and those below it on this device
 * @cgroup: inode number of its directory
 * @dev: as the kernel has it, major << 20 | minor
 */
struct latency_pair {
	__u64 cgroup;
	__u32 dev;
	__u32 unused;
};

/** struct latency_counts - value: requests since the pair was added, by latency */
struct latency_counts {
	__u32 count[LATENCY_OPS][HISTOGRAM_BUCKETS];
};

/** histogram_bucket() - in which bucket @ns is counted */
static inline __u32 histogram_bucket(__u64 ns)
{
	__u64 rest = ns >> HISTOGRAM_MIN_SHIFT;
	__u32 shift = HISTOGRAM_MIN_SHIFT;

	if (!rest)
		return 0;
	if (ns >> HISTOGRAM_MAX_SHIFT)
		return HISTOGRAM_BUCKETS - 1;
	/* The binary logarithm; BPF has no instruction for it. */
	for (__u32 step = 16; step; step >>= 1)
		if (rest >> step) {
			rest >>= step;
			shift += step;
		}
	return 1 + HISTOGRAM_STEPS * (shift - HISTOGRAM_MIN_SHIFT) +
	       (ns >> (shift - HISTOGRAM_STEPS_SHIFT) & (HISTOGRAM_STEPS - 1));
}

#endif
