/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_COMPILER_H
#define SIM_LINUX_COMPILER_H

#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
#define smp_store_release(p, value) WRITE_ONCE(*(p), value)

#endif /* SIM_LINUX_COMPILER_H */
