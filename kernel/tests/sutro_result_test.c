// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the cost of a class by the results of its probes (sutro-result.c): with too few
 * requests to saturate the device, and of a device that changes.
 */
#include "../sutro-probe.h"
#include "sutro_test.h"

#define MS (1000 * 1000ULL)
#define SEC (1000 * 1000 * 1000ULL)
#define SMALL sutro_cost_class(SUTRO_READ, 4096)
#define LARGE sutro_cost_class(SUTRO_READ, 65536)
/* Of the size of SMALL. */
#define WRITE sutro_cost_class(SUTRO_WRITE, 4096)
#define LARGEST sutro_cost_class(SUTRO_WRITE, 1048576)

/**
 * struct result_test - a leaf whose probes end with given results
 */
struct result_test {
	struct kunit *test;
	struct sutro_device device;
	struct sutro_probe probe;
};

static struct result_test *result_test_new(struct kunit *test)
{
	struct result_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	sutro_device_init(&t->device, false);
	sutro_probe_init(&t->probe, 128);
	return t;
}

static void measured(struct result_test *t, unsigned int class, u64 cost_ns)
{
	sutro_cost_measured(&t->device, class, cost_ns << SUTRO_NS16_SHIFT, 0);
}

/* The only probe of a class had @depth requests, too few if there is room for more. */
static void learn(struct result_test *t, unsigned int class, u64 cost_ns,
		  u32 depth, u32 spare16)
{
	t->probe.class = class;
	t->probe.of[class] = (struct sutro_probe_class){
		.unsaturated = spare16 != SUTRO_PROBE_SPARE_NONE,
		.nr = 1,
		.units = SUTRO_UNIT,
		.least_ns = t->probe.of[class].least_ns,
		.result[0] = { .ns16 = cost_ns << SUTRO_NS16_SHIFT,
			       .at_ns = SEC,
			       .depth = depth,
			       .spare16 = spare16 },
	};
	sutro_probe_learn(&t->probe, &t->device, SEC);
}

/* One more probe of a class, with enough requests. */
static void learn_more(struct result_test *t, unsigned int class, u64 cost_ns)
{
	struct sutro_probe_class *of = &t->probe.of[class];

	t->probe.class = class;
	of->result[of->next].ns16 = cost_ns << SUTRO_NS16_SHIFT;
	of->result[of->next].at_ns = SEC;
	of->result[of->next].depth = 64;
	of->result[of->next].spare16 = SUTRO_PROBE_SPARE_NONE;
	of->next = (of->next + 1) % SUTRO_PROBE_RESULTS;
	of->nr = min_t(u32, of->nr + 1, SUTRO_PROBE_RESULTS);
	sutro_probe_learn(&t->probe, &t->device, SEC);
}

static void expect_cost(struct result_test *t, unsigned int class, u64 ns)
{
	EXPECT_NEAR(t->test, sutro_cost_class_ns(&t->device, class), ns, 100);
}

/* A write costs no less than a read, if there is no cache. */
static void sutro_test_write_like_read(struct kunit *test)
{
	struct result_test *t = result_test_new(test);

	t->device.latency_ns = 560000;
	learn(t, WRITE, 100000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, WRITE, 50000);
	/* Eight reads are served at once, and half as many writes were there. */
	measured(t, SMALL, 80000);
	learn(t, WRITE, 100000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, WRITE, 80000);
	learn(t, WRITE, 60000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, WRITE, 60000);
	t = result_test_new(test);
	t->device.amplification.has_cache = true;
	measured(t, SMALL, 80000);
	learn(t, WRITE, 60000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, WRITE, 30000);
}

/* Windows find how many the device serves at once, and the next probe keeps that. */
static void sutro_test_keeps_cost_of_windows(struct kunit *test)
{
	struct result_test *t = result_test_new(test);

	learn(t, SMALL, 100000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, SMALL, 50000);
	sutro_cost_set(&t->device.costs, SMALL, 90000 << SUTRO_NS16_SHIFT);
	learn(t, SMALL, 100000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, SMALL, 90000);
	learn(t, SMALL, 80000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, SMALL, 80000);
}

