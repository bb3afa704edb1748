// SPDX-License-Identifier: GPL-2.0-only
/* What a request costs: the gap on one actuator, the table elsewhere. */
#include "sutro-cost.h"

#include "random.h"
#include "world.h"

#define PENDING 16

/* The size that a class stands for. */
static u32 class_bytes(u32 class)
{
	return SUTRO_SIZE_MIN_BYTES << class % SUTRO_SIZES;
}

/*
 * An actuator that picks any of the requests it has, and takes any time for it:
 * the charge of each is exact, and the mean follows.
 */
static void test_gap_is_exact(void)
{
	struct sutro_device device = {};
	struct sutro_costs costs = {};
	struct sutro_sample pending[PENDING];
	u64 random = 1, now_ns = SEC, idle_ns = 0, charged_ns = 0;
	u32 nr = 0, i;

	sutro_device_init(&device, true);
	for (i = 0; i < 100000; i++) {
		struct sutro_sample *sample;
		u64 cost_ns = random_magnitude(&random, 50 * MS);

		/* Sometimes the drive has nothing to do for a while. */
		if (!nr && random_below(&random, 2)) {
			u64 pause_ns = random_magnitude(&random, SEC);

			now_ns += pause_ns;
			idle_ns += i ? pause_ns : 0;
		}
		while (!nr || (nr < PENDING && random_below(&random, 3)))
			pending[nr++] = (struct sutro_sample){
				.class = random_below(&random, SUTRO_CLASSES),
				.start_ns = now_ns,
			};
		sample = &pending[random_below(&random, nr)];
		now_ns += cost_ns;
		sample->now_ns = now_ns;
		check_equal(sutro_cost_complete(&device, &costs, sample),
			    cost_ns);
		charged_ns += cost_ns;
		*sample = pending[--nr];
	}
	check(charged_ns + idle_ns <= now_ns, "more than there was");
}

/*
 * One small request has cost a seek.  A class that was never seen is expected to
 * cost the same seek: were it 64 times that, the clock of the groups would run
 * ahead by minutes before the first of them completes.
 */
static void test_seek_does_not_grow(void)
{
	struct sutro_device device = {};
	struct sutro_costs costs = {};
	struct sutro_sample seek = {
		.class = sutro_cost_class(SUTRO_READ, 4096),
		.start_ns = 1 * MS,
		.now_ns = 15 * MS,
	};
	u64 large_ns;

	sutro_device_init(&device, true);
	sutro_cost_complete(&device, &costs, &seek);
	large_ns = sutro_cost_estimate(&device, &costs,
				       sutro_cost_class(SUTRO_WRITE, 1 << 20),
				       1 << 20);
	check(large_ns >= 14 * MS && large_ns <= 20 * MS, "%llu ns for 1 MiB",
	      large_ns);
}

/* Requests of some classes complete in turn, each after its true cost. */
static u64 feed(struct sutro_device *device, u64 now_ns, u32 nr,
		const u32 *classes, const u64 *true_ns, u32 kinds,
		u64 *ret_charged_ns)
{
	struct sutro_costs none = {};
	u32 i;

	*ret_charged_ns = 0;
	for (i = 0; i < nr; i++) {
		struct sutro_sample sample = {
			.class = classes[i % kinds],
			.bytes = class_bytes(classes[i % kinds]),
			/* Always at least two at the device. */
			.start_ns = now_ns - max(5 * MS, true_ns[i % kinds]),
		};

		now_ns += true_ns[i % kinds];
		sample.now_ns = now_ns;
		*ret_charged_ns += sutro_cost_complete(device, &none, &sample);
	}
	return now_ns;
}

/* A window of one class says what that class costs, whatever was thought. */
static void test_single_class(void)
{
	static const u64 costs_ns[] = { 1500, 10000, 400000, 9 * MS, 200 };
	struct sutro_device device = {};
	u64 now_ns = SEC, charged_ns;
	u32 class = sutro_cost_class(SUTRO_READ, 16384), i;

	sutro_device_init(&device, false);
	for (i = 0; i < sizeof(costs_ns) / sizeof(costs_ns[0]); i++) {
		u64 true_ns = costs_ns[i];

		/* 40 windows, of 64 requests and 5 ms each, at least. */
		now_ns = feed(&device, now_ns, 40 * (64 + 5 * MS / true_ns),
			      &class, &true_ns, 1, &charged_ns);
		check_near(sutro_cost_class_ns(&device, class), true_ns,
			   true_ns / 100 + 1);
	}
}

