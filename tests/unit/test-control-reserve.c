/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Time that is reserved for a unit that cannot use its share: when it begins, and when it
 * ends. The unit has one request on its way and is served for a hundredth of the time,
 * whatever its weight, beside a unit with a backlog.
 */

#include <math.h>

#include "control-machine.h"

#define FLOOR 100.0
/* Device time of a unit of the rate. */
#define COST 0.001

enum { FIRST, RIVAL, GREEDY, UNITS };

static struct machine shallow_machine(void)
{
	struct machine m = {
		.leaves = 1,
		.units = UNITS,
		.unit = {
			[FIRST] = { .floor = FLOOR, .weight = 100, .rate = 10,
				    .cost = { COST }, .importance = 1 },
			[RIVAL] = { .weight = 1000, .rate = 900,
				    .cost = { COST }, .is_backlogged = true },
			/* Idle at first. */
			[GREEDY] = { .floor = 1e6, .weight = 100, .rate = 0,
				     .cost = { COST }, .importance = 2 },
		},
	};

	build(&m);
	control_set_reserves(m.c, 0, true);
	return m;
}

/* A unit has one request at the disk for that part of the time. */
static void feed_shallow(const struct machine *m, uint32_t leaf, double busy)
{
	struct control_use *use = control_use(m->c, m->unit[FIRST].node, leaf);

	use->busy = busy;
	use->pending = busy;
}

static void run_shallow(struct machine *m, double busy, double seconds)
{
	for (double t = 0; t < seconds; t += TICK_S) {
		feed(m);
		feed_shallow(m, 0, busy);
		control_tick(m->c, TICK_S);
	}
}

static double reserve(const struct machine *m)
{
	return promise(m, &m->unit[FIRST])->reserve;
}

static void test_begins_when_short(struct machine *m)
{
	run_shallow(m, 1, 5);
	check(reserve(m) > 0.1 && reserve(m) <= 0.9);
	/* Fast enough: it ends. */
	m->unit[FIRST].rate = 3 * FLOOR;
	run_shallow(m, 1, 10);
	check(reserve(m) == 0);
}

/* It thinks for most of the time: less than its share is all that it is_backlogged for. */
static void test_does_not_begin_when_idle(struct machine *m)
{
	run_shallow(m, 0.01, 5);
	check(reserve(m) == 0);
}

/* It has requests all of the time, and uses its entitlement: a weight comes first. */
static void test_begins_later_with_a_share(struct machine *m)
{
	m->unit[FIRST].rate = 0.9 * FLOOR;
	run_shallow(m, 1, 1.5);
	check(reserve(m) == 0);
	/* But it misses its floor for long. */
	run_shallow(m, 1, 5);
	check(reserve(m) > 0);
}

static void test_does_not_begin_when_held(struct machine *m)
{
	m->unit[FIRST].rate = 1.1 * FLOOR;
	run_shallow(m, 1, 10);
	check(reserve(m) == 0);
}

static void test_ends_when_nothing_is_granted(struct machine *m)
{
	run_shallow(m, 1, 5);
	check(reserve(m) > 0);
	m->unit[FIRST].rate = 0;
	m->unit[GREEDY].rate = 500;
	m->unit[GREEDY].is_backlogged = true;
	run_shallow(m, 1, 5);
	check(promise(m, &m->unit[FIRST])->phi < 0.01);
	check(reserve(m) == 0);
}

/* Its requests take as long with any reserve: its demand is less than its floor. */
static void test_released_when_limited(struct machine *m)
{
	run_shallow(m, 1, 2);
	check(reserve(m) > 0.85);
	check(weight(m, &m->unit[FIRST], 0) > 5000);
	run_shallow(m, 1, 30);
	near(reserve(m), 0.02, 0.3);
	check(promise(m, &m->unit[FIRST])->state == CONTROL_LIMITED);
	check(weight(m, &m->unit[FIRST], 0) < 500);
}

/* It has a request for a fifth of the time. */
static void test_released_when_it_rests(struct machine *m)
{
	run_shallow(m, 1, 1.5);
	check(reserve(m) > 0.1);
	run_shallow(m, 0.2, 30);
	near(reserve(m), 0.02, 0.3);
}

