// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of protection (sutro-protect.c): which groups are protected, and the
 * service of these and of other groups.
 */
#include "sutro_load_test.h"

/* With ten times the weight, a has nearly all that it has alone, and e the rest. */
static void sutro_test_protected(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	sutro_group_set_weight(load->few, 1000);
	load_measure(load);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR * 95 / 100);
	KUNIT_EXPECT_LE(test, load->few_slow, load->few_nr / 100);
	/* 1/64 of the time is left to e in any case. */
	KUNIT_EXPECT_GE(test, load->many_nr,
			(int)(10 * SECOND_NS / LARGE_NS / 64 * 8 / 10));
}

/* The same for a group of a higher class. */
static void sutro_test_protected_class(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	sutro_group_set_class(&load->t->core, load->few, SUTRO_CLASS_RT);
	load_measure(load);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR * 95 / 100);
}

/* A rotational device is not kept idle for a group that thinks for long, in slices. */
static void sutro_test_protected_rotational(struct kunit *test)
{
	struct load *load = load_new(test, 2 * IDLE_NS);
	struct sutro_tunables *tunables = &load->t->core.tunables;
	int alone = SECOND_NS / (2 * IDLE_NS + SMALL_NS);

	tunables->rotational = true;
	tunables->slice_ns = SLICE_NS;
	tunables->group_idle_ns = IDLE_NS;
	sutro_group_set_weight(load->few, 500);
	load_measure(load);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone * 95 / 100);
	KUNIT_EXPECT_GT(test, load->many_nr, 0);
}

/* With a latency target, a group with the weight of e is as fast as alone, and e is served. */
static void sutro_test_protected_for_target(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	load->t->core.tunables.protect = 0;
	sutro_latency_set(load->few, 2 * SMALL_NS / 1000);
	load_measure(load);
	KUNIT_EXPECT_EQ(test, load->few->latency->state, SUTRO_LATENCY_MET);
	KUNIT_EXPECT_LE(test, load->few_slow, load->few_nr / 20);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * ALONE_NR / 2);
	KUNIT_EXPECT_GE(test, load->many_nr * LARGE_NS, 10 * SECOND_NS / 64);

	sutro_latency_set(load->few, 0);
	load->t->core.protect.changed = true;
	load_run(load, SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->few));
}

