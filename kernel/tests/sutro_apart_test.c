// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of groups beside several protected ones (sutro-apart.c, sutro-others.c). */
#include "sutro_load_test.h"

/* a has one small request at a time and b many large ones, both with ten times the weight of e. */
static struct load *load_of_two(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	arrive_far(load->t, load->equal, DEEP);
	sutro_group_set_weight(load->few, 1000);
	sutro_group_set_weight(load->equal, 1000);
	load_run(load, 4 * SECOND_NS);
	return load;
}

/* Each receives nearly half of its rate alone. */
static void sutro_test_apart(struct kunit *test)
{
	struct load *load = load_of_two(test);

	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR * 45 / 100);
	KUNIT_EXPECT_GE(test, load->equal_nr * LARGE_NS,
			10 * SECOND_NS * 45 / 100);
	/* e is entitled to 1/21, and has more than half of that. */
	KUNIT_EXPECT_GE(test, load->many_nr * LARGE_NS,
			10 * SECOND_NS / 21 / 2);
}

/* By their shares: b has one and a half times the weight. */
static void sutro_test_apart_shares(struct kunit *test)
{
	struct load *load = load_of_two(test);

	sutro_group_set_weight(load->equal, 1500);
	sutro_protect_changed(&load->t->core);
	load_measure(load);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR * 36 / 100);
	KUNIT_EXPECT_GE(test, load->equal_nr * LARGE_NS,
			10 * SECOND_NS * 55 / 100);
}

/* The rates of a group, in requests of as many ns as phases of each kind have. */
static void set_rates(struct sutro_protect *protect, struct sutro_group *group,
		      u32 beside, u32 alone)
{
	struct sutro_phase_sum *phases = group->protect->phases;
	u32 i;

	sutro_apart_turn(protect, group->protect);
	sutro_apart_turn(protect, group->protect);
	for (i = 0; i < SUTRO_PHASES; i++)
		phases[i].ns = protect->phase_ns[i] - protect->cycle_ns;
	phases[SUTRO_PHASE_SHARED].nr = 0;
	phases[SUTRO_PHASE_BESIDE].nr = beside;
	phases[SUTRO_PHASE_ALONE].nr = alone;
}

static u64 alone_ns(const struct sutro_protect *protect,
		    const struct sutro_group *group)
{
	return protect->phase_ns[SUTRO_PHASE_ALONE] -
	       group->protect->phases[SUTRO_PHASE_ALONE].ns;
}

/* A cycle in which no rate is measured. */
static void begin(struct sutro_core *core)
{
	sutro_apart_end(core);
	sutro_apart_begin(core, true, core->protect.cycle_ns);
	core->protect.reserved = true;
	core->protect.clear = true;
}

/* No group waits if none has less beside others than half of its rate alone. */
static void sutro_test_apart_if_needed(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;

	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->equal));
	set_rates(protect, load->few, 60, 100);
	set_rates(protect, load->equal, 20, 30);
	begin(core);
	KUNIT_EXPECT_FALSE(test, protect->apart);
	sutro_apart_sent(core, load->equal->protect, protect->cycle_ns);
	KUNIT_EXPECT_FALSE(test,
			   sutro_apart_waits(protect, load->equal->protect));

	set_rates(protect, load->few, 40, 100);
	begin(core);
	KUNIT_EXPECT_TRUE(test, protect->apart);
	sutro_apart_sent(core, load->equal->protect, protect->cycle_ns);
	KUNIT_EXPECT_TRUE(test,
			  sutro_apart_waits(protect, load->equal->protect));
	KUNIT_EXPECT_FALSE(test,
			   sutro_apart_waits(protect, load->few->protect));
	/* Protected groups do not wait for each other in shared windows. */
	protect->reserved = false;
	KUNIT_EXPECT_FALSE(test,
			   sutro_apart_waits(protect, load->equal->protect));

	core->tunables.rotational = true;
	begin(core);
	KUNIT_EXPECT_TRUE(test, protect->apart);
	core->tunables.rotational = false;
	protect->reserve = SUTRO_PROTECT_WHOLE / 4;
	begin(core);
	KUNIT_EXPECT_FALSE(test, protect->apart);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, NULL);
}

