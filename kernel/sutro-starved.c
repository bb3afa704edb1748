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
 *
 * While groups are protected for their shares, others are served in the shared window of a
 * cycle, which may be a second long.  A shell or a service with a request now and then would
 * wait for that each time, although it uses next to nothing of the device.  So in a reserved
 * window, a group that has had one cheap request only for SUTRO_STARVED_LIGHT_NS is served,
 * unless it has been served in advance.  Such requests take one part in 257 of the time from
 * protected groups.
 *
 *	A database of weight 1000 keeps an ssd busy, beside writes of 1 MiB.  A shell of weight
 *	100 reads 4 KiB 10 times a second.  99 % of its reads take less than 20 ms, and 2 s
 *	without this; the database has 0.97 of its rate.
 */
#include "sutro-core.h"

/* As long as an async request waits for its turn within its group (sutro-requests.c). */
#define SUTRO_STARVED_NS (5 * 1000 * 1000000ULL)
/* In reserved windows the only request of a group waits for no longer than this. */
#define SUTRO_STARVED_LIGHT_NS (16 * 1000000ULL)
/* If the one before used no more device time than this. */
#define SUTRO_STARVED_CHEAP_NS (500 * 1000U)
/* Time for protected groups, for each ns of such a request. */
#define SUTRO_STARVED_LIGHT_PART 256
/* Groups that are looked at for that. */
#define SUTRO_STARVED_LOOKS 16

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

/* Is a request out of turn possible in this window?  Not in time that groups were promised. */
static bool sutro_starved_may_be_light(const struct sutro_core *core)
{
	const struct sutro_protect *protect = &core->protect;

	return protect->reserved && protect->by_share && !protect->reserve &&
	       !protect->by_target && !core->tunables.rotational;
}

/* Of the groups that have waited longest, one whose only request waits. */
static struct sutro_group *sutro_starved_light(const struct sutro_core *core,
					       u64 now_ns)
{
	struct sutro_group *group;
	u32 looks = 0;

	list_for_each_entry(group, &core->waiting, node) {
		if (sutro_before(now_ns, group->waits_since_ns +
						 SUTRO_STARVED_LIGHT_NS) ||
		    looks++ == SUTRO_STARVED_LOOKS)
			break;
		if (group->queued == 1 && !group->in_flight && group->cheap &&
		    !sutro_group_protected(group) &&
		    sutro_group_lag_ns(group) >= 0)
			return group;
	}
	return NULL;
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
	if (!group || sutro_before(now_ns, core->starved_until_ns))
		return NULL;
	if (!sutro_before(now_ns, group->waits_since_ns + SUTRO_STARVED_NS))
		return group;
	return sutro_starved_may_be_light(core)
		       ? sutro_starved_light(core, now_ns)
		       : NULL;
}

/* Time for others, for each ns of a request of a group that was served as starved. */
static u64 sutro_starved_part(const struct sutro_group *group, u64 now_ns)
{
	return sutro_before(now_ns, group->waits_since_ns + SUTRO_STARVED_NS)
		       ? SUTRO_STARVED_LIGHT_PART
		       : SUTRO_AGE_PART;
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
	group->cheap = estimate_ns <= SUTRO_STARVED_CHEAP_NS;
	if (group == core->starved)
		core->starved_until_ns =
			core->now_ns +
			sutro_starved_part(group, core->now_ns) * estimate_ns;
	core->starved = NULL;
	group->waits_since_ns = core->now_ns;
	list_move_tail(&group->node, &core->waiting);
}
