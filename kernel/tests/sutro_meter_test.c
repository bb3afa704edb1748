// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of timed completions (sutro-meter.c).
 */
#include "../sutro-cost.h"
#include "sutro_suite.h"

#define MS 1000000ULL
#define SEC (1000 * MS)

#define A sutro_cost_class(SUTRO_READ, 4096)
/* Of the size of A. */
#define M sutro_cost_class(SUTRO_WRITE, 4096)

static struct sutro_device *device_new(struct kunit *test)
{
	struct sutro_device *device =
		kunit_kzalloc(test, sizeof(*device), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, device);
	return device;
}

/* One request each 1.1 ms, which takes 0.1 ms: the device was idle for most of the time. */
static void sutro_test_idle_device(struct kunit *test)
{
	struct sutro_sample sample = {
		.class = A,
		.bytes = 4096,
		.now_ns = SEC,
	};
	struct sutro_device device = {};

	device.meter = (struct sutro_meter){
		.armed = true,
		.class = A,
		.skip = 1,
		.enough = 8,
		.few = 8,
		.round = 8,
	};
	while (!device.meter.done) {
		sample.start_ns = sample.now_ns + MS;
		sample.now_ns = sample.start_ns + MS / 10;
		sutro_meter_complete(&device.meter, &sample, 0);
	}
	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(&device),
			MS / 10 << SUTRO_NS16_SHIFT);
}

/* Nearly two requests at the device are enough of two, and nearly three are not of four. */
static void sutro_test_mean_depth(struct kunit *test)
{
	struct sutro_device *device = device_new(test);

	device->meter.start_ns = SEC;
	device->meter.last_ns = SEC + 100 * MS;
	device->meter.took_ns = 190 * MS;
	KUNIT_EXPECT_TRUE(test, sutro_meter_fills(device, 2));
	device->meter.took_ns = 290 * MS;
	KUNIT_EXPECT_FALSE(test, sutro_meter_fills(device, 4));
	device->meter.took_ns = 300 * MS;
	KUNIT_EXPECT_TRUE(test, sutro_meter_fills(device, 4));
}

/*
 * A device that works on all that it has completes them together: 8 writes each 6.4 ms.  The
 * meter ends between two such batches, not within one.
 */
static void sutro_test_batches(struct kunit *test)
{
	struct sutro_sample sample = { .class = A, .bytes = 4096 };
	struct sutro_device *device = device_new(test);
	unsigned int nr;

	device->meter = (struct sutro_meter){
		.armed = true,
		.class = A,
		.skip = 8,
		.enough = 256,
		.few = 8,
		.round = 8,
		.long_ns = 10 * MS,
	};
	for (nr = 0; nr < 64 && !device->meter.done; nr++) {
		sample.start_ns = SEC + nr / 8 * (6400 * 1000ULL);
		sample.now_ns = sample.start_ns + 6400 * 1000ULL;
		sutro_meter_complete(&device->meter, &sample, 0);
	}
	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(device) >> SUTRO_NS16_SHIFT,
			800 * 1000);
	KUNIT_EXPECT_EQ(test, sutro_meter_depth(device), 8);
}

/* Two writes at the device, each @each_ns after the one before: how long does the meter take? */
static u64 slow_ns(struct kunit *test, u64 each_ns, u64 long_ns)
{
	struct sutro_sample sample = { .class = A, .bytes = 4096 };
	struct sutro_device *device = device_new(test);
	unsigned int nr;

	device->meter = (struct sutro_meter){
		.armed = true,
		.class = A,
		.skip = 2,
		.enough = 256,
		.few = 8,
		.round = 2,
		.long_ns = long_ns,
		.last_ns = SEC,
	};
	for (nr = 1; !device->meter.done; nr++) {
		sample.now_ns = SEC + nr * each_ns;
		sample.start_ns = sample.now_ns - 2 * each_ns;
		sutro_meter_complete(&device->meter, &sample, 0);
	}
	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(device) >> SUTRO_NS16_SHIFT,
			each_ns);
	return sample.now_ns - SEC;
}

/* Others wait for the meter: one of these passes and two are counted, whatever the latency is. */
static void sutro_test_slow_requests(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, slow_ns(test, 85 * MS, 10 * MS), 3 * 85 * MS);
	KUNIT_EXPECT_EQ(test, slow_ns(test, 85 * MS, 60 * MS), 3 * 85 * MS);
	KUNIT_EXPECT_EQ(test, slow_ns(test, 31 * MS, 10 * MS), 6 * 31 * MS);
	KUNIT_EXPECT_EQ(test, slow_ns(test, 20 * MS, 60 * MS), 8 * 20 * MS);
}

