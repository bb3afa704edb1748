// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of when direct mode begins and ends, and of its accounting (sutro-lease.c). */
#include "../sutro-lease.h"
#include "sutro_test.h"

#define CPUS 4

/* A leaf and the requests that its disk has completed; it completed a lot before. */
struct leaf {
	struct kunit *test;
	struct sutro_lease lease;
	struct sutro_tally disk;
	struct sutro_tally sum;
	bool left;
	u64 now_ns;
};

static void leaf_init(struct leaf *l, struct kunit *test)
{
	*l = (struct leaf){ .test = test, .now_ns = 10000 * MS };
	sutro_lease_init(&l->lease);
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

static enum sutro_lease_state tick_with(struct leaf *l,
					enum sutro_lease_news news)
{
	struct sutro_tally new;
	long completed;

	l->now_ns += SUTRO_LEASE_TICK_NS;
	completed = sutro_lease_account(&l->lease, &l->disk, &new);
	l->sum.ios[0] += new.ios[0];
	l->sum.sectors[0] += new.sectors[0];
	l->sum.took_ns[0] += new.took_ns[0];
	KUNIT_EXPECT_EQ(l->test, new.ios[1], 0);
	return sutro_lease_tick(&l->lease, completed, l->left, news, l->now_ns);
}

static enum sutro_lease_state tick(struct leaf *l, bool calm)
{
	return tick_with(l, calm ? SUTRO_LEASE_CALM : SUTRO_LEASE_OVER);
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
	sutro_lease_restart(&l.lease);
	KUNIT_EXPECT_FALSE(test, sutro_lease_passed(&l.lease, l.now_ns));
	sutro_lease_restart(&l.lease);
	KUNIT_EXPECT_TRUE(test, passes(&l, 0));
}

/* Groups are members of one lease, and of that which follows the same streak only. */
static void sutro_test_lease_number(struct kunit *test)
{
	struct leaf l;
	u32 number;
	int i;

	leaf_init(&l, test);
	number = l.lease.number;
	for (i = 0; i < 128; i++) {
		KUNIT_EXPECT_FALSE(test, sutro_lease_admits(&l.lease));
		sutro_lease_passed(&l.lease, l.now_ns);
	}
	KUNIT_EXPECT_TRUE(test, sutro_lease_admits(&l.lease));
	/* Without members, there is nothing to be void. */
	sutro_lease_restart(&l.lease);
	KUNIT_EXPECT_EQ(test, l.lease.number, number);
	KUNIT_EXPECT_FALSE(test, sutro_lease_admits(&l.lease));

	sutro_lease_passed(&l.lease, l.now_ns);
	l.lease.members = 1;
	l.lease.number = U32_MAX;
	sutro_lease_restart(&l.lease);
	KUNIT_EXPECT_EQ(test, l.lease.number, 1);
	KUNIT_EXPECT_EQ(test, l.lease.members, 0);

	/* They stay members when a lease is over. */
	begin(&l);
	l.lease.members = 2;
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_OFF);
	KUNIT_EXPECT_EQ(test, l.lease.number, 1);
	KUNIT_EXPECT_EQ(test, l.lease.members, 2);

	/* If a request waits during a lease, they are until it is over. */
	l.now_ns += 20 * MS;
	begin(&l);
	sutro_lease_restart(&l.lease);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, l.lease.number, 1);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_OFF);
	KUNIT_EXPECT_EQ(test, l.lease.number, 2);
	KUNIT_EXPECT_EQ(test, l.lease.members, 0);
}

/* A lease of some members on a device that is full: how long until the next one may begin? */
static u64 full_pause_ns(struct leaf *l, u32 members, int ticks)
{
	enum sutro_lease_news news = SUTRO_LEASE_CALM;

	l->now_ns += 256 * 20 * MS;
	begin(l);
	l->lease.members = members;
	while (ticks--) {
		if (!ticks)
			news = SUTRO_LEASE_FULL;
		completes(l, 100, false);
		tick_with(l, news);
	}
	KUNIT_EXPECT_EQ(l->test, tick(l, false), SUTRO_LEASE_OFF);
	return l->lease.pause_ns;
}

/* A lease of some members that goes on to its end: the pause after it. */
static u64 calm_pause_ns(struct leaf *l, u32 members)
{
	l->now_ns += 256 * 20 * MS;
	begin(l);
	l->lease.members = members;
	do
		completes(l, 100, false);
	while (tick(l, true) == SUTRO_LEASE_ON);
	KUNIT_EXPECT_EQ(l->test, tick(l, false), SUTRO_LEASE_OFF);
	return l->lease.pause_ns;
}

/* The examples of sutro-lease.c: leases that find the device full become rare. */
static void sutro_test_lease_pause(struct kunit *test)
{
	struct leaf l;
	int i;

	leaf_init(&l, test);
	for (i = 1; i <= 6; i++)
		KUNIT_EXPECT_EQ(test, full_pause_ns(&l, 2, 1),
				20 * MS << 2 * min(i, 4));
	/* Alone, a group takes nothing from another one. */
	KUNIT_EXPECT_EQ(test, full_pause_ns(&l, 1, 1), 5120 * MS);
	/* It has gone on for a second, and the device was full then. */
	KUNIT_EXPECT_EQ(test, full_pause_ns(&l, 2, 100), 5120 * MS);

	for (i = 1; i <= 10; i++)
		KUNIT_EXPECT_EQ(test, calm_pause_ns(&l, 2),
				5120 * MS >> min(i, 8));
	/* Bursts in every second lease. */
	for (i = 1; i <= 8; i++) {
		KUNIT_EXPECT_EQ(test, full_pause_ns(&l, 2, 50),
				min(40 * MS << i, 5120 * MS));
		KUNIT_EXPECT_EQ(test, calm_pause_ns(&l, 2),
				min(20 * MS << i, 2560 * MS));
	}
	KUNIT_EXPECT_EQ(test, calm_pause_ns(&l, 1), 20 * MS);
}

