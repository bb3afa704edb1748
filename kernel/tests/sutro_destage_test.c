// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the charges of writes into the cache of a drive (sutro-destage.c). */
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

static u64 reads(struct drive *d, struct sutro_costs *group, bool seeks,
		 u64 took_ns)
{
	struct sutro_sample sample = { .bytes = 4096, .seeks = seeks };

	return complete_one(d, group, sample, took_ns);
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

/* A read that is reported after a later write has not waited for a cache that rests. */
static void sutro_test_destage_out_of_order(struct kunit *test)
{
	struct drive *d = drive_new(test);

	writes(d, &d->a, MIB, 15 * MS);
	KUNIT_ASSERT_EQ(test, d->device.destage.backlog_ns, 0);
	d->now_ns -= 10 * MS;
	KUNIT_EXPECT_EQ(test, reads(d, &d->b, true, 10 * MS - 200), 0);
	/* It does not show how long a seek takes. */
	KUNIT_EXPECT_EQ(test, d->device.destage.other_seek_ns, 0);
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
	d->now_ns += 1000 * MS;
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
	for (i = 0; i < 5; i++)
		charged_ns += writes(d, &d->a, MIB, 2 * MS);
	EXPECT_NEAR(test, charged_ns,
		    16 * 2 * MS + 58 * MS + SEEK_NS + 6 * MIB_NS, MS);
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
		charged_ns += reads(d, &d->a, true, 10 * MS);
	EXPECT_NEAR(test, charged_ns, 100 * MS, 5 * MS);
}

/* A read does not pay for data that the drive destages before it. */
static void sutro_test_destage_read(struct kunit *test)
{
	struct drive *d = drive_new(test);

	KUNIT_EXPECT_EQ(test, reads(d, &d->b, true, 10 * MS), 10 * MS);
	writes(d, &d->a, MIB, 2 * MS);
	KUNIT_EXPECT_EQ(test, reads(d, &d->b, true, 20 * MS), 10 * MS);
	/* The backlog is less than that. */
	writes(d, &d->a, MIB, 2 * MS);
	KUNIT_EXPECT_EQ(test, reads(d, &d->b, true, 500 * MS),
			32 * MS + PAGE_NS);
	/* Nothing is in the cache any more. */
	d->now_ns += 1000 * MS;
	KUNIT_EXPECT_EQ(test, reads(d, &d->b, true, 500 * MS), 500 * MS);
}

/*
 * A drive on which each request of 4 KiB takes 10 ms: the next of a's, which the cache takes, or
 * of b's, before which the drive destages one.
 */
struct seeks {
	struct drive *d;
	u32 dirty;
	u64 used_a_ns, charged_a_ns, charged_b_ns;
	u32 nr_b;
};

static void seeks_write(struct seeks *s, u64 took_ns)
{
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_WRITE, 4096),
		.bytes = 4096,
		.caches = true,
		.seeks = true,
	};

	s->dirty++;
	s->used_a_ns += 10 * MS;
	s->charged_a_ns += complete_one(s->d, &s->d->a, sample, took_ns);
}

/* The time differs by up to 5 ms. */
static void seeks_read(struct seeks *s, u64 *state)
{
	u64 took_ns = 5 * MS + random_below(state, 10 * MS);
	struct sutro_sample sample = { .bytes = 4096, .seeks = true };

	if (s->dirty) {
		s->dirty--;
		took_ns += 10 * MS;
	}
	s->nr_b++;
	/* The drive begins in this pause. */
	s->d->now_ns += 1000;
	s->charged_b_ns += complete_one(s->d, &s->d->b, sample, took_ns);
}

/* As many writes as reads; or only now and then one. */
static void seeks_check(struct kunit *test, u32 reads)
{
	struct seeks s = { .d = drive_new(test) };
	u64 state = 1;
	int i, j;

	for (i = 0; i < 6000; i++) {
		if (i == 3000)
			s = (struct seeks){ .d = s.d, .dirty = s.dirty };
		seeks_write(&s, 10000);
		for (j = 0; j < reads; j++)
			seeks_read(&s, &state);
	}
	EXPECT_NEAR(test, s.charged_a_ns, s.used_a_ns, s.used_a_ns / 4);
	EXPECT_NEAR(test, s.charged_b_ns, s.nr_b * 10 * MS,
		    s.nr_b * 10 * MS / 20);
}

/* Each pays for its own requests, although neither cost is known. */
static void sutro_test_destage_shares(struct kunit *test)
{
	seeks_check(test, 1);
	seeks_check(test, 3);
	seeks_check(test, 10);
}

