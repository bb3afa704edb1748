// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of groups that stay away (sutro-away.c): a has reserved time and may wait for e,
 * which always has requests.  The device works on one request after another.
 */
#include "sutro_test.h"

#define STEP_NS (MS / 50)
#define SMALL_NS (5 * MS)
#define LARGE_NS (10 * MS)
#define SECOND_NS (1000 * MS)
/* Requests of a between two pauses, and those of e that a waits for in one. */
#define BURST 12
#define AWAITED 8

/**
 * struct device - a leaf with both groups
 * @busy:	the group with a request at the device, or NULL
 * @done_ns:	when that completes
 * @next_ns:	when a sends its next request, 0 while it has one
 * @awaited:	it does not before e has completed this many
 * @few_nr:	requests of a that have completed
 * @many_nr:	requests of e that have
 * @lost_ns:	time for which requests of a have waited for one of e
 */
struct device {
	struct sutro_test *t;
	struct sutro_group *busy;
	u64 done_ns;
	u64 next_ns;
	int awaited;
	int few_nr;
	int many_nr;
	u64 lost_ns;
};

static struct device device_new(struct kunit *test, bool rotational)
{
	struct device device = { .t = sutro_test_new(test, rotational) };

	device.t->a.reserve = SUTRO_RESERVE_WHOLE * 9 / 10;
	device.next_ns = device.t->now_ns;
	arrive(device.t, &device.t->e, 8);
	return device;
}

static void device_arrival(struct device *device)
{
	struct sutro_test *t = device->t;

	if (!device->next_ns || device->next_ns > t->now_ns ||
	    device->many_nr < device->awaited)
		return;
	device->next_ns = 0;
	if (device->busy)
		device->lost_ns += device->done_ns - t->now_ns;
	arrive_far(t, &t->a, 1);
}

/* The request at the device completes; a sends the next one @think_ns later, or waits for e. */
static void device_complete(struct device *device, u64 think_ns, bool awaits)
{
	struct sutro_test *t = device->t;
	struct sutro_group *group = device->busy;
	u64 cost_ns = group == &t->a ? SMALL_NS : LARGE_NS;

	sutro_core_complete(&t->core, group, 1, cost_ns, cost_ns, t->now_ns);
	device->busy = NULL;
	if (group == &t->a) {
		device->few_nr++;
		if (awaits && device->few_nr % BURST == 0)
			device->awaited = device->many_nr + AWAITED;
		device->next_ns = t->now_ns + think_ns;
	} else {
		device->many_nr++;
		arrive(t, group, 1);
	}
}

static void device_send(struct device *device)
{
	struct sutro_test *t = device->t;
	enum sutro_verdict verdict;
	u64 cost_ns;

	device->busy = choose(t, &verdict);
	if (!device->busy)
		return;
	cost_ns = device->busy == &t->a ? SMALL_NS : LARGE_NS;
	sutro_core_dispatch(&t->core, device->busy, cost_ns);
	device->done_ns = t->now_ns + cost_ns;
}

/* a waits for others after each burst, or thinks for a random time of up to @think_ns. */
static void device_run(struct device *device, u64 think_ns, u64 length_ns)
{
	struct sutro_test *t = device->t;
	u64 end_ns = t->now_ns + length_ns, random = 1, ns;

	device->few_nr = 0;
	device->lost_ns = 0;
	for (; t->now_ns < end_ns; t->now_ns += STEP_NS) {
		if (device->busy && device->done_ns <= t->now_ns) {
			ns = STEP_NS;
			if (think_ns && random_below(&random, 2))
				ns = random_below(&random, think_ns);
			device_complete(device, ns, !think_ns);
		}
		device_arrival(device);
		if (!device->busy)
			device_send(device);
	}
}

static void expect_bursts(struct kunit *test, struct device *device)
{
	u64 cycle_ns = BURST * SMALL_NS + (AWAITED + 1) * LARGE_NS + 10 * MS;

	device_run(device, 0, 4 * SECOND_NS);
	device_run(device, 0, 10 * SECOND_NS);
	KUNIT_EXPECT_GE(test, device->few_nr / BURST,
			(int)(10 * SECOND_NS * 9 / 10 / cycle_ns));
}

/* Neither idles for long while a, with reserved time or a higher weight, waits for e. */
static void sutro_test_away_waits(struct kunit *test)
{
	struct device device;

	device = device_new(test, false);
	expect_bursts(test, &device);
	device = device_new(test, true);
	expect_bursts(test, &device);
	device = device_new(test, false);
	device.t->a.reserve = 0;
	device.t->core.tunables.protect = 97;
	sutro_group_set_weight(&device.t->a, 1000);
	expect_bursts(test, &device);
}

/* If a comes back at any time, it loses at most 1/8 to requests that were sent meanwhile. */
static void sutro_test_away_price(struct kunit *test)
{
	u64 thinks_ns;

	for (thinks_ns = 10 * MS; thinks_ns <= 500 * MS; thinks_ns *= 2) {
		struct device device = device_new(test, false);
		int many_nr;

		device_run(&device, thinks_ns, 4 * SECOND_NS);
		many_nr = device.many_nr;
		device_run(&device, thinks_ns, 20 * SECOND_NS);
		/* A tenth of the time is shared. */
		KUNIT_EXPECT_LE(test, device.lost_ns,
				20 * SECOND_NS * 9 / 10 / 8 +
					20 * SECOND_NS / 10);
		KUNIT_EXPECT_GE(test, (device.many_nr - many_nr) * LARGE_NS,
				20 * SECOND_NS / 10 * 7 / 10);
	}
}

