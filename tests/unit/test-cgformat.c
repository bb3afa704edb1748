/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lines of cgroup files: values as text and back, and invalid lines among valid ones. */

#include <sys/sysmacros.h>

#include "fake.h"
#include "host/cgformat.h"

static struct cgvalue parse(enum cgfile file, const char *text)
{
	struct cgvalue v;

	check(cgvalue_parse(file, text, &v) == 0);
	return v;
}

static void test_values_as_text(void)
{
	static const struct {
		enum cgfile file;
		const char *valid;
		const char *invalid;
	} cases[] = {
		{ CGFILE_WEIGHT, "10000", "10001" },
		{ CGFILE_BFQ_WEIGHT, "1", "0" },
		{ CGFILE_SUTRO_WEIGHT, "300", "3OO" },
		{ CGFILE_MAX, "rbps=5 wbps=max riops=7 wiops=max", "rbps=x" },
		{ CGFILE_SUTRO_CLASS, "idle", "2" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cgvalue v = parse(cases[i].file, cases[i].valid);
		_cleanup_free_ char *text = cgvalue_text(cases[i].file, &v);

		check(streq(text, cases[i].valid));
		check(cgvalue_parse(cases[i].file, cases[i].invalid, &v) ==
		      -EINVAL);
	}
}

static void test_invalid_lines_are_left_out(void)
{
	char text[] = "default 200\n8:0 x\n8:x 3\n8:16 300\n8:0 10001";
	struct cglines l;

	check(cglines_parse(CGFILE_SUTRO_WEIGHT, text, &l) == 3);
	check(l.n_lines == 2);
	check(cglines_get(&l, CGFILE_DEFAULT).number[0] == 200);
	check(cglines_get(&l, makedev(8, 16)).number[0] == 300);
	check(cglines_get(&l, makedev(8, 0)).number[0] == 0);
	cglines_done(&l);
}

static void test_unknown_keys_are_ignored(void)
{
	struct cgvalue v = parse(CGFILE_MAX, "rbps=5 burst=9");

	check(v.number[0] == 5 && v.number[1] == CGFILE_NO_LIMIT);
}

int main(void)
{
	test_values_as_text();
	test_invalid_lines_are_left_out();
	test_unknown_keys_are_ignored();
	return 0;
}
