// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the algorithm (sutro-core.c, sutro-tree.c): facts that follow from
 * its rules, on groups whose requests are numbers.
 *
 *	root --+-- a (200)		all weights are 100 unless a test
 *	       \-- b (100) --+-- c (100)	says otherwise
 *	                     \-- d (300)
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../sutro-core.h"

#define MS 1000000ULL
#define SLICE_NS (100 * MS)
#define IDLE_NS (8 * MS)
#define DEPTH_NS (4 * MS)

struct sutro_test {
	struct kunit *test;
	struct sutro_core core;
	struct sutro_group root, a, b, c, d;
	u64 now_ns;
};

static struct sutro_test *sutro_test_new(struct kunit *test, bool rotational)
{
	struct sutro_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct sutro_tunables *tunables;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	t->now_ns = 1000 * MS;
	tunables = &t->core.tunables;
	tunables->rotational = rotational;
	tunables->slice_ns = rotational ? SLICE_NS : 4 * MS;
	tunables->group_idle_ns = rotational ? IDLE_NS : MS;
	tunables->depth_ns = DEPTH_NS;
	sutro_group_init(&t->root, NULL, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->a, &t->root, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->b, &t->root, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->c, &t->b, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->d, &t->b, SUTRO_WEIGHT_DFL);
	sutro_core_init(&t->core, &t->root);
	return t;
}

static void arrive(struct sutro_test *t, struct sutro_group *group, int nr)
{
	while (nr--)
		sutro_core_queue(&t->core, group, false, t->now_ns);
}

static void forget(struct sutro_test *t)
{
	while (sutro_core_forget(&t->core, t->now_ns))
		;
}

static struct sutro_group *choose(struct sutro_test *t,
				  enum sutro_verdict *ret_verdict)
{
	forget(t);
	return sutro_core_select(&t->core, t->now_ns, ret_verdict);
}

static enum sutro_verdict ask(struct sutro_test *t)
{
	enum sutro_verdict verdict;

	choose(t, &verdict);
	return verdict;
}

/* A request from the choice to the end; says whose. */
static struct sutro_group *serve(struct sutro_test *t, u64 cost_ns)
{
	enum sutro_verdict verdict;
	struct sutro_group *group = choose(t, &verdict);

	KUNIT_ASSERT_EQ(t->test, verdict, SUTRO_SERVE);
	KUNIT_ASSERT_NOT_NULL(t->test, group);
	KUNIT_ASSERT_GT(t->test, group->queued, 0);
	sutro_core_dispatch(&t->core, group, cost_ns);
	t->now_ns += cost_ns;
	sutro_core_complete(&t->core, group, 1, cost_ns, cost_ns, t->now_ns);
	return group;
}

static void serve_many(struct sutro_test *t, int nr, u64 cost_ns)
{
	while (nr--)
		serve(t, cost_ns);
}

/* The example of sutro-tree.c. */
static void sutro_test_worked_example(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_weight(&t->a, 200);
	sutro_group_set_weight(&t->d, 300);
	arrive(t, &t->a, 100);
	arrive(t, &t->c, 100);
	arrive(t, &t->d, 100);
	serve_many(t, 12, MS);
	KUNIT_EXPECT_EQ(test, t->a.stat.time_ns, 8 * MS);
	KUNIT_EXPECT_EQ(test, t->c.stat.time_ns, 1 * MS);
	KUNIT_EXPECT_EQ(test, t->d.stat.time_ns, 3 * MS);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->a, 1200), 800);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->c, 1200), 100);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->d, 1200), 300);
	/* If it had requests of its own. */
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->b, 1200), 80);
}

/* 10000 to 1, in requests of 700 ns: the light one has its part. */
static void sutro_test_extreme_weights(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MAX);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MIN);
	arrive(t, &t->a, 100010);
	arrive(t, &t->b, 100);
	serve_many(t, 100000, 700);
	KUNIT_EXPECT_GE(test, t->b.stat.time_ns, 9 * 700);
	KUNIT_EXPECT_LE(test, t->b.stat.time_ns, 11 * 700);
}

/* Requests of a group itself compete with those of its children, at 100. */
static void sutro_test_own_requests(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_weight(&t->c, 300);
	arrive(t, &t->b, 100);
	arrive(t, &t->c, 100);
	serve_many(t, 40, MS);
	KUNIT_EXPECT_EQ(test, t->b.stat.time_ns, 10 * MS);
	KUNIT_EXPECT_EQ(test, t->c.stat.time_ns, 30 * MS);
}

