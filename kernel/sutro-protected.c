// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the set of protected groups.
 *
 * sutro-protect.c describes which groups become protected, and for how long they are.  A group is
 * added when a request of it arrives.  The set is looked at once in a cycle (sutro-window.c), and
 * when a setting or the set has changed.  Groups that only keep up with others (sutro-favoured.c)
 * may come and go with each request.  So the set is not looked at when one of them leaves, or
 * joins with one request: that counts from the next cycle on.
 */
#include <linux/math64.h>
#include <linux/slab.h>

#include "sutro-core.h"

#define US 1000ULL

/* For how long groups are protected without requests of others. */
#define SUTRO_PROTECT_LASTS_NS (1000 * 1000 * 1000ULL)

/*
 * Is more than a share of a group protected, or does it make others wait?  That one of the others
 * joins or leaves, which sporadic ones do with each request, matters from the next cycle on.
 */
static bool sutro_protect_depends_on(const struct sutro_group_protect *own)
{
	return own->marked || own->reserving || sutro_protect_by_target(own);
}

/* A group that is not marked is no longer protected. */
static void sutro_protect_remove(struct sutro_core *core,
				 struct sutro_group *group)
{
	struct sutro_protect *protect = &core->protect;

	sutro_protect_dequeue(protect, group->protect);
	list_del_init(&group->protect->list);
	protect->nr--;
	sutro_excess_pay(core, group->protect);
	sutro_apart_turn(protect, group->protect);
	if (protect->limits == group->protect)
		protect->limits = NULL;
	protect->in_flight -= group->in_flight;
	sutro_others_lead(protect, group->protect, false);
	protect->requests -= group->in_flight + group->queued;
	protect->changed |= sutro_protect_depends_on(group->protect);
	group->protect->slow_ns = 0;
	sutro_volume_count(group->protect, core->now_ns);
}

/**
 * sutro_protect_drop - a group is no longer protected
 * @core:	the leaf
 * @group:	the group, which may be unprotected
 */
void sutro_protect_drop(struct sutro_core *core, struct sutro_group *group)
{
	struct sutro_group_protect *own = group->protect;

	if (!sutro_group_protected(group))
		return;
	sutro_protect_remove(core, group);
	if (!own->marked)
		return;
	own->marked = false;
	sutro_group_unmark(group);
	list_for_each_entry(own, &core->protect.groups, list)
		if (own->marked)
			sutro_group_mark(own->group);
}

/* No group is marked any more. */
static void sutro_protect_unmark(struct sutro_protect *protect)
{
	struct sutro_group_protect *own;

	list_for_each_entry(own, &protect->groups, list) {
		own->marked = false;
		sutro_group_unmark(own->group);
	}
}

/**
 * sutro_protect_release - no group is protected until a trial shows that it has to be
 * @core:	the leaf
 * @now_ns:	the time
 */
void sutro_protect_release(struct sutro_core *core, u64 now_ns)
{
	struct sutro_group_protect *own, *next;

	sutro_protect_unmark(&core->protect);
	list_for_each_entry_safe(own, next, &core->protect.groups, list) {
		sutro_protect_remove(core, own->group);
		own->needed = false;
		own->far_nr = 0;
		sutro_trial_begin(&core->protect, own, now_ns);
	}
}

/* A new set of groups is protected: reset the measurements of the former one. */
static void sutro_protect_new_set(struct sutro_protect *protect)
{
	struct sutro_group_protect *own;

	sutro_window_init(protect);
	protect->epoch++;
	list_for_each_entry(own, &protect->groups, list)
		own->epoch = protect->epoch;
	own = list_first_entry(&protect->groups, struct sutro_group_protect,
			       list);
	if (list_is_singular(&protect->groups))
		protect->sums[SUTRO_WINDOW_SHARED] = own->shared;
}

/*
 * Do slices (sutro-select.c) give a group what it is entitled to?  They do if it comes back in
 * time.  With half of that time in the mean, it is often late, unless it is a regular one.
 */
