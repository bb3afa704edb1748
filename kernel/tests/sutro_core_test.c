// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of shares (sutro-core.c, sutro-tree.c): facts that follow from their rules. */
#include "sutro_test.h"

#define DAY_NS (24 * 3600 * 1000 * MS)

/* The worked example in the header comment of sutro-tree.c. */
static void sutro_test_worked_example(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_weight(&t->a, 200);
	sutro_group_set_weight(&t->d, 300);
	arrive(t, &t->a, 100);
	arrive(t, &t->c, 100);
	arrive(t, &t->d, 100);
	serve_many(t, 12, MS, NULL);
	KUNIT_EXPECT_EQ(test, t->a.stat.time_ns, 8 * MS);
	KUNIT_EXPECT_EQ(test, t->c.stat.time_ns, 1 * MS);
	KUNIT_EXPECT_EQ(test, t->d.stat.time_ns, 3 * MS);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->a, 1200), 800);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->c, 1200), 100);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->d, 1200), 300);
	/* b has requests only below it: this would be its share with its own. */
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->b, 1200), 80);
}

/* Weights 10000 and 1, requests of 700 ns: the lighter group receives its share. */
static void sutro_test_extreme_weights(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MAX);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MIN);
	arrive(t, &t->a, 100010);
	arrive(t, &t->b, 100);
	serve_many(t, 100000, 700, NULL);
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
	serve_many(t, 40, MS, NULL);
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
	serve_many(t, 300, MS, NULL);
	KUNIT_EXPECT_LE(test, abs((s64)(t->a.stat.time_ns - 200 * MS)), MS);
	sutro_group_set_weight(&t->a, 100);
	sutro_group_set_weight(&t->b, 200);
	time_ns = t->a.stat.time_ns + 10 * MS;
	serve_many(t, 30, MS, NULL);
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
	serve_many(t, 10000, MS, NULL);
	arrive(t, &t->b, 1000);
	KUNIT_EXPECT_LE(test, sutro_group_lag_ns(&t->b), (s64)(half_ns + MS));
	t->a.stat.time_ns = 0;
	t->b.stat.time_ns = 0;
	serve_many(t, 100, MS, NULL);
	KUNIT_EXPECT_LE(test, t->b.stat.time_ns,
			t->a.stat.time_ns + half_ns + 2 * MS);
}

/* The measured cost of a request counts, not the estimate. */
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

/* Virtual times pass through zero without an effect. */
static void sutro_test_wraps(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u64 near = -(u64)500 * MS;

	t->root.level.rank[SUTRO_CLASS_BE].vtime = near;
	t->a.entity.vtime = near;
	t->b.entity.vtime = near;
	arrive(t, &t->a, 3000);
	arrive(t, &t->b, 3000);
	serve_many(t, 2000, MS, NULL);
	KUNIT_EXPECT_LT(test, t->a.entity.vtime, near);
	KUNIT_EXPECT_EQ(test, t->a.stat.time_ns, 1000 * MS);
	KUNIT_EXPECT_EQ(test, t->b.stat.time_ns, 1000 * MS);
}

/*
 * a, heavy, has one request at the device all the time, b, light, is served beside it.
 * When a requests more, a group that comes then does not wait for all that b has had.
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
	serve_many(t, 1000, MS, NULL);
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

/*
 * b had the device beside a, which is heavy and sends little.  e is owed nothing for
 * that: b has its part soon after e came.
 */
static void sutro_test_owed_nothing(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	int i;

	sutro_group_set_weight(&t->a, 9000);
	sutro_group_set_weight(&t->e, 1000);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->a);
	arrive(t, &t->b, 20000);
	KUNIT_EXPECT_EQ(test, serve_many(t, 10000, MS, &t->b), 10000);
	arrive(t, &t->e, 1000);
	/* b is due 1 ms for each 10 ms of e. */
	for (i = 0; serve(t, MS) != &t->b; i++)
		KUNIT_ASSERT_GT(test, 20, i);
}

/* A group with months of debt is made as light as can be, and heavy again. */
static void sutro_test_reweigh_debt(struct kunit *test)
{
	static const u32 weights[] = { 1, 9065, 2, 10000, 1 };
	struct sutro_test *t = sutro_test_new(test, false);
	int i;

	sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MAX);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MAX);
	/* Half an hour at weight 1: months at this one. */
	t->a.entity.vtime = 1800 * 1000 * MS * 100 << 8;
	arrive(t, &t->a, 9);
	arrive(t, &t->b, 9);
	for (i = 0; i < ARRAY_SIZE(weights); i++) {
		sutro_group_set_weight(&t->a, weights[i]);
		KUNIT_EXPECT_LE(test, sutro_group_lag_ns(&t->a), 0);
		KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->b);
	}
}

