// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the cost of requests (sutro-cost.c). */
#include "sutro_cost_test.h"

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
	/* Reported late, it costs nothing; the next one only the rest. */
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, costs, &b), 0);
	a.now_ns = 12 * MS;
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, costs, &a), MS);
	/* Nor does a pause cost anything. */
	a.start_ns = 500 * MS;
	a.now_ns = 503 * MS;
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, costs, &a), 3 * MS);
}

/* Without memory for its costs a group pays the same, and nothing is learned of it. */
static void sutro_test_no_costs(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_costs *costs = costs_new(test);
	struct sutro_sample one = { .start_ns = MS, .now_ns = 7 * MS };
	u64 first_ns = sutro_cost_estimate(device, costs, one.class, 4096);

	KUNIT_EXPECT_GT(test, first_ns, 0);
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, NULL, &one), 6 * MS);
	KUNIT_EXPECT_EQ(test,
			sutro_cost_estimate(device, NULL, one.class, 4096),
			first_ns);
	one.now_ns = 9 * MS;
	one.caches = true;
	one.bytes = 4096;
	KUNIT_EXPECT_GT(test, sutro_cost_complete(device, NULL, &one), 0);
}

/*
 * An actuator that picks any of the requests it has, and takes any time for it: the
 * charge of each is exact, and pauses of the drive are charged to no request.
 */
static void sutro_test_gap_is_exact(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_costs *costs = costs_new(test);
	struct sutro_sample pending[16], *sample;
	u64 random = 1, now_ns = 1000 * MS;
	u32 nr = 0, cost_ns;
	int i;

	for (i = 0; i < 10000; i++) {
		if (!nr && random_below(&random, 2))
			now_ns += random_below(&random, 1000 * MS);
		while (!nr ||
		       (nr < ARRAY_SIZE(pending) && random_below(&random, 3)))
			pending[nr++] = (struct sutro_sample){
				.class = random_below(&random, SUTRO_CLASSES),
				.start_ns = now_ns,
			};
		sample = &pending[random_below(&random, nr)];
		cost_ns = random_below(&random, 1 << random_below(&random, 26));
		now_ns += cost_ns;
		sample->now_ns = now_ns;
		KUNIT_ASSERT_EQ(test,
				sutro_cost_complete(device, costs, sample),
				cost_ns);
		*sample = pending[--nr];
	}
}

/* A hang of the drive for half a minute is charged to no group in full. */
static void sutro_test_hang(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_costs *costs = costs_new(test);
	struct sutro_sample sample = { .start_ns = MS, .now_ns = 30000 * MS };

	KUNIT_EXPECT_LE(test, sutro_cost_complete(device, costs, &sample),
			1000 * MS);
}

/* Requests of some classes complete in turn, each after its true cost. */
static u64 feed(struct sutro_device *device, u64 now_ns, u32 nr,
		const unsigned int *classes, const u64 *true_ns, u32 kinds)
{
	struct sutro_costs none = {};
	u64 charged_ns = 0;
	u32 i, kind = 0;

	for (i = 0; i < nr; i++, kind = (kind + 1) % kinds) {
		struct sutro_sample sample = {
			.class = classes[kind],
			.bytes = class_bytes(classes[kind]),
			/* Always at least two at the device. */
			.start_ns = now_ns - max(5 * MS, true_ns[kind]),
		};

		now_ns += true_ns[kind];
		sample.now_ns = now_ns;
		charged_ns += sutro_cost_complete(device, &none, &sample);
	}
	return charged_ns;
}

/* A class whose cost windows have shown, and the next request of it, which begins now. */
static struct sutro_sample known(struct sutro_device *device, int op, u32 bytes,
				 u64 true_ns)
{
	struct sutro_sample sample = {
		.class = sutro_cost_class(op, bytes),
		.bytes = bytes,
		.now_ns = 1000 * MS + 5000 * true_ns,
	};

	feed(device, 1000 * MS, 5000, &sample.class, &true_ns, 1);
	return sample;
}

/* Windows of one class measure what it costs, whatever was known before. */
static void sutro_test_busy_device(struct kunit *test)
{
	static const u64 costs_ns[] = { 1500, 10000, 400000, 9 * MS, 500 };
	struct sutro_device *device = device_new(test, false);
	unsigned int class = sutro_cost_class(SUTRO_WRITE, 16384);
	u64 now_ns = 1000 * MS;
	u32 i, nr;

	for (i = 0; i < ARRAY_SIZE(costs_ns); i++) {
		/* 40 windows, of 64 requests and 5 ms each, at least. */
		nr = 40 * (64 + (u32)(5 * MS) / (u32)costs_ns[i]);
		feed(device, now_ns, nr, &class, &costs_ns[i], 1);
		now_ns += nr * costs_ns[i];
		EXPECT_NEAR(test, sutro_cost_class_ns(device, class) * 100,
			    costs_ns[i] * 100, costs_ns[i] + 100);
	}
}

