// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: gaps between the requests of protected groups.
 *
 * While a protected group thinks, other groups may use the device, if they are done
 * when the group is back, and once the requests of the shared window have completed.
 * The group is expected back after one of its recent think times (sutro-think.c); a request of
 * another group is sent before that if its estimated device time, that of all at the device, and
 * the latency of the device fit in.  One that does not fit stays the next of its group, and
 * another one of the group is sent that fits in twice, or one of another group.  That one is served
 * out of turn: its group is not charged, because the one whose turn it is could not use the time.
 * Shares divide this time among such groups.
 *
 * Shared windows are shorter by the device time that others receive in gaps, unless protected
 * groups wait for each other (sutro-apart.c).  While some group has
 * only requests that fit into no gap, or has one that has waited for SUTRO_GAP_PATIENCE_NS, that
 * is at most half of SUTRO_PROTECT_LEAST.
 *
 *	a reads 4 KiB and thinks for 5 ms, b reads 64 KiB, 0.47 ms each: requests of b
 *	are sent for 4 ms of 5.3, and none of a waits for one.  A request of b for 512 KiB,
 *	3.8 ms, is sent if it is the first of a gap, and else in the next gap.  One for 1 MiB,
 *	7.4 ms, is sent in a shared window.
 *
 * Estimates may be too low: a class that no probe has measured is learned from windows in which
 * little of it was sent.  When others are not done although a protected group is back no earlier
 * than expected, the time that their requests need is taken for up to a tenth more from then
 * on; each time that they are done, for 1/1024 less, or for 1/2048 beside a latency-sensitive
 * group.  So 1 % of gaps are too short, or half of that.  A group that is back early makes it up
 * to a twentieth more, unless it was never away for so short a time.
 *
 *	b's reads of 256 KiB take 1.9 ms, and are estimated at 0.9.  After some reads of a
 *	have waited for them, the factor is about 2.1, and one of b's fits into 3 ms.
 *
 * A rotational device serves one request after another, so there is no latency beyond the
 * device time.  Costs are measured exactly there, and vary with seeks: a request is sent if an
 * expensive one of others would fit in, and the factor is 1.  A protected stream would pay a seek
 * for each gap, so only a group of random requests has gaps there.
 *
 *	a reads 16 KiB in 8 ms and thinks for 20 ms, b reads 64 KiB in 10 ms, all at random:
 *	one request of b is sent in each gap.  Without gaps, b would have 1 % of the device.
 *
 * While a group has requests at another leaf of a volume, it does not think (sutro-volume.c).
 *
 * A group with reserved time has no gaps on any device, unless it stays away (sutro-away.c).
 *
 * The device is kept for a group that thinks for up to 64 ms, or 32 ms if it is rotational.  A
 * group is waited for up to 256 ms if it is quiet for half of its mean think time and the requests
 * of others fit into that.
 */
#include <linux/bits.h>
#include <linux/math64.h>

#include "sutro-core.h"

#define US 1000ULL

/* A group that thinks for longer is not waited for, unless others can use that time. */
#define SUTRO_PROTECT_HOLD_US 64000ULL
#define SUTRO_PROTECT_REGULAR_US 256000ULL
/* For a latency target, the device waits this many times the usual think time of a group. */
#define SUTRO_PROTECT_TARGET_HOLDS 16
/* While a group has requests at other leaves, it is waited for this long at one. */
#define SUTRO_PROTECT_STAYS_NS (1000 * 1000 * US)
/* The factor of estimates in gaps is 1 + gap_more / WHOLE, and 8 at most. */
#define SUTRO_GAP_SHIFT 11
#define SUTRO_GAP_WHOLE 2048U
#define SUTRO_GAP_MORE_MAX (7 * SUTRO_GAP_WHOLE)
#define SUTRO_GAP_LATE_PART 10
/* The whole device, of which a group has its share, divided by costs of up to a second. */
#define SUTRO_GAP_SHARE_WHOLE BIT_ULL(44)

/* Can other groups use the device while a protected group thinks? */
static bool sutro_gap_is_usable(const struct sutro_core *core,
				const struct sutro_group_protect *own)
{
	if (core->tunables.rotational)
		return !own->reserving && sutro_group_seeky(own->group);
	return core->tunables.latency_ns;
}

/* How long requests with these estimates probably take in gaps. */
static u64 sutro_gap_scaled(const struct sutro_protect *protect,
			    u64 estimate_ns)
{
	return mul_u64_u32_shr(estimate_ns, SUTRO_GAP_WHOLE + protect->gap_more,
			       SUTRO_GAP_SHIFT);
}

