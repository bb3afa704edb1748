/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The weights of the control law, for random plants. The oracle is arithmetic: an
 * entitlement is a weight over a sum of weights. The numbers are those of the
 * properties in Documentation/design.rst.
 */

#include <math.h>
#include <stdio.h>

#include "control-machine.h"

/* 7, 8: an idle promise costs nobody anything, and is ready to come back. */
static void test_idle(void)
{
	for (unsigned int n = 0; n < CASES; n++) {
		double before[MAX_UNITS][MAX_LEAVES];
		struct machine m;
		struct unit *u;

		random_machine(&m);
		u = &m.unit[1];
		u->floor = u->floor ?: 1e6;
		u->cost[0] = between(0.05, 0.8) / u->floor;
		scale_floors(&m, 0.85);
		build(&m);
		run(&m, 3);
		u->asks = false;
		u->rate = 0;
		run(&m, 15);
		check(control_promise(m.c, u->promise)->state == CONTROL_IDLE);
		for (uint32_t l = 0; l < m.leaves; l++) {
			double w = control_weight(m.c, u->node, l);
			double others = weights(&m, l);
			double x = fmin(need(u, l) * 1.04, 0.9);

			for (uint32_t i = 0; i < m.units; i++)
				before[i][l] =
					control_weight(m.c, m.unit[i].node, l);
			before[1][l] = others;
			if (u->cost[l] > 0 && others > 0)
				check(w / (w + others) >=
				      x * 0.96 - 2 / others);
			if (u->cost[l] > 0 && others > 0 && w > u->weight)
				check(w / (w + others) <= 0.91);
		}
		u->floor = 0;
		control_free(m.c);
		build(&m);
		run(&m, 18);
		for (uint32_t l = 0; l < m.leaves; l++)
			for (uint32_t i = 0; i < m.units; i++) {
				double others = weights(&m, l);
				double w =
					control_weight(m.c, m.unit[i].node, l);

				/* Dead bands, and rounding of small weights. */
				if (i != 1 && others > 0 && w > 30 &&
				    before[i][l] > 30)
					near(before[i][l] / before[1][l],
					     w / others, 0.08);
			}
		control_free(m.c);
	}
}

/* 9, 13: without a promise: the nominal weight, or that ratio; nobody starves. */
static void test_others(void)
{
	int shrunk = 0;

	for (unsigned int n = 0; n < CASES; n++) {
		struct machine m;

		random_machine(&m);
		scale_floors(&m, below(2) ? 0.9 : 5);
		build(&m);
		run(&m, 5);
		for (uint32_t l = 0; l < m.leaves; l++) {
			double free = 0, nominal = 0, largest = 0, scale;

			for (uint32_t i = 0; i < m.units; i++) {
				const struct unit *u = &m.unit[i];
				double w = control_weight(m.c, u->node, l);

				if (u->cost[l] > 0)
					nominal += u->weight;
				if (u->floor > 0)
					largest = fmax(largest, w);
				else if (u->cost[l] > 0)
					free += w;
			}
			scale = control_weight(m.c, m.unit[0].node, l) /
				(double)m.unit[0].weight;
			check(scale <= 1);
			shrunk += scale < 1;
			/* Only if something did not fit, and no more than needed. */
			check(scale == 1 || largest > 10000 / 1.35);
			for (uint32_t i = 0; i < m.units; i++) {
				const struct unit *u = &m.unit[i];
				double w = control_weight(m.c, u->node, l);

				if (u->floor > 0 && u->cost[l] > 0)
					continue;
				check(scale < 1 || w == u->weight);
				check(w == 1 ||
				      fabs(w - u->weight * scale) <=
					      0.5 + u->weight * scale * 0.5 /
							      (scale *
							       m.unit[0].weight));
			}
			/* 2 % is left, by nominal weights; 1.5 is rounded to 1. */
			check(free / weights(&m, l) >=
			      fmin(0.011 * free / scale / nominal, 0.011));
		}
		control_free(m.c);
	}
	check(shrunk > (int)CASES / 10);
}

/* 11: units of measurement do not matter, nor does order. */
static void test_scale(void)
{
	for (unsigned int n = 0; n < CASES; n++) {
		struct machine a, b;

		random_machine(&a);
		b = a;
		for (uint32_t i = 0; i < b.units; i++) {
			struct unit *u = &b.unit[i];

			*u = a.unit[a.units - 1 - i];
			for (uint32_t l = 0; l < a.leaves; l++)
				u->cost[l] = a.unit[a.units - 1 - i]
						     .cost[a.leaves - 1 - l] *
					     1024;
			u->floor /= 1024;
			u->rate /= 1024;
		}
		build(&a);
		build(&b);
		run(&a, 4);
		run(&b, 4);
		for (uint32_t i = 0; i < a.units; i++)
			for (uint32_t l = 0; l < a.leaves; l++) {
				uint32_t v =
					control_weight(a.c, a.unit[i].node, l);
				uint32_t w = control_weight(
					b.c, b.unit[a.units - 1 - i].node,
					a.leaves - 1 - l);

				/* lambda is found to a millionth. */
				check(v > w ? v - w <= 1 + v / 1000
					    : w - v <= 1 + v / 1000);
			}
		control_free(a.c);
		control_free(b.c);
	}
}

/* 12: what does not change makes no writes. */
static void test_constant(void)
{
	for (unsigned int n = 0; n < CASES; n++) {
		uint32_t w[MAX_UNITS][MAX_LEAVES];
		struct machine m;

		random_machine(&m);
		/* All have what they were promised: there is nothing to correct. */
		for (uint32_t i = 0; i < m.units; i++)
			if (m.unit[i].floor > 0)
				m.unit[i].rate = m.unit[i].floor;
		build(&m);
		run(&m, 5);
		for (uint32_t i = 0; i < m.units; i++)
			for (uint32_t l = 0; l < m.leaves; l++)
				w[i][l] =
					control_weight(m.c, m.unit[i].node, l);
		for (int t = 0; t < 60; t++) {
			run(&m, TICK_S);
			for (uint32_t i = 0; i < m.units; i++)
				for (uint32_t l = 0; l < m.leaves; l++)
					check(control_weight(m.c,
							     m.unit[i].node,
							     l) == w[i][l]);
		}
		control_free(m.c);
	}
}

int main(void)
{
	test_idle();
	test_others();
	test_scale();
	test_constant();
	return 0;
}
