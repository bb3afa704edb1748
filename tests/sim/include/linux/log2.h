/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_LOG2_H
#define SIM_LINUX_LOG2_H

/* int, as the kernel's; of what is not 0 */
#define ilog2(n) (63 - __builtin_clzll(n))

#endif /* SIM_LINUX_LOG2_H */
