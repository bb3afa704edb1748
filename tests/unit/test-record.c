/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files of records in /run/sutro: how often they are replaced, and lines that are not complete. */

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fake.h"
#include "host/record.h"

/** struct test - a machine without records */
struct test {
	struct roots roots;
	dev_t sda;
};

static void setup(struct test *t)
{
	*t = (struct test){ .sda = makedev(8, 0) };
	fake_new(&t->roots);
}

static void teardown(struct test *t)
{
	fake_remove(&t->roots);
}

static uint64_t inode_of(const struct test *t, const char *path)
{
	_cleanup_free_ char *full =
		asprintf_or_null("%s%s", t->roots.prefix, path);
	struct stat st;

	check(full && stat(full, &st) == 0);
	return st.st_ino;
}

/* A flush of a large machine would write gigabytes if each line wrote the whole file. */
static void test_file_is_replaced_rarely(struct test *t)
{
	const char *path = "/run/sutro/ceilings";
	const unsigned int n = 3000;
	unsigned int replaced = 0;
	struct record r;
	uint64_t was;

	check(record_open(&r, &t->roots, "ceilings") == 0);
	check(record_set(&r, "/0", t->sda, "rbps=9") == 0);
	was = inode_of(t, path);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 1; i < n; i++) {
			char name[16];

			snprintf(name, sizeof(name), "/%u", i);
			check((round ? record_drop(&r, name, t->sda)
				     : record_set(&r, name, t->sda,
						  "rbps=9")) == 0);
			replaced += inode_of(t, path) != was;
			was = inode_of(t, path);
		}
		check(round ? replaced < 16 : replaced == 0);
		/* The next daemon has the same lines. */
		record_done(&r);
		check(record_open(&r, &t->roots, "ceilings") == 0);
		check(r.n == (round ? 1 : n));
		check(streq(record_get(&r, "/0", t->sda), "rbps=9"));
		check(!!record_get(&r, "/1", t->sda) == !round);
	}
	record_done(&r);
}

/* The daemon was killed, or the disk was full, within a line. */
static void test_incomplete_line_does_not_count(struct test *t)
{
	struct record r;

	fake_file(&t->roots, "/run/sutro/classes", "/a\trt\n/b\tid");
	check(record_open(&r, &t->roots, "classes") == 0);
	check(streq(record_get(&r, "/a", 0), "rt") && !record_get(&r, "/b", 0));
	check(record_set(&r, "/c", 0, "be") == 0);
	check(fake_has(&t->roots, "/run/sutro/classes", "/a\trt\n/c\tbe\n"));
	/* A change that cannot be written is none. */
	close(r.fd);
	check(record_set(&r, "/c", 0, "rt") < 0);
	check(record_drop(&r, "/a", 0) < 0);
	check(streq(record_get(&r, "/c", 0), "be") && record_get(&r, "/a", 0));
	r.fd = -1;
	check(record_drop(&r, "/c", 0) == 0);
	record_done(&r);
	check(record_open(&r, &t->roots, "classes") == 0);
	check(r.n == 1 && streq(record_get(&r, "/a", 0), "rt"));
	record_done(&r);
}

int main(void)
{
	run_tests(test_file_is_replaced_rarely,
		  test_incomplete_line_does_not_count);
	return 0;
}
