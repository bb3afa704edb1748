/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_KERNEL_H
#define SIM_LINUX_KERNEL_H

#include <stdio.h>

#include <linux/compiler.h>
#include <linux/types.h>

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The text fits where it is used here. */
#define scnprintf snprintf

#endif /* SIM_LINUX_KERNEL_H */
