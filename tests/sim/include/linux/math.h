/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_MATH_H
#define SIM_LINUX_MATH_H

#include <linux/types.h>

/* To a multiple of a power of two. */
#define round_down(x, y) ((x) & ~((__typeof__(x))(y) - 1))

/* The largest integer whose square is not above x. */
static inline u32 int_sqrt64(u64 x)
{
	u64 root = 0, bit;

	for (bit = 1ULL << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= x)
			root += bit;
	return root;
}

#endif /* SIM_LINUX_MATH_H */
