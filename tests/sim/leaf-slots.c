// SPDX-License-Identifier: GPL-2.0-only
/*
 * Request slots of a leaf: the limit of requests for each group and its ancestors, as in
 * sutro-slots.c, and the clients that wait for a slot.
 */
#include "leaf.h"

#include <assert.h>

/* Protected groups have this part of the slots for themselves. */
#define PROTECTED_PART 8

/* May a group have one more request, and each of its ancestors? */
static bool leaf_has_quota(const struct leaf *leaf, struct leaf_group *group)
{
	u32 used = min(leaf->core.queued + leaf->core.in_flight, leaf->slots);
	struct sutro_group *at = &group->core;
	u32 slots[SUTRO_LEVELS + 1], free = leaf->slots - used;

	if (leaf->fifo || leaf->core.nr_active < 2)
		return group->requests < leaf->slots;
	if (leaf->probe.active &&
	    !sutro_probe_is_of(&leaf->probe, group->peer.class))
		free = 0;
	if (group->requests >= sutro_group_slots(at, leaf->slots, free, slots))
		return false;
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
bool leaf_has_slot(const struct leaf *leaf, struct leaf_group *group, bool sync)
{
	u32 async_slots = 3 * leaf->slots / 4, slots = leaf->slots, left;

	if (sutro_protects(&leaf->core.protect)
		    ? !sutro_group_protected(&group->core)
		    : leaf->core.limit_ns &&
			      !sutro_latency_late_ns(&group->core)) {
		left = leaf->slots / PROTECTED_PART;
		left -= min(left, leaf->core.protect.requests);
		slots -= left;
		async_slots -= left;
	}
	return leaf->slots_used + leaf->slots_promised < slots &&
	       (sync || leaf->slots_async < async_slots) &&
	       leaf_has_quota(leaf, group);
}

/* Wake up a client when its group may have one more request. */
void leaf_wait_slot(struct leaf *leaf, struct leaf_group *group, bool sync,
		    leaf_slot_fn *fn, void *client)
{
	assert(leaf->nr_waiters < LEAF_MAX_WAITERS);
	leaf->waiters[leaf->nr_waiters++] =
		(struct slot_waiter){ group, sync, fn, client };
}

/* A client that was woken up takes its slot, or needs none. */
void leaf_end_wait(struct leaf *leaf, struct leaf_group *group, bool sync)
{
	leaf->slots_promised--;
	leaf->slots_async -= !sync;
	leaf_count(group, -1);
}

void leaf_take_slot(struct leaf *leaf, struct leaf_group *group, bool sync)
{
	leaf->slots_used++;
	leaf->slots_async += !sync;
	leaf_count(group, 1);
}

void leaf_free_slot(struct leaf *leaf, struct leaf_group *group, bool sync)
{
	u32 i, left = 0;

	leaf->slots_used--;
	leaf->slots_async -= !sync;
	leaf_count(group, -1);
	for (i = 0; i < leaf->nr_waiters; i++) {
		struct slot_waiter *waiter = &leaf->waiters[i];

		if (leaf_has_slot(leaf, waiter->group, waiter->sync)) {
			/* Until leaf_end_wait(), so that no other client takes it. */
			leaf->slots_promised++;
			leaf->slots_async += !waiter->sync;
			leaf_count(waiter->group, 1);
			waiter->fn(waiter->client);
		} else {
			leaf->waiters[left++] = *waiter;
		}
	}
	leaf->nr_waiters = left;
}
