// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: test-newcomer [SEED]
 *
 * Who comes is soon served, whatever was served before: light and heavy groups, some
 * backlogged all the time, some with a few requests that are mostly at the device,
 * which completes them in any order.  Then many of these want more, and a group comes
 * that never was there.  Until its first request is sent each of the others has had no
 * more than it can be owed, half a slice where others are held back for it and 250 ms
 * where not, and a turn of its own.
 *
 * What a light one has had is much to a heavy one: 10 ms at weight 9 are 10 s at 9000.
 * If these were still owed, the newcomer would wait for as long.
 */
#include <linux/string.h>

#include "random.h"
#include "world.h"

#define MAX_REQUEST_NS (20 * MS)
#define MAX_GROUPS 24
#define CASES 3000
#define ROUNDS 400

static u64 seed = 1;

static u64 below(u64 n)
{
	return random_below(&seed, n);
}

/**
 * struct crowd - groups 1 to @nr - 2 below the root, and one that is to come
 * @depth:	requests that a group keeps queued or at the device
 * @sent_ns:	device time of what was sent since the newcomer came
 */
struct crowd {
	struct world *world;
	bool seeky;
	u32 in_flight;
	u32 nr;
	u32 depth[MAX_GROUPS];
	u64 sent_ns[MAX_GROUPS];
};

static struct crowd crowd_new(u32 nr, bool rotational, bool seeky)
{
	struct crowd crowd = {
		.world = world_new(nr, rotational),
		.seeky = seeky,
		.in_flight = 1 + below(32),
		.nr = nr,
	};
	struct sutro_tunables *t = &crowd.world->core.tunables;
	u32 i;

	if (!rotational && below(2))
		t->busy_ns = random_magnitude(&seed, 10 * MS);
	if (below(2))
		t->depth_ns = random_magnitude(&seed, SEC);
	for (i = 1; i < nr; i++) {
		u32 weight = below(2) ? 1 + below(20)
				      : SUTRO_WEIGHT_MAX - below(8000);

		world_group(crowd.world, i, 0, weight);
		crowd.depth[i] = below(2) ? 100 : 1 + below(8);
	}
	return crowd;
}

static void fill(struct crowd *crowd, u32 group)
{
	const struct sutro_group *g = &crowd->world->group[group];

	world_queue(crowd->world, group,
		    crowd->depth[group] - g->queued - g->in_flight,
		    crowd->seeky);
}

/* One request is sent, or one that is at the device is done; says whose was sent. */
static u32 crowd_step(struct crowd *crowd)
{
	struct world *world = crowd->world;
	u64 cost_ns = random_magnitude(&seed, MAX_REQUEST_NS);
	enum sutro_verdict verdict = SUTRO_WAIT;
	struct sutro_group *done;
	u32 group;

	if (world->flights < crowd->in_flight)
		verdict = world_send(world, cost_ns, &group);
	if (verdict == SUTRO_SERVE) {
		crowd->sent_ns[group] += cost_ns;
		return group;
	}
	if (!world->flights) {
		check_equal(verdict, SUTRO_IDLE);
		world->now_ns = world->core.idle_until_ns;
		return 0;
	}
	group = below(world->flights);
	done = world->flight[group].group;
	world_complete(world, group);
	fill(crowd, done - world->group);
	return 0;
}

/* The most that one of the others can be owed, and have in a turn. */
static u64 most_ns(const struct crowd *crowd)
{
	const struct sutro_tunables *t = &crowd->world->core.tunables;

	if (!t->rotational)
		return 250 * MS + MAX_REQUEST_NS;
	return t->slice_ns / 2 + MAX_REQUEST_NS +
	       (crowd->seeky ? 0 : t->slice_ns);
}

static void try(bool rotational, bool seeky)
{
	struct crowd crowd =
		crowd_new(4 + below(MAX_GROUPS - 3), rotational, seeky);
	struct world *world = crowd.world;
	u32 newcomer = crowd.nr - 1, rounds, i;

	for (i = 1; i < newcomer; i++)
		fill(&crowd, i);
	for (rounds = ROUNDS; rounds--;)
		crowd_step(&crowd);
	world_check(world);

	for (i = 1; i < newcomer; i++) {
		if (below(2))
			crowd.depth[i] = 100;
		fill(&crowd, i);
	}
	fill(&crowd, newcomer);
	memset(crowd.sent_ns, 0, sizeof(crowd.sent_ns));
	while (crowd_step(&crowd) != newcomer)
		for (i = 1; i < newcomer; i++)
			check(crowd.sent_ns[i] <= most_ns(&crowd),
			      "weight %u had %.3f ms before weight %u came to it",
			      world->group[i].entity.weight,
			      crowd.sent_ns[i] / 1e6,
			      world->group[newcomer].entity.weight);
	world_check(world);
	world_free(world);
}

int main(int argc, char **argv)
{
	u32 i;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	for (i = 0; i < CASES; i++) {
		try(false, false);
		try(true, false);
		try(true, true);
	}
	return 0;
}
