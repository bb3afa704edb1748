// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of reserved time (sutro-reserve.c). */
#include "sutro_load_test.h"

/* In the time that is reserved for it, a group of less weight has what it has alone. */
static void sutro_test_reserved(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	sutro_group_set_weight(load->many, 300);
	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	load_measure(load);
	/* Requests of e are at the device for at most 1/6 of a cycle when that begins. */
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR / 3);
	KUNIT_EXPECT_LE(test, load->few_nr, 10 * ALONE_NR * 105 / 200);
	KUNIT_EXPECT_GE(test, load->many_nr,
			(int)(10 * SECOND_NS / LARGE_NS * 45 / 100));
	/* The windows are its own, whatever its requests are estimated to take. */
	load->few->reserve_used_ns = 2 * SECOND_NS;
	KUNIT_EXPECT_FALSE(test,
			   sutro_reserve_is_used_up(&load->t->core.protect,
						    load->few->protect));

	load->few->reserve = 0;
	sutro_protect_changed(&load->t->core);
	load_run(load, SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->few));
}

/*
 * So it has if less is reserved than a sample takes, and when that ends, others are not served
 * for it first.
 */
static void sutro_test_reserved_little(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	load->t->core.tunables.depth_ns = LARGE_NS;
	sutro_group_set_weight(load->few, 10);
	sutro_group_set_weight(load->many, 1000);
	load->few->reserve = SUTRO_RESERVE_WHOLE / 40;
	load_measure(load);
	KUNIT_EXPECT_EQ(test, load->t->core.protect.part,
			SUTRO_PROTECT_MOST_PART);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR / 40);

	load->few->reserve = 0;
	load->t->core.protect.changed = true;
	load_run(load, 5 * SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_GE(test, load->few_nr, 15);
}

/* The same on a rotational device, where no other group is protected. */
static void sutro_test_reserved_rotational(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	struct sutro_tunables *tunables = &load->t->core.tunables;

	tunables->rotational = true;
	tunables->slice_ns = SLICE_NS;
	tunables->group_idle_ns = IDLE_NS;
	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	load_measure(load);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->many));
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR / 3);
	KUNIT_EXPECT_GE(test, load->many_nr,
			(int)(10 * SECOND_NS / LARGE_NS / 4));

	load->few->reserve = 0;
	sutro_group_set_weight(load->few, 1000);
	load->t->core.protect.changed = true;
	load_run(load, SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->few));
}

/* A group with many large requests uses no more of common windows than is reserved for it. */
static void sutro_test_reserved_for_two(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	arrive_far(load->t, load->equal, DEEP);
	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	load->equal->reserve = SUTRO_RESERVE_WHOLE / 4;
	load_measure(load);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR / 3);
	load->few->reserve_used_ns = 2 * SECOND_NS;
	KUNIT_EXPECT_TRUE(test, sutro_reserve_is_used_up(&load->t->core.protect,
							 load->few->protect));
	/* At least its own part, less one request in each cycle. */
	KUNIT_EXPECT_GE(test, load->equal_nr * LARGE_NS,
			10 * SECOND_NS / 4 * 90 / 100);
	KUNIT_EXPECT_GE(test, load->many_nr * LARGE_NS,
			10 * SECOND_NS / 10 * 80 / 100);
}

/* Beside a heavier group with large requests, which is protected for its share, a has its time. */
static void sutro_test_reserved_beside_share(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	sutro_group_set_weight(load->equal, 1000);
	arrive_far(load->t, load->equal, 1);
	load_measure(load);
	KUNIT_EXPECT_TRUE(test, load->t->core.protect.by_share);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR * 4 / 10);
	KUNIT_EXPECT_GE(test, load->equal_nr,
			(int)(10 * SECOND_NS / LARGE_NS * 3 / 10));
}

/*
 * While a thinks, a group that is protected for its share waits for the end of the reserved part,
 * and not for the end of the cycle.
 */
static void sutro_test_reserved_ends(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	u64 now_ns, end_ns;

	load->few->reserve = SUTRO_RESERVE_WHOLE / 4;
	load_run(load, 4 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	now_ns = protect->shared_ns;
	end_ns = now_ns + protect->cycle_ns / 4;
	protect->reserved = true;
	load->few->leave_at_ns = now_ns + SECOND_NS;
	KUNIT_EXPECT_EQ(test, sutro_protect_look_ns(core, load->few, now_ns),
			end_ns);
	KUNIT_EXPECT_GT(test, sutro_protect_look_ns(core, load->few, end_ns),
			end_ns);
}

/*
 * The device is kept for a, whose reserved time it is, and not for b, which is protected for its
 * share: b is served when that time is over, or used up.
 */
static void sutro_test_reserved_gap(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	u64 part_ns;

	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	sutro_group_set_weight(load->equal, 1000);
	arrive_far(load->t, load->equal, 1);
	load_run(load, 4 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->equal));
	core->now_ns = protect->shared_ns;
	protect->reserved = true;
	load->few->in_flight = 0;
	load->equal->in_flight = 1;
	KUNIT_EXPECT_PTR_EQ(test, sutro_gap_last(core), load->few);
	core->now_ns += protect->cycle_ns / 2;
	KUNIT_EXPECT_PTR_EQ(test, sutro_gap_last(core), load->equal);

	/* A group elsewhere has reserved time as well, and has used it up, as a has. */
	core->now_ns = protect->shared_ns;
	protect->reserving = 2;
	part_ns = protect->cycle_ns / 2;
	load->few->reserve_used_ns = part_ns - 1;
	KUNIT_EXPECT_PTR_EQ(test, sutro_gap_last(core), load->few);
	protect->used_up = 1;
	sutro_reserve_sent(protect, load->few->protect, 1);
	KUNIT_EXPECT_PTR_EQ(test, sutro_gap_last(core), load->equal);
	KUNIT_EXPECT_FALSE(test, sutro_reserve_is_left(protect, core->now_ns));
}

/* Time that is reserved for a group is there for all below it, and is reserved once. */
static void sutro_test_reserved_subtree(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u32 depth;

	t->b.reserve = SUTRO_RESERVE_WHOLE / 4;
	arrive(t, &t->a, 1);
	arrive(t, &t->c, 1);
	arrive(t, &t->d, 1);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(&t->a));
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(&t->c));
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(&t->d));
	sutro_protect_share(&t->core, true, &depth, t->now_ns);
	KUNIT_EXPECT_EQ(test, t->core.protect.reserve, SUTRO_PROTECT_WHOLE / 4);
	t->d.reserve = SUTRO_RESERVE_WHOLE / 2;
	sutro_protect_share(&t->core, true, &depth, t->now_ns);
	KUNIT_EXPECT_EQ(test, t->core.protect.reserve,
			SUTRO_PROTECT_WHOLE * 3 / 4);
}

static struct kunit_case sutro_reserve_cases[] = {
	KUNIT_CASE(sutro_test_reserved),
	KUNIT_CASE(sutro_test_reserved_little),
	KUNIT_CASE(sutro_test_reserved_rotational),
	KUNIT_CASE(sutro_test_reserved_for_two),
	KUNIT_CASE(sutro_test_reserved_beside_share),
	KUNIT_CASE(sutro_test_reserved_ends),
	KUNIT_CASE(sutro_test_reserved_gap),
	KUNIT_CASE(sutro_test_reserved_subtree),
	{}
};

sutro_suite(sutro_reserve, "reserved time");