static void sutro_test_weight_keeps_lag(struct kunit *test)
{
	static const u32 weights[] = { 1, 10000, 37, 9999, 2, 500, 100 };
	struct sutro_test *t = sutro_test_new(test, false);
	unsigned int i;
	s64 before_ns, now_ns;

	arrive(t, &t->a, 10);
	arrive(t, &t->b, 10);
	serve(t, 3 * MS);
	serve(t, 5 * MS);
	for (i = 0; i < ARRAY_SIZE(weights); i++) {
		before_ns = sutro_group_lag_ns(&t->a);
		sutro_group_set_weight(&t->a, weights[i]);
		now_ns = sutro_group_lag_ns(&t->a);
		KUNIT_EXPECT_LE(test, abs(now_ns - before_ns), 2);
	}
}

/* A new weight is in force with the next choice. */
static void sutro_test_weight_follows(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u64 time_ns;

	sutro_group_set_weight(&t->a, 200);
	arrive(t, &t->a, 1000);
	arrive(t, &t->b, 1000);
	serve_many(t, 300, MS);
	KUNIT_EXPECT_LE(test, abs((s64)(t->a.stat.time_ns - 200 * MS)), MS);
	sutro_group_set_weight(&t->a, 100);
	sutro_group_set_weight(&t->b, 200);
	time_ns = t->a.stat.time_ns + 10 * MS;
	serve_many(t, 30, MS);
	KUNIT_EXPECT_LE(test, abs((s64)(t->a.stat.time_ns - time_ns)), MS);
}

/* A group that was served in advance keeps that debt over a short sleep. */
static void sutro_test_debt(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	int i;

	arrive(t, &t->a, 1000);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 20 * MS), &t->b);
	forget(t);
	KUNIT_EXPECT_FALSE(test, t->b.self.active);
	arrive(t, &t->b, 1000);
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
}

/* A request that merges into another is not served, and not charged. */
static void sutro_test_unqueue(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	arrive(t, &t->a, 2);
	sutro_core_unqueue(&t->core, &t->a);
	serve(t, MS);
	KUNIT_EXPECT_EQ(test, t->core.queued, 0);
	KUNIT_EXPECT_EQ(test, t->a.stat.time_ns, MS);
}

/* Sleeping earns half a slice, however long. */
static void sutro_test_no_hoarding(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u64 half_ns = t->core.tunables.slice_ns / 2;

	arrive(t, &t->a, 20000);
	arrive(t, &t->b, 1);
	serve_many(t, 10000, MS);
	arrive(t, &t->b, 1000);
	KUNIT_EXPECT_LE(test, sutro_group_lag_ns(&t->b), (s64)(half_ns + MS));
	t->a.stat.time_ns = 0;
	t->b.stat.time_ns = 0;
	serve_many(t, 100, MS);
	KUNIT_EXPECT_LE(test, t->b.stat.time_ns,
			t->a.stat.time_ns + half_ns + 2 * MS);
}

/* What counts is what a request cost, not what it was estimated at. */
static void sutro_test_settles(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	enum sutro_verdict verdict;
	struct sutro_group *group;
	u64 cost_ns;
	int i;

	arrive(t, &t->a, 1000);
	arrive(t, &t->b, 1000);
	for (i = 0; i < 1000; i++) {
		group = choose(t, &verdict);
		KUNIT_ASSERT_EQ(test, verdict, SUTRO_SERVE);
		sutro_core_dispatch(&t->core, group, 2 * MS);
		cost_ns = group == &t->a ? 4 * MS : MS;
		sutro_core_complete(&t->core, group, 1, 2 * MS, cost_ns,
				    t->now_ns);
	}
	KUNIT_EXPECT_LE(test, abs((s64)(t->a.stat.time_ns - 800 * MS)), 4 * MS);
	KUNIT_EXPECT_LE(test, abs((s64)(t->b.stat.time_ns - 800 * MS)), 4 * MS);
}

/* Virtual times go through zero, and nobody notices. */
static void sutro_test_wraps(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u64 near = -(u64)500 * MS;

	t->root.level.rank[SUTRO_CLASS_BE].vtime = near;
	t->a.entity.vtime = near;
	t->b.entity.vtime = near;
	arrive(t, &t->a, 3000);
	arrive(t, &t->b, 3000);
	serve_many(t, 2000, MS);
	KUNIT_EXPECT_LT(test, t->a.entity.vtime, near);
	KUNIT_EXPECT_EQ(test, t->a.stat.time_ns, 1000 * MS);
	KUNIT_EXPECT_EQ(test, t->b.stat.time_ns, 1000 * MS);
}

/* Streams keep a rotational device for a slice. */
static void sutro_test_slice(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	struct sutro_group *first;
	int i;

	arrive(t, &t->a, 100);
	arrive(t, &t->b, 100);
	first = serve(t, 10 * MS);
	for (i = 1; i < 10; i++)
		KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), first);
	KUNIT_EXPECT_PTR_NE(test, serve(t, 10 * MS), first);
	KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_USED);
}