/* A group with a target may be waited for during seconds, but not when the elevator leaves. */
static void sutro_test_target_at_exit(struct kunit *test)
{
	struct load *load = load_new(test, SECOND_NS / 4);
	struct sutro_core *core = &load->t->core;
	u64 end_ns;

	core->tunables.protect = 0;
	sutro_latency_set(load->few, 2 * SMALL_NS / 1000);
	load_run(load, 20 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	for (end_ns = load->t->now_ns + SECOND_NS; load->few->in_flight;)
		load_finish(load);
	KUNIT_EXPECT_TRUE(test, sutro_before(end_ns, load->few->leave_at_ns));
	while (sutro_core_forget(core, load->t->now_ns + SUTRO_CORE_EVER_NS))
		;
	KUNIT_EXPECT_TRUE(test, list_empty(&core->leaving));
}

/* If the device cannot meet a target, others keep their share. */
static void sutro_test_unreachable_target(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	load->t->core.tunables.protect = 0;
	sutro_latency_set(load->few, SMALL_NS / 2000);
	load_measure(load);
	KUNIT_EXPECT_EQ(test, load->few->latency->state,
			SUTRO_LATENCY_UNREACHABLE);
	KUNIT_EXPECT_GE(test, load->many_nr * LARGE_NS,
			10 * SECOND_NS * 45 / 100);
}

/* A target that is met with fewer requests of others in flight stops none of them. */
static void sutro_test_limit_for_target(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	load->t->core.tunables.protect = 0;
	load->t->core.tunables.depth_ns = 8 * LARGE_NS;
	sutro_latency_set(load->few, 3 * LARGE_NS / 1000);
	load_measure(load);
	KUNIT_EXPECT_EQ(test, load->few->latency->state, SUTRO_LATENCY_MET);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_GE(test, load->many_nr * LARGE_NS,
			10 * SECOND_NS * 95 / 100);
}

/* With equal weights, or with protect=0, no group is held back. */
static void sutro_test_not_protected(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	load_run(load, 4 * SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_protects(&load->t->core.protect));
	KUNIT_EXPECT_GE(test, load->many_nr,
			(int)(4 * SECOND_NS / LARGE_NS * 95 / 100));

	load->t->core.tunables.protect = 0;
	sutro_group_set_weight(load->few, 1000);
	load_run(load, 4 * SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_protects(&load->t->core.protect));
}

/* Protection ends with the knob, and with the weight. */
static void sutro_test_protection_ends(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	sutro_group_set_weight(load->few, 1000);
	load_run(load, 2 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	sutro_group_set_weight(load->few, 100);
	load_run(load, 2 * SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_EQ(test, load->t->core.protect.requests, 0);
	KUNIT_EXPECT_EQ(test, load->t->core.protect.in_flight, 0);
}

/*
 * Sharing did a no harm for long, so nearly all of the time is shared, and little of it is
 * reserved.  Then the work of a changes, and sharing does harm: windows show it within seconds.
 */
static void sutro_test_protected_anew(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	struct sutro_protect_sums *sums = load->t->core.protect.sums;

	sutro_group_set_weight(load->few, 1000);
	load_run(load, 2 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	sums[SUTRO_WINDOW_RESERVED] = (struct sutro_protect_sums){
		.time_ns = SECOND_NS / 2,
		.all_ns = SECOND_NS / 4,
		.cost_ns = SECOND_NS / 4,
		.nr = 2500,
		.nr_seen = 5000,
	};
	sums[SUTRO_WINDOW_SHARED] = (struct sutro_protect_sums){
		.time_ns = 16 * SECOND_NS,
		.all_ns = 16 * SECOND_NS,
		.cost_ns = 8 * SECOND_NS,
		.nr = 80000,
		.nr_seen = 160000,
	};
	load_run(load, 4 * SECOND_NS);
	load_run(load, 4 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->few_nr,
			(int)(4 * SECOND_NS / (2 * SMALL_NS) * 9 / 10));
}

/* While a thinks for longer than a request of e takes, e is served. */
static void sutro_test_gaps(struct kunit *test)
{
	struct load *load = load_new(test, 4 * LARGE_NS - MS);

	load->t->core.tunables.latency_ns = SMALL_NS;
	sutro_group_set_weight(load->few, 1000);
	load_measure(load);
	KUNIT_EXPECT_GE(test, load->few_nr,
			(int)(10 * SECOND_NS / (4 * LARGE_NS) * 95 / 100));
	/* Two or three in each gap. */
	KUNIT_EXPECT_GE(test, load->many_nr, 2 * load->few_nr * 9 / 10);
}

/* a thinks for longer than it is waited for, and finds one request of e at the device. */
static void sutro_test_protected_returns(struct kunit *test)
{
	u64 think_ns = 100 * MS;
	struct load *load = load_new(test, think_ns);

	load->t->core.tunables.busy_ns = LARGE_NS / 4;
	sutro_group_set_weight(load->few, 1000);
	load_measure(load);
	KUNIT_EXPECT_GE(test, load->few_nr,
			(int)(10 * SECOND_NS / (think_ns + LARGE_NS)));
	KUNIT_EXPECT_GE(test, load->many_nr * LARGE_NS,
			10 * SECOND_NS * 8 / 10);
}

/* A commit may wait for e: the device does not idle for most of a's windows meanwhile. */
static void sutro_test_away(struct kunit *test)
{
	struct load *load = load_new(test, 50 * LARGE_NS);

	load->few->reserve = SUTRO_RESERVE_WHOLE * 9 / 10;
	load_measure(load);
	KUNIT_EXPECT_GE(test, load->few_nr,
			(int)(10 * SECOND_NS / (50 * LARGE_NS) * 95 / 100));
	KUNIT_EXPECT_GE(test, load->many_nr,
			(int)(10 * SECOND_NS / LARGE_NS * 6 / 10));
}

/* A long shared window, in which e is further behind and has to wait for its own requests. */
static struct load *load_beside(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	struct sutro_protect *protect = &load->t->core.protect;

	sutro_group_set_weight(load->few, 1000);
	load_run(load, 2 * SECOND_NS);
	while (load->nr)
		load_finish(load);
	KUNIT_ASSERT_EQ(test, sutro_group_protected(load->few), true);
	protect->gentle = true;
	protect->cycle_ns = SECOND_NS;
	protect->begin_ns = load->t->now_ns;
	protect->shared_ns = load->t->now_ns + SECOND_NS;
	load->t->core.tunables.busy_ns = LARGE_NS;
	sutro_tree_charge(load->few, SECOND_NS);
	KUNIT_EXPECT_PTR_EQ(test, send(load->t, LARGE_NS), load->many);
	return load;
}

/* Commits do not count as requests beside e while data wait for a flush: more are sent. */
static void sutro_test_data_of_a_commit(struct kunit *test)
{
	struct load *load = load_beside(test);
	struct sutro_core *core = &load->t->core;

	core->protect.other_ns = LARGE_NS;
	core->tunables.depth_ns = SECOND_NS;
	KUNIT_EXPECT_PTR_EQ(test, send(load->t, LARGE_NS), load->many);
	KUNIT_EXPECT_EQ(test, next_verdict(load->t), SUTRO_WAIT);
	core->commits = 2;
	core->flush_data = 1;
	KUNIT_EXPECT_EQ(test, next_verdict(load->t), SUTRO_SERVE);
	core->commits = 0;
	core->flush_data = 0;
}

/* Nor does it for a request that is sent in a gap because none of e fits there. */
static void sutro_test_beside_in_gap(struct kunit *test)
{
	struct load *load = load_beside(test);
	u64 vtime = load->few->entity.vtime;

	arrive_far(load->t, load->few, 1);
	load->t->core.protect.part = SUTRO_PROTECT_MOST_PART;
	load->t->core.beside = true;
	load->t->core.gap = true;
	sutro_core_dispatch(&load->t->core, load->few, SMALL_NS);
	KUNIT_EXPECT_EQ(test, load->few->entity.vtime, vtime);
}

/* b is a slice with c, which is protected beside d; a and e are other slices. */
static struct sutro_test *slices(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	struct sutro_test *t = load->t;

	load->few = &t->c;
	load->many = &t->d;
	sutro_group_set_weight(&t->c, 1000);
	arrive_far(t, &t->d, DEEP);
	load_run(load, 4 * SECOND_NS);
	KUNIT_ASSERT_EQ(test, sutro_group_protected(&t->c), true);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(&t->d));
	KUNIT_EXPECT_TRUE(test, sutro_group_keeps_up(&t->a));
	return t;
}

/* A group of another slice comes and goes: c stays the one that others have to keep up with. */
static void sutro_test_slice_leaves(struct kunit *test)
{
	struct sutro_test *t = slices(test);

	KUNIT_EXPECT_TRUE(test, sutro_group_protected(&t->e));
	t->core.protect.changed = false;
	sutro_protect_drop(&t->core, &t->e);
	KUNIT_EXPECT_TRUE(test, sutro_group_keeps_up(&t->a));
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->d));
	KUNIT_EXPECT_FALSE(test, t->core.protect.changed);
	sutro_protect_drop(&t->core, &t->c);
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->a));
	KUNIT_EXPECT_TRUE(test, t->core.protect.changed);
}

