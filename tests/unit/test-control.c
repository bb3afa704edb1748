/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Grants and states of the control law, for random plants and random or made-up samples.
 * The oracle is arithmetic: shares are floors times the costs that the samples were made
 * with. The numbers are those of the properties in Documentation/design.rst.
 */

#include <math.h>
#include <stdio.h>

#include "control-machine.h"

static double wild(void)
{
	static const double values[] = { 0,   1,    0.5, -1,	   1e300,
					 NAN, -NAN, 1e9, INFINITY, -INFINITY };

	return below(2) ? between(0, 2) : values[below(ARRAY_SIZE(values))];
}

/* 1, 2: anything may come in, only numbers in their ranges come out. */
static void test_wild(struct machine *m)
{
	build(m);
	for_each_leaf(l, m)
		control_set_reserves(m->c, l, below(2));
	for (int t = 0; t < 30; t++) {
		for_each_unit(u, m) {
			for_each_leaf(l, m)
				*control_use(m->c, u->node, l) =
					(struct control_use){
						.time = wild(),
						.backlog = wild(),
						.queued = wild(),
						.ios = below(2) ? below(1000)
								: UINT64_MAX,
						.pending = wild(),
						.busy = wild(),
					};
			if (!(u->floor > 0))
				continue;
			promise(m, u)->rate = wild() * u->floor;
			promise(m, u)->fraction = wild();
		}
		control_tick(m->c, !t || below(4) ? between(0.01, 5) : wild());
		check_ranges(m);
	}
}

/* 4: floors that fit are granted, within the entitlement, and never reported as infeasible. */
static void test_feasible(struct machine *m)
{
	scale_floors(m, 0.9);
	build(m);
	for (int t = 0; t < 20; t++) {
		run(m, TICK_S);
		for_each_floor(u, m)
			check(!declared(m, u));
	}
	check_ranges(m);
	for_each_floor(u, m) {
		check(promise(m, u)->phi == 1);
		for_each_leaf(l, m) {
			double due = need(u, l), sum = weights(m, l);

			check(allotted(m, u, l) >= due * 0.9999);
			/* A weight that is 3 % off, or rounded. */
			check(weight(m, u, l) / sum >= due * 0.97 - 1 / sum);
		}
	}
}

/* 2, 5: one importance, one leaf: all are cut alike, and the leaf is full. */
static void test_overload(struct machine *m)
{
	double phi = -1, sum, room = 0.98;

	m->leaves = 1;
	for_each_unit(u, m) {
		u->importance = 7;
		u->cost[0] = fmax(u->cost[0], 0.02 / fmax(u->floor, 1));
	}
	sum = needed(m, 0);
	if (sum < 1.01)
		return;
	build(m);
	run(m, 3);
	room -= 0.98 * 1e-4 * m->units;
	for_each_floor(u, m) {
		const struct control_promise *p = promise(m, u);

		if (phi < 0)
			phi = p->phi;
		near(p->phi, phi, 1e-4);
		check(p->bottleneck == 0);
		/* More for one would be less for the other. */
		check(p->phi >= 0.97 || p->gain == 1);
		/* Each gets less than 97 % of its floor. */
		check(declared(m, u) == (p->phi < 0.97));
	}
	near(phi, room / sum, 1e-3);
}

/*
 * Disks 0, 1, 2: a needs 0.8 of 0 and 1, b 0.8 of 1 and 2, c 0.3 of 2. All would be cut
 * to 0.61 and 0.89; but as b is cut because of disk 1, c can have all it needs of 2.
 */
static void test_rounds(void)
{
	struct machine m = {
		.leaves = 3,
		.units = 3,
		.unit = { { .floor = 1, .cost = { 0.8, 0.8, 0 } },
			  { .floor = 1, .cost = { 0, 0.8, 0.8 } },
			  { .floor = 1, .cost = { 0, 0, 0.3 } } },
	};

	for_each_unit(u, &m) {
		u->rate = 0.9;
		u->is_backlogged = true;
		u->weight = 100;
	}
	build(&m);
	run(&m, 3);
	near(control_promise(m.c, 0)->phi, 0.625, 0.01);
	near(control_promise(m.c, 1)->phi, 0.625, 0.01);
	check(control_promise(m.c, 0)->bottleneck == 1);
	check(control_promise(m.c, 2)->phi == 1);
	control_free(m.c);
}

/* The same machine once more, with something else about one unit. */
static void rebuild(struct machine *m)
{
	control_free(m->c);
	build(m);
	run(m, 3);
}

