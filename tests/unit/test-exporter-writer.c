/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Numbers and labels of the text for Prometheus, read back by other means. */

#include <inttypes.h>
#include <math.h>

#include "exporter/writer.h"
#include "fake.h"

/* A line without its end, to be freed. */
static char *line_of(struct number n)
{
	struct writer w = {};
	const struct piece pieces[] = { { "x", 1 }, { NULL, 0 }, { " ", 1 } };

	writer_line(&w, pieces, ARRAY_SIZE(pieces), n);
	check(!w.error && w.length > 3 && w.p[w.length - 1] == '\n');
	check(startswith(w.p, "x "));
	w.p[w.length - 1] = '\0';
	return w.p;
}

static bool is_written(struct number n, const char *text)
{
	_cleanup_free_ char *line = line_of(n);

	return streq(line + strlen("x "), text);
}

static void test_numbers(void)
{
	check(is_written(number_of(NUMBER_COUNT, 0), "0"));
	check(is_written(number_of(NUMBER_COUNT, UINT64_MAX),
			 "18446744073709551615"));
	check(is_written(number_of(NUMBER_NANO, 0), "0.0"));
	check(is_written(number_of(NUMBER_NANO, 1), "0.000000001"));
	check(is_written(number_of(NUMBER_NANO, 1500000000), "1.5"));
	check(is_written(number_of(NUMBER_NANO, UINT64_MAX),
			 "18446744073.709551615"));
	check(is_written(number_of(NUMBER_MICRO, 10000), "0.01"));
	check(is_written(number_real(1), "1.0"));
	check(is_written(number_real(-3), "-3.0"));
	check(is_written(number_real(0.1), "0.1"));
	check(is_written(number_real(1e300), "1e+300"));
	check(is_written(number_real(NAN), "NaN"));
	check(is_written(number_real(INFINITY), "+Inf"));
	check(is_written(number_real(-INFINITY), "-Inf"));
}

static uint64_t random_u64(unsigned int *seed)
{
	uint64_t n = 0;

	for (int i = 0; i < 5; i++)
		n = n << 15 ^ rand_r(seed);
	/* As many small ones as large ones. */
	return n >> rand_r(seed) % 64;
}

static void test_random_doubles_come_back(void)
{
	unsigned int seed = 1;

	for (unsigned int n = 0; n < cases(100000); n++) {
		uint64_t bits = random_u64(&seed);
		_cleanup_free_ char *line = NULL;
		double real;

		memcpy(&real, &bits, sizeof(real));
		if (isnan(real))
			continue;
		line = line_of(number_real(real));
		check(strtod(line + 2, NULL) == real);
	}
}

/* The digits are those of the count: the text is exact, and so is the nearest double. */
static void test_random_times_are_exact(void)
{
	unsigned int seed = 2;

	for (unsigned int n = 0; n < cases(100000); n++) {
		uint64_t count = random_u64(&seed), whole, rest = 0;
		_cleanup_free_ char *line =
			line_of(number_of(NUMBER_NANO, count));
		char *point = strchr(line, '.');
		size_t places = strlen(point + 1);

		check(places >= 1 && places <= 9);
		check(places == 1 || point[places] != '0');
		*point = '\0';
		check(parse_u64(line + 2, &whole) == 0);
		check(parse_u64(point + 1, &rest) == 0);
		for (; places < 9; places++)
			rest *= 10;
		check(whole * 1000000000 + rest == count);
	}
}

static bool is_escaped(const char *value, const char *text)
{
	_cleanup_(writer_done) struct writer w = {};

	writer_escaped(&w, value);
	return w.length == strlen(text) && !strncmp(w.p ?: "", text, w.length);
}

static void test_escapes(void)
{
	check(is_escaped("", ""));
	check(is_escaped("/dev/sda", "/dev/sda"));
	check(is_escaped("\"", "\\\""));
	check(is_escaped("a\\n\nb\"", "a\\\\n\\nb\\\""));
	check(is_escaped("ä\t\r", "ä\t\r"));
}

static void test_labels_have_commas_between_them(void)
{
	_cleanup_(writer_done) struct writer w = {};

	writer_text(&w, "x{");
	writer_label(&w, 2, "a", "1");
	writer_label(&w, 2, "b", "");
	writer_bytes(&w, "}", 2);
	check(streq(w.p, "x{a=\"1\",b=\"\"}"));
}

int main(void)
{
	test_numbers();
	test_random_doubles_come_back();
	test_random_times_are_exact();
	test_escapes();
	test_labels_have_commas_between_them();
	return 0;
}
