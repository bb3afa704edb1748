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
				    .cost = { COST }, .asks = true },
			/* Idle at first. */
			[GREEDY] = { .floor = 1e6, .weight = 100, .rate = 0,
				     .cost = { COST }, .importance = 2 },
		},
	};

	build(&m);
	control_set_reserves(m.c, 0, true);
	return m;
}

/* The first unit has a request at the disk for that part of the time. */
static void run_shallow(struct machine *m, double busy, double seconds)
{
	for (double t = 0; t < seconds; t += TICK_S) {
		feed(m);
		control_use(m->c, m->unit[FIRST].node, 0)->busy = busy;
		control_tick(m->c, TICK_S);
	}
}

static double reserve(const struct machine *m)
{
	return promise(m, &m->unit[FIRST])->reserve;
}

static void test_begins_when_short(void)
{
	struct machine m = shallow_machine();

	run_shallow(&m, 1, 5);
	check(reserve(&m) > 0.1 && reserve(&m) <= 0.9);
	/* Fast enough: it ends. */
	m.unit[FIRST].rate = 3 * FLOOR;
	run_shallow(&m, 1, 10);
	check(reserve(&m) == 0);
	control_free(m.c);
}

/* It thinks for most of the time: less than its share is all that it asks for. */
static void test_does_not_begin_when_idle(void)
{
	struct machine m = shallow_machine();

	run_shallow(&m, 0.01, 5);
	check(reserve(&m) == 0);
	control_free(m.c);
}

/* It has requests all of the time, and all that its weight entitles it to. */
static void test_does_not_begin_with_a_share(void)
{
	struct machine m = shallow_machine();

	m.unit[FIRST].rate = 0.9 * FLOOR;
	run_shallow(&m, 1, 5);
	check(reserve(&m) == 0);
	control_free(m.c);
}

static void test_ends_when_nothing_is_granted(void)
{
	struct machine m = shallow_machine();

	run_shallow(&m, 1, 5);
	check(reserve(&m) > 0);
	m.unit[FIRST].rate = 0;
	m.unit[GREEDY].rate = 500;
	m.unit[GREEDY].asks = true;
	run_shallow(&m, 1, 5);
	check(promise(&m, &m.unit[FIRST])->phi < 0.01);
	check(reserve(&m) == 0);
	control_free(m.c);
}

int main(void)
{
	test_begins_when_short();
	test_does_not_begin_when_idle();
	test_does_not_begin_with_a_share();
	test_ends_when_nothing_is_granted();
	return 0;
}
