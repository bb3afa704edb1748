// SPDX-License-Identifier: GPL-2.0-only
/* For how long: slices, and who is waited for. */
#include "world.h"

enum { ROOT, A, B, NR };

static struct world *two_groups(bool rotational)
{
	struct world *world = world_new(NR, rotational);

	world_group(world, A, ROOT, 100);
	world_group(world, B, ROOT, 100);
	return world;
}

#define check_serves(world, group) \
	check_equal(world_serve(world, 10 * MS), group)

/* What the algorithm says now, without doing it. */
static enum sutro_verdict ask(struct world *world)
{
	enum sutro_verdict verdict;

	world_forget(world);
	sutro_core_select(&world->core, world->now_ns, &verdict);
	return verdict;
}

/* One request at a time: waited for in its slice, and the wait is charged. */
static void test_idles(void)
{
	struct world *world = two_groups(true);
	u64 idle_ns = 0;
	u32 served = 0;

	world_queue(world, B, 100);
	world_queue(world, A, 1);
	/* B has the slice; A's follows. */
	while (world_serve(world, 10 * MS) == B)
		;
	while (ask(world) == SUTRO_IDLE) {
		check_equal(world->core.idle_until_ns, world->now_ns + 8 * MS);
		world->now_ns += 2 * MS;
		idle_ns += 2 * MS;
		world_queue(world, A, 1);
		check_serves(world, A);
		served++;
	}
	/* Of its 100 ms it had 2 ms of waiting with each 10 ms of work. */
	check_near((s64)served, 9, 1);
	check_equal(world->group[A].stat.idle_ns, idle_ns);
	world_check(world);
	world_free(world);
}

/* It does not come: others are served after group_idle, which it has to pay. */
static void test_idle_ends(void)
{
	struct world *world = two_groups(true);
	u64 vtime;

	world_queue(world, B, 100);
	world_queue(world, A, 1);
	while (world_serve(world, 10 * MS) == B)
		;
	check_equal(ask(world), SUTRO_IDLE);
	world->now_ns = world->core.idle_until_ns - 1;
	check_equal(ask(world), SUTRO_IDLE);
	vtime = world->group[A].entity.vtime;
	world->now_ns++;
	world->core.expiry = SUTRO_EXPIRY_NONE;
	world_forget(world);
	/* It had 10 ms of service, and 8 ms of waiting. */
	check_equal(world->group[A].entity.vtime, vtime / 10 * 18);
	check_serves(world, B);
	check_equal(world->core.expiry, SUTRO_EXPIRY_EMPTY);
	check_equal(world->group[A].stat.idle_ns, 8 * MS);
	check_equal(world->group[A].stat.dequeue, 1);
	check(!world->group[A].self.active, "A has left");
	world_free(world);
}

/* Who takes longer than group_idle each time is not waited for. */
static void test_slow_thinker(void)
{
	struct world *world = two_groups(true);
	u32 i;

	for (i = 0; i < 20; i++) {
		world_queue(world, A, 1);
		check_serves(world, A);
		world->now_ns += 20 * MS;
	}
	world_queue(world, A, 1);
	check_serves(world, A);
	world_queue(world, B, 1);
	check_serves(world, B);
	world_free(world);
}

/* With group_idle 0 nobody is waited for. */
static void test_no_idling(void)
{
	struct world *world = two_groups(true);
	u32 i;

	world->core.tunables.group_idle_ns = 0;
	world_queue(world, B, 100);
	for (i = 0; i < 30; i++) {
		world_queue(world, A, 1);
		world_serve(world, 10 * MS);
		check_equal(ask(world), SUTRO_SERVE);
	}
	world_free(world);
}

/* Random requests on an hdd, and any on flash, are their own turns. */
static void test_no_slice(bool rotational)
{
	struct world *world = two_groups(rotational);
	u32 i;

	world_queue_far(world, A, 100);
	world_queue_far(world, B, 100);
	for (i = 0; i < 100; i++) {
		u32 group = i % 2 ? B : A;

		check_equal(world_serve(world, 10 * MS + (group == B)), group);
		check(!world->core.in_service, "a slice");
	}
	world_free(world);
}

/* With fairness=1 they have slices, and are waited for. */
static void test_fairness(bool rotational)
{
	struct world *world = two_groups(rotational);
	u64 slice_ns = world->core.tunables.slice_ns;
	u32 i;

	world->core.tunables.fairness = true;
	world_queue_far(world, A, 40);
	world_queue_far(world, B, 40);
	for (i = 0; i < 40; i++) {
		u32 group = i / 10 % 2 ? B : A;

		check_equal(world_serve(world, slice_ns / 10 + (group == B)),
			    group);
	}
	world_free(world);

	world = two_groups(rotational);
	world->core.tunables.fairness = true;
	world_queue_far(world, B, 100);
	world_queue_far(world, A, 1);
	while (world_serve(world, slice_ns / 10) == B)
		;
	check_equal(ask(world), SUTRO_IDLE);
	world_free(world);
}