/* The result of windows for a class counts until the cost that it rests on has changed. */
static void sutro_test_drops_cost_of_windows(struct kunit *test)
{
	struct result_test *t = result_test_new(test);

	learn(t, SMALL, 80000, 64, SUTRO_PROBE_SPARE_NONE);
	expect_cost(t, LARGE, 16 * 80000);
	sutro_cost_set(&t->device.costs, LARGE, 300000 << SUTRO_NS16_SHIFT);
	expect_cost(t, LARGE, 300000);
	learn(t, SMALL, 90000, 64, SUTRO_PROBE_SPARE_NONE);
	expect_cost(t, LARGE, 300000);
	learn(t, SMALL, 200000, 64, SUTRO_PROBE_SPARE_NONE);
	expect_cost(t, LARGE, 16 * 200000);
	sutro_cost_set(&t->device.costs, LARGE, 300000 << SUTRO_NS16_SHIFT);
	/* Another class was measured for the first time: a write, and a read. */
	learn(t, WRITE, 500000, 64, SUTRO_PROBE_SPARE_NONE);
	expect_cost(t, LARGE, 300000);
	learn(t, sutro_cost_class(SUTRO_READ, 8192), 400000, 64,
	      SUTRO_PROBE_SPARE_NONE);
	expect_cost(t, LARGE, 8 * 400000);
}

/* Eight reads of 60 us at once take 0.48 ms: so the latency is 1.7 ms at most. */
static void sutro_test_bounds_latency(struct kunit *test)
{
	struct result_test *t = result_test_new(test);

	t->device.latency_ns = 6 * MS;
	t->probe.took_ns = 480000;
	learn(t, SMALL, 60000, 8, SUTRO_PROBE_SPARE_NONE);
	EXPECT_NEAR(test, t->device.latency_ns, 4 * (480000 - 52500), 1000);
	/* Fewer of them than the device can serve cost less: nothing is subtracted. */
	t->device.latency_ns = 6 * MS;
	learn(t, SMALL, 60000, 8, SUTRO_PROBE_SPARE_MOST);
	EXPECT_NEAR(test, t->device.latency_ns, 4 * 480000, 1000);
	/* The fastest request of them shows more than the mean. */
	t->probe.of[SMALL].least_ns = 400000;
	learn(t, SMALL, 60000, 8, SUTRO_PROBE_SPARE_MOST);
	EXPECT_NEAR(test, t->device.latency_ns, 4 * 400000, 1000);
	t->device.latency_ns = 0;
	learn(t, SMALL, 60000, 8, SUTRO_PROBE_SPARE_MOST);
	EXPECT_NEAR(test, t->device.latency_ns, 4 * 400000, 1000);
	/* Large requests do not show one that is not known. */
	t->device.latency_ns = 0;
	learn(t, sutro_cost_class(SUTRO_READ, 262144), 2 * MS, 2,
	      SUTRO_PROBE_SPARE_MOST);
	KUNIT_EXPECT_EQ(test, t->device.latency_ns, 0);
	/* Writes that the cache of a device takes show nothing. */
	t->device.latency_ns = 6 * MS;
	t->device.amplification.has_cache = true;
	learn(t, WRITE, 60000, 8, SUTRO_PROBE_SPARE_NONE);
	KUNIT_EXPECT_EQ(test, t->device.latency_ns, 6 * MS);
}

/*
 * Two writes at once of the largest size, 1 MB in 7.4 ms: as a part of that, 16 KiB need 114 us.
 * That is the cost of a read of which four took 480 us, but not of one of which four took 400.
 */
static void sutro_test_bytes_of_few_large(struct kunit *test)
{
	struct result_test *t = result_test_new(test);
	unsigned int large = sutro_cost_class(SUTRO_WRITE, 262144);
	unsigned int read = sutro_cost_class(SUTRO_READ, 16384);

	learn(t, large, 1824000, 2, SUTRO_PROBE_SPARE_MOST);
	learn(t, read, 120000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, read, 114000);
	t = result_test_new(test);
	learn(t, large, 1824000, 2, SUTRO_PROBE_SPARE_MOST);
	learn(t, read, 100000, 4, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, read, 50000);
}

/* If the last doubling has gained little, the cost is known, and no longer a matter of bytes. */
static void sutro_test_nearly_enough(struct kunit *test)
{
	struct result_test *t = result_test_new(test);

	measured(t, LARGE, 256000);
	learn(t, SMALL, 68000, 64, 17);
	expect_cost(t, SMALL, 64000);
	KUNIT_EXPECT_FALSE(test, t->device.costs.bounded & BIT(SMALL));
}

