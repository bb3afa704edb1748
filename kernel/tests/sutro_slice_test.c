// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of slices, of idling, and of the depth at the device (sutro-select.c). */
#include "sutro_test.h"

/* Streams keep a rotational device for a slice. */
static void sutro_test_slice(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	struct sutro_group *first;

	arrive(t, &t->a, 100);
	arrive(t, &t->b, 100);
	first = serve(t, 10 * MS);
	KUNIT_EXPECT_EQ(test, serve_many(t, 9, 10 * MS, first), 9);
	KUNIT_EXPECT_PTR_NE(test, serve(t, 10 * MS), first);
	KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_USED);
}

/* Each random request on an hdd is a turn, and each request on flash. */
static void sutro_test_no_slice(struct kunit *test)
{
	int rotational, i;

	for (rotational = 0; rotational < 2; rotational++) {
		struct sutro_test *t = sutro_test_new(test, rotational);

		arrive_far(t, &t->a, 100);
		arrive_far(t, &t->b, 100);
		for (i = 0; i < 50; i++) {
			KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
			KUNIT_EXPECT_NULL(test, t->core.in_service);
			/* No ties. */
			KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS + 1), &t->b);
			KUNIT_EXPECT_NULL(test, t->core.in_service);
		}
	}
}

/* With fairness=1 random requests have slices on any device, and idling. */
static void sutro_test_fairness(struct kunit *test)
{
	int rotational, i;

	for (rotational = 0; rotational < 2; rotational++) {
		struct sutro_test *t = sutro_test_new(test, rotational);
		u64 cost_ns = rotational ? 10 * MS : 4 * MS / 10;

		t->core.tunables.fairness = true;
		arrive_far(t, &t->a, 40);
		arrive_far(t, &t->b, 40);
		for (i = 0; i < 2; i++) {
			KUNIT_EXPECT_EQ(test, serve_many(t, 10, cost_ns, &t->a),
					10);
			KUNIT_EXPECT_EQ(test,
					serve_many(t, 10, cost_ns + 1, &t->b),
					10);
		}

		t = sutro_test_new(test, rotational);
		t->core.tunables.fairness = true;
		arrive_far(t, &t->b, 100);
		arrive_far(t, &t->a, 1);
		while (serve(t, cost_ns) == &t->b)
			;
		KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	}
}

/* b has used its slice; a, with one request at a time, has had one of 10 ms. */
static struct sutro_test *one_at_a_time(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->b, 100);
	arrive(t, &t->a, 1);
	while (serve(t, 10 * MS) == &t->b)
		;
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	KUNIT_EXPECT_EQ(test, t->core.idle_until_ns, t->now_ns + IDLE_NS);
	return t;
}

/* The device idles for the owner of a slice; the time is charged to the owner. */
static void sutro_test_idling(struct kunit *test)
{
	struct sutro_test *t = one_at_a_time(test);
	int served = 1;

	for (; next_verdict(t) == SUTRO_IDLE; served++) {
		t->now_ns += 2 * MS;
		arrive(t, &t->a, 1);
		KUNIT_EXPECT_EQ(test, t->a.stat.idle_ns, served * 2 * MS);
		KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	}
	/* Its slice of 100 ms has 2 ms of idling with each 10 ms of work. */
	EXPECT_NEAR(test, served, 10, 1);
}

/* Idling ends after group_idle: the group has left, and others are served. */
static void sutro_test_idling_ends(struct kunit *test)
{
	struct sutro_test *t = one_at_a_time(test);
	u64 vtime = t->a.entity.vtime;

	t->now_ns = t->core.idle_until_ns - 1;
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	t->now_ns++;
	forget(t);
	/* It had 10 ms of service, and 8 ms of idling. */
	KUNIT_EXPECT_EQ(test, t->a.entity.vtime * 10, vtime * 18);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_EMPTY);
	KUNIT_EXPECT_EQ(test, t->a.stat.idle_ns, IDLE_NS);
	KUNIT_EXPECT_EQ(test, t->a.stat.dequeue, 1);
	KUNIT_EXPECT_FALSE(test, t->a.self.active);
}

