// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: fuzz-core [libFuzzer's arguments, FILES]
 *
 * A libFuzzer target: a string of bytes is a small tree of groups, tunables, and
 * then what happens to them, one operation for each byte and its operands.  After
 * every operation the invariants of the algorithm's state are checked (world_check()),
 * and that no verdict leaves the device idle against the rules; when the bytes are used
 * up, all that waits is served, and nothing may be left.
 *
 *	00 | 01 64 | 02 ...	rotational, 2 groups, weight 100, slice ... ;
 *	30 01 07 | 41 | ...	8 requests for group 1, send one, ...
 *
 * `meson test` runs it for a fixed seed and number of inputs; without them it runs
 * until it finds something, and a FILE that it wrote shows it again.
 */
#include "world.h"

#define MAX_GROUPS 16
#define MAX_IN_FLIGHT 64
#define MAX_QUEUED 1000

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* The bytes that are left; zeros follow. */
struct bytes {
	const u8 *next;
	size_t left;
};

static u8 take(struct bytes *bytes)
{
	if (!bytes->left)
		return 0;
	bytes->left--;
	return *bytes->next++;
}

/* From 0 to n - 1. */
static u32 take_below(struct bytes *bytes, u32 n)
{
	return take(bytes) % n;
}

/* A time or cost of any magnitude up to 15 s, from one byte: m * 2^e. */
static u64 take_ns(struct bytes *bytes)
{
	u8 byte = take(bytes);

	return (u64)(byte & 7) << (byte >> 3);
}

static u32 take_weight(struct bytes *bytes)
{
	return 1 + ((take(bytes) << 8 | take(bytes)) % SUTRO_WEIGHT_MAX);
}

static struct world *take_world(struct bytes *bytes)
{
	u8 flags = take(bytes);
	u32 nr = 2 + take_below(bytes, MAX_GROUPS - 1), i;
	struct world *world = world_new(nr, flags & 1);
	struct sutro_tunables *t = &world->core.tunables;

	t->fairness = flags & 2;
	if (flags & 4)
		t->slice_ns = take_ns(bytes);
	if (flags & 8)
		t->group_idle_ns = take_ns(bytes);
	if (flags & 16)
		t->busy_ns = take_ns(bytes);
	if (flags & 32)
		t->depth_ns = take_ns(bytes);
	for (i = 1; i < nr; i++)
		world_group(world, i, take_below(bytes, i), take_weight(bytes));
	return world;
}

static void operate(struct world *world, struct bytes *bytes)
{
	u8 op = take(bytes);
	u32 group = take_below(bytes, world->nr);
	struct sutro_group *g = &world->group[group];

	/* Other functions change a group only after its account is settled. */
	if (op % 13 >= 8 && op % 13 <= 10)
		sutro_core_settle(&world->core);
	switch (op % 13) {
	case 0 ... 1:
		if (world->core.queued < MAX_QUEUED)
			world_queue(world, group, 1 + take_below(bytes, 8),
				    op % 13);
		break;
	case 2 ... 4:
		if (world->flights < MAX_IN_FLIGHT &&
		    world_send(world, take_ns(bytes), NULL) == SUTRO_SERVE)
			world->flight[world->flights - 1].cost_ns =
				take_ns(bytes);
		break;
	case 5 ... 6:
		if (world->flights)
			world_complete(world,
				       take_below(bytes, world->flights));
		break;
	case 7:
		/* The request that it is merged into stays. */
		if (g->queued > 1)
			sutro_core_unqueue(&world->core, g);
		break;
	case 8:
		if (group)
			sutro_group_set_weight(g, take_weight(bytes));
		break;
	case 9:
		if (group)
			world_class(world, group,
				    take_below(bytes, SUTRO_CLASS_NR));
		break;
	case 10:
		if (group)
			sutro_group_set_gone(&world->core, g);
		break;
	case 11:
		world->now_ns += take_ns(bytes);
		world_forget(world);
		break;
	case 12:
		if (world->flights < MAX_IN_FLIGHT)
			world_pass(world, group, take_ns(bytes));
		break;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct world *world = take_world(&bytes);
	u64 last_ns = 0;
	u32 i;

	while (bytes.left) {
		operate(world, &bytes);
		world_check(world);
	}
	world_finish(world, MAX_IN_FLIGHT);
	/* Each ns that the device worked was charged to one group. */
	for (i = 0; i < world->nr; i++) {
		check_equal(world->group[i].stat.time_ns, world->served_ns[i]);
		last_ns += world->served_ns[i];
	}
	check(last_ns <= world->now_ns, "more than there was");
	world_free(world);
	return 0;
}