/* A moment later it has been served, and waits for its turn. */
static void test_does_not_preempt(void)
{
	struct world *world = two_groups(true);
	u32 i;

	world_queue(world, A, 100);
	world_queue(world, B, 10);
	/* A slice each, and a part of A's second. */
	for (i = 0; i < 23; i++)
		world_serve(world, 10 * MS);
	check_equal(world->group[B].queued, 0);
	world_queue(world, B, 10);
	world->core.expiry = SUTRO_EXPIRY_NONE;
	check_serves(world, A);
	check(world->core.expiry != SUTRO_EXPIRY_PREEMPTED, "preempted");
	world_free(world);
}

/*
 * A slice that is used up while the only request is on the way is renewed if its
 * owner is still furthest behind.
 */
static void test_renewed(void)
{
	struct world *world = two_groups(true);
	u32 i;

	sutro_group_set_weight(&world->group[A], 1000);
	world_queue(world, B, 20);
	for (i = 0; i < 10; i++)
		check_serves(world, B);
	world_queue(world, A, 1);
	/* More than a slice, but 15 ms of vtime: B is still ahead. */
	check_equal(world_send(world, 150 * MS, &i), SUTRO_SERVE);
	check_equal(i, A);
	check_equal(ask(world), SUTRO_WAIT);
	check_equal(world->core.in_service, &world->group[A]);
	world_complete(world, 0);
	check_equal(ask(world), SUTRO_IDLE);
	world_queue(world, A, 1);
	check_serves(world, A);
	world_free(world);
}

/*
 * A's random requests are all at the drive, B has more: B is sent until it is
 * half a slice ahead, and waits for A's to complete then.
 */
static void test_held_back(void)
{
	struct world *world = two_groups(true);
	u32 sent[NR] = {}, group, i;

	world_queue_far(world, A, 8);
	world_queue_far(world, B, 100);
	while (world_send(world, 10 * MS, &group) == SUTRO_SERVE)
		sent[group]++;
	check_equal(sent[A], 8);
	check_near((s64)sent[B], 8 + 5, 1);
	check_equal(ask(world), SUTRO_WAIT);

	/* The drive serves B only; none of B's may follow. */
	for (i = 0; i < sent[B]; i++) {
		u32 f;

		for (f = 0; world->flight[f].group != &world->group[B]; f++)
			;
		world_complete(world, f);
		check_equal(ask(world), SUTRO_WAIT);
	}
	/* One of A's completes and is followed by another: B may send, too. */
	world_complete(world, 0);
	world_queue_far(world, A, 1);
	sent[A] = sent[B] = 0;
	while (world_send(world, 10 * MS, &group) == SUTRO_SERVE)
		sent[group]++;
	check_equal(sent[A], 1);
	check_near((s64)sent[B], 1, 1);
	world_free(world);
}

/*
 * Requests are estimated at 2 ms; the first one after a switch costs more.  Slices
 * become 24 times that, within half of slice_ns and all of it.
 */
static void test_adapts(u64 switch_ns, u64 slice_ns)
{
	struct world *world = two_groups(true);
	u32 last = ROOT, group, turns = 0;

	/* No ties. */
	sutro_group_set_weight(&world->group[B], 99);
	world_queue(world, A, 1000);
	world_queue(world, B, 1000);
	while (turns < 12) {
		check_equal(world_send(world, 2 * MS, &group), SUTRO_SERVE);
		if (group != last) {
			world->flight[0].cost_ns += switch_ns;
			turns++;
		}
		world_complete(world, 0);
		if (turns > 2)
			check_near(world->core.slice_ns, slice_ns, 1000);
		last = group;
	}
	world_check(world);
	world_free(world);
}

int main(void)
{
	test_idles();
	test_idle_ends();
	test_slow_thinker();
	test_no_idling();
	test_no_slice(true);
	test_no_slice(false);
	test_fairness(true);
	test_fairness(false);
	test_does_not_preempt();
	test_renewed();
	test_held_back();
	test_adapts(0, 100 * MS);
	test_adapts(1 * MS, 50 * MS);
	test_adapts(3 * MS, 72 * MS);
	test_adapts(15 * MS, 100 * MS);
	return 0;
}