/* Jumping about, each request is a turn. */
static void sutro_test_no_slice(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	s64 ahead_ns;
	int i;

	for (i = 0; i < 100; i++) {
		sutro_core_queue(&t->core, &t->a, true, t->now_ns);
		sutro_core_queue(&t->core, &t->b, true, t->now_ns);
	}
	for (i = 0; i < 50; i++) {
		serve(t, 10 * MS);
		ahead_ns = t->a.stat.time_ns - t->b.stat.time_ns;
		KUNIT_EXPECT_LE(test, abs(ahead_ns), 10 * MS);
		KUNIT_EXPECT_NULL(test, t->core.in_service);
	}
}

/* The device is kept idle for who has a slice, who pays for it; not for ever. */
static void sutro_test_idling(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_EQ(test, ask(t), SUTRO_IDLE);
	KUNIT_EXPECT_EQ(test, t->core.idle_until_ns, t->now_ns + IDLE_NS);
	t->now_ns += 5 * MS;
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_EQ(test, t->a.stat.idle_ns, 5 * MS);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	KUNIT_EXPECT_EQ(test, ask(t), SUTRO_IDLE);
	t->now_ns = t->core.idle_until_ns;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_EMPTY);
}

/* Nobody waits for a cgroup that was removed. */
static void sutro_test_gone(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->a, 1);
	serve(t, 10 * MS);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_EQ(test, ask(t), SUTRO_IDLE);
	sutro_group_set_gone(&t->core, &t->a);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	KUNIT_EXPECT_FALSE(test, t->a.self.active);

	/* Nor is it, if it was removed before. */
	t = sutro_test_new(test, true);
	arrive(t, &t->a, 1);
	sutro_group_set_gone(&t->core, &t->a);
	serve(t, 10 * MS);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
}

/* Who wakes up and is owed half a slice does not wait for the end of another. */
static void sutro_test_preempts(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->a, 100);
	serve_many(t, 25, 10 * MS);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_PREEMPTED);
}

/* An estimate that is right; says whose. */
static struct sutro_group *send(struct sutro_test *t, u64 cost_ns)
{
	enum sutro_verdict verdict;
	struct sutro_group *group = choose(t, &verdict);

	KUNIT_ASSERT_EQ(t->test, verdict, SUTRO_SERVE);
	KUNIT_ASSERT_NOT_NULL(t->test, group);
	sutro_core_dispatch(&t->core, group, cost_ns);
	return group;
}

/* b, away, light and further behind, can wait: a, heavy, can not. */
static void sutro_test_hides_nobody(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	sutro_group_set_weight(&t->a, 9000);
	sutro_group_set_weight(&t->b, 9);
	t->a.seek_history = ~0;
	t->b.seek_history = ~0;
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS / 100), &t->b);
	arrive(t, &t->a, 2);
	KUNIT_EXPECT_PTR_EQ(test, send(t, 10 * MS), &t->a);
	KUNIT_EXPECT_PTR_EQ(test, send(t, 10 * MS), &t->a);
	arrive(t, &t->root, 2);
	t->root.seek_history = ~0;
	KUNIT_EXPECT_PTR_EQ(test, send(t, 10 * MS), &t->root);
	KUNIT_EXPECT_EQ(test, ask(t), SUTRO_WAIT);

	/* One of a's is done and followed by another: a is next. */
	sutro_core_complete(&t->core, &t->a, 1, 10 * MS, 10 * MS, t->now_ns);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(t, 10 * MS), &t->a);
}

/*
 * a, heavy, has one request at the device all the time, b, light, is served beside it.
 * When a wants more, who comes then does not wait for all that b has had.
 */
static void sutro_test_newcomer(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group *group;
	u64 time_ns;

	sutro_group_set_weight(&t->a, 9000);
	sutro_group_set_weight(&t->b, 9);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->a);
	arrive(t, &t->b, 1000);
	serve_many(t, 1000, MS);
	KUNIT_EXPECT_EQ(test, t->b.stat.time_ns, 1000 * MS);

	arrive(t, &t->a, 1000);
	arrive(t, &t->root, 1);
	time_ns = t->a.stat.time_ns;
	do
		group = serve(t, MS);
	while (group == &t->a);
	KUNIT_EXPECT_PTR_EQ(test, group, &t->root);
	KUNIT_EXPECT_LE(test, t->a.stat.time_ns - time_ns, 251 * MS);
}

