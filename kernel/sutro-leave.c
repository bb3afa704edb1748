// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: groups without requests, which are active for some time, and then leave.
 *
 * While a group is active, its weight counts, and it keeps its vtime.
 *
 * 1. Groups whose next request is expected
 *
 * On a rotational device, others are held back for a group that usually comes back within
 * group_idle_ns (sutro-select.c), while all groups have slices for any group, and anywhere for a
 * protected one (sutro-protect.c).  It leaves after that time.  All other groups leave at once.
 *
 * 2. Groups whose next request waits for a slot
 *
 * With more groups than request slots (sutro-turn.c), a group may have no request because others
 * have all slots.  It is active until it has one: otherwise only the weights of groups with slots
 * would count, and a group's vtime would begin anew with each of its requests.  Others do not wait
 * for it, because it waits for a request of theirs to be done.
 *
 *	64 slots.  a (weight 1000) has one of them, 63 of 200 others (100) the rest.  a's share is
 *	1000 / 21000, not 1000 / 7300.
 *
 * 3. Room for groups that have left
 *
 * A group that comes back after a pause waits for the requests of others at the device.  A drive
 * has up to 32 of them, of 8 ms each.  So others leave room for a group that was protected, and on
 * a rotational device for favoured ones that pause for longer than slices wait for them
 * (sutro-protected.c).  They do so until the second longest of its last think times has passed, and
 * an eighth of that: one long pause does not count.  On a rotational device they have as many
 * requests at work meanwhile as take the loss that `protect` allows of that time, and always one.
 *
 *	a (weight 500) reads eight blocks, 8 ms each, and pauses for 300 ms; b (100) has 32 random
 *	reads at a time.  3 % of 300 ms are 9 ms: b has one request at the device while a is away.
 *	a has 0.91 of its rate alone, and b 0.46 of its own.  With 32 requests, these were 0.67 and
 *	0.78.  For a pause of 700 ms, two requests of b fit.
 */
#include "sutro-core.h"

/* After this time, it is looked whether a group still waits for a slot. */
#define SUTRO_SLOTLESS_NS (100 * 1000 * 1000ULL)

/**
 * sutro_return_ns - within which time must a group come back, if others are to make room for it?
 * @core:	the leaf
 */
u64 sutro_return_ns(const struct sutro_core *core)
{
	const struct sutro_tunables *t = &core->tunables;

	return sutro_waits(core) ? t->group_idle_ns : t->slice_ns;
}

/* Sort @group, which is empty, into the list by the time at which it leaves. */
static void sutro_leave_later(struct sutro_core *core,
			      struct sutro_group *group)
{
	struct sutro_group *before;

	list_del_init(&group->node);
	list_for_each_entry_reverse(before, &core->leaving, node)
		if (!sutro_before(group->leave_at_ns, before->leave_at_ns))
			break;
	list_add(&group->node, &before->node);
}

/**
 * sutro_leave_at_once - a group is empty, and no other group is held back for it
 * @core:	the leaf
 * @group:	the group
 */
void sutro_leave_at_once(struct sutro_core *core, struct sutro_group *group)
{
	group->leave_at_ns = group->empty_since_ns;
	list_move(&group->node, &core->leaving);
}

/**
 * sutro_leave - a group ran empty: it leaves now, or when its next request failed to come
 * @core:	the leaf
 * @group:	the group
 * @now_ns:	when it ran empty
 */
void sutro_leave(struct sutro_core *core, struct sutro_group *group, u64 now_ns)
{
	const struct sutro_tunables *t = &core->tunables;

	group->empty_since_ns = now_ns;
	if (sutro_group_protected(group) && !group->gone) {
		group->leave_at_ns =
			sutro_protect_leave_ns(core, group, now_ns);
		sutro_leave_later(core, group);
	} else if (sutro_waits(core) && !group->gone &&
		   (sutro_is_fair(core) ||
		    group->think_ns <= t->group_idle_ns)) {
		group->leave_at_ns = now_ns + t->group_idle_ns;
		sutro_leave_later(core, group);
	} else {
		sutro_leave_at_once(core, group);
	}
}

/* @group, which is active, has no request until it gets a slot. */
static void sutro_wait_slot(struct sutro_core *core, struct sutro_group *group,
			    u64 now_ns)
{
	sutro_tree_wait_slot(group, core->tunables.slice_ns / 2);
	group->leave_at_ns = now_ns + SUTRO_SLOTLESS_NS;
	list_move_tail(&group->node, &core->slotless);
}

/**
 * sutro_core_wait_slot - a submitter of a group waits for a slot
 * @core:	the leaf
 * @group:	the group, which is not active and not gone
 * @now_ns:	the time
 *
 * To be called when its @slot_waiters were counted.
 */
void sutro_core_wait_slot(struct sutro_core *core, struct sutro_group *group,
			  u64 now_ns)
{
	sutro_core_settle(core);
	core->nr_active++;
	sutro_wait_slot(core, group, now_ns);
}

