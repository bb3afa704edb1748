// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the class that is probed next, and of the depth that it needs (sutro-due.c).
 */
#include "../sutro-probe.h"
#include "sutro_test.h"

#define SEC (1000 * MS)
#define LARGE sutro_cost_class(SUTRO_READ, 131072)
#define LARGER sutro_cost_class(SUTRO_READ, 262144)
#define WRITE sutro_cost_class(SUTRO_WRITE, 262144)

/**
 * struct due_test - a leaf with backlogged groups, no requests at the device
 */
struct due_test {
	struct sutro_device device;
	struct sutro_probe probe;
	struct sutro_peer peers[3];
};

static struct due_test *due_test_new(struct kunit *test)
{
	struct due_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	sutro_device_init(&t->device, false);
	sutro_probe_init(&t->probe, 128);
	for (i = 0; i < ARRAY_SIZE(t->peers); i++)
		sutro_peer_init(&t->peers[i]);
	return t;
}

/* A probe of a class ended with a result a second ago. */
static void probed(struct due_test *t, unsigned int class, u64 cost_ns,
		   u32 depth)
{
	struct sutro_probe_class *of = &t->probe.of[class];

	sutro_cost_measured(&t->device, class, cost_ns << SUTRO_NS16_SHIFT, 0);
	of->nr = 1;
	of->probes = 1;
	of->depth = depth;
	of->due_ns = SEC + MS;
}

/*
 * Requests of one class have nothing to be compared with.  Those of two groups need a depth that
 * keeps a far device busy.
 */
static void sutro_test_groups_of_one_class(struct kunit *test)
{
	struct due_test *t = due_test_new(test);

	sutro_probe_join(&t->probe, &t->peers[0], LARGE);
	KUNIT_EXPECT_LT(test, sutro_probe_due(&t->probe, &t->device, SEC), 0);
	sutro_probe_join(&t->probe, &t->peers[1], LARGE);
	KUNIT_EXPECT_LT(test, sutro_probe_due(&t->probe, &t->device, SEC), 0);
	t->device.latency_ns = 2 * MS;
	KUNIT_EXPECT_LT(test, sutro_probe_due(&t->probe, &t->device, SEC), 0);
	t->probe.equal = true;
	KUNIT_EXPECT_EQ(test, sutro_probe_due(&t->probe, &t->device, SEC),
			LARGE);
}

/* The cost of a large class follows from another one's: others that are unknown come first. */
static void sutro_test_guesses_first(struct kunit *test)
{
	struct due_test *t = due_test_new(test);

	probed(t, LARGE, 2 * MS, 4);
	sutro_probe_join(&t->probe, &t->peers[0], LARGE);
	sutro_probe_join(&t->probe, &t->peers[1], LARGER);
	KUNIT_EXPECT_EQ(test, sutro_probe_due(&t->probe, &t->device, SEC),
			LARGER);
	KUNIT_EXPECT_FALSE(test, t->probe.guessing);
	sutro_probe_join(&t->probe, &t->peers[2], WRITE);
	KUNIT_EXPECT_EQ(test, sutro_probe_due(&t->probe, &t->device, SEC),
			WRITE);
	KUNIT_EXPECT_TRUE(test, t->probe.guessing);
}

/* Costs from before a change of the device are guesses, for some time. */
static void sutro_test_guesses_after_change(struct kunit *test)
{
	struct due_test *t = due_test_new(test);

	probed(t, LARGE, 2 * MS, 4);
	probed(t, WRITE, MS, 4);
	sutro_probe_join(&t->probe, &t->peers[0], LARGE);
	sutro_probe_join(&t->probe, &t->peers[1], WRITE);
	sutro_probe_due(&t->probe, &t->device, SEC);
	KUNIT_EXPECT_FALSE(test, t->probe.guessing);
	t->device.change.seen = true;
	sutro_probe_due(&t->probe, &t->device, SEC);
	KUNIT_EXPECT_TRUE(test, t->probe.guessing);
	t->probe.of[LARGE].nr = 1;
	sutro_probe_due(&t->probe, &t->device, 2 * SEC);
	KUNIT_EXPECT_TRUE(test, t->probe.guessing);
	t->probe.of[WRITE].nr = 1;
	sutro_probe_due(&t->probe, &t->device, 2 * SEC);
	KUNIT_EXPECT_FALSE(test, t->probe.guessing);
	t->probe.of[WRITE].nr = 0;
	sutro_probe_due(&t->probe, &t->device, 17 * SEC);
	KUNIT_EXPECT_FALSE(test, t->probe.guessing);
}

/* How much may be in flight for the classes in use? */
static u64 depth_ns(struct due_test *t)
{
	struct sutro_tunables tunables = {};

	sutro_probe_due(&t->probe, &t->device, SEC);
	sutro_probe_tunables(&t->probe, &t->device, &tunables);
	return tunables.depth_ns;
}

/* Two groups read LARGE, 16 of which saturate the device: 32 ms of device time. */
static struct due_test *due_test_of_readers(struct kunit *test)
{
	struct due_test *t = due_test_new(test);

	probed(t, LARGE, 2 * MS, 16);
	probed(t, WRITE, 4 * MS, 64);
	sutro_probe_join(&t->probe, &t->peers[0], LARGE);
	sutro_probe_join(&t->probe, &t->peers[1], LARGE);
	return t;
}

