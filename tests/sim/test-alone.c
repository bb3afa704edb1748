// SPDX-License-Identifier: GPL-2.0-only
/*
 * A group that is alone passes the tree (sutro-alone.c).  Whoever comes then must
 * find what he had found if it had not: two worlds live through the same, in one of
 * them all requests are queued and chosen.
 */
#include "random.h"
#include "world.h"

#include <linux/kernel.h>

#define GROUPS 5

/* root - 1, 2, 3 - 4 (below 3), weights as they come. */
static struct world *world_of(u64 *random)
{
	struct world *world = world_new(GROUPS, false);
	u32 group;

	for (group = 1; group < GROUPS; group++)
		world_group(world, group, group == 4 ? 3 : 0,
			    random_below(random, 500) + 1);
	return world;
}

/* The example of sutro-alone.c. */
static void test_example(void)
{
	struct world *world = world_new(3, false);
	u32 i;

	world_group(world, 1, 0, 100);
	world_group(world, 2, 0, 100);
	for (i = 0; i < 1000; i++) {
		check(world_pass(world, 1, MS / 10), "alone, it does not pass");
		world_check(world);
		world_complete(world, 0);
		world_check(world);
	}
	world_queue(world, 1, 100);
	world_queue(world, 2, 100);
	world_forget(world);
	check_equal(sutro_group_lag_ns(&world->group[1]), 0);
	check_equal(sutro_group_lag_ns(&world->group[2]), 2 * MS);
	/* It may be owed half a slice, which is 2 ms, and no more. */
	for (i = 0; i < 100; i++)
		world_serve(world, MS / 10);
	check(world->served_ns[2] >= 5 * MS && world->served_ns[2] <= 6 * MS,
	      "%llu ns for who comes", world->served_ns[2]);
	world_free(world);
}

static void test_who_does_not_pass(void)
{
	struct world *world = world_new(3, false);

	world_group(world, 1, 0, 100);
	world_group(world, 2, 0, 100);
	check(world_pass(world, 1, MS), "alone, it does not pass");
	check(!world_pass(world, 2, MS), "the other one has a request there");
	world_complete(world, 0);
	check(world_pass(world, 1, MS), "alone, it does not pass");
	world_queue(world, 1, 1);
	check(!world_pass(world, 1, MS), "a request waits that came before");
	world->core.tunables.fairness = true;
	world_complete(world, 0);
	check_equal(world_serve(world, MS), 1);
	world->now_ns += SEC;
	world_forget(world);
	check(!world_pass(world, 1, MS), "with fairness=1 it has slices");
	world_free(world);
}

/* A group that is gone is forgotten, also if it has passed and is empty. */
static void test_gone(void)
{
	struct world *world = world_new(2, false);

	world_group(world, 1, 0, 100);
	check(world_pass(world, 1, MS), "alone, it does not pass");
	world_complete(world, 0);
	world_forget(world);
	check_equal(world->core.nr_active, 1);
	sutro_core_settle(&world->core);
	sutro_group_set_gone(&world->core, &world->group[1]);
	world_check_empty(world);
	world_free(world);
}

/* @nr requests of @cost_ns, one after the other; true if they passed. */
static bool alone(struct world *world, u32 group, u32 nr, u64 cost_ns,
		  bool passing)
{
	bool passed = false;

	while (nr--) {
		world_forget(world);
		if (passing && world_pass(world, group, cost_ns)) {
			passed = true;
			world_complete(world, world->flights - 1);
		} else {
			world_queue(world, group, 1);
			check_equal(world_serve(world, cost_ns), group);
		}
		world_check(world);
	}
	return passed;
}

/* All but the root have requests without end, and @nr of them are served. */
static void contest(struct world *world, u32 nr)
{
	u32 group;

	for (group = 1; group < GROUPS; group++)
		world_queue(world, group, nr);
	while (nr--)
		world_serve(world, MS / 4);
	for (group = 1; group < GROUPS; group++)
		while (world->group[group].queued)
			sutro_core_unqueue(&world->core, &world->group[group]);
	world_forget(world);
	world_check(world);
}

static void test_nobody_notices(u64 seed)
{
	u64 random = seed, again = seed;
	struct world *queued = world_of(&random), *passed = world_of(&again);
	u32 round, group;
	u64 some = 0;

	for (round = 0; round < 20; round++) {
		u32 who = random_below(&random, GROUPS - 1) + 1;
		u32 nr = random_below(&random, 300) + 1;
		u64 cost_ns = random_below(&random, MS) + 1;
		u32 others = random_below(&random, 200) + 50;
		u32 weight = random_below(&random, 1000) + 1;

		alone(queued, who, nr, cost_ns, false);
		some += alone(passed, who, nr, cost_ns, true);
		if (random_below(&random, 2)) {
			sutro_core_settle(&passed->core);
			sutro_group_set_weight(&passed->group[who], weight);
			sutro_group_set_weight(&queued->group[who], weight);
		}
		contest(queued, others);
		contest(passed, others);
		for (group = 1; group < GROUPS; group++) {
			s64 more = passed->served_ns[group] -
				   queued->served_ns[group];

			/* The clock is at most a request further. */
			check(more < (s64)(4 * MS) * (round + 1) &&
				      -more < (s64)(4 * MS) * (round + 1),
			      "round %u: group %u has %lld ns more", round,
			      group, (long long)more);
		}
		queued->now_ns += 100 * MS;
		passed->now_ns = queued->now_ns;
	}
	check(some, "nothing has passed");
	sutro_core_settle(&passed->core);
	world_check_empty(passed);
	world_free(queued);
	world_free(passed);
}

int main(void)
{
	u64 seed;

	test_example();
	test_who_does_not_pass();
	test_gone();
	for (seed = 1; seed <= 200; seed++)
		test_nobody_notices(seed);
	return 0;
}
