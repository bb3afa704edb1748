/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The weights of the control law, for random plants. The oracle is arithmetic: an
 * entitlement is a weight over a sum of weights. The numbers are those of the
 * properties in Documentation/design.rst.
 */

#include <math.h>
#include <stdio.h>

#include "control-machine.h"

/* 7, 8: an idle promise takes nothing from others, and is ready to come back. */
static void test_idle(struct machine *m)
{
	double before[MAX_UNITS][MAX_LEAVES];
	struct unit *idle = &m->unit[1];

	idle->floor = idle->floor ?: 1e6;
	idle->cost[0] = between(0.05, 0.8) / idle->floor;
	scale_floors(m, 0.85);
	build(m);
	run(m, 3);
	idle->is_backlogged = false;
	idle->rate = 0;
	run(m, 15);
	check(promise(m, idle)->state == CONTROL_IDLE);
	for_each_leaf(l, m) {
		double w = weight(m, idle, l);
		double others = weights(m, l);
		double x = fmin(need(idle, l) * 1.04, 0.9);

		for_each_unit(u, m)
			before[u - m->unit][l] = weight(m, u, l);
		before[1][l] = others;
		if (!(idle->cost[l] > 0 && others > 0))
			continue;
		check(w / (w + others) >= x * 0.96 - 2 / others);
		if (w > idle->weight)
			check(w / (w + others) <= 0.91);
	}
	idle->floor = 0;
	control_free(m->c);
	build(m);
	run(m, 18);
	for_each_leaf(l, m) {
		double others = weights(m, l);

		for_each_unit(u, m) {
			double w = weight(m, u, l),
			       was = before[u - m->unit][l];

			/* Dead bands, and rounding of small weights. */
			if (u != idle && others > 0 && w > 30 && was > 30)
				near(was / before[1][l], w / others, 0.08);
		}
	}
}

static unsigned int shrunk;

/* 9, 13: cgroups without a promise have nominal weights, or their ratio; none starves. */
static void test_others(struct machine *m)
{
	const struct unit *first = &m->unit[0];

	scale_floors(m, below(2) ? 0.9 : 5);
	build(m);
	run(m, 5);
	for_each_leaf(l, m) {
		double free = 0, nominal = 0, largest = 0, scale;

		for_each_unit(u, m) {
			if (u->cost[l] > 0)
				nominal += u->weight;
			if (u->floor > 0)
				largest = fmax(largest, weight(m, u, l));
			else if (u->cost[l] > 0)
				free += weight(m, u, l);
		}
		scale = weight(m, first, l) / (double)first->weight;
		check(scale <= 1);
		shrunk += scale < 1;
		/* Only if something did not fit, and no more than needed. */
		check(scale == 1 || largest > 10000 / 1.35);
		for_each_unit(u, m) {
			double w = weight(m, u, l), wanted = u->weight * scale;

			if (u->floor > 0 && u->cost[l] > 0)
				continue;
			check(scale < 1 || w == u->weight);
			check(w == 1 ||
			      fabs(w - wanted) <=
				      0.5 + wanted * 0.5 /
						      (scale * first->weight));
		}
		/* 2 % is left, by nominal weights; 1.5 is rounded to 1. */
		check(free / weights(m, l) >=
		      fmin(0.011 * free / scale / nominal, 0.011));
	}
}

/* 11: units of measurement do not matter, nor does order. */
static void test_scale(struct machine *m)
{
	struct machine other = *m;

	for_each_unit(u, &other) {
		const struct unit *same =
			&m->unit[&other.unit[m->units - 1] - u];

		*u = *same;
		for_each_leaf(l, m)
			u->cost[l] = same->cost[m->leaves - 1 - l] * 1024;
		u->floor /= 1024;
		u->rate /= 1024;
	}
	build(m);
	build(&other);
	run(m, 4);
	run(&other, 4);
	for_each_unit(u, &other)
		for_each_leaf(l, m) {
			const struct unit *same =
				&m->unit[&other.unit[m->units - 1] - u];
			uint32_t v = weight(m, same, m->leaves - 1 - l);
			uint32_t w = weight(&other, u, l);

			/* lambda is found to a millionth. */
			check(v > w ? v - w <= 1 + v / 1000
				    : w - v <= 1 + v / 1000);
		}
	control_free(other.c);
}

/* 12: without changes there are no writes. */
static void test_constant(struct machine *m)
{
	uint32_t w[MAX_UNITS][MAX_LEAVES];

	/* All have what they were promised: there is nothing to correct. */
	for_each_floor(u, m)
		u->rate = u->floor;
	build(m);
	run(m, 5);
	for_each_unit(u, m)
		for_each_leaf(l, m)
			w[u - m->unit][l] = weight(m, u, l);
	for (int t = 0; t < 60; t++) {
		run(m, TICK_S);
		for_each_unit(u, m)
			for_each_leaf(l, m)
				check(weight(m, u, l) == w[u - m->unit][l]);
	}
}

int main(void)
{
	each_machine(CASES, test_idle);
	each_machine(CASES, test_others);
	check(shrunk > CASES / 10);
	each_machine(CASES, test_scale);
	each_machine(CASES, test_constant);
	return 0;
}