/* As much is shared as leaves each group its share, and a sixteenth of that more. */
static void sutro_test_apart_shared(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	u64 share = sutro_group_share(load->few, SUTRO_PROTECT_WHOLE);
	u64 due = share * 17 / 16;

	set_rates(protect, load->few, 900, 1000);
	set_rates(protect, load->equal, 900, 1000);
	begin(core);
	KUNIT_EXPECT_FALSE(test, protect->apart);
	EXPECT_NEAR(test, sutro_apart_most_shared(core),
		    (921 - due) * SUTRO_PROTECT_WHOLE / 921, 4);
	/* Those that receive their share in shared windows need no reserved ones. */
	load->few->protect->phases[SUTRO_PHASE_SHARED].nr = 900;
	load->equal->protect->phases[SUTRO_PHASE_SHARED].nr = 900;
	KUNIT_EXPECT_EQ(test, sutro_apart_most_shared(core),
			SUTRO_PROTECT_WHOLE);
	/* One that receives less than its share in reserved ones, too, needs all of the time. */
	set_rates(protect, load->few, 300, 1000);
	KUNIT_EXPECT_EQ(test, sutro_apart_most_shared(core), 0);
	protect->reserve = SUTRO_PROTECT_WHOLE / 4;
	KUNIT_EXPECT_EQ(test, sutro_apart_most_shared(core),
			SUTRO_PROTECT_WHOLE);
}

/* With seeks, no more is shared while the rate alone of a group without a backlog is not known. */
static void sutro_test_apart_seeks(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;

	set_rates(protect, load->few, 900, 0);
	set_rates(protect, load->equal, 900, 0);
	KUNIT_EXPECT_EQ(test, sutro_apart_most_shared(core),
			SUTRO_PROTECT_WHOLE);
	core->tunables.rotational = true;
	load->few->queued = 0;
	KUNIT_EXPECT_EQ(test, sutro_apart_most_shared(core), 0);
	set_rates(protect, load->few, 900, 1000);
	KUNIT_EXPECT_GE(test, sutro_apart_most_shared(core),
			SUTRO_PROTECT_WHOLE / 3);

	/* It has reserved windows, and others do not wait for it in shared ones. */
	protect->part = SUTRO_PROTECT_WHOLE / 2;
	KUNIT_EXPECT_TRUE(test, sutro_others_skip(core, load->few));
	KUNIT_EXPECT_FALSE(test, sutro_others_skip(core, load->many));
	protect->part = SUTRO_PROTECT_MOST_PART;
	KUNIT_EXPECT_FALSE(test, sutro_others_skip(core, load->few));
	protect->part = SUTRO_PROTECT_WHOLE / 2;
	core->tunables.rotational = false;
	KUNIT_EXPECT_FALSE(test, sutro_others_skip(core, load->few));
}

/* A group of which the rate alone is not known has its part first, and others wait. */
static void sutro_test_apart_first(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *few = load->few->protect;
	struct sutro_group_protect *equal = load->equal->protect;

	set_rates(protect, load->few, 10, 0);
	few->phases[SUTRO_PHASE_ALONE].ns =
		protect->phase_ns[SUTRO_PHASE_ALONE];
	set_rates(protect, load->equal, 10, 30);
	begin(core);
	KUNIT_EXPECT_TRUE(test, protect->apart);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, few);
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, equal));
	KUNIT_EXPECT_FALSE(test, sutro_apart_waits(protect, few));

	/* Nothing sent in a gap counts. */
	core->gap = true;
	sutro_apart_sent(core, few, protect->cycle_ns);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, few);
	core->gap = false;
	sutro_apart_sent(core, few, protect->cycle_ns);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, NULL);
	KUNIT_EXPECT_FALSE(test, sutro_apart_waits(protect, equal));
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, few));

	/* The time beyond its part counts in the next window. */
	begin(core);
	KUNIT_EXPECT_GT(test, few->window_ns, 0ULL);
	KUNIT_EXPECT_LT(test, few->window_ns, protect->cycle_ns);

	/* When it is no longer protected, no group waits for it. */
	protect->first = few;
	sutro_protect_drop(core, load->few);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, NULL);
}

