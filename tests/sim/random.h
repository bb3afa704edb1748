/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers that look random and are the same in each run: splitmix64. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <linux/types.h>

static inline u64 random_u64(u64 *state)
{
	u64 x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Evenly from 0 to n - 1. */
static inline u64 random_below(u64 *state, u64 n)
{
	return ((unsigned __int128)random_u64(state) * n) >> 64;
}

/* Evenly from low to high. */
static inline u64 random_between(u64 *state, u64 low, u64 high)
{
	return low + random_below(state, high - low + 1);
}

/* From 1 to max, each order of magnitude as likely as the other. */
static inline u64 random_magnitude(u64 *state, u64 max)
{
	u64 top = max;

	while (top > 1 && random_below(state, 2))
		top = top / 4 + 1;
	return random_between(state, 1, top);
}

#endif /* SIM_RANDOM_H */
