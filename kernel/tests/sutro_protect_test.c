// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of protection (sutro-protect.c): which groups are protected, and the
 * service of these and of other groups.
 *
 * The device serves requests one after another, in the order in which they were sent.
 */
#include <linux/module.h>

#include "sutro_test.h"

#define SMALL_NS (MS / 10)
#define LARGE_NS (8 * MS)
#define SECOND_NS (1000 * MS)
#define DEEP 32

/**
 * struct load - group @few with one small request at a time, beside others with large ones
 * @think_ns:	time from a completion of @few to its next request
 * @next_ns:	when the next request of @few arrives
 * @few_nr:	completed requests of @few
 * @many_nr:	completed requests of @many
 * @equal_nr:	completed requests of @equal
 * @few_slow:	requests of @few that took longer than twice their device time
 */
struct load {
	struct sutro_test *t;
	struct sutro_group *few;
	struct sutro_group *many;
	struct sutro_group *equal;
	u64 think_ns;
	u64 next_ns;
	u64 sent_ns;
	struct sutro_group *at_device[2 * DEEP + 1];
	int first;
	int nr;
	int few_nr;
	int many_nr;
	int equal_nr;
	int few_slow;
};

static u64 load_cost_ns(const struct load *load,
			const struct sutro_group *group)
{
	return group == load->few ? SMALL_NS : LARGE_NS;
}

/* Return: when to look again, if nothing happens before. */
static u64 load_send(struct load *load)
{
	struct sutro_test *t = load->t;
	enum sutro_verdict verdict;
	struct sutro_group *group;

	while (load->nr <= 2 * DEEP) {
		group = choose(t, &verdict);
		if (!group)
			break;
		sutro_core_dispatch(&t->core, group, load_cost_ns(load, group));
		load->at_device[(load->first + load->nr++) % (2 * DEEP + 1)] =
			group;
	}
	return !group && verdict == SUTRO_IDLE ? t->core.idle_until_ns
					       : U64_MAX;
}

/* The oldest request at the device completes. */
static void load_finish(struct load *load)
{
	struct sutro_group *group = load->at_device[load->first];
	u64 cost_ns = load_cost_ns(load, group);
	struct sutro_test *t = load->t;

	load->first = (load->first + 1) % (2 * DEEP + 1);
	load->nr--;
	t->now_ns += cost_ns;
	if (group == load->few) {
		u64 took_ns = t->now_ns - load->sent_ns;
		u64 slow_ns = sutro_protect_slow_ns(group);

		sutro_protect_took(&t->core, group, 1, took_ns / 1000,
				   slow_ns && took_ns > slow_ns, t->now_ns);
		load->few_slow += took_ns > 2 * SMALL_NS;
		load->few_nr++;
		load->next_ns = t->now_ns + load->think_ns;
	} else if (group == load->many) {
		load->many_nr++;
	} else {
		sutro_protect_took(&t->core, group, 1, 0, 0, t->now_ns);
		load->equal_nr++;
	}
	sutro_core_complete(&t->core, group, 1, cost_ns, cost_ns, t->now_ns);
	if (group != load->few)
		arrive_far(t, group, 1);
}

/* The next request of @few arrived while one was at the device. */
static void load_arrival(struct load *load)
{
	struct sutro_test *t = load->t;
	u64 now_ns = t->now_ns;

	t->now_ns = load->next_ns;
	load->sent_ns = load->next_ns;
	load->next_ns = 0;
	arrive_far(t, load->few, 1);
	t->now_ns = now_ns;
}

static void load_run(struct load *load, u64 length_ns)
{
	struct sutro_test *t = load->t;
	u64 end_ns = t->now_ns + length_ns, look_ns;

	load->few_nr = 0;
	load->many_nr = 0;
	load->equal_nr = 0;
	load->few_slow = 0;
	while (sutro_before(t->now_ns, end_ns)) {
		if (load->next_ns && !sutro_before(t->now_ns, load->next_ns))
			load_arrival(load);
		look_ns = load_send(load);
		if (load->nr) {
			load_finish(load);
			continue;
		}
		if (load->next_ns)
			look_ns = min(look_ns, load->next_ns);
		t->now_ns = max(min(look_ns, end_ns), t->now_ns + SMALL_NS / 4);
	}
}