/* It is first until it was alone for 10 ms, also if it has no request then. */
static void sutro_test_apart_first_ends(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	u64 now_ns = load->t->now_ns;

	set_rates(protect, load->few, 60, 100);
	set_rates(protect, load->equal, 20, 30);
	load->equal->in_flight = 0;
	begin(core);
	protect->first = load->few->protect;
	sutro_apart_begin(core, false, now_ns);
	KUNIT_EXPECT_TRUE(test, protect->waited);
	sutro_apart_passed(protect, 4 * MS);
	sutro_apart_check(protect);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, load->few->protect);
	KUNIT_EXPECT_EQ(test, sutro_apart_look_ns(protect, now_ns),
			now_ns + 6 * MS);
	sutro_apart_passed(protect, 6 * MS);
	sutro_apart_check(protect);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, NULL);
	KUNIT_EXPECT_FALSE(test,
			   sutro_apart_waits(protect, load->equal->protect));
}

/* A group that waits from the beginning of a window on leaves the others alone. */
static void sutro_test_apart_rate(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *equal = load->equal->protect;
	u64 few_ns, equal_ns, equal_nr;

	set_rates(protect, load->few, 40, 100);
	set_rates(protect, load->equal, 20, 30);
	begin(core);
	sutro_apart_sent(core, equal, 3 * protect->cycle_ns);
	load->equal->in_flight = 0;
	set_rates(protect, load->few, 40, 100);
	begin(core);
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, equal));
	KUNIT_EXPECT_TRUE(test, protect->waited);
	few_ns = alone_ns(protect, load->few);
	equal_ns = alone_ns(protect, load->equal);
	equal_nr = equal->phases[SUTRO_PHASE_ALONE].nr;
	sutro_apart_passed(protect, 10 * MS);
	/* Its requests arrive while it waits, and it is not alone. */
	sutro_apart_seen(protect, equal, 5);
	KUNIT_EXPECT_EQ(test, equal->phases[SUTRO_PHASE_ALONE].nr, equal_nr);
	begin(core);
	KUNIT_EXPECT_EQ(test, alone_ns(protect, load->few), few_ns + 10 * MS);
	KUNIT_EXPECT_EQ(test, alone_ns(protect, load->equal), equal_ns);

	/* With its requests at the device, no group is alone. */
	load->equal->in_flight = 1;
	sutro_apart_end(core);
	sutro_apart_begin(core, true, protect->cycle_ns);
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, equal));
	KUNIT_EXPECT_FALSE(test, protect->waited);
	load->equal->in_flight = 0;
	sutro_apart_completed(protect, equal, LARGE_NS);
	KUNIT_EXPECT_TRUE(test, protect->waited);
}

/* A group that joins in the middle of a window has no part of it yet, and does not wait. */
static void sutro_test_apart_joins(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *equal = load->equal->protect;
	u64 ns;

	set_rates(protect, load->few, 40, 100);
	set_rates(protect, load->equal, 20, 30);
	begin(core);
	protect->waited = true;
	sutro_apart_passed(protect, 5 * MS);
	sutro_protect_drop(core, load->equal);
	sutro_apart_passed(protect, 5 * MS);
	list_add_tail(&equal->list, &protect->groups);
	protect->nr++;
	sutro_apart_turn(protect, equal);
	ns = alone_ns(protect, load->equal);
	sutro_apart_sent(core, equal, protect->cycle_ns);
	KUNIT_EXPECT_FALSE(test, sutro_apart_waits(protect, equal));
	begin(core);
	KUNIT_EXPECT_EQ(test, alone_ns(protect, load->equal), ns);
	KUNIT_EXPECT_GT(test, (s64)ns, 0LL);
}

