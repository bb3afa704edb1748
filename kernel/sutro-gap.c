// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: gaps between the requests of protected groups.
 *
 * 1. Groups that think
 *
 * While a protected group thinks, other groups may use the device, if they are done
 * when the group is back, and once the requests of the shared window have completed.
 * The group is expected back after the shortest of its recent think times; requests of
 * other groups are sent before that as long as their estimated device time, the largest
 * one that is to be expected, and the latency of the device fit in.  Shared windows are
 * shorter by the device time that they receive in this way.
 *
 *	a reads 4 KiB and thinks for 5 ms, b reads 64 KiB, 0.47 ms each: requests of b
 *	are sent for 4 ms of 5.3, and none of a waits for one.
 *
 * 2. Groups that stay away
 *
 * A group with reserved time is waited for much longer (sutro-reserve.c), because on a stripe
 * it may have its requests at another leaf.  But it may also wait for other groups: a
 * commit of the journal contains their data, and a writer waits until theirs are written.
 * If the device idled meanwhile, neither would go on.  So when a group has been away for
 * SUTRO_GAP_AWAY times the device time of an expensive request of others, these may send as
 * long as they have less than a part of busy_ns in flight.  When the group is back, it waits
 * for about one such request: for at most 1/SUTRO_GAP_AWAY of the time that it was away.
 *
 *	a, a database with 0.8 of the time, commits; b has 20 MB of dirty pages, and each of
 *	its writes takes 5 ms.  After 80 ms without a request of a, b's pages are written.
 */
#include "sutro-core.h"

#define US 1000ULL

/* A group that thinks for longer is not waited for. */
#define SUTRO_PROTECT_HOLD_US 32000ULL
/* For a latency target, the device waits this many times the usual think time of a group. */
#define SUTRO_PROTECT_TARGET_HOLDS 16
/* Weight of the newest sample in means: 1/8; in a minimum or a maximum: 1/64. */
#define SUTRO_GAP_MEAN_SHIFT 3
#define SUTRO_GAP_MIN_SHIFT 6
/*
 * A group is away after the time of this many expensive requests of others.  With 8, a reader
 * of 16 KiB on a stripe of hdd loses more of its floor.
 */
#define SUTRO_GAP_AWAY 16

/* When a group with reserved time has been away for so long that others may send; see 2. */
static u64 sutro_gap_away_ns(const struct sutro_core *core,
			     const struct sutro_group *group)
{
	return group->empty_since_ns + SUTRO_GAP_AWAY * core->protect.other_ns;
}

static bool sutro_gap_is_away(const struct sutro_core *core,
			      const struct sutro_group_protect *own, u64 now_ns)
{
	u64 room_ns = core->tunables.busy_ns / SUTRO_PROTECT_BUSY;

	return own->reserving && core->in_flight_ns <= room_ns &&
	       !sutro_before(now_ns, sutro_gap_away_ns(core, own->group));
}

/* May other groups use the device until the first protected group is back? */
static bool sutro_protect_has_gap(const struct sutro_core *core, u64 now_ns)
{
	const struct sutro_protect *protect = &core->protect;
	u64 done_ns = now_ns + core->in_flight_ns + protect->other_ns +
		      5 * core->tunables.latency_ns / 2;
	const struct sutro_group_protect *own;

	/* Not before the requests of the shared window have completed. */
	if (!protect->clear)
		return false;
	list_for_each_entry(own, &protect->groups, list) {
		if (sutro_protect_by_target(own) && own->latency->gapless)
			return false;
		if (sutro_gap_is_away(core, own, now_ns))
			continue;
		if (!core->tunables.latency_ns ||
		    !sutro_before(done_ns, own->group->empty_since_ns +
						   own->think_min_us * US))
			return false;
	}
	return true;
}

/**
 * sutro_protect_awaited - for which group is nothing sent?
 * @core:	the leaf, in a reserved window, while no protected group has a queued request
 * @now_ns:	the time
 *
 * Return: a protected group with requests at the device, or the one that may take
 * longest to be back; NULL if other groups may be served meanwhile.
 */
struct sutro_group *sutro_protect_awaited(const struct sutro_core *core,
					  u64 now_ns)
{
	const struct sutro_group_protect *own;
	struct sutro_group *last = NULL;

	list_for_each_entry(own, &core->protect.groups, list) {
		if (sutro_reserve_is_used_up(&core->protect, own))
			continue;
		if (own->group->in_flight)
			return own->group;
		if (!last ||
		    sutro_before(last->leave_at_ns, own->group->leave_at_ns))
			last = own->group;
	}
	return last && sutro_protect_has_gap(core, now_ns) ? NULL : last;
}

/**
 * sutro_protect_look_ns - when to look again whether others may be served
 * @core:	the leaf, in a reserved window
 * @group:	the protected group that is waited for
 * @now_ns:	the time
 *
 * Return: a time after @now_ns: when the group has left, or has been away for long.
 */
u64 sutro_protect_look_ns(const struct sutro_core *core,
			  const struct sutro_group *group, u64 now_ns)
{
	u64 away_ns = sutro_gap_away_ns(core, group);

	if (!group->protect->reserving || !sutro_before(now_ns, away_ns) ||
	    !sutro_before(away_ns, group->leave_at_ns))
		return group->leave_at_ns;
	return away_ns;
}

/**
 * sutro_protect_leave_ns - until when is a group without requests waited for?
 * @group:	the group, protected
 * @idle_ns:	for how long at least
 */
u64 sutro_protect_leave_ns(const struct sutro_group *group, u64 idle_ns)
{
	const struct sutro_group_protect *own = group->protect;
	u64 hold_ns = idle_ns;

	if (own->reserving)
		hold_ns = sutro_reserve_hold_ns(idle_ns);
	else if (sutro_protect_by_target(own))
		hold_ns += SUTRO_PROTECT_TARGET_HOLDS * own->think_us * US;
	else if (own->think_us <= SUTRO_PROTECT_HOLD_US)
		hold_ns = min(own->think_max_us * US + idle_ns,
			      SUTRO_PROTECT_HOLD_US * US);
	return group->empty_since_ns + hold_ns;
}

/**
 * sutro_protect_learn - a group without requests is back
 * @group:	the group
 * @think_ns:	after this time
 */
void sutro_protect_learn(struct sutro_group *group, u64 think_ns)
{
	struct sutro_group_protect *own = group->protect;
	u32 think_us;

	if (!own)
		return;
	/* One long pause must not look like a habit. */
	think_us = div_u64(min(think_ns, 2 * SUTRO_PROTECT_HOLD_US * US), US);
	own->think_us += ((s32)think_us - (s32)own->think_us) >>
			 SUTRO_GAP_MEAN_SHIFT;
	if (think_us < own->think_min_us || !own->think_min_us)
		own->think_min_us = think_us;
	else
		own->think_min_us += (think_us - own->think_min_us) >>
				     SUTRO_GAP_MIN_SHIFT;
	if (think_us > own->think_max_us)
		own->think_max_us = think_us;
	else
		own->think_max_us -= (own->think_max_us - think_us) >>
				     SUTRO_GAP_MIN_SHIFT;
}
