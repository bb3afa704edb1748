// SPDX-License-Identifier: GPL-2.0-only
/*
 * Request slots of a leaf: the limit of requests for each group and its ancestors, as in
 * sutro-quota.c, and the clients that wait for a slot.
 */
#include "leaf.h"

#include <assert.h>

/* As SUTRO_SLOT_LOOK (sutro-slots.c). */
#define SLOT_LOOK_NS (100 * NSEC_PER_MSEC)

/* Of the slots that are kept for protected groups, those that they do not use. */
static u32 leaf_unused(const struct leaf *leaf, u32 kept)
{
	return kept - min(kept, leaf->core.protect.requests);
}

/* Slots that protected groups have without a turn, and do not use. */
static u32 leaf_kept(const struct leaf *leaf)
{
	return leaf_unused(leaf, sutro_protect_slots(&leaf->core.protect,
						     leaf->slots));
}

/* Are others held back for the next request of a group, because of seeks? */
static bool leaf_is_in_service(const struct leaf *leaf,
			       const struct leaf_group *group)
{
	return leaf->core.tunables.rotational &&
	       &group->core == leaf->core.in_service;
}

/* Do others have to wait for protected groups, or for latency targets? */
static bool leaf_is_held_back(const struct leaf *leaf,
			      const struct leaf_group *group)
{
	if (sutro_protects(&leaf->core.protect))
		return !sutro_group_protected(&group->core);
	return leaf->core.limit_ns && !sutro_latency_late_ns(&group->core);
}

/* As sutro_protected_lack(). */
static u32 leaf_protected_lack(const struct leaf *leaf,
			       const struct leaf_group *group)
{
	u32 used = leaf->slots_used + leaf->slots_promised;
	u32 least = leaf->slots / SUTRO_LEFT_PART;

	if (!leaf->core.protect.reserve)
		least = min(least, leaf->core.protect.depth);
	least = leaf_unused(leaf, least);

	return sutro_protects(&leaf->core.protect) &&
			       leaf_is_held_back(leaf, group) &&
			       used + least >= leaf->slots
		       ? least
		       : 0;
}

/* Do groups take turns for slots, and is a group one of them? */
static bool leaf_takes_turns(const struct leaf *leaf,
			     const struct leaf_group *group)
{
	if (leaf->fifo ||
	    !(leaf->turns ||
	      (leaf->crowd && sutro_is_crowded(&leaf->core, leaf->slots))))
		return false;
	if (sutro_group_protected(&group->core))
		return !leaf_kept(leaf);
	return !leaf_is_in_service(leaf, group);
}

/* Slots that a group leaves to others in a crowd. */
static u32 leaf_left(const struct leaf *leaf, const struct leaf_group *group)
{
	u32 nr = leaf->core.nr_active;
	bool leaves = leaf->core.tunables.rotational
			      ? !sutro_group_heavy(&group->core, nr)
			      : leaf_is_held_back(leaf, group);

	return leaves && leaf_takes_turns(leaf, group) &&
			       sutro_is_crowded(&leaf->core, leaf->slots)
		       ? leaf_kept(leaf)
		       : leaf_protected_lack(leaf, group);
}

/* Its turn among all of the leaf. */
static struct sutro_turn leaf_turn(const struct leaf *leaf,
				   const struct leaf_group *group)
{
	return sutro_turn_of(&group->core, leaf->core.root);
}

/* May a group have one more request, and each of its ancestors? */
static bool leaf_has_quota(const struct leaf *leaf, struct leaf_group *group)
{
	u32 used = min(leaf->core.queued + leaf->core.in_flight, leaf->slots);
	struct sutro_group *at = &group->core;
	u32 slots[SUTRO_LEVELS + 1], free = leaf->slots - used;

	if (leaf->fifo)
		return group->requests < leaf->slots;
	if (leaf->core.nr_active < 2 && !leaf->core.limit_ns)
		return group->requests <
		       leaf->slots - leaf->slots / SUTRO_LEFT_PART;
	if (sutro_leaves_last(group->requests, leaf->slots, free))
		return false;
	if (leaf->probe.active &&
	    !sutro_probe_is_of(&leaf->probe, group->peer.class))
		free = 0;
	if (group->requests >= sutro_group_slots(at, leaf->slots, free, slots))
		return false;
	if (!group->requests && leaf_is_in_service(leaf, group))
		return true;
	for (; at->parent; at = at->parent) {
		group = leaf_group_of(at);
		if (group->requests + group->below >= slots[at->depth])
			return false;
	}
	return true;
}

/* A group has @nr requests more. */
static void leaf_count(struct leaf_group *group, int nr)
{
	struct sutro_group *at = group->core.parent;

	group->requests += nr;
	for (; at && at->parent; at = at->parent)
		leaf_group_of(at)->below += nr;
}

/*
 * Slots that were promised to woken clients are taken.  Async requests have three quarters of them,
 * as bits of blk-mq's bitmap, however many sync requests have.
 */
static bool leaf_has_room(const struct leaf *leaf, struct leaf_group *group,
			  bool sync)
{
	u32 async_slots = 3 * leaf->slots / 4, left = 0;

	if (leaf_is_held_back(leaf, group) && group->requests) {
		left = leaf_unused(leaf, leaf->slots / SUTRO_LEFT_PART);
		async_slots -= left;
	}
	left = max(left, leaf_left(leaf, group));
	return leaf->slots_used + leaf->slots_promised < leaf->slots - left &&
	       (sync || leaf->slots_async < async_slots) &&
	       leaf_has_quota(leaf, group);
}

