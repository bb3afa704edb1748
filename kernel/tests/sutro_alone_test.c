// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of a group that is alone (sutro-core.c): its requests pass the tree, and
 * the groups that come then are served as if they had not.
 */
#include "sutro_test.h"

/* The example of sutro-core.c. */
static void sutro_test_pass_example(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	int i, nr_b;

	for (i = 0; i < 1000; i++) {
		KUNIT_EXPECT_TRUE(test, pass(t, &t->a, MS / 10));
		finish(t, &t->a, MS / 10, MS / 10);
	}
	arrive(t, &t->a, 100);
	arrive(t, &t->b, 100);
	forget(t);
	KUNIT_EXPECT_EQ(test, sutro_group_lag_ns(&t->a), 0);
	KUNIT_EXPECT_EQ(test, sutro_group_lag_ns(&t->b), 2 * MS);
	/* b may be owed half a slice, which is 2 ms, and no more. */
	nr_b = serve_many(t, 100, MS / 10, &t->b);
	KUNIT_EXPECT_GE(test, nr_b, 50);
	KUNIT_EXPECT_LE(test, nr_b, 60);
}

static void sutro_test_does_not_pass(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	KUNIT_EXPECT_TRUE(test, pass(t, &t->a, MS));
	/* a has a request at the device. */
	KUNIT_EXPECT_FALSE(test, pass(t, &t->b, MS));
	finish(t, &t->a, MS, MS);
	KUNIT_EXPECT_TRUE(test, pass(t, &t->a, MS));
	/* A request waits that came before. */
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_FALSE(test, pass(t, &t->a, MS));
	finish(t, &t->a, MS, MS);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	/* With fairness=1 it has slices. */
	t->core.tunables.fairness = true;
	t->now_ns += 1000 * MS;
	KUNIT_EXPECT_FALSE(test, pass(t, &t->a, MS));
}

/* Requests pass while another group is expected, until they keep the device busy. */
static void sutro_test_pass_leaves_room(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	t->core.tunables.busy_ns = 2 * MS;
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	forget(t);
	KUNIT_EXPECT_EQ(test, t->core.nr_active, 0);

	KUNIT_EXPECT_TRUE(test, pass(t, &t->b, MS));
	KUNIT_EXPECT_TRUE(test, pass(t, &t->b, MS));
	KUNIT_EXPECT_FALSE(test, pass(t, &t->b, MS));
	/* As without passing. */
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
	finish(t, &t->b, MS, MS);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->b);
	/* a did not come. */
	t->now_ns += 10 * MS;
	KUNIT_EXPECT_TRUE(test, pass(t, &t->b, MS));
}

/* A group whose cgroup was removed leaves, also if it has passed and is empty. */
static void sutro_test_passed_is_gone(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	KUNIT_EXPECT_TRUE(test, pass(t, &t->a, MS));
	finish(t, &t->a, MS, MS);
	forget(t);
	KUNIT_EXPECT_EQ(test, t->core.nr_active, 1);
	sutro_core_settle(&t->core);
	sutro_group_set_gone(&t->core, &t->a);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_EMPTY);
	KUNIT_EXPECT_EQ(test, t->core.nr_active, 0);
}

/* Requests that were above the elevator when their cgroup was removed do not pass. */
static void sutro_test_gone_does_not_pass(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_gone(&t->core, &t->a);
	KUNIT_EXPECT_FALSE(test, pass(t, &t->a, MS));
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->a);
	finish(t, &t->a, MS, MS);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_EMPTY);
	KUNIT_EXPECT_EQ(test, t->core.nr_active, 0);
}

/* @nr requests one after the other; returns the number of those that passed. */
static u32 run_alone(struct sutro_test *t, struct sutro_group *group, u32 nr,
		     u64 cost_ns, bool may_pass)
{
	u32 passed = 0;

	while (nr--) {
		if (may_pass && pass(t, group, cost_ns)) {
			finish(t, group, cost_ns, cost_ns);
			passed++;
		} else {
			arrive(t, group, 1);
			KUNIT_EXPECT_PTR_EQ(t->test, serve(t, cost_ns), group);
		}
	}
	return passed;
}

/* All but the root have requests without end, and @nr of them are served. */
static void contest(struct sutro_test *t, struct sutro_group *groups[4], u32 nr)
{
	int i;

	for (i = 0; i < 4; i++)
		arrive(t, groups[i], nr);
	serve_many(t, nr, MS / 4, NULL);
	for (i = 0; i < 4; i++)
		while (groups[i]->queued)
			sutro_core_unqueue(&t->core, groups[i]);
	forget(t);
}

/* The same happens twice; in @queued all requests are queued and chosen. */
static void compare(struct kunit *test, u64 random)
{
	struct sutro_test *queued = sutro_test_new(test, false);
	struct sutro_test *passed = sutro_test_new(test, false);
	struct sutro_group *in_queued[] = { &queued->a, &queued->b, &queued->c,
					    &queued->e };
	struct sutro_group *in_passed[] = { &passed->a, &passed->b, &passed->c,
					    &passed->e };
	u32 nr_passed = 0, weight, who, nr, cost_ns;
	int round, i;

	for (i = 0; i < 4; i++) {
		weight = 1 + random_below(&random, 500);
		sutro_group_set_weight(in_queued[i], weight);
		sutro_group_set_weight(in_passed[i], weight);
	}
	for (round = 1; round <= 20; round++) {
		who = random_below(&random, 4);
		nr = 1 + random_below(&random, 300);
		cost_ns = 1 + random_below(&random, MS);
		run_alone(queued, in_queued[who], nr, cost_ns, false);
		nr_passed +=
			run_alone(passed, in_passed[who], nr, cost_ns, true);
		if (random_below(&random, 2)) {
			weight = 1 + random_below(&random, 1000);
			sutro_core_settle(&passed->core);
			sutro_group_set_weight(in_passed[who], weight);
			sutro_group_set_weight(in_queued[who], weight);
		}
		nr = 50 + random_below(&random, 200);
		contest(queued, in_queued, nr);
		contest(passed, in_passed, nr);
		/* The clock is at most a request further. */
		for (i = 0; i < 4; i++)
			EXPECT_NEAR(test, in_passed[i]->stat.time_ns,
				    in_queued[i]->stat.time_ns, round * 4 * MS);
		queued->now_ns += 100 * MS;
		passed->now_ns = queued->now_ns;
	}
	KUNIT_EXPECT_GT(test, nr_passed, 0);
	sutro_core_settle(&passed->core);
	forget(passed);
	KUNIT_EXPECT_EQ(test, passed->core.nr_active, 0);
}

static void sutro_test_pass_is_not_noticed(struct kunit *test)
{
	u64 seed;

	for (seed = 1; seed <= 25; seed++)
		compare(test, seed);
}

static struct kunit_case sutro_alone_cases[] = {
	KUNIT_CASE(sutro_test_pass_example),
	KUNIT_CASE(sutro_test_does_not_pass),
	KUNIT_CASE(sutro_test_pass_leaves_room),
	KUNIT_CASE(sutro_test_passed_is_gone),
	KUNIT_CASE(sutro_test_gone_does_not_pass),
	KUNIT_CASE(sutro_test_pass_is_not_noticed),
	{}
};

sutro_suite(sutro_alone, "a group that is alone");
