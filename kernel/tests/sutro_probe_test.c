// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of probes (sutro-probe.c), on a device that serves requests in order,
 * each after its true cost.
 */
#include <linux/string.h>

#include "../sutro-probe.h"
#include "sutro_suite.h"

#define MS 1000000ULL
#define SEC (1000 * MS)

#define A sutro_cost_class(SUTRO_READ, 4096)
#define B sutro_cost_class(SUTRO_WRITE, 65536)
/* Of the size of A. */
#define M sutro_cost_class(SUTRO_WRITE, 4096)
#define DEPTH 32

/**
 * struct probe_test - a leaf in which requests of two classes always wait, or not
 * @waiting:	requests of each class that wait or are in flight
 * @cost_ns:	their true costs
 * @is_mixed:	those of A and M are of one task, which reads or writes by chance
 * @seed:	of chance
 * @took_ns:	if it works on all at once: how long each takes
 * @queue:	classes of those in flight, oldest first
 * @start_ns:	when they were sent
 * @turn:	the class that is sent first outside of probes, alternately
 * @probes:	number of probes that ended
 */
struct probe_test {
	struct kunit *test;
	struct sutro_device device;
	struct sutro_probe probe;
	struct sutro_peer peers[SUTRO_CLASSES];
	u64 now_ns;
	u32 waiting[SUTRO_CLASSES];
	u64 cost_ns[SUTRO_CLASSES];
	bool is_mixed;
	u32 seed;
	u64 took_ns;
	unsigned int queue[DEPTH];
	u64 start_ns[DEPTH];
	u32 nr;
	bool turn;
	u32 probes;
};

static struct probe_test *probe_test_new(struct kunit *test, u64 a_ns, u64 b_ns)
{
	struct probe_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	sutro_device_init(&t->device, false);
	sutro_probe_init(&t->probe, DEPTH);
	for (i = 0; i < SUTRO_CLASSES; i++)
		sutro_peer_init(&t->peers[i]);
	t->now_ns = SEC;
	t->cost_ns[A] = a_ns;
	t->cost_ns[B] = b_ns;
	return t;
}

static void set_waiting(struct probe_test *t, unsigned int class, u32 nr)
{
	t->waiting[class] = nr;
	if (nr)
		sutro_probe_join(&t->probe, &t->peers[class], class);
	else
		sutro_probe_leave(&t->peers[class]);
}

/* Both classes always have requests. */
static struct probe_test *both_waiting(struct kunit *test, u64 a_ns, u64 b_ns)
{
	struct probe_test *t = probe_test_new(test, a_ns, b_ns);

	set_waiting(t, A, 40);
	set_waiting(t, B, 40);
	return t;
}

/* A request of the task is done, and it queues the next one. */
static void queue_next(struct probe_test *t, unsigned int class)
{
	unsigned int next;

	t->seed = t->seed * 1664525 + 1013904223;
	next = t->seed >> 31 ? A : M;
	t->waiting[class]--;
	t->waiting[next]++;
	sutro_probe_join(&t->probe, &t->peers[next], next);
	if (!t->waiting[class])
		sutro_probe_leave(&t->peers[class]);
}

static u32 nr_queued(const struct probe_test *t, unsigned int class)
{
	return t->waiting[class] + t->device.done[class] - t->probe.sent[class];
}

/* The next request of the task is probably of the class with more queued requests. */
static unsigned int first_of(const struct probe_test *t)
{
	return nr_queued(t, M) > nr_queued(t, A) ? M : A;
}

static bool send_one(struct probe_test *t, unsigned int class)
{
	u32 in_flight = t->probe.sent[class] - t->device.done[class];

	if (t->nr == DEPTH || in_flight >= t->waiting[class])
		return false;
	t->queue[t->nr] = class;
	t->start_ns[t->nr++] = t->now_ns;
	sutro_probe_sent(&t->probe, class);
	return true;
}