/* Streams wait for 128 requests of a latency-sensitive group, and receive what they are owed. */
static void sutro_test_sensitive(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	struct sutro_group *last = NULL, *group;
	int of_a = 0, of_b = 0, turns = 0;
	enum sutro_verdict verdict;

	t->core.tunables.protect = SUTRO_PROTECT_DFL;
	sutro_group_set_weight(&t->a, 1000);
	arrive_far(t, &t->a, 1);
	arrive(t, &t->b, 100);
	while (of_a < 10000) {
		group = choose(t, &verdict);
		turns += group == &t->b && last == &t->a;
		if (group) {
			sutro_core_dispatch(&t->core, group, 8 * MS);
			finish(t, group, 8 * MS, 8 * MS);
			last = group;
		}
		of_a += group == &t->a;
		if (group == &t->b) {
			of_b++;
			arrive(t, &t->b, 1);
		}
		/* Its next request comes while the device idles for it, or serves b. */
		if (group != &t->a && !t->a.queued)
			arrive_far(t, &t->a, 1);
	}
	KUNIT_EXPECT_LT(test, turns, of_a / 100);
	EXPECT_NEAR(test, of_b, of_a / 10, of_a / 100);
}

/* A write and the flush that follows it count once. */
static void sutro_test_sensitive_flush(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	int i;

	t->core.tunables.protect = SUTRO_PROTECT_DFL;
	sutro_group_set_weight(&t->a, 1000);
	arrive(t, &t->b, 100);
	for (i = 1; i <= 10; i++) {
		arrive_far(t, &t->a, 1);
		KUNIT_EXPECT_PTR_EQ(test, serve(t, 8 * MS), &t->a);
		sutro_core_queue(&t->core, &t->a, false, t->now_ns);
		sutro_core_dispatch(&t->core, &t->a, 0);
		sutro_core_commit(&t->core, &t->a, t->now_ns);
		sutro_core_committed(&t->core, &t->a, 1);
		finish(t, &t->a, 0, 8 * MS);
		KUNIT_EXPECT_EQ(test, t->core.sensitive_nr, i);
	}
}

/* The device does not idle for a group that thinks longer than group_idle. */
static void sutro_test_slow_thinker(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	int i;

	for (i = 0; i < 20; i++) {
		t->now_ns += 20 * MS;
		arrive(t, &t->a, 1);
		KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	}
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
}

/* With group_idle 0 the device does not idle. */
static void sutro_test_no_idling(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	int i;

	t->core.tunables.group_idle_ns = 0;
	arrive(t, &t->b, 100);
	for (i = 0; i < 30; i++) {
		arrive(t, &t->a, 1);
		serve(t, 10 * MS);
		KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_SERVE);
	}
}

/* The device does not idle for a cgroup that was removed. */
static void sutro_test_gone(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->a, 1);
	serve(t, 10 * MS);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	sutro_group_set_gone(&t->core, &t->a);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	KUNIT_EXPECT_FALSE(test, t->a.self.active);

	/* Nor for one that was removed before its request was served. */
	t = sutro_test_new(test, true);
	arrive(t, &t->a, 1);
	sutro_group_set_gone(&t->core, &t->a);
	serve(t, 10 * MS);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
}

/* A group that wakes up and is owed half a slice preempts another's slice. */
static void sutro_test_preempts(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->a, 100);
	serve_many(t, 25, 10 * MS, NULL);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	KUNIT_EXPECT_EQ(test, t->core.expiry, SUTRO_EXPIRY_PREEMPTED);
}

/* A group that has just been served and wakes up waits for its turn. */
static void sutro_test_does_not_preempt(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->a, 100);
	arrive(t, &t->b, 10);
	/* A slice each, and a part of a's second. */
	serve_many(t, 23, 10 * MS, NULL);
	KUNIT_EXPECT_EQ(test, t->b.queued, 0);
	arrive(t, &t->b, 10);
	t->core.expiry = SUTRO_EXPIRY_NONE;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	KUNIT_EXPECT_NE(test, t->core.expiry, SUTRO_EXPIRY_PREEMPTED);
}

/*
 * A slice that is used up while the only request of its owner is at the device is
 * renewed if the owner is still furthest behind.
 */
static void sutro_test_renewed(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	sutro_group_set_weight(&t->a, 1000);
	arrive(t, &t->b, 20);
	serve_many(t, 10, 10 * MS, NULL);
	arrive(t, &t->a, 1);
	/* More than a slice, but 15 ms of vtime: b is still ahead. */
	KUNIT_EXPECT_PTR_EQ(test, send(t, 150 * MS), &t->a);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
	KUNIT_EXPECT_PTR_EQ(test, t->core.in_service, &t->a);
	finish(t, &t->a, 150 * MS, 150 * MS);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
}

/*
 * Requests are estimated at 2 ms; the first one after a switch costs more.  Slices
 * become 24 times that, within half of slice_ns and all of it.
 */