/* The parts of members are in proportion, and add up. */
static void sutro_test_lease_part(struct kunit *test)
{
	u64 left = 100, all = 30, state = 5;
	int i, j;

	KUNIT_EXPECT_EQ(test, sutro_lease_part(&left, 10, &all), 33);
	KUNIT_EXPECT_EQ(test, sutro_lease_part(&left, 10, &all), 33);
	KUNIT_EXPECT_EQ(test, sutro_lease_part(&left, 10, &all), 34);
	/* Nothing was sent that was counted: the first one has it. */
	left = 7;
	all = 0;
	KUNIT_EXPECT_EQ(test, sutro_lease_part(&left, 0, &all), 7);
	KUNIT_EXPECT_EQ(test, sutro_lease_part(&left, 0, &all), 0);

	for (i = 0; i < 100; i++) {
		u64 mine[8], sum, total, sent = 0, parts = 0;

		for (j = 0; j < 8; j++)
			sent += mine[j] = random_below(&state, 1 << 24);
		total = random_below(&state, 1 << 24);
		left = total;
		all = sent;
		sum = 0;
		for (j = 0; j < 8; j++) {
			u64 part = sutro_lease_part(&left, mine[j], &all);

			sum += part;
			parts += abs((s64)(part * sent - total * mine[j])) >
				 8 * sent;
		}
		KUNIT_EXPECT_EQ(test, sum, total);
		KUNIT_EXPECT_EQ(test, parts, 0);
	}
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

/* In a tick of 10 ms, @nr requests complete that took @took_ns each: is that deep? */
static bool deep(u32 members, unsigned long nr, u64 took_ns, u64 cost_ns)
{
	struct sutro_lease lease = { .members = members };
	struct sutro_tally new = {
		.ios = { nr / 2, nr - nr / 2 },
		.took_ns = { nr / 2 * took_ns, (nr - nr / 2) * took_ns },
	};

	return sutro_lease_is_deep(&lease, &new, 10 * MS, nr * cost_ns, 4 * MS,
				   64 * MS);
}

/* A group alone may have as much at the device as it works on in 64 ms. */
static void sutro_test_lease_of_one_is_deep(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, deep(1, 20, 63 * MS, MS / 2));
	KUNIT_EXPECT_TRUE(test, deep(1, 20, 64 * MS, MS / 2));
	KUNIT_EXPECT_FALSE(test, deep(1, 0, 0, 0));
}

/* Several groups may have 4 ms at the device: eight requests. */
static void sutro_test_lease_of_several_is_deep(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, deep(2, 20, 7 * MS / 2, MS / 2));
	KUNIT_EXPECT_TRUE(test, deep(2, 20, 4 * MS, MS / 2));
	/* One request at a time delays no others, whatever it costs. */
	KUNIT_EXPECT_FALSE(test, deep(2, 1, 15 * MS, 15 * MS));
	KUNIT_EXPECT_FALSE(test, deep(2, 0, 0, 0));
}

/* Requests at the device when the lease ends are accounted for before it is over. */
static void sutro_test_lease_drains(struct kunit *test)
{
	struct leaf l;

	leaf_init(&l, test);
	begin(&l);
	completes(&l, 100, false);
	l.left = true;
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	completes(&l, 50, false);
	completes(&l, 1000, true);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	/* A task with requests in its plug does not run. */
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_DRAINS);
	completes(&l, 16, false);
	completes(&l, 1000, true);
	l.left = false;
	KUNIT_EXPECT_EQ(test, tick(&l, false), SUTRO_LEASE_OFF);
	KUNIT_EXPECT_EQ(test, l.sum.ios[0], 166);
}

/* No request completes any more: draining ends after 100 ticks. */
static void sutro_test_lease_uncounted(struct kunit *test)
{
	struct leaf l;
	int ticks = 0;

	leaf_init(&l, test);
	begin(&l);
	completes(&l, 100, false);
	l.left = true;
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

static struct kunit_case sutro_lease_cases[] = {
	KUNIT_CASE(sutro_test_lease_example),
	KUNIT_CASE(sutro_test_lease_begin),
	KUNIT_CASE(sutro_test_lease_number),
	KUNIT_CASE(sutro_test_lease_pause),
	KUNIT_CASE(sutro_test_lease_part),
	KUNIT_CASE(sutro_test_lease_end),
	KUNIT_CASE(sutro_test_lease_of_one_is_deep),
	KUNIT_CASE(sutro_test_lease_of_several_is_deep),
	KUNIT_CASE(sutro_test_lease_drains),
	KUNIT_CASE(sutro_test_lease_uncounted),
	KUNIT_CASE(sutro_test_lease_once),
	{}
};

sutro_suite(sutro_lease, "direct mode");
