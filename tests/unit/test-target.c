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

/* 100 reads of about equal latency, which depends on the share of the unit. */
static void tick(struct target *t, double us, double time)
{
	struct histogram reads = {};

	reads.count[histogram_bucket(us * 1000)] = 100;
	target_tick(t, &reads, false, time, CONTROL_UNKNOWN, DT_S);
}

static void init(struct target *t, uint64_t goal_us, size_t n_leaves)
{
	target_init(t, goal_us, 0.95, LATENCY_READ, n_leaves);
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

	init(&t, 5000, 1);
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

	init(&t, 50, 2);
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

/* All requests are on one of four leaves. */
static void test_most_of_the_busiest_leaf(void)
{
	struct target t;

	init(&t, 50, 4);
	for (int n = 0; n < 40; n++)
		tick(&t, 4000, t.wanted);
	check(t.wanted == 4 * 0.9);
	target_limit(&t, 1);
	check(t.wanted == 0.9);
	for (int n = 0; n < 40; n++) {
		tick(&t, 4000, 0.9);
		check(t.wanted <= 0.9);
	}
	check(t.state == CONTROL_INFEASIBLE);
}

static void test_without_reads(void)
{
	const struct histogram reads = {};
	struct target t;

	init(&t, 5000, 1);
	target_tick(&t, &reads, false, 0, CONTROL_UNKNOWN, DT_S);
	check(t.state == CONTROL_IDLE && t.latency_us == 0);
	/* Nothing is done and something waits: that is no idle unit. */
	for (int n = 0; n < 8; n++)
		target_tick(&t, &reads, true, 0, CONTROL_UNKNOWN, DT_S);
	check(t.state == CONTROL_SETTLING && t.wanted > 0.1);
	target_tick(&t, &reads, true, 0, CONTROL_UNWEIGHTED, DT_S);
	check(t.state == CONTROL_UNWEIGHTED);
}

/* Ticks until a target has a verdict about @per_tick requests, each faster than it. */
static int ticks_until_held(double percentile, uint32_t per_tick)
{
	struct histogram new = {};
	struct target t;
	int n = 0;

	new.count[histogram_bucket(1000000)] = per_tick;
	target_init(&t, 5000, percentile, LATENCY_FSYNC, 1);
	do
		target_tick(&t, &new, false, 0.1, CONTROL_UNKNOWN, DT_S);
	while (t.state != CONTROL_HELD && ++n < 1000);
	return n;
}

/* A percentile needs more requests the higher it is, and waits for them. */
static void test_percentiles(void)
{
	check(ticks_until_held(0.5, 100) == 0);
	check(ticks_until_held(0.95, 100) == 0);
	/* P99 needs 100 requests, P99.9 needs 1000. */
	check(ticks_until_held(0.99, 50) == 2);
	check(ticks_until_held(0.999, 100) >= 9);
	check(ticks_until_held(0.999, 100) < 20);
	check(ticks_until_held(0.99, 10) < 20);
}

/* The percentile that was chosen decides, not another one. */
static void test_chosen(void)
{
	struct histogram new = {};
	struct target p95, p99;

	/* 97 of 100 are fast. */
	new.count[histogram_bucket(1000000)] = 97;
	new.count[histogram_bucket(20000000)] = 3;
	target_init(&p95, 5000, 0.95, LATENCY_WRITE, 1);
	target_init(&p99, 5000, 0.99, LATENCY_WRITE, 1);
	for (int n = 0; n < 100; n++) {
		target_tick(&p95, &new, false, 0.1, CONTROL_UNKNOWN, DT_S);
		target_tick(&p99, &new, false, 0.1, CONTROL_UNKNOWN, DT_S);
	}
	check(p95.state == CONTROL_HELD && p95.latency_us < 1200);
	check(p99.state == CONTROL_INFEASIBLE && p99.latency_us > 16000);
	check(histogram_sum(&p99.total) == 100 * 100);
}

/* A target that elevators enforce is not searched for, and infeasible if they report it so. */
static void test_enforced(void)
{
	struct target t;

	init(&t, 5000, 1);
	t.is_enforced = true;
	for (int n = 0; n < 8; n++)
		tick(&t, 4000, 0.1);
	check(t.state == CONTROL_HELD && t.wanted == 0.01);
	for (int n = 0; n < 12; n++)
		tick(&t, 20000, 0.1);
	check(t.state == CONTROL_SETTLING && t.wanted == 0.01);
	t.is_unreachable = true;
	for (int n = 0; n < 12; n++)
		tick(&t, 20000, 0.1);
	check(t.state == CONTROL_INFEASIBLE && t.wanted == 0.01);
	/* Nor does a target that is never met stay without a verdict. */
	init(&t, 5000, 1);
	t.is_enforced = true;
	for (int n = 0; n < 60; n++)
		tick(&t, 20000, 0.1);
	check(t.state == CONTROL_INFEASIBLE && t.wanted == 0.01);
}

/* With any samples, the requested share is within bounds. */
static void test_wild(void)
{
	unsigned int seed = 1;
	struct target t;

	init(&t, 1, 16);
	for (unsigned int n = 0; n < cases(100000); n++) {
		struct histogram reads = {};
		double dt_s = 0.001 + rand_r(&seed) % 5000 / 1e3;

		for (int i = rand_r(&seed) % 40; i > 0; i--)
			reads.count[rand_r(&seed) % HISTOGRAM_BUCKETS] =
				rand_r(&seed);
		target_tick(&t, &reads, rand_r(&seed) % 2,
			    rand_r(&seed) % 100 / 5., CONTROL_UNKNOWN, dt_s);
		check(t.wanted >= 0.01 && t.wanted <= 16 * 0.9);
		check(t.latency_us >= 0 && t.latency_us < 1e8);
		check(t.state < _CONTROL_STATE_MAX);
	}
}

int main(void)
{
	test_found_and_given_back();
	test_out_of_reach();
	test_most_of_the_busiest_leaf();
	test_without_reads();
	test_percentiles();
	test_chosen();
	test_enforced();
	test_wild();
	return 0;
}
