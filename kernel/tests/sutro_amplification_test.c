// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of writes that cost more than the table has (sutro-amplification.c). */
#include "sutro_cost_test.h"

#define SEC (1000 * MS)
#define READ_BYTES 65536
#define WRITE_BYTES 4096
#define READ sutro_cost_class(SUTRO_READ, READ_BYTES)
#define WRITE sutro_cost_class(SUTRO_WRITE, WRITE_BYTES)

/* A device whose reads take 2 ms and whose writes 0.1 ms, as probes have found. */
static struct sutro_device *probed_new(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);

	sutro_cost_measured(device, READ, 2 * MS << SUTRO_NS16_SHIFT, 0);
	sutro_cost_measured(device, WRITE, MS / 10 << SUTRO_NS16_SHIFT, 0);
	return device;
}

static void complete_one(struct sutro_device *device, unsigned int class,
			 u32 bytes, bool caches, u64 now_ns)
{
	struct sutro_sample sample = {
		.class = class,
		.bytes = bytes,
		.caches = caches,
		.start_ns = now_ns - 50 * MS,
		.now_ns = now_ns,
	};

	sutro_cost_complete(device, NULL, &sample);
}

/* The device is busy for @ns; a read and four writes complete every @took_ns. */
static void work_by(struct sutro_device *device, bool caches, u64 *now_ns,
		    u64 ns, u64 took_ns)
{
	u64 end_ns = *now_ns + ns;
	int i;

	while (*now_ns < end_ns) {
		*now_ns += took_ns;
		complete_one(device, READ, READ_BYTES, false, *now_ns);
		for (i = 0; i < 4; i++)
			complete_one(device, WRITE, WRITE_BYTES, caches,
				     *now_ns);
	}
}

static void work(struct sutro_device *device, u64 *now_ns, u64 ns, u64 took_ns)
{
	work_by(device, true, now_ns, ns, took_ns);
}

static u64 write_ns(const struct sutro_device *device)
{
	return sutro_cost_estimate(device, NULL, WRITE, WRITE_BYTES);
}

/* Reads are charged what they cost, and writes the rest; later no more than the table has. */
static void sutro_test_missing_time(struct kunit *test)
{
	struct sutro_device *device = probed_new(test);
	u64 now_ns = SEC;

	work(device, &now_ns, 2 * SEC, 10 * MS);
	KUNIT_EXPECT_GE(test, write_ns(device), 19 * MS / 10);
	KUNIT_EXPECT_LE(test, write_ns(device), 21 * MS / 10);
	KUNIT_EXPECT_EQ(test,
			sutro_cost_estimate(device, NULL, READ, READ_BYTES),
			2 * MS);
	work(device, &now_ns, 3 * SEC, 24 * MS / 10);
	KUNIT_EXPECT_EQ(test, write_ns(device), MS / 10);
}

/* A table is never exact: a third of the time without a charge changes nothing. */
static void sutro_test_small_difference(struct kunit *test)
{
	struct sutro_device *device = probed_new(test);
	u64 now_ns = SEC;

	work(device, &now_ns, 2 * SEC, 27 * MS / 10);
	KUNIT_EXPECT_EQ(test, write_ns(device), MS / 10);
}

/* Without a cache, a write is done when it completes: the time was lost by something else. */
static void sutro_test_no_cache(struct kunit *test)
{
	struct sutro_device *device = probed_new(test);
	u64 now_ns = SEC;

	work_by(device, false, &now_ns, 2 * SEC, 10 * MS);
	KUNIT_EXPECT_EQ(test, write_ns(device), MS / 10);
}

/* Without writes, no charge changes. */
static void sutro_test_reads_alone(struct kunit *test)
{
	struct sutro_device *device = probed_new(test);
	u64 now_ns = SEC;

	while (now_ns < 3 * SEC) {
		now_ns += 20 * MS;
		complete_one(device, READ, READ_BYTES, false, now_ns);
	}
	KUNIT_EXPECT_EQ(test, write_ns(device), MS / 10);
	KUNIT_EXPECT_EQ(test,
			sutro_cost_estimate(device, NULL, READ, READ_BYTES),
			2 * MS);
}

static struct kunit_case sutro_amplification_cases[] = {
	KUNIT_CASE(sutro_test_missing_time),
	KUNIT_CASE(sutro_test_small_difference),
	KUNIT_CASE(sutro_test_no_cache),
	KUNIT_CASE(sutro_test_reads_alone),
	{}
};

sutro_suite(sutro_amplification, "writes that cost more than the table has");
