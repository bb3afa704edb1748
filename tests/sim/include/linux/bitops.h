/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_BITOPS_H
#define SIM_LINUX_BITOPS_H

#define hweight32(word) ((unsigned int)__builtin_popcount(word))

/* The number of the least, and of the greatest, bit that is set; one is. */
#define __ffs(word) ((unsigned long)__builtin_ctzl(word))
#define __fls(word) ((unsigned long)(63 - __builtin_clzl(word)))

#endif /* SIM_LINUX_BITOPS_H */
