// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: unprotected groups beside several protected ones.
 *
 * Protected groups use the reserved windows.  Other groups have only what shared windows give them.
 *
 * 1. Groups that are ahead
 *
 * Time in reserved windows is not charged to groups.  So one with a backlog that has used its part
 * of them would be served in shared windows, too, and those that are entitled to less would have
 * next to nothing.  It enters a shared window ahead by its part (sutro_tree_lead()), whether groups
 * wait for each other (sutro-apart.c) or not.  Until the end of the cycle it has few requests at
 * the device beside groups that use less than their share, as unprotected groups have
 * (sutro-select.c): otherwise each small request of these waits for large ones of its own.  If
 * leads are limited, that is done when such a group is served, too (sutro_group_limit_lead()).
 *
 *	Of six groups on an ssd, with weights from 51 to 563, three deep ones are protected, and
 *	none of them waits.  If they are not ahead, they have 1.08 to 1.12 of their dues, and one of
 *	weight 144 has 0.41.  Now all have 0.97 to 1.06 (tests/sim/fairness.py 5 55 1).
 *
 * That holds for the reserved window, too.  If it does not, a deep group beside a service and bulk
 * has 1.06 of its due on nvme, not 1.97, and 0.897 on eMMC (test_deep_group_between_two()).
 *
 * On rotational devices, others do not wait for a protected group that thinks: it has reserved
 * windows for that.  Their time is not charged, so it would be furthest behind in each shared one.
 *
 *	On an hdd a group of weight 1000 reads 32 KiB and thinks for 5 ms, and another one (1000)
 *	has 64 requests.  A stream (100) has 0.054 of the device, not 0.008.
 *
 * A drive that serves the nearest request first leaves the last one of another group waiting beside
 * a protected group with a backlog, until the end of the reserved window.  That time would be a
 * debt.  So one that is ahead sends no further request until those of others are done.
 *
 *	Two groups of weight 1000 send buffered writes, one of them 64 KiB each 10 ms.  A request of
 *	a light group waited for 0.5 s at the device, four shared windows of 91 ms were left out for
 *	that, and it had 0.15 of its share.  Now it waits for 22 ms, and has 0.86.
 *
 * 2. Few requests at the device
 *
 * Beside protected groups that use less than their share, others have few requests at the device in
 * shared windows, which are longer for that (sutro-part.c).  Beside several ones they are not:
 * their length follows from the entitlement of others, and from the rate alone of each protected
 * group.  So where these rates are known, others have as many as without protection.  On rotational
 * devices few are better: many random ones last beyond the window.
 *
 *	On nvme, a (weight 1000) reads 4 KiB, one at a time, and b (1000) 64 KiB with 64 in flight.
 *	c and d (100) have 0.005 and 0.012 of the device with few requests, and 0.026 and 0.076
 *	with many.  a has 0.60 and 0.61 of its rate alone, and b 1660 and 1748 MB/s.
 *
 * 3. The length of the window
 *
 * Others are entitled to 1 - Phi, where Phi is the sum of the shares of protected groups.  That is
 * the least shared part; while groups wait, it is SUTRO_OTHERS_APART of 4 parts of it.  Groups that
 * are not ahead use a part of the window, so it is longer by that, but not longer than
 * SUTRO_OTHERS_MOST of 4 parts of the entitlement.
 *
 *	a (weight 1000) reads 4 KiB at a time, b (1000) writes 1 MiB with 32 in flight, and c (100)
 *	reads 64 KiB with 64 in flight.  c is entitled to 4.8 %.  If a uses a third of the shared
 *	windows, their least part is 3/4 * 4.8 % / (2/3) = 5.4 %.
 *
 * 4. Where a protected group is short
 *
 * A cycle also has times in which no group is served as fast as alone, for example until requests
 * of others have completed.  If some protected group has less than its share and a sixteenth for
 * errors (sutro_apart_is_short()), the next window is SUTRO_OTHERS_SHORT of 4 parts as long.  It
 * gets longer by a 64th in each cycle after that.
 *
 *	On an ssd whose bus is the limit, c has 0.8 of its entitlement, and a and b have 1.05 and
 *	1.03 of theirs (tests/sim/test_neighbours.py).
 */
#include <linux/math64.h>

#include "sutro-core.h"

/* While groups wait: parts of 4 of the entitlement of others. */
#define SUTRO_OTHERS_APART 3
/* The longest window for others, in parts of 4 of their entitlement. */
#define SUTRO_OTHERS_MOST 5
/* After a cycle in which a protected group was short, in parts of 4. */
#define SUTRO_OTHERS_SHORT 3
/* How much more others have after another cycle. */
#define SUTRO_OTHERS_MORE (SUTRO_PROTECT_WHOLE / 64 + 1)
/* Sums are halved when they are of more than this many cycles. */
#define SUTRO_OTHERS_OLD 8

