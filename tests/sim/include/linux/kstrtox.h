/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SIM_LINUX_KSTRTOX_H
#define SIM_LINUX_KSTRTOX_H

#include <errno.h>
#include <stdlib.h>

#include <linux/types.h>

/* As the kernel's: a sign, digits, and at most one newline, with nothing before or behind. */
static inline int kstrtos64(const char *s, unsigned int base, s64 *res)
{
	const char *digits = s + (*s == '-' || *s == '+');
	char *end;
	s64 value;

	if (*digits < '0' || *digits > '9')
		return -EINVAL;
	errno = 0;
	value = strtoll(s, &end, base);
	if (errno)
		return -ERANGE;
	if (*end == '\n')
		end++;
	if (*end)
		return -EINVAL;
	*res = value;
	return 0;
}

#endif /* SIM_LINUX_KSTRTOX_H */