/* Without protection nothing is marked. */
static void sutro_test_slice_with_fairness(struct kunit *test)
{
	struct sutro_test *t = slices(test);

	t->core.tunables.fairness = true;
	t->core.protect.changed = true;
	sutro_window_look(&t->core, t->now_ns);
	KUNIT_EXPECT_FALSE(test, sutro_protects(&t->core.protect));
	KUNIT_EXPECT_EQ(test, t->root.least, 0);
	KUNIT_EXPECT_EQ(test, t->b.least, 0);
	KUNIT_EXPECT_EQ(test, t->c.least, 0);
}

/*
 * a, with a weight of 1000, is protected.  d needs that, too, and has a queue.  Its slice has
 * @weight, and a sibling with @requests.
 */
static struct load *load_with_queue(struct kunit *test, u32 weight,
				    int requests)
{
	struct load *load = load_new(test, SMALL_NS);
	struct sutro_test *t = load->t;

	sutro_group_set_weight(load->few, 1000);
	sutro_group_set_weight(&t->b, weight);
	sutro_group_set_weight(&t->c, 200);
	arrive_far(t, &t->c, requests);
	load_run(load, 2 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	arrive_far(t, &t->d, 2);
	KUNIT_ASSERT_NOT_NULL(test, t->d.protect);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(&t->d));
	t->d.protect->needed = true;
	return load;
}

/* Does d join with its next request?  This is decided once in a cycle. */
static bool joins(struct load *load)
{
	struct sutro_group *group = &load->t->d;

	group->protect->tried_ns--;
	arrive_far(load->t, group, 1);
	return sutro_group_protected(group);
}

/* Beside protected groups, the lightest one of a heavy slice may have requests queued. */
static void sutro_test_joins_with_queue(struct kunit *test)
{
	struct load *load = load_with_queue(test, 600, 1);
	struct sutro_test *t = load->t;
	struct sutro_group_protect *own;

	arrive_far(t, &t->d, 1);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(&t->d));
	KUNIT_EXPECT_TRUE(test, joins(load));
	/* Without others it may not. */
	while (sutro_protects(&t->core.protect)) {
		own = list_first_entry(&t->core.protect.groups,
				       struct sutro_group_protect, list);
		sutro_protect_drop(&t->core, own->group);
	}
	KUNIT_EXPECT_FALSE(test, joins(load));
}

/*
 * Any other group with a queue joins them after three trials in which it was far short, but not
 * beside a missed latency target: weights of groups with a backlog do not matter to that.
 */
