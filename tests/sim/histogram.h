/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts numbers of any size in buckets that are 3 % wide. */
#ifndef SIM_HISTOGRAM_H
#define SIM_HISTOGRAM_H

#include <linux/log2.h>
#include <linux/types.h>

#define HISTOGRAM_SHIFT 5

/**
 * struct histogram - how often each number came
 * @nr:		numbers below 32 one by one, then 32 buckets for each power of two
 */
struct histogram {
	u32 nr[(65 - HISTOGRAM_SHIFT) << HISTOGRAM_SHIFT];
	u64 sum;
};

static inline void histogram_add(struct histogram *histogram, u64 number)
{
	u32 power = number >> HISTOGRAM_SHIFT ? ilog2(number) - HISTOGRAM_SHIFT
					      : 0;

	histogram->nr[(power << HISTOGRAM_SHIFT) + (number >> power)]++;
	histogram->sum++;
}

/* The number that a part of all numbers does not exceed, e.g. 0.99. */
static inline double histogram_quantile(const struct histogram *histogram,
					double part)
{
	u64 below = 0;
	u32 i = 0, power;

	while (i < (65 - HISTOGRAM_SHIFT) << HISTOGRAM_SHIFT &&
	       (below += histogram->nr[i]) < part * histogram->sum)
		i++;
	if (i >> HISTOGRAM_SHIFT == 0)
		return i;
	power = (i >> HISTOGRAM_SHIFT) - 1;
	return (double)(i - (power << HISTOGRAM_SHIFT)) * (1ULL << power);
}

#endif /* SIM_HISTOGRAM_H */
