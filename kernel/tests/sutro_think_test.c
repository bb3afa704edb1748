// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of think times (sutro-think.c): when a group is expected back.
 */
#include "sutro_test.h"

#define MANY 20000

/* Numerical Recipes in C, 7.1. */
static u32 any_below(u32 *state, u32 limit)
{
	*state = *state * 1664525 + 1013904223;
	return mul_u64_u32_shr(*state, limit, 32);
}

static void add(struct sutro_think *think, u32 time_us, int times)
{
	while (times--)
		sutro_think_add(think, time_us);
}

/* A group that always thinks for the same time does not come back before that. */
static void sutro_test_one_habit(struct kunit *test)
{
	struct sutro_think think = {};

	KUNIT_EXPECT_FALSE(test, sutro_think_is_quiet(&think, 0));
	KUNIT_EXPECT_EQ(test, sutro_think_mean_us(&think), 0);
	add(&think, 5000, 1);
	KUNIT_EXPECT_TRUE(test, sutro_think_is_quiet(&think, 0));
	add(&think, 5000, 100);
	KUNIT_EXPECT_EQ(test, think.quiet_from_us, 0);
	KUNIT_EXPECT_EQ(test, think.quiet_to_us, 5000);
	KUNIT_EXPECT_TRUE(test, sutro_think_is_quiet(&think, 4999));
	KUNIT_EXPECT_FALSE(test, sutro_think_is_quiet(&think, 5000));
}

/* A writer flushes at once and writes later: it is quiet between the two. */
static void sutro_test_two_habits(struct kunit *test)
{
	struct sutro_think think = {};
	int i;

	for (i = 0; i < SUTRO_THINK_NR / 2; i++) {
		add(&think, 90 + i % 20, 1);
		add(&think, 10000 + 10 * i, 1);
	}
	KUNIT_EXPECT_EQ(test, think.quiet_from_us, 109);
	KUNIT_EXPECT_EQ(test, think.quiet_to_us, 10000);
	KUNIT_EXPECT_EQ(test, sutro_think_min_us(&think), 90);
	/* (98 + 10155) / 2 */
	KUNIT_EXPECT_EQ(test, sutro_think_mean_us(&think), 5126);
}

/* With few times, only the one before the shortest is quiet; a rare long one does not count. */
static void sutro_test_few_times(struct kunit *test)
{
	struct sutro_think think = {};

	add(&think, 100, 8);
	add(&think, 10000, 7);
	KUNIT_EXPECT_EQ(test, think.quiet_to_us, 100);
	add(&think, 100, 40);
	KUNIT_EXPECT_EQ(test, think.quiet_to_us, 100);
	KUNIT_EXPECT_GT(test, think.max_us, 100);
}

/* Only the last SUTRO_THINK_NR times count. */
static void sutro_test_new_habit(struct kunit *test)
{
	struct sutro_think think = {};

	add(&think, 10000, 200);
	add(&think, 100, 1);
	KUNIT_EXPECT_EQ(test, sutro_think_min_us(&think), 100);
	add(&think, 10000, SUTRO_THINK_NR + 8);
	KUNIT_EXPECT_EQ(test, sutro_think_min_us(&think), 10000);
	KUNIT_EXPECT_EQ(test, think.quiet_from_us, 0);
	KUNIT_EXPECT_EQ(test, think.quiet_to_us, 10000);
}

/* The sorted times are those of the ring, whatever they are. */
static void sutro_test_sorted(struct kunit *test)
{
	struct sutro_think think = {};
	u32 state = 1, nr, i, j;
	bool is_sorted = true;

	for (nr = 1; nr <= 1000; nr++) {
		u64 ring_us = 0, sorted_us = 0;

		add(&think, any_below(&state, any_below(&state, 1000) + 1), 1);
		KUNIT_ASSERT_EQ(test, think.nr, min_t(u32, nr, SUTRO_THINK_NR));
		for (i = 0; i < think.nr; i++) {
			j = (think.next + SUTRO_THINK_NR - 1 - i) %
			    SUTRO_THINK_NR;
			ring_us += think.ring_us[j];
			sorted_us += think.sorted_us[i];
			is_sorted &= !i || think.sorted_us[i] >=
						   think.sorted_us[i - 1];
		}
		KUNIT_EXPECT_TRUE(test, is_sorted);
		KUNIT_ASSERT_EQ(test, ring_us, sorted_us);
	}
}

/* Of times at random, the longest gap between 48 neighbours holds 7 %, the sum of 1/65i. */
static void sutro_test_early(struct kunit *test)
{
	struct sutro_think think = {};
	u32 state = 1, early = 0, time_us;
	int i;

	for (i = 0; i < MANY; i++) {
		time_us = any_below(&state, 1000000);
		early += sutro_think_is_quiet(&think, time_us);
		add(&think, time_us, 1);
	}
	EXPECT_NEAR(test, early, MANY * 7 / 100, MANY / 100);
}

/* When is a group of the example in sutro-think.c rarely back? */
static void sutro_test_free(struct kunit *test)
{
	struct sutro_think think = {};

	KUNIT_EXPECT_EQ(test, sutro_think_free_us(&think, 7, 20000), 7ULL);
	add(&think, 10, 60);
	add(&think, 30000, 2);
	add(&think, 40000, 1);
	add(&think, 60000, 1);
	KUNIT_EXPECT_EQ(test, sutro_think_free_us(&think, 0, 20000), 2511ULL);
	KUNIT_EXPECT_EQ(test, sutro_think_free_us(&think, 5000, 20000),
			5000ULL);
	KUNIT_EXPECT_EQ(test, sutro_think_free_us(&think, 11000, 20000),
			62501ULL);
	KUNIT_EXPECT_EQ(test, sutro_think_free_us(&think, 11000, 1000),
			11000ULL);
	KUNIT_EXPECT_EQ(test, sutro_think_free_us(&think, 90000, 20000),
			90000ULL);
}

static struct kunit_case sutro_think_cases[] = {
	KUNIT_CASE(sutro_test_one_habit), KUNIT_CASE(sutro_test_two_habits),
	KUNIT_CASE(sutro_test_few_times), KUNIT_CASE(sutro_test_new_habit),
	KUNIT_CASE(sutro_test_sorted),	  KUNIT_CASE(sutro_test_early),
	KUNIT_CASE(sutro_test_free),	  {},
};

sutro_suite(sutro_think, "think times");
