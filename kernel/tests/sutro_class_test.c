// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of classes: a higher one is served first, and a lower one does not starve. */
#include "sutro_test.h"

/* a of class rt, b be, e idle, with slices of 100 ms or none. */
static struct sutro_test *three_classes(struct kunit *test, bool rotational)
{
	struct sutro_test *t = sutro_test_new(test, rotational);

	sutro_group_set_class(&t->core, &t->a, SUTRO_CLASS_RT);
	sutro_group_set_class(&t->core, &t->e, SUTRO_CLASS_IDLE);
	return t;
}

/* Class before weight; the lower one has 1/33 when it has aged. */
static void sutro_test_classes(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_class(&t->core, &t->a, SUTRO_CLASS_RT);
	sutro_group_set_weight(&t->b, SUTRO_WEIGHT_MAX);
	arrive(t, &t->a, 2000);
	arrive(t, &t->b, 200);
	KUNIT_EXPECT_EQ(test, serve_many(t, 64, MS, &t->a), 64);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->b);
	KUNIT_EXPECT_EQ(test, serve_many(t, 32, MS, &t->a), 32);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->b);
	serve_many(t, 330, MS, NULL);
	KUNIT_EXPECT_EQ(test, t->b.stat.time_ns, 12 * MS);
}

/* Each lower class has 1/33, with and without slices; weights change nothing. */
static void sutro_test_three_classes(struct kunit *test)
{
	int rotational;

	for (rotational = 0; rotational < 2; rotational++) {
		struct sutro_test *t = three_classes(test, rotational);
		u32 each_ms = rotational ? 10 : 1;
		u32 part_ms = 10000 * each_ms / 33;

		sutro_group_set_weight(&t->a, SUTRO_WEIGHT_MIN);
		sutro_group_set_weight(&t->e, SUTRO_WEIGHT_MAX);
		arrive(t, &t->a, 20000);
		arrive(t, &t->b, 20000);
		arrive(t, &t->e, 20000);
		serve_many(t, 10000, each_ms * MS, NULL);
		/* Of 33 * 33 parts: 32 idle ones were taken from the others' 33. */
		EXPECT_NEAR(test, t->e.stat.time_ns, part_ms * MS,
			    part_ms / 10 * MS);
		EXPECT_NEAR(test, t->b.stat.time_ns, part_ms * MS,
			    part_ms / 10 * MS);
	}
}

/* An rt child of an idle group comes before its siblings, and after its uncles. */
static void sutro_test_among_siblings(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_IDLE);
	sutro_group_set_class(&t->core, &t->c, SUTRO_CLASS_RT);
	arrive(t, &t->c, 40);
	arrive(t, &t->d, 40);
	arrive(t, &t->a, 40);
	KUNIT_EXPECT_EQ(test, serve_many(t, 40, MS, &t->a), 40);
	KUNIT_EXPECT_EQ(test, serve_many(t, 40, MS, &t->c), 40);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->d);
	/* The parent's own requests are be: with those of d. */
	arrive(t, &t->b, 1);
	arrive(t, &t->c, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->c);
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
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
}

/* One request at a time: the drive idles for the next one, but not for ever. */
static void sutro_test_class_idling(struct kunit *test)
{
	struct sutro_test *t = three_classes(test, true);
	struct sutro_group *group;
	u32 nr_b = 0;
	int i;

	arrive(t, &t->b, 1000);
	for (i = 0; i < 1000; i++) {
		arrive(t, &t->a, 1);
		while (t->a.queued)
			nr_b += serve(t, 10 * MS) == &t->b;
		group = send(t, 10 * MS);
		if (group) {
			KUNIT_EXPECT_PTR_EQ(test, group, &t->b);
			finish(t, group, 10 * MS, 10 * MS);
			nr_b++;
		}
		t->now_ns += 2 * MS;
	}
	/*
	 * Of 1000 times 12 ms, less the first 1.6 s, 1/32 in requests of 10 ms; its
	 * last slice is not yet paid.
	 */
	EXPECT_NEAR(test, nr_b, (12 * 1000 - 1600) / 32 / 10, 12);

	/* a does not come back: b is served after group_idle. */
	while ((group = send(t, 10 * MS)))
		finish(t, group, 10 * MS, 10 * MS);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	t->now_ns = t->core.idle_until_ns;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
}

/* While all of a's requests are at the drive, b's turns are charged. */
static void sutro_test_class_away(struct kunit *test)
{
	struct sutro_test *t = three_classes(test, true);
	u32 nr_b = 0;
	int i;

	arrive_far(t, &t->a, 8);
	arrive_far(t, &t->b, 1000);
	for (i = 0; i < 1000; i++) {
		send_all(t, 10 * MS);
		/* The drive prefers b's requests. */
		if (t->b.in_flight) {
			finish(t, &t->b, 10 * MS, 10 * MS);
			nr_b++;
		} else {
			arrive_far(t, &t->a, 1);
			finish(t, &t->a, 10 * MS, 10 * MS);
		}
	}
	EXPECT_NEAR(test, nr_b, 1000 / 33, 6);
}

