/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Buckets against their limits, percentiles against those of sorted latencies, and the
 * buckets of a leaf's elevator against the latencies that they stand for.
 */

#include <math.h>

#include "fake.h"
#include "host/histogram.h"

#define REQUESTS 2000
/* The limits of a bucket differ by this factor at most. */
#define WIDTH 1.125

/* From 1 us to 60 s, each power of two as likely. */
static uint64_t random_ns(unsigned int *seed)
{
	return exp2(10 + rand_r(seed) % 2600 / 100.) * 1.0005;
}

static void test_limits(void)
{
	unsigned int seed = 1;

	check(histogram_bucket(0) == 0 && histogram_bucket(1023) == 0);
	check(histogram_bucket(1024) == 1 && histogram_bucket(2047) == 8);
	check(histogram_bucket(2048) == 9);
	check(histogram_bucket(UINT64_MAX) == HISTOGRAM_BUCKETS - 1);
	check(histogram_begin_us(0) == 0 && histogram_end_us(0) == 1.024);
	for (size_t i = 1; i < HISTOGRAM_BUCKETS; i++) {
		double begin_us = histogram_begin_us(i);

		check(histogram_end_us(i - 1) == begin_us);
		check(histogram_end_us(i) <= begin_us * WIDTH * 1.0001);
		check(histogram_bucket(begin_us * 1000 + 0.5) == i);
	}
	for (unsigned int n = 0; n < cases(100000); n++) {
		uint64_t ns = random_ns(&seed);
		size_t i = histogram_bucket(ns);

		check(histogram_begin_us(i) <= ns / 1000. * 1.000001);
		check(ns / 1000. < histogram_end_us(i) * 1.000001);
	}
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void test_percentiles(void)
{
	static const double parts[] = { 0.5, 0.9, 0.95, 0.99, 0.999 };
	unsigned int seed = 2;

	for (unsigned int n = 0; n < cases(500); n++) {
		uint64_t sorted[REQUESTS];
		struct histogram h = {};

		for (size_t i = 0; i < REQUESTS; i++) {
			sorted[i] = random_ns(&seed);
			h.count[histogram_bucket(sorted[i])]++;
		}
		qsort(sorted, REQUESTS, sizeof(*sorted), by_size);
		check(histogram_sum(&h) == REQUESTS);
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++) {
			size_t rank = ceil(parts[p] * REQUESTS - 1e-9);
			double exact_us = sorted[rank - 1] / 1000.;
			double us = histogram_percentile_us(&h, parts[p]);

			check(us >= exact_us / WIDTH * 0.999);
			check(us <= exact_us * WIDTH * 1.001);
		}
	}
}

static void test_nothing(void)
{
	const struct histogram none = {};

	check(histogram_sum(&none) == 0);
	check(histogram_percentile_us(&none, 0.95) == 0);
}

/* Limits of bucket i of 40 of the kernel, see sutro-latency.h. */
static double leaf_limit_us(size_t i)
{
	return ldexp(i % 2 ? 1.5 : 1, 14 + i / 2) / 1000;
}

static void test_leaf(void)
{
	for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
		double begin_us = i ? leaf_limit_us(i - 1) : 0;
		double end_us = leaf_limit_us(i);
		struct latencies reads = {};
		struct histogram h = {};

		reads.count[i] = 1000;
		histogram_add_leaf(&h, &reads);
		check(fabs(histogram_sum(&h) - 1000) < 1e-6);
		for (double part = 0.1; part < 1; part += 0.1) {
			double us = histogram_percentile_us(&h, part);

			check(fabs(us -
				   (begin_us + part * (end_us - begin_us))) <
			      1e-6 * end_us);
		}
	}
}

static void test_sum(void)
{
	struct histogram a = {}, b = {};

	a.count[3] = 2;
	b.count[3] = 5;
	b.count[HISTOGRAM_BUCKETS - 1] = 1;
	histogram_add(&a, &b);
	check(a.count[3] == 7 && histogram_sum(&a) == 8);
}

int main(void)
{
	test_limits();
	test_percentiles();
	test_nothing();
	test_leaf();
	test_sum();
	return 0;
}