/* While several compete, no more is sent than takes depth_ns. */
static void sutro_test_depth(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	enum sutro_verdict verdict;
	struct sutro_group *group;
	unsigned int sent = 0;

	arrive(t, &t->a, 100);
	arrive(t, &t->b, 100);
	while ((group = choose(t, &verdict))) {
		sutro_core_dispatch(&t->core, group, MS / 10);
		sent++;
	}
	KUNIT_EXPECT_EQ(test, verdict, SUTRO_WAIT);
	KUNIT_EXPECT_EQ(test, sent, DEPTH_NS / (MS / 10));
	sutro_core_complete(&t->core, &t->a, 1, MS / 10, MS / 10, t->now_ns);
	choose(t, &verdict);
	KUNIT_EXPECT_EQ(test, verdict, SUTRO_SERVE);
}

/* Class before weight; the lower one has one part in 33 when it has aged. */
static void sutro_test_classes(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	int i;

	sutro_group_set_class(&t->core, &t->a, SUTRO_CLASS_RT);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MAX);
	arrive(t, &t->a, 2000);
	arrive(t, &t->b, 200);
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->b);
	for (i = 0; i < 32; i++)
		KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->b);
	serve_many(t, 330, MS);
	KUNIT_EXPECT_EQ(test, t->b.stat.time_ns, 12 * MS);
}

/* A group of a higher class that wakes up ends the slice of a lower one. */
static void sutro_test_class_preempts(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_IDLE);
	arrive(t, &t->b, 10);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_PREEMPTED);
	/* A lower one does not, and the higher one is waited for. */
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_EQ(test, ask(t), SUTRO_IDLE);
}

/* Whatever came and went, nothing is left of it. */
static void sutro_test_nothing_is_left(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	struct sutro_group *groups[] = { &t->root, &t->a, &t->b, &t->c, &t->d };
	unsigned int i, r;

	for (i = 0; i < 1000; i++) {
		struct sutro_group *group = groups[i % 7 % 5];

		arrive(t, group, 1 + i % 3);
		if (i % 11 == 0)
			sutro_core_unqueue(&t->core, group);
		if (i % 5 == 0 && group != &t->root) {
			sutro_group_set_weight(group, 1 + i * 37 % 10000);
			sutro_group_set_class(&t->core, group,
					      i % SUTRO_CLASS_NR);
		}
		if (ask(t) == SUTRO_SERVE)
			serve(t, MS * (1 + i % 13));
		else
			t->now_ns += MS;
	}
	while (t->core.queued) {
		if (ask(t) == SUTRO_SERVE)
			serve(t, MS);
		else
			t->now_ns += MS;
	}
	t->now_ns += IDLE_NS;
	forget(t);
	KUNIT_EXPECT_EQ(test, ask(t), SUTRO_EMPTY);
	KUNIT_EXPECT_EQ(test, t->core.nr_active, 0);
	KUNIT_EXPECT_EQ(test, t->core.in_flight_ns, 0);
	KUNIT_EXPECT_NULL(test, t->core.in_service);
	KUNIT_EXPECT_NULL(test, t->core.idle_for);
	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		KUNIT_EXPECT_EQ(test, groups[i]->level.nr_active, 0);
		for (r = 0; r < SUTRO_CLASS_NR; r++)
			KUNIT_EXPECT_EQ(test,
					groups[i]->level.rank[r].weight_sum, 0);
	}
}

static struct kunit_case sutro_core_test_cases[] = {
	KUNIT_CASE(sutro_test_worked_example),
	KUNIT_CASE(sutro_test_extreme_weights),
	KUNIT_CASE(sutro_test_own_requests),
	KUNIT_CASE(sutro_test_weight_keeps_lag),
	KUNIT_CASE(sutro_test_weight_follows),
	KUNIT_CASE(sutro_test_debt),
	KUNIT_CASE(sutro_test_unqueue),
	KUNIT_CASE(sutro_test_no_hoarding),
	KUNIT_CASE(sutro_test_settles),
	KUNIT_CASE(sutro_test_wraps),
	KUNIT_CASE(sutro_test_slice),
	KUNIT_CASE(sutro_test_no_slice),
	KUNIT_CASE(sutro_test_idling),
	KUNIT_CASE(sutro_test_gone),
	KUNIT_CASE(sutro_test_preempts),
	KUNIT_CASE(sutro_test_hides_nobody),
	KUNIT_CASE(sutro_test_newcomer),
	KUNIT_CASE(sutro_test_depth),
	KUNIT_CASE(sutro_test_classes),
	KUNIT_CASE(sutro_test_class_preempts),
	KUNIT_CASE(sutro_test_nothing_is_left),
	{}
};

static struct kunit_suite sutro_core_test_suite = {
	.name = "sutro_core",
	.test_cases = sutro_core_test_cases,
};

kunit_test_suite(sutro_core_test_suite);

MODULE_DESCRIPTION("KUnit tests of the sutro algorithm");
MODULE_LICENSE("GPL");
