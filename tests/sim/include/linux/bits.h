/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_BITS_H
#define SIM_LINUX_BITS_H

#define BIT(nr) (1UL << (nr))
#define BIT_ULL(nr) (1ULL << (nr))
/* The bits from @low to @high. */
#define GENMASK(high, low) ((~0UL >> (63 - (high))) & (~0UL << (low)))

#endif /* SIM_LINUX_BITS_H */
