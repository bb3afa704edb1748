// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of where latencies are counted, and of targets for them (sutro-latency.c). */
#include "../sutro-latency.h"
#include "sutro_test.h"

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

static void took(struct sutro_test *t, u32 nr, u32 nr_late)
{
	sutro_latency_took(sutro_latency_get(&t->b), nr, nr_late,
			   SUTRO_LATENCY_MET_OTHERS, t->now_ns);
}

static u32 shared_part(const struct sutro_test *t)
{
	return sutro_latency_part(t->b.latency, SUTRO_PROTECT_WHOLE / 4);
}

/* A target of 400 us for the group b. */
static struct sutro_latency *target(struct kunit *test, struct sutro_test *t)
{
	struct sutro_latency *latency;

	sutro_latency_set(&t->b, 400);
	latency = sutro_latency_get(&t->b);
	KUNIT_ASSERT_NOT_NULL(test, latency);
	return latency;
}

/* A target holds for all below its cgroup that have none. */
static void sutro_test_target_of(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	KUNIT_EXPECT_NULL(test, sutro_latency_of(&t->c));
	KUNIT_EXPECT_EQ(test, sutro_latency_late_ns(&t->c), 0);
	sutro_latency_set(&t->b, 500);
	sutro_latency_set(&t->d, 700);
	/* Its state is allocated on first use. */
	KUNIT_EXPECT_NULL(test, sutro_latency_of(&t->c));
	KUNIT_ASSERT_NOT_NULL(test, sutro_latency_get(&t->c));
	KUNIT_EXPECT_PTR_EQ(test, sutro_latency_of(&t->c), t->b.latency);
	KUNIT_ASSERT_NOT_NULL(test, sutro_latency_get(&t->d));
	KUNIT_EXPECT_PTR_EQ(test, sutro_latency_of(&t->d), t->d.latency);
	KUNIT_EXPECT_NULL(test, t->c.latency);
	KUNIT_EXPECT_NULL(test, sutro_latency_of(&t->a));
	KUNIT_EXPECT_EQ(test, sutro_latency_late_ns(&t->c), 500 * 1000);
	/* Requests that were counted for another target do not count. */
	t->b.latency->limit_us = 100;
	sutro_latency_set(&t->b, 600);
	KUNIT_EXPECT_EQ(test, t->b.latency->limit_us, 0);
	KUNIT_EXPECT_EQ(test, t->b.latency->target_us, 600);
}

/* Late requests limit others first, then the cgroup is protected; and back. */
static void sutro_test_target_means(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_latency *latency = target(test, t);
	int i;

	took(t, 200, 2);
	KUNIT_EXPECT_EQ(test, latency->state, SUTRO_LATENCY_MET);
	KUNIT_EXPECT_EQ(test, latency->limit_us, 0);
	took(t, 8, 4);
	KUNIT_EXPECT_EQ(test, latency->state, SUTRO_LATENCY_MISSED);
	KUNIT_EXPECT_EQ(test, latency->limit_us, 100);
	sutro_latency_limit(&t->core, latency, t->now_ns);
	KUNIT_EXPECT_TRUE(test, sutro_is_limited(&t->core, &t->a, t->now_ns));
	KUNIT_EXPECT_FALSE(test, sutro_is_limited(&t->core, &t->c, t->now_ns));
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, latency->limit_us, 100);
		took(t, 128, 0);
	}
	KUNIT_EXPECT_EQ(test, latency->limit_us, 200);
	/* Loosened in vain: the limit begins anew. */
	took(t, 8, 4);
	KUNIT_EXPECT_EQ(test, latency->limit_us, 100);
	KUNIT_EXPECT_EQ(test, latency->patience, 2);
	took(t, 8, 4);
	KUNIT_EXPECT_EQ(test, latency->limit_us, 0);
	KUNIT_EXPECT_EQ(test, shared_part(t), SUTRO_PROTECT_LEAST);

	/* A period ends with a cycle, and not before it has enough requests. */
	took(t, 100, 0);
	sutro_latency_adapt(latency, t->now_ns);
	KUNIT_EXPECT_EQ(test, shared_part(t), SUTRO_PROTECT_LEAST);
	for (i = 0; i < 40 && latency->held; i++) {
		took(t, 128, 0);
		sutro_latency_adapt(latency, t->now_ns);
	}
	KUNIT_EXPECT_EQ(test, latency->held, 0);
	KUNIT_EXPECT_EQ(test, latency->limit_us, 100);
}

/* The shared part follows from the part of requests that are late. */
static void sutro_test_target_part(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_latency *latency = target(test, t);

	latency->held = SUTRO_PROTECT_WHOLE - 400;
	/* One in 32 is twice the aim. */
	took(t, 128, 4);
	sutro_latency_adapt(latency, t->now_ns);
	KUNIT_EXPECT_EQ(test, shared_part(t), 200);
	took(t, 128, 2);
	sutro_latency_adapt(latency, t->now_ns);
	KUNIT_EXPECT_EQ(test, shared_part(t), 200);
	took(t, 128, 100);
	sutro_latency_adapt(latency, t->now_ns);
	KUNIT_EXPECT_EQ(test, shared_part(t), 50);
	/* Fewer requests than those of a period, after a second. */
	took(t, 64, 0);
	t->now_ns += 1000 * MS;
	sutro_latency_adapt(latency, t->now_ns);
	KUNIT_EXPECT_EQ(test, shared_part(t), 62);
}