static bool sutro_protect_has_slices(const struct sutro_core *core,
				     const struct sutro_group *group)
{
	const struct sutro_group_protect *own = group->protect;
	u64 in_time_ns = core->tunables.group_idle_ns;

	if (group != core->sensitive || (own && !sutro_protect_is_regular(own)))
		in_time_ns /= 2;
	return core->tunables.rotational && group->think_ns <= in_time_ns;
}

/* May a group be protected for its share? */
static bool sutro_protect_is_favoured(const struct sutro_core *core,
				      struct sutro_group *group)
{
	if (!core->tunables.protect || core->tunables.fairness ||
	    sutro_protect_has_slices(core, group))
		return false;
	return core->tunables.rotational ? sutro_group_favoured(group, 1)
					 : sutro_group_favoured_inside(group);
}

/* Is a group protected for its share, not for reserved time? */
static bool sutro_protect_by_share(const struct sutro_core *core,
				   const struct sutro_group_protect *own)
{
	return own->needed && !own->reserving &&
	       sutro_protect_is_favoured(core, own->group);
}

/* Mark the groups that are protected for their shares. */
static void sutro_protect_mark(struct sutro_core *core)
{
	struct sutro_group_protect *own;

	sutro_protect_unmark(&core->protect);
	list_for_each_entry(own, &core->protect.groups, list) {
		own->marked = sutro_protect_by_share(core, own);
		if (own->marked)
			sutro_group_mark(own->group);
	}
}

/*
 * Limit the shared part of a cycle if the latency target of a protected group needs that.  Beside
 * a target that is out of reach, the shares of all protected groups are reserved.
 */
static void sutro_protect_add_target(struct sutro_protect *protect,
				     const struct sutro_group_protect *own)
{
	u64 share = protect->shares >> SUTRO_SHARE_SHIFT;

	if (!sutro_protect_by_target(own))
		return;
	protect->rivals |= protect->by_target &&
			   protect->target != own->latency;
	protect->target = own->latency;
	protect->by_target = true;
	protect->sensitive = true;
	protect->target_part = min(protect->target_part,
				   sutro_latency_part(own->latency, share));
}

/* No group is to be protected yet. */
static void sutro_protect_clear(struct sutro_protect *protect)
{
	protect->shares = 0;
	protect->depth = 0;
	protect->by_share = false;
	protect->sensitive = false;
	protect->by_target = false;
	protect->rivals = false;
	protect->keeps_up = false;
	protect->target_part = SUTRO_PROTECT_WHOLE;
}

/* A group is to be protected, too. */
static void sutro_protect_add(struct sutro_core *core,
			      const struct sutro_group_protect *own)
{
	struct sutro_protect *protect = &core->protect;
	u64 share = sutro_group_share(own->group, SUTRO_SHARE_WHOLE);

	protect->shares += share;
	protect->depth += own->depth;
	if (sutro_protect_by_share(core, own))
		protect->by_share = true;
	else if (!core->tunables.rotational && !own->reserving &&
		 !sutro_protect_by_target(own) &&
		 !sutro_group_favoured_inside(own->group))
		protect->keeps_up = true;
	if (sutro_group_favoured(own->group, SUTRO_PROTECT_SENSITIVE))
		protect->sensitive = true;
	sutro_protect_add_target(protect, own);
}

