// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a group that is alone.
 *
 * On a device without slices, a group that alone is active and has nothing queued
 * needs no choice: its requests pass.  Their device time is summed up, and the group
 * stays active while it has no request, until another group comes or it is removed.  So
 * a request does not walk through the tree.  Then the account is settled: the group is
 * charged, the clocks of its classes are set to its vtime, and if it is empty it leaves
 * as it would have when it became empty.
 *
 *	a passes 1000 requests of 0.1 ms, b comes: a's vtime and the clock are 100 ms
 *	later, b starts there, and neither owes the other anything.
 */
#include "sutro-core.h"

/* The clocks of the only active group's classes are where it is. */
static void sutro_catch_up(struct sutro_group *group)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	for (;;) {
		struct sutro_rank *rank = sutro_rank_of(level, entity);

		if (sutro_before(rank->vtime, entity->vtime))
			rank->vtime = entity->vtime;
		level = sutro_level_of(group);
		if (!level)
			break;
		entity = &group->entity;
		group = group->parent;
	}
}

/**
 * sutro_core_settle - charge the requests that have passed
 * @core:	the leaf
 *
 * To be called before anything of a group is changed by others.
 */
void sutro_core_settle(struct sutro_core *core)
{
	struct sutro_group *group = core->alone;

	if (!group)
		return;
	core->alone = NULL;
	sutro_tree_charge(group, core->alone_ns);
	sutro_catch_up(group);
	core->alone_ns = 0;
	if (!group->queued && !group->in_flight)
		sutro_leave(core, group, group->empty_since_ns);
}

/**
 * sutro_core_may_pass - is a group alone, with nothing to be decided?
 * @core:	the leaf
 * @group:	the group
 * @now_ns:	the time
 *
 * Return: true if the next request may be given to sutro_core_pass().
 */
bool sutro_core_may_pass(const struct sutro_core *core,
			 struct sutro_group *group, u64 now_ns)
{
	if (core->alone != group && core->nr_active != group->self.active)
		return false;
	return !core->queued && !sutro_waits(core) &&
	       !sutro_protects(&core->protect) &&
	       !sutro_expects_other(core, group, now_ns) &&
	       !sutro_is_limited(core, group, now_ns);
}

/**
 * sutro_core_pass - a request arrived and goes to the device at once
 * @core:	the leaf
 * @group:	its group, of which sutro_core_may_pass() is true
 * @far:	it is far from the group's last request
 * @estimate_ns: device time that it will probably use
 * @now_ns:	the time
 */
void sutro_core_pass(struct sutro_core *core, struct sutro_group *group,
		     bool far, u64 estimate_ns, u64 now_ns)
{
	if (core->alone != group) {
		sutro_core_queue(core, group, far, now_ns);
		sutro_core_dispatch(core, group, estimate_ns);
		list_del_init(&group->leaving);
		core->alone = group;
		return;
	}
	if (group->in_flight)
		group->seek_history = (group->seek_history << 1) | far;
	else
		sutro_learn_arrival(core, group, far, now_ns);
	group->in_flight++;
	core->in_flight++;
	core->in_flight_ns += estimate_ns;
	core->alone_ns += estimate_ns;
}
