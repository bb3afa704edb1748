// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: reserved time.
 *
 * io.sutro.reserve is a part of the time that is reserved for a group and all groups below
 * it, whatever their weights.  Such groups are protected (sutro-protect.c) without a trial
 * while they have requests, and for SUTRO_RESERVE_HOLD_NS after that: on a stripe, a group
 * has requests now at one leaf and now at another.  Cycles begin at the same moments on all
 * leaves (sutro-window.c), so with the same part on all leaves of a volume, a group has the
 * whole volume for itself in its windows.
 *
 * That is also so on rotational devices, where no group is protected for its share.  There
 * a group with one request at a time is waited for in its slices, and on a stripe these do
 * not fall on the same time: each request waits for its group's slice on another leaf.
 *
 * 1. Several groups
 *
 * If time is reserved for several groups, their windows are common, as long as the sum of
 * their parts.  In a cycle each may use as much device time in these as its part.  Then it
 * waits for the shared window, so that many large requests of one do not take the time of
 * the others.
 *
 *	Of a cycle of 67 ms, 0.3 is reserved for a and 0.2 for b: the reserved window takes
 *	34 ms.  a sends requests for 20 ms of device time in it, b for 13 ms.  While a
 *	waits for its completions, b uses the device, and both are done before the window
 *	ends: the rest of it belongs to whichever has time left.
 *
 * A group that is the only protected one has the whole of each reserved window, also
 * where the estimates of its requests are too large.
 *
 * If others are protected for their shares, reserved windows are longer than the sum of these
 * parts.  Then they begin with that time, and such groups are served after it, and in gaps.
 * Otherwise large requests of a heavy group would take reserved time: beside groups with reserved
 * time it receives less than its share, so that a trial shows that it needs protection.
 *
 *	Half of the time is reserved for a, and b, protected for its share, writes 1 MiB.  Without
 *	this, a's 8 requests of 16 KiB (2 ms) and one of b (15 ms) would alternate.
 *
 * 2. The shared part of a cycle
 *
 * With reserved parts r_i, the shared part is at most 1 - sum(r_i), and exactly that if no
 * group is protected for its share.  Draining is not owed then: the reserved part is one of
 * the time, and sutrod corrects it by the rate that the group receives.
 *
 * 3. Service of a group
 *
 * Requests of other groups that were sent in the shared window take the first D of the
 * reserved one, so with the rate X that the group reaches alone, and X_s in shared
 * windows, it receives
 *
 *	X * (r - D / T) + X_s * (1 - r)
 *
 * in cycles of length T.  D is known (&sutro_protect.drain_ns), and a cycle takes at least
 * SUTRO_RESERVE_DRAINS times as long.
 *
 *	Writes of 1 MiB take 7.4 ms, and with two of them at the device D is 15 ms: T is
 *	at least 90 ms, so 134 ms.  A group with r = 0.3 has X * (0.3 - 0.11) = 0.19 X.
 */
#include "sutro-core.h"

#define MS (1000 * 1000ULL)

/* The device waits for a group with reserved time for at most this time. */
#define SUTRO_RESERVE_HOLD_NS (1000 * MS)
/* A cycle takes at least this many times as long as draining. */
#define SUTRO_RESERVE_DRAINS 6

/**
 * sutro_group_reserving - for which group is time reserved that a group may use?
 * @group:	the group
 *
 * Return: the group itself, or its nearest ancestor with reserved time, or NULL.
 */
struct sutro_group *sutro_group_reserving(struct sutro_group *group)
{
	while (group && !group->reserve)
		group = group->parent;
	return group;
}

/**
 * sutro_reserve_begin - add up anew what is reserved for protected groups
 * @protect:	the protection
 */
void sutro_reserve_begin(struct sutro_protect *protect)
{
	protect->reserve = 0;
	protect->reserving = 0;
	protect->used_up = 0;
	protect->cycles++;
}