/* Requests that cost 2.9 days are charged to a group of weight 1, and refunded. */
static void sutro_test_extreme_costs(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	u64 cost_ns = 29 * DAY_NS / 10;
	struct sutro_group *group;

	sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MIN);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MAX);
	arrive_far(t, &t->a, 9);
	/* The request completes at once, so that the next one is not late. */
	KUNIT_EXPECT_PTR_EQ(test, send(t, cost_ns), &t->a);
	sutro_core_complete(&t->core, &t->a, 1, cost_ns, cost_ns, t->now_ns);
	arrive_far(t, &t->b, 9);
	EXPECT_NEAR(test, sutro_group_lag_ns(&t->a), 0, cost_ns);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, cost_ns), &t->b);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MIN);
	sutro_core_unqueue(&t->core, &t->a);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->a, 1ULL << 40), 1ULL << 39);

	/* A request that the device did not serve. */
	arrive(t, &t->b, 1);
	group = send(t, cost_ns);
	KUNIT_ASSERT_NOT_NULL(test, group);
	finish(t, group, cost_ns, 0);
	KUNIT_EXPECT_EQ(test, t->core.in_flight_ns, 0);
}

/*
 * A group sleeps while the virtual time goes once round, or part of it: when it
 * comes back it is served as if it had slept for a minute.
 */
static void sutro_test_long_sleep(struct kunit *test)
{
	int days, nr_a;

	for (days = 1; days <= 12; days++) {
		struct sutro_test *t = sutro_test_new(test, false);

		sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MIN);
		arrive(t, &t->a, 24 * days + 1000);
		arrive(t, &t->b, 1);
		serve_many(t, 24 * days, DAY_NS / 24, NULL);
		/* The level's clock is where its last request began. */
		serve_many(t, 2, MS, NULL);
		arrive(t, &t->b, 1000);
		nr_a = serve_many(t, 500, MS, &t->a);
		KUNIT_EXPECT_GE(test, nr_a, 1);
		KUNIT_EXPECT_LE(test, nr_a, 9);
	}
}

/* A thousand groups below one another: half to each level, the rest further down. */
static void sutro_test_deep_tree(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group *groups =
		kunit_kzalloc(test, 1000 * sizeof(*groups), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, groups);
	for (i = 0; i < 1000; i++)
		sutro_group_init(&groups[i], i ? &groups[i - 1] : &t->a,
				 SUTRO_WEIGHT_DFL);
	arrive(t, &t->a, 600);
	for (i = 0; i < 1000; i++)
		arrive(t, &groups[i], i < 8 ? 300 : 10);
	serve_many(t, 1000, MS, NULL);
	EXPECT_NEAR(test, t->a.stat.time_ns, 500 * MS, 2 * MS);
	for (i = 0; i < 7; i++)
		EXPECT_NEAR(test, groups[i].stat.time_ns, 1000 * MS >> (i + 2),
			    2 * MS);
}

/* Nested as deeply as its user likes, a subtree is 16 levels deep, and has its share. */
static void sutro_test_nested(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group *groups =
		kunit_kzalloc(test, 1000 * sizeof(*groups), GFP_KERNEL);
	struct sutro_group *group;
	u64 time_ns = 0;
	int i, steps;

	KUNIT_ASSERT_NOT_NULL(test, groups);
	for (i = 0; i < 1000; i++) {
		sutro_group_init(&groups[i], i ? &groups[i - 1] : &t->b,
				 SUTRO_WEIGHT_DFL);
		steps = 0;
		for (group = &groups[i]; group->parent; group = group->parent)
			steps++;
		KUNIT_EXPECT_EQ(test, steps, min(i + 2, SUTRO_LEVELS));
	}
	arrive(t, &t->a, 1000);
	/* All of these are on the last level. */
	for (i = 900; i < 1000; i++)
		arrive(t, &groups[i], 10);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&groups[999], 1000), 5);
	serve_many(t, 1000, MS, NULL);
	EXPECT_NEAR(test, t->a.stat.time_ns, 500 * MS, MS);
	for (i = 900; i < 1000; i++) {
		EXPECT_NEAR(test, groups[i].stat.time_ns, 5 * MS, MS);
		time_ns += groups[i].stat.time_ns;
	}
	EXPECT_NEAR(test, time_ns, 500 * MS, MS);
}

/* Weight 1 beside 10000, one request of 8 ms at a time: 5 s, not 80. */
static void sutro_test_starved(struct kunit *test)
{
	int rotational;

	for (rotational = 0; rotational < 2; rotational++) {
		struct sutro_test *t = sutro_test_new(test, rotational);
		u64 since_ns, longest_ns = 0;
		int nr_b = 0;

		sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MAX);
		sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MIN);
		arrive_far(t, &t->a, 40000);
		while (t->a.queued > 30000) {
			arrive_far(t, &t->c, 1);
			since_ns = t->now_ns;
			while (t->c.queued && t->a.queued)
				serve(t, 8 * MS);
			longest_ns = max(longest_ns, t->now_ns - since_ns);
			nr_b++;
		}
		KUNIT_EXPECT_GE(test, nr_b, 16);
		KUNIT_EXPECT_LE(test, longest_ns, 5000 * MS + 2 * 8 * MS);
	}
}

