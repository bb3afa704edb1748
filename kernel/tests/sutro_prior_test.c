// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of costs that were measured before (sutro-prior.c).  A device with wrong ones is
 * compared with a twin that has none, and sees the same completions.
 */
#include <linux/string.h>

#include "../sutro-prior.h"
#include "sutro_cost_test.h"

#define SMALL sutro_cost_class(SUTRO_READ, 4096)
#define LARGE sutro_cost_class(SUTRO_READ, 65536)
#define WRITE sutro_cost_class(SUTRO_WRITE, 4096)
/* The cost of a request: completions are this far apart. */
#define COST_NS (30 * US)
#define IN_FLIGHT 32

/* One of three tables has no entry for a class. */
static struct sutro_prior random_prior(u64 *state)
{
	struct sutro_prior prior = {};
	unsigned int i;

	for (i = 0; i < SUTRO_READ_WRITE_CLASSES; i++)
		if (random_below(state, 3))
			prior.ns[i] = 1 + (random_below(state, 1000000000) >>
					   random_below(state, 30));
	return prior;
}

/* The text of costs leads to the same costs, whatever white space is between the words. */
static void sutro_test_prior_round_trip(struct kunit *test)
{
	static const char spaces[] = { ' ', '\n', '\t' };
	char text[SUTRO_PRIOR_TEXT_BYTES], *c;
	struct sutro_prior prior, again;
	u64 state = 1;
	int i;

	for (i = 0; i < 1000; i++) {
		prior = random_prior(&state);
		sutro_prior_format(&prior, text);
		KUNIT_ASSERT_EQ(test, sutro_prior_parse(text, &again), 0);
		KUNIT_EXPECT_EQ(test, memcmp(&prior, &again, sizeof(prior)), 0);
		for (c = text; *c; c++)
			if (*c == ' ' || *c == '\n')
				*c = spaces[random_below(&state, 3)];
		KUNIT_ASSERT_EQ(test, sutro_prior_parse(text, &again), 0);
		KUNIT_EXPECT_EQ(test, memcmp(&prior, &again, sizeof(prior)), 0);
	}
}

/* The longest text has room. */
static void sutro_test_prior_longest(struct kunit *test)
{
	char text[SUTRO_PRIOR_TEXT_BYTES];
	struct sutro_prior prior, again;
	unsigned int i;

	for (i = 0; i < SUTRO_READ_WRITE_CLASSES; i++)
		prior.ns[i] = SUTRO_COST_MAX_NS;
	sutro_prior_format(&prior, text);
	KUNIT_ASSERT_EQ(test, sutro_prior_parse(text, &again), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&prior, &again, sizeof(prior)), 0);
}

/* Any other text is refused, and changes nothing. */
static void sutro_test_prior_refused(struct kunit *test)
{
	static const char *const wrong[] = {
		"",
		"1",
		"version",
		"version 0",
		"version 2",
		"version 1 2",
		"versions 1",
		"read 4096 30000",
		"version 1\nread",
		"version 1\nread 4096",
		"version 1\nread 4096 30000 1",
		"version 1\nread 4096 0",
		"version 1\nread 4096 -1",
		"version 1\nread 4096 +1",
		"version 1\nread 4096 1000000001",
		"version 1\nread 4096 99999999999999999999",
		"version 1\nread 4096 0x10",
		"version 1\nread 4096 30us",
		"version 1\nread 4096 1e3",
		"version 1\nread 0 30000",
		"version 1\nread 4095 30000",
		"version 1\nread 4097 30000",
		"version 1\nread 524288 30000",
		"version 1\nread 4294971392 30000",
		"version 1\nother 4096 30000",
		"version 1\nREAD 4096 30000",
		"version 1\nread 4096 30000\nread 4096 30000",
		"version 1\nread 4096 30000\nversion 1",
	};
	u64 state = 7;
	const struct sutro_prior before = random_prior(&state);
	struct sutro_prior prior = before;
	int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		KUNIT_EXPECT_EQ(test, sutro_prior_parse(wrong[i], &prior),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, memcmp(&prior, &before, sizeof(before)),
				0);
	}
}

static void write_prior(struct kunit *test, struct sutro_device *device,
			unsigned int class, u64 ns)
{
	struct sutro_prior prior;

	sutro_prior_read(device, &prior);
	prior.ns[class] = ns;
	KUNIT_ASSERT_EQ(test, sutro_prior_write(device, &prior), 0);
}

