// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of gaps (sutro-gap.c): which requests of other groups are sent while a protected
 * group thinks, and how late ones change that.
 */
#include <linux/slab.h>

#include "sutro_test.h"

#define GAP_NS (5 * MS)
#define LATENCY_NS (MS / 10)
/* The part of a gap without the latency of the device. */
#define ROOM_NS (GAP_NS - 5 * LATENCY_NS / 2)
#define DRAWS 20000

/* a is protected, thinks for GAP_NS, and has just begun to; others have a reserved window. */
static struct sutro_test *gap_new(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_protect *protect = &t->core.protect;
	struct sutro_group_protect *own = kzalloc(sizeof(*own), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, own);
	own->group = &t->a;
	own->awaited = true;
	sutro_think_add(&own->think, GAP_NS / 1000);
	list_add(&own->list, &protect->groups);
	t->a.protect = own;
	t->a.empty_since_ns = t->now_ns;
	t->core.now_ns = t->now_ns;
	t->core.tunables.latency_ns = LATENCY_NS;
	t->core.gap = true;
	protect->other_ns = MS;
	protect->reserved = true;
	protect->clear = true;
	return t;
}

static bool fits(struct sutro_test *t, u64 cost_ns)
{
	sutro_protect_awaited(&t->core, t->now_ns);
	return sutro_core_fits(&t->core, cost_ns, true, t->now_ns);
}

/* A request is sent if all at the device are done in time; out of turn, if it fits in twice. */
static void sutro_test_rest_of_gap(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);

	KUNIT_EXPECT_TRUE(test, fits(t, ROOM_NS - MS / 10));
	KUNIT_EXPECT_FALSE(test, fits(t, ROOM_NS + MS / 10));
	KUNIT_EXPECT_TRUE(test, sutro_core_fits(&t->core, ROOM_NS * 4 / 10,
						false, t->now_ns));
	KUNIT_EXPECT_FALSE(test, sutro_core_fits(&t->core, ROOM_NS * 6 / 10,
						 false, t->now_ns));
	t->core.in_flight_ns = 2 * MS;
	KUNIT_EXPECT_TRUE(test, fits(t, 2 * MS));
	KUNIT_EXPECT_FALSE(test, fits(t, 3 * MS));
	t->now_ns += 3 * MS;
	t->core.in_flight_ns = 0;
	KUNIT_EXPECT_TRUE(test, fits(t, MS));
	KUNIT_EXPECT_FALSE(test, fits(t, 2 * MS));
}

/* A gap has begun for a dispatcher, too, that took its time before the last completion. */
static void sutro_test_begin_of_gap(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);

	KUNIT_EXPECT_TRUE(test, fits(t, MS));
	t->now_ns -= MS / 200;
	KUNIT_EXPECT_TRUE(test, fits(t, MS));
}

/* A group is not back before it was: others have not left more of its time unused. */
static void sutro_test_back_in_order(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);

	t->now_ns += MS;
	sutro_core_queue(&t->core, &t->a, true, t->now_ns + MS / 200);
	sutro_core_dispatch(&t->core, &t->a, 0);
	sutro_core_complete(&t->core, &t->a, 1, 0, 0, t->now_ns);
	KUNIT_EXPECT_EQ(test, t->a.protect->spare_ns, 0);
	sutro_core_queue(&t->core, &t->a, true, t->now_ns);
	KUNIT_EXPECT_EQ(test, t->a.protect->spare_ns, 0);
}

/* Without a gap, and where gaps are judged before a request is chosen, all requests fit. */
static void sutro_test_no_gap(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);

	t->core.tunables.rotational = true;
	KUNIT_EXPECT_TRUE(test, fits(t, 10 * GAP_NS));
	t->core.tunables.rotational = false;
	KUNIT_EXPECT_FALSE(test, fits(t, 10 * GAP_NS));
	t->core.gap = false;
	KUNIT_EXPECT_TRUE(test, fits(t, 10 * GAP_NS));
}

/* Others that were late are expected to take longer; if they are in time, less again. */
static void sutro_test_late_in_gaps(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);
	u64 cost_ns = ROOM_NS * 8 / 10;
	int nr;

	t->core.in_flight = 1;
	for (nr = 0; fits(t, cost_ns) && nr < 100; nr++)
		sutro_gap_back(&t->core, &t->a, GAP_NS);
	KUNIT_EXPECT_GE(test, nr, 2);
	KUNIT_EXPECT_LE(test, nr, 4);
	t->core.in_flight = 0;
	for (nr = 0; !fits(t, cost_ns) && nr < 10000; nr++)
		sutro_gap_back(&t->core, &t->a, GAP_NS);
	KUNIT_EXPECT_LE(test, nr, 1024);
	/* A group that is back earlier than ever does not show that others were late. */
	t->core.in_flight = 1;
	for (nr = 0; nr < 100; nr++)
		sutro_gap_back(&t->core, &t->a, GAP_NS / 2);
	KUNIT_EXPECT_TRUE(test, fits(t, cost_ns));
}