/* Flushes, or writes that wait for room, show what a write takes. */
static void sutro_test_destage_marks(struct kunit *test)
{
	struct seeks s = { .d = drive_new(test) };
	int i;

	for (i = 0; i < 1000; i++)
		seeks_write(&s, 10000);
	for (i = 0; i < 1000; i++)
		seeks_write(&s, 10 * MS);
	s.charged_a_ns = 0;
	seeks_write(&s, 10 * MS);
	EXPECT_NEAR(test, s.charged_a_ns, 10 * MS, MS);

	s.d = drive_new(test);
	for (i = 0; i < 100; i++) {
		s.charged_a_ns = 0;
		seeks_write(&s, 10000);
		flushes(s.d, 10 * MS);
	}
	EXPECT_NEAR(test, s.charged_a_ns, 10 * MS, MS);
}

/* The time of a seek falls if nothing confirms it: the drive destages without being seen. */
static void sutro_test_destage_falls(struct kunit *test)
{
	struct seeks s = { .d = drive_new(test) };
	u64 state = 1;
	int i;

	for (i = 0; i < 100; i++) {
		s.charged_a_ns = 0;
		seeks_write(&s, 10000);
		flushes(s.d, 10 * MS);
	}
	for (i = 0; i < 10000; i++) {
		s.charged_a_ns = 0;
		seeks_write(&s, 10000);
		s.dirty = 0;
		seeks_read(&s, &state);
	}
	KUNIT_EXPECT_LT(test, s.charged_a_ns, 5 * MS);
}

/* A disk of a virtual machine is as fast for writes as it is for reads. */
static void sutro_test_destage_fast(struct kunit *test)
{
	struct seeks s = { .d = drive_new(test) };
	struct sutro_sample stream = { .bytes = MIB };
	int i;

	for (i = 0; i < 200; i++) {
		reads(s.d, &s.d->b, true, MS / 5);
		complete_one(s.d, &s.d->a, stream, MS);
	}
	seeks_write(&s, 10000);
	EXPECT_NEAR(test, s.charged_a_ns, MS / 5, MS / 50);
	EXPECT_NEAR(test, writes(s.d, &s.d->b, MIB, MS / 10),
		    MS / 5 + MS * 5 / 4, MS / 10);
}

/* Write zeroes take no time, and show nothing. */
static void sutro_test_destage_zeroes(struct kunit *test)
{
	struct drive *d = drive_new(test);
	struct sutro_sample zeroes = {
		.class = sutro_cost_class(SUTRO_OTHER, MIB),
		.bytes = MIB,
	};
	int i;

	for (i = 0; i < 200; i++)
		complete_one(d, &d->a, zeroes, 1000);
	KUNIT_EXPECT_EQ(test, writes(d, &d->a, MIB, 2 * MS), SEEK_NS + MIB_NS);
}

/* A stream that is read by one request at a time seeks after a destage, and pays for that. */
static void sutro_test_destage_stream(struct kunit *test)
{
	struct drive *d = drive_new(test);
	u64 charged_ns;
	int i;

	for (i = 0; i < 100; i++)
		reads(d, &d->b, false, MS / 2);
	for (i = 0; i < 8; i++)
		writes(d, &d->a, MIB, 2 * MS);
	for (i = 0; i < 4; i++) {
		charged_ns = reads(d, &d->b, false,
				   4 * MS + MIB_NS + 4 * MS + MS / 2);
		EXPECT_NEAR(test, charged_ns, SEEK_NS + MS / 2, MS / 2);
		EXPECT_NEAR(test, reads(d, &d->b, false, MS / 2), MS / 2,
			    MS / 10);
	}
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

static struct kunit_case sutro_destage_cases[] = {
	KUNIT_CASE(sutro_test_destage_write),
	KUNIT_CASE(sutro_test_destage_out_of_order),
	KUNIT_CASE(sutro_test_destage_seeks),
	KUNIT_CASE(sutro_test_destage_flush),
	KUNIT_CASE(sutro_test_destage_credit),
	KUNIT_CASE(sutro_test_destage_shared_flush),
	KUNIT_CASE(sutro_test_destage_hoard),
	KUNIT_CASE(sutro_test_destage_read),
	KUNIT_CASE(sutro_test_destage_shares),
	KUNIT_CASE(sutro_test_destage_marks),
	KUNIT_CASE(sutro_test_destage_falls),
	KUNIT_CASE(sutro_test_destage_fast),
	KUNIT_CASE(sutro_test_destage_zeroes),
	KUNIT_CASE(sutro_test_destage_stream),
	KUNIT_CASE(sutro_test_destage_old),
	KUNIT_CASE(sutro_test_destage_sum),
	{}
};

sutro_suite(sutro_destage, "the charge for destaging");