/* Its rate follows the reserve, though the largest one is not enough. */
static void test_kept_when_needed(struct machine *m)
{
	double sum = 0, seconds = 60;

	run_shallow(m, 1, 2);
	for (double t = 0; t < seconds; t += TICK_S) {
		m->unit[FIRST].rate = 0.9 * FLOOR * reserve(m);
		feed(m);
		feed_shallow(m, 0, 1);
		control_use(m->c, m->unit[FIRST].node, 0)->ios =
			(uint64_t)m->unit[FIRST].rate;
		control_tick(m->c, TICK_S);
		sum += reserve(m) * TICK_S;
	}
	check(promise(m, &m->unit[FIRST])->state == CONTROL_LIMITED);
	check(sum > 0.96 * 0.9 * seconds);
}

/* A database with a floor for its reads and one for its writes: windows serve both. */
static void test_floors_of_a_unit_share_a_reserve(struct machine *m)
{
	uint32_t node = m->unit[FIRST].node, leaf = 0, second;
	struct control_promise second_promise = {
		.node = node, .floor = FLOOR, .importance = 1, .traffic = 1000
	};

	check(control_add_promise(m->c, &second_promise, &leaf, 1, &second) ==
	      0);
	for (double t = 0; t < 3; t += TICK_S) {
		feed(m);
		feed_shallow(m, 0, 1);
		promise(m, &m->unit[FIRST])->fraction = 0.5;
		control_promise(m->c, second)->fraction = 0.5;
		control_promise(m->c, second)->rate = m->unit[FIRST].rate;
		control_tick(m->c, TICK_S);
	}
	check(reserve(m) > 0.7 && control_promise(m->c, second)->reserve > 0.7);
	check(promise(m, &m->unit[FIRST])->phi > 0.97);
	check(control_promise(m->c, second)->phi > 0.97);
	check(control_reserve(m->c, node, 0) <= 900);
}

/* Each of a unit's devices has its own reserve. */
static void test_floors_on_two_leaves(struct machine *m)
{
	uint32_t node, leaf = 1, second;
	struct control_promise second_promise = { .floor = FLOOR,
						  .importance = 1,
						  .traffic = 1000 };

	control_free(m->c);
	m->leaves = 2;
	m->unit[RIVAL].cost[1] = COST;
	build(m);
	node = second_promise.node = m->unit[FIRST].node;
	control_set_reserves(m->c, 0, true);
	control_set_reserves(m->c, 1, true);
	check(control_add_promise(m->c, &second_promise, &leaf, 1, &second) ==
	      0);
	for (double t = 0; t < 3; t += TICK_S) {
		feed(m);
		feed_shallow(m, 0, 1);
		*control_use(m->c, node, 1) = *control_use(m->c, node, 0);
		control_promise(m->c, second)->fraction = 1;
		control_promise(m->c, second)->rate = m->unit[FIRST].rate;
		control_tick(m->c, TICK_S);
	}
	for_each_leaf(l, m) {
		check(control_reserve(m->c, node, l) > 700);
		check(control_needed(m->c, l) > 0.7);
	}
}

/* Costs of the scheduler that are twice too large make no floor infeasible. */
static void test_a_leaf_is_charged_twice(struct machine *m)
{
	run_shallow(m, 1, 3);
	check(reserve(m) > 0);
	/* 0.6 of the time, and 0.4. */
	m->unit[FIRST].rate = 0.9 * FLOOR;
	m->unit[FIRST].cost[0] = 2 * 0.6 / m->unit[FIRST].rate;
	m->unit[RIVAL].cost[0] = 2 * 0.4 / m->unit[RIVAL].rate;
	for (double t = 0; t < 15; t += TICK_S) {
		*control_use(m->c, 0, 0) = (struct control_use){ .time = 2,
								 .backlog = 1,
								 .queued = 1 };
		run_shallow(m, 1, TICK_S);
	}
	check(reserve(m) > 0);
	/* The floor needs more than it has: 0.6 of the time for 0.9 of its rate. */
	near(control_need(m->c, m->unit[FIRST].promise, 0), 0.6 / 0.9, 0.05);
	check(!declared(m, &m->unit[FIRST]));
}

int main(void)
{
	static void (*const tests[])(
		struct machine *m) = { test_begins_when_short,
				       test_does_not_begin_when_idle,
				       test_begins_later_with_a_share,
				       test_does_not_begin_when_held,
				       test_ends_when_nothing_is_granted,
				       test_released_when_limited,
				       test_released_when_it_rests,
				       test_kept_when_needed,
				       test_floors_of_a_unit_share_a_reserve,
				       test_floors_on_two_leaves,
				       test_a_leaf_is_charged_twice };

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct machine m = shallow_machine();

		tests[i](&m);
		control_free(m.c);
	}
	return 0;
}
