/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A target against a queue whose latency follows from the share: the more of the
 * leaves it has, the shorter its reads wait.
 */

#include <math.h>
#include <stdio.h>

#include "control/target.h"
#include "fake.h"

#define DT_S 0.25

/* Bucket of a latency, as the kernel counts: 2^14 ns, 1.5 * 2^14, 2^15 ... */
static size_t bucket_of(double us)
{
	double end_us = 16.384;
	size_t i = 0;

	while (i < LATENCY_BUCKETS - 1 && us >= end_us) {
		end_us *= i % 2 ? 4. / 3 : 1.5;
		i++;
	}
	return i;
}

/* 100 reads, all about as slow, for what it has. */
static void tick(struct target *t, double us, double time)
{
	struct latencies reads = {};

	reads.count[bucket_of(us)] = 100;
	target_tick(t, &reads, false, time, true, DT_S);
}

/* Reads take 4 ms of the disk's time alone and more the less they are given. */
static double latency_us(double wanted)
{
	return 1000 / fmin(wanted, 1);
}

static void test_found_and_given_back(void)
{
	struct target t;
	double held;
	int n = 0;

	target_init(&t, 5000, 1);
	while (t.state != CONTROL_HELD) {
		tick(&t, latency_us(t.wanted), t.wanted);
		check(++n < 40);
	}
	/* It settles where 5 ms are met, and not far above. */
	for (n = 0; n < 400; n++)
		tick(&t, latency_us(t.wanted), t.wanted);
	check(latency_us(t.wanted) < 5000 * 1.3);
	check(t.wanted < 0.5);
	/* The others stop: latency falls by itself, and the share goes back. */
	held = t.wanted;
	for (n = 0; n < 200; n++)
		tick(&t, 100, 0.02);
	check(t.state == CONTROL_HELD);
	check(t.wanted < held / 10);
}

static void test_out_of_reach(void)
{
	struct target t;

	target_init(&t, 50, 2);
	for (int n = 0; n < 40; n++) {
		tick(&t, 4000, t.wanted);
		check(t.wanted <= 2 * 0.9);
		check(t.state != CONTROL_HELD);
	}
	check(t.state == CONTROL_INFEASIBLE);
	/* Within reach again. */
	for (int n = 0; n < 40; n++)
		tick(&t, 20, 0.1);
	check(t.state == CONTROL_HELD);
}

static void test_without_reads(void)
{
	const struct latencies reads = {};
	struct target t;

	target_init(&t, 5000, 1);
	target_tick(&t, &reads, false, 0, true, DT_S);
	check(t.state == CONTROL_IDLE && t.p95_us == 0);
	/* Nothing is done and something waits: that is no idle unit. */
	for (int n = 0; n < 8; n++)
		target_tick(&t, &reads, true, 0, true, DT_S);
	check(t.state == CONTROL_SETTLING && t.wanted > 0.1);
	target_tick(&t, &reads, true, 0, false, DT_S);
	check(t.state == CONTROL_UNWEIGHTED);
}

/* Whatever comes, what is wanted can be given. */
static void test_wild(void)
{
	unsigned int seed = 1;
	struct target t;

	target_init(&t, 1, 16);
	for (unsigned int n = 0; n < cases(100000); n++) {
		struct latencies reads = {};
		double dt_s = 0.001 + rand_r(&seed) % 5000 / 1e3;

		for (int i = rand_r(&seed) % 40; i > 0; i--)
			reads.count[rand_r(&seed) % LATENCY_BUCKETS] =
				rand_r(&seed);
		target_tick(&t, &reads, rand_r(&seed) % 2,
			    rand_r(&seed) % 100 / 5., true, dt_s);
		check(t.wanted >= 0.01 && t.wanted <= 16 * 0.9);
		check(t.p95_us >= 0 && t.p95_us < 1e8);
		check(t.state < _CONTROL_STATE_MAX);
	}
}

int main(void)
{
	test_found_and_given_back();
	test_out_of_reach();
	test_without_reads();
	test_wild();
	return 0;
}
