// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of slices whose protected groups use more than their shares (sutro-excess.c). */
#include "sutro_load_test.h"

/*
 * b is a slice with c (weight 300), which is protected, and d (100).  e is beside it, and a has no
 * requests.  So c is entitled to 3/8 of the device, and others to 5/8.
 */
static struct sutro_test *slice_of_two(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	struct sutro_test *t = load->t;
	struct sutro_protect *protect = &t->core.protect;

	load->few = &t->c;
	load->many = &t->d;
	sutro_group_set_weight(&t->c, 300);
	arrive_far(t, &t->d, DEEP);
	load_run(load, 4 * SECOND_NS);
	KUNIT_ASSERT_EQ(test, sutro_group_protected(&t->c), true);
	sutro_protect_drop(&t->core, &t->a);
	sutro_protect_drop(&t->core, &t->e);
	KUNIT_ASSERT_EQ(test, protect->nr, 1);
	KUNIT_ASSERT_EQ(test, t->b.level.nr_active, 2);
	KUNIT_ASSERT_EQ(test, t->root.level.nr_active, 2);
	protect->by_share = true;
	protect->shares = SUTRO_SHARE_WHOLE * 3 / 8;
	protect->others_ns = 0;
	protect->all_ns = 0;
	sutro_excess_join(t->c.protect);
	return t;
}

/* Device time for which the slice of c is charged at the end of a cycle. */
static s64 charged_ns(struct sutro_test *t)
{
	u64 vtime = t->b.entity.vtime;

	sutro_excess_end(&t->core);
	return (s64)(t->b.entity.vtime - vtime) >> SUTRO_VTIME_SHIFT;
}

/* c and others complete requests of as much device time; those of c in a reserved window. */
static void use(struct sutro_test *t, u64 ns, u64 others_ns)
{
	sutro_excess_charge(&t->c, ns, false);
	sutro_excess_completed(&t->core.protect, &t->c, ns);
	sutro_excess_completed(&t->core.protect, &t->d, others_ns / 2);
	sutro_excess_completed(&t->core.protect, &t->e, others_ns / 2);
}

/* Within the share, all of the time is charged. */
static void sutro_test_excess_none(struct kunit *test)
{
	struct sutro_test *t = slice_of_two(test);
	u64 vtime = t->c.entity.vtime;

	use(t, 30 * MS, 60 * MS);
	EXPECT_NEAR(test, charged_ns(t), 30 * MS, 1);
	KUNIT_EXPECT_EQ(test, t->c.entity.vtime, vtime);
	KUNIT_EXPECT_EQ(test, sutro_excess_more_ns(&t->core.protect, 0), 0);
}

/* Others used 40 ms.  For 3/8 that is 24 for 5/8, and c had 60. */
static void sutro_test_excess_charged(struct kunit *test)
{
	struct sutro_test *t = slice_of_two(test);

	use(t, 60 * MS, 40 * MS);
	EXPECT_NEAR(test, charged_ns(t), 24 * MS, 1);
}

/* Time of c in shared windows, which was charged at once, counts. */
static void sutro_test_excess_charged_at_once(struct kunit *test)
{
	struct sutro_test *t = slice_of_two(test);

	sutro_excess_charge(&t->c, 10 * MS, true);
	use(t, 60 * MS, 40 * MS);
	EXPECT_NEAR(test, charged_ns(t), 14 * MS, 1);
	sutro_excess_join(t->c.protect);
	sutro_excess_charge(&t->c, 30 * MS, true);
	use(t, 60 * MS, 40 * MS);
	EXPECT_NEAR(test, charged_ns(t), 0, 1);
}

/*
 * c had 60 of 100 ms, and was entitled to 37.5.  In the next shared window it comes after d until d
 * had its part of 22.5, and the window is longer by 5/8 of it, up to half of the rest.
 */
static void sutro_test_excess_corrected(struct kunit *test)
{
	struct sutro_test *t = slice_of_two(test);
	struct sutro_protect *protect = &t->core.protect;
	u64 vtime = t->b.level.rank[SUTRO_CLASS_BE].vtime;
	u64 cycle_ns = protect->cycle_ns;

	use(t, 60 * MS, 40 * MS);
	sutro_excess_end(&t->core);
	KUNIT_EXPECT_GE(test, (s64)(t->c.entity.vtime - vtime),
			(s64)((22500000ULL << SUTRO_VTIME_SHIFT) / 3));
	protect->cycle_ns = 100 * MS;
	EXPECT_NEAR(test, sutro_excess_more_ns(protect, 40 * MS),
		    22500000 * 5 / 8, 1000);
	EXPECT_NEAR(test, sutro_excess_more_ns(protect, 80 * MS), 10 * MS, 1);
	protect->cycle_ns = cycle_ns;
}

/* Without others, with reserved time or a latency target, all of it is charged. */
static void sutro_test_excess_by_intent(struct kunit *test)
{
	struct sutro_test *t = slice_of_two(test);
	struct sutro_protect *protect = &t->core.protect;
	u32 nr_active = t->core.nr_active;

	protect->reserve = SUTRO_PROTECT_WHOLE / 2;
	use(t, 60 * MS, 40 * MS);
	EXPECT_NEAR(test, charged_ns(t), 60 * MS, 1);
	protect->reserve = 0;
	protect->by_target = true;
	use(t, 60 * MS, 40 * MS);
	EXPECT_NEAR(test, charged_ns(t), 60 * MS, 1);
	protect->by_target = false;
	t->core.nr_active = 1;
	use(t, 60 * MS, 0);
	EXPECT_NEAR(test, charged_ns(t), 60 * MS, 1);
	t->core.nr_active = nr_active;
	KUNIT_EXPECT_EQ(test, sutro_excess_more_ns(protect, 0), 0);
}

/* A group that is protected no longer leaves no time behind that its slice is not charged for. */
static void sutro_test_excess_leaves(struct kunit *test)
{
	struct sutro_test *t = slice_of_two(test);
	u64 vtime = t->b.entity.vtime;

	use(t, 30 * MS, 60 * MS);
	sutro_protect_drop(&t->core, &t->c);
	EXPECT_NEAR(test, (t->b.entity.vtime - vtime) >> SUTRO_VTIME_SHIFT,
		    30 * MS, 1);
}

static struct kunit_case sutro_excess_cases[] = {
	KUNIT_CASE(sutro_test_excess_none),
	KUNIT_CASE(sutro_test_excess_charged),
	KUNIT_CASE(sutro_test_excess_charged_at_once),
	KUNIT_CASE(sutro_test_excess_corrected),
	KUNIT_CASE(sutro_test_excess_by_intent),
	KUNIT_CASE(sutro_test_excess_leaves),
	{}
};

sutro_suite(sutro_excess, "slices with protected groups");