/*
 * While a thinks, others are served, although b has requests and waits: it is not b that the
 * device is kept for.
 */
static void sutro_test_apart_gap(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	u64 now_ns = load->t->now_ns;

	core->tunables.latency_ns = MS / 10;
	set_rates(protect, load->few, 40, 100);
	set_rates(protect, load->equal, 20, 30);
	begin(core);
	sutro_apart_sent(core, load->equal->protect, 3 * protect->cycle_ns);
	KUNIT_EXPECT_GT(test, load->equal->queued, 0);
	KUNIT_EXPECT_PTR_EQ(test, sutro_gap_last(core), load->few);
	load->few->protect->think.quiet_from_us = 0;
	load->few->protect->think.quiet_to_us = 100000;
	load->few->in_flight = 0;
	load->few->queued = 0;
	load->few->empty_since_ns = now_ns;
	core->in_flight = 0;
	core->in_flight_ns = 0;
	KUNIT_EXPECT_PTR_EQ(test, sutro_protect_awaited(core, now_ns), NULL);
	KUNIT_EXPECT_GT(test, protect->gap_end_ns, now_ns + 50 * MS);
}

/* A group with a missed latency target waits only for those that are entitled to more. */
static void sutro_test_apart_target(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *equal = load->equal->protect;
	struct sutro_latency latency = { .held = SUTRO_PROTECT_WHOLE / 2 };

	protect->apart = true;
	equal->latency = &latency;
	begin(core);
	protect->first = NULL;
	protect->apart = true;
	equal->part_ns = MS;
	sutro_apart_sent(core, equal, LARGE_NS);
	KUNIT_EXPECT_FALSE(test, sutro_apart_waits(protect, equal));
	sutro_group_set_weight(load->equal, 500);
	sutro_apart_sent(core, equal, LARGE_NS);
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, equal));
	/* Groups with different targets wait for each other, also on a rotational device. */
	sutro_group_set_weight(load->equal, 2000);
	core->tunables.rotational = true;
	protect->by_target = true;
	protect->rivals = true;
	begin(core);
	protect->first = NULL;
	protect->apart = true;
	equal->part_ns = MS;
	sutro_apart_sent(core, equal, LARGE_NS);
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, equal));
	/* Not while costs are guesses. */
	core->tunables.guessing = true;
	begin(core);
	protect->first = NULL;
	protect->apart = true;
	equal->part_ns = MS;
	sutro_apart_sent(core, equal, LARGE_NS);
	KUNIT_EXPECT_FALSE(test, sutro_apart_waits(protect, equal));
	equal->latency = NULL;
}

/* Parts are of the device time that is used before a group waits, if shared windows have less. */
static void sutro_test_apart_whole(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	u64 half_ns;

	set_rates(protect, load->few, 40, 100);
	protect->most = SUTRO_PROTECT_WHOLE / 2;
	protect->beside_ns = 0;
	protect->beside_used_ns = 0;
	sutro_apart_begin(core, false, protect->cycle_ns);
	half_ns = load->few->protect->part_ns;
	protect->beside_ns = 100 * MS;
	protect->beside_used_ns = 100 * MS;
	sutro_apart_begin(core, false, protect->cycle_ns);
	EXPECT_NEAR(test, load->few->protect->part_ns, 2 * half_ns, MS);
}

