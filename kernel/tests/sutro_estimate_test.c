// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the estimated cost of a request (sutro-estimate.c). */
#include "sutro_cost_test.h"

/* On a rotational device the estimate for a group follows the past of this group. */
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

/*
 * One small request has cost a seek.  A class that was never seen is expected to
 * cost the same seek: were it 64 times that, the clock of the groups would run
 * ahead by minutes before the first of them completes.
 */
static void sutro_test_seek_does_not_grow(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_costs *costs = costs_new(test);
	struct sutro_sample seek = {
		.class = sutro_cost_class(SUTRO_READ, 4096),
		.start_ns = 1 * MS,
		.now_ns = 15 * MS,
	};
	unsigned int large = sutro_cost_class(SUTRO_WRITE, 1 << 20);
	u64 ns;

	sutro_cost_complete(device, costs, &seek);
	ns = sutro_cost_estimate(device, costs, large, 1 << 20);
	KUNIT_EXPECT_GE(test, ns, 14 * MS);
	KUNIT_EXPECT_LE(test, ns, 20 * MS);
}

/* One class is known: larger ones of its operation are not estimated cheaper. */
static void estimates_grow(struct kunit *test, struct sutro_device *device,
			   struct sutro_costs *costs, unsigned int known,
			   u64 ns16)
{
	unsigned int first = known - known % SUTRO_SIZES, i;
	unsigned int last = min(first + SUTRO_SIZES, SUTRO_CLASSES) - 1;
	u64 prior_ns, last_ns, ns = 0;

	*costs = (struct sutro_costs){};
	prior_ns = sutro_cost_estimate(device, costs, last, class_bytes(last));
	KUNIT_EXPECT_GT(test, prior_ns, 0);
	KUNIT_EXPECT_LT(test, prior_ns, 100 * MS);
	sutro_cost_set(costs, known, ns16);
	for (i = first; i <= last; i++) {
		last_ns = ns;
		ns = sutro_cost_estimate(device, costs, i, class_bytes(i));
		KUNIT_EXPECT_GE(test, ns, last_ns);
		if (i == known && ns16 >= 16 && ns16 < 16000 * MS)
			KUNIT_EXPECT_EQ(test, ns, ns16 >> 4);
	}
	KUNIT_EXPECT_LE(test, ns, prior_ns + ((ns16 + 16) >> 4 << SUTRO_SIZES));
}

/* From nothing to three days. */
static void sutro_test_estimates_grow(struct kunit *test)
{
	unsigned int rotational, known, shift;

	for (rotational = 0; rotational < 2; rotational++) {
		struct sutro_device *device = device_new(test, rotational);
		struct sutro_costs *costs = rotational ? costs_new(test)
						       : &device->costs;

		for (known = 0; known < SUTRO_CLASSES; known++)
			for (shift = 0; shift <= 52; shift += 4)
				estimates_grow(test, device, costs, known,
					       1ULL << shift);
	}
}

static u64 by_bytes_ns(const struct sutro_device *device, unsigned int class)
{
	return sutro_by_bytes_ns16(&device->costs, class) >> SUTRO_NS16_SHIFT;
}

/* A class follows from a larger one of its kind, or a read from a write; one with few from none. */
static void sutro_test_by_bytes(struct kunit *test)
{
	unsigned int small = sutro_cost_class(SUTRO_READ, 4096);
	unsigned int medium = sutro_cost_class(SUTRO_READ, 65536);
	unsigned int read = sutro_cost_class(SUTRO_READ, 16384);
	unsigned int write = sutro_cost_class(SUTRO_WRITE, 262144);
	struct sutro_device device = {};

	sutro_device_init(&device, false);
	sutro_cost_measured(&device, medium, 14000 << SUTRO_NS16_SHIFT,
			    U64_MAX);
	KUNIT_EXPECT_EQ(test, by_bytes_ns(&device, small), 0ULL);
	sutro_cost_measured(&device, write, 75200 << SUTRO_NS16_SHIFT, 0);
	KUNIT_EXPECT_EQ(test, by_bytes_ns(&device, small), 1175ULL);
	KUNIT_EXPECT_EQ(test, by_bytes_ns(&device, medium), 18800ULL);
	sutro_cost_measured(&device, read, 4000 << SUTRO_NS16_SHIFT, 0);
	KUNIT_EXPECT_EQ(test, by_bytes_ns(&device, small), 1000ULL);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(&device, small), 1000ULL);
}