/* Is there a slot for a client, and does none that waits come before it? */
bool leaf_has_slot(struct leaf *leaf, struct leaf_group *group, bool sync)
{
	const struct slot_waiter *first = leaf->waiters;
	bool came = leaf->came == group;
	struct sutro_turn turn;

	leaf->came = NULL;
	if (!leaf_has_room(leaf, group, sync))
		return false;
	if (came || !leaf_takes_turns(leaf, group))
		return true;
	turn = leaf_turn(leaf, group);
	return !leaf->nr_waiters || !sutro_turn_before(&first->turn, &turn) ||
	       !leaf_has_quota(leaf, first->group);
}

/* Does a client wait for any slot of the leaf, so that others take turns with it? */
static bool leaf_begins_turns(const struct leaf *leaf,
			      const struct slot_waiter *waiter)
{
	bool takes = leaf_takes_turns(leaf, waiter->group);

	if (leaf->fifo || !waiter->sync || !leaf_has_quota(leaf, waiter->group))
		return false;
	return takes || leaf_protected_lack(leaf, waiter->group) ||
	       (!waiter->group->requests &&
		sutro_is_crowded(&leaf->core, leaf->slots));
}

/* Do those that wait stand in the order of their turns? */
static bool leaf_is_ordered(const struct leaf *leaf,
			    const struct leaf_group *group)
{
	return leaf_takes_turns(leaf, group) || group->core.depth > 1;
}

/* A client waits before those that have a later turn, of the first @nr. */
static void leaf_place(struct leaf *leaf, const struct slot_waiter *waiter,
		       u32 nr)
{
	u32 i = nr;

	if (leaf_is_ordered(leaf, waiter->group))
		for (; i; i--) {
			if (!sutro_turn_before(&waiter->turn,
					       &leaf->waiters[i - 1].turn))
				break;
			leaf->waiters[i] = leaf->waiters[i - 1];
		}
	leaf->waiters[i] = *waiter;
}

/* Those that wait look at their turns now and then, as in sutro_turns_renew(). */
static void leaf_renew_turns(struct leaf *leaf)
{
	u64 now_ns = leaf->clock->now_ns;
	u32 i;

	for (i = 0; i < leaf->nr_waiters; i++) {
		struct slot_waiter waiter = leaf->waiters[i];

		if (now_ns - waiter.looked_ns < SLOT_LOOK_NS)
			continue;
		leaf->waiters[i].looked_ns = now_ns;
		waiter.looked_ns = now_ns;
		waiter.turn = leaf_turn(leaf, waiter.group);
		if (sutro_turn_before(&waiter.turn, &leaf->waiters[i].turn))
			leaf_place(leaf, &waiter, i);
	}
}

/* Wake up a client when its group may have one more request. */
void leaf_wait_slot(struct leaf *leaf, struct leaf_group *group, bool sync,
		    leaf_slot_fn *fn, void *client)
{
	struct slot_waiter waiter = { group, sync, fn, client };

	assert(leaf->nr_waiters < LEAF_MAX_WAITERS);
	/* Others wait for a tag of blk-mq. */
	waiter.limited = !leaf->fifo && (!leaf_has_quota(leaf, group) ||
					 leaf_begins_turns(leaf, &waiter));
	group->core.slot_waiters += waiter.limited;
	if (waiter.limited && !group->core.self.active)
		sutro_core_wait_slot(&leaf->core, &group->core,
				     leaf->clock->now_ns);
	waiter.turn = leaf_turn(leaf, group);
	waiter.looked_ns = leaf->clock->now_ns;
	leaf->turns |= leaf_begins_turns(leaf, &waiter);
	leaf_place(leaf, &waiter, leaf->nr_waiters++);
}

/* A client that was woken up takes its slot, or needs none. */
void leaf_end_wait(struct leaf *leaf, struct leaf_group *group, bool sync)
{
	leaf->slots_promised--;
	leaf->slots_async -= !sync;
	leaf_count(group, -1);
	leaf->came = group;
}

void leaf_take_slot(struct leaf *leaf, struct leaf_group *group, bool sync)
{
	leaf->slots_used++;
	leaf->slots_async += !sync;
	leaf_count(group, 1);
}

void leaf_free_slot(struct leaf *leaf, struct leaf_group *group, bool sync)
{
	bool waits = false;
	u32 i, left = 0;

	leaf->slots_used--;
	leaf->slots_async -= !sync;
	leaf_count(group, -1);
	leaf_renew_turns(leaf);
	for (i = 0; i < leaf->nr_waiters; i++) {
		struct slot_waiter *waiter = &leaf->waiters[i];
		bool is_passed = waits && leaf_takes_turns(leaf, waiter->group);

		if (!is_passed &&
		    leaf_has_room(leaf, waiter->group, waiter->sync)) {
			/* Until leaf_end_wait(), so that no other client takes it. */
			leaf->slots_promised++;
			leaf->slots_async += !waiter->sync;
			leaf_count(waiter->group, 1);
			waiter->group->core.slot_waiters -= waiter->limited;
			waiter->fn(waiter->client);
		} else {
			waits |= leaf_begins_turns(leaf, waiter);
			leaf->waiters[left++] = *waiter;
		}
	}
	leaf->nr_waiters = left;
	leaf->turns = waits;
	leaf->crowd = (leaf->crowd || leaf->turns) &&
		      sutro_is_crowded(&leaf->core, leaf->slots);
}