/* A slow device need not complete 64 requests before its cost is known. */
static void sutro_test_slow_device(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	unsigned int class = sutro_cost_class(SUTRO_WRITE, 1 << 20);
	u64 true_ns = 50 * MS;

	feed(device, 1000 * MS, 60, &class, &true_ns, 1);
	EXPECT_NEAR(test, sutro_cost_class_ns(device, class), true_ns,
		    50 * MS / 20);
}

/* Large requests of one class are charged by their bytes, small ones alike. */
static void sutro_test_bytes(struct kunit *test)
{
	u64 true_ns = 100 * US;
	int small;

	for (small = 0; small < 2; small++) {
		struct sutro_device *device = device_new(test, false);
		struct sutro_costs *none = costs_new(test);
		unsigned int class =
			sutro_cost_class(SUTRO_READ, small ? 4096 : 1 << 20);
		u32 bytes = class_bytes(class);

		feed(device, 1000 * MS, 20000, &class, &true_ns, 1);
		EXPECT_NEAR(test,
			    sutro_cost_estimate(device, none, class, bytes / 2),
			    small ? 100 * US : 50 * US, US);
		EXPECT_NEAR(test,
			    sutro_cost_estimate(device, none, class, bytes),
			    100 * US, US);
	}
}

/* In a mix the sum is right, and the ratio of the classes stays what it was. */
static void sutro_test_mixed(struct kunit *test)
{
	unsigned int classes[2] = { sutro_cost_class(SUTRO_READ, 4096),
				    sutro_cost_class(SUTRO_WRITE, 65536) };
	struct sutro_device *device = device_new(test, false);
	static const u64 alone_ns[2] = { 10000, 120000 };
	/* Together they are slower by a half. */
	static const u64 mixed_ns[2] = { 15000, 180000 };
	u64 now_ns = 1000 * MS, read_ns, charged_ns;

	feed(device, now_ns, 20000, &classes[0], &alone_ns[0], 1);
	now_ns += 20000 * alone_ns[0];
	feed(device, now_ns, 20000, &classes[1], &alone_ns[1], 1);
	now_ns += 20000 * alone_ns[1];
	read_ns = sutro_cost_class_ns(device, classes[0]);
	EXPECT_NEAR(test, sutro_cost_class_ns(device, classes[1]) * 10,
		    read_ns * 120, read_ns * 3);

	feed(device, now_ns, 20000, classes, mixed_ns, 2);
	now_ns += 10000 * (mixed_ns[0] + mixed_ns[1]);
	charged_ns = feed(device, now_ns, 20000, classes, mixed_ns, 2);
	EXPECT_NEAR(test, charged_ns, 10000 * (15000 + 180000),
		    100 * (15000 + 180000));
	read_ns = sutro_cost_class_ns(device, classes[0]);
	EXPECT_NEAR(test, sutro_cost_class_ns(device, classes[1]), read_ns * 12,
		    read_ns);
}

/*
 * Small writes were measured, large ones are too few for that.  Windows show that these cost 5 ms
 * instead of 64 times a small one.
 */
static void sutro_test_mixed_with_measured(struct kunit *test)
{
	unsigned int classes[2] = { sutro_cost_class(SUTRO_WRITE, 4096),
				    sutro_cost_class(SUTRO_WRITE, 1 << 18) };
	struct sutro_device *device = device_new(test, false);
	static const u64 true_ns[2] = { 700 * US, 5 * MS };

	sutro_cost_measured(device, classes[0], true_ns[0] << SUTRO_NS16_SHIFT,
			    0);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, classes[1]),
			64 * true_ns[0]);
	feed(device, 1000 * MS, 2000, classes, true_ns, 2);
	EXPECT_NEAR(test, sutro_cost_class_ns(device, classes[1]), true_ns[1],
		    true_ns[1] / 20);
	/* Windows in which small ones have most of the charges show when this is too low. */
	sutro_cost_set(&device->costs, classes[1],
		       100 * US << SUTRO_NS16_SHIFT);
	feed(device, 20 * 1000 * MS, 2000, classes, true_ns, 2);
	EXPECT_NEAR(test, sutro_cost_class_ns(device, classes[1]), true_ns[1],
		    true_ns[1] / 20);
}

/*
 * A few requests that trickle in while the device sleeps look like a window of
 * seconds: no class is estimated to cost more than its requests took.
 */
