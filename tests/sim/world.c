// SPDX-License-Identifier: GPL-2.0-only
/*
 * The algorithm alone, called as sutro-iosched.c calls it, and invariants of its
 * state.
 */
#include "world.h"

#include <assert.h>

#include <linux/kernel.h>
#include <linux/string.h>

struct world *world_new(u32 groups, bool rotational)
{
	struct world *world = calloc(1, sizeof(*world));
	struct sutro_tunables *tunables;

	assert(world);
	tunables = &world->core.tunables;
	world->group = calloc(groups, sizeof(world->group[0]));
	world->served_ns = calloc(groups, sizeof(world->served_ns[0]));
	assert(world->group && world->served_ns);
	world->nr = groups;
	world->now_ns = SEC;
	tunables->rotational = rotational;
	tunables->slice_ns = rotational ? 100 * MS : 4 * MS;
	tunables->group_idle_ns = rotational ? 8 * MS : 1 * MS;
	tunables->depth_ns = 4 * MS;
	sutro_group_init(&world->group[0], NULL, SUTRO_WEIGHT_DFL);
	sutro_core_init(&world->core, &world->group[0]);
	return world;
}

void world_free(struct world *world)
{
	u32 i;

	for (i = 0; i < world->nr; i++)
		sutro_protect_exit(&world->group[i]);
	free(world->group);
	free(world->served_ns);
	free(world);
}

void world_group(struct world *world, u32 group, u32 parent, u32 weight)
{
	sutro_group_init(&world->group[group], &world->group[parent], weight);
}

void world_class(struct world *world, u32 group, enum sutro_class class)
{
	sutro_group_set_class(&world->core, &world->group[group], class);
}

/* Requests of a group arrive, each behind the one before or far from it. */
void world_queue(struct world *world, u32 group, u32 nr, bool far)
{
	while (nr--)
		sutro_core_queue(&world->core, &world->group[group], far,
				 world->now_ns);
}

/* Release groups that are no longer active, as sutro_forget(). */
void world_forget(struct world *world)
{
	struct sutro_group *group;

	while ((group = sutro_core_forget(&world->core, world->now_ns)))
		check(!group->queued && !group->in_flight,
		      "a group with requests is forgotten");
}

/* A request arrives and is sent at once, if nothing is to be decided. */
bool world_pass(struct world *world, u32 group, u64 cost_ns)
{
	struct sutro_group *of = &world->group[group];

	world_forget(world);
	if (!sutro_core_may_pass(&world->core, of, world->now_ns))
		return false;
	check(world->flights < MAX_FLIGHTS, "too many requests sent");
	sutro_core_pass(&world->core, of, false, cost_ns, world->now_ns);
	world->flight[world->flights++] =
		(struct flight){ of, cost_ns, cost_ns };
	return true;
}

/* Check that a verdict leaves the device idle, or not full, only where the rules allow it. */
static void world_check_verdict(const struct world *world,
				enum sutro_verdict verdict)
{
	const struct sutro_core *core = &world->core;
	const struct sutro_tunables *t = &core->tunables;
	bool sliced = t->rotational || t->fairness;

	switch (verdict) {
	case SUTRO_SERVE:
		break;
	case SUTRO_EMPTY:
		check_equal(core->queued, 0);
		break;
	case SUTRO_WAIT:
		check(core->queued && core->in_flight &&
			      (sliced ||
			       (core->in_flight >= SUTRO_DEPTH_MIN &&
				(core->nr_active > 1 || t->busy_ns ||
				 sutro_alone_is_full(core) ||
				 sutro_is_shallow(core, world->now_ns)))),
		      "%u queued, %u in flight, %u active", core->queued,
		      core->in_flight, core->nr_active);
		break;
	case SUTRO_IDLE:
		check(sliced, "idle on flash");
		check(core->queued, "idle without need");
		check(core->idle_until_ns > world->now_ns &&
			      core->idle_until_ns - world->now_ns <=
				      t->group_idle_ns,
		      "idle for %llu ns", core->idle_until_ns - world->now_ns);
		break;
	}
}

/* Select the next group, and send a request of it, estimated at its cost. */
enum sutro_verdict world_send(struct world *world, u64 cost_ns, u32 *ret_group)
{
	enum sutro_verdict verdict;
	struct sutro_group *group;

	world_forget(world);
	group = sutro_core_select(&world->core, world->now_ns, &verdict);
	check((verdict == SUTRO_SERVE) == !!group, "verdict %d", verdict);
	world_check_verdict(world, verdict);
	if (!group)
		return verdict;

	check(group->queued, "nothing to send");
	check(world->flights < MAX_FLIGHTS, "too many requests sent");
	sutro_core_dispatch(&world->core, group, cost_ns);
	world->flight[world->flights++] =
		(struct flight){ group, cost_ns, cost_ns };
	if (ret_group)
		*ret_group = group - world->group;
	return verdict;
}

/* Complete a request; the device worked on it alone. */
void world_complete(struct world *world, u32 flight)
{
	struct flight done = world->flight[flight];

	world->flights--;
	memmove(&world->flight[flight], &world->flight[flight + 1],
		(world->flights - flight) * sizeof(done));
	world->now_ns += done.cost_ns;
	world->served_ns[done.group - world->group] += done.cost_ns;
	sutro_core_complete(&world->core, done.group, 1, done.estimate_ns,
			    done.cost_ns, world->now_ns);
}

