// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of protected groups on several leaves (sutro-volume.c): a has requests at two of
 * them.
 */
#include <linux/slab.h>

#include "sutro_test.h"

#define READ_NS (MS / 5)
#define THINK_NS (5 * MS)
#define LATENCY_NS (MS / 10)
#define MANY 2000

static struct sutro_leaves leaves;

static struct sutro_leaves *leaves_of(struct sutro_group *group)
{
	return &leaves;
}

/* A leaf in a reserved window, of which others have no request, with a protected. */
static struct sutro_test *leaf_new(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_protect *protect = &t->core.protect;
	struct sutro_group_protect *own = kzalloc(sizeof(*own), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, own);
	own->group = &t->a;
	own->awaited = true;
	own->marked = true;
	RB_CLEAR_NODE(&own->node);
	list_add(&own->list, &protect->groups);
	t->a.protect = own;
	t->a.empty_since_ns = t->now_ns;
	t->core.leaves_of = leaves_of;
	t->core.tunables.latency_ns = LATENCY_NS;
	protect->other_ns = MS;
	protect->reserved = true;
	protect->clear = true;
	sutro_volume_find(&t->core, own, t->now_ns);
	return t;
}

static void volume_new(struct kunit *test, struct sutro_test **ret_here,
		       struct sutro_test **ret_there)
{
	memset(&leaves, 0, sizeof(leaves));
	*ret_here = leaf_new(test);
	*ret_there = leaf_new(test);
}

/* a gets a request; returns the time that counts as its think time. */
static u64 begin(struct sutro_test *t, u64 now_ns)
{
	u64 ns = now_ns - t->a.empty_since_ns;

	KUNIT_EXPECT_TRUE(t->test,
			  sutro_volume_think_ns(t->a.protect, now_ns, &ns));
	sutro_think_add(&t->a.protect->think, div_u64(ns, 1000));
	t->a.in_flight = 1;
	sutro_volume_count(t->a.protect, now_ns);
	return ns;
}

static void end(struct sutro_test *t, u64 now_ns)
{
	t->a.in_flight = 0;
	t->a.empty_since_ns = now_ns;
	sutro_volume_count(t->a.protect, now_ns);
}

/* a reads one block at a time, of either leaf, and thinks; returns the time after that. */
static u64 move(struct sutro_test *here, struct sutro_test *there, int times)
{
	u64 now_ns = here->now_ns, random = 1;

	while (times--) {
		struct sutro_test *t = random_below(&random, 2) ? here : there;

		begin(t, now_ns);
		end(t, now_ns + READ_NS);
		now_ns += READ_NS + THINK_NS;
	}
	return now_ns - THINK_NS;
}

/* A group that moves begins to think with its last completion at any leaf. */
static void sutro_test_thinks_when_idle(struct kunit *test)
{
	struct sutro_test *here, *there;
	u64 now_ns;

	volume_new(test, &here, &there);
	now_ns = move(here, there, MANY) + THINK_NS;
	begin(there, now_ns);
	end(there, now_ns + READ_NS);
	now_ns += READ_NS + THINK_NS;
	KUNIT_EXPECT_EQ(test, begin(here, now_ns), THINK_NS);
	EXPECT_NEAR(test, here->a.protect->think.mean_us, THINK_NS / 1000, 8);
	EXPECT_NEAR(test, there->a.protect->think.mean_us, THINK_NS / 1000, 8);
}

/* While it has a request at another leaf, there is no gap, and it is not away. */
static void sutro_test_gap_needs_all(struct kunit *test)
{
	struct sutro_test *here, *there;
	u64 now_ns;

	volume_new(test, &here, &there);
	now_ns = move(here, there, MANY);
	KUNIT_EXPECT_NULL(test, sutro_protect_awaited(&here->core, now_ns));
	KUNIT_EXPECT_NULL(test, sutro_protect_awaited(&there->core, now_ns));
	begin(there, now_ns);
	KUNIT_EXPECT_PTR_EQ(test, sutro_protect_awaited(&here->core, now_ns),
			    &here->a);
	KUNIT_EXPECT_FALSE(test, sutro_is_away(&here->core, &here->a, now_ns));
	now_ns += 10 * THINK_NS;
	KUNIT_EXPECT_PTR_EQ(test, sutro_protect_awaited(&here->core, now_ns),
			    &here->a);
	KUNIT_EXPECT_FALSE(test, sutro_is_away(&here->core, &here->a, now_ns));
	end(there, now_ns);
	KUNIT_EXPECT_NULL(test, sutro_protect_awaited(&here->core, now_ns));
}

