/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_STRING_H
#define SIM_LINUX_STRING_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Set an object from a member on. */
#define memset_startat(object, value, member)                                 \
	memset((char *)(object) + offsetof(typeof(*(object)), member), value, \
	       sizeof(*(object)) - offsetof(typeof(*(object)), member))

static inline int match_string(const char *const *array, size_t n,
			       const char *string)
{
	for (size_t i = 0; i < n && array[i]; i++)
		if (!strcmp(array[i], string))
			return i;
	return -EINVAL;
}

#define strscpy(dest, src, size) snprintf(dest, size, "%s", src)

#endif /* SIM_LINUX_STRING_H */
