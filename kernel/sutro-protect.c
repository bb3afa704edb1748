// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: protection of favoured groups with few requests.
 *
 * Weights divide the backlog: the group that is furthest behind is served next.  A
 * group that sends one request, waits for it and sends the next has no backlog.  Each
 * of its requests waits at the device for what other groups sent meanwhile, and the
 * group receives a small part of what it is entitled to.  On a rotational device such
 * a group is waited for (sutro-core.c).  This file is about all other devices.
 *
 * 1. Which groups
 *
 * A group is favoured if at some level of the tree it is of a higher class than an
 * active sibling, or weighs more than the mean of the active siblings of its class,
 * and at no level less (sutro_group_favoured()).  With equal weights no group is.  A
 * favoured group becomes protected when a request of it arrives and none of its own is
 * queued: then it depends on the latency of the device.  It is protected until it is
 * no longer favoured, or thinks for longer than it did recently, or a trial shows that
 * it receives its share without protection (sutro-window.c).
 *
 * 2. What protection is
 *
 * For most of the time (in reserved windows, see there) only requests of protected
 * groups are sent; which of these is next, their shares of the device decide.  If none
 * of them has a request, the device idles, and the time is charged to the group that it
 * waits for.  For the rest of the time (in shared windows) the elevator works as
 * without protection.
 *
 * 3. Gaps
 *
 * While a protected group thinks, other groups may use the device, if they are done
 * when the group is back.  The group is expected back after the shortest of its recent
 * think times; requests of other groups are sent before that as long as their
 * estimated device time, the largest one that is to be expected, and the latency of the
 * device fit in.  What they receive in this way makes shared windows shorter.
 *
 *	a reads 4 KiB and thinks for 5 ms, b reads 64 KiB, 0.47 ms each: requests of b
 *	are sent for 4 ms of 5.3, and none of a waits for one.
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
 *	The first example of sutro-window.c: T is 537 ms, p * T = 11 ms, D = 15 ms.
 *	R is 0.95 X in the worst cycle and 0.98 X in the mean, with a latency of 52 ms.
 */
#include "sutro-core.h"

#define US 1000ULL

/* A group that thinks for longer is not waited for. */
#define SUTRO_PROTECT_HOLD_US 32000ULL
/* Weight of the newest sample in means: 1/8; in a minimum or a maximum: 1/64. */
#define SUTRO_PROTECT_MEAN_SHIFT 3
#define SUTRO_PROTECT_MIN_SHIFT 6

static bool sutro_protect_less(struct rb_node *a, const struct rb_node *b)
{
	const struct sutro_group *first, *second;

	first = rb_entry(a, struct sutro_group, protect.node);
	second = rb_entry(b, struct sutro_group, protect.node);
	return sutro_before(first->protect.vtime, second->protect.vtime);
}

/**
 * sutro_protect_init - prepare the protection of a leaf
 * @protect:	what to prepare, zeroed
 */
void sutro_protect_init(struct sutro_protect *protect)
{
	INIT_LIST_HEAD(&protect->groups);
	sutro_window_init(protect);
}

/**
 * sutro_protect_next - the protected group that is served next
 * @protect:	the protection
 *
 * Return: a group with a queued request, or NULL.
 */
struct sutro_group *sutro_protect_next(struct sutro_protect *protect)
{
	struct rb_node *node = rb_first_cached(&protect->queue);

	return node ? rb_entry(node, struct sutro_group, protect.node) : NULL;
}

static void sutro_protect_enqueue(struct sutro_protect *protect,
				  struct sutro_group *group)
{
	if (sutro_before(group->protect.vtime, protect->vtime))
		group->protect.vtime = protect->vtime;
	rb_add_cached(&group->protect.node, &protect->queue,
		      sutro_protect_less);
}

static void sutro_protect_dequeue(struct sutro_protect *protect,
				  struct sutro_group *group)
{
	if (RB_EMPTY_NODE(&group->protect.node))
		return;
	rb_erase_cached(&group->protect.node, &protect->queue);
	RB_CLEAR_NODE(&group->protect.node);
}

/**
 * sutro_protect_drop - a group is no longer protected
 * @core:	the leaf
 * @group:	the group, which need not have been
 */
void sutro_protect_drop(struct sutro_core *core, struct sutro_group *group)
{
	struct sutro_protect *protect = &core->protect;

	if (!sutro_group_protected(group))
		return;
	sutro_protect_dequeue(protect, group);
	list_del_init(&group->protect.list);
	protect->in_flight -= group->in_flight;
	protect->requests -= group->in_flight + group->queued;
	group->protect.slow_ns = 0;
}

/* ---- gaps ---- */

/* May other groups use the device until the first protected group is back? */
static bool sutro_protect_has_gap(const struct sutro_core *core, u64 now_ns)
{
	const struct sutro_protect *protect = &core->protect;
	u64 done_ns = now_ns + core->in_flight_ns + protect->other_ns +
		      2 * core->tunables.latency_ns;
	const struct sutro_group *group;

	if (!core->tunables.latency_ns)
		return false;
	list_for_each_entry(group, &protect->groups, protect.list)
		if (!sutro_before(done_ns,
				  group->empty_since_ns +
					  group->protect.think_min_us * US))
			return false;
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
	const struct sutro_protect *protect = &core->protect;
	struct sutro_group *group, *last = NULL;

	list_for_each_entry(group, &protect->groups, protect.list) {
		if (group->in_flight)
			return group;
		if (!last ||
		    sutro_before(last->leave_at_ns, group->leave_at_ns))
			last = group;
	}
	return sutro_protect_has_gap(core, now_ns) ? NULL : last;
}