/* One of IN_FLIGHT requests completes. */
static void serve_one(struct sutro_device *device, unsigned int class,
		      u64 *now_ns)
{
	struct sutro_sample sample = {
		.class = class,
		.bytes = class_bytes(class),
		.start_ns = *now_ns - IN_FLIGHT * COST_NS,
		.now_ns = *now_ns,
	};

	*now_ns += COST_NS;
	sutro_cost_complete(device, NULL, &sample);
}

/* Requests complete at the rate of COST_NS until a window is over, and a few more. */
static void serve_window(struct sutro_device *device, unsigned int class,
			 u64 *now_ns)
{
	int i;

	for (i = 0; i < 200; i++)
		serve_one(device, class, now_ns);
}

/* Right priors are charged as soon as a window fits them, also of classes that it does not have. */
static void sutro_test_prior_right(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_device *twin = device_new(test, false);
	u64 now_ns = 1000 * MS;

	write_prior(test, device, SMALL, COST_NS);
	write_prior(test, device, WRITE, 7 * COST_NS);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, WRITE),
			sutro_cost_class_ns(twin, WRITE));
	serve_window(device, SMALL, &now_ns);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, SMALL), COST_NS);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, WRITE), 7 * COST_NS);
}

/* A completion that a CPU reports after a later one, with which a window began, drops none. */
static void sutro_test_prior_out_of_order(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	u64 now_ns = 1000 * MS;

	write_prior(test, device, SMALL, COST_NS);
	serve_window(device, SMALL, &now_ns);
	KUNIT_EXPECT_NE(test, device->costs.prior & BIT(SMALL), 0);
	while (device->window.nr != 1)
		serve_one(device, SMALL, &now_ns);
	now_ns = device->window.start_ns - 200;
	serve_one(device, SMALL, &now_ns);
	KUNIT_EXPECT_EQ(test, device->window.nr, 2);
	KUNIT_EXPECT_NE(test, device->costs.prior & BIT(SMALL), 0);
}

/* Requests that were sent together complete together: the device has worked on them before. */
static void sutro_test_prior_burst(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	u64 start_ns = 1000 * MS;
	int i;

	write_prior(test, device, LARGE, 2 * MS);
	for (i = 0; i < 100; i++) {
		struct sutro_sample sample = {
			.class = LARGE,
			.bytes = class_bytes(LARGE),
			.start_ns = start_ns,
			.now_ns = start_ns + 190 * MS + i * MS / 10,
		};

		sutro_cost_complete(device, NULL, &sample);
	}
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, LARGE), 2 * MS);
}

/* After the first window, wrong priors are as if there had never been any. */
static void expect_forgotten(struct kunit *test, u64 prior_ns)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_device *twin = device_new(test, false);
	u64 now_ns = 1000 * MS, twin_now_ns = now_ns;
	struct sutro_prior left;
	bool differs;

	write_prior(test, device, SMALL, prior_ns);
	write_prior(test, device, WRITE, prior_ns);
	serve_window(device, SMALL, &now_ns);
	serve_window(twin, SMALL, &twin_now_ns);
	differs = memcmp(&device->costs, &twin->costs, sizeof(twin->costs));
	KUNIT_EXPECT_FALSE(test, differs);
	sutro_prior_read(device, &left);
	KUNIT_EXPECT_EQ(test, left.ns[WRITE], 0);
}

static void sutro_test_prior_wrong(struct kunit *test)
{
	expect_forgotten(test, 10 * COST_NS);
	expect_forgotten(test, COST_NS / 10);
	expect_forgotten(test, 100 * COST_NS);
	expect_forgotten(test, 1);
	expect_forgotten(test, SUTRO_COST_MAX_NS);
}

/* A request that took less time than it should cost shows that, also while the device has room. */
static void sutro_test_prior_took_less(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	u64 now_ns = 1000 * MS;

	write_prior(test, device, SMALL, (IN_FLIGHT + 1) * COST_NS);
	device->unsaturated = true;
	device->idle = true;
	serve_window(device, SMALL, &now_ns);
	KUNIT_EXPECT_EQ(test, device->costs.prior | device->prior.waits, 0);
}