/**
 * sutro_gap_needs_ns - for how long will one more request of another group keep the device busy?
 * @core:	the leaf
 * @cost_ns:	estimate of the request
 *
 * A drive that may choose among many serves near ones first: the last of them take longer
 * than estimated.
 */
u64 sutro_gap_needs_ns(const struct sutro_core *core, u64 cost_ns)
{
	u64 all_ns = core->in_flight_ns + cost_ns;

	if (core->tunables.rotational)
		return all_ns + core->in_flight_ns / 2;
	return sutro_gap_scaled(&core->protect, all_ns) +
	       5 * core->tunables.latency_ns / 2;
}

/*
 * Since when does a group think?  Up to @now_ns: it has requests at another leaf.  With a latency
 * target, think times are those of this leaf.
 */
static u64 sutro_gap_since_ns(const struct sutro_group_protect *own, u64 now_ns)
{
	if (sutro_protect_by_target(own))
		return own->group->empty_since_ns;
	return sutro_volume_is_busy(own) ? now_ns : sutro_volume_since_ns(own);
}

/*
 * When is a group expected back?  With a latency target, few requests may be late: only the
 * shortest think time counts.
 */
static u64 sutro_gap_back_ns(const struct sutro_group_protect *own, u64 now_ns)
{
	const struct sutro_think *think = &own->think;
	u64 since_ns = sutro_gap_since_ns(own, now_ns);
	s64 away_ns = max_t(s64, now_ns - since_ns, 0);

	if (sutro_protect_by_target(own))
		return since_ns + sutro_think_min_us(think) * US;
	if (sutro_volume_is_busy(own))
		return now_ns;
	if (sutro_think_is_quiet(think, div_u64(away_ns, US)))
		return since_ns + think->quiet_to_us * US;
	return now_ns;
}

/* When is a group expected back that is not away?  Up to @now_ns: there is no gap meanwhile. */
static u64 sutro_gap_until_ns(const struct sutro_core *core,
			      const struct sutro_group_protect *own, u64 now_ns)
{
	if (own->reserving || !sutro_gap_is_usable(core, own))
		return now_ns;
	return sutro_gap_back_ns(own, now_ns);
}

/* When is the first of them expected back?  Up to @now_ns: there is no gap. */
static u64 sutro_gap_end_ns(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	u64 end_ns = now_ns + SUTRO_CORE_EVER_NS, until_ns;
	const struct sutro_group_protect *own;
	unsigned int left = SUTRO_GAP_LOOKS;

	protect->away = false;
	protect->limits = NULL;
	/* Not before the requests of the shared window have completed. */
	if (!protect->clear)
		return now_ns;
	list_for_each_entry_reverse(own, &protect->groups, list) {
		if (!left--)
			break;
		/* It is not served before the window ends. */
		if (sutro_protect_waits(core, own))
			continue;
		if (sutro_is_away(core, own->group, now_ns)) {
			protect->away = true;
			continue;
		}
		until_ns = sutro_gap_until_ns(core, own, now_ns);
		if (!sutro_before(until_ns, end_ns))
			continue;
		end_ns = until_ns;
		protect->limits = own;
		if (!sutro_before(now_ns, end_ns))
			break;
	}
	return end_ns;
}

/**
 * sutro_gap_skips - are other groups served although a group is behind, and not back yet?
 * @core:	the leaf
 * @group:	the group, without queued requests
 *
 * In a gap, and in a shared window if it thinks for longer than a slice waits, or is away.
 */
bool sutro_gap_skips(const struct sutro_core *core,
		     const struct sutro_group *group)
{
	if (!core->tunables.rotational || !sutro_group_protected(group))
		return false;
	if (group->protect->reserving)
		return sutro_is_away(core, group, core->now_ns);
	return !group->in_flight && sutro_group_seeky(group) &&
	       (core->protect.reserved ||
		group->think_ns > core->tunables.group_idle_ns);
}

/**
 * sutro_gap_last - which protected group is waited for?
 * @core:	the leaf, in a reserved window
 *
 * Return: one with requests at the device, or the one that may take longest to be back; NULL
 * if all of them have to wait (sutro_protect_waits()).
 */
struct sutro_group *sutro_gap_last(const struct sutro_core *core)
{
	const struct sutro_group_protect *own;
	unsigned int left = SUTRO_GAP_LOOKS;
	struct sutro_group *last = NULL;

	list_for_each_entry_reverse(own, &core->protect.groups, list) {
		if (!left--)
			break;
		if (sutro_protect_waits(core, own))
			continue;
		if (own->group->in_flight)
			return own->group;
		if (!last ||
		    sutro_before(last->leave_at_ns, own->group->leave_at_ns))
			last = own->group;
	}
	return last;
}