/* If the group was back early, others that were late show half as much. */
static void sutro_test_early_in_gaps(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);
	struct sutro_think *think = &t->a.protect->think;
	u32 more[2], i;

	think->sorted_us[0] = GAP_NS / 4000;
	think->quiet_from_us = GAP_NS / 4000;
	t->core.in_flight = 1;
	for (i = 0; i < 2; i++) {
		t->core.protect.gap_more = 0;
		sutro_gap_back(&t->core, &t->a, i ? GAP_NS / 2 : GAP_NS);
		more[i] = t->core.protect.gap_more;
	}
	KUNIT_EXPECT_GT(test, more[1], 0);
	KUNIT_EXPECT_EQ(test, more[1], more[0] / 2);
}

/* The only request of another group is sent in a reserved window, but not at once. */
static void sutro_test_light_request(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);

	t->core.protect.by_share = true;
	arrive(t, &t->e, 1);
	t->e.cheap = true;
	KUNIT_EXPECT_NULL(test, sutro_starved_next(&t->core, t->now_ns));
	t->now_ns += 17 * MS;
	KUNIT_EXPECT_PTR_EQ(test, sutro_starved_next(&t->core, t->now_ns),
			    &t->e);
}

/* A group that comes back at once or after GAP_NS is waited for, and then others are served. */
static void sutro_test_gap_begins_later(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);
	struct sutro_think *think = &t->a.protect->think;
	int i;

	for (i = 0; i < SUTRO_THINK_NR; i++)
		sutro_think_add(think, i % 2 ? GAP_NS / 1000 : 100);
	t->a.leave_at_ns = t->now_ns + 2 * GAP_NS;
	KUNIT_EXPECT_FALSE(test, fits(t, MS));
	KUNIT_EXPECT_EQ(test, sutro_protect_look_ns(&t->core, &t->a, t->now_ns),
			t->now_ns + MS / 10);
	t->now_ns += MS / 10;
	KUNIT_EXPECT_TRUE(test, fits(t, MS));
	KUNIT_EXPECT_FALSE(test, fits(t, GAP_NS));
	KUNIT_EXPECT_EQ(test, sutro_protect_look_ns(&t->core, &t->a, t->now_ns),
			t->a.leave_at_ns);
	t->now_ns += GAP_NS;
	KUNIT_EXPECT_FALSE(test, fits(t, MS / 10));
}

/* Beside a latency-sensitive group, half as many gaps may be too short. */
static void sutro_test_late_beside_sensitive(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);
	u64 cost_ns = ROOM_NS * 8 / 10;
	int nr[2], i, j;

	for (i = 0; i < 2; i++) {
		t->core.protect.sensitive = i;
		t->core.in_flight = 1;
		for (j = 0; j < 10; j++)
			sutro_gap_back(&t->core, &t->a, GAP_NS);
		t->core.in_flight = 0;
		for (nr[i] = 0; !fits(t, cost_ns) && nr[i] < 100000; nr[i]++)
			sutro_gap_back(&t->core, &t->a, GAP_NS);
	}
	KUNIT_EXPECT_GE(test, nr[1], nr[0] * 18 / 10);
}

/* Shares divide the time among groups that are served out of turn. */
static void sutro_test_out_of_turn(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);
	u64 got_ns[2] = {}, chances;
	int i, drawn;

	sutro_group_set_weight(&t->b, 300);
	arrive(t, &t->b, 1);
	arrive(t, &t->e, 1);
	for (i = 0; i < DRAWS; i++) {
		chances = 0;
		drawn = !sutro_gap_draw(&t->core.protect, &t->b, 4 * MS,
					&chances);
		KUNIT_ASSERT_EQ(test, drawn, 0);
		drawn = sutro_gap_draw(&t->core.protect, &t->e, MS, &chances);
		got_ns[drawn] += drawn ? MS : 4 * MS;
	}
	EXPECT_NEAR(test, got_ns[0], 3 * got_ns[1], got_ns[0] / 10);
}

/* A group depends on shared windows if no request of it fits into a whole gap. */
static void sutro_test_unfit(struct kunit *test)
{
	struct sutro_test *t = gap_new(test);
	struct sutro_protect *protect = &t->core.protect;

	sutro_gap_missed(&t->core, ROOM_NS / 2);
	KUNIT_EXPECT_FALSE(test, protect->unfit);
	sutro_gap_missed(&t->core, U64_MAX);
	KUNIT_EXPECT_FALSE(test, protect->unfit);
	t->core.in_flight = 1;
	sutro_gap_missed(&t->core, 2 * ROOM_NS);
	KUNIT_EXPECT_FALSE(test, protect->unfit);
	t->core.in_flight = 0;
	sutro_gap_missed(&t->core, 2 * ROOM_NS);
	KUNIT_EXPECT_TRUE(test, protect->unfit);
}

static struct kunit_case sutro_gap_cases[] = {
	KUNIT_CASE(sutro_test_rest_of_gap),
	KUNIT_CASE(sutro_test_begin_of_gap),
	KUNIT_CASE(sutro_test_back_in_order),
	KUNIT_CASE(sutro_test_no_gap),
	KUNIT_CASE(sutro_test_late_in_gaps),
	KUNIT_CASE(sutro_test_early_in_gaps),
	KUNIT_CASE(sutro_test_light_request),
	KUNIT_CASE(sutro_test_gap_begins_later),
	KUNIT_CASE(sutro_test_late_beside_sensitive),
	KUNIT_CASE(sutro_test_out_of_turn),
	KUNIT_CASE(sutro_test_unfit),
	{}
};

sutro_suite(sutro_gap, "gaps");