/* Has a group used all of its part of this cycle? */
static bool sutro_reserve_is_over(const struct sutro_protect *protect,
				  const struct sutro_group *group)
{
	return group->reserve_used_ns >=
	       protect->cycle_ns * group->reserve / SUTRO_RESERVE_WHOLE;
}

/**
 * sutro_reserve_add - add the time that is reserved for a protected group
 * @protect:	the protection
 * @group:	the group for which it is reserved, or NULL
 * @begins:	a cycle begins
 *
 * Time that several protected groups may use is added once.
 */
void sutro_reserve_add(struct sutro_protect *protect, struct sutro_group *group,
		       bool begins)
{
	if (!group || group->reserve_seen == protect->cycles)
		return;
	group->reserve_seen = protect->cycles;
	if (begins)
		group->reserve_used_ns = 0;
	protect->reserving++;
	protect->used_up += sutro_reserve_is_over(protect, group);
	protect->reserve +=
		group->reserve * SUTRO_PROTECT_WHOLE / SUTRO_RESERVE_WHOLE;
}

/**
 * sutro_reserve_sent - a request of a protected group goes to the device
 * @protect:	the protection
 * @own:	that of the group
 * @estimate_ns: device time that the request will probably use
 */
void sutro_reserve_sent(struct sutro_protect *protect,
			struct sutro_group_protect *own, u64 estimate_ns)
{
	struct sutro_group *group = own->reserving;
	bool was_over;

	if (!group || !protect->reserved)
		return;
	was_over = sutro_reserve_is_over(protect, group);
	/* The limit is 4 s, and no cycle is that long. */
	group->reserve_used_ns =
		min(group->reserve_used_ns + estimate_ns, U32_MAX);
	protect->used_up += !was_over && sutro_reserve_is_over(protect, group);
}

/**
 * sutro_reserve_is_used_up - has a group used all of its reserved time in this cycle?
 * @protect:	the protection
 * @own:	that of the group
 */
bool sutro_reserve_is_used_up(const struct sutro_protect *protect,
			      const struct sutro_group_protect *own)
{
	const struct sutro_group *group = own->reserving;

	return group && protect->reserving > 1 &&
	       sutro_reserve_is_over(protect, group);
}

/* When the part of a reserved window that is reserved for groups ends. */
static u64 sutro_reserve_end_ns(const struct sutro_protect *protect)
{
	return protect->shared_ns +
	       protect->cycle_ns / SUTRO_PROTECT_WHOLE * protect->reserve;
}

/**
 * sutro_reserve_is_left - is this the part of a reserved window that is reserved for groups?
 * @protect:	the protection
 * @now_ns:	the time
 */
bool sutro_reserve_is_left(const struct sutro_protect *protect, u64 now_ns)
{
	if (!protect->reserved ||
	    (protect->reserving > 1 && protect->used_up >= protect->reserving))
		return false;
	return sutro_before(now_ns, sutro_reserve_end_ns(protect));
}

/**
 * sutro_reserve_look_ns - when others than these groups may be served
 * @protect:	the protection
 * @now_ns:	the time
 *
 * Return: SUTRO_CORE_EVER_NS later if they may already.
 */
u64 sutro_reserve_look_ns(const struct sutro_protect *protect, u64 now_ns)
{
	if (!sutro_reserve_is_left(protect, now_ns))
		return now_ns + SUTRO_CORE_EVER_NS;
	return sutro_reserve_end_ns(protect);
}

/**
 * sutro_reserve_hold_ns - for how long is a group without requests waited for?
 * @idle_ns:	the least time
 */
u64 sutro_reserve_hold_ns(u64 idle_ns)
{
	return max(idle_ns, SUTRO_RESERVE_HOLD_NS);
}

/**
 * sutro_reserve_cycle_ns - how long a cycle has to be at least
 * @protect:	the protection
 */
u64 sutro_reserve_cycle_ns(const struct sutro_protect *protect)
{
	return protect->reserve ? SUTRO_RESERVE_DRAINS * protect->drain_ns : 0;
}