/* Five requests cost a fifth less than four: ten might cost half as much. */
static void sutro_test_less_than_a_doubling(struct kunit *test)
{
	struct result_test *t = result_test_new(test);

	t->probe.depth = 8;
	t->probe.half_ns16 = 150000;
	KUNIT_EXPECT_EQ(test, sutro_probe_spare16(&t->probe, 120000, 5),
			SUTRO_PROBE_SPARE_MOST);
	/* Half of a doubling or more that gains as much: the next one gains an eighth. */
	KUNIT_EXPECT_EQ(test, sutro_probe_spare16(&t->probe, 120000, 6), 18);
	KUNIT_EXPECT_EQ(test, sutro_probe_spare16(&t->probe, 120000, 8), 18);
	KUNIT_EXPECT_EQ(test, sutro_probe_spare16(&t->probe, 150000, 8),
			SUTRO_PROBE_SPARE_NONE);
	/* No more than before: nothing is known. */
	KUNIT_EXPECT_EQ(test, sutro_probe_spare16(&t->probe, 120000, 4),
			SUTRO_PROBE_SPARE_MOST);
}

/* If it has halved the cost, the device could work on any number: it is a matter of bytes. */
static void sutro_test_far_from_enough(struct kunit *test)
{
	struct result_test *t = result_test_new(test);

	measured(t, LARGE, 256000);
	learn(t, SMALL, 68000, 8, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, SMALL, 16000);
	/* Windows of completions do not change that. */
	KUNIT_EXPECT_FALSE(test, t->device.costs.bounded & BIT(SMALL));
	/* It costs no more than it took. */
	learn(t, SMALL, 12000, 8, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, SMALL, 12000);
}

/* Bytes may be known later: a result with enough requests of a larger class changes others. */
static void sutro_test_bytes_later(struct kunit *test)
{
	struct result_test *t = result_test_new(test);

	learn(t, SMALL, 68000, 8, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, SMALL, 34000);
	KUNIT_EXPECT_TRUE(test, t->device.costs.bounded & BIT(SMALL));
	KUNIT_EXPECT_EQ(test, t->device.most_ns16[SMALL],
			68000ULL << SUTRO_NS16_SHIFT);
	learn(t, LARGE, 256000, 64, SUTRO_PROBE_SPARE_NONE);
	expect_cost(t, LARGE, 256000);
	expect_cost(t, SMALL, 16000);
	learn(t, LARGE, 512000, 64, SUTRO_PROBE_SPARE_NONE);
	learn(t, LARGE, 512000, 64, SUTRO_PROBE_SPARE_NONE);
	expect_cost(t, SMALL, 32000);
}

/*
 * The example of sutro-cost.c: four reads of 256 KiB saturate the bus, and are too few to
 * show that.  In either order they are charged by the bytes of 128 KiB reads.
 */
static void sutro_test_few_large(struct kunit *test)
{
	unsigned int known = sutro_cost_class(SUTRO_READ, 131072);
	unsigned int few = sutro_cost_class(SUTRO_READ, 262144);
	struct result_test *t = result_test_new(test);

	learn(t, few, 640000, 8, SUTRO_PROBE_SPARE_MOST);
	learn(t, known, 640000, 16, SUTRO_PROBE_SPARE_NONE);
	expect_cost(t, few, 1280000);
	learn(t, few, 640000, 8, SUTRO_PROBE_SPARE_MOST);
	expect_cost(t, few, 1280000);
	/* A probe with enough of them replaces the estimate. */
	measured(t, few, 1200000);
	expect_cost(t, few, 1200000);
}

/* Writes that become faster are cheaper after two results, as after garbage collection. */
static void sutro_test_faster_writes(struct kunit *test)
{
	struct result_test *t = result_test_new(test);
	int i;

	for (i = 0; i < 2 * SUTRO_PROBE_RESULTS; i++)
		learn_more(t, WRITE, 250000);
	learn_more(t, WRITE, 120000);
	/* It may be a moment in which a cache took them. */
	expect_cost(t, WRITE, 250000);
	KUNIT_EXPECT_TRUE(test, t->probe.of[WRITE].differs);
	learn_more(t, WRITE, 120000);
	expect_cost(t, WRITE, 120000);
	KUNIT_EXPECT_EQ(test, t->probe.of[WRITE].changed_ns, SEC);
	KUNIT_EXPECT_FALSE(test, t->probe.of[WRITE].differs);
	/* And back, over the end of the ring. */
	for (i = 0; i < SUTRO_PROBE_RESULTS; i++)
		learn_more(t, WRITE, 120000);
	learn_more(t, WRITE, 250000);
	learn_more(t, WRITE, 250000);
	expect_cost(t, WRITE, 250000);
}