/* Is a protected group waited for still, because it has had requests at other leaves meanwhile? */
static bool sutro_is_waited_for(struct sutro_core *core,
				struct sutro_group *group, u64 now_ns)
{
	u64 leave_at_ns;

	if (!sutro_group_protected(group) || !sutro_volume_used(group->protect))
		return false;
	leave_at_ns = sutro_protect_leave_ns(core, group, now_ns);
	if (!sutro_before(now_ns, leave_at_ns))
		return false;
	group->leave_at_ns = leave_at_ns;
	sutro_leave_later(core, group);
	return true;
}

/* The first group of a list whose time to leave has come, or NULL. */
static struct sutro_group *sutro_first_to_leave(struct list_head *list,
						u64 now_ns)
{
	struct sutro_group *group;

	group = list_first_entry_or_null(list, struct sutro_group, node);
	return group && !sutro_before(now_ns, group->leave_at_ns) ? group
								  : NULL;
}

/* An empty group whose time to leave has come, or NULL. */
static struct sutro_group *sutro_next_to_leave(struct sutro_core *core,
					       u64 now_ns)
{
	return sutro_first_to_leave(&core->leaving, now_ns)
		       ?: sutro_first_to_leave(&core->slotless, now_ns);
}

/* @group is not waited for any longer. */
static void sutro_wait_no_longer(struct sutro_core *core,
				 struct sutro_group *group, u64 now_ns)
{
	if (group == core->idle_for)
		sutro_stop_idling(core, SUTRO_IDLE_END_LATE, now_ns);
	if (group == core->in_service)
		sutro_expire(core, SUTRO_EXPIRY_EMPTY);
	if (!group->gone && !core->tunables.rotational &&
	    sutro_group_favoured(group, SUTRO_PROTECT_SENSITIVE))
		core->shallow_until_ns = now_ns + SUTRO_SHALLOW_NS;
}

/* For how long may a group that was protected, or pauses, be away? */
static u64 sutro_pause_ns(const struct sutro_group *group)
{
	return 1000ULL * sutro_think_habit_us(&group->protect->think);
}

/* Until when may it be back? */
static u64 sutro_back_until_ns(const struct sutro_group *group)
{
	u64 until_ns = group->empty_since_ns + sutro_pause_ns(group) * 9 / 8;
	u64 least_ns = group->leave_at_ns + SUTRO_PROTECT_EXPECTED_NS;

	if (sutro_group_protected(group) && sutro_before(until_ns, least_ns))
		return least_ns;
	return until_ns;
}

/* Do others make room for a group that was protected, or pauses? */
static bool sutro_expects_protected(const struct sutro_core *core)
{
	return core->expected_protected &&
	       sutro_before(core->now_ns, core->expected_until_ns);
}

/*
 * Others may make room for @group, which has left: see 3.  Of several groups, they do so for the
 * one that may stay away longest, and have as much as the one with the shortest pauses can bear.
 */
static void sutro_expect(struct sutro_core *core, struct sutro_group *group)
{
	const struct sutro_group_protect *own = group->protect;
	bool protects = sutro_group_protected(group) || (own && own->pauses);
	bool expects = sutro_expects_protected(core);
	u64 until_ns, room_ns = 0;

	if (protects) {
		until_ns = sutro_back_until_ns(group);
		room_ns = sutro_pause_ns(group) *
			  (100 - core->tunables.protect) / 100;
		if (expects)
			room_ns = min(room_ns, core->expected_room_ns);
	} else if (group->think_ns <= sutro_return_ns(core) && !expects) {
		until_ns = group->leave_at_ns + 2 * sutro_return_ns(core);
	} else {
		return;
	}
	core->expected_room_ns = room_ns;
	if (expects && core->expected != group &&
	    sutro_before(until_ns, core->expected_until_ns))
		return;
	core->expected = group;
	core->expected_protected = protects;
	core->expected_until_ns = until_ns;
}

/* @group has left, or will have no request until it gets a slot. */
static void sutro_left(struct sutro_core *core, struct sutro_group *group)
{
	if (!group->gone)
		sutro_expect(core, group);
	if (group == core->sensitive)
		core->sensitive = NULL;
	sutro_protect_drop(core, group);
}

/**
 * sutro_core_forget - take out a group that has left
 * @core:	the leaf
 * @now_ns:	the time
 *
 * To be called until it returns NULL before sutro_core_select().
 *
 * Return: a group that was active and no longer is, and may be freed, or NULL.
 */
struct sutro_group *sutro_core_forget(struct sutro_core *core, u64 now_ns)
{
	struct sutro_group *group;

	while ((group = sutro_next_to_leave(core, now_ns))) {
		if (!group->gone && sutro_is_waited_for(core, group, now_ns))
			continue;
		sutro_wait_no_longer(core, group, now_ns);
		if (group->gone || !sutro_is_slotless(group))
			break;
		sutro_left(core, group);
		sutro_wait_slot(core, group, now_ns);
	}
	if (!group)
		return NULL;
	list_del_init(&group->node);
	sutro_tree_deactivate(group);
	core->nr_active--;
	sutro_left(core, group);
	group->stat.dequeue++;
	return group;
}
