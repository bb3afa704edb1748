/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "control-machine.h"

static uint64_t state = 88172645463325252ULL;

uint64_t below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

double between(double low, double high)
{
	return low + (high - low) * below(1 << 30) / (1 << 30);
}

void near(double a, double b, double part)
{
	if (fabs(a - b) > part * fmax(fabs(b), 1e-12))
		fprintf(stderr, "%.9g is not near %.9g\n", a, b);
	check(fabs(a - b) <= part * fmax(fabs(b), 1e-12));
}

void each_machine(unsigned int n, void (*test)(struct machine *m))
{
	while (n--) {
		struct machine m;

		random_machine(&m);
		test(&m);
		control_free(m.c);
	}
}

void build(struct machine *m)
{
	check(control_new(m->leaves, &m->c) == 0);
	for_each_unit(u, m) {
		struct control_promise p = { .floor = u->floor,
					     .importance = u->importance };
		uint32_t leaves[MAX_LEAVES], n = 0;

		check(control_add_node(m->c, 0, &u->node) == 0);
		for_each_leaf(l, m) {
			control_set_nominal(m->c, u->node, l, u->weight);
			if (u->cost[l] > 0)
				leaves[n++] = l;
		}
		p.node = u->node;
		if (u->floor > 0)
			check(control_add_promise(m->c, &p, leaves, n,
						  &u->promise) == 0);
	}
}

void feed(struct machine *m)
{
	for_each_unit(u, m)
		for_each_leaf(l, m)
			*control_use(m->c, u->node, l) = (struct control_use){
				.time = u->rate * u->cost[l],
				.backlog = u->is_backlogged && u->cost[l] > 0
						   ? 1
						   : 0,
				.queued = u->is_backlogged && u->cost[l] > 0
						  ? 1
						  : 0,
				.ios = u->rate > 0 ? 100 : 0,
			};
	for_each_floor(u, m) {
		promise(m, u)->rate = u->rate;
		promise(m, u)->fraction = 1;
	}
}

void run(struct machine *m, double seconds)
{
	for (double t = 0; t < seconds; t += TICK_S) {
		feed(m);
		control_tick(m->c, TICK_S);
	}
}

double need(const struct unit *u, uint32_t l)
{
	return u->floor * u->cost[l];
}

double needed(const struct machine *m, uint32_t l)
{
	double sum = 0;

	for_each_unit(u, m)
		sum += need(u, l);
	return sum;
}

void random_machine(struct machine *m)
{
	*m = (struct machine){
		.leaves = 1 + below(MAX_LEAVES),
		.units = 2 + below(MAX_UNITS - 2),
	};
	for_each_unit(u, m) {
		double unit = pow(10, between(0, 8));

		u->weight = below(3) ? 100 : 1 + below(10000);
		u->is_backlogged = true;
		u->importance = below(3);
		if (u == m->unit) {
			for_each_leaf(l, m)
				u->cost[l] = between(0.2, 1);
			u->rate = 0.5;
			continue;
		}
		u->floor = below(2) ? unit : 0;
		for_each_leaf(l, m)
			if (below(2))
				u->cost[l] = between(0.01, 0.5) / unit;
		u->cost[below(m->leaves)] = between(0.01, 0.5) / unit;
		u->rate = unit * between(0.05, 0.5);
	}
}

void scale_floors(struct machine *m, double most)
{
	double worst = 0;

	for_each_leaf(l, m)
		worst = fmax(worst, needed(m, l));
	for_each_unit(u, m) {
		u->floor *= fmin(most / worst, 1);
		u->rate = u->floor ?: u->rate;
	}
}

double weights(const struct machine *m, uint32_t l)
{
	double sum = 0;

	for_each_unit(u, m)
		if (u->is_backlogged && u->cost[l] > 0)
			sum += weight(m, u, l);
	return sum;
}

void check_ranges(const struct machine *m)
{
	for_each_leaf(l, m) {
		double sum = 0;

		for_each_unit(u, m)
			check(weight(m, u, l) >= 1 && weight(m, u, l) <= 10000);
		for_each_floor(u, m) {
			sum += allotted(m, u, l);
			check(control_need(m->c, u->promise, l) >= 0);
			check(control_need(m->c, u->promise, l) <= 1);
			check(control_cost(m->c, u->promise, l) >= 0);
		}
		check(sum >= 0 && sum <= 1 + 1e-6);
	}
	for_each_floor(u, m) {
		const struct control_promise *p = promise(m, u);

		check(p->phi >= 0 && p->phi <= 1);
		check(p->gain >= 1 && p->gain <= 1.6);
		check(p->reserve >= 0 && p->reserve <= 0.9);
		check(p->backlog >= 0 && p->backlog <= 1);
		check(p->used >= 0 && p->used <= 2);
		check(p->state > CONTROL_UNKNOWN &&
		      p->state < _CONTROL_STATE_MAX);
	}
}