/* The counters that a level must have, computed from its members. */
struct tally {
	struct {
		u64 weight_sum;
		u32 nr_active;
	} rank[SUTRO_CLASS_NR];
	u32 nr_active;
	bool backlogged;
};

static void tally_entity(struct tally *tally, const struct sutro_entity *entity)
{
	check(!entity->backlogged || entity->active, "backlogged, not active");
	if (!entity->active)
		return;
	tally->rank[entity->class].weight_sum += entity->weight;
	tally->rank[entity->class].nr_active++;
	tally->nr_active++;
	tally->backlogged |= entity->backlogged;
}

/* A tree is in order; returns how many are in it. */
static u32 tree_check(const struct rb_root_cached *tree, enum sutro_class class,
		      bool backlogged)
{
	struct rb_node *node = rb_first_cached(tree), *next;
	u32 nr = 0;

	check_equal(node, rb_first(&tree->rb_root));
	for (; node; node = next) {
		struct sutro_entity *a, *b;

		nr++;
		next = rb_next(node);
		a = rb_entry(node, struct sutro_entity, node);
		check_equal(a->backlogged, backlogged);
		check_equal(a->class, class);
		if (!next)
			break;
		b = rb_entry(next, struct sutro_entity, node);
		check_equal(backlogged ? a->slack : 0, 0);
		check((s64)(b->vtime + b->slack - a->vtime - a->slack) >= 0,
		      "%llu before %llu", a->vtime, b->vtime);
	}
	return nr;
}

/* Everything that is always true. */
void world_check(struct world *world)
{
	struct sutro_core *core = &world->core;
	u32 queued = 0, in_flight = 0, active = 0, i, c;
	u64 in_flight_ns = 0;
	struct tally *tallies = calloc(world->nr, sizeof(tallies[0]));

	assert(tallies);
	for (i = 0; i < world->flights; i++)
		in_flight_ns += world->flight[i].estimate_ns;
	for (i = 0; i < world->nr; i++) {
		struct sutro_group *group = &world->group[i];

		queued += group->queued;
		in_flight += group->in_flight;
		active += group->self.active;
		check_equal(group->self.backlogged, group->queued > 0);
		check((!group->queued && !group->in_flight) ||
			      group->self.active,
		      "group %u is not active", i);
		tally_entity(&tallies[i], &group->self);
		if (group->parent)
			tally_entity(&tallies[group->parent - world->group],
				     &group->entity);
		for (c = 0; c < SUTRO_CLASS_NR; c++) {
			struct sutro_rank *rank = &group->level.rank[c];

			check_equal(tree_check(&rank->queue, c, true) +
					    tree_check(&rank->away, c, false),
				    rank->nr_active);
		}
	}
	for (i = 0; i < world->nr; i++) {
		struct sutro_group *group = &world->group[i];

		for (c = 0; c < SUTRO_CLASS_NR; c++) {
			check_equal(group->level.rank[c].weight_sum,
				    tallies[i].rank[c].weight_sum);
			check_equal(group->level.rank[c].nr_active,
				    tallies[i].rank[c].nr_active);
		}
		check_equal(group->level.nr_active, tallies[i].nr_active);
		if (!group->parent)
			continue;
		check_equal(group->entity.active, tallies[i].nr_active > 0);
		check_equal(group->entity.backlogged, tallies[i].backlogged);
	}
	check_equal(core->queued, queued);
	check_equal(core->in_flight, in_flight);
	check_equal(core->in_flight, world->flights);
	check_equal(core->in_flight_ns, in_flight_ns);
	check_equal(core->nr_active, active);
	free(tallies);
}

/* Nothing is queued or at the device; when all have left, nothing is left. */
static void world_check_empty(struct world *world)
{
	enum sutro_verdict verdict;
	u32 i, c;

	world->now_ns += world->core.tunables.group_idle_ns;
	sutro_core_settle(&world->core);
	world_forget(world);
	check(!sutro_core_select(&world->core, world->now_ns, &verdict),
	      "a request out of nothing");
	check_equal(verdict, SUTRO_EMPTY);
	world_check(world);
	check_equal(world->core.nr_active, 0);
	check(!world->core.in_service, "a slice without requests");
	check(!world->core.idle_for, "waiting for a group that has left");
	for (i = 0; i < world->nr; i++) {
		check_equal(world->group[i].level.nr_active, 0);
		for (c = 0; c < SUTRO_CLASS_NR; c++)
			check_equal(world->group[i].level.rank[c].weight_sum,
				    0);
	}
}

/* Serve all queued requests, at most @depth at once, in the order of the algorithm. */
void world_finish(struct world *world, u32 depth)
{
	u32 steps;

	for (steps = 0; world->core.queued || world->flights; steps++) {
		enum sutro_verdict verdict = SUTRO_WAIT;

		check(steps < 100000, "%u never served", world->core.queued);
		if (world->flights < depth)
			verdict = world_send(world, MS, NULL);
		if (verdict == SUTRO_SERVE)
			continue;
		if (world->flights)
			world_complete(world, 0);
		else if (verdict == SUTRO_IDLE)
			world->now_ns = world->core.idle_until_ns;
		else
			check_equal(verdict, SUTRO_EMPTY);
	}
	world_check_empty(world);
}
