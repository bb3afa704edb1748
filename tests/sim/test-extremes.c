// SPDX-License-Identifier: GPL-2.0-only
/* Numbers at the edge: weights, costs and groups. */
#include "random.h"
#include "world.h"

#define DAY (24 * 3600 * SEC)

/* A group with months of debt is made as light as can be, and heavy again. */
static void test_reweigh(void)
{
	enum { ROOT, A, B, NR };
	struct world *world = world_new(NR, false);
	static const u32 weights[] = { 1, 9065, 2, 10000, 1 };
	u32 i;

	world_group(world, A, ROOT, SUTRO_WEIGHT_MAX);
	world_group(world, B, ROOT, SUTRO_WEIGHT_MAX);
	/* Half an hour at weight 1: months at this one. */
	world->group[A].entity.vtime = 1800 * SEC * 100 << 8;
	world_queue(world, A, 9);
	world_queue(world, B, 9);
	for (i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		sutro_group_set_weight(&world->group[A], weights[i]);
		world_check(world);
		check(sutro_group_lag_ns(&world->group[A]) <= 0,
		      "owed %lld ns, after months in advance",
		      sutro_group_lag_ns(&world->group[A]));
		check_equal(world_serve(world, MS), B);
	}
	world_free(world);
}

/* Requests of 2.9 days, charged to a group of weight 1 and given back. */
static void test_costs(void)
{
	enum { ROOT, A, B, NR };
	struct world *world = world_new(NR, true);
	u64 cost_ns = 29 * DAY / 10;

	world_group(world, A, ROOT, SUTRO_WEIGHT_MIN);
	world_group(world, B, ROOT, SUTRO_WEIGHT_MAX);
	world_queue_far(world, A, 9);
	check_equal(world_serve(world, cost_ns), A);
	world_queue_far(world, B, 9);
	check_near(sutro_group_lag_ns(&world->group[A]), 0, cost_ns);
	check_equal(world_serve(world, cost_ns), B);
	world_check(world);
	sutro_group_set_weight(&world->group[B], SUTRO_WEIGHT_MIN);
	world_check(world);
	sutro_core_unqueue(&world->core, &world->group[A]);
	check_equal(sutro_group_share(&world->group[A], 1ULL << 40),
		    1ULL << 39);

	/* It never ran. */
	world_queue(world, B, 1);
	check_equal(world_send(world, cost_ns, NULL), SUTRO_SERVE);
	world->flight[0].cost_ns = 0;
	world_complete(world, 0);
	world_check(world);
	world_free(world);
}

/*
 * A group sleeps while the virtual time goes once round, or part of it: when it
 * comes back it is served as if it had slept for a minute.
 */
static void test_long_sleep(void)
{
	enum { ROOT, A, B, NR };
	u32 days;

	for (days = 1; days <= 12; days++) {
		struct world *world = world_new(NR, false);
		u32 i;

		world_group(world, A, ROOT, SUTRO_WEIGHT_MIN);
		world_group(world, B, ROOT, SUTRO_WEIGHT_DFL);
		world_queue(world, A, 100 * days + 1000);
		world_queue(world, B, 1);
		for (i = 0; i < 24 * days; i++)
			world_serve(world, DAY / 24);
		/* The level's clock is where its last request began. */
		world_serve(world, MS);
		world_serve(world, MS);
		world_queue(world, B, 1000);
		world->served_ns[A] = 0;
		for (i = 0; i < 500; i++)
			world_serve(world, MS);
		check(world->served_ns[A] > 0 && world->served_ns[A] < 10 * MS,
		      "%u days: the light one had %llu ms of 500", days,
		      world->served_ns[A] / MS);
		world_free(world);
	}
}

/* A thousand groups below one another. */
static void test_deep_tree(void)
{
	u32 nr = 1001, i;
	struct world *world = world_new(nr, false);

	for (i = 1; i < nr; i++)
		world_group(world, i, i - 1, 100);
	for (i = 0; i < nr; i++)
		world_queue(world, i, 600);
	for (i = 0; i < 1000; i++)
		world_serve(world, 1 * MS);
	world_check(world);
	/* A half to each level, and the rest further down. */
	for (i = 0; i < 8; i++)
		check_near(world->served_ns[i], (1000 * MS) >> (i + 1), 2 * MS);
	world_free(world);
}

int main(void)
{
	test_reweigh();
	test_costs();
	test_long_sleep();
	test_deep_tree();
	return 0;
}
