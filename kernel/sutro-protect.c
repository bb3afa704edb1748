// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: protection of favoured groups with few requests.
 *
 * Weights divide the backlog: the group that is furthest behind is served next.  A
 * group that sends one request, waits for it and sends the next has no backlog.  Each of its
 * requests waits at the device for those that other groups sent meanwhile, and the group
 * receives a small part of its entitlement.  On a rotational device such a group is waited for
 * (sutro-select.c), unless it thinks for longer than group_idle_ns or nearly so.  This file is
 * about such groups, all other devices, and groups with reserved time or a latency target on
 * any.
 *
 * 1. Which groups
 *
 * A group is favoured if it is of a higher class than one that it competes with, or weighs more
 * than one of its class (sutro-favoured.c).  With equal weights no group is.
 *
 * A favoured group is on trial (sutro-trial.c) and needs protection if it received less
 * than its share.  Groups that have a backlog receive their share by weight.
 *
 * A group that needs protection becomes protected when a request of it arrives and none
 * of its own is queued: then it depends on the latency of the device.  One that is favoured within
 * its slice, or by its part of it, waits for windows of heavier groups of the slice: while others
 * are protected, it may have requests queued.  So may one that is far short beside them
 * (sutro-trial.c), except beside a missed latency target, to which backlogs yield.  Groups that are
 * entitled to as much as a protected one are protected with it, those of other slices included
 * (sutro-favoured.c), and on a rotational device those that its slices would serve: none of their
 * requests is sent in reserved windows otherwise.  A group of a higher class or of more than
 * SUTRO_PROTECT_SENSITIVE times the weight is latency-sensitive:
 * its latency is protected, too; of others, only the rate is.  A group is protected until it is
 * no longer favoured, or thinks for longer than it did recently, or nearly all of the time was
 * shared for a while and a new trial begins (sutro-window.c).  While other groups have no
 * requests it stays protected for SUTRO_PROTECT_LASTS_NS.  Groups with reserved time are
 * protected without a trial (sutro-reserve.c).
 *
 * A group with a latency target that is missed (sutro-latency.c) is protected from its next
 * request on, whatever its share, and has no trial.  It is waited for longer than others.
 *
 * On a stripe or a mirror, a group has no requests at one leaf while it waits at another one.
 * Leaves count the requests of protected groups together for that (sutro-volume.c).
 *
 * 2. Means of protection
 *
 * For most of the time (in reserved windows, see there) only requests of protected
 * groups are sent; which of these is next, their shares of the device decide, and one that has
 * used its share waits for others that need it (sutro-apart.c).  If none of them has a request,
 * the device idles.  For the rest of the time (in shared windows) the elevator works as without
 * protection.  Device time that protected groups use in reserved windows does not count for
 * vtime: otherwise they would get none in shared windows, and other groups all of it when
 * protection ends.  Windows that are only a sample of how fast protected groups are alone count,
 * but not for a group with reserved time or a latency target that is missed, whose windows may
 * be as short as a sample.
 *
 * 3. Gaps
 *
 * While a protected group thinks, others may use the device: see sutro-gap.c.
 *
 * 4. The bound
 *
 * Let T be the length of a cycle, p the shared part of it, D the longest time that
 * requests of other groups take to complete after a shared window, and X the rate that
 * the group reaches alone.  The longest time without service is D0 = p * T + D, so in
 * any interval of length t the group receives at least
 *
 *	R * (t - 2 * D0) with R = X * (1 - p) * (1 - D / T),
 *
 * and X * (1 - p) in the mean, for a late end of one shared window makes the next ones
 * shorter.  This is a rate-latency service curve (Le Boudec and Thiran, Network
 * Calculus, 2001).
 *
 *	The first example of sutro-part.c at 1000:100: T is 268 ms, p * T = 8 ms, D = 15 ms.
 *	R is 0.92 X in the worst cycle and 0.97 X in the mean, with a latency of 46 ms.
 *
 * The time between two requests of the group, which it has alone, too, adds to the latency.
 * A group that is protected together with others has its share of R, and a latency of up to T more.
 * The bound needs costs that are right.  If those of other groups are too low, requests in
 * gaps are not complete when the group is back; if its own are too high, its requests do
 * not fill the device.  tests/sim/test_bound.py compares random groups with the bound.
 */
#include <linux/slab.h>

#include "sutro-core.h"

/* Weight of the newest sample in a maximum: 1/64. */
#define SUTRO_PROTECT_MAX_SHIFT 6
/*
 * Where others have less than SUTRO_LEAD_PART of the time, a group pays back at most its part of
 * the time that they have in SUTRO_LEAD_NS (sutro-favoured.c).
 */