/**
 * sutro_protect_awaited - for which group is nothing sent?
 * @core:	the leaf, in a reserved window, while no protected group has a queued request
 * @now_ns:	the time
 *
 * Return: a protected group with requests at the device, or the one that may take
 * longest to be back; NULL if other groups may be served meanwhile, until
 * &sutro_protect.gap_end_ns.
 */
struct sutro_group *sutro_protect_awaited(struct sutro_core *core, u64 now_ns)
{
	struct sutro_group *last = sutro_gap_last(core);
	/* Elsewhere, whether a request fits in is known when it is found: sutro_core_fits(). */
	u64 least_ns = core->tunables.rotational ? core->protect.other_ns : 0;

	if (last && last->in_flight)
		return last;
	core->protect.gap_end_ns = last ? sutro_gap_end_ns(core, now_ns)
					: now_ns + SUTRO_CORE_EVER_NS;
	return sutro_gap_is_over(core, least_ns, now_ns) ? last : NULL;
}

/**
 * sutro_gap_is_over - is a request of another group too expensive for the rest of a gap?
 * @core:	the leaf, after sutro_protect_awaited()
 * @cost_ns:	estimate of the request
 * @now_ns:	the time
 *
 * Return: true if others wait for sutro_gap_last() instead.
 */
bool sutro_gap_is_over(const struct sutro_core *core, u64 cost_ns, u64 now_ns)
{
	return !sutro_before(now_ns + sutro_gap_needs_ns(core, cost_ns),
			     core->protect.gap_end_ns);
}

/**
 * sutro_gap_missed - a group has a request that does not fit into the rest of a gap
 * @core:	the leaf, in a gap
 * @least_ns:	estimate of its cheapest one, or of one that has waited for
 *		SUTRO_GAP_PATIENCE_NS; U64_MAX = not known
 *
 * If it does not fit into a whole gap, the group depends on shared windows.
 */
void sutro_gap_missed(struct sutro_core *core, u64 least_ns)
{
	const struct sutro_group_protect *own;
	u64 needs_ns;

	if (core->in_flight || least_ns == U64_MAX)
		return;
	needs_ns = sutro_gap_needs_ns(core, least_ns);
	list_for_each_entry(own, &core->protect.groups, list)
		if (sutro_think_quiet_us(&own->think) * US <= needs_ns)
			core->protect.unfit = true;
}

/**
 * sutro_gap_draw - is a group served out of turn, rather than those before it?
 * @protect:	the protection
 * @group:	the group, which has a request that fits into the gap
 * @cost_ns:	estimate of that request
 * @chances:	sum for the groups so far, 0 to begin with
 *
 * With the chance of its share over the cost, so that shares divide the time in the mean: lottery
 * scheduling (Waldspurger and Weihl, OSDI 1994), which needs no state of the group.
 */
bool sutro_gap_draw(struct sutro_protect *protect, struct sutro_group *group,
		    u64 cost_ns, u64 *chances)
{
	u64 share = sutro_group_share(group, SUTRO_GAP_SHARE_WHOLE);
	u64 chance = div64_u64(share, cost_ns + 1) + 1;

	/* Numerical Recipes in C, 7.1. */
	protect->gap_random = protect->gap_random * 1664525 + 1013904223;
	*chances += chance;
	return mul_u64_u32_shr(*chances, protect->gap_random, 32) < chance;
}

/**
 * sutro_protect_look_ns - when to look again whether others may be served
 * @core:	the leaf, in a reserved window
 * @group:	the protected group that is waited for
 * @now_ns:	the time
 *
 * Return: a time after @now_ns: when the group has left, when the group that prevents a gap, or
 * ends it first, may be seen not to come back, or when other protected groups no longer have to
 * wait.
 */
u64 sutro_protect_look_ns(const struct sutro_core *core,
			  const struct sutro_group *group, u64 now_ns)
{
	const struct sutro_protect *protect = &core->protect;
	const struct sutro_group_protect *own = protect->limits;
	u64 look_ns = group->leave_at_ns, at_ns;

	look_ns = sutro_earlier(look_ns, sutro_apart_look_ns(protect, now_ns));
	look_ns =
		sutro_earlier(look_ns, sutro_reserve_look_ns(protect, now_ns));
	/* No gap begins before these have completed. */
	if (group->in_flight || !own)
		return look_ns;
	at_ns = sutro_away_from_ns(core, own, now_ns);
	if (sutro_before(now_ns, at_ns))
		look_ns = sutro_earlier(look_ns, at_ns);
	at_ns = sutro_gap_since_ns(own, now_ns) + own->think.quiet_from_us * US;
	if (sutro_before(now_ns, at_ns))
		look_ns = sutro_earlier(look_ns, at_ns);
	return look_ns;
}

