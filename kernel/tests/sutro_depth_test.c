// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the latency of a device, and of the work in flight for it (sutro-cost.c). */
#include "sutro_cost_test.h"

static void complete_after(struct sutro_device *device,
			   struct sutro_costs *none,
			   struct sutro_sample *sample, u64 took_ns)
{
	sample->start_ns = 1000 * MS;
	sample->now_ns = sample->start_ns + took_ns;
	sutro_cost_complete(device, none, sample);
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

/*
 * None until the latency is known.  The least depth is about a millisecond; with latencies of 10 ms
 * almost three times that.
 */
static void sutro_test_depth_follows(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = { .shallow = true, .now_ns = 1000 * MS };
	u64 least_ns;
	int i;

	KUNIT_EXPECT_EQ(test, sutro_cost_depth_ns(device), 0);
	for (i = 0; i < 400; i++) {
		if (i == 200)
			EXPECT_NEAR(test, sutro_cost_depth_ns(device),
				    275 * MS / 10, MS / 10);
		sample.start_ns = sample.now_ns;
		sample.now_ns += i < 200 ? 10 * MS : 100 * US;
		device->unsaturated = true;
		sutro_cost_complete(device, none, &sample);
	}
	least_ns = sutro_cost_depth_ns(device);
	KUNIT_EXPECT_GE(test, least_ns, MS / 2);
	KUNIT_EXPECT_LE(test, least_ns, 5 * MS);
}

/* A cache takes a write in 12 us, and the flash reads in 80 us: reads have to keep it busy. */
static void sutro_test_latency_of_cache(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample write = {
		.class = sutro_cost_class(SUTRO_WRITE, 4096),
		.bytes = 4096,
		.shallow = true,
		.caches = true,
	};
	struct sutro_sample read = {
		.class = sutro_cost_class(SUTRO_READ, 4096),
		.bytes = 4096,
		.shallow = true,
	};
	struct sutro_sample large = {
		.class = sutro_cost_class(SUTRO_READ, 512 << 10),
		.bytes = 512 << 10,
		.shallow = true,
	};
	u64 of_cache_ns;

	complete_after(device, none, &write, 12 * US);
	of_cache_ns = sutro_cost_latency_ns(device);
	KUNIT_EXPECT_GT(test, of_cache_ns, 0);
	KUNIT_EXPECT_LE(test, of_cache_ns, 12 * US);
	complete_after(device, none, &large, 15 * MS);
	KUNIT_EXPECT_EQ(test, sutro_cost_latency_ns(device), of_cache_ns);
	complete_after(device, none, &read, 80 * US);
	KUNIT_EXPECT_GE(test, sutro_cost_latency_ns(device), 40 * US);
	KUNIT_EXPECT_LE(test, sutro_cost_latency_ns(device), 80 * US);
	complete_after(device, none, &write, 12 * US);
	KUNIT_EXPECT_GE(test, sutro_cost_latency_ns(device), 40 * US);
}

/*
 * A large write of an unknown cost takes 40 ms, and most of that may be latency.  Among many
 * others, reads that are known to cost 0.6 ms show that it is less; those of unknown costs show
 * nothing.
 */
static void sutro_test_latency_among_others(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample write = {
		.class = sutro_cost_class(SUTRO_WRITE, 512 << 10),
		.bytes = 512 << 10,
		.shallow = true,
	};
	struct sutro_sample read = {
		.class = sutro_cost_class(SUTRO_READ, 32768),
		.bytes = 32768,
	};
	u64 unknown_ns;

	complete_after(device, none, &read, 5 * MS);
	KUNIT_EXPECT_EQ(test, sutro_cost_latency_ns(device), 0);
	complete_after(device, none, &write, 40 * MS);
	unknown_ns = sutro_cost_latency_ns(device);
	KUNIT_EXPECT_GE(test, unknown_ns, 20 * MS);
	complete_after(device, none, &read, 5 * MS);
	KUNIT_EXPECT_EQ(test, sutro_cost_latency_ns(device), unknown_ns);

	sutro_cost_measured(device, read.class, 600 * US << SUTRO_NS16_SHIFT,
			    0);
	complete_after(device, none, &read, 5 * MS);
	EXPECT_NEAR(test, sutro_cost_latency_ns(device),
		    5 * MS - 600 * US * 7 / 8, 2 * US);
	/* One that takes longer has waited for others. */
	complete_after(device, none, &read, 30 * MS);
	EXPECT_NEAR(test, sutro_cost_latency_ns(device),
		    5 * MS - 600 * US * 7 / 8, 2 * US);
}

static struct kunit_case sutro_depth_cases[] = {
	KUNIT_CASE(sutro_test_depth_bounds),
	KUNIT_CASE(sutro_test_depth_follows),
	KUNIT_CASE(sutro_test_latency_of_cache),
	KUNIT_CASE(sutro_test_latency_among_others),
	{}
};

sutro_suite(sutro_depth, "the latency of a device");
