/* SPDX-License-Identifier: GPL-2.0-only */
/* Like the kernel's: operands are looked at once, and must be of one type. */
#ifndef SIM_LINUX_MINMAX_H
#define SIM_LINUX_MINMAX_H

#define sim_pick(x, y, unique, op)                                  \
	({                                                          \
		__auto_type x_##unique = (x);                       \
		__auto_type y_##unique = (y);                       \
		x_##unique op y_##unique ? x_##unique : y_##unique; \
	})
#define sim_pick_once(x, y, unique, op) sim_pick(x, y, unique, op)

#define min(x, y) sim_pick_once(x, y, __COUNTER__, <)
#define max(x, y) sim_pick_once(x, y, __COUNTER__, >)
#define min3(x, y, z) min(min(x, y), z)
#define max3(x, y, z) max(max(x, y), z)
#define min_t(type, x, y) min((type)(x), (type)(y))
#define max_t(type, x, y) max((type)(x), (type)(y))
#define clamp(x, low, high) min(max(x, low), high)
#define clamp_t(type, x, low, high) clamp((type)(x), (type)(low), (type)(high))

#endif /* SIM_LINUX_MINMAX_H */
