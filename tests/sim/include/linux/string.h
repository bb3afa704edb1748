/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_STRING_H
#define SIM_LINUX_STRING_H

#include <stddef.h>
#include <string.h>

/* Set an object from a member on. */
#define memset_startat(object, value, member)                                 \
	memset((char *)(object) + offsetof(typeof(*(object)), member), value, \
	       sizeof(*(object)) - offsetof(typeof(*(object)), member))

#endif /* SIM_LINUX_STRING_H */
