// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: test-random [SEED]
 *
 * Random trees of groups (up to four levels, weights 1 to 10000), on devices
 * with and without slices, in two kinds of cases:
 *
 * share	Some groups are backlogged all the time.  Each receives device time
 *		in the proportion that an oracle computes from the weights alone,
 *		within a bound: of each competitor on the way from the group to
 *		the root, one slice (where there are slices) and three of the
 *		largest requests, one of them for the one that is served in
 *		advance, one for the one that is on the way, and one for rounding
 *		a slice up to whole requests.  So nobody starves.
 * chaos	Groups come, sleep, merge requests and change their weights and
 *		classes at random.  All counters are right after each step, the device is
 *		never left idle against the rules, and nothing is left at the end.
 */
#include <math.h>
#include <string.h>

#include "random.h"
#include "world.h"

#define SHARE_CASES 800
#define CHAOS_CASES 3000
#define MAX_GROUPS 200
#define MAX_LEVELS 4

static u64 seed = 1;

static u64 below(u64 n)
{
	return random_below(&seed, n);
}

/* Weights of all magnitudes, or the plain ones that people write. */
static u32 random_weight(void)
{
	static const u32 usual[] = { 50, 100, 100, 200, 300, 1000 };

	return below(2) ? usual[below(6)] : random_magnitude(&seed, 10000);
}

static struct world *random_world(u32 max_groups, bool rotational)
{
	u32 nr = 2 + random_magnitude(&seed, max_groups - 1) - 1, i;
	u32 level[MAX_GROUPS + 1] = {};
	struct world *world = world_new(nr, rotational);

	for (i = 1; i < nr; i++) {
		u32 parent = below(i);

		if (level[parent] == MAX_LEVELS)
			parent = 0;
		level[i] = level[parent] + 1;
		world_group(world, i, parent, random_weight());
	}
	return world;
}

/* ---- share ---- */

/* Is anybody backlogged at or below a group? */
static bool any_below(const struct world *world, const bool *backlogged,
		      u32 group)
{
	u32 i;

	for (i = 0; i < world->nr; i++) {
		const struct sutro_group *g = &world->group[i];

		if (!backlogged[i])
			continue;
		for (; g; g = g->parent)
			if (g == &world->group[group])
				return true;
	}
	return false;
}

/* By the weights alone: a group's part of the device, 1 = all of it. */
static double oracle(const struct world *world, const bool *busy,
		     const bool *backlogged, u32 group)
{
	const struct sutro_group *g = &world->group[group];
	double part = 1, own = 100;
	u32 i;

	/* From its own requests upwards: among children and own requests. */
	for (;;) {
		double sum = backlogged[g - world->group] ? 100 : 0;

		for (i = 0; i < world->nr; i++)
			if (world->group[i].parent == g && busy[i])
				sum += world->group[i].entity.weight;
		part *= own / sum;
		if (!g->parent)
			return part;
		own = g->entity.weight;
		g = g->parent;
	}
}

/* How far from its part a group may be. */
static double bound_ns(const struct world *world, u32 group, u64 slice_ns,
		       u64 request_ns)
{
	const struct sutro_group *g = &world->group[group];
	double bound = 0;

	for (; g; g = g->parent)
		bound += g->level.nr_active;
	return bound * (slice_ns + 3 * request_ns);
}

static void share_case(bool rotational, bool seeky)
{
	struct world *world = random_world(40, rotational);
	u64 request_ns = random_magnitude(&seed, 20 * MS);
	u64 slice_ns = rotational && !seeky ? world->core.tunables.slice_ns : 0;
	bool backlogged[MAX_GROUPS + 1], busy[MAX_GROUPS + 1];
	u64 all_ns = 0;
	u32 i, rounds = 4000;

	for (i = 0; i < world->nr; i++)
		backlogged[i] = below(2);
	backlogged[below(world->nr)] = true;
	for (i = 0; i < world->nr; i++)
		busy[i] = any_below(world, backlogged, i);
	for (i = 0; i < world->nr; i++)
		if (backlogged[i] && seeky)
			world_queue_far(world, i, 32);
		else if (backlogged[i])
			world_queue(world, i, 2);

	while (rounds--) {
		u64 cost_ns = request_ns / 2 + below(request_ns / 2 + 1);
		u32 group;

		if (world_send(world, cost_ns, &group) != SUTRO_SERVE) {
			check(world->flights, "nobody is served");
			world_complete(world, below(world->flights));
			continue;
		}
		if (seeky)
			world_queue_far(world, group, 1);
		else
			world_queue(world, group, 1);
		if (world->flights > below(8))
			world_complete(world, below(world->flights));
	}
	while (world->flights)
		world_complete(world, 0);

	for (i = 0; i < world->nr; i++)
		all_ns += world->served_ns[i];
	for (i = 0; i < world->nr; i++) {
		double due, bound;

		if (!backlogged[i]) {
			check_equal(world->served_ns[i], 0);
			continue;
		}
		due = oracle(world, busy, backlogged, i) * all_ns;
		bound = bound_ns(world, i, slice_ns, request_ns);
		check_near(world->served_ns[i], due, bound);
	}
	world_check(world);
	world_free(world);
}

