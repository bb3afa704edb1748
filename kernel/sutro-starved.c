// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: groups that have waited too long.
 *
 * Weights decide how often a group has its turn.  A group of weight 1 beside one of 10000
 * has a request of 8 ms each 80 s, and a task of the heavy group may wait all that time for
 * a lock that the light one holds.  So a group that has not been served for SUTRO_STARVED_NS
 * while it had requests queued is starved, and the one that waits longest is next, whatever
 * the order of the tree.  It is charged as ever: for a group that is starved because it was
 * served in advance, or because slices of others are long, only the order changes.
 *
 * The bound.  After a starved group no other one is served as such until 32 times the
 * estimate of its request has passed, so starved groups together take no more than one part
 * in 33 of the time from others.  With n starved groups, whose next requests cost c1 to cn,
 * the last of them is served within
 *
 *	SUTRO_STARVED_NS + 33 * (c1 + ... + c(n-1)) + the time until the device has room
 *
 * after its last request or its first arrival.  Settings have no part in this.
 *
 *	One group of weight 1 beside any number of 10000: 5 s, and the requests at the device.
 *	A hundred of weight 1 with requests of 8 ms: 31 s, where weights alone let
 *	each wait 81 s.
 */
#include "sutro-core.h"

/* As long as an async request waits for its turn within its group (sutro-requests.c). */
#define SUTRO_STARVED_NS (5 * 1000 * 1000000ULL)

/**
 * sutro_starved_queued - a group has its first queued request
 * @core:	the leaf
 * @group:	the group
 * @now_ns:	the time
 */
void sutro_starved_queued(struct sutro_core *core, struct sutro_group *group,
			  u64 now_ns)
{
	group->waits_since_ns = now_ns;
	/* The group is no longer leaving. */
	list_move_tail(&group->node, &core->waiting);
}

/**
 * sutro_starved_unqueued - a group has no queued request left
 * @group:	the group
 */
void sutro_starved_unqueued(struct sutro_group *group)
{
	list_del_init(&group->node);
}

/**
 * sutro_starved_next - the group that waits longest, if that is too long
 * @core:	the leaf
 * @now_ns:	the time
 *
 * Return: the group, which has a request queued, or NULL.
 */
struct sutro_group *sutro_starved_next(struct sutro_core *core, u64 now_ns)
{
	struct sutro_group *group;

	group = list_first_entry_or_null(&core->waiting, struct sutro_group,
					 node);
	if (!group || sutro_before(now_ns, core->starved_until_ns) ||
	    sutro_before(now_ns, group->waits_since_ns + SUTRO_STARVED_NS))
		return NULL;
	return group;
}

/**
 * sutro_starved_sent - a request of a group is sent
 * @core:	the leaf
 * @group:	the group, before the request is taken off its queue
 * @estimate_ns: device time that it will probably use
 */
void sutro_starved_sent(struct sutro_core *core, struct sutro_group *group,
			u64 estimate_ns)
{
	if (group == core->starved)
		core->starved_until_ns =
			core->now_ns + SUTRO_AGE_PART * estimate_ns;
	core->starved = NULL;
	group->waits_since_ns = core->now_ns;
	list_move_tail(&group->node, &core->waiting);
}