/* The first write has waited for other requests: as many pass as of any others. */
static void sutro_test_slow_first_request(struct kunit *test)
{
	struct sutro_sample sample = { .class = A, .bytes = 4096 };
	struct sutro_device *device = device_new(test);
	unsigned int nr;

	device->meter = (struct sutro_meter){
		.armed = true,
		.class = A,
		.skip = 4,
		.enough = 8,
		.few = 8,
		.round = 4,
		.long_ns = 10 * MS,
		.last_ns = SEC,
	};
	for (nr = 0; !device->meter.done; nr++) {
		/* A bus has collected the next two. */
		sample.now_ns = SEC + 90 * MS + (nr < 3 ? 0 : nr - 2) * MS;
		sample.start_ns = sample.now_ns - 4 * MS;
		sutro_meter_complete(&device->meter, &sample, 0);
	}
	KUNIT_EXPECT_EQ(test, nr, 4 + 8);
	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(device) >> SUTRO_NS16_SHIFT, MS);
	KUNIT_EXPECT_FALSE(test, sutro_meter_is_slow(device));
}

/*
 * Two CPUs may report completions in another order than that of their times.  One each 10 us, of
 * which the second that counts has its time before the last one that does not.
 */
static void sutro_test_completions_out_of_order(struct kunit *test)
{
	struct sutro_device *device = device_new(test);
	unsigned int nr;

	device->probing = true;
	device->meter = (struct sutro_meter){
		.armed = true,
		.class = A,
		.skip = 4,
		.enough = 256,
		.few = 8,
		.round = 2,
		.long_ns = 10 * MS,
	};
	for (nr = 0; nr < 4 + 256; nr++) {
		struct sutro_sample sample = {
			.class = A,
			.bytes = 4096,
			.now_ns = SEC + nr * (MS / 100),
		};

		if (nr == 5)
			sample.now_ns = device->meter.start_ns - 200;
		sample.start_ns = sample.now_ns - MS / 50;
		sutro_cost_complete(device, NULL, &sample);
	}
	KUNIT_EXPECT_EQ(test, device->meter.nr, 256);
	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(device) >> SUTRO_NS16_SHIFT,
			MS / 100);
}

/* 20 reads of 0.1 ms and 12 writes of 0.4 ms, one after the other. */
static struct sutro_device *pairs_new(struct kunit *test, bool mate_is_known)
{
	struct sutro_sample sample = { .bytes = 4096, .now_ns = SEC };
	struct sutro_device *device = device_new(test);
	unsigned int nr;

	sutro_cost_measured(device, M, 400000 << SUTRO_NS16_SHIFT, 0);
	device->meter = (struct sutro_meter){
		.armed = true,
		.mixed = true,
		.mate_is_known = mate_is_known,
		.class = A,
		.enough = 32,
		.few = 32,
		.round = 32,
		.start_ns = SEC,
	};
	for (nr = 0; nr < 32; nr++) {
		sample.class = nr % 8 < 5 ? A : M;
		sample.start_ns = sample.now_ns;
		sample.now_ns += sample.class == A ? 100000 : 400000;
		sutro_meter_complete(&device->meter, &sample, 0);
	}
	KUNIT_EXPECT_TRUE(test, device->meter.done);
	return device;
}

/* Where the cost of the writes is known, the rest is that of the reads. */
static void sutro_test_pairs(struct kunit *test)
{
	struct sutro_device *device = pairs_new(test, true);

	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(device) >> SUTRO_NS16_SHIFT,
			100000);
	device = pairs_new(test, false);
	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(device) >> SUTRO_NS16_SHIFT,
			212500);
}

/* Nothing is left for the reads: an old cost of the writes is too high by now. */
static void sutro_test_no_rest(struct kunit *test)
{
	struct sutro_device *device = pairs_new(test, true);

	sutro_cost_measured(device, M, 600000 << SUTRO_NS16_SHIFT, 0);
	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(device), 0);
}

/* With less than a quarter of the requests, a class is not measured, nor is the cost its mate's. */
static void sutro_test_quarter(struct kunit *test)
{
	struct sutro_device *device = pairs_new(test, false);

	KUNIT_EXPECT_TRUE(test, sutro_meter_is_pair(device));
	device->meter.mate_units = 10 * SUTRO_UNIT;
	device->meter.units = 30 * SUTRO_UNIT;
	KUNIT_EXPECT_TRUE(test, sutro_meter_is_pair(device));
	device->meter.units = 31 * SUTRO_UNIT;
	KUNIT_EXPECT_FALSE(test, sutro_meter_is_pair(device));
	KUNIT_EXPECT_NE(test, sutro_meter_ns16(device), 0);
	device->meter.units = 3 * SUTRO_UNIT;
	KUNIT_EXPECT_EQ(test, sutro_meter_ns16(device), 0);
}

static struct kunit_case sutro_meter_cases[] = {
	KUNIT_CASE(sutro_test_idle_device),
	KUNIT_CASE(sutro_test_mean_depth),
	KUNIT_CASE(sutro_test_batches),
	KUNIT_CASE(sutro_test_slow_requests),
	KUNIT_CASE(sutro_test_slow_first_request),
	KUNIT_CASE(sutro_test_completions_out_of_order),
	KUNIT_CASE(sutro_test_pairs),
	KUNIT_CASE(sutro_test_no_rest),
	KUNIT_CASE(sutro_test_quarter),
	{}
};

sutro_suite(sutro_meter, "timed completions");
