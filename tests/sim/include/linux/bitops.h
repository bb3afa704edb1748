/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_BITOPS_H
#define SIM_LINUX_BITOPS_H

#define hweight32(word) ((unsigned int)__builtin_popcount(word))

#endif /* SIM_LINUX_BITOPS_H */