/*
 * A few requests that trickle in while the device sleeps look like a window of
 * seconds: no class may be thought to cost more than its requests took.
 */
static void test_trickle(void)
{
	u32 classes[2] = { sutro_cost_class(SUTRO_READ, 4096),
			   sutro_cost_class(SUTRO_WRITE, 65536) };
	struct sutro_device device = {};
	struct sutro_costs none = {};
	u64 now_ns = SEC, latency_ns = MS / 2;
	u32 i;

	sutro_device_init(&device, false);
	for (i = 0; i < 1000; i++) {
		struct sutro_sample sample = {
			.class = classes[i % 8 == 7],
			.bytes = class_bytes(classes[i % 8 == 7]),
			.start_ns = now_ns,
			.now_ns = now_ns + latency_ns,
		};

		sutro_cost_complete(&device, &none, &sample);
		now_ns += 20 * MS;
	}
	for (i = 0; i < 2; i++)
		check(sutro_cost_class_ns(&device, classes[i]) <= latency_ns,
		      "costs more than it took");
}

/* A slow device need not complete 64 requests before it is known. */
static void test_slow_device(void)
{
	struct sutro_device device = {};
	u32 class = sutro_cost_class(SUTRO_WRITE, 1 << 20);
	u64 true_ns = 50 * MS, charged_ns;

	sutro_device_init(&device, false);
	feed(&device, SEC, 60, &class, &true_ns, 1, &charged_ns);
	check_near(sutro_cost_class_ns(&device, class), true_ns, true_ns / 20);
}

/* Large requests of one class are charged by their bytes, small ones alike. */
static void test_bytes(void)
{
	static const u32 class_of[2] = { 1 << 20, 4096 };
	struct sutro_costs none = {};
	u32 i;

	for (i = 0; i < 2; i++) {
		u32 bytes = class_of[i];
		u32 class = sutro_cost_class(SUTRO_READ, bytes);
		struct sutro_device device = {};
		u64 true_ns = 100000, charged_ns;

		sutro_device_init(&device, false);
		feed(&device, SEC, 20000, &class, &true_ns, 1, &charged_ns);
		check_near(sutro_cost_estimate(&device, &none, class,
					       class_bytes(class) / 2),
			   i ? true_ns : true_ns / 2, true_ns / 100);
		check_near(sutro_cost_estimate(&device, &none, class,
					       class_bytes(class)),
			   true_ns, true_ns / 100);
	}
}

/* In a mix the sum is right, and the ratio stays what it was. */
static void test_mixed(void)
{
	u32 classes[2] = { sutro_cost_class(SUTRO_READ, 4096),
			   sutro_cost_class(SUTRO_WRITE, 65536) };
	u64 true_ns[2] = { 10000, 120000 }, now_ns = SEC, charged_ns, begin_ns;
	struct sutro_device device = {};
	double ratio;

	sutro_device_init(&device, false);
	/* Each alone, so that both are known; then together. */
	now_ns = feed(&device, now_ns, 20000, classes, true_ns, 1, &charged_ns);
	now_ns = feed(&device, now_ns, 20000, classes + 1, true_ns + 1, 1,
		      &charged_ns);
	ratio = (double)sutro_cost_class_ns(&device, classes[1]) /
		sutro_cost_class_ns(&device, classes[0]);
	check_near(ratio, 12, 0.3);

	/* Together they are slower by a half. */
	true_ns[0] = 15000;
	true_ns[1] = 180000;
	now_ns = feed(&device, now_ns, 20000, classes, true_ns, 2, &charged_ns);
	begin_ns = now_ns;
	now_ns = feed(&device, now_ns, 20000, classes, true_ns, 2, &charged_ns);
	check_near(charged_ns, now_ns - begin_ns, (now_ns - begin_ns) / 100);
	ratio = (double)sutro_cost_class_ns(&device, classes[1]) /
		sutro_cost_class_ns(&device, classes[0]);
	check_near(ratio, 12, 1);
}

