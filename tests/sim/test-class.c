// SPDX-License-Identifier: GPL-2.0-only
/* Classes: who comes first, and that nobody starves. */
#include "world.h"

enum { ROOT, A, B, C, NR };

/* A of class rt, B be, C idle, with slices of 100 ms or none. */
static struct world *three_classes(bool rotational)
{
	struct world *world = world_new(NR, rotational);

	world_group(world, A, ROOT, 100);
	world_group(world, B, ROOT, 100);
	world_group(world, C, ROOT, 100);
	world_class(world, A, SUTRO_CLASS_RT);
	world_class(world, C, SUTRO_CLASS_IDLE);
	return world;
}

/* Serve so many requests; how many of them were a group's? */
static u32 served(struct world *world, u32 nr, u64 cost_ns, u32 of)
{
	u32 sum = 0;

	while (nr--)
		sum += world_serve(world, cost_ns) == of;
	return sum;
}

/* A weight of 10000 does not help against a class. */
static void test_three(bool rotational)
{
	struct world *world = three_classes(rotational);
	u64 all_ns = 100 * SEC;
	u32 i;

	sutro_group_set_weight(&world->group[C], SUTRO_WEIGHT_MAX);
	sutro_group_set_weight(&world->group[A], SUTRO_WEIGHT_MIN);
	world_queue(world, A, 100000);
	world_queue(world, B, 100000);
	world_queue(world, C, 100000);
	for (i = 0; i < all_ns / MS; i++)
		world_serve(world, MS);
	/* Of 33 * 33 parts: 32 idle ones were taken from the others' 33. */
	check_near(world->served_ns[C], all_ns / 33, 0.1 * all_ns / 33);
	check_near(world->served_ns[B], all_ns / 33, 0.1 * all_ns / 33);
	world_check(world);
	world_free(world);
}

/* An rt child of an idle group comes before its siblings, and after its uncles. */
static void test_among_siblings(void)
{
	enum { TOP, UNCLE, PARENT, CHILD, BROTHER, FAMILY };
	struct world *world = world_new(FAMILY, false);
	u32 i;

	world_group(world, UNCLE, TOP, 100);
	world_group(world, PARENT, TOP, 100);
	world_group(world, CHILD, PARENT, 100);
	world_group(world, BROTHER, PARENT, 100);
	world_class(world, PARENT, SUTRO_CLASS_IDLE);
	world_class(world, CHILD, SUTRO_CLASS_RT);
	world_queue(world, CHILD, 40);
	world_queue(world, BROTHER, 40);
	world_queue(world, UNCLE, 40);
	for (i = 0; i < 40; i++)
		check_equal(world_serve(world, MS), UNCLE);
	for (i = 0; i < 40; i++)
		check_equal(world_serve(world, MS), CHILD);
	check_equal(world_serve(world, MS), BROTHER);
	/* The parent's own requests are be: with those of BROTHER. */
	world_queue(world, PARENT, 1);
	world_queue(world, CHILD, 1);
	check_equal(world_serve(world, MS), CHILD);
	world_check(world);
	world_free(world);
}

/* One request at a time: the drive is kept for the next one, but not for ever. */
static void test_is_waited_for(void)
{
	struct world *world = three_classes(true);
	enum sutro_verdict verdict;
	u32 b = 0, group, i;

	world_queue(world, B, 1000);
	for (i = 0; i < 1000; i++) {
		world_queue(world, A, 1);
		while (world->group[A].queued)
			b += world_serve(world, 10 * MS) == B;
		verdict = world_send(world, 10 * MS, &group);
		if (verdict == SUTRO_SERVE) {
			check_equal(group, B);
			world_complete(world, 0);
			b++;
		}
		world->now_ns += 2 * MS;
	}
	/* 1000 times 12 ms, less the first 1.6 s; its last slice is not yet paid. */
	check_near(b, (12.0 * 1000 - 1600) / 32 / 10, 12);

	/* A does not come back: B is served after group_idle. */
	while (world_send(world, 10 * MS, NULL) == SUTRO_SERVE)
		world_complete(world, 0);
	check_equal(world_send(world, 10 * MS, NULL), SUTRO_IDLE);
	world->now_ns = world->core.idle_until_ns;
	check_equal(world_serve(world, 10 * MS), B);
	world_check(world);
	world_free(world);
}

