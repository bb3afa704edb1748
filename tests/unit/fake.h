/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_FAKE_H
#define SUTRO_TEST_FAKE_H

#include <stdio.h>

#include "host/roots.h"
#include "host/topology.h"

/* A fake machine in a temporary directory. Every function aborts on failure. */

/** check() - assert() that is never compiled out */
#define check(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, \
				__LINE__, __func__, #condition);               \
			abort();                                               \
		}                                                              \
	} while (0)

/** cases() - number of random cases: @n with SUTRO_LONG=1, a tenth without */
unsigned int cases(unsigned int n);

/** fake_new() - an empty machine */
void fake_new(struct roots *roots);
void fake_remove(struct roots *roots);

/** fake_file() - write a file of the machine, with its directories */
void fake_file(const struct roots *r, const char *path, const char *format, ...)
	_printf_(3, 4);
void fake_dir(const struct roots *r, const char *path);

/** fake_disk() - a leaf of 1 GiB that offers this scheduler and none */
void fake_disk(const struct roots *r, const char *name, const char *devno,
	       const char *scheduler);

#endif