/* Neither sleep nor service while alone is held against a class, or for it. */
static void sutro_test_class_no_hoarding(struct kunit *test)
{
	struct sutro_test *t = three_classes(test, false);

	/* e ages, and sleeps while b goes on. */
	arrive(t, &t->b, 10000);
	arrive(t, &t->e, 1);
	KUNIT_EXPECT_EQ(test, serve_many(t, 64, MS, &t->b), 64);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->e);
	KUNIT_EXPECT_EQ(test, serve_many(t, 1000, MS, &t->b), 1000);
	arrive(t, &t->e, 1000);
	KUNIT_EXPECT_EQ(test, serve_many(t, 33, MS, &t->e), 1);

	/* e alone for a while: it does not have to pay for that. */
	while (t->b.queued)
		serve(t, MS);
	KUNIT_EXPECT_EQ(test, serve_many(t, 500, MS, &t->e), 500);
	arrive(t, &t->e, 1000);
	arrive(t, &t->b, 1000);
	EXPECT_NEAR(test, serve_many(t, 330, MS, &t->e), 10, 2);
}

/* A class changes in mid-run: with the next choice, and lags stay. */
static void sutro_test_class_changes(struct kunit *test)
{
	struct sutro_test *t = three_classes(test, true);
	s64 lag_ns;

	arrive(t, &t->b, 1000);
	arrive(t, &t->e, 1000);
	KUNIT_EXPECT_EQ(test, serve_many(t, 5, 10 * MS, &t->b), 5);
	sutro_group_set_class(&t->core, &t->e, SUTRO_CLASS_RT);
	KUNIT_EXPECT_EQ(test, serve_many(t, 5, 10 * MS, &t->e), 5);
	sutro_group_set_class(&t->core, &t->e, SUTRO_CLASS_BE);
	lag_ns = sutro_group_lag_ns(&t->b);
	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_IDLE);
	KUNIT_EXPECT_EQ(test, sutro_group_lag_ns(&t->b), lag_ns);
	KUNIT_EXPECT_EQ(test, serve_many(t, 5, 10 * MS, &t->e), 5);
	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_BE);
	EXPECT_NEAR(test, serve_many(t, 200, 10 * MS, &t->b), 100, 11);
}

/*
 * A group without requests may be set up without the lock of the tree: its class changes nothing of
 * others, not even a weight of the root that is out of date.
 */
static void sutro_test_class_of_new_group(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	const struct sutro_rank *rank = &t->root.level.rank[SUTRO_CLASS_BE];
	u64 weight_sum;

	arrive(t, &t->root, 1);
	arrive(t, &t->a, 1);
	t->root.self.weight = 1;
	weight_sum = rank->weight_sum;
	sutro_tree_set_class(&t->e, SUTRO_CLASS_IDLE);
	KUNIT_EXPECT_EQ(test, t->e.entity.class, SUTRO_CLASS_IDLE);
	KUNIT_EXPECT_EQ(test, t->root.self.weight, 1);
	KUNIT_EXPECT_EQ(test, rank->weight_sum, weight_sum);
}

/* A class is written: it ends a slice only if the group comes before the owner now. */
static void sutro_test_class_written(struct kunit *test)
{
	static const enum sutro_class classes[] = { SUTRO_CLASS_RT,
						    SUTRO_CLASS_IDLE,
						    SUTRO_CLASS_BE };
	struct sutro_test *t = sutro_test_new(test, true);
	int i;

	arrive(t, &t->a, 1000);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	/* c is below b and has a request, d has none; e has one and is never higher. */
	arrive(t, &t->c, 1);
	arrive(t, &t->e, 1);
	for (i = 0; i < 8; i++) {
		sutro_group_set_class(&t->core, &t->c, classes[i % 3]);
		sutro_group_set_class(&t->core, &t->d, classes[i % 3]);
		sutro_group_set_class(&t->core, &t->e, classes[i % 2 + 1]);
		KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
		KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_NONE);
	}
	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_RT);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->c);
	KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_PREEMPTED);
}

/* Request slots: a lower class has those that it can use. */
static void sutro_test_class_slots(struct kunit *test)
{
	struct sutro_test *t = three_classes(test, false);

	arrive(t, &t->b, 1);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->b, 256), 256);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->a, 256), 256);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->a, 256), 256);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->b, 256), 256 / 32);
	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_RT);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->b, 256), 128);
}

static struct kunit_case sutro_class_cases[] = {
	KUNIT_CASE(sutro_test_classes),
	KUNIT_CASE(sutro_test_three_classes),
	KUNIT_CASE(sutro_test_among_siblings),
	KUNIT_CASE(sutro_test_class_preempts),
	KUNIT_CASE(sutro_test_class_idling),
	KUNIT_CASE(sutro_test_class_away),
	KUNIT_CASE(sutro_test_class_no_hoarding),
	KUNIT_CASE(sutro_test_class_changes),
	KUNIT_CASE(sutro_test_class_of_new_group),
	KUNIT_CASE(sutro_test_class_written),
	KUNIT_CASE(sutro_test_class_slots),
	{}
};

sutro_suite(sutro_class, "classes");
