/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_MATH64_H
#define SIM_LINUX_MATH64_H

#include <linux/types.h>

static inline s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

/* The product has 128 bits. */
static inline u64 mul_u64_u32_div(u64 a, u32 b, u32 c)
{
	return (unsigned __int128)a * b / c;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 b, unsigned int shift)
{
	return ((unsigned __int128)a * b) >> shift;
}

#endif /* SIM_LINUX_MATH64_H */