/* Beside a group that only keeps up, groups wait until a section ends, not for the whole window. */
static void sutro_test_apart_sections(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *equal = load->equal->protect;
	u64 part_ns, end_ns;

	set_rates(protect, load->few, 40, 100);
	set_rates(protect, load->equal, 10, 30);
	/* 4 rounds are an eighth of the cycle. */
	protect->depth = 1;
	protect->sums[SUTRO_WINDOW_RESERVED].nr = 32;
	protect->sums[SUTRO_WINDOW_RESERVED].time_ns = protect->cycle_ns;
	protect->keeps_up = false;
	begin(core);
	KUNIT_EXPECT_TRUE(test, protect->apart);
	KUNIT_EXPECT_EQ(test, protect->section_shift, 0);
	part_ns = equal->part_ns;
	protect->keeps_up = true;
	begin(core);
	KUNIT_EXPECT_GE(test, protect->section_shift, 2);
	KUNIT_EXPECT_LE(test, protect->section_ns, protect->cycle_ns / 8);
	KUNIT_EXPECT_LE(test, equal->part_ns, part_ns / 2);

	protect->sum_ns = protect->shared_ns;
	sutro_apart_sent(core, equal, equal->part_ns + 1);
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, equal));
	end_ns = protect->shared_ns + protect->section_ns;
	KUNIT_EXPECT_EQ(test, sutro_apart_look_ns(protect, protect->sum_ns),
			end_ns);
	protect->sum_ns = end_ns - 1;
	sutro_apart_check(protect);
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, equal));
	protect->sum_ns = end_ns;
	sutro_apart_check(protect);
	KUNIT_EXPECT_FALSE(test, sutro_apart_waits(protect, equal));
	KUNIT_EXPECT_EQ(test, equal->window_ns, 1ULL);
	KUNIT_EXPECT_GT(test, sutro_apart_look_ns(protect, end_ns), end_ns);
}

/* Shared windows have the entitlement of others, or three quarters of it while groups wait. */
static void sutro_test_others_shared(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_protect_sums *shared = &protect->sums[SUTRO_WINDOW_SHARED];
	const u64 due = 200, share = SUTRO_PROTECT_WHOLE - due;

	protect->others = SUTRO_PROTECT_WHOLE;
	shared->all_ns = 0;
	protect->apart = false;
	KUNIT_EXPECT_EQ(test, sutro_others_shared(core, share), due);
	protect->apart = true;
	KUNIT_EXPECT_EQ(test, sutro_others_shared(core, share), due * 3 / 4);
	/* Protected groups use a quarter of the window. */
	shared->all_ns = 4 * MS;
	shared->cost_ns = MS;
	KUNIT_EXPECT_EQ(test, sutro_others_shared(core, share), due);
	/* If they use nearly all of it, others do not have all of the device for that. */
	shared->cost_ns = 4 * MS;
	KUNIT_EXPECT_EQ(test, sutro_others_shared(core, share), due * 5 / 4);
	/* Reserved time comes first. */
	protect->reserve = SUTRO_PROTECT_WHOLE / 4;
	KUNIT_EXPECT_EQ(test, sutro_others_shared(core, share), 0);
}

/* Others have less after a cycle in which a protected group was short. */
static void sutro_test_others_short(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_phase_sum *all = &load->few->protect->all;
	int i;

	set_rates(protect, load->few, 900, 1000);
	set_rates(protect, load->equal, 900, 1000);
	protect->others = SUTRO_PROTECT_WHOLE;
	/* It has 400 of 1000 requests in a cycle, and a share of 476. */
	all->ns = protect->sum_ns - 2 * protect->cycle_ns;
	all->nr = 2 * 400;
	sutro_others_end(protect);
	KUNIT_EXPECT_EQ(test, protect->others, SUTRO_PROTECT_WHOLE * 3 / 4);
	for (i = 0; i < 100; i++) {
		all->ns = protect->sum_ns - 2 * protect->cycle_ns;
		all->nr = 2 * 600;
		sutro_others_end(protect);
	}
	KUNIT_EXPECT_EQ(test, protect->others, SUTRO_PROTECT_WHOLE);
}

/* Requests of a group that is ahead are counted, and it is not served beside others. */
static void sutro_test_others_lead(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *equal = load->equal->protect;

	sutro_others_lead(protect, equal, false);
	protect->reserved = false;
	KUNIT_EXPECT_EQ(test, protect->ahead, 0);
	KUNIT_EXPECT_PTR_EQ(test, sutro_protect_next(core, false),
			    sutro_protect_next(core, true));
	sutro_others_lead(protect, equal, true);
	KUNIT_EXPECT_EQ(test, protect->ahead, load->equal->in_flight);
	KUNIT_EXPECT_PTR_NE(test, sutro_protect_next(core, false), load->equal);
	sutro_protect_drop(core, load->equal);
	KUNIT_EXPECT_EQ(test, protect->ahead, 0);
}