/* Requests that met no others show what the device can do. */
static void sutro_test_target_unreachable(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_latency *latency = target(test, t);
	int i;

	for (i = 0; i < 8; i++)
		sutro_latency_took(latency, 64, 32, SUTRO_LATENCY_MET_NONE,
				   t->now_ns);
	KUNIT_EXPECT_EQ(test, latency->state, SUTRO_LATENCY_UNREACHABLE);
	KUNIT_EXPECT_EQ(test, latency->limit_us, 0);
	/* Then others are held back for no more than its share. */
	took(t, 8, 4);
	took(t, 8, 4);
	KUNIT_EXPECT_EQ(test, shared_part(t), SUTRO_PROTECT_WHOLE * 3 / 4);
	for (i = 0; i < 4; i++)
		sutro_latency_took(latency, 64, 0, SUTRO_LATENCY_MET_NONE,
				   t->now_ns);
	KUNIT_EXPECT_EQ(test, shared_part(t), SUTRO_PROTECT_LEAST);
}

static void took_alone(struct sutro_latency *latency, u32 nr, u32 nr_late)
{
	sutro_latency_took(latency, nr, nr_late, SUTRO_LATENCY_MET_NONE, 0);
}

/* By hand: 8 late ones, and twice one in 20, make the verdict. */
static void sutro_test_target_clearly_unreachable(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_latency *latency = target(test, t);

	took_alone(latency, 55, 13);
	KUNIT_EXPECT_FALSE(test, latency->is_unreachable);
	took_alone(latency, 1, 1);
	KUNIT_EXPECT_TRUE(test, latency->is_unreachable);
	/* One in 25 is allowed, but not well below the limit. */
	took_alone(latency, 250, 10);
	KUNIT_EXPECT_TRUE(test, latency->is_unreachable);
	took_alone(latency, 6, 0);
	KUNIT_EXPECT_TRUE(test, latency->is_unreachable);
	took_alone(latency, 256, 8);
	KUNIT_EXPECT_FALSE(test, latency->is_unreachable);
	took_alone(latency, 256, 10);
	KUNIT_EXPECT_FALSE(test, latency->is_unreachable);
}

/* A request may complete after the time that the dispatcher has read: its period has just begun. */
static void sutro_test_target_of_later_completion(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_latency *latency = target(test, t);

	latency->held = SUTRO_PROTECT_WHOLE - 256;
	sutro_latency_took(latency, 1, 1, SUTRO_LATENCY_MET_OTHERS,
			   t->now_ns + 1000);
	sutro_latency_adapt(latency, t->now_ns);
	KUNIT_EXPECT_EQ(test, shared_part(t), 256);
	KUNIT_EXPECT_EQ(test, latency->state, SUTRO_LATENCY_UNKNOWN);
}

/* A group alone has no cycles for seconds, and millions of reads. */
static void sutro_test_target_after_long_time_alone(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_latency *latency = target(test, t);
	int i;

	latency->held = SUTRO_PROTECT_WHOLE - 400;
	/* One in 10,000 is late. */
	for (i = 0; i < 10000; i++) {
		sutro_latency_took(latency, 1000, !(i % 10),
				   SUTRO_LATENCY_MET_NONE, t->now_ns);
		t->now_ns += MS;
	}
	sutro_latency_adapt(latency, t->now_ns);
	KUNIT_EXPECT_GE(test, shared_part(t), 400);
	/* The state is not that of the time before. */
	for (i = 0; i < 10; i++) {
		sutro_latency_took(latency, 1000, 200, SUTRO_LATENCY_MET_NONE,
				   t->now_ns);
		t->now_ns += 2000 * MS;
	}
	KUNIT_EXPECT_EQ(test, latency->state, SUTRO_LATENCY_UNREACHABLE);
}

/* In the windows of another target, two late requests are enough, and the limit is left out. */
static void sutro_test_latency_beside_target(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_latency *latency;

	sutro_latency_set(&t->b, 2000);
	latency = sutro_latency_get(&t->b);
	KUNIT_ASSERT_NOT_NULL(test, latency);
	sutro_latency_took(latency, 1, 1, SUTRO_LATENCY_MET_OTHERS, t->now_ns);
	sutro_latency_took(latency, 1, 1, SUTRO_LATENCY_MET_OTHERS, t->now_ns);
	KUNIT_EXPECT_EQ(test, latency->held, 0);
	latency->period = (struct sutro_latency_counts){};
	sutro_latency_took(latency, 1, 1, SUTRO_LATENCY_MET_TARGET, t->now_ns);
	KUNIT_EXPECT_EQ(test, latency->held, 0);
	sutro_latency_took(latency, 1, 1, SUTRO_LATENCY_MET_TARGET, t->now_ns);
	KUNIT_EXPECT_NE(test, latency->held, 0);
	KUNIT_EXPECT_EQ(test, latency->limit_us, 0);
}

static struct kunit_case sutro_latency_cases[] = {
	KUNIT_CASE(sutro_test_bounds),
	KUNIT_CASE(sutro_test_by_hand),
	KUNIT_CASE(sutro_test_order),
	KUNIT_CASE(sutro_test_target_of),
	KUNIT_CASE(sutro_test_target_means),
	KUNIT_CASE(sutro_test_target_part),
	KUNIT_CASE(sutro_test_target_unreachable),
	KUNIT_CASE(sutro_test_target_clearly_unreachable),
	KUNIT_CASE(sutro_test_target_of_later_completion),
	KUNIT_CASE(sutro_test_target_after_long_time_alone),
	KUNIT_CASE(sutro_test_latency_beside_target),
	{}
};

sutro_suite(sutro_latency, "latencies and their targets");