/*
 * 3: raising an importance above all never lowers what is granted; those that are
 * less important make no difference. 6: one part, on all leaves.
 */
static void test_importance(struct machine *m)
{
	struct unit *raised;
	double phi[MAX_UNITS];

	for_each_unit(u, m)
		u->floor *= between(0.2, 2);
	build(m);
	run(m, 3);
	for_each_floor(u, m) {
		double most;

		phi[u - m->unit] = promise(m, u)->phi;
		most = fmin(promise(m, u)->phi * 1.6 * 1.04, 2);
		for_each_leaf(l, m)
			check(allotted(m, u, l) <= need(u, l) * most + 1e-9);
	}

	for_each_floor(u, m)
		if (u->importance == 0)
			u->floor /= 2;
	rebuild(m);
	for_each_floor(u, m)
		if (u->importance > 0)
			near(promise(m, u)->phi, phi[u - m->unit], 1e-6);
	for_each_floor(u, m)
		if (u->importance == 0)
			u->floor *= 2;

	raised = &m->unit[below(m->units)];
	raised->importance = 99;
	rebuild(m);
	if (raised->floor > 0)
		check(promise(m, raised)->phi >= phi[raised - m->unit] - 1e-6);
}

/* 10: the share of a unit without demand is not corrected. */
static void test_gain(void)
{
	struct machine m = {
		.leaves = 1,
		.units = 2,
		.unit = { { .floor = 100,
			    .cost = { 0.005 },
			    .rate = 90,
			    .is_backlogged = true,
			    .weight = 100 },
			  { .cost = { 1 },
			    .rate = 0.5,
			    .is_backlogged = true,
			    .weight = 100 } },
	};
	struct control_promise *p;

	build(&m);
	/* Uses what it is entitled to, and lacks a tenth. */
	run(&m, 10);
	p = promise(&m, &m.unit[0]);
	check(p->gain > 1.1);
	m.unit[0].is_backlogged = false;
	run(&m, 10);
	near(p->gain, 1, 0.02);
	check(p->state == CONTROL_HELD);
	control_free(m.c);
}

/* 14: no unit uses the disk, and no cost is known. */
static void test_nothing(void)
{
	struct machine m = {
		.leaves = 2,
		.units = 2,
		.unit = { { .floor = 1e9, .cost = { 1 }, .weight = 100 },
			  { .cost = { 1, 1 }, .weight = 300 } },
	};

	build(&m);
	check(control_promise(m.c, 0)->state == CONTROL_UNKNOWN);
	run(&m, 20);
	check(control_promise(m.c, 0)->state == CONTROL_IDLE);
	for (uint32_t l = 0; l < 2; l++) {
		check(control_weight(m.c, 1, l) == 100);
		check(control_weight(m.c, 2, l) == 300);
	}
	control_tick(m.c, 0);
	control_tick(m.c, -1);
	control_tick(m.c, NAN);
	control_free(m.c);

	check(control_new(0, &m.c) == 0);
	control_tick(m.c, TICK_S);
	control_free(m.c);
}

/* 15: a verdict takes evidence, and time to be taken back. */
static void test_verdict(void)
{
	for (unsigned int n = 0; n < CASES / 10; n++) {
		double since = 0, good = 0, net = 0;
		bool was = false;
		struct machine m = {
			.leaves = 1,
			.units = 2,
			.unit = { { .floor = 100,
				    .cost = { 0.02 },
				    .is_backlogged = true,
				    .weight = 100 },
				  { .cost = { 1 },
				    .rate = 0.3,
				    .is_backlogged = true,
				    .weight = 100 } },
		};

		build(&m);
		for (int t = 0; t < 200; t++) {
			bool is;

			if (!below(6))
				m.unit[0].rate = below(2) ? 40 : 130;
			run(&m, TICK_S);
			is = declared(&m, &m.unit[0]);
			net = fmax(0, net + (m.unit[0].rate < 98 ? TICK_S
								 : -TICK_S));
			good = m.unit[0].rate >= 98 ? good + TICK_S : 0;
			since += TICK_S;
			if (is && !was)
				check(t >= 2);
			/* The smoothed rate rises a little later than the rate. */
			if (was && !is) {
				check(good >= 1.25);
				check(since >= 2);
			}
			if (is != was)
				since = 0;
			was = is;
		}
		m.unit[0].rate = 40;
		run(&m, 2);
		check(declared(&m, &m.unit[0]));
		control_free(m.c);
	}
}