/* a has one small request at a time, e DEEP large ones. */
static struct load *load_new(struct kunit *test, u64 think_ns)
{
	struct load *load = kunit_kzalloc(test, sizeof(*load), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, load);
	load->t = sutro_test_new(test, false);
	load->t->core.tunables.protect = 98;
	load->few = &load->t->a;
	load->many = &load->t->e;
	load->equal = &load->t->b;
	load->think_ns = think_ns;
	load->next_ns = load->t->now_ns;
	arrive_far(load->t, load->many, DEEP);
	return load;
}

/* With ten times the weight, a has nearly all that it has alone, and e the rest. */
static void sutro_test_protected(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	int alone = SECOND_NS / (2 * SMALL_NS);

	sutro_group_set_weight(load->few, 1000);
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone * 95 / 100);
	KUNIT_EXPECT_LE(test, load->few_slow, load->few_nr / 100);
	/* 1/64 of the time is left to e in any case. */
	KUNIT_EXPECT_GE(test, load->many_nr,
			(int)(10 * SECOND_NS / LARGE_NS / 64 * 8 / 10));
}

/* The same for a group of a higher class. */
static void sutro_test_protected_class(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	int alone = SECOND_NS / (2 * SMALL_NS);

	sutro_group_set_class(&load->t->core, load->few, SUTRO_CLASS_RT);
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone * 95 / 100);
}

/* In the time that is reserved for it, a group of less weight has what it has alone. */
static void sutro_test_reserved(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	int alone = SECOND_NS / (2 * SMALL_NS);

	sutro_group_set_weight(load->many, 300);
	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	/* Requests of e are at the device for at most 1/6 of a cycle when that begins. */
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone / 3);
	KUNIT_EXPECT_LE(test, load->few_nr, 10 * alone * 105 / 200);
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
	int alone = SECOND_NS / (2 * SMALL_NS);

	load->t->core.tunables.depth_ns = LARGE_NS;
	sutro_group_set_weight(load->few, 10);
	sutro_group_set_weight(load->many, 1000);
	load->few->reserve = SUTRO_RESERVE_WHOLE / 40;
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_EQ(test, load->t->core.protect.part,
			SUTRO_PROTECT_MOST_PART);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone / 40);

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
	int alone = SECOND_NS / (2 * SMALL_NS);

	tunables->rotational = true;
	tunables->slice_ns = SLICE_NS;
	tunables->group_idle_ns = IDLE_NS;
	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->many));
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone / 3);
	KUNIT_EXPECT_GE(test, load->many_nr,
			(int)(10 * SECOND_NS / LARGE_NS / 4));

	load->few->reserve = 0;
	sutro_group_set_weight(load->few, 1000);
	load->t->core.protect.changed = true;
	load_run(load, SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(load->few));
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
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone * 95 / 100);
	KUNIT_EXPECT_GT(test, load->many_nr, 0);
}

/* A group with many large requests uses no more of common windows than is reserved for it. */
static void sutro_test_reserved_for_two(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	int alone = SECOND_NS / (2 * SMALL_NS);

	arrive_far(load->t, load->equal, DEEP);
	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	load->equal->reserve = SUTRO_RESERVE_WHOLE / 4;
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone / 3);
	load->few->reserve_used_ns = 2 * SECOND_NS;
	KUNIT_EXPECT_TRUE(test, sutro_reserve_is_used_up(&load->t->core.protect,
							 load->few->protect));
	/* At least its own part, less one request in each cycle. */
	KUNIT_EXPECT_GE(test, load->equal_nr * LARGE_NS,
			10 * SECOND_NS / 4 * 90 / 100);
	KUNIT_EXPECT_GE(test, load->many_nr * LARGE_NS,
			10 * SECOND_NS / 10 * 80 / 100);
}

/* With a latency target, a group with the weight of e is as fast as alone, and e is served. */
static void sutro_test_protected_for_target(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	int alone = SECOND_NS / (2 * SMALL_NS);

	load->t->core.tunables.protect = 0;
	sutro_latency_set(load->few, 2 * SMALL_NS / 1000);
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_EQ(test, load->few->latency->state, SUTRO_LATENCY_MET);
	KUNIT_EXPECT_LE(test, load->few_slow, load->few_nr / 20);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone / 2);
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
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
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
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
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