/*
 * The elevator is empty, as the device took all there was: when requests queue
 * there, it was busy, and the window counts.
 */
static void test_deep_although_empty(void)
{
	struct sutro_device device = {};
	struct sutro_costs none = {};
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_READ, 1 << 20),
		.bytes = 1 << 20,
		.shallow = true,
	};
	u64 now_ns = SEC, true_ns = 40 * MS;
	u32 i;

	sutro_device_init(&device, false);
	for (i = 0; i < 100; i++) {
		now_ns += true_ns;
		/* One alone, then always eight at once. */
		sample.shallow = !i;
		sample.start_ns = now_ns - (i ? 8 : 1) * true_ns;
		sample.now_ns = now_ns;
		sutro_cost_complete(&device, &none, &sample);
		device.unsaturated = true;
	}
	check_near(sutro_cost_estimate(&device, &none, sample.class,
				       sample.bytes),
		   true_ns, true_ns / 20);
}

/* Unknown classes: from the nearest size, larger ones never cheaper. */
static void test_estimates_bounded(bool rotational)
{
	struct sutro_device device = {};
	struct sutro_costs costs = {};
	struct sutro_costs *known = rotational ? &costs : &device.costs;
	u64 random = 7;
	u32 class, round;

	sutro_device_init(&device, rotational);
	for (class = 0; class < SUTRO_CLASSES; class ++) {
		u64 prior_ns = sutro_cost_estimate(&device, &costs, class,
						   class_bytes(class));

		check(prior_ns > 0 && prior_ns < 100 * MS, "%llu ns", prior_ns);
	}
	for (round = 0; round < 10000; round++) {
		u32 one = random_below(&random, SUTRO_CLASSES);
		u32 first = one - one % SUTRO_SIZES;
		/* From nothing to three days. */
		u64 ns16 = random_magnitude(&random, 1ULL << 52), last_ns = 0;

		*known = (struct sutro_costs){};
		known->ns16[one] = ns16;
		for (class = first;
		     class < min_t(u32, first + SUTRO_SIZES, SUTRO_CLASSES);
		     class ++) {
			u64 ns = sutro_cost_estimate(&device, &costs, class,
						     class_bytes(class));

			check(ns >= last_ns, "%llu, before %llu", ns, last_ns);
			last_ns = ns;
		}
		check(last_ns <= (ns16 + 16) >> 4 << SUTRO_SIZES,
		      "%llu from %llu", last_ns, ns16 >> 4);
	}
}

static void test_depth(void)
{
	struct sutro_device device = {};
	struct sutro_costs none = {};
	struct sutro_sample sample = { .shallow = true };
	u64 now_ns = SEC, least_ns;
	u32 i;

	sutro_device_init(&device, false);
	least_ns = sutro_cost_depth_ns(&device);
	check(least_ns >= MS / 2 && least_ns <= 5 * MS, "%llu ns", least_ns);
	/* Latencies of 10 ms while the device is calm: almost three times that. */
	for (i = 0; i < 200; i++) {
		now_ns += 10 * MS;
		sample.start_ns = now_ns - 10 * MS;
		sample.now_ns = now_ns;
		device.unsaturated = true;
		sutro_cost_complete(&device, &none, &sample);
	}
	check_near(sutro_cost_depth_ns(&device), 27.5 * MS, 0.1 * MS);
	for (i = 0; i < 200; i++) {
		now_ns += 100000;
		sample.start_ns = now_ns - 100000;
		sample.now_ns = now_ns;
		device.unsaturated = true;
		sutro_cost_complete(&device, &none, &sample);
	}
	check_equal(sutro_cost_depth_ns(&device), least_ns);
}

int main(void)
{
	test_gap_is_exact();
	test_seek_does_not_grow();
	test_single_class();
	test_trickle();
	test_slow_device();
	test_bytes();
	test_mixed();
	test_deep_although_empty();
	test_estimates_bounded(true);
	test_estimates_bounded(false);
	test_depth();
	return 0;
}