/* A floor of 0.6 on two leaves between which traffic moves, beside one backlogged unit. */
static void wander(struct machine *m)
{
	*m = (struct machine){
		.leaves = 2,
		.units = 2,
		.unit = { { .floor = 60,
			    .cost = { 0.01, 0 },
			    .rate = 60,
			    .is_backlogged = true,
			    .weight = 100 },
			  { .cost = { 0.4, 1 },
			    .rate = 1,
			    .is_backlogged = true,
			    .weight = 1000 } },
	};
	m->unit[0].cost[1] = 1e-9;
	build(m);
	promise(m, &m->unit[0])->wandering = true;
	run(m, 10);
}

/* The share of unit 0 on leaf 1 by weight. */
static double entitled(const struct machine *m)
{
	return weight(m, &m->unit[0], 1) /
	       (weight(m, &m->unit[0], 1) + 1.0 * weight(m, &m->unit[1], 1));
}

/* A tick in which requests in flight wait on leaf 1, where the unit is hardly served. */
static void pile_up(struct machine *m, double rate, double in_flight)
{
	m->unit[0].rate = rate;
	feed(m);
	control_use(m->c, m->unit[0].node, 0)->pending = 32 - in_flight;
	control_use(m->c, m->unit[0].node, 1)->pending = in_flight;
	control_tick(m->c, TICK_S);
}

/* Where traffic moves, requests in flight have the share of a leaf that its use lacks. */
static void test_requests_pile_up(void)
{
	struct machine m;

	wander(&m);
	pile_up(&m, 40, 32);
	check(entitled(&m) >= 0.9 * 0.6);
	/* With half of them there, 0.1 of all may be chance. */
	pile_up(&m, 40, 16);
	check(entitled(&m) >= 0.4 * 0.6 && entitled(&m) < 0.9 * 0.6);
	/* The floor fits. */
	check(promise(&m, &m.unit[0])->phi == 1);
	control_free(m.c);
	/* A unit that has more than its floor without it has no need of it. */
	wander(&m);
	for (int t = 0; t < 20; t++)
		pile_up(&m, 80, 32);
	check(allotted(&m, &m.unit[0], 1) < 0.01);
	control_free(m.c);
}

/* 15: floors that fit again are not called infeasible, whatever the rate of one is. */
static void test_fits_again(void)
{
	for (double rate = 60; rate < 100; rate++) {
		struct machine m = {
			.leaves = 1,
			.units = 2,
			.unit = { { .floor = 100,
				    .cost = { 0.006 },
				    .rate = 75,
				    .is_backlogged = true,
				    .weight = 100 },
				  { .floor = 100,
				    .cost = { 0.006 },
				    .rate = 75,
				    .is_backlogged = true,
				    .weight = 100 } },
		};

		build(&m);
		run(&m, 10);
		check(declared(&m, &m.unit[0]));
		m.unit[0].rate = rate;
		m.unit[1].cost[0] = 0.002;
		m.unit[1].rate = 100;
		run(&m, 10);
		near(promise(&m, &m.unit[0])->phi, 1, 0.001);
		check(!declared(&m, &m.unit[0]));
		control_free(m.c);
	}
}

/* A floor far above the device changes no cost: the next floor is judged by it. */
static void test_floor_above_the_device(void)
{
	struct machine m = {
		.leaves = 1,
		.units = 1,
		.unit = { { .floor = 1e6,
			    .cost = { 0.01 },
			    .rate = 100,
			    .is_backlogged = true,
			    .weight = 100 } },
	};

	build(&m);
	run(&m, 10);
	near(control_rate_alone(m.c, m.unit[0].promise), 100, 0.01);
	near(control_cost(m.c, m.unit[0].promise, 0), 0.01, 0.01);
	near(control_needs(m.c, 0), 1, 0.01);
	/* Cheap requests of a later run are measured as soon as with any other floor. */
	m.unit[0].cost[0] = 1e-6;
	m.unit[0].rate = 5e5;
	control_free(m.c);
	build(&m);
	control_learnt(m.c, m.unit[0].promise, 0, 0.01);
	near(control_rate_alone(m.c, m.unit[0].promise), 100, 0.01);
	run(&m, 5);
	near(control_cost(m.c, m.unit[0].promise, 0), 1e-6, 0.05);
	control_free(m.c);
}

int main(void)
{
	each_machine(CASES, test_wild);
	each_machine(CASES, test_feasible);
	each_machine(CASES, test_overload);
	test_rounds();
	each_machine(CASES, test_importance);
	test_gain();
	test_nothing();
	test_verdict();
	test_requests_pile_up();
	test_fits_again();
	test_floor_above_the_device();
	return 0;
}