/* It stays protected meanwhile, for a second at most. */
static void sutro_test_stays_protected(struct kunit *test)
{
	struct sutro_test *here, *there;
	u64 now_ns, leave_at_ns;

	volume_new(test, &here, &there);
	now_ns = move(here, there, MANY);
	leave_at_ns = sutro_protect_leave_ns(&here->core, &here->a, now_ns);
	KUNIT_EXPECT_LT(test, leave_at_ns, now_ns + 2 * THINK_NS);
	begin(there, now_ns);
	now_ns += 100 * MS;
	KUNIT_EXPECT_TRUE(test, sutro_volume_used(here->a.protect));
	leave_at_ns = sutro_protect_leave_ns(&here->core, &here->a, now_ns);
	KUNIT_EXPECT_GT(test, leave_at_ns, now_ns);
	KUNIT_EXPECT_LT(test, leave_at_ns, now_ns + 2 * THINK_NS);
	now_ns += 1000 * MS;
	KUNIT_EXPECT_LE(test,
			sutro_protect_leave_ns(&here->core, &here->a, now_ns),
			now_ns);
}

/* Requests that come to either leaf whether the other one has some or not: each is for itself. */
static void sutro_test_independent_leaves(struct kunit *test)
{
	u64 next_ns[2], done_ns[2] = { 0, 0 }, now_ns, random = 1;
	struct sutro_test *t[2];
	int i, n;

	volume_new(test, &t[0], &t[1]);
	now_ns = t[0]->now_ns;
	next_ns[0] = now_ns + MS;
	next_ns[1] = now_ns + 2 * MS;
	for (n = 0; n < 100 * MANY; n++, now_ns += MS / 20) {
		for (i = 0; i < 2; i++) {
			if (done_ns[i] && done_ns[i] <= now_ns) {
				end(t[i], now_ns);
				done_ns[i] = 0;
				next_ns[i] = now_ns + THINK_NS +
					     random_below(&random, 4 * MS);
			}
			if (!done_ns[i] && next_ns[i] <= now_ns) {
				begin(t[i], now_ns);
				done_ns[i] = now_ns + MS;
			}
		}
	}
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_GE(test, t[i]->a.protect->think.mean_us,
				THINK_NS / 1000);
	end(t[0], now_ns);
	begin(t[1], now_ns);
	KUNIT_EXPECT_FALSE(test, sutro_volume_is_busy(t[0]->a.protect));
	KUNIT_EXPECT_EQ(test, sutro_volume_since_ns(t[0]->a.protect),
			t[0]->a.empty_since_ns);
}

/* A write to all leaves of a mirror is one request, and so are two parts of one. */
static void sutro_test_split_requests(struct kunit *test)
{
	struct sutro_test *here, *there;
	u64 now_ns;
	int i;

	volume_new(test, &here, &there);
	now_ns = here->now_ns;
	for (i = 0; i < MANY; i++) {
		begin(here, now_ns);
		begin(there, now_ns + MS / 50);
		end(i % 2 ? here : there, now_ns + READ_NS);
		end(i % 2 ? there : here, now_ns + 2 * READ_NS);
		now_ns += 2 * READ_NS + THINK_NS;
	}
	begin(there, now_ns);
	KUNIT_EXPECT_TRUE(test, sutro_volume_is_busy(here->a.protect));
	EXPECT_NEAR(test, here->a.protect->think.mean_us, THINK_NS / 1000, 8);
	EXPECT_NEAR(test, there->a.protect->think.mean_us, THINK_NS / 1000, 8);
}

/* All leaves have the smallest shared part of one that has set its own lately. */
static void sutro_test_smallest_part(struct kunit *test)
{
	struct sutro_group_protect *own;
	struct sutro_test *here, *there;
	u64 now_ns;

	volume_new(test, &here, &there);
	now_ns = here->now_ns;
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&here->core, 30, now_ns), 30U);
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&there->core, 900, now_ns),
			900U);
	now_ns = move(here, there, MANY);
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&here->core, 30, now_ns), 30U);
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&there->core, 900, now_ns),
			30U);
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&here->core, 60, now_ns), 60U);
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&there->core, 900, now_ns),
			60U);
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&there->core, 20, now_ns), 20U);
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&here->core, 60, now_ns), 20U);
	now_ns += 2 * there->core.protect.cycle_ns;
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&here->core, 60, now_ns), 60U);
	/* The other leaf has stored all but the part, which is read first. */
	own = list_first_entry(&there->core.protect.groups,
			       struct sutro_group_protect, list);
	own->leaves->part = 0;
	KUNIT_EXPECT_EQ(test, sutro_volume_part(&there->core, 30, now_ns), 30U);
}

static struct kunit_case sutro_volume_cases[] = {
	KUNIT_CASE(sutro_test_thinks_when_idle),
	KUNIT_CASE(sutro_test_gap_needs_all),
	KUNIT_CASE(sutro_test_stays_protected),
	KUNIT_CASE(sutro_test_independent_leaves),
	KUNIT_CASE(sutro_test_split_requests),
	KUNIT_CASE(sutro_test_smallest_part),
	{},
};

sutro_suite(sutro_volume, "Sutro's protected groups on several leaves");