/* A write of less than a page of flash costs more than its bytes, and less than the page. */
static void sutro_test_by_pages(struct kunit *test)
{
	static const struct {
		enum sutro_op op;
		u32 bytes;
		u64 ns;
	} cases[] = {
		{ SUTRO_WRITE, 16384, 100000 },
		{ SUTRO_WRITE, 8192, 70703 },
		{ SUTRO_WRITE, 4096, 50000 },
		{ SUTRO_READ, 4096, 25000 },
	};
	struct sutro_device device = {};
	unsigned int class;
	int i;

	sutro_device_init(&device, false);
	class = sutro_cost_class(SUTRO_WRITE, 65536);
	sutro_cost_measured(&device, class, 400000 << SUTRO_NS16_SHIFT, 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		class = sutro_cost_class(cases[i].op, cases[i].bytes);
		KUNIT_EXPECT_EQ(test, by_bytes_ns(&device, class), cases[i].ns);
	}
}

/* A bus is the limit if a large request costs as much for its bytes as another large one. */
static void sutro_test_proportional(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_costs *costs = &device->costs;
	unsigned int small = sutro_cost_class(SUTRO_READ, 16384);
	unsigned int read = sutro_cost_class(SUTRO_READ, 65536);
	unsigned int write = sutro_cost_class(SUTRO_WRITE, 262144);
	u64 ns16 = MS << SUTRO_NS16_SHIFT;
	u32 all = U32_MAX;
	bool is;

	is = sutro_cost_is_proportional(costs, write, all, 4 * ns16);
	KUNIT_EXPECT_FALSE(test, is);
	sutro_cost_measured(device, read, ns16, 0);
	is = sutro_cost_is_proportional(costs, write, all, 4 * ns16);
	KUNIT_EXPECT_TRUE(test, is);
	is = sutro_cost_is_proportional(costs, write, all, 41 * ns16 / 10);
	KUNIT_EXPECT_TRUE(test, is);
	is = sutro_cost_is_proportional(costs, write, all, 5 * ns16);
	KUNIT_EXPECT_FALSE(test, is);
	is = sutro_cost_is_proportional(costs, write, all, 3 * ns16);
	KUNIT_EXPECT_FALSE(test, is);
	is = sutro_cost_is_proportional(costs, write, ~BIT(read), 4 * ns16);
	KUNIT_EXPECT_FALSE(test, is);
	/* Neither the class itself nor a small one shows it. */
	is = sutro_cost_is_proportional(costs, read, all, ns16);
	KUNIT_EXPECT_FALSE(test, is);
	is = sutro_cost_is_proportional(costs, small, all, ns16 / 4);
	KUNIT_EXPECT_FALSE(test, is);
	/* There never were enough of the other ones. */
	costs->bounded = BIT(read);
	is = sutro_cost_is_proportional(costs, write, all, 4 * ns16);
	KUNIT_EXPECT_FALSE(test, is);
}

static struct kunit_case sutro_estimate_cases[] = {
	KUNIT_CASE(sutro_test_own_estimate),
	KUNIT_CASE(sutro_test_seek_does_not_grow),
	KUNIT_CASE(sutro_test_estimates_grow),
	KUNIT_CASE(sutro_test_by_bytes),
	KUNIT_CASE(sutro_test_by_pages),
	KUNIT_CASE(sutro_test_proportional),
	{}
};

sutro_suite(sutro_estimate, "the estimated cost of a request");
