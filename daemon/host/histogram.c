/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Counts of requests by latency, and percentiles of them.
 *
 * A leaf's elevator has 40 buckets, two for each power of two from 2^14 ns on. Each but
 * the first one is as wide as four of these, and its requests are divided evenly:
 *
 *	leaf	       |     32.8 us: 8      |   49.2 us: 0	     |
 *	here	       | 2  | 2  | 2  |  2   |  0  |  0  |  0  |  0  |
 */

#include <math.h>

#include "host/histogram.h"

/* The first power of two of a leaf's buckets. */
#define LEAF_MIN_SHIFT 14
#define LEAF_PARTS 4

double histogram_begin_us(size_t i)
{
	size_t step = (i - 1) % HISTOGRAM_STEPS;

	if (!i)
		return 0;
	return ldexp(1 + (double)step / HISTOGRAM_STEPS,
		     HISTOGRAM_MIN_SHIFT + (i - 1) / HISTOGRAM_STEPS) /
	       1000;
}

double histogram_end_us(size_t i)
{
	return histogram_begin_us(i + 1);
}

double histogram_sum(const struct histogram *h)
{
	double sum = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum += h->count[i];
	return sum;
}

void histogram_add(struct histogram *h, const struct histogram *more)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		h->count[i] += more->count[i];
}

void histogram_add_leaf(struct histogram *h, const struct latencies *reads)
{
	const size_t first =
		1 + HISTOGRAM_STEPS * (LEAF_MIN_SHIFT - HISTOGRAM_MIN_SHIFT);
	double below_us = histogram_begin_us(first);

	for (size_t i = 0; i < first; i++)
		h->count[i] += reads->count[0] *
			       (histogram_end_us(i) - histogram_begin_us(i)) /
			       below_us;
	for (size_t leaf = 1; leaf < LATENCY_BUCKETS; leaf++)
		for (size_t i = 0; i < LEAF_PARTS; i++)
			h->count[first + LEAF_PARTS * (leaf - 1) + i] +=
				(double)reads->count[leaf] / LEAF_PARTS;
}

double histogram_percentile_us(const struct histogram *h, double part)
{
	double rank = part * histogram_sum(h), sum = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS && rank > 0; i++) {
		double begin_us = histogram_begin_us(i);

		if (sum + h->count[i] >= rank)
			return begin_us + (histogram_end_us(i) - begin_us) *
						  (rank - sum) / h->count[i];
		sum += h->count[i];
	}
	/* Rounding made the total larger than the sum of the counts. */
	return rank > 0 ? histogram_end_us(HISTOGRAM_BUCKETS - 1) : 0;
}