/* The depth that saturates the device is kept in flight for groups of one weight. */
static void sutro_test_depth(struct kunit *test)
{
	struct due_test *t = due_test_of_readers(test);
	u64 least_ns = sutro_cost_depth_ns(&t->device);

	t->probe.equal = true;
	EXPECT_NEAR(test, depth_ns(t), 32 * MS, MS / 100);
	sutro_probe_join(&t->probe, &t->peers[2], WRITE);
	EXPECT_NEAR(test, depth_ns(t), 128 * MS, MS / 100);
	t->probe.rare = true;
	KUNIT_EXPECT_EQ(test, depth_ns(t), least_ns);
	t->probe.rare = false;
	t->device.amplification.has_cache = true;
	KUNIT_EXPECT_EQ(test, depth_ns(t), least_ns);
}

/* With unequal weights, as far as favoured groups with few requests leave it to others. */
static void sutro_test_depth_beside_favoured(struct kunit *test)
{
	struct due_test *t = due_test_of_readers(test);
	u64 least_ns = sutro_cost_depth_ns(&t->device);

	KUNIT_EXPECT_EQ(test, depth_ns(t), least_ns);
	t->probe.wide = SUTRO_WIDE_WHOLE;
	EXPECT_NEAR(test, depth_ns(t), 32 * MS, MS / 100);
	t->probe.wide = SUTRO_WIDE_WHOLE / 2;
	EXPECT_NEAR(test, depth_ns(t), (32 * MS + least_ns) / 2, MS / 100);
}

/* A request of such a group halves that, and 4.3 s without one restore it. */
static void sutro_test_depth_of_few(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u64 now_ns = 10 * SEC;

	t->core.tunables.protect = SUTRO_PROTECT_DFL;
	arrive(t, &t->a, 1);
	arrive(t, &t->c, 1);
	KUNIT_EXPECT_EQ(test, sutro_core_wide(&t->core, now_ns),
			SUTRO_WIDE_WHOLE);
	sutro_group_set_weight(&t->a, 200);
	/* One of the lighter group leaves all of it, and so does one behind others of a's own. */
	sutro_protect_arrived(&t->core, &t->c, now_ns);
	KUNIT_EXPECT_EQ(test, sutro_core_wide(&t->core, now_ns),
			SUTRO_WIDE_WHOLE);
	t->a.queued = 2;
	sutro_protect_arrived(&t->core, &t->a, now_ns);
	KUNIT_EXPECT_EQ(test, sutro_core_wide(&t->core, now_ns),
			SUTRO_WIDE_WHOLE);
	t->a.queued = 1;
	sutro_protect_arrived(&t->core, &t->a, now_ns);
	sutro_protect_arrived(&t->core, &t->a, now_ns);
	KUNIT_EXPECT_EQ(test, sutro_core_wide(&t->core, now_ns),
			SUTRO_WIDE_WHOLE / 4);
	KUNIT_EXPECT_EQ(test, sutro_core_wide(&t->core, now_ns - SEC),
			SUTRO_WIDE_WHOLE / 4);
	now_ns += 2 * SEC;
	KUNIT_EXPECT_LT(test, sutro_core_wide(&t->core, now_ns),
			SUTRO_WIDE_WHOLE);
	now_ns += 2 * SEC;
	KUNIT_EXPECT_EQ(test, sutro_core_wide(&t->core, now_ns),
			SUTRO_WIDE_WHOLE);
}

/*
 * A group reads LARGE, and @nr requests of WRITE are sent besides @others: does the class count as
 * one in use, so that LARGE is to be measured?
 */
static bool is_in_use(struct kunit *test, u32 nr, u32 others)
{
	struct due_test *t = due_test_new(test);

	sutro_probe_due(&t->probe, &t->device, SEC);
	sutro_probe_join(&t->probe, &t->peers[0], LARGE);
	while (nr--)
		sutro_probe_sent(&t->probe, WRITE);
	while (others--)
		sutro_probe_sent(&t->probe, LARGE);
	return sutro_probe_due(&t->probe, &t->device, SEC + 100 * MS) >= 0;
}

/* Some requests are merged by chance: they are no second class.  Many are, or a large part. */
static void sutro_test_in_use(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, is_in_use(test, 0, 10));
	KUNIT_EXPECT_FALSE(test, is_in_use(test, 7, 10));
	KUNIT_EXPECT_TRUE(test, is_in_use(test, 8, 10));
	KUNIT_EXPECT_FALSE(test, is_in_use(test, 30, 7000));
	KUNIT_EXPECT_TRUE(test, is_in_use(test, 64, 7000));
}

static struct kunit_case sutro_due_cases[] = {
	KUNIT_CASE(sutro_test_groups_of_one_class),
	KUNIT_CASE(sutro_test_guesses_first),
	KUNIT_CASE(sutro_test_guesses_after_change),
	KUNIT_CASE(sutro_test_depth),
	KUNIT_CASE(sutro_test_depth_beside_favoured),
	KUNIT_CASE(sutro_test_depth_of_few),
	KUNIT_CASE(sutro_test_in_use),
	{}
};

sutro_suite(sutro_due, "the class that is probed next");
