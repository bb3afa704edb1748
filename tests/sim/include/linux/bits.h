/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_BITS_H
#define SIM_LINUX_BITS_H

#define BIT(nr) (1UL << (nr))
#define BIT_ULL(nr) (1ULL << (nr))

#endif /* SIM_LINUX_BITS_H */