/* Up to which usual think time is a group waited for? */
static u64 sutro_gap_hold_us(const struct sutro_core *core,
			     const struct sutro_group_protect *own)
{
	u32 quiet_us = sutro_think_quiet_us(&own->think);

	if (sutro_gap_is_usable(core, own) &&
	    2 * quiet_us >= own->think.mean_us &&
	    quiet_us * US >= core->protect.other_ns)
		return SUTRO_PROTECT_REGULAR_US;
	return core->tunables.rotational ? SUTRO_PROTECT_HOLD_SEEKS_US
					 : SUTRO_PROTECT_HOLD_US;
}

/**
 * sutro_protect_leave_ns - until when is a group without requests waited for?
 * @core:	the leaf
 * @group:	the group, protected
 * @now_ns:	the time
 *
 * It may be later when the group has had requests at another leaf meanwhile.
 */
u64 sutro_protect_leave_ns(const struct sutro_core *core,
			   const struct sutro_group *group, u64 now_ns)
{
	const struct sutro_group_protect *own = group->protect;
	u64 idle_ns = core->tunables.group_idle_ns;
	u64 most_us = sutro_gap_hold_us(core, own);
	u64 hold_ns = idle_ns, stays_ns;

	if (own->reserving)
		hold_ns = sutro_reserve_hold_ns(idle_ns);
	else if (sutro_protect_by_target(own))
		hold_ns += SUTRO_PROTECT_TARGET_HOLDS * own->think.mean_us * US;
	else if (own->think.mean_us <= most_us)
		hold_ns = min(own->think.max_us * US + idle_ns, most_us * US);
	stays_ns = group->empty_since_ns + max(hold_ns, SUTRO_PROTECT_STAYS_NS);
	return sutro_earlier(sutro_gap_since_ns(own, now_ns) + hold_ns,
			     stays_ns);
}

/*
 * By how much more do requests take after a gap in which others were not done?  In proportion to
 * the time of requests at the device, up to that of a slow request of the group.
 */
static u32 sutro_gap_late(const struct sutro_core *core,
			  const struct sutro_group *group)
{
	u64 slow_ns = sutro_protect_slow_ns(group);
	u32 most = (SUTRO_GAP_WHOLE + core->protect.gap_more) /
		   SUTRO_GAP_LATE_PART;

	if (!slow_ns || core->in_flight_ns >= slow_ns)
		return most;
	return div64_u64(most * core->in_flight_ns, slow_ns);
}

/**
 * sutro_gap_back - a protected group without requests is back: were others done in the gap?
 * @core:	the leaf
 * @group:	the group
 * @think_ns:	after this time at this leaf
 */
void sutro_gap_back(struct sutro_core *core, const struct sutro_group *group,
		    u64 think_ns)
{
	struct sutro_protect *protect = &core->protect;
	const struct sutro_group_protect *own = group->protect;
	u64 now_ns = group->empty_since_ns + think_ns;
	u32 more;

	if (!sutro_group_protected(group))
		return;
	sutro_away_back(core, group->protect, now_ns);
	if (core->tunables.rotational || !protect->clear || own->reserving ||
	    sutro_volume_is_busy(own) ||
	    !sutro_before(protect->away_sent_ns, group->empty_since_ns))
		return;
	think_ns = max_t(s64, now_ns - sutro_gap_since_ns(own, now_ns), 0);
	if (think_ns < sutro_think_min_us(&own->think) * US)
		return;
	if (core->in_flight == protect->in_flight) {
		protect->gap_more -=
			min(protect->sensitive ? 1U : 2U, protect->gap_more);
		return;
	}
	more = sutro_gap_late(core, group);
	if (sutro_think_is_quiet(&own->think, div_u64(think_ns, US)))
		more /= 2;
	protect->gap_more += min(more, SUTRO_GAP_MORE_MAX - protect->gap_more);
}

/**
 * sutro_protect_learn - a group without requests is back
 * @group:	the group
 * @think_ns:	after this time
 */
void sutro_protect_learn(struct sutro_group *group, u64 think_ns)
{
	struct sutro_group_protect *own = group->protect;

	if (!own)
		return;
	if (!sutro_volume_think_ns(own, group->empty_since_ns + think_ns,
				   &think_ns))
		return;
	/* One long pause must not look like a habit. */
	think_ns = min(think_ns, 4 * SUTRO_PROTECT_REGULAR_US * US);
	sutro_think_add(&own->think, div_u64(think_ns, US));
}