/* No group is held back for one that is entitled to no more. */
static void sutro_test_protected_with_equal(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	arrive_far(load->t, load->equal, DEEP);
	sutro_group_set_weight(load->few, 1000);
	sutro_group_set_weight(load->equal, 1000);
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	/* Of the time that @few cannot use. */
	KUNIT_EXPECT_GE(test, load->equal_nr * LARGE_NS, 9 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->many_nr, 1);
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
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
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
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
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
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->few_nr,
			(int)(10 * SECOND_NS / (50 * LARGE_NS) * 95 / 100));
	KUNIT_EXPECT_GE(test, load->many_nr,
			(int)(10 * SECOND_NS / LARGE_NS * 6 / 10));
}

/* Beside a heavier group with large requests, which is protected for its share, a has its time. */
static void sutro_test_reserved_beside_share(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);
	int alone = SECOND_NS / (2 * SMALL_NS);

	load->few->reserve = SUTRO_RESERVE_WHOLE / 2;
	sutro_group_set_weight(load->equal, 1000);
	arrive_far(load->t, load->equal, 1);
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, load->t->core.protect.by_share);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone * 4 / 10);
	KUNIT_EXPECT_GE(test, load->equal_nr,
			(int)(10 * SECOND_NS / LARGE_NS * 3 / 10));
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

static bool favoured(struct sutro_group *group)
{
	return sutro_group_favoured(group, 1);
}

/* By weight or class at the highest level with others, and at no level less. */
static void sutro_test_favoured(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	arrive(t, &t->a, 1);
	KUNIT_EXPECT_FALSE(test, favoured(&t->a));
	arrive(t, &t->c, 1);
	arrive(t, &t->d, 1);
	KUNIT_EXPECT_FALSE(test, favoured(&t->a));
	/* Within b, that weighs as much as a. */
	sutro_group_set_weight(&t->c, 200);
	KUNIT_EXPECT_FALSE(test, favoured(&t->c));
	KUNIT_EXPECT_FALSE(test, favoured(&t->d));
	sutro_group_set_weight(&t->b, 200);
	KUNIT_EXPECT_TRUE(test, favoured(&t->c));
	KUNIT_EXPECT_FALSE(test, favoured(&t->d));
	sutro_group_set_weight(&t->b, 100);
	sutro_group_set_weight(&t->a, 200);
	KUNIT_EXPECT_TRUE(test, favoured(&t->a));
	KUNIT_EXPECT_FALSE(test, favoured(&t->c));
	sutro_group_set_weight(&t->a, 900);
	KUNIT_EXPECT_FALSE(test, sutro_group_favoured(&t->a, 9));
	sutro_group_set_weight(&t->a, 1000);
	KUNIT_EXPECT_TRUE(test, sutro_group_favoured(&t->a, 9));
	sutro_group_set_weight(&t->a, 100);
	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_RT);
	KUNIT_EXPECT_TRUE(test, favoured(&t->c));
	KUNIT_EXPECT_FALSE(test, favoured(&t->a));
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

static struct kunit_case sutro_protect_test_cases[] = {
	KUNIT_CASE(sutro_test_protected),
	KUNIT_CASE(sutro_test_protected_class),
	KUNIT_CASE(sutro_test_reserved),
	KUNIT_CASE(sutro_test_reserved_little),
	KUNIT_CASE(sutro_test_reserved_rotational),
	KUNIT_CASE(sutro_test_protected_rotational),
	KUNIT_CASE(sutro_test_reserved_subtree),
	KUNIT_CASE(sutro_test_reserved_for_two),
	KUNIT_CASE(sutro_test_protected_for_target),
	KUNIT_CASE(sutro_test_target_at_exit),
	KUNIT_CASE(sutro_test_unreachable_target),
	KUNIT_CASE(sutro_test_limit_for_target),
	KUNIT_CASE(sutro_test_not_protected),
	KUNIT_CASE(sutro_test_protected_with_equal),
	KUNIT_CASE(sutro_test_protection_ends),
	KUNIT_CASE(sutro_test_protected_anew),
	KUNIT_CASE(sutro_test_gaps),
	KUNIT_CASE(sutro_test_protected_returns),
	KUNIT_CASE(sutro_test_away),
	KUNIT_CASE(sutro_test_reserved_beside_share),
	KUNIT_CASE(sutro_test_beside_others),
	KUNIT_CASE(sutro_test_beside_prompt),
	KUNIT_CASE(sutro_test_favoured),
	{}
};

static struct kunit_suite sutro_protect_test_suite = {
	.name = "sutro_protect",
	.test_cases = sutro_protect_test_cases,
};

kunit_test_suite(sutro_protect_test_suite);

MODULE_DESCRIPTION("KUnit tests of protection");
MODULE_LICENSE("GPL");
