// SPDX-License-Identifier: GPL-2.0-only
/* Who is next: the tree of groups, and what sleeping and weight changes do. */
#include "world.h"

/* The example of sutro-tree.c: a gets 8 ms of 12, c one, d three. */
static void test_worked_example(void)
{
	enum { ROOT, A, B, C, D, NR };
	struct world *world = world_new(NR, false);
	u32 i;

	world_group(world, A, ROOT, 200);
	world_group(world, B, ROOT, 100);
	world_group(world, C, B, 100);
	world_group(world, D, B, 300);
	world_queue(world, A, 100);
	world_queue(world, C, 100);
	world_queue(world, D, 100);
	for (i = 0; i < 12; i++)
		world_serve(world, 1 * MS);
	check_equal(world->served_ns[A], 8 * MS);
	check_equal(world->served_ns[C], 1 * MS);
	check_equal(world->served_ns[D], 3 * MS);

	check_equal(sutro_group_share(&world->group[A], 1200), 800);
	check_equal(sutro_group_share(&world->group[C], 1200), 100);
	check_equal(sutro_group_share(&world->group[D], 1200), 300);
	/* If it had requests of its own. */
	check_equal(sutro_group_share(&world->group[B], 1200), 80);
	world_free(world);
}

/* A group's own requests weigh 100 beside its children. */
static void test_own_requests(void)
{
	enum { ROOT, A, B, NR };
	struct world *world = world_new(NR, false);
	u32 i;

	world_group(world, A, ROOT, 100);
	world_group(world, B, A, 200);
	world_queue(world, ROOT, 100);
	world_queue(world, A, 100);
	world_queue(world, B, 100);
	for (i = 0; i < 60; i++)
		world_serve(world, 1 * MS);
	check_near((s64)world->served_ns[ROOT], 30 * MS, 1 * MS);
	check_near((s64)world->served_ns[A], 10 * MS, 1 * MS);
	check_near((s64)world->served_ns[B], 20 * MS, 1 * MS);
	world_free(world);
}

/* What a group is owed in device time survives a change of its weight. */
static void test_weight_keeps_lag(void)
{
	enum { ROOT, A, B, C, NR };
	static const u32 weights[] = { 1, 10000, 37, 9999, 100, 2, 500, 100 };
	struct world *world = world_new(NR, false);
	u32 i;

	world_group(world, A, ROOT, 100);
	world_group(world, B, ROOT, 100);
	world_group(world, C, ROOT, 100);
	world_queue(world, A, 10);
	world_queue(world, B, 10);
	world_queue(world, C, 10);
	world_serve(world, 3 * MS);
	world_serve(world, 5 * MS);
	for (i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		s64 lag_ns = sutro_group_lag_ns(&world->group[A]);

		sutro_group_set_weight(&world->group[A], weights[i]);
		world_check(world);
		/* A ns of vtime is weight / 25600 ns of device time. */
		check_near(sutro_group_lag_ns(&world->group[A]), lag_ns, 2);
	}
	world_free(world);
}

/* The new weight is in force with the next choice. */
static void test_weight_follows(void)
{
	enum { ROOT, A, B, NR };
	struct world *world = world_new(NR, false);
	u64 a_ns, b_ns;
	u32 i;

	world_group(world, A, ROOT, 200);
	world_group(world, B, ROOT, 100);
	world_queue(world, A, 1000);
	world_queue(world, B, 1000);
	for (i = 0; i < 300; i++)
		world_serve(world, 1 * MS);
	check_near((s64)world->served_ns[A], 200 * MS, 1 * MS);

	sutro_group_set_weight(&world->group[A], 100);
	sutro_group_set_weight(&world->group[B], 200);
	a_ns = world->served_ns[A];
	b_ns = world->served_ns[B];
	for (i = 0; i < 30; i++)
		world_serve(world, 1 * MS);
	check_near((s64)(world->served_ns[A] - a_ns), 10 * MS, 1 * MS);
	check_near((s64)(world->served_ns[B] - b_ns), 20 * MS, 1 * MS);
	world_free(world);
}

