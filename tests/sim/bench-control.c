// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: bench-control [TICKS]
 *
 * What a step of the daemon's control law costs: units in slices of a hundred, half of
 * them with a floor on two leaves each, of three importances; all of them use their
 * leaves, at rates that move, and the floors do not quite fit.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "control.h"
#include "random.h"

#define SLICE 100

static u64 seed = 1;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double part(void)
{
	return random_below(&seed, 1 << 20) / (double)(1 << 20);
}

static void build(struct control *c, u32 units, u32 leaves)
{
	u32 slice = 0, unit, i;
	int r;

	for (i = 0; i < units; i++) {
		struct control_promise p = {
			.floor = 1e6,
			.importance = i % 3,
		};
		u32 on[] = { i % leaves, (i + 1) % leaves };

		if (i % SLICE == 0) {
			r = control_add_node(c, 0, &slice);
			assert(!r);
		}
		r = control_add_node(c, slice, &unit);
		assert(!r);
		p.node = unit;
		if (i % 2) {
			r = control_add_promise(c, &p, on, leaves > 1 ? 2 : 1,
						NULL);
			assert(!r);
		}
	}
}

static void feed(struct control *c, u32 units, u32 leaves)
{
	u32 nodes = units + (units + SLICE - 1) / SLICE + 1, n, l, p;

	for (n = 0; n < nodes; n++)
		for (l = 0; l < leaves; l++) {
			bool slice = n % (SLICE + 1) == 1;
			double time = part() / units * (slice ? SLICE : 2);

			*control_use(c, n, l) = (struct control_use){
				.time = n ? time : 1,
				.backlog = part(),
				.ios = 10,
				.pending = 4,
			};
		}
	for (p = 0; p < units / 2; p++) {
		control_promise(c, p)->rate = 1e6 * (0.5 + part());
		control_promise(c, p)->fraction = 1;
	}
}

static void measure(u32 units, u32 leaves, u32 ticks)
{
	double sum = 0, worst = 0;
	struct control *c;
	u32 t;
	int r;

	r = control_new(leaves, &c);
	assert(!r);
	build(c, units, leaves);
	for (t = 0; t < ticks; t++) {
		double begin_s, took_s;

		feed(c, units, leaves);
		begin_s = now_s();
		control_tick(c, 0.25);
		took_s = now_s() - begin_s;
		sum += took_s;
		worst = took_s > worst ? took_s : worst;
	}
	printf("%6u units on %2u leaves: %8.3f ms a step, %8.3f ms the longest\n",
	       units, leaves, sum / ticks * 1e3, worst * 1e3);
	control_free(c);
}

int main(int argc, char **argv)
{
	u32 ticks = argc > 1 ? strtoul(argv[1], NULL, 10) : 40;

	measure(1000, 1, ticks);
	measure(1000, 16, ticks);
	measure(10000, 16, ticks);
	measure(10000, 64, ticks);
	return 0;
}
