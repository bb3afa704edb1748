// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the charges of writes into the cache of a drive (sutro-destage.c). */
#include <linux/module.h>

#include "../sutro-cost.h"
#include "sutro_test.h"

#define MIB (1024U * 1024)
#define SEEK_NS (4 * MS)
#define MIB_NS (8ULL * MIB)
#define PAGE_NS (8ULL * 4096)

/* A drive and two groups, which have one request at a time. */
struct drive {
	struct kunit *test;
	struct sutro_device device;
	struct sutro_costs a, b;
	u64 now_ns;
};

static struct drive *drive_new(struct kunit *test)
{
	struct drive *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, d);
	d->test = test;
	d->now_ns = 10000 * MS;
	sutro_device_init(&d->device, true);
	return d;
}

static u64 complete_one(struct drive *d, struct sutro_costs *group,
			struct sutro_sample sample, u64 took_ns)
{
	sample.start_ns = d->now_ns;
	d->now_ns += took_ns;
	sample.now_ns = d->now_ns;
	return sutro_cost_complete(&d->device, group, &sample);
}

/* A write of @bytes completes after @took_ns: what is it charged? */
static u64 writes(struct drive *d, struct sutro_costs *group, u32 bytes,
		  u64 took_ns)
{
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_WRITE, bytes),
		.bytes = bytes,
		.caches = true,
	};

	return complete_one(d, group, sample, took_ns);
}

static u64 reads(struct drive *d, struct sutro_costs *group, u64 took_ns)
{
	return complete_one(d, group, (struct sutro_sample){ .bytes = 4096 },
			    took_ns);
}

static u64 flushes(struct drive *d, u64 took_ns)
{
	u64 start_ns = d->now_ns;

	d->now_ns += took_ns;
	sutro_cost_flush_begin(&d->device);
	return sutro_cost_flush(&d->device, start_ns, d->now_ns);
}

/* A write that the cache takes is charged what the medium needs, with one seek. */
static void sutro_test_destage_write(struct kunit *test)
{
	struct drive *d = drive_new(test);

	KUNIT_EXPECT_EQ(test, writes(d, &d->a, MIB, 2 * MS), SEEK_NS + MIB_NS);
	KUNIT_EXPECT_EQ(test, writes(d, &d->a, MIB, 2 * MS), MIB_NS);
	KUNIT_EXPECT_EQ(test, writes(d, &d->a, 4096, 10000), PAGE_NS);
	/* The cache is full: this is the time of a destage. */
	KUNIT_EXPECT_EQ(test, writes(d, &d->a, MIB, 7 * MS), 7 * MS);
	/* The first one of another group. */
	KUNIT_EXPECT_EQ(test, writes(d, &d->b, 4096, 10000), SEEK_NS + PAGE_NS);
}

/* A group that seeks does so for each write, and is expected to do it again. */
static void sutro_test_destage_seeks(struct kunit *test)
{
	struct drive *d = drive_new(test);
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_WRITE, 4096),
		.bytes = 4096,
		.caches = true,
		.seeks = true,
	};
	int i;

	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, complete_one(d, &d->a, sample, 10000),
				SEEK_NS + PAGE_NS);
	KUNIT_EXPECT_EQ(test,
			sutro_cost_estimate(&d->device, &d->a, sample.class,
					    sample.bytes),
			SEEK_NS + PAGE_NS);
	/* It goes past the cache, or there is none. */
	sample.caches = false;
	KUNIT_EXPECT_EQ(test, complete_one(d, &d->a, sample, 10000), 10000);
}

/* The example of sutro-destage.c: a flush writes the data of others, too. */
static void sutro_test_destage_flush(struct kunit *test)
{
	struct drive *d = drive_new(test);
	u64 charged_ns = 0, start_ns = d->now_ns;
	int i;

	for (i = 0; i < 16; i++)
		charged_ns += writes(d, &d->a, MIB, 15 * MS / 8);
	EXPECT_NEAR(test, charged_ns, 138 * MS, MS);
	charged_ns += writes(d, &d->b, 4096, 10000);
	KUNIT_EXPECT_EQ(test, flushes(d, 120 * MS) + charged_ns,
			d->now_ns - start_ns);
	/* Nothing is left for the next flush. */
	KUNIT_EXPECT_EQ(test, flushes(d, 5 * MS), 5 * MS);
}

/* Each group has its part of the overcharge as a credit for its next requests. */
static void sutro_test_destage_credit(struct kunit *test)
{
	struct drive *d = drive_new(test);
	u64 charged_ns = 0;
	int i;

	for (i = 0; i < 16; i++)
		charged_ns += writes(d, &d->a, MIB, 2 * MS);
	writes(d, &d->b, 4096, 10000);
	KUNIT_EXPECT_EQ(test, flushes(d, 60 * MS), 0);
	/* b has used 4 of 110 ms, and the flush took 60. */
	EXPECT_NEAR(test, writes(d, &d->b, 4096, 10000),
		    SEEK_NS + PAGE_NS - 4 * MS * 50 / 110, MS / 10);
	KUNIT_EXPECT_EQ(test, writes(d, &d->b, 4096, 10000), PAGE_NS);
	/* a has 48 ms, in microseconds, of which 12.4 pay for the first write. */
	KUNIT_EXPECT_LT(test, writes(d, &d->a, MIB, 2 * MS), 1000);
	KUNIT_EXPECT_EQ(test, reads(d, &d->a, 9 * MS), 0);
	for (i = 0; i < 5; i++)
		charged_ns += writes(d, &d->a, MIB, 2 * MS);
	EXPECT_NEAR(test, charged_ns,
		    16 * 2 * MS + 58 * MS + 9 * MS + SEEK_NS + 6 * MIB_NS, MS);
}