/**
 * sutro_protect_leave_ns - until when is a group without requests waited for?
 * @group:	the group, protected
 * @idle_ns:	for how long at least
 */
u64 sutro_protect_leave_ns(const struct sutro_group *group, u64 idle_ns)
{
	u64 hold_ns = idle_ns;

	if (group->protect.think_us <= SUTRO_PROTECT_HOLD_US)
		hold_ns = min(group->protect.think_max_us * US + idle_ns,
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
	/* One long pause must not look like a habit. */
	u32 think_us =
		div_u64(min(think_ns, 2 * SUTRO_PROTECT_HOLD_US * US), US);
	u32 *mean_us = &group->protect.think_us;
	u32 *min_us = &group->protect.think_min_us;
	u32 *max_us = &group->protect.think_max_us;

	*mean_us += ((s32)think_us - (s32)*mean_us) >> SUTRO_PROTECT_MEAN_SHIFT;
	if (think_us < *min_us || !*min_us)
		*min_us = think_us;
	else
		*min_us += (think_us - *min_us) >> SUTRO_PROTECT_MIN_SHIFT;
	if (think_us > *max_us)
		*max_us = think_us;
	else
		*max_us -= (*max_us - think_us) >> SUTRO_PROTECT_MIN_SHIFT;
}

/* ---- requests ---- */

static void sutro_protect_join(struct sutro_core *core,
			       struct sutro_group *group, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;

	if (!sutro_protects(protect)) {
		protect->reserved = false;
		protect->clear = false;
		protect->sum_ns = now_ns;
		protect->cleared_from_ns = now_ns;
		protect->trial_ns = 0;
		if (!group->protect.needed)
			sutro_window_begin(protect, now_ns);
	}
	list_add_tail(&group->protect.list, &protect->groups);
	group->protect.depth = 0;
	protect->in_flight += group->in_flight;
	protect->requests += group->in_flight + group->queued - 1;
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
	const struct sutro_tunables *t = &core->tunables;

	if (group->queued == 1 && !sutro_group_protected(group) &&
	    core->nr_active > 1 && t->protect && !t->rotational &&
	    !t->fairness &&
	    !sutro_before(now_ns, group->protect.rest_until_ns) &&
	    sutro_group_favoured(group))
		sutro_protect_join(core, group, now_ns);
	if (!sutro_group_protected(group))
		return;
	core->protect.requests++;
	if (RB_EMPTY_NODE(&group->protect.node))
		sutro_protect_enqueue(&core->protect, group);
	group->protect.depth = clamp(group->queued + group->in_flight,
				     (u32)group->protect.depth, (u32)U16_MAX);
}

/**
 * sutro_protect_unqueued - a request of a group is no longer queued
 * @core:	the leaf
 * @group:	the group, which no longer counts it
 */
void sutro_protect_unqueued(struct sutro_core *core, struct sutro_group *group)
{
	if (!sutro_group_protected(group))
		return;
	core->protect.requests--;
	if (!group->queued)
		sutro_protect_dequeue(&core->protect, group);
}

/**
 * sutro_protect_sent - a request goes to the device
 * @core:	the leaf
 * @group:	its group, which still counts it as queued
 * @estimate_ns: device time that it will probably use
 */
void sutro_protect_sent(struct sutro_core *core, struct sutro_group *group,
			u64 estimate_ns)
{
	struct sutro_protect *protect = &core->protect;
	u64 share;

	if (!sutro_protects(protect))
		return;
	if (!sutro_group_protected(group)) {
		if (estimate_ns > protect->other_ns)
			protect->other_ns = estimate_ns;
		else
			protect->other_ns -=
				(protect->other_ns - estimate_ns) >>
				SUTRO_PROTECT_MIN_SHIFT;
		return;
	}
	protect->in_flight++;
	protect->requests++;
	if (sutro_before(protect->vtime, group->protect.vtime))
		protect->vtime = group->protect.vtime;
	sutro_protect_dequeue(protect, group);
	share = max(sutro_group_share(group, SUTRO_PROTECT_WHOLE), 1ULL);
	group->protect.vtime +=
		div64_u64(estimate_ns * SUTRO_PROTECT_WHOLE, share);
	sutro_protect_enqueue(protect, group);
}

/**
 * sutro_protect_took - how long requests took that completed
 * @core:	the leaf
 * @group:	their group
 * @took_ns:	sum of the times since they were asked for
 * @nr_slow:	how many of them took longer than the group's protect.slow_ns
 *
 * To be called before sutro_core_complete().
 */
void sutro_protect_took(struct sutro_core *core, struct sutro_group *group,
			u64 took_ns, u32 nr_slow)
{
	struct sutro_protect *protect = &core->protect;

	if (!sutro_group_protected(group))
		return;
	protect->sums[protect->clear].took_ns += took_ns;
	protect->sums[protect->clear].nr_slow += nr_slow;
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

	if (!sutro_protects(protect))
		return;
	sutro_window_sum(protect, now_ns);
	sums->all_ns += cost_ns;
	if (sutro_group_protected(group)) {
		protect->in_flight -= nr;
		protect->requests -= nr;
		sums->nr += nr;
		sums->cost_ns += cost_ns;
	} else if (protect->clear) {
		/* In a gap. */
		sutro_window_owe(protect, cost_ns);
	} else if (protect->reserved && core->in_flight == protect->in_flight) {
		sutro_window_cleared(protect, now_ns);
	}
}
