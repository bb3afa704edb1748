/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_FAKE_H
#define SUTRO_TEST_FAKE_H

#include <stdio.h>

#include "host/cgfile.h"
#include "host/cgroup.h"
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

/**
 * run_tests() - run tests, each with a machine of its own
 *
 * The file of the tests has a struct test, setup() and teardown().
 */
#define run_tests(...)                                                   \
	do {                                                             \
		void (*const tests_[])(struct test *) = { __VA_ARGS__ }; \
                                                                         \
		for (size_t i_ = 0; i_ < ARRAY_SIZE(tests_); i_++) {     \
			struct test t_;                                  \
                                                                         \
			setup(&t_);                                      \
			tests_[i_](&t_);                                 \
			teardown(&t_);                                   \
		}                                                        \
	} while (0)

/** cases() - number of random cases: @n with SUTRO_LONG=1, a tenth without */
unsigned int cases(unsigned int n);

/** fake_new() - an empty machine */
void fake_new(struct roots *roots);
void fake_remove(struct roots *roots);
/** fake_remove_dir() - a directory with all in it */
void fake_remove_dir(const char *dir);

/** fake_file() - write a file of the machine, with its directories */
void fake_file(const struct roots *r, const char *path, const char *format, ...)
	_printf_(3, 4);
void fake_dir(const struct roots *r, const char *path);

/** fake_disk() - a leaf of 1 GiB that offers this scheduler and none */
void fake_disk(const struct roots *r, const char *name, const char *devno,
	       const char *scheduler);

/* For tests with kernelfiles.c linked into them. */

/** fake_cgroups() - the tree of the cgroups that were made, each with a policy */
struct cgroup_tree *fake_cgroups(const struct roots *r);

/** fake_kernel() - start to handle writes to cgroup files as the kernel does */
void fake_kernel(const struct roots *r);

/** fake_writer() - a writer of cgroup files, with the tree; the cgroup /a */
struct cgroup *fake_writer(const struct roots *r, struct cgfiles *files,
			   struct cgroup_tree **ret_tree);
/** fake_writer_remove() - end the writer, and remove the machine */
void fake_writer_remove(struct roots *r, struct cgfiles *files,
			struct cgroup_tree *tree);

/** fake_fault() - "FILE WHAT", see kernelfiles.c; "": no fault */
void fake_fault(const struct roots *r, const char *fault);

/** fake_read() - content of a file of the machine, to be freed */
char *fake_read(const struct roots *r, const char *path);

/** fake_has() - is @text the content of a file of the machine? */
bool fake_has(const struct roots *r, const char *path, const char *text);

/** fake_log_begin() - standard error goes to a file from now on; return the former one */
int fake_log_begin(const struct roots *r);
/** fake_log_end() - as before fake_log_begin(); return what was written, to be freed */
char *fake_log_end(const struct roots *r, int before);

/** fake_writes() - number of writes to files of the kernel since the last call */
unsigned int fake_writes(const struct roots *r);

#endif