/* Of two requests that share a flush, the first to complete pays for it. */
static void sutro_test_destage_shared_flush(struct kunit *test)
{
	struct drive *d = drive_new(test);

	writes(d, &d->a, 4096, 10000);
	sutro_cost_flush_begin(&d->device);
	sutro_cost_flush_begin(&d->device);
	d->now_ns += 10 * MS;
	EXPECT_NEAR(test,
		    sutro_cost_flush(&d->device, d->now_ns - 10 * MS,
				     d->now_ns),
		    3 * MS, MS / 10);
	EXPECT_NEAR(test,
		    sutro_cost_flush(&d->device, d->now_ns - 10 * MS,
				     d->now_ns + 1000),
		    3 * MS, MS / 10);
}

/* A block that is written a thousand times is destaged once: it earns no large credit. */
static void sutro_test_destage_hoard(struct kunit *test)
{
	struct drive *d = drive_new(test);
	u64 charged_ns = 0;
	int i;

	for (i = 0; i < 20000; i++)
		writes(d, &d->a, 4096, 10000);
	KUNIT_EXPECT_EQ(test, flushes(d, MS), 0);
	writes(d, &d->a, 4096, 10000);
	for (i = 0; i < 20; i++)
		charged_ns += reads(d, &d->a, 10 * MS);
	EXPECT_NEAR(test, charged_ns, 100 * MS, 5 * MS);
}

/* A read does not pay for data that the drive destages before it. */
static void sutro_test_destage_read(struct kunit *test)
{
	struct drive *d = drive_new(test);

	KUNIT_EXPECT_EQ(test, reads(d, &d->b, 500 * MS), 500 * MS);
	writes(d, &d->a, MIB, 2 * MS);
	KUNIT_EXPECT_EQ(test, reads(d, &d->b, 20 * MS), 20 * MS);
	KUNIT_EXPECT_EQ(test, reads(d, &d->b, 500 * MS), 32 * MS + PAGE_NS);
	/* Nothing is in the cache any more. */
	flushes(d, 10 * MS);
	KUNIT_EXPECT_EQ(test, reads(d, &d->b, 500 * MS), 500 * MS);
}

/* A flush is no measure of data that were destaged long ago: there are no credits for them. */
static void sutro_test_destage_old(struct kunit *test)
{
	struct drive *d = drive_new(test);
	int i;

	for (i = 0; i < 100; i++) {
		writes(d, &d->a, MIB, 2 * MS);
		d->now_ns += 8 * MS;
	}
	d->now_ns += 1000 * MS;
	writes(d, &d->b, 4096, 10000);
	KUNIT_EXPECT_EQ(test, flushes(d, MS), 0);
	KUNIT_EXPECT_EQ(test, writes(d, &d->a, MIB, 2 * MS), SEEK_NS + MIB_NS);
}

/*
 * With any writes and flushes, all of the time is charged, and hardly more: a group
 * that does nothing between two flushes loses its credit.
 */
static void sutro_test_destage_sum(struct kunit *test)
{
	struct drive *d = drive_new(test);
	u64 state = 1, charged_ns = 0, start_ns = d->now_ns, cost_ns;
	struct sutro_costs *group;
	int i;

	for (i = 0; i < 10000; i++) {
		group = random_below(&state, 2) ? &d->a : &d->b;
		if (!random_below(&state, 8))
			cost_ns = flushes(d, random_below(&state, 40) * MS);
		else
			cost_ns = writes(d, group,
					 4096 << random_below(&state, 9),
					 random_below(&state, 9) * MS / 8);
		KUNIT_EXPECT_LE(test, cost_ns, SEEK_NS + 40 * MS);
		charged_ns += cost_ns;
	}
	KUNIT_EXPECT_GE(test, charged_ns, d->now_ns - start_ns);
	KUNIT_EXPECT_LE(test, charged_ns, (d->now_ns - start_ns) * 21 / 20);
}

static struct kunit_case sutro_destage_test_cases[] = {
	KUNIT_CASE(sutro_test_destage_write),
	KUNIT_CASE(sutro_test_destage_seeks),
	KUNIT_CASE(sutro_test_destage_flush),
	KUNIT_CASE(sutro_test_destage_credit),
	KUNIT_CASE(sutro_test_destage_shared_flush),
	KUNIT_CASE(sutro_test_destage_hoard),
	KUNIT_CASE(sutro_test_destage_read),
	KUNIT_CASE(sutro_test_destage_old),
	KUNIT_CASE(sutro_test_destage_sum),
	{}
};

static struct kunit_suite sutro_destage_test_suite = {
	.name = "sutro_destage",
	.test_cases = sutro_destage_test_cases,
};

kunit_test_suite(sutro_destage_test_suite);

MODULE_DESCRIPTION("KUnit tests of the charge for destaging");
MODULE_LICENSE("GPL");
