/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A tick skips cgroups that have used nothing for long. The weights do not depend on that:
 * two plants have the same cgroups, promises and uses, one gets the uses of all cgroups in each
 * tick, the other one only those of cgroups that are not dormant, and all weights of both are
 * equal after each tick, to the last digit.
 */

#include <stdio.h>

#include "control-machine.h"

#define LEAVES 3U
#define SLICES 3U
#define UNITS 24U
#define NODES (1U + SLICES + UNITS)
#define PROMISES 4U
#define TICKS 6000U
#define PLANTS cases(10)

/**
 * struct world - the uses of one tick, which are the input of both plants
 * @until: tick at which a unit begins or stops
 */
struct world {
	struct control_use use[NODES][LEAVES];
	uint32_t nominal[NODES];
	bool busy[UNITS];
	uint32_t until[UNITS];
};

static struct control *plant_of(const struct control_promise *promises)
{
	struct control *c;

	check(control_new(LEAVES, &c) == 0);
	for (uint32_t i = 0; i < SLICES; i++)
		check(control_add_node(c, 0, NULL) == 0);
	for (uint32_t i = 0; i < UNITS; i++)
		check(control_add_node(c, 1 + i % SLICES, NULL) == 0);
	for (uint32_t i = 0; i < PROMISES; i++) {
		uint32_t leaf = i % LEAVES;

		check(control_add_promise(c, &promises[i], &leaf, 1, NULL) ==
		      0);
	}
	return c;
}

/* Units come for some ticks and stay away for up to 100 s. */
static void world_move(struct world *w, uint32_t tick)
{
	memset(w->use, 0, sizeof(w->use));
	for (uint32_t i = 0; i < UNITS; i++) {
		uint32_t n = 1 + SLICES + i, slice = 1 + i % SLICES;

		if (tick >= w->until[i]) {
			w->busy[i] = !w->busy[i];
			w->until[i] = tick + 1 + below(400);
			if (!below(4))
				w->nominal[n] = 1 + below(10000);
		}
		for (uint32_t l = 0; l < LEAVES && w->busy[i]; l++) {
			struct control_use *u = &w->use[n][l];

			u->time = between(0, 2.0 / UNITS);
			u->backlog = between(0, 1);
			u->queued = u->backlog;
			u->ios = u->time * 1000;
			w->use[slice][l].time += u->time;
			w->use[slice][l].backlog = 1;
			w->use[slice][l].queued = 1;
			w->use[0][l].time += u->time;
			w->use[0][l].backlog = 1;
			w->use[0][l].queued = 1;
		}
	}
}

static bool uses(const struct world *w, uint32_t n)
{
	for (uint32_t l = 0; l < LEAVES; l++)
		if (w->use[n][l].time > 0 || w->use[n][l].backlog > 0)
			return true;
	return false;
}

/* Run a tick. Return: how many cgroups were skipped. */
static uint32_t step(struct control *c, const struct world *w,
		     const uint32_t *nominal_before, bool all)
{
	uint32_t skipped = 0;

	for (uint32_t n = 0; n < NODES; n++) {
		for (uint32_t l = 0; l < LEAVES; l++)
			if (nominal_before[n] != w->nominal[n])
				control_set_nominal(c, n, l, w->nominal[n]);
		if (!all && control_is_dormant(c, n) && !uses(w, n)) {
			skipped++;
			continue;
		}
		for (uint32_t l = 0; l < LEAVES; l++)
			*control_use(c, n, l) = w->use[n][l];
	}
	for (uint32_t p = 0; p < PROMISES; p++) {
		struct control_promise *promise = control_promise(c, p);

		promise->rate = w->use[promise->node][p % LEAVES].time * 10000;
		promise->fraction = 1;
	}
	control_tick(c, TICK_S);
	return skipped;
}

/* Return: how many weights were not the nominal ones. */
static uint32_t same(struct control *all, struct control *some)
{
	uint32_t moved = 0;

	for (uint32_t n = 0; n < NODES; n++) {
		bool is_moved = false;

		for (uint32_t l = 0; l < LEAVES; l++) {
			uint32_t weight = control_weight(some, n, l);

			check(weight == control_weight(all, n, l));
			is_moved |= weight != control_nominal(some, n, l);
		}
		check(!is_moved || control_is_moved(some, n));
		moved += is_moved && control_is_dormant(some, n);
	}
	return moved;
}

int main(void)
{
	uint64_t skipped = 0, moved = 0;

	for (uint32_t plant = 0; plant < PLANTS; plant++) {
		struct control_promise promises[PROMISES] = {};
		struct control *all, *some;
		uint32_t nominal_before[NODES] = {};
		struct world w = {};

		for (uint32_t i = 0; i < PROMISES; i++) {
			promises[i].node = 1 + SLICES + below(UNITS);
			promises[i].floor = between(1000, 5000);
			promises[i].importance = 1 + below(3);
		}
		all = plant_of(promises);
		some = plant_of(promises);
		for (uint32_t n = 0; n < NODES; n++)
			w.nominal[n] = 1 + below(10000);
		for (uint32_t tick = 0; tick < TICKS; tick++) {
			world_move(&w, tick);
			step(all, &w, nominal_before, true);
			skipped += step(some, &w, nominal_before, false);
			memcpy(nominal_before, w.nominal,
			       sizeof(nominal_before));
			moved += same(all, some);
		}
		control_free(all);
		control_free(some);
	}
	/* Cgroups were dormant, and weights of dormant cgroups moved. */
	fprintf(stderr, "%llu skipped, %llu moved while they were dormant\n",
		(unsigned long long)skipped, (unsigned long long)moved);
	check(skipped > PLANTS * TICKS && moved > 0);
	return 0;
}