/**
 * sutro_others_lead - a group is ahead by its part of a window, or no longer
 * @protect:	the protection
 * @own:	that of the group
 * @leads:	it is
 */
void sutro_others_lead(struct sutro_protect *protect,
		       struct sutro_group_protect *own, bool leads)
{
	if (own->leads == leads)
		return;
	own->leads = leads;
	if (leads)
		protect->ahead += own->group->in_flight;
	else
		protect->ahead -= own->group->in_flight;
}

/**
 * sutro_others_skip - do others not wait for a group, because it has reserved windows for that?
 * @core:	the leaf, in a shared window
 * @group:	the group, which has nothing queued
 *
 * Windows that are only a sample protect no group.
 */
bool sutro_others_skip(const struct sutro_core *core,
		       const struct sutro_group *group)
{
	const struct sutro_protect *protect = &core->protect;

	return core->tunables.rotational && sutro_group_protected(group) &&
	       !list_is_singular(&protect->groups) &&
	       sutro_apart_applies(core) &&
	       protect->part < SUTRO_PROTECT_MOST_PART;
}

/**
 * sutro_others_drain - does a group wait until requests of others are done?
 * @core:	the leaf
 * @group:	a protected group, of which a request would be sent
 *
 * A flush at the device may wait for queued data.
 */
bool sutro_others_drain(const struct sutro_core *core,
			const struct sutro_group *group)
{
	const struct sutro_protect *protect = &core->protect;

	return core->tunables.rotational && sutro_apart_applies(core) &&
	       protect->reserved && !protect->clear && group->in_flight &&
	       group->protect->leads && core->in_flight > protect->in_flight &&
	       !core->flush_data;
}

/**
 * sutro_others_have_many - may others have many requests at the device in shared windows?
 * @core:	the leaf
 */
bool sutro_others_have_many(const struct sutro_core *core)
{
	const struct sutro_protect *protect = &core->protect;
	const struct sutro_group_protect *own;

	if (core->tunables.rotational || !sutro_apart_applies(core) ||
	    list_is_singular(&protect->groups))
		return false;
	list_for_each_entry(own, &protect->groups, list)
		if (own->phases[SUTRO_PHASE_ALONE].nr < SUTRO_PROTECT_KNOWN)
			return false;
	return true;
}

/* Is a protected group short?  Older requests count less afterwards. */
static bool sutro_others_any_short(struct sutro_protect *protect)
{
	struct sutro_group_protect *own;
	bool is_short = false;

	list_for_each_entry(own, &protect->groups, list) {
		u64 ns = protect->sum_ns - own->all.ns;

		is_short |= sutro_apart_is_short(protect, own);
		if (ns > SUTRO_OTHERS_OLD * protect->cycle_ns) {
			own->all.ns += ns / 2;
			own->all.nr /= 2;
		}
	}
	return is_short;
}

/**
 * sutro_others_end - a cycle is over
 * @protect:	the protection
 */
void sutro_others_end(struct sutro_protect *protect)
{
	if (list_is_singular(&protect->groups))
		protect->others = SUTRO_PROTECT_WHOLE;
	else if (sutro_others_any_short(protect))
		protect->others = SUTRO_PROTECT_WHOLE * SUTRO_OTHERS_SHORT / 4;
	else
		protect->others = min(protect->others + SUTRO_OTHERS_MORE,
				      SUTRO_PROTECT_WHOLE);
}

/**
 * sutro_others_shared - the least shared part beside several protected groups
 * @core:	the leaf
 * @share:	share of the protected groups, of SUTRO_PROTECT_WHOLE
 *
 * Return: of SUTRO_PROTECT_WHOLE.
 */
u32 sutro_others_shared(const struct sutro_core *core, u64 share)
{
	const struct sutro_protect *protect = &core->protect;
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];
	u64 due = SUTRO_PROTECT_WHOLE - share, least = due;

	if (!sutro_apart_applies(core) || list_is_singular(&protect->groups))
		return 0;
	if (protect->apart)
		least = due * SUTRO_OTHERS_APART / 4;
	if (shared->all_ns)
		least = div64_u64(least * shared->all_ns,
				  max(shared->all_ns - shared->cost_ns, 1ULL));
	least = min(least, due * SUTRO_OTHERS_MOST / 4);
	return least * protect->others / SUTRO_PROTECT_WHOLE;
}