static void sutro_protect_join(struct sutro_core *core,
			       struct sutro_group *group, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *own = group->protect;
	bool matters;

	if (!sutro_protects(protect)) {
		protect->reserved = false;
		protect->clear = false;
		protect->sum_ns = now_ns;
		protect->cleared_from_ns = now_ns;
		sutro_protect_clear(protect);
	}
	list_add_tail(&own->list, &protect->groups);
	protect->nr++;
	sutro_apart_turn(protect, own);
	sutro_excess_join(own);
	sutro_volume_find(core, own, now_ns);
	own->latency = sutro_latency_of(group);
	own->marked = sutro_protect_by_share(core, own);
	matters = sutro_protect_depends_on(own) ||
		  sutro_group_reserving(group) || group->queued > 1 ||
		  list_is_singular(&protect->groups);
	if (matters && own->epoch != protect->epoch)
		sutro_protect_new_set(protect);
	if (own->marked)
		sutro_group_mark(group);
	/* Others count from the next cycle on: each of their requests would add their shares. */
	if (matters)
		sutro_protect_add(core, own);
	if (list_is_singular(&protect->groups) || protect->sensitive)
		sutro_slices_prevent(core, now_ns);
	protect->changed |= matters;
	protect->other_came_ns = now_ns;
	protect->full_ns = now_ns;
	protect->in_flight += group->in_flight;
	protect->requests += group->in_flight + group->queued - 1;
}

/* May a group be protected? */
static bool sutro_protect_may(const struct sutro_core *core,
			      struct sutro_group *group)
{
	const struct sutro_latency *latency = sutro_latency_of(group);

	return core->nr_active > 1 && !core->tunables.fairness &&
	       ((latency && latency->held) || sutro_group_reserving(group) ||
		sutro_protect_is_favoured(core, group) ||
		(sutro_protects(&core->protect) &&
		 sutro_group_keeps_up(group)));
}

/* For how long was a group away that has a request now?  0 = it was not, or had none before. */
static u64 sutro_away_ns(const struct sutro_group *group, u64 now_ns)
{
	if (group->queued != 1 || group->in_flight || !group->empty_since_ns)
		return 0;
	return now_ns - group->empty_since_ns;
}

/*
 * Does a favoured group with a request or two at random places pause for longer than a rotational
 * device would be kept for it?  Slices give it what it is entitled to while it comes back in time,
 * but the first request after a pause would wait for all that the drive has (sutro-leave.c).  It
 * pauses if it did twice of late, or if it just did and its think times are not known yet.  A group
 * with more requests may only seem to pause: its others are at other leaves of a stripe.
 */
static bool sutro_protect_pauses(const struct sutro_core *core,
				 struct sutro_group *group, u64 now_ns)
{
	const struct sutro_group_protect *own = group->protect;
	u64 pause_us;

	if (!core->tunables.rotational || !core->tunables.protect)
		return false;
	pause_us = own ? sutro_think_habit_us(&own->think)
		       : div_u64(sutro_away_ns(group, now_ns), US);
	return pause_us > SUTRO_PROTECT_HOLD_SEEKS_US &&
	       (!own || own->depth <= SUTRO_DEPTH_MIN) &&
	       sutro_group_seeky(group) && !sutro_group_reserving(group) &&
	       sutro_group_favoured(group, 1);
}

/* Allocate the state of a group.  Without memory, the group is not protected. */
static struct sutro_group_protect *
sutro_protect_prepare(const struct sutro_protect *protect,
		      struct sutro_group *group, u64 now_ns)
{
	struct sutro_group_protect *own =
		kzalloc(sizeof(*own), GFP_NOWAIT | __GFP_NOWARN);

	if (!own)
		return NULL;
	own->group = group;
	INIT_LIST_HEAD(&own->list);
	RB_CLEAR_NODE(&own->node);
	sutro_trial_begin(protect, own, now_ns);
	/* Pairs with READ_ONCE() in sutro_group_protected(). */
	smp_store_release(&group->protect, own);
	return own;
}

/**
 * sutro_protect_try - an unprotected group got a request: protect the group if it needs that
 * @core:	the leaf
 * @group:	the group
 * @now_ns:	the time
 */