/* One with a backlog that has used its part of a window is ahead, also where no group waits. */
static void sutro_test_others_ahead(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *equal = load->equal->protect;
	struct sutro_group_protect *few = load->few->protect;
	u64 vtime;

	set_rates(protect, load->few, 60, 100);
	set_rates(protect, load->equal, 20, 30);
	begin(core);
	protect->first = NULL;
	protect->part = SUTRO_PROTECT_WHOLE / 4;
	KUNIT_EXPECT_FALSE(test, protect->apart);
	KUNIT_EXPECT_GT(test, load->equal->queued, 0);
	few->window_ns = few->part_ns - 1;
	equal->window_ns = equal->part_ns;
	vtime = load->equal->entity.vtime;
	sutro_apart_end(core);
	KUNIT_EXPECT_TRUE(test, equal->leads);
	KUNIT_EXPECT_FALSE(test, few->leads);
	KUNIT_EXPECT_TRUE(test, sutro_before(vtime, load->equal->entity.vtime));

	/* Nor is one without a backlog, or in a window that is only a sample. */
	few->window_ns = few->part_ns;
	load->few->queued = 0;
	equal->window_ns = equal->part_ns;
	protect->part = SUTRO_PROTECT_MOST_PART;
	sutro_apart_end(core);
	KUNIT_EXPECT_FALSE(test, equal->leads);
	protect->part = SUTRO_PROTECT_WHOLE / 4;
	few->window_ns = few->part_ns;
	sutro_apart_end(core);
	KUNIT_EXPECT_FALSE(test, few->leads);
}

/* On a rotational device, one that is ahead sends nothing until requests of others are done. */
static void sutro_test_others_drain(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;

	sutro_core_dispatch(core, load->many, LARGE_NS);
	sutro_core_dispatch(core, load->equal, LARGE_NS);
	core->tunables.rotational = true;
	protect->reserved = true;
	protect->clear = false;
	sutro_others_lead(protect, load->equal->protect, true);
	KUNIT_EXPECT_TRUE(test, sutro_others_drain(core, load->equal));
	/* Not while a flush may wait for a request that is queued. */
	core->flush_data = 1;
	KUNIT_EXPECT_FALSE(test, sutro_others_drain(core, load->equal));
	core->flush_data = 0;
	protect->clear = true;
	KUNIT_EXPECT_FALSE(test, sutro_others_drain(core, load->equal));
}

static struct kunit_case sutro_apart_cases[] = {
	KUNIT_CASE(sutro_test_apart),
	KUNIT_CASE(sutro_test_apart_shares),
	KUNIT_CASE(sutro_test_apart_if_needed),
	KUNIT_CASE(sutro_test_apart_shared),
	KUNIT_CASE(sutro_test_apart_seeks),
	KUNIT_CASE(sutro_test_apart_first),
	KUNIT_CASE(sutro_test_apart_first_ends),
	KUNIT_CASE(sutro_test_apart_rate),
	KUNIT_CASE(sutro_test_apart_joins),
	KUNIT_CASE(sutro_test_apart_gap),
	KUNIT_CASE(sutro_test_apart_target),
	KUNIT_CASE(sutro_test_apart_whole),
	KUNIT_CASE(sutro_test_apart_sections),
	KUNIT_CASE(sutro_test_others_shared),
	KUNIT_CASE(sutro_test_others_short),
	KUNIT_CASE(sutro_test_others_lead),
	KUNIT_CASE(sutro_test_others_ahead),
	KUNIT_CASE(sutro_test_others_drain),
	{}
};

sutro_suite(sutro_apart, "protected groups beside each other");