/* As sutro-iosched.c: requests that a probe lets through, else by turns. */
static void dispatch(struct probe_test *t)
{
	struct sutro_probe *probe = &t->probe;
	bool was_active, sent;

	do {
		was_active = probe->active;
		if (sutro_probe_look(probe, t->now_ns))
			sutro_probe_step(probe, &t->device, t->now_ns);
		t->probes += was_active && !probe->active;
		if (probe->active) {
			if (!sutro_probe_has_room(probe, &t->device))
				return;
			sent = send_one(t, probe->class) ||
			       (probe->mixed &&
				send_one(t, sutro_cost_mate(probe->class)));
			if (sent)
				continue;
			if (!sutro_probe_starved(probe, &t->device, t->now_ns))
				return;
			t->probes++;
		}
		sent = send_one(t, t->turn ? first_of(t) : B) ||
		       send_one(t, t->turn ? B : first_of(t));
		t->turn ^= sent;
	} while (sent);
}

/* The oldest request is done. */
static void complete_one(struct probe_test *t)
{
	struct sutro_sample sample = {
		.class = t->queue[0],
		.bytes = t->queue[0] == B ? 65536 : 4096,
		.start_ns = t->start_ns[0],
	};

	if (t->took_ns)
		t->now_ns = max(t->now_ns, t->start_ns[0] + t->took_ns);
	else
		t->now_ns += t->cost_ns[sample.class];
	sample.now_ns = t->now_ns;
	t->nr--;
	memmove(t->queue, t->queue + 1, t->nr * sizeof(t->queue[0]));
	memmove(t->start_ns, t->start_ns + 1, t->nr * sizeof(t->start_ns[0]));
	sutro_cost_complete(&t->device, NULL, &sample);
	if (t->is_mixed && sample.class != B)
		queue_next(t, sample.class);
}

static void run_until(struct probe_test *t, u64 until_ns)
{
	while (t->now_ns < until_ns) {
		dispatch(t);
		/* The device is never empty while requests wait. */
		KUNIT_ASSERT_GT(t->test, t->nr, 0);
		complete_one(t);
	}
}

static void expect_cost(struct probe_test *t, unsigned int class, u64 cost_ns,
			u64 bound_ns)
{
	u64 ns = sutro_cost_class_ns(&t->device, class);

	KUNIT_EXPECT_GE(t->test, ns + bound_ns, cost_ns);
	KUNIT_EXPECT_LE(t->test, ns, cost_ns + bound_ns);
}

/* Two classes that always have requests: both are measured, whatever they cost. */
static void sutro_test_measures(struct kunit *test)
{
	static const struct {
		u32 a_ns, b_ns, ms;
	} cases[] = {
		{ 1000, 100000, 2000 }, { 100000, 1000, 2000 },
		{ 7407, 118518, 3000 }, { 66666, 17 * MS, 3000 },
		{ 500, 600, 500 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 a_ns = cases[i].a_ns, b_ns = cases[i].b_ns;
		struct probe_test *t = both_waiting(test, a_ns, b_ns);

		dispatch(t);
		KUNIT_EXPECT_TRUE(test, t->probe.guessing);
		run_until(t, t->now_ns + cases[i].ms * MS);
		KUNIT_EXPECT_FALSE(test, t->probe.guessing);
		expect_cost(t, A, a_ns, a_ns / 50 + 1);
		expect_cost(t, B, b_ns, b_ns / 50 + 1);
	}
}

/* When the cost of a class rises five times, that is measured within a second. */
static void sutro_test_change(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 40000, 160000);

	run_until(t, 20 * SEC);
	t->cost_ns[B] *= 5;
	run_until(t, 21 * SEC);
	expect_cost(t, A, 40000, 2000);
	expect_cost(t, B, 800000, 40000);
}

/* How often does the device seem to have changed? */
static unsigned int count_changes(struct probe_test *t, u64 until_ns)
{
	unsigned int nr = 0;
	bool seen;

	while (t->now_ns < until_ns) {
		seen = t->device.change.seen;
		run_until(t, t->now_ns + 1);
		nr += t->device.change.seen && !seen;
	}
	return nr;
}

/* The same when it falls to a fifth.  The new cost in the table is no further change. */
static void sutro_test_change_faster(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 10000, 1000000);

	KUNIT_EXPECT_EQ(test, count_changes(t, 20 * SEC), 0);
	t->cost_ns[B] /= 5;
	KUNIT_EXPECT_EQ(test, count_changes(t, 21 * SEC), 1);
	expect_cost(t, A, 10000, 500);
	expect_cost(t, B, 200000, 10000);
	KUNIT_EXPECT_EQ(test, count_changes(t, 40 * SEC), 0);
}