/* ---- chaos ---- */

/* What the device, or the clock, owes the scheduler before it may be served. */
static void chaos_send(struct world *world)
{
	const struct sutro_core *core = &world->core;
	const struct sutro_tunables *t = &core->tunables;
	u64 cost_ns = random_magnitude(&seed, 50 * MS);
	bool others;

	/* As much as a device takes. */
	if (world->flights == 64)
		return;
	switch (world_send(world, cost_ns, NULL)) {
	case SUTRO_SERVE:
		/* The estimate was wrong. */
		world->flight[world->flights - 1].cost_ns =
			random_magnitude(&seed, 50 * MS);
		break;
	case SUTRO_EMPTY:
		check_equal(core->queued, 0);
		break;
	case SUTRO_WAIT:
		others = t->rotational || t->fairness ||
			 (core->in_flight >= SUTRO_DEPTH_MIN &&
			  core->nr_active > 1);
		check(core->queued && core->in_flight && others,
		      "%u queued, %u in flight, %u active", core->queued,
		      core->in_flight, core->nr_active);
		break;
	case SUTRO_IDLE:
		check(t->rotational || t->fairness, "idle on flash");
		check(core->queued, "idle without need");
		check(core->idle_until_ns > world->now_ns &&
			      core->idle_until_ns - world->now_ns <=
				      t->group_idle_ns,
		      "idle for %llu ns", core->idle_until_ns - world->now_ns);
		/* The timer fires, or somebody comes before. */
		if (!core->in_flight && below(2))
			world->now_ns = core->idle_until_ns;
		break;
	}
}

static void chaos_step(struct world *world)
{
	u32 group = below(world->nr), i;

	switch (below(16)) {
	case 0 ... 3:
		if (world->core.queued < 500)
			world_queue(world, group, 1 + below(8));
		break;
	case 4:
		if (world->core.queued < 500)
			world_queue_far(world, group, 1 + below(16));
		break;
	case 5 ... 9:
		chaos_send(world);
		break;
	case 10 ... 12:
		if (world->flights)
			world_complete(world, below(world->flights));
		break;
	case 13:
		/* What it was merged into stays. */
		if (world->group[group].queued > 1)
			sutro_core_unqueue(&world->core, &world->group[group]);
		break;
	case 14:
		if (group && below(2))
			sutro_group_set_weight(&world->group[group],
					       random_weight());
		else if (group)
			world_class(world, group, below(SUTRO_CLASS_NR));
		break;
	case 15:
		if (group && !below(4))
			sutro_group_set_gone(&world->core,
					     &world->group[group]);
		world->now_ns += random_magnitude(&seed, SEC);
		for (i = 0; i < below(4); i++)
			world_forget(world);
		break;
	}
}

/* All that is left is served, in bounded time, by asking as the rules say. */
static void chaos_end(struct world *world)
{
	u32 steps;

	for (steps = 0; world->core.queued || world->flights; steps++) {
		enum sutro_verdict verdict = SUTRO_WAIT;

		check(steps < 100000, "%u never served", world->core.queued);
		if (world->flights < 64)
			verdict = world_send(world, MS, NULL);
		if (verdict == SUTRO_SERVE)
			continue;
		if (world->flights)
			world_complete(world, below(world->flights));
		else if (verdict == SUTRO_IDLE)
			world->now_ns = world->core.idle_until_ns;
		else
			check_equal(verdict, SUTRO_EMPTY);
	}
}

static void chaos_case(void)
{
	struct world *world = random_world(MAX_GROUPS, below(2));
	struct sutro_tunables *t = &world->core.tunables;
	u32 steps = 300;

	t->fairness = !below(4);
	if (!below(4))
		t->slice_ns = below(2) ? 0 : random_magnitude(&seed, 10 * SEC);
	if (!below(4))
		t->group_idle_ns = below(2) ? 0 : random_magnitude(&seed, SEC);

	while (steps--) {
		chaos_step(world);
		if (steps % 4 == 0)
			world_check(world);
	}
	chaos_end(world);
	world_check_empty(world);
	world_free(world);
}

int main(int argc, char **argv)
{
	u32 i;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	for (i = 0; i < SHARE_CASES; i++) {
		share_case(false, false);
		share_case(true, false);
		share_case(true, true);
	}
	for (i = 0; i < CHAOS_CASES; i++)
		chaos_case();
	return 0;
}