#define SUTRO_LEAD_PART (SUTRO_PROTECT_WHOLE / 4)
#define SUTRO_LEAD_NS (1000 * 1000 * 1000ULL)

static bool sutro_protect_less(struct rb_node *a, const struct rb_node *b)
{
	const struct sutro_group_protect *first, *second;

	first = rb_entry(a, struct sutro_group_protect, node);
	second = rb_entry(b, struct sutro_group_protect, node);
	return sutro_before(first->vtime, second->vtime);
}

/**
 * sutro_protect_init - prepare the protection of a leaf
 * @protect:	the protection, zeroed
 */
void sutro_protect_init(struct sutro_protect *protect)
{
	INIT_LIST_HEAD(&protect->groups);
	protect->epoch = 1;
	sutro_window_init(protect);
}

/**
 * sutro_protect_exit - a group goes
 * @group:	the group, which is not protected
 */
void sutro_protect_exit(struct sutro_group *group)
{
	kfree(group->protect);
	group->protect = NULL;
	kfree(group->latency);
	group->latency = NULL;
}

/**
 * sutro_protect_waits - must a protected group wait?
 * @core:	the leaf
 * @own:	the protection of the group
 *
 * It may have to wait for others, or for the end of the reserved window, or, if it is protected
 * for its share, for the end of the time that is reserved for others.  Or it waits for a slot, and
 * no request is at the device that would leave one.
 */
bool sutro_protect_waits(const struct sutro_core *core,
			 const struct sutro_group_protect *own)
{
	const struct sutro_protect *protect = &core->protect;

	if (!core->in_flight && sutro_is_slotless(own->group))
		return true;
	if (sutro_reserve_is_used_up(protect, own) ||
	    sutro_apart_waits(protect, own))
		return true;
	return !own->reserving && !sutro_protect_by_target(own) &&
	       sutro_reserve_is_left(protect, core->now_ns);
}

/**
 * sutro_protect_next - the protected group that is served next
 * @core:	the leaf
 * @ahead:	it may be one that is ahead (sutro-others.c)
 *
 * Return: a group with a queued request, or NULL.
 */
struct sutro_group *sutro_protect_next(const struct sutro_core *core,
				       bool ahead)
{
	struct rb_node *node;

	for (node = rb_first_cached(&core->protect.queue); node;
	     node = rb_next(node)) {
		const struct sutro_group_protect *own;

		own = rb_entry(node, struct sutro_group_protect, node);
		if ((ahead || !own->leads) && !sutro_protect_waits(core, own))
			return own->group;
	}
	return NULL;
}

static void sutro_protect_enqueue(struct sutro_protect *protect,
				  struct sutro_group_protect *own)
{
	if (sutro_before(own->vtime, protect->vtime))
		own->vtime = protect->vtime;
	rb_add_cached(&own->node, &protect->queue, sutro_protect_less);
}

/**
 * sutro_protect_dequeue - a protected group has no queued request, or is protected no longer
 * @protect:	the protection
 * @own:	that of the group, which may not be queued
 */
void sutro_protect_dequeue(struct sutro_protect *protect,
			   struct sutro_group_protect *own)
{
	if (RB_EMPTY_NODE(&own->node))
		return;
	rb_erase_cached(&own->node, &protect->queue);
	RB_CLEAR_NODE(&own->node);
}

/**
 * sutro_protect_arrived - a request of a group was queued
 * @core:	the leaf
 * @group:	the group, which is active and has counted the request
 * @now_ns:	the time
 */
void sutro_protect_arrived(struct sutro_core *core, struct sutro_group *group,
			   u64 now_ns)
{
	struct sutro_group_protect *own;

	if (!sutro_group_protected(group))
		sutro_protect_try(core, group, now_ns);
	if (!sutro_group_protected(group))
		core->protect.other_came_ns = now_ns;
	own = group->protect;
	if (!own)
		return;
	if (group->queued == 1 && !group->in_flight) {
		sutro_trial_back(core, group, now_ns);
		own->awaited = false;
	}
	own->depth = clamp(group->queued + group->in_flight, (u32)own->depth,
			   (u32)U16_MAX);
	if (!sutro_group_protected(group))
		return;
	sutro_volume_count(own, now_ns);
	core->protect.requests++;
	core->protect.sums[core->protect.clear].nr_seen++;
	sutro_apart_seen(&core->protect, own, 1);
	if (RB_EMPTY_NODE(&own->node))
		sutro_protect_enqueue(&core->protect, own);
}

/**
 * sutro_protect_unqueued - a request of a protected group is no longer queued
 * @core:	the leaf
 * @group:	the group, which no longer counts it
 */