/* While groups are protected, a ramp of it would take too long: it takes 20 s at most. */
static void sutro_test_change_protected(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 40000, 160000);

	run_until(t, 20 * SEC);
	t->probe.rare = true;
	t->cost_ns[B] *= 5;
	KUNIT_EXPECT_EQ(test, count_changes(t, 40 * SEC), 1);
	expect_cost(t, A, 40000, 2000);
	expect_cost(t, B, 800000, 40000);
}

/* When no cost changes, each class is measured every 4 s. */
static void sutro_test_rare(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 40000, 160000);
	u32 before;

	run_until(t, 11 * SEC);
	before = t->probes;
	run_until(t, 31 * SEC);
	KUNIT_EXPECT_LE(test, t->probes - before, 2 * 20 / 4 + 2);
}

/* While groups are protected, the first probe of each class comes soon, or not in reserved time. */
static void sutro_test_rare_first(struct kunit *test)
{
	struct probe_test *t;
	int reserved;

	for (reserved = 0; reserved < 2; reserved++) {
		t = probe_test_new(test, 4000, 40000);
		t->probe.rare = true;
		t->probe.reserved = reserved;
		set_waiting(t, A, 40);
		set_waiting(t, B, 40);
		run_until(t, 3 * SEC / 2);
		KUNIT_EXPECT_EQ(test, t->probe.of[A].probes, 1);
		KUNIT_EXPECT_EQ(test, t->probe.of[B].probes, !reserved);
	}
}

/* A probe that is cut short for protected groups changes no known cost. */
static void sutro_test_cut_short(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 40000, 4 * MS);
	int i;

	run_until(t, 20 * SEC);
	t->probe.rare = true;
	for (i = 0; i < 40; i++) {
		run_until(t, t->now_ns + 2 * SEC);
		expect_cost(t, A, 40000, 2000);
		expect_cost(t, B, 4 * MS, 4 * MS / 20);
	}
}

/* Reads of trimmed blocks in three probes of eight do not make a class cheap. */
static void sutro_test_cheap_reads(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 40000, 160000);
	struct sutro_probe *probe = &t->probe;

	run_until(t, 10 * SEC);
	while (t->now_ns < 60 * SEC) {
		bool trimmed = probe->active && probe->class == A &&
			       probe->of[A].probes % 8 < 3;

		t->cost_ns[A] = trimmed ? 4000 : 40000;
		run_until(t, t->now_ns + 1);
		if (!probe->active)
			KUNIT_ASSERT_GT(test,
					sutro_cost_class_ns(&t->device, A),
					36000);
	}
}

/* Requests of 30 ms are measured by a few of them: others wait for 20 of them at most. */
static void sutro_test_expensive(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 2 * MS, 30 * MS);
	u64 last_ns = t->now_ns, longest_ns = 0;

	while (t->now_ns < 121 * SEC) {
		dispatch(t);
		if (t->queue[0] == A)
			last_ns = t->now_ns;
		complete_one(t);
		longest_ns = max(longest_ns, t->now_ns - last_ns);
	}
	expect_cost(t, A, 2 * MS, MS / 10);
	expect_cost(t, B, 30 * MS, 3 * MS / 2);
	KUNIT_EXPECT_GT(test, t->probe.of[B].probes, 2);
	KUNIT_EXPECT_LE(test, longest_ns, 20 * 30 * MS);
}

/* A class that is too slow for a probe does not keep others waiting half of the time. */
static void sutro_test_too_slow(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 40000, 600 * MS);
	u64 probing_ns = 0, before_ns;
	bool active;

	while (t->now_ns < 61 * SEC) {
		dispatch(t);
		active = t->probe.active && t->probe.class == B;
		before_ns = t->now_ns;
		complete_one(t);
		if (active)
			probing_ns += t->now_ns - before_ns;
	}
	KUNIT_EXPECT_EQ(test, t->probe.of[B].probes, 0);
	KUNIT_EXPECT_GT(test, probing_ns, 0);
	KUNIT_EXPECT_LE(test, probing_ns, 3 * SEC);
}

