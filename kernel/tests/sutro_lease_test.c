// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of when direct mode begins and ends, and of its accounting (sutro-lease.c). */
#include <linux/module.h>

#include "../sutro-lease.h"
#include "sutro_test.h"

#define CPUS 4

/* A leaf and the requests that its disk has completed; it completed a lot before. */
struct leaf {
	struct kunit *test;
	struct sutro_lease lease;
	struct sutro_tally disk;
	struct sutro_tally sum;
	u64 now_ns;
};

static void leaf_init(struct leaf *l, struct kunit *test)
{
	*l = (struct leaf){ .test = test, .now_ns = 5000 * MS };
	/* The next request wraps the sum. */
	l->disk.ios[0] = ULONG_MAX;
	l->disk.sectors[0] = ULONG_MAX;
	l->disk.took_ns[0] = U64_MAX;
}

/* Reads complete, which the elevator has seen or not. */
static void completes(struct leaf *l, unsigned long ios, bool seen)
{
	struct sutro_tally *ordered = &l->lease.ordered;

	l->disk.ios[0] += ios;
	l->disk.sectors[0] += 8 * ios;
	l->disk.took_ns[0] += ios * MS;
	if (!seen)
		return;
	ordered->ios[0] += ios;
	ordered->sectors[0] += 8 * ios;
	ordered->took_ns[0] += ios * MS;
}

static enum sutro_lease_state tick(struct leaf *l, bool calm)
{
	struct sutro_tally new;
	long completed;

	l->now_ns += SUTRO_LEASE_TICK_NS;
	completed = sutro_lease_account(&l->lease, &l->disk, &new);
	l->sum.ios[0] += new.ios[0];
	l->sum.sectors[0] += new.sectors[0];
	l->sum.took_ns[0] += new.took_ns[0];
	KUNIT_EXPECT_EQ(l->test, new.ios[1], 0);
	return sutro_lease_tick(&l->lease, completed, CPUS, calm, l->now_ns);
}

/* 256 requests pass, one each so often: does a lease begin? */
static bool passes(struct leaf *l, u64 each_ns)
{
	int i;

	for (i = 0; i < 255; i++) {
		KUNIT_EXPECT_FALSE(l->test,
				   sutro_lease_passed(&l->lease, l->now_ns));
		l->now_ns += each_ns;
	}
	return sutro_lease_passed(&l->lease, l->now_ns);
}

static void begin(struct leaf *l)
{
	KUNIT_EXPECT_TRUE(l->test, passes(l, MS / 50));
	sutro_lease_begin(&l->lease, &l->disk, l->now_ns);
}

/* The example of sutro-lease.c. */
static void sutro_test_lease_example(struct kunit *test)
{
	struct leaf l;

	leaf_init(&l, test);
	begin(&l);
	completes(&l, 800, false);
	completes(&l, 10, true);
	KUNIT_EXPECT_EQ(test, tick(&l, true), SUTRO_LEASE_ON);
	KUNIT_EXPECT_EQ(test, l.sum.ios[0], 800);
	KUNIT_EXPECT_EQ(test, l.sum.sectors[0], 6400);
	KUNIT_EXPECT_EQ(test, l.sum.took_ns[0], 800 * MS);
}

/* It begins after requests that did not wait, and some time after the last one. */
static void sutro_test_lease_begin(struct kunit *test)
{
	struct leaf l;

	leaf_init(&l, test);
	/* Too slow: instructions do not matter. */
	KUNIT_EXPECT_FALSE(test, passes(&l, MS / 10 + 1));
	begin(&l);
	/* There is one already. */
	KUNIT_EXPECT_FALSE(test, passes(&l, 0));
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_FALSE(test, passes(&l, 0));
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_OFF);
	/* The elevator measures. */
	l.now_ns += 20 * MS - 1;
	KUNIT_EXPECT_FALSE(test, passes(&l, 0));
	l.now_ns++;
	/* A request that waits begins a new streak. */
	KUNIT_EXPECT_FALSE(test, sutro_lease_passed(&l.lease, l.now_ns));
	l.lease.streak = 0;
	KUNIT_EXPECT_TRUE(test, passes(&l, 0));
}