/* A hundred such groups: the bound of sutro-starved.c, and a part of 33 of the time. */
static void sutro_test_many_starved(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group *groups =
		kunit_kzalloc(test, 100 * sizeof(*groups), GFP_KERNEL);
	u64 begin_ns = t->now_ns, light_ns = 0, took_ns;
	struct sutro_group *group;
	u64 waits_ns = 0;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, groups);
	sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MAX);
	arrive(t, &t->a, 40000);
	for (i = 0; i < 100; i++) {
		sutro_group_init(&groups[i], &t->root, SUTRO_WEIGHT_MIN);
		arrive(t, &groups[i], 100);
	}
	while (t->now_ns - begin_ns < 200 * 1000 * MS) {
		group = serve(t, 8 * MS);
		light_ns += group == &t->a ? 0 : 8 * MS;
		for (i = 0; i < 100; i++)
			waits_ns = max(waits_ns,
				       t->now_ns - groups[i].waits_since_ns);
	}
	took_ns = t->now_ns - begin_ns;
	KUNIT_EXPECT_LE(test, waits_ns, 5000 * MS + 33 * 99 * 8 * MS);
	/* Their weights alone are worth a part of 101. */
	KUNIT_EXPECT_LE(test, light_ns,
			took_ns / 33 + took_ns / 101 + 100 * 8 * MS);
}

/* Beside the heaviest groups, the root's own requests have a ninth of the time. */
static void sutro_test_root(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u64 time_ns;

	sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MAX);
	arrive(t, &t->a, 10000);
	arrive(t, &t->root, 10000);
	sutro_group_set_weight(&t->c, 1);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MAX);
	arrive(t, &t->c, 10000);
	serve_many(t, 900, MS, NULL);
	EXPECT_NEAR(test, t->root.stat.time_ns, 100 * MS, 2 * MS);
	/* Where all weigh 100, so do they. */
	sutro_group_set_weight(&t->a, SUTRO_WEIGHT_DFL);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_DFL);
	time_ns = t->root.stat.time_ns;
	serve_many(t, 900, MS, NULL);
	EXPECT_NEAR(test, t->root.stat.time_ns - time_ns, 300 * MS, 2 * MS);
	KUNIT_EXPECT_EQ(test, t->root.self.weight, SUTRO_WEIGHT_DFL);
}

/* After any arrivals and departures the state is empty. */
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
		if (next_verdict(t) == SUTRO_SERVE)
			serve(t, MS * (1 + i % 13));
		else
			t->now_ns += MS;
	}
	while (t->core.queued) {
		if (next_verdict(t) == SUTRO_SERVE)
			serve(t, MS);
		else
			t->now_ns += MS;
	}
	t->now_ns += IDLE_NS;
	forget(t);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_EMPTY);
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

/* Time of c that counts for b alone: a comes first for as long, and c and d are equal. */
static void sutro_test_charged_to_slices(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group *served;
	int i, nr_c = 0, nr_d = 0;

	arrive_far(t, &t->a, 40);
	arrive_far(t, &t->c, 40);
	arrive_far(t, &t->d, 40);
	sutro_tree_charge_slices(&t->c, 10 * MS);
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	for (i = 0; i < 20; i++) {
		served = serve(t, MS);
		nr_c += served == &t->c;
		nr_d += served == &t->d;
	}
	KUNIT_EXPECT_EQ(test, nr_c, 5);
	KUNIT_EXPECT_EQ(test, nr_d, 5);
}

static struct kunit_case sutro_core_cases[] = {
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
	KUNIT_CASE(sutro_test_newcomer),
	KUNIT_CASE(sutro_test_owed_nothing),
	KUNIT_CASE(sutro_test_reweigh_debt),
	KUNIT_CASE(sutro_test_extreme_costs),
	KUNIT_CASE(sutro_test_long_sleep),
	KUNIT_CASE(sutro_test_deep_tree),
	KUNIT_CASE(sutro_test_nested),
	KUNIT_CASE(sutro_test_starved),
	KUNIT_CASE(sutro_test_many_starved),
	KUNIT_CASE(sutro_test_root),
	KUNIT_CASE(sutro_test_nothing_is_left),
	KUNIT_CASE(sutro_test_charged_to_slices),
	{}
};

sutro_suite(sutro_core, "the sutro algorithm");
