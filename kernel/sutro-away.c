// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: protected groups that stay away.
 *
 * The device waits for a protected group for up to 64 ms in most cases (sutro-gap.c), and for one
 * with reserved time for up to a second (sutro-reserve.c).  But the group may be waiting for
 * others: a commit of the journal contains their data, and a task that writes to the page cache
 * sleeps while there are too many dirty pages (balance_dirty_pages()).  If the device idled
 * meanwhile, neither would go on.  So others may send while a group is away:
 *
 * 1. When a group is rarely back
 *
 * Others may send when at most one in SUTRO_THINK_RARE of the recent think times that are as long
 * as this one already is ended before an expensive request of others would be done
 * (sutro_think_free_us()).  If no time is reserved for the group, they may do so after three of
 * four think times only; until then, gaps have a closer limit.  Such a group on a rotational device
 * is never away.
 *
 * 2. The price
 *
 * If the group is back while such requests are at the device, these have cost it time.
 * A group may lose one in SUTRO_AWAY_PART of the time in this way, or one in
 * SUTRO_AWAY_PART_RESERVED of it with reserved time.  It loses at most the time of the requests at
 * the device.  So others may send while that, with the new request, is no more than the group may
 * still lose: SUTRO_AWAY_SAVED expensive requests at most.
 *
 *	a, a database with 0.8 of the time, writes 12 pages one after another, in 5 ms each,
 *	and waits until b has written 1 MiB; b's writes take 10 ms each.  Eleven of twelve think
 *	times of a are 10 us.  So 1.3 ms after its last completion b sends, and is done 80 ms
 *	later.  One write of b is then at the device, and a waits for 5 ms of 145.
 *
 * 3. Writeback
 *
 * No task waits for a page that a kernel thread writes, unless it needs that page.  So a group
 * that had only such requests is not waited for, and others do not cost it anything.
 *
 *	The tasks of a may make one page dirty in 4 ms, and a kernel thread writes each at once.
 *	If the device waited for the next one, b's pages, for which they sleep, were not written.
 *
 * 4. Volumes
 *
 * On a volume of several leaves, a group has requests now at one leaf and now at another.  It is
 * not away while it has any, and think times begin when there are none (sutro-volume.c).
 *
 * In any case, others may send when a group with reserved time has had no request at a leaf for
 * SUTRO_AWAY_SURE times the time of an expensive request of others.  If no time is reserved for the
 * group, that is SUTRO_AWAY_PART times, so that it loses one part in that many of the time.
 *
 * On rotational devices, others also get the slices (sutro-select.c) in which a group with
 * reserved time would be waited for.
 */
#include <linux/math64.h>

#include "sutro-core.h"

#define US 1000ULL

/*
 * Half of the loss that `protect` allows by default.  With all of it, 6 of 1420 random pairs more
 * miss their goals, and 2 with half.
 */
#define SUTRO_AWAY_PART 64
#define SUTRO_AWAY_PART_RESERVED 16
#define SUTRO_AWAY_SAVED 4
/* With 8, readers of 4 and 16 KiB on stripes have as much of their floors, within 0.02. */
#define SUTRO_AWAY_SURE 16
/* While a group has requests at another leaf, look again after this part of a request's time. */
#define SUTRO_AWAY_LOOK 4

/* A group may lose one in this many of the time. */
static u32 sutro_away_part(const struct sutro_group_protect *own)
{
	return own->reserving ? SUTRO_AWAY_PART_RESERVED : SUTRO_AWAY_PART;
}

/**
 * sutro_away_back - a protected group is back: what have others cost it?
 * @core:	the leaf
 * @own:	its protection
 * @now_ns:	the time
 */
void sutro_away_back(const struct sutro_core *core,
		     struct sutro_group_protect *own, u64 now_ns)
{
	const struct sutro_protect *protect = &core->protect;
	s64 most_ns = SUTRO_AWAY_SAVED * protect->other_ns;

	if (own->back_ns)
		own->spare_ns +=
			div_u64(now_ns - own->back_ns, sutro_away_part(own));
	if (own->awaited && protect->clear &&
	    core->in_flight != protect->in_flight &&
	    sutro_before(own->back_ns, protect->away_sent_ns))
		own->spare_ns -= core->in_flight_ns;
	own->spare_ns = clamp(own->spare_ns, -most_ns, most_ns);
	own->back_ns = now_ns;
}

/* From when on is a group rarely back, and may it lose a request's time; see 1 and 2. */
static u64 sutro_away_rarely_ns(const struct sutro_core *core,
				const struct sutro_group_protect *own,
				u64 cost_ns, u64 needs_ns, u64 now_ns)
{
	u64 since_ns = sutro_volume_since_ns(own);
	u64 needs_us = div_u64(needs_ns, US);
	s64 short_ns = cost_ns - own->spare_ns;
	s64 away_ns = max_t(s64, now_ns - since_ns, 0);
	u64 away_us;

	away_ns = max_t(s64, away_ns, sutro_away_part(own) * short_ns);
	away_us = div_u64(away_ns, US);
	if (!own->reserving)
		away_us = max(away_us,
			      sutro_think_usual_us(&own->think, needs_us));
	away_us = sutro_think_free_us(&own->think, away_us, needs_us);
	return since_ns + away_us * US;
}

/**
 * sutro_away_from_ns - when may others send although a protected group may come back?
 * @core:	the leaf
 * @own:	its protection, while it has no request at this leaf
 * @now_ns:	the time
 *
 * Return: a time; while the group has requests at another leaf, the next one at which to look.
 */
u64 sutro_away_from_ns(const struct sutro_core *core,
		       const struct sutro_group_protect *own, u64 now_ns)
{
	u64 cost_ns = core->protect.other_ns + core->in_flight_ns;
	u64 needs_ns = sutro_gap_needs_ns(core, core->protect.other_ns);
	u64 sure_ns = now_ns + SUTRO_CORE_EVER_NS, from_ns;

	if (own->reserving)
		sure_ns =
			own->group->empty_since_ns + SUTRO_AWAY_SURE * cost_ns;
	else if (core->tunables.rotational)
		return sure_ns;
	else if (sutro_volume_is_busy(own))
		sure_ns =
			own->group->empty_since_ns + SUTRO_AWAY_PART * cost_ns;
	from_ns = sure_ns;
	if (sutro_volume_is_busy(own))
		from_ns = now_ns + needs_ns / SUTRO_AWAY_LOOK;
	else if (!own->awaited)
		from_ns = own->group->empty_since_ns;
	else if (own->think.nr >= SUTRO_THINK_FEW)
		from_ns = sutro_away_rarely_ns(core, own, cost_ns, needs_ns,
					       now_ns);
	return sutro_before(from_ns, sure_ns) ? from_ns : sure_ns;
}

/**
 * sutro_is_away - may others send although a group may come back?
 * @core:	the leaf
 * @group:	the group; only a protected one can be away
 * @now_ns:	the time
 */
bool sutro_is_away(const struct sutro_core *core,
		   const struct sutro_group *group, u64 now_ns)
{
	return sutro_group_protected(group) && !group->queued &&
	       !group->in_flight &&
	       !sutro_before(now_ns,
			     sutro_away_from_ns(core, group->protect, now_ns));
}