/* Of too few writes, the device serves as many at once as of reads of their size. */
static void sutro_test_few_writes(struct kunit *test)
{
	unsigned int read = sutro_cost_class(SUTRO_READ, 131072);
	struct probe_test *t = probe_test_new(test, 0, 0);

	t->took_ns = 800000;
	t->device.latency_ns = 390000;
	sutro_cost_measured(&t->device, read, 20000 << SUTRO_NS16_SHIFT, 0);
	set_waiting(t, A, 1);
	set_waiting(t, B, 4);
	while (!t->probe.of[B].nr)
		run_until(t, t->now_ns + MS);
	/* 390 us and 10 us for 64 KiB: 40 reads. */
	expect_cost(t, B, 20000, 100);
}

/* 80 requests of @known are served at once.  The cost of @few, of which there are four. */
static void expect_few(struct kunit *test, unsigned int known, unsigned int few,
		       u64 cost_ns)
{
	struct probe_test *t = probe_test_new(test, 0, 0);

	t->took_ns = 800000;
	sutro_cost_measured(&t->device, known, 10000 << SUTRO_NS16_SHIFT,
			    U64_MAX);
	t->probe.of[known].took_ns16 = t->took_ns << SUTRO_NS16_SHIFT;
	set_waiting(t, known, 1);
	set_waiting(t, few, 4);
	while (!t->probe.of[few].nr)
		run_until(t, t->now_ns + MS);
	expect_cost(t, few, cost_ns, 100);
}

/* Of small requests, the device serves as many at once as of large ones, but not vice versa. */
static void sutro_test_few_of_two_sizes(struct kunit *test)
{
	expect_few(test, B, A, 10000);
	/* As many as there were. */
	expect_few(test, A, B, 200000);
}

/* Five requests show that four were enough, if they are no cheaper. */
static void sutro_test_few_more(struct kunit *test)
{
	struct probe_test *t = probe_test_new(test, 40000, 160000);

	set_waiting(t, A, 5);
	set_waiting(t, B, 40);
	while (!t->probe.of[A].nr)
		run_until(t, t->now_ns + MS);
	expect_cost(t, A, 40000, 400);
	KUNIT_EXPECT_FALSE(test, t->probe.of[A].unsaturated);
	KUNIT_EXPECT_EQ(test, t->probe.of[A].depth, 4);
}

static struct probe_test *mixed_test_new(struct kunit *test)
{
	struct probe_test *t = probe_test_new(test, 40000, 160000);

	t->is_mixed = true;
	t->cost_ns[M] = 120000;
	set_waiting(t, A, 16);
	set_waiting(t, M, 16);
	set_waiting(t, B, 40);
	return t;
}

/* Reads and writes of one task soon are of one direction: both are measured by turns. */
static void sutro_test_mixed(struct kunit *test)
{
	struct probe_test *t = mixed_test_new(test);

	run_until(t, 20 * SEC);
	KUNIT_EXPECT_GT(test, t->probe.of[A].probes + t->probe.of[M].probes, 0);
	expect_cost(t, A, 40000, 2000);
	expect_cost(t, M, 120000, 6000);
	expect_cost(t, B, 160000, 3200);
}

/* Where the writes have been measured alone, the rest is that of the reads. */
static void sutro_test_mixed_with_known(struct kunit *test)
{
	struct probe_test *t = mixed_test_new(test);

	sutro_cost_measured(&t->device, M, 120000 << SUTRO_NS16_SHIFT, 0);
	t->probe.of[M].nr = 1;
	t->probe.of[M].probes = 1;
	t->probe.of[M].due_ns = 30 * SEC;
	run_until(t, 20 * SEC);
	KUNIT_EXPECT_GT(test, t->probe.of[A].probes, 0);
	expect_cost(t, A, 40000, 6000);
	expect_cost(t, M, 120000, 0);
}

/* A class that is alone is not measured; one without requests delays no other. */
static void sutro_test_alone(struct kunit *test)
{
	struct probe_test *t = probe_test_new(test, 40000, 160000);

	set_waiting(t, A, 40);
	run_until(t, 5 * SEC);
	KUNIT_EXPECT_EQ(test, t->probes, 0);
	/* One large request at a time shows the most that it costs. */
	set_waiting(t, B, 1);
	run_until(t, 10 * SEC);
	KUNIT_EXPECT_TRUE(test, t->probe.of[B].unsaturated);
	KUNIT_EXPECT_LE(test, sutro_cost_class_ns(&t->device, B), 200000);
	KUNIT_EXPECT_GT(test, t->probe.of[A].probes, 0);
	set_waiting(t, A, 0);
	run_until(t, 11 * SEC);
}