static void sutro_test_adapts(struct kunit *test)
{
	static const u32 cases[][2] = {
		{ 0, 100 }, { 1, 50 }, { 3, 72 }, { 15, 100 }
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sutro_test *t = sutro_test_new(test, true);
		struct sutro_group *group, *last = NULL;
		int turns = 0;

		/* No ties. */
		sutro_group_set_weight(&t->b, 99);
		arrive(t, &t->a, 1000);
		arrive(t, &t->b, 1000);
		for (; turns < 12; last = group) {
			u64 cost_ns = 2 * MS;

			group = send(t, 2 * MS);
			KUNIT_ASSERT_NOT_NULL(test, group);
			if (group != last) {
				cost_ns += cases[i][0] * MS;
				turns++;
			}
			finish(t, group, 2 * MS, cost_ns);
			if (turns > 2)
				EXPECT_NEAR(test, t->core.slice_ns,
					    cases[i][1] * MS, 1000);
		}
	}
}

/*
 * a's random requests are all at the drive, b has more: b is sent until it is half
 * a slice ahead, and waits for a's to complete then.
 */
static void sutro_test_held_back(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive_far(t, &t->a, 8);
	arrive_far(t, &t->b, 100);
	send_all(t, 10 * MS);
	KUNIT_EXPECT_EQ(test, t->a.in_flight, 8);
	EXPECT_NEAR(test, t->b.in_flight, 8 + 5, 1);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);

	/* The drive serves b only; none of b's may follow. */
	while (t->b.in_flight) {
		finish(t, &t->b, 10 * MS, 10 * MS);
		KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
	}
	/* One of a's completes and is followed by another: b may send, too. */
	finish(t, &t->a, 10 * MS, 10 * MS);
	arrive_far(t, &t->a, 1);
	send_all(t, 10 * MS);
	KUNIT_EXPECT_EQ(test, t->a.in_flight, 8);
	KUNIT_EXPECT_LE(test, t->b.in_flight, 2);
}

/* b, away, light and further behind, can wait: a, heavy, can not. */
static void sutro_test_holds_back_no_group(struct kunit *test)
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
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);

	/* One of a's is done and followed by another: a is next. */
	finish(t, &t->a, 10 * MS, 10 * MS);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(t, 10 * MS), &t->a);
}

/* Random requests of a and b wait. */
static struct sutro_test *backlog(struct kunit *test, bool rotational, int a,
				  int b)
{
	struct sutro_test *t = sutro_test_new(test, rotational);

	arrive_far(t, &t->a, a);
	arrive_far(t, &t->b, b);
	return t;
}

/* While several compete, no more is sent than takes depth_ns. */
static void sutro_test_depth(struct kunit *test)
{
	struct sutro_test *t = backlog(test, false, 100, 100);

	KUNIT_EXPECT_EQ(test, send_all(t, MS / 10), DEPTH_NS / (MS / 10));
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
	finish(t, &t->a, MS / 10, MS / 10);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_SERVE);

	/* Two requests may always be sent, and no more than 128. */
	t = backlog(test, false, 100, 100);
	KUNIT_EXPECT_EQ(test, send_all(t, 50 * MS), SUTRO_DEPTH_MIN);
	t = backlog(test, false, 200, 200);
	t->core.tunables.depth_ns = 1000 * MS;
	KUNIT_EXPECT_EQ(test, send_all(t, 1000), SUTRO_DEPTH_MAX);
}

/* A group that is alone may send all, and so may all on a rotational device. */
static void sutro_test_depth_unlimited(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, send_all(backlog(test, false, 200, 0), 50 * MS),
			200);
	KUNIT_EXPECT_EQ(test, send_all(backlog(test, true, 100, 100), 50 * MS),
			200);
}

/* b sends one request at a time and comes back: a leaves room for the next. */
static void sutro_test_expected(struct kunit *test)
{
	struct sutro_test *t = backlog(test, false, 200, 1);

	t->core.tunables.busy_ns = 2 * MS;
	t->core.tunables.depth_ns = 30 * MS;
	/* Only a has more: b has left when its request is done. */
	while (serve(t, MS) != &t->b)
		;
	KUNIT_EXPECT_EQ(test, send_all(t, MS / 10), 20);
	KUNIT_EXPECT_EQ(test, t->core.nr_active, 1);
	t->now_ns += 3 * MS;
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_EQ(test, send_all(t, MS / 10), 1);

	/* It does not come back. */
	while (t->a.in_flight)
		finish(t, &t->a, MS / 10, MS / 10);
	finish(t, &t->b, MS / 10, MS / 10);
	KUNIT_EXPECT_EQ(test, send_all(t, MS / 10), 20);
	t->now_ns += 2 * t->core.tunables.slice_ns;
	KUNIT_EXPECT_EQ(test, send_all(t, MS / 10), 200 - 40 - 1);
}

