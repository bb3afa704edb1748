// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of what requests cost (sutro-cost.c). */
#include <kunit/test.h>
#include <linux/module.h>

#include "../sutro-cost.h"

#define US 1000ULL
#define MS 1000000ULL

static struct sutro_device *device_new(struct kunit *test, bool rotational)
{
	struct sutro_device *device =
		kunit_kzalloc(test, sizeof(*device), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, device);
	sutro_device_init(device, rotational);
	return device;
}

static struct sutro_costs *costs_new(struct kunit *test)
{
	struct sutro_costs *costs =
		kunit_kzalloc(test, sizeof(*costs), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, costs);
	return costs;
}

/* Sizes up to a power of two, from 4 KiB, are a class; each direction for itself. */
static void sutro_test_size_classes(struct kunit *test)
{
	unsigned int first, i;
	int op;

	for (op = SUTRO_READ; op <= SUTRO_WRITE; op++) {
		first = sutro_cost_class(op, 0);
		KUNIT_EXPECT_EQ(test, sutro_cost_class(op, 4096), first);
		for (i = 0; i < SUTRO_SIZES - 1; i++) {
			KUNIT_EXPECT_EQ(test, sutro_cost_class(op, 4096U << i),
					first + i);
			KUNIT_EXPECT_EQ(test,
					sutro_cost_class(op, (4096U << i) + 1),
					first + i + 1);
		}
		KUNIT_EXPECT_EQ(test, sutro_cost_class(op, U32_MAX),
				first + SUTRO_SIZES - 1);
	}
	KUNIT_EXPECT_NE(test, sutro_cost_class(SUTRO_READ, 4096),
			sutro_cost_class(SUTRO_WRITE, 4096));
	KUNIT_EXPECT_EQ(test, sutro_cost_class(SUTRO_OTHER, 0),
			sutro_cost_class(SUTRO_OTHER, U32_MAX));
	KUNIT_EXPECT_LT(test, sutro_cost_class(SUTRO_OTHER, 0), SUTRO_CLASSES);
}

/* The example of sutro-cost.c: A and B sent at 0 ms, B is done first. */
static void sutro_test_gap(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_costs *costs = costs_new(test);
	struct sutro_sample b = { .start_ns = MS, .now_ns = 7 * MS };
	struct sutro_sample a = { .start_ns = MS, .now_ns = 11 * MS };

	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, costs, &b), 6 * MS);
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, costs, &a), 4 * MS);
	/* Told late, it costs nothing; the next one only what is left. */
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, costs, &b), 0);
	a.now_ns = 12 * MS;
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, costs, &a), MS);
	/* Nor does a pause cost anything. */
	a.start_ns = 500 * MS;
	a.now_ns = 503 * MS;
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, costs, &a), 3 * MS);
}

/* A drive that hangs for half a minute is nobody's fault. */
static void sutro_test_hang(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_costs *costs = costs_new(test);
	struct sutro_sample sample = { .start_ns = MS, .now_ns = 30000 * MS };

	KUNIT_EXPECT_LE(test, sutro_cost_complete(device, costs, &sample),
			1000 * MS);
}

/* A group is estimated by its own past, where the actuator's way is its own. */
static void sutro_test_own_estimate(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_costs *near = costs_new(test), *far = costs_new(test);
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_READ, 65536),
		.now_ns = MS,
	};
	u64 ns;
	int i;

	for (i = 0; i < 200; i++) {
		sample.start_ns = sample.now_ns;
		sample.now_ns += i % 2 ? 9 * MS : MS / 2;
		sutro_cost_complete(device, i % 2 ? far : near, &sample);
	}
	ns = sutro_cost_estimate(device, near, sample.class, 65536);
	KUNIT_EXPECT_GE(test, ns, MS / 2 - MS / 50);
	KUNIT_EXPECT_LE(test, ns, MS / 2 + MS / 50);
	ns = sutro_cost_estimate(device, far, sample.class, 65536);
	KUNIT_EXPECT_GE(test, ns, 9 * MS - MS / 50);
	KUNIT_EXPECT_LE(test, ns, 9 * MS + MS / 50);
}