void sutro_protect_try(struct sutro_core *core, struct sutro_group *group,
		       u64 now_ns)
{
	const struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *own = group->protect;
	const struct sutro_latency *latency = sutro_latency_of(group);
	bool timed = latency && latency->held, reserving, pauses;

	if (!own && sutro_slices_may(core, group))
		own = sutro_protect_prepare(protect, group, now_ns);
	/* A group with a backlog may join others; this is decided once in a cycle. */
	if (group->queued > 1 && !timed &&
	    (!sutro_protects(protect) ||
	     (own && own->tried_ns == protect->begin_ns)))
		return;
	if (own)
		own->tried_ns = protect->begin_ns;
	pauses = sutro_protect_pauses(core, group, now_ns);
	if (own)
		own->pauses = pauses;
	if (!sutro_protect_may(core, group)) {
		if (!own && pauses)
			sutro_protect_prepare(protect, group, now_ns);
		return;
	}
	/* It waits for the requests in flight. */
	if (group->queued == 1) {
		core->wide = sutro_core_wide(core, now_ns) / 2;
		core->wide_ns = now_ns;
	}
	if (!own)
		own = sutro_protect_prepare(protect, group, now_ns);
	if (!own)
		return;
	reserving = sutro_group_reserving(group);
	if (timed || ((own->needed || reserving) && group->queued == 1) ||
	    (sutro_protects(protect) &&
	     (reserving || sutro_group_keeps_up(group) ||
	      (own->needed &&
	       (!sutro_group_favoured(group, 1) ||
		(sutro_trial_is_far_short(own) && !protect->by_target))))))
		sutro_protect_join(core, group, now_ns);
}

/*
 * Are other groups without requests at the moment?  Protection goes on, because they may come back
 * at any time, and one of their requests may take as long as many of a protected group.
 */
static bool sutro_protect_lasts(const struct sutro_core *core, u64 now_ns)
{
	const struct sutro_protect *protect = &core->protect;

	/* Reserved time is granted by the cycle, to groups that compete. */
	if (protect->reserve || protect->by_target ||
	    now_ns - protect->other_came_ns >= SUTRO_PROTECT_LASTS_NS)
		return false;
	return protect->nr == core->nr_active;
}

/**
 * sutro_protect_share - the share of all groups that are still to be protected
 * @core:	the leaf
 * @begins:	a cycle begins
 * @ret_depth:	how many requests they have at most
 * @now_ns:	the time
 *
 * Return: of SUTRO_PROTECT_WHOLE.
 */
u64 sutro_protect_share(struct sutro_core *core, bool begins, u32 *ret_depth,
			u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *own, *next;

	if (sutro_protect_lasts(core, now_ns))
		goto out;
	list_for_each_entry(own, &protect->groups, list) {
		sutro_volume_find(core, own, now_ns);
		own->latency = sutro_latency_of(own->group);
		if (own->latency && begins)
			sutro_latency_adapt(own->latency, now_ns);
	}
	sutro_protect_mark(core);
	sutro_protect_clear(protect);
	sutro_reserve_begin(protect);
	list_for_each_entry_safe(own, next, &protect->groups, list) {
		if (!sutro_protect_may(core, own->group) ||
		    (!own->reserving && !sutro_protect_by_target(own) &&
		     !sutro_group_keeps_up(own->group))) {
			sutro_protect_remove(core, own->group);
			continue;
		}
		sutro_protect_add(core, own);
		sutro_reserve_add(protect, own->reserving, begins);
	}
out:
	*ret_depth = protect->depth;
	/* Lower classes have a part in any case (sutro-tree.c). */
	return min(protect->shares >> SUTRO_SHARE_SHIFT, SUTRO_PROTECT_MOST);
}

/**
 * sutro_protect_changed - a setting of a group has changed
 * @core:	the leaf
 *
 * Which groups are protected is decided anew, also if others have no requests at the moment.
 */
void sutro_protect_changed(struct sutro_core *core)
{
	core->protect.changed = true;
	core->protect.other_came_ns = core->now_ns - SUTRO_PROTECT_LASTS_NS;
}