/* No room is left for a group that thinks for long, or whose cgroup is gone. */
static void sutro_test_not_expected(struct kunit *test)
{
	int gone, i;

	for (gone = 0; gone < 2; gone++) {
		struct sutro_test *t = backlog(test, false, 200, 0);

		t->core.tunables.busy_ns = 2 * MS;
		for (i = 0; i < 20; i++) {
			t->now_ns += gone ? MS : 20 * MS;
			arrive(t, &t->b, 1);
			if (gone && i == 19)
				sutro_group_set_gone(&t->core, &t->b);
			while (serve(t, 10000) != &t->b)
				;
		}
		if (!gone)
			t->now_ns += 20 * MS;
		KUNIT_EXPECT_GT(test, send_all(t, MS / 10), 100);
	}
}

/* a's slice is over, b's requests are next, and data of a's are in the cache. */
static struct sutro_test *written(struct kunit *test, bool far, u64 cached_ns)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->a, 100);
	t->a.caches = true;
	KUNIT_EXPECT_EQ(test, serve_many(t, 10, 10 * MS, &t->a), 10);
	if (far)
		arrive_far(t, &t->b, 100);
	else
		arrive(t, &t->b, 100);
	t->core.tunables.cached_ns = cached_ns;
	t->core.tunables.destaged_ns = t->now_ns + cached_ns;
	return t;
}

/* A stream waits until the data that others have written before it have had their time. */
static void sutro_test_destaged(struct kunit *test)
{
	struct sutro_test *t = written(test, false, 75 * MS);

	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	KUNIT_EXPECT_EQ(test, t->core.idle_until_ns, t->now_ns + 75 * MS);
	t->now_ns += 74 * MS;
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	t->now_ns += MS;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	/* The slice has begun. */
	t->core.tunables.cached_ns = 10 * MS;
	t->core.tunables.destaged_ns = t->now_ns + 10 * MS;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
}

/* A group of random requests waits for half a slice of it. */
static void sutro_test_destaged_random(struct kunit *test)
{
	struct sutro_test *t = written(test, true, 40 * MS);

	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
	t = written(test, true, 50 * MS);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
}

/* None waits if that would take long, if the others do not go on, or if it writes as well. */
static void sutro_test_not_destaged(struct kunit *test)
{
	struct sutro_test *t = written(test, false, 201 * MS);

	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);

	t = written(test, false, 75 * MS);
	while (t->a.queued)
		sutro_core_unqueue(&t->core, &t->a);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);

	t = written(test, false, 75 * MS);
	t->b.caches = true;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->b);
}

static struct kunit_case sutro_slice_cases[] = {
	KUNIT_CASE(sutro_test_slice),
	KUNIT_CASE(sutro_test_no_slice),
	KUNIT_CASE(sutro_test_fairness),
	KUNIT_CASE(sutro_test_idling),
	KUNIT_CASE(sutro_test_idling_ends),
	KUNIT_CASE(sutro_test_sensitive),
	KUNIT_CASE(sutro_test_sensitive_flush),
	KUNIT_CASE(sutro_test_slow_thinker),
	KUNIT_CASE(sutro_test_no_idling),
	KUNIT_CASE(sutro_test_gone),
	KUNIT_CASE(sutro_test_preempts),
	KUNIT_CASE(sutro_test_does_not_preempt),
	KUNIT_CASE(sutro_test_renewed),
	KUNIT_CASE(sutro_test_adapts),
	KUNIT_CASE(sutro_test_held_back),
	KUNIT_CASE(sutro_test_holds_back_no_group),
	KUNIT_CASE(sutro_test_depth),
	KUNIT_CASE(sutro_test_depth_unlimited),
	KUNIT_CASE(sutro_test_expected),
	KUNIT_CASE(sutro_test_not_expected),
	KUNIT_CASE(sutro_test_destaged),
	KUNIT_CASE(sutro_test_destaged_random),
	KUNIT_CASE(sutro_test_not_destaged),
	{}
};

sutro_suite(sutro_slice, "slices, idling and depth");