static void sutro_test_trickle(struct kunit *test)
{
	unsigned int classes[2] = { sutro_cost_class(SUTRO_READ, 4096),
				    sutro_cost_class(SUTRO_WRITE, 65536) };
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = { .now_ns = 1000 * MS };
	int i;

	for (i = 0; i < 1000; i++) {
		sample.class = classes[i % 8 == 7];
		sample.bytes = class_bytes(sample.class);
		sample.start_ns = sample.now_ns + 20 * MS;
		sample.now_ns = sample.start_ns + MS / 2;
		sutro_cost_complete(device, none, &sample);
	}
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_LE(test, sutro_cost_class_ns(device, classes[i]),
				MS / 2);
}

/* A device with little to do shows the most that a request may cost: the time that it took. */
static void sutro_test_idle_device(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = known(device, SUTRO_WRITE, 4096, 360 * US);
	int i;

	for (i = 0; i < 1000; i++) {
		sample.start_ns = sample.now_ns + 100 * US;
		sample.now_ns = sample.start_ns + 50 * US;
		device->unsaturated = true;
		device->idle = true;
		sutro_cost_complete(device, none, &sample);
	}
	KUNIT_EXPECT_LE(test, sutro_cost_class_ns(device, sample.class),
			50 * US);
}

/*
 * The elevator is empty, as the device took all there was: when requests queue
 * there, it was busy, and the window counts.
 */
static void sutro_test_deep_although_empty(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_READ, 1 << 20),
		.bytes = 1 << 20,
		.now_ns = 1000 * MS,
	};
	int i;

	for (i = 0; i < 100; i++) {
		/* One alone, then always eight at once. */
		sample.shallow = !i;
		sample.now_ns += 40 * MS;
		sample.start_ns = sample.now_ns - (i ? 8 : 1) * 40 * MS;
		sutro_cost_complete(device, none, &sample);
		device->unsaturated = true;
	}
	EXPECT_NEAR(test,
		    sutro_cost_estimate(device, none, sample.class,
					sample.bytes),
		    40 * MS, 2 * MS);
}

/* The completions of a device that waits for its users do not measure its speed. */
static void sutro_test_calm_device(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = known(device, SUTRO_READ, 4096, 20 * US);
	u64 before_ns;
	int i;

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

/*
 * Writes past the cache take longer than those that it takes.  That does not look like
 * a queue: the device has waited for its users.
 */
static void sutro_test_through_the_cache(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = known(device, SUTRO_WRITE, 4096, 50 * US);
	int i;

	device->unsaturated = true;
	for (i = 0; i < 1000; i++) {
		sample.through = i % 2;
		sample.shallow = !sample.through;
		sample.start_ns = sample.now_ns;
		sample.now_ns += sample.through ? 800 * US : 60 * US;
		sutro_cost_complete(device, none, &sample);
		device->unsaturated = true;
	}
	EXPECT_NEAR(test, sutro_cost_class_ns(device, sample.class), 50 * US,
		    US);
}

/* The example of sutro-cost.c: writes of which there are too few for a probe. */
static void sutro_test_few_writes(struct kunit *test)
{
	unsigned int read = sutro_cost_class(SUTRO_READ, 65536);
	struct sutro_device *device = device_new(test, false);
	struct sutro_sample sample = known(device, SUTRO_WRITE, 16384, 50 * US);
	int i;

	device->latency_ns = 70 * US;
	sutro_cost_measured(device, read, 19200 << SUTRO_NS16_SHIFT, 0);
	for (i = 0; i < 1000; i++) {
		device->unsaturated = true;
		device->idle = true;
		sample.now_ns += 50 * US;
		sample.start_ns = sample.now_ns - 200 * US;
		sutro_cost_complete(device, NULL, &sample);
	}
	EXPECT_NEAR(test, sutro_cost_class_ns(device, sample.class), 12834ULL,
		    100);
}

/* A probe has shown the most that a request costs: windows do not exceed that. */
static void sutro_test_most(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	unsigned int class = sutro_cost_class(SUTRO_READ, 4096);
	u64 gap_ns = 60 * US;

	sutro_cost_measured(device, class, 10 * US << SUTRO_NS16_SHIFT,
			    15 * US << SUTRO_NS16_SHIFT);
	feed(device, 1000 * MS, 5000, &class, &gap_ns, 1);
	EXPECT_NEAR(test, sutro_cost_class_ns(device, class), 15 * US, 1);
}

static u64 complete_other(struct sutro_device *device, u64 now_ns, u32 bytes,
			  u64 took_ns)
{
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_OTHER, bytes),
		.bytes = bytes,
		.start_ns = now_ns - took_ns,
		.now_ns = now_ns,
	};

	return sutro_cost_complete(device, NULL, &sample);
}