static struct sutro_leaves leaves;

static struct sutro_leaves *leaves_of(struct sutro_group *group)
{
	return &leaves;
}

/* a has learned at a leaf of two that it is back at once. */
static struct sutro_test *leaf_new(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	int i;

	t->core.leaves_of = leaves_of;
	t->a.reserve = SUTRO_RESERVE_WHOLE * 9 / 10;
	arrive(t, &t->e, 8);
	for (i = 0; i < 100; i++) {
		arrive_far(t, &t->a, 1);
		while (send(t, LARGE_NS) != &t->a) {
			if (t->core.in_flight)
				finish(t, &t->e, LARGE_NS, LARGE_NS);
			t->now_ns += MS;
		}
		finish(t, &t->a, LARGE_NS, SMALL_NS);
		t->now_ns += MS / 100;
	}
	while (t->core.in_flight)
		finish(t, &t->e, LARGE_NS, LARGE_NS);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(&t->a));
	return t;
}

/* While a has requests at one leaf, others get no time at another one. */
static void sutro_test_away_at_another_leaf(struct kunit *test)
{
	struct sutro_test *here, *there;

	memset(&leaves, 0, sizeof(leaves));
	here = leaf_new(test);
	there = leaf_new(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&leaves.nr), 0);
	there->now_ns = max(here->now_ns, there->now_ns);
	here->now_ns = there->now_ns;
	here->a.empty_since_ns = here->now_ns;
	arrive_far(there, &there->a, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&leaves.nr), 1);
	here->now_ns += 5 * MS;
	here->core.protect.reserved = true;
	KUNIT_EXPECT_FALSE(test,
			   sutro_is_away(&here->core, &here->a, here->now_ns));
	there->now_ns = here->now_ns;
	while (send(there, SMALL_NS) != &there->a)
		there->now_ns += MS;
	finish(there, &there->a, SMALL_NS, SMALL_NS);
	KUNIT_EXPECT_EQ(test, atomic_read(&leaves.nr), 0);
	here->a.protect->spare_ns = LARGE_NS;
	here->now_ns = there->now_ns + MS / 10;
	KUNIT_EXPECT_FALSE(test,
			   sutro_is_away(&here->core, &here->a, here->now_ns));
	here->now_ns += LARGE_NS / 4;
	KUNIT_EXPECT_TRUE(test,
			  sutro_is_away(&here->core, &here->a, here->now_ns));
}

/* A group that goes while it has requests is no longer counted. */
static void sutro_test_away_is_dropped(struct kunit *test)
{
	struct sutro_test *t;

	memset(&leaves, 0, sizeof(leaves));
	t = leaf_new(test);
	arrive_far(t, &t->a, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&leaves.nr), 1);
	sutro_protect_drop(&t->core, &t->a);
	KUNIT_EXPECT_EQ(test, atomic_read(&leaves.nr), 0);
}

/* a gets a request, which is sent; a task waits for it, unless it is @async. */
static void send_one(struct sutro_test *t, bool async)
{
	arrive_far(t, &t->a, 1);
	t->core.async = async;
	sutro_core_dispatch(&t->core, &t->a, SMALL_NS);
}

/* A group is waited for after a request that a task waits for, and not after writeback only. */
static void sutro_test_away_writeback(struct kunit *test)
{
	struct sutro_test *t;

	memset(&leaves, 0, sizeof(leaves));
	t = leaf_new(test);
	t->a.protect->spare_ns = LARGE_NS;
	send_one(t, false);
	send_one(t, true);
	finish(t, &t->a, SMALL_NS, SMALL_NS);
	finish(t, &t->a, SMALL_NS, SMALL_NS);
	KUNIT_EXPECT_FALSE(test, sutro_is_away(&t->core, &t->a, t->now_ns));
	send_one(t, true);
	finish(t, &t->a, SMALL_NS, SMALL_NS);
	KUNIT_EXPECT_TRUE(test, sutro_is_away(&t->core, &t->a, t->now_ns));
}

/* A flush after writeback counts as awaited by a task: its dispatch does not set async. */
static void sutro_test_away_flush(struct kunit *test)
{
	struct sutro_test *t;

	memset(&leaves, 0, sizeof(leaves));
	t = leaf_new(test);
	send_one(t, true);
	arrive_far(t, &t->a, 1);
	sutro_core_dispatch(&t->core, &t->a, 0);
	finish(t, &t->a, SMALL_NS, SMALL_NS);
	finish(t, &t->a, 0, SMALL_NS);
	KUNIT_EXPECT_FALSE(test, sutro_is_away(&t->core, &t->a, t->now_ns));
}

static struct kunit_case sutro_away_cases[] = {
	KUNIT_CASE(sutro_test_away_waits),
	KUNIT_CASE(sutro_test_away_price),
	KUNIT_CASE(sutro_test_away_at_another_leaf),
	KUNIT_CASE(sutro_test_away_is_dropped),
	KUNIT_CASE(sutro_test_away_writeback),
	KUNIT_CASE(sutro_test_away_flush),
	{},
};

sutro_suite(sutro_away, "Sutro's groups that stay away");