/* The first result of a probe is the judge of all priors. */
static void sutro_test_prior_probe(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	u64 now_ns = 1000 * MS;

	write_prior(test, device, SMALL, COST_NS);
	write_prior(test, device, WRITE, 7 * COST_NS);
	serve_window(device, SMALL, &now_ns);
	sutro_cost_measured(device, SMALL, COST_NS * 5 / 4 << SUTRO_NS16_SHIFT,
			    0);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, SMALL),
			COST_NS * 5 / 4);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, WRITE), 7 * COST_NS);

	device = device_new(test, false);
	write_prior(test, device, SMALL, COST_NS);
	write_prior(test, device, WRITE, 7 * COST_NS);
	serve_window(device, SMALL, &now_ns);
	sutro_cost_measured(device, SMALL, 2 * COST_NS << SUTRO_NS16_SHIFT, 0);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, SMALL), 2 * COST_NS);
	KUNIT_EXPECT_LT(test, sutro_cost_class_ns(device, WRITE), 4 * COST_NS);
}

/* With too few requests, a result is the most that they cost: a prior below it stays right. */
static void sutro_test_prior_bounded(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	u64 most_ns16 = 4 * COST_NS << SUTRO_NS16_SHIFT;

	write_prior(test, device, SMALL, COST_NS);
	write_prior(test, device, WRITE, 7 * COST_NS);
	sutro_cost_measured(device, SMALL, most_ns16, most_ns16);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, WRITE), 7 * COST_NS);

	device = device_new(test, false);
	write_prior(test, device, SMALL, 40 * COST_NS);
	write_prior(test, device, WRITE, 7 * COST_NS);
	sutro_cost_measured(device, SMALL, most_ns16, most_ns16);
	KUNIT_EXPECT_EQ(test, device->costs.prior | device->prior.waits, 0);
}

/* A measured cost stays, and is read together with the priors that wait for a probe. */
static void sutro_test_prior_measured(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	struct sutro_prior prior;

	sutro_cost_measured(device, SMALL, COST_NS << SUTRO_NS16_SHIFT, 0);
	write_prior(test, device, SMALL, 100 * COST_NS);
	write_prior(test, device, LARGE, 9 * COST_NS);
	KUNIT_EXPECT_EQ(test, sutro_cost_class_ns(device, SMALL), COST_NS);
	sutro_prior_read(device, &prior);
	KUNIT_EXPECT_EQ(test, prior.ns[SMALL], COST_NS);
	KUNIT_EXPECT_EQ(test, prior.ns[LARGE], 9 * COST_NS);

	prior = (struct sutro_prior){};
	KUNIT_EXPECT_EQ(test, sutro_prior_write(device, &prior), 0);
	sutro_prior_read(device, &prior);
	KUNIT_EXPECT_EQ(test, prior.ns[SMALL], COST_NS);
	KUNIT_EXPECT_EQ(test, prior.ns[LARGE], 0);
}

/* A class that is only in use shows no cost that another elevator could begin with. */
static void sutro_test_prior_unmeasured(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);
	u64 now_ns = 1000 * MS;
	struct sutro_prior prior;

	serve_window(device, SMALL, &now_ns);
	sutro_prior_read(device, &prior);
	KUNIT_EXPECT_EQ(test, prior.ns[SMALL], 0);
}

/* On a rotational device the costs are those of each group. */
static void sutro_test_prior_rotational(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_prior prior = {};

	KUNIT_EXPECT_EQ(test, sutro_prior_write(device, &prior), 0);
	prior.ns[SMALL] = COST_NS;
	KUNIT_EXPECT_EQ(test, sutro_prior_write(device, &prior), -EINVAL);
	KUNIT_EXPECT_EQ(test, device->prior.waits, 0);
}

static struct kunit_case sutro_prior_cases[] = {
	KUNIT_CASE(sutro_test_prior_round_trip),
	KUNIT_CASE(sutro_test_prior_longest),
	KUNIT_CASE(sutro_test_prior_refused),
	KUNIT_CASE(sutro_test_prior_right),
	KUNIT_CASE(sutro_test_prior_out_of_order),
	KUNIT_CASE(sutro_test_prior_burst),
	KUNIT_CASE(sutro_test_prior_wrong),
	KUNIT_CASE(sutro_test_prior_took_less),
	KUNIT_CASE(sutro_test_prior_probe),
	KUNIT_CASE(sutro_test_prior_bounded),
	KUNIT_CASE(sutro_test_prior_measured),
	KUNIT_CASE(sutro_test_prior_unmeasured),
	KUNIT_CASE(sutro_test_prior_rotational),
	{}
};

sutro_suite(sutro_prior, "the sutro I/O scheduler: costs from before");