/* The last request that waited is sent again and again: the driver could take more. */
static void sutro_test_dry(struct kunit *test)
{
	struct probe_test *t = both_waiting(test, 40000, 160000);
	int i;

	do {
		dispatch(t);
		complete_one(t);
	} while (!t->probe.active);
	while (t->nr)
		complete_one(t);
	t->device.meter = (struct sutro_meter){};
	for (i = 0; i < 100; i++) {
		sutro_probe_step(&t->probe, &t->device, t->now_ns);
		KUNIT_ASSERT_GT(test, send_one(t, t->probe.class), 0);
		t->probe.dry = true;
		sutro_probe_step(&t->probe, &t->device, t->now_ns);
		complete_one(t);
	}
	KUNIT_EXPECT_EQ(test, t->probe.limit, DEPTH);
}

/* Is a group with one request, of a class, let through? */
static bool admits(const struct probe_test *t, unsigned int class)
{
	const struct sutro_peer peer = { .class = class };

	return sutro_probe_admits(&t->probe, &t->device, &peer, 1);
}

/* They are not, with those of the probed class, or with large ones of an unknown cost. */
static void sutro_test_guests(struct kunit *test)
{
	struct probe_test *t = probe_test_new(test, 100000, 100000);
	unsigned int large = sutro_cost_class(SUTRO_READ, 131072);

	set_waiting(t, A, DEPTH);
	set_waiting(t, B, DEPTH);
	while (!t->probe.active) {
		dispatch(t);
		complete_one(t);
	}
	KUNIT_EXPECT_TRUE(test, admits(t, sutro_cost_class(SUTRO_READ, 8192)));
	KUNIT_EXPECT_FALSE(test, admits(t, t->probe.class));
	KUNIT_EXPECT_FALSE(test, admits(t, large));
	sutro_cost_measured(&t->device, large, 100000 << SUTRO_NS16_SHIFT, 0);
	KUNIT_EXPECT_TRUE(test, admits(t, large));
}

/* The probe of a device that takes 24 requests ends after a multiple of these, not after 256. */
static void sutro_test_odd_limit(struct kunit *test)
{
	struct probe_test *t = probe_test_new(test, 5000, 5000);

	t->probe.limit = 24;
	t->probe.of[A].depth = 48;
	t->probe.of[B].depth = 48;
	set_waiting(t, A, 40);
	set_waiting(t, B, 40);
	while (t->probes < 4) {
		dispatch(t);
		complete_one(t);
		if (!t->device.meter.done)
			continue;
		KUNIT_EXPECT_EQ(test, t->probe.depth, 24);
		KUNIT_EXPECT_EQ(test, t->device.meter.nr % 24, 0);
	}
}

static struct kunit_case sutro_probe_cases[] = {
	KUNIT_CASE(sutro_test_odd_limit),
	KUNIT_CASE(sutro_test_measures),
	KUNIT_CASE(sutro_test_change),
	KUNIT_CASE(sutro_test_change_faster),
	KUNIT_CASE(sutro_test_change_protected),
	KUNIT_CASE(sutro_test_rare),
	KUNIT_CASE(sutro_test_rare_first),
	KUNIT_CASE(sutro_test_cut_short),
	KUNIT_CASE(sutro_test_cheap_reads),
	KUNIT_CASE(sutro_test_expensive),
	KUNIT_CASE(sutro_test_too_slow),
	KUNIT_CASE(sutro_test_few_writes),
	KUNIT_CASE(sutro_test_few_of_two_sizes),
	KUNIT_CASE(sutro_test_few_more),
	KUNIT_CASE(sutro_test_mixed),
	KUNIT_CASE(sutro_test_mixed_with_known),
	KUNIT_CASE(sutro_test_alone),
	KUNIT_CASE(sutro_test_dry),
	KUNIT_CASE(sutro_test_guests),
	{}
};

sutro_suite(sutro_probe, "probes");
