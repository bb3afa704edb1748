// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of busy_ns and backlog_ns, the times in io.sutro.stat with requests, and of the time
 * of a choice.
 */
#include "sutro_test.h"

/* Time with requests counts once, however many there are, queued or at the device. */
static void sutro_test_busy(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	arrive(t, &t->a, 1);
	t->now_ns += 2 * MS;
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_EQ(test, sutro_group_backlog_ns(&t->a, t->now_ns), 2 * MS);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->a);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->a);
	finish(t, &t->a, MS, MS);
	KUNIT_EXPECT_EQ(test, sutro_group_backlog_ns(&t->a, t->now_ns), 2 * MS);
	KUNIT_EXPECT_EQ(test, t->a.stat.busy_ns, 0);
	finish(t, &t->a, MS, MS);
	KUNIT_EXPECT_EQ(test, t->a.stat.busy_ns, 4 * MS);
	t->now_ns += 5 * MS;
	/* And where requests pass. */
	forget(t);
	KUNIT_EXPECT_TRUE(test,
			  sutro_core_may_pass(&t->core, &t->a, t->now_ns));
	sutro_core_pass(&t->core, &t->a, false, MS, t->now_ns);
	finish(t, &t->a, MS, MS);
	sutro_core_pass(&t->core, &t->a, false, MS, t->now_ns + MS);
	t->now_ns += MS;
	finish(t, &t->a, MS, MS);
	KUNIT_EXPECT_EQ(test, t->a.stat.busy_ns, 6 * MS);
}

/*
 * Readers see no time fall, although the last call of the elevator took the time before they
 * read.  They see too much by no more than that.
 */
static void sutro_test_times_rise(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u32 seen_ns = 0;
	u64 state = 1, clock_ns = t->now_ns, last_ns = 0, read_ns = 0;
	u64 ago_ns = 0;
	unsigned int i, fallen = 0, too_much = 0, raw = 0;

	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_EMPTY);
	for (i = 0; i < 10000; i++) {
		u64 ns;

		clock_ns += random_below(&state, 20000);
		ago_ns = max(ago_ns, clock_ns - t->core.now_ns);
		ns = sutro_group_backlog_ns(&t->a, clock_ns);
		raw += ns < last_ns;
		last_ns = ns;
		ns = sutro_rising_ns(&seen_ns, ns);
		fallen += ns < read_ns;
		too_much += ns > last_ns + ago_ns;
		read_ns = ns;

		ns = clock_ns - random_below(&state, 5000);
		t->now_ns = max(t->now_ns, ns);
		if (!random_below(&state, 3)) {
			arrive(t, &t->a, 1);
		} else if (t->a.queued && random_below(&state, 4)) {
			sutro_core_unqueue(&t->core, &t->a);
		} else if (t->a.in_flight) {
			sutro_core_complete(&t->core, &t->a, 1, MS, MS,
					    t->now_ns);
		} else {
			send(t, MS);
		}
	}
	KUNIT_EXPECT_GT(test, raw, 0);
	KUNIT_EXPECT_EQ(test, fallen, 0);
	KUNIT_EXPECT_EQ(test, too_much, 0);
}

/* No choice is before an arrival or another choice, whenever a CPU took its time. */
static void sutro_test_times_in_order(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	const u64 now_ns = t->now_ns;

	arrive(t, &t->a, 1);
	t->now_ns -= MS;
	arrive(t, &t->e, 1);
	KUNIT_EXPECT_EQ(test, t->core.now_ns, now_ns);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_SERVE);
	KUNIT_EXPECT_EQ(test, t->core.now_ns, now_ns);
	sutro_core_interrupt(&t->core, t->now_ns);
	KUNIT_EXPECT_EQ(test, t->core.now_ns, now_ns);
	sutro_core_interrupt(&t->core, now_ns + MS);
	KUNIT_EXPECT_EQ(test, t->core.now_ns, now_ns + MS);
}

static struct kunit_case sutro_times_cases[] = {
	KUNIT_CASE(sutro_test_busy),
	KUNIT_CASE(sutro_test_times_rise),
	KUNIT_CASE(sutro_test_times_in_order),
	{}
};

sutro_suite(sutro_times, "the times with requests of a sutro group");