/* Two results that differ from each other, and those of a cache, change nothing. */
static void sutro_test_no_change(struct kunit *test)
{
	struct result_test *t = result_test_new(test);
	int i;

	for (i = 0; i < SUTRO_PROBE_RESULTS; i++)
		learn_more(t, WRITE, 250000);
	learn_more(t, WRITE, 120000);
	learn_more(t, WRITE, 60000);
	expect_cost(t, WRITE, 250000);
	for (i = 0; i < SUTRO_PROBE_RESULTS; i++)
		learn_more(t, WRITE, 250000);
	t->device.amplification.has_cache = true;
	learn_more(t, WRITE, 120000);
	learn_more(t, WRITE, 120000);
	expect_cost(t, WRITE, 250000);
	/* Nor do reads of blocks that hold no data. */
	t->device.amplification.has_cache = false;
	for (i = 0; i < SUTRO_PROBE_RESULTS; i++)
		learn_more(t, SMALL, 80000);
	learn_more(t, SMALL, 20000);
	learn_more(t, SMALL, 20000);
	expect_cost(t, SMALL, 80000);
}

/* The driver takes one request of the class that is probed, and then the next one. */
static void serve_one(struct result_test *t, u64 *now_ns)
{
	struct sutro_sample sample = {
		.class = t->probe.class,
		.bytes = sutro_cost_class_bytes(t->probe.class),
		.start_ns = *now_ns,
		.caches = true,
	};

	sutro_probe_sent(&t->probe, t->probe.class);
	sutro_probe_step(&t->probe, &t->device, *now_ns);
	*now_ns += 20 * MS;
	sample.now_ns = *now_ns;
	sutro_cost_complete(&t->device, NULL, &sample);
}

/*
 * A probe of slow writes had too few of them, and the next one finds that other disks have all
 * tags but one: the result is one in flight, not none.
 */
static void sutro_test_one_tag(struct kunit *test)
{
	struct result_test *t = result_test_new(test);
	struct sutro_peer peers[2];
	u64 now_ns = SEC;
	int i;

	learn(t, LARGEST, 20 * MS, 4, SUTRO_PROBE_SPARE_MOST);
	t->probe.of[LARGEST].probes = 1;
	t->probe.of[LARGEST].next = 1;
	/* A class that is not due yet. */
	t->probe.of[SMALL].probes = 1;
	t->probe.of[SMALL].due_ns = 10 * SEC;
	for (i = 0; i < ARRAY_SIZE(peers); i++) {
		sutro_peer_init(&peers[i]);
		sutro_probe_join(&t->probe, &peers[i], i ? SMALL : LARGEST);
	}
	sutro_probe_step(&t->probe, &t->device, now_ns);
	KUNIT_EXPECT_TRUE(test, t->probe.active);
	KUNIT_EXPECT_EQ(test, t->probe.depth, 8);
	while (t->probe.active)
		serve_one(t, &now_ns);
	KUNIT_EXPECT_EQ(test, t->probe.of[LARGEST].depth, 1);
	KUNIT_EXPECT_FALSE(test, t->probe.of[LARGEST].unsaturated);
	expect_cost(t, LARGEST, 20 * MS);
}

static struct kunit_case sutro_result_cases[] = {
	KUNIT_CASE(sutro_test_write_like_read),
	KUNIT_CASE(sutro_test_keeps_cost_of_windows),
	KUNIT_CASE(sutro_test_drops_cost_of_windows),
	KUNIT_CASE(sutro_test_bounds_latency),
	KUNIT_CASE(sutro_test_bytes_of_few_large),
	KUNIT_CASE(sutro_test_nearly_enough),
	KUNIT_CASE(sutro_test_less_than_a_doubling),
	KUNIT_CASE(sutro_test_far_from_enough),
	KUNIT_CASE(sutro_test_bytes_later),
	KUNIT_CASE(sutro_test_few_large),
	KUNIT_CASE(sutro_test_faster_writes),
	KUNIT_CASE(sutro_test_no_change),
	KUNIT_CASE(sutro_test_one_tag),
	{}
};

sutro_suite(sutro_result, "the results of probes");
