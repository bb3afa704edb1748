// SPDX-License-Identifier: GPL-2.0-only
/* How many at the device. */
#include "world.h"

enum { ROOT, A, B, NR };

static u32 send_all(struct world *world, u64 cost_ns)
{
	u32 nr = 0;

	while (world_send(world, cost_ns, NULL) == SUTRO_SERVE)
		nr++;
	return nr;
}

static struct world *backlog(bool rotational, u32 a, u32 b)
{
	struct world *world = world_new(NR, rotational);

	world_group(world, A, ROOT, 100);
	world_group(world, B, ROOT, 100);
	world_queue_far(world, A, a);
	world_queue_far(world, B, b);
	return world;
}

/* A few however long they take, and not too many however short. */
static void test_bounds(void)
{
	struct world *world = backlog(false, 100, 100);

	check_equal(send_all(world, 50 * MS), SUTRO_DEPTH_MIN);
	world_free(world);

	world = backlog(false, 200, 200);
	world->core.tunables.depth_ns = SEC;
	check_equal(send_all(world, 1000), SUTRO_DEPTH_MAX);
	world_free(world);
}

/* Who is alone has the device to itself. */
static void test_alone(void)
{
	struct world *world = backlog(false, 200, 0);

	check_equal(send_all(world, 50 * MS), 200);
	world_free(world);
}

/* A drive with one actuator orders what it has: it may have all. */
static void test_rotational(void)
{
	struct world *world = backlog(true, 100, 100);

	check_equal(send_all(world, 50 * MS), 200);
	world_free(world);
}

/* B sends one request at a time and comes back: A leaves room for the next. */
static void test_expected(void)
{
	struct world *world = backlog(false, 200, 1);

	world->core.tunables.busy_ns = 2 * MS;
	world->core.tunables.depth_ns = 30 * MS;
	/* A is alone in having more: B has left when its request is done. */
	while (world_serve(world, MS) != B)
		;
	check_equal(send_all(world, MS / 10), 20);
	check_equal(world->core.nr_active, 1);
	world->now_ns += 3 * MS;
	world_queue(world, B, 1);
	check_equal(send_all(world, MS / 10), 1);

	/* It does not come back. */
	while (world->flights)
		world_complete(world, 0);
	check_equal(send_all(world, MS / 10), 20);
	world->now_ns += 2 * world->core.tunables.slice_ns;
	check_equal(send_all(world, MS / 10), 200 - 40 - 1);
	world_free(world);
}

/* Nobody makes room for who thinks for long, or whose cgroup is gone. */
static void test_not_expected(bool gone)
{
	struct world *world = backlog(false, 200, 0);
	u32 i;

	world->core.tunables.busy_ns = 2 * MS;
	for (i = 0; i < 20; i++) {
		world_queue(world, B, 1);
		while (world_serve(world, 10000) != B)
			;
		world->now_ns += gone ? MS : 20 * MS;
	}
	if (gone) {
		world_queue(world, B, 1);
		sutro_group_set_gone(&world->core, &world->group[B]);
		while (world_serve(world, 10000) != B)
			;
	}
	check(send_all(world, MS / 10) > 100, "held back");
	world_free(world);
}

int main(void)
{
	test_bounds();
	test_alone();
	test_rotational();
	test_expected();
	test_not_expected(false);
	test_not_expected(true);
	return 0;
}