void sutro_protect_unqueued(struct sutro_core *core, struct sutro_group *group)
{
	core->protect.requests--;
	sutro_volume_count(group->protect, core->now_ns);
	if (!group->queued)
		sutro_protect_dequeue(&core->protect, group->protect);
}

/*
 * Where others have little time, none of them waits for long because it is ahead.  Otherwise leads
 * make their shares exact.  While time is reserved, all of them stay: a floor counts on the service
 * that its group has by weight.
 */
static void sutro_protect_limit_lead(struct sutro_protect *protect,
				     struct sutro_group *group)
{
	if (protect->limited || protect->reserved || protect->reserve ||
	    protect->part >= SUTRO_LEAD_PART)
		return;
	protect->limited = true;
	sutro_group_limit_lead(group, SUTRO_LEAD_NS * protect->part /
					      SUTRO_PROTECT_WHOLE);
}

/**
 * sutro_protect_sent - a request goes to the device
 * @core:	the leaf, with protected groups
 * @group:	its group, which still counts it as queued
 * @estimate_ns: device time that it will probably use
 */
void sutro_protect_sent(struct sutro_core *core, struct sutro_group *group,
			u64 estimate_ns)
{
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *own = group->protect;
	u64 share;

	if (!sutro_group_protected(group)) {
		sutro_protect_limit_lead(protect, group);
		if (core->gap && protect->away)
			protect->away_sent_ns = core->now_ns;
		if (estimate_ns > protect->other_ns)
			protect->other_ns = estimate_ns;
		else
			protect->other_ns -=
				(protect->other_ns - estimate_ns) >>
				SUTRO_PROTECT_MAX_SHIFT;
		return;
	}
	protect->in_flight++;
	if (own->leads) {
		sutro_protect_limit_lead(protect, group);
		protect->ahead++;
	}
	protect->requests++;
	if (protect->nr > SUTRO_GAP_LOOKS)
		list_move_tail(&own->list, &protect->groups);
	own->awaited |= !core->async;
	sutro_reserve_sent(protect, own, estimate_ns);
	sutro_apart_sent(core, own, estimate_ns);
	if (sutro_before(protect->vtime, own->vtime))
		protect->vtime = own->vtime;
	sutro_protect_dequeue(protect, own);
	share = max(sutro_group_share(group, SUTRO_SHARE_WHOLE), 1ULL);
	own->vtime += div64_u64(estimate_ns * SUTRO_SHARE_WHOLE, share);
	sutro_protect_enqueue(protect, own);
}

/**
 * sutro_protect_charged - does the device time that a group uses now advance its vtime?
 * @core:	the leaf
 * @group:	the group
 *
 * Otherwise those of its ancestors do at the end of the cycle (sutro-excess.c).  Reserved windows
 * that are only a sample protect no group for its share (sutro-window.c).
 */
bool sutro_protect_charged(const struct sutro_core *core,
			   const struct sutro_group *group)
{
	if (!core->protect.reserved || !sutro_group_protected(group))
		return true;
	return core->protect.part >= SUTRO_PROTECT_MOST_PART &&
	       !group->protect->reserving &&
	       !sutro_protect_by_target(group->protect);
}

/**
 * sutro_protect_completed - requests of a group left the device
 * @core:	the leaf
 * @group:	the group; neither counts the requests as at the device
 * @nr:		how many
 * @cost_ns:	their device time
 * @now_ns:	the time of the last one
 */
void sutro_protect_completed(struct sutro_core *core, struct sutro_group *group,
			     u32 nr, u64 cost_ns, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	struct sutro_protect_sums *sums = &protect->sums[protect->clear];

	if (!protect->clear)
		protect->shared_bytes +=
			core->tunables.done_bytes - protect->seen_bytes;
	protect->seen_bytes = core->tunables.done_bytes;
	if (!protect->clear || !sutro_group_protected(group))
		sutro_trial_completed(core, group, nr, cost_ns, now_ns);
	if (!sutro_protects(protect))
		return;
	sutro_window_sum(protect, now_ns);
	sums->all_ns += cost_ns;
	sutro_excess_completed(protect, group, cost_ns);
	if (sutro_group_protected(group)) {
		protect->in_flight -= nr;
		if (group->protect->leads)
			protect->ahead -= nr;
		protect->requests -= nr;
		sums->nr_seen += nr;
		sums->cost_ns += cost_ns;
		sutro_apart_seen(protect, group->protect, nr);
		sutro_apart_completed(protect, group->protect, cost_ns);
		sutro_volume_count(group->protect, now_ns);
	} else {
		protect->other_done_ns = now_ns;
		if (!protect->clear && protect->reserved &&
		    core->in_flight == protect->in_flight)
			sutro_window_cleared(protect, now_ns);
	}
}
