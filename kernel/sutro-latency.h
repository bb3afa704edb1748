/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: how long reads take.
 *
 * A latency is counted in one of 40 buckets, two for each power of two of
 * nanoseconds from 2^14 (16 us) to 2^33 (8.6 s), the lower half and the upper one:
 *
 *	bucket		0	1	2	3	...	38	39
 *	from ns		0	16384	24576	32768		1.5 * 2^32	2^33
 *
 *	3,500,000 ns lie between 2^21 and 2^22, and above 1.5 * 2^21 = 3,145,728: that
 *	is bucket 1 + 2 * (21 - 14) + 1 = 16, which ends at 2^22 = 4,194,304.
 *
 * So a bucket ends at 1.33 or 1.5 times where it begins, and a percentile between two
 * readings of the counts is as exact.
 *
 * Pure C, like sutro-core.h.
 */
#ifndef SUTRO_LATENCY_H
#define SUTRO_LATENCY_H

#include <linux/log2.h>
#include <linux/types.h>

/* The fastest flash takes less, and no latency target is longer. */
#define SUTRO_LATENCY_MIN_SHIFT 14
#define SUTRO_LATENCY_MAX_SHIFT 33
#define SUTRO_LATENCY_BUCKETS \
	(2 * (SUTRO_LATENCY_MAX_SHIFT - SUTRO_LATENCY_MIN_SHIFT) + 2)

/**
 * sutro_latency_bucket - where a latency is counted
 * @ns:	the latency
 *
 * Return: 0 to SUTRO_LATENCY_BUCKETS - 1.
 */
static inline unsigned int sutro_latency_bucket(u64 ns)
{
	unsigned int shift;

	if (ns >> SUTRO_LATENCY_MIN_SHIFT == 0)
		return 0;
	if (ns >> SUTRO_LATENCY_MAX_SHIFT)
		return SUTRO_LATENCY_BUCKETS - 1;
	shift = ilog2(ns);
	return 1 + 2 * (shift - SUTRO_LATENCY_MIN_SHIFT) +
	       (ns >> (shift - 1) & 1);
}

#endif /* SUTRO_LATENCY_H */
