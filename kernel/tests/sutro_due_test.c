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

/* The depth that saturates the device is kept in flight for groups of one weight. */
static void sutro_test_depth(struct kunit *test)
{
	struct due_test *t = due_test_new(test);

	probed(t, LARGE, 2 * MS, 16);
	probed(t, WRITE, 4 * MS, 64);
	sutro_probe_join(&t->probe, &t->peers[0], LARGE);
	sutro_probe_join(&t->probe, &t->peers[1], LARGE);
	sutro_probe_due(&t->probe, &t->device, SEC);
	KUNIT_EXPECT_EQ(test, t->probe.depth_ns, 0);
	t->probe.equal = true;
	sutro_probe_due(&t->probe, &t->device, SEC);
	EXPECT_NEAR(test, t->probe.depth_ns, 32 * MS, MS / 100);
	sutro_probe_join(&t->probe, &t->peers[2], WRITE);
	sutro_probe_due(&t->probe, &t->device, SEC);
	EXPECT_NEAR(test, t->probe.depth_ns, 128 * MS, MS / 100);
	t->device.amplification.has_cache = true;
	sutro_probe_due(&t->probe, &t->device, SEC);
	KUNIT_EXPECT_EQ(test, t->probe.depth_ns, 0);
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
	KUNIT_CASE(sutro_test_depth),
	KUNIT_CASE(sutro_test_in_use),
	{}
};

sutro_suite(sutro_due, "the class that is probed next");