static void sutro_test_joins_when_far_short(struct kunit *test)
{
	struct load *load = load_with_queue(test, 150, 0);
	struct sutro_group_protect *own = load->t->d.protect;
	struct sutro_protect *protect = &load->t->core.protect;
	u8 far_nr;

	own->far_nr = 3;
	protect->by_target = true;
	KUNIT_EXPECT_FALSE(test, joins(load));
	protect->by_target = false;
	for (far_nr = 0; far_nr <= 3; far_nr++) {
		own->far_nr = far_nr;
		KUNIT_EXPECT_EQ(test, joins(load), far_nr == 3);
	}
}

/* There a does not wait, and owes nothing for it. */
static void sutro_test_beside_others(struct kunit *test)
{
	struct load *load = load_beside(test);
	u64 vtime = load->few->entity.vtime;

	arrive_far(load->t, load->few, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(load->t, SMALL_NS), load->few);
	KUNIT_EXPECT_EQ(test, load->few->entity.vtime, vtime);
	KUNIT_EXPECT_EQ(test, (int)next_verdict(load->t), SUTRO_WAIT);
}

/* Where sharing does no harm, it owes what it uses. */
static void sutro_test_beside_charged(struct kunit *test)
{
	struct load *load = load_beside(test);
	u64 vtime = load->few->entity.vtime;

	load->t->core.protect.part = SUTRO_PROTECT_MOST_PART;
	arrive_far(load->t, load->few, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(load->t, SMALL_NS), load->few);
	KUNIT_EXPECT_GT(test, load->few->entity.vtime, vtime);
}

/* A request that is sent without a choice is charged, although the last choice was a. */
static void sutro_test_beside_prompt(struct kunit *test)
{
	struct load *load = load_beside(test);
	u64 vtime = load->few->entity.vtime;

	arrive_far(load->t, load->few, DEEP);
	KUNIT_EXPECT_PTR_EQ(test, send(load->t, SMALL_NS), load->few);
	KUNIT_ASSERT_EQ(test, load->t->core.in_flight, SUTRO_DEPTH_MIN);
	load->t->core.tunables.depth_ns = 0;
	KUNIT_EXPECT_EQ(test, (int)next_verdict(load->t), SUTRO_WAIT);
	KUNIT_EXPECT_EQ(test, load->few->entity.vtime, vtime);
	sutro_core_dispatch(&load->t->core, load->few, SMALL_NS);
	KUNIT_EXPECT_GT(test, load->few->entity.vtime, vtime);
}

/* A request that arrives when the last one of its group completes ends no pause. */
static void sutro_test_no_pause(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	int i;

	t->core.tunables.protect = 97;
	sutro_group_set_weight(&t->a, 300);
	arrive_far(t, &t->e, 1);
	for (i = 0; i < 8; i++) {
		/* The time was taken before that of the completion. */
		sutro_core_queue(&t->core, &t->a, true, t->now_ns - MS / 200);
		sutro_core_dispatch(&t->core, &t->a, MS);
		finish(t, &t->a, MS, MS);
	}
	KUNIT_EXPECT_TRUE(test, sutro_group_seeky(&t->a));
	KUNIT_EXPECT_NULL(test, t->a.protect);
}

static struct kunit_case sutro_protect_cases[] = {
	KUNIT_CASE(sutro_test_protected),
	KUNIT_CASE(sutro_test_protected_class),
	KUNIT_CASE(sutro_test_protected_rotational),
	KUNIT_CASE(sutro_test_protected_for_target),
	KUNIT_CASE(sutro_test_target_at_exit),
	KUNIT_CASE(sutro_test_unreachable_target),
	KUNIT_CASE(sutro_test_limit_for_target),
	KUNIT_CASE(sutro_test_not_protected),
	KUNIT_CASE(sutro_test_protection_ends),
	KUNIT_CASE(sutro_test_protected_anew),
	KUNIT_CASE(sutro_test_gaps),
	KUNIT_CASE(sutro_test_protected_returns),
	KUNIT_CASE(sutro_test_away),
	KUNIT_CASE(sutro_test_joins_with_queue),
	KUNIT_CASE(sutro_test_joins_when_far_short),
	KUNIT_CASE(sutro_test_beside_others),
	KUNIT_CASE(sutro_test_data_of_a_commit),
	KUNIT_CASE(sutro_test_beside_in_gap),
	KUNIT_CASE(sutro_test_slice_leaves),
	KUNIT_CASE(sutro_test_slice_with_fairness),
	KUNIT_CASE(sutro_test_beside_charged),
	KUNIT_CASE(sutro_test_beside_prompt),
	KUNIT_CASE(sutro_test_no_pause),
	{}
};

sutro_suite(sutro_protect, "protection");