/* It ends after a second, although nothing else happens, and when nothing does. */
static void sutro_test_lease_end(struct kunit *test)
{
	struct leaf l;
	int ticks = 0;

	leaf_init(&l, test);
	begin(&l);
	do {
		completes(&l, 100, false);
		ticks++;
	} while (tick(&l, true) == SUTRO_LEASE_ON);
	KUNIT_EXPECT_EQ(test, ticks, 100);

	leaf_init(&l, test);
	begin(&l);
	completes(&l, 100, true);
	completes(&l, 32, false);
	KUNIT_EXPECT_EQ(test, tick(&l, true), SUTRO_LEASE_ON);
	completes(&l, 100, true);
	completes(&l, 31, false);
	KUNIT_EXPECT_EQ(test, tick(&l, true), SUTRO_LEASE_DRAINS);
}

/* Requests at the device when the lease ends are accounted for before it is over. */
static void sutro_test_lease_drains(struct kunit *test)
{
	struct leaf l;

	leaf_init(&l, test);
	begin(&l);
	completes(&l, 100, false);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	completes(&l, 50, false);
	completes(&l, 1000, true);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	completes(&l, 1000, true);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_OFF);
	KUNIT_EXPECT_EQ(test, l.sum.ios[0], 150);

	/* Slow requests may need several ticks to complete. */
	leaf_init(&l, test);
	begin(&l);
	completes(&l, 100, false);
	l.disk.took_ns[0] += 100 * 19 * MS;
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_OFF);
}

/* No request completes any more: draining ends after 100 ticks. */
static void sutro_test_lease_uncounted(struct kunit *test)
{
	struct leaf l;
	int ticks = 0;

	leaf_init(&l, test);
	begin(&l);
	completes(&l, 100, false);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	l.lease.ordered.ios[0] += 1000;
	do
		ticks++;
	while (tick(&l, false) == SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, ticks, 100);
	KUNIT_EXPECT_EQ(test, l.sum.ios[0], 100);
}

/* Each request is accounted once, whichever side counts it first. */
static void sutro_test_lease_once(struct kunit *test)
{
	u64 state = 7;
	struct leaf l;
	unsigned long direct = 0;
	int i;

	leaf_init(&l, test);
	begin(&l);
	for (i = 0; i < 99; i++) {
		unsigned long nr = 40 + random_below(&state, 1000);
		unsigned long early = random_below(&state, CPUS);

		completes(&l, nr, false);
		completes(&l, 10, true);
		direct += nr;
		/* Requests that the elevator has counted, and the disk has not. */
		l.disk.ios[0] -= early;
		KUNIT_EXPECT_EQ(test, tick(&l, true), SUTRO_LEASE_ON);
		KUNIT_EXPECT_LE(test, l.sum.ios[0], direct);
		KUNIT_EXPECT_GE(test, l.sum.ios[0] + CPUS, direct);
		l.disk.ios[0] += early;
	}
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, l.sum.ios[0], direct);
	KUNIT_EXPECT_EQ(test, l.sum.sectors[0], 8 * direct);
}

static struct kunit_case sutro_lease_test_cases[] = {
	KUNIT_CASE(sutro_test_lease_example),
	KUNIT_CASE(sutro_test_lease_begin),
	KUNIT_CASE(sutro_test_lease_end),
	KUNIT_CASE(sutro_test_lease_drains),
	KUNIT_CASE(sutro_test_lease_uncounted),
	KUNIT_CASE(sutro_test_lease_once),
	{}
};

static struct kunit_suite sutro_lease_test_suite = {
	.name = "sutro_lease",
	.test_cases = sutro_lease_test_cases,
};

kunit_test_suite(sutro_lease_test_suite);

MODULE_DESCRIPTION("KUnit tests of direct mode");
MODULE_LICENSE("GPL");
