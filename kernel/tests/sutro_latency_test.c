// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of where latencies are counted (sutro-latency.h). */
#include <kunit/test.h>
#include <linux/module.h>

#include "../sutro-latency.h"

/* Where a bucket begins, as the ABI has it: 0, then 2^14, 1.5 * 2^14, 2^15 ... */
static u64 from_ns(unsigned int bucket)
{
	if (!bucket)
		return 0;
	return (2 + (bucket - 1) % 2) * (8192ULL << (bucket - 1) / 2);
}

/* Each bucket holds what is from its begin on to the next one's. */
static void sutro_test_bounds(struct kunit *test)
{
	unsigned int i;

	KUNIT_EXPECT_EQ(test, SUTRO_LATENCY_BUCKETS, 40);
	for (i = 0; i < SUTRO_LATENCY_BUCKETS; i++) {
		KUNIT_EXPECT_EQ(test, sutro_latency_bucket(from_ns(i)), i);
		if (i)
			KUNIT_EXPECT_EQ(test,
					sutro_latency_bucket(from_ns(i) - 1),
					i - 1);
	}
	KUNIT_EXPECT_EQ(test, sutro_latency_bucket(U64_MAX),
			SUTRO_LATENCY_BUCKETS - 1);
}

/* By hand: 16 us, 3.5 ms (see sutro-latency.h), 8 s, 9 s. */
static void sutro_test_by_hand(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, sutro_latency_bucket(16000), 0);
	KUNIT_EXPECT_EQ(test, sutro_latency_bucket(3500000), 16);
	KUNIT_EXPECT_EQ(test, sutro_latency_bucket(8000000000ULL), 38);
	KUNIT_EXPECT_EQ(test, sutro_latency_bucket(9000000000ULL), 39);
}

/* More is never counted lower, and a bucket is at most half as wide as it is far. */
static void sutro_test_order(struct kunit *test)
{
	unsigned int bucket, last = 0;
	u64 ns;

	for (ns = 1; ns < 16000000000ULL; ns += ns / 64 + 1) {
		bucket = sutro_latency_bucket(ns);
		KUNIT_EXPECT_GE(test, bucket, last);
		KUNIT_EXPECT_LE(test, bucket, last + 1);
		KUNIT_EXPECT_LE(test, from_ns(bucket), ns);
		if (bucket && bucket < SUTRO_LATENCY_BUCKETS - 1)
			KUNIT_EXPECT_LE(test, from_ns(bucket + 1) * 2,
					from_ns(bucket) * 3);
		last = bucket;
	}
	KUNIT_EXPECT_EQ(test, last, SUTRO_LATENCY_BUCKETS - 1);
}

static struct kunit_case sutro_latency_test_cases[] = {
	KUNIT_CASE(sutro_test_bounds),
	KUNIT_CASE(sutro_test_by_hand),
	KUNIT_CASE(sutro_test_order),
	{}
};

static struct kunit_suite sutro_latency_test_suite = {
	.name = "sutro_latency",
	.test_cases = sutro_latency_test_cases,
};

kunit_test_suite(sutro_latency_test_suite);

MODULE_DESCRIPTION("KUnit tests of where latencies are counted");
MODULE_LICENSE("GPL");