/* Who slept for a minute is owed no more than half a slice. */
static void test_sleeper(void)
{
	enum { ROOT, A, B, NR };
	struct world *world = world_new(NR, false);
	s64 owed_ns = world->core.tunables.slice_ns / 2;
	u32 i;

	world_group(world, A, ROOT, 100);
	world_group(world, B, ROOT, 100);
	world_queue(world, A, 100000);
	/* Both are known; then B sleeps. */
	world_queue(world, B, 1);
	for (i = 0; i < 60000; i++)
		world_serve(world, 1 * MS);
	world->served_ns[A] = 0;
	world->served_ns[B] = 0;

	world_queue(world, B, 1000);
	check_near(sutro_group_lag_ns(&world->group[B]), owed_ns, 1 * MS);
	for (i = 0; i < 200; i++)
		world_serve(world, 1 * MS);
	check_near((s64)(world->served_ns[B] - world->served_ns[A]), owed_ns,
		   2 * MS);
	world_free(world);
}

/* Who was served in advance keeps that debt when it sleeps for a moment. */
static void test_debt(void)
{
	enum { ROOT, A, B, NR };
	struct world *world = world_new(NR, false);
	u32 i;

	world_group(world, A, ROOT, 100);
	world_group(world, B, ROOT, 100);
	world_queue(world, A, 1000);
	world_queue(world, B, 1);
	/* One after the other; B's request costs as much as 20 of A's. */
	check_equal(world_serve(world, 1 * MS), A);
	check_equal(world_serve(world, 20 * MS), B);
	world_forget(world);
	check(!world->group[B].self.active, "B has nothing to do");
	world_queue(world, B, 1000);
	world->served_ns[B] = 0;
	for (i = 0; i < 10; i++)
		check_equal(world_serve(world, 1 * MS), A);
	world_free(world);
}

/* Groups come and go at all depths; nothing is left of them in the sums. */
static void test_bookkeeping(void)
{
	enum { ROOT, A, B, C, D, NR };
	struct world *world = world_new(NR, false);
	u32 round, i;

	world_group(world, A, ROOT, 200);
	world_group(world, B, A, 300);
	world_group(world, C, B, 400);
	world_group(world, D, B, 500);
	for (round = 0; round < 20; round++) {
		world_queue(world, round % NR, 3);
		world_queue(world, (round * 7 + 2) % NR, 2);
		world_check(world);
		for (i = 0; i < 5; i++) {
			world_serve(world, 1 * MS);
			world_check(world);
		}
		world_check_empty(world);
	}
	world_free(world);
}

/* What counts is what a request cost, not what it was estimated at. */
static void test_estimates_are_settled(void)
{
	enum { ROOT, A, B, NR };
	struct world *world = world_new(NR, false);
	u32 i;

	world_group(world, A, ROOT, 100);
	world_group(world, B, ROOT, 100);
	world_queue(world, A, 1000);
	world_queue(world, B, 1000);
	for (i = 0; i < 1000; i++) {
		u32 group;

		check_equal(world_send(world, 2 * MS, &group), SUTRO_SERVE);
		world->flight[0].cost_ns = group == A ? 4 * MS : 1 * MS;
		world_complete(world, 0);
	}
	check_near(world->served_ns[A], 800 * MS, 4 * MS);
	check_near(world->served_ns[B], 800 * MS, 4 * MS);
	check_equal(world->group[A].stat.time_ns, world->served_ns[A]);
	world_free(world);
}

/* A request that merges into another is not served, and not charged. */
static void test_unqueue(void)
{
	enum { ROOT, A, NR };
	struct world *world = world_new(NR, false);

	world_group(world, A, ROOT, 100);
	world_queue(world, A, 2);
	sutro_core_unqueue(&world->core, &world->group[A]);
	world_check(world);
	world_serve(world, 1 * MS);
	check_equal(world->core.queued, 0);
	world_check_empty(world);
	world_free(world);
}

int main(void)
{
	test_worked_example();
	test_own_requests();
	test_weight_keeps_lag();
	test_weight_follows();
	test_sleeper();
	test_debt();
	test_bookkeeping();
	test_estimates_are_settled();
	test_unqueue();
	return 0;
}