/* Discards and write zeroes cost what they take, or what a write of that size costs. */
static void sutro_test_other(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	unsigned int other = sutro_cost_class(SUTRO_OTHER, 0);
	u64 now_ns = 1000 * MS;
	int i;

	sutro_cost_measured(device, sutro_cost_class(SUTRO_READ, 4096),
			    (5 * US) << SUTRO_NS16_SHIFT, 0);
	sutro_cost_measured(device, sutro_cost_class(SUTRO_WRITE, 4096),
			    (20 * US) << SUTRO_NS16_SHIFT, 0);
	sutro_cost_measured(device, sutro_cost_class(SUTRO_WRITE, 256 << 10),
			    (500 * US) << SUTRO_NS16_SHIFT, 0);
	/* The first one is estimated like a small write. */
	KUNIT_EXPECT_EQ(test, sutro_cost_estimate(device, NULL, other, 1 << 20),
			20 * US);
	KUNIT_EXPECT_EQ(test, complete_other(device, now_ns, 1 << 20, 8 * MS),
			2 * MS);
	KUNIT_EXPECT_EQ(test, complete_other(device, now_ns, 1 << 20, MS / 10),
			MS / 10);
	KUNIT_EXPECT_EQ(test, complete_other(device, now_ns, 4096, 8 * MS),
			20 * US);
	KUNIT_EXPECT_EQ(test, complete_other(device, now_ns, U32_MAX, 99 * MS),
			99 * MS);
	for (i = 0; i < 200; i++)
		complete_other(device, now_ns, 1 << 20, 8 * MS);
	EXPECT_NEAR(test, sutro_cost_estimate(device, NULL, other, 4096),
		    2 * MS, MS / 50);
}

/* A request that failed before the driver started it costs nothing and changes no estimate. */
static void sutro_test_never_started(struct kunit *test)
{
	int rotational;

	for (rotational = 0; rotational < 2; rotational++) {
		struct sutro_device *device = device_new(test, rotational);
		struct sutro_costs *group = costs_new(test);
		struct sutro_sample sample = {
			.class = sutro_cost_class(SUTRO_READ, 4096),
			.bytes = 4096,
			.now_ns = 1000 * MS,
		};
		struct sutro_device before = *device;

		before.done[sample.class]++;
		KUNIT_EXPECT_EQ(test,
				sutro_cost_complete(device, group, &sample), 0);
		KUNIT_EXPECT_EQ(test, memcmp(device, &before, sizeof(before)),
				0);
		KUNIT_EXPECT_EQ(test, group->ns16[sample.class], 0);
	}
}

/* A clock that another CPU reads, or that was read once for several requests, may be behind. */
static void sutro_test_start_after_completion(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *none = costs_new(test);
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_READ, 4096),
		.bytes = 4096,
		.shallow = true,
		.now_ns = 1000 * MS,
	};
	int i;

	for (i = 0; i < 1000; i++) {
		sample.start_ns = sample.now_ns;
		sample.now_ns += 60 * US;
		if (i % 100 == 50)
			sample.start_ns = sample.now_ns + 1;
		sutro_cost_complete(device, none, &sample);
		KUNIT_EXPECT_LE(test, sutro_cost_latency_ns(device), 60 * US);
		KUNIT_EXPECT_LE(test,
				device->window.latency_of_ns[sample.class],
				(u64)(i + 1) * 60 * US);
	}
}

static struct kunit_case sutro_cost_cases[] = {
	KUNIT_CASE(sutro_test_size_classes),
	KUNIT_CASE(sutro_test_gap),
	KUNIT_CASE(sutro_test_no_costs),
	KUNIT_CASE(sutro_test_gap_is_exact),
	KUNIT_CASE(sutro_test_hang),
	KUNIT_CASE(sutro_test_busy_device),
	KUNIT_CASE(sutro_test_slow_device),
	KUNIT_CASE(sutro_test_bytes),
	KUNIT_CASE(sutro_test_mixed),
	KUNIT_CASE(sutro_test_mixed_with_measured),
	KUNIT_CASE(sutro_test_trickle),
	KUNIT_CASE(sutro_test_idle_device),
	KUNIT_CASE(sutro_test_few_writes),
	KUNIT_CASE(sutro_test_most),
	KUNIT_CASE(sutro_test_deep_although_empty),
	KUNIT_CASE(sutro_test_calm_device),
	KUNIT_CASE(sutro_test_through_the_cache),
	KUNIT_CASE(sutro_test_other),
	KUNIT_CASE(sutro_test_never_started),
	KUNIT_CASE(sutro_test_start_after_completion),
	{}
};

sutro_suite(sutro_cost, "the cost of requests");