/* All of A's requests are at the drive: that does not make B's turns free. */
static void test_away(void)
{
	struct world *world = three_classes(true);
	u32 group, f, i;

	world_queue_far(world, A, 8);
	world_queue_far(world, B, 1000);
	for (i = 0; i < 1000; i++) {
		while (world_send(world, 10 * MS, &group) == SUTRO_SERVE)
			;
		/* The drive prefers B's requests. */
		for (f = 0; f < world->flights; f++)
			if (world->flight[f].group == &world->group[B])
				break;
		if (f == world->flights) {
			f = 0;
			world_queue_far(world, A, 1);
		}
		world_complete(world, f);
	}
	check_near(world->served_ns[B], 10.0 * SEC / 33, 60 * MS);
	world_check(world);
	world_free(world);
}

/* Neither sleep nor service while alone is held against a class, or for it. */
static void test_no_hoarding(void)
{
	struct world *world = three_classes(false);
	u32 i;

	/* C ages, and sleeps while B goes on. */
	world_queue(world, B, 10000);
	world_queue(world, C, 1);
	check_equal(served(world, 64, MS, B), 64);
	check_equal(world_serve(world, MS), C);
	for (i = 0; i < 1000; i++)
		check_equal(world_serve(world, MS), B);
	world_queue(world, C, 1000);
	check_equal(served(world, 33, MS, C), 1);

	/* C alone for a while: it does not have to pay for that. */
	while (world->group[B].queued)
		world_serve(world, MS);
	for (i = 0; i < 500; i++)
		check_equal(world_serve(world, MS), C);
	world_queue(world, C, 1000);
	world_queue(world, B, 1000);
	check_near(served(world, 330, MS, C), 10, 2);
	world_free(world);
}

/* A class changes in mid-run: with the next choice, and nothing is lost. */
static void test_changes(void)
{
	struct world *world = three_classes(true);
	s64 lag_ns;

	world_queue(world, B, 1000);
	world_queue(world, C, 1000);
	check_equal(served(world, 5, 10 * MS, B), 5);
	world_class(world, C, SUTRO_CLASS_RT);
	world_check(world);
	check_equal(served(world, 5, 10 * MS, C), 5);
	world_class(world, C, SUTRO_CLASS_BE);
	world_check(world);
	lag_ns = sutro_group_lag_ns(&world->group[B]);
	world_class(world, B, SUTRO_CLASS_IDLE);
	check_equal(sutro_group_lag_ns(&world->group[B]), lag_ns);
	check_equal(served(world, 5, 10 * MS, C), 5);
	world_class(world, B, SUTRO_CLASS_BE);
	check_near(served(world, 200, 10 * MS, B), 100, 11);
	world_check(world);
	while (world->core.queued) {
		if (world_send(world, MS, NULL) == SUTRO_SERVE)
			world_complete(world, 0);
		else
			world->now_ns = world->core.idle_until_ns;
	}
	world_class(world, B, SUTRO_CLASS_RT);
	world_check_empty(world);
	world_free(world);
}

/* Request slots: a lower class has those that it can use. */
static void test_slots(void)
{
	struct world *world = three_classes(false);

	world_queue(world, B, 1);
	check_equal(sutro_group_share(&world->group[B], 256), 256);
	check_equal(sutro_group_share(&world->group[A], 256), 256);
	world_queue(world, A, 1);
	check_equal(sutro_group_share(&world->group[A], 256), 256);
	check_equal(sutro_group_share(&world->group[B], 256), 256 / 32);
	world_class(world, B, SUTRO_CLASS_RT);
	check_equal(sutro_group_share(&world->group[B], 256), 128);
	world_free(world);
}

int main(void)
{
	test_three(false);
	test_three(true);
	test_among_siblings();
	test_is_waited_for();
	test_away();
	test_no_hoarding();
	test_changes();
	test_slots();
	return 0;
}