/* When one class is known, larger ones are never thought cheaper. */
static void estimates_grow(struct kunit *test, unsigned int known, u64 known_ns)
{
	struct sutro_device *device = device_new(test, false);
	u64 ns, last_ns = 0;
	unsigned int i;

	device->costs.ns16[known] = known_ns << 4;
	for (i = 0; i < SUTRO_SIZES; i++) {
		ns = sutro_cost_class_ns(device, i);
		KUNIT_EXPECT_GE(test, ns, last_ns);
		last_ns = ns;
	}
	ns = sutro_cost_class_ns(device, known);
	KUNIT_EXPECT_EQ(test, ns, known_ns);
}

static void sutro_test_estimates_grow(struct kunit *test)
{
	static const u64 known_ns[] = { 1, 900, 80 * US, 3 * MS, 900 * MS };
	unsigned int i, known;

	for (i = 0; i < ARRAY_SIZE(known_ns); i++)
		for (known = 0; known < SUTRO_SIZES; known++)
			estimates_grow(test, known, known_ns[i]);
}

/* Flash: requests of one class, always several at once, one done after the other. */
static void feed(struct sutro_device *device, struct sutro_costs *none,
		 struct sutro_sample *sample, u64 each_ns, u32 nr)
{
	while (nr--) {
		sample->start_ns = sample->now_ns - 9 * each_ns;
		sample->now_ns += each_ns;
		sutro_cost_complete(device, none, sample);
	}
}

static void sutro_test_busy_device(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_WRITE, 16384),
		.now_ns = 1000 * MS,
	};
	u64 ns;

	feed(device, none, &sample, 50 * US, 5000);
	ns = sutro_cost_class_ns(device, sample.class);
	KUNIT_EXPECT_GE(test, ns, 49 * US);
	KUNIT_EXPECT_LE(test, ns, 51 * US);
	/* Its writes become five times slower. */
	feed(device, none, &sample, 250 * US, 2000);
	ns = sutro_cost_class_ns(device, sample.class);
	KUNIT_EXPECT_GE(test, ns, 245 * US);
	KUNIT_EXPECT_LE(test, ns, 255 * US);
}

/* A device that waits for its users says nothing about its speed. */
static void sutro_test_calm_device(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_READ, 4096),
		.now_ns = 1000 * MS,
	};
	u64 before_ns;
	int i;

	feed(device, none, &sample, 20 * US, 5000);
	before_ns = sutro_cost_class_ns(device, sample.class);
	device->unsaturated = true;
	for (i = 0; i < 1000; i++) {
		sample.start_ns = sample.now_ns + 400 * US;
		sample.now_ns += 500 * US;
		sutro_cost_complete(device, none, &sample);
		device->unsaturated = true;
	}
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, sample.class),
			before_ns);
}

/* Work in flight stays within bounds, whatever latencies were seen. */
static void sutro_test_depth_bounds(struct kunit *test)
{
	static const u64 latency_ns[] = { 1, US, 90 * US, 10 * MS, 5000 * MS };
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(latency_ns); i++) {
		struct sutro_device *device = device_new(test, false);
		struct sutro_costs *none = costs_new(test);
		struct sutro_sample sample = { .now_ns = 10000 * MS };

		sample.shallow = true;
		for (k = 0; k < 100; k++) {
			sample.start_ns = sample.now_ns;
			sample.now_ns += latency_ns[i];
			sutro_cost_complete(device, none, &sample);
		}
		KUNIT_EXPECT_GE(test, sutro_cost_depth_ns(device), MS / 4);
		KUNIT_EXPECT_LE(test, sutro_cost_depth_ns(device), 50 * MS);
	}
}

static struct kunit_case sutro_cost_test_cases[] = {
	KUNIT_CASE(sutro_test_size_classes),
	KUNIT_CASE(sutro_test_gap),
	KUNIT_CASE(sutro_test_hang),
	KUNIT_CASE(sutro_test_own_estimate),
	KUNIT_CASE(sutro_test_estimates_grow),
	KUNIT_CASE(sutro_test_busy_device),
	KUNIT_CASE(sutro_test_calm_device),
	KUNIT_CASE(sutro_test_depth_bounds),
	{}
};

static struct kunit_suite sutro_cost_test_suite = {
	.name = "sutro_cost",
	.test_cases = sutro_cost_test_cases,
};

kunit_test_suite(sutro_cost_test_suite);

MODULE_DESCRIPTION("KUnit tests of what requests cost");
MODULE_LICENSE("GPL");
