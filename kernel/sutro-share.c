// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a group's part of something that is divided by weight, such as
 * request slots.
 *
 * The functions may be called without the locks that protect the tree.  Members may then
 * be of different moments, which is exact enough; each one is read once.
 */
#include "sutro-core.h"

/* Parts of the device time are of this power of two; no more time can be divided by one. */
#define SUTRO_TURN_SHIFT 30
#define SUTRO_TURN_MOST_NS (4 * 1000000000ULL)
/* Units of device time and of vtime.  No turn is further away than 2^30 of these: 73 minutes. */
#define SUTRO_TURN_USED_SHIFT 10
#define SUTRO_TURN_UNIT_SHIFT 12
#define SUTRO_TURN_FAR BIT_ULL(30)
/* Slices that a group is charged for at most in one turn: it may have used more without one. */
#define SUTRO_TURN_CHARGED 2
/* Slices that a group which waits for a slot can be owed. */
#define SUTRO_TURN_OWED 16

/**
 * sutro_outranked - is an entity of a higher class active at a level?
 * @level:	the level
 * @last:	the rank of the lower class
 */
bool sutro_outranked(const struct sutro_level *level,
		     const struct sutro_rank *last)
{
	const struct sutro_rank *rank;

	for (rank = level->rank; rank < last; rank++)
		if (READ_ONCE(rank->nr_active))
			return true;
	return false;
}

/* The part of @amount that an entity of a level has by its class and weight. */
static u64 sutro_part(const struct sutro_level *level,
		      const struct sutro_entity *entity, u64 amount)
{
	const struct sutro_rank *rank = &level->rank[READ_ONCE(entity->class)];
	u32 weight = READ_ONCE(entity->weight);
	u64 sum = READ_ONCE(rank->weight_sum);

	if (!READ_ONCE(entity->active))
		sum += weight;
	/* Read without a lock, the three values may not belong together. */
	sum = max_t(u64, sum, weight);

	amount = div64_u64(amount * weight, sum);
	return sutro_outranked(level, rank) ? amount / SUTRO_AGE_PART : amount;
}

/**
 * sutro_level_share - the part of an amount that a group and all below it have
 * @group:	the group; if it is not active, its share were it so
 * @amount:	the amount, below 2^48
 *
 * Return: @amount times the hierarchical weight of all of them.
 */
u64 sutro_level_share(const struct sutro_group *group, u64 amount)
{
	for (; group->parent; group = group->parent)
		amount = sutro_part(&group->parent->level, &group->entity,
				    amount);
	return amount;
}

/**
 * sutro_group_share - a group's part of an amount that is divided by weight
 * @group:	the group; if it is not active, its share were it so
 * @amount:	the amount, below 2^48
 *
 * Return: @amount times the group's hierarchical weight (hweight); where a higher
 * class is active, of the part that is left to lower ones.
 */
u64 sutro_group_share(const struct sutro_group *group, u64 amount)
{
	amount = sutro_part(&group->level, &group->self, amount);
	return sutro_level_share(group, amount);
}

/*
 * Slots of an entity at a level that has @slots of which @free are free.  Sets @ret_own to
 * those that it has while none are free.
 */
static u32 sutro_slots_of(const struct sutro_level *level,
			  const struct sutro_entity *entity, u32 slots,
			  u32 free, u32 *ret_own)
{
	u32 nr = READ_ONCE(level->nr_active) + !READ_ONCE(entity->active);
	u32 part = slots, least = 1;

	/* Without others it has all of them: the usual case of a group's own requests. */
	if (nr > 1) {
		part = sutro_part(level, entity, slots);
		least = clamp(slots / nr / 2, 1U, SUTRO_MIN_SLOTS);
	}
	*ret_own = max(part, least);
	return max(part + free, least);
}

/**
 * sutro_group_slots - request slots that a group and its ancestors may use
 * @group:	the group; if it is not active, as if it were
 * @slots:	slots of the root
 * @free:	how many of these are not in use
 * @ret_slots:	set for each depth from 1 to that of @group: slots of the ancestor of this
 *		depth with all that is below it
 *
 * An entity has its part of the slots of the level above, and beyond that as many as are
 * free, but no less than half an even part.  So what a subtree has does not depend on how
 * many groups are below it.
 *
 *	64 slots, none free; a reader of weight 1000, and a subtree of weight 1 with 200
 *	groups: 63 for the reader, 16 for the subtree, one for each of its groups, as
 *	long as the subtree has not used its 16.
 *
 * Return: slots of the group's own requests.
 */
u32 sutro_group_slots(const struct sutro_group *group, u32 slots, u32 free,
		      u32 ret_slots[SUTRO_LEVELS + 1])
{
	const struct sutro_group *path[SUTRO_LEVELS + 1], *ancestor;
	u32 depth;

	for (ancestor = group; ancestor; ancestor = ancestor->parent)
		path[ancestor->depth] = ancestor;
	for (depth = 1; depth <= group->depth; depth++) {
		const struct sutro_level *level = &path[depth - 1]->level;
		const struct sutro_entity *entity = &path[depth]->entity;

		ret_slots[depth] =
			sutro_slots_of(level, entity, slots, free, &slots);
	}
	return sutro_slots_of(&group->level, &group->self, slots, free, &slots);
}

/**
 * sutro_group_heavy - has a group more than an even part of the time?
 * @group:	the group
 * @nr:		active groups
 */
bool sutro_group_heavy(const struct sutro_group *group, u32 nr)
{
	return sutro_group_share(group, (u64)nr << 16) > 1U << 16;
}

/* Device time of a group as vtime of turns: by its hierarchical weight. */
static u32 sutro_turn_vtime(const struct sutro_group *group, u64 ns)
{
	u64 share = sutro_group_share(group, 1U << SUTRO_TURN_SHIFT);

	ns = min(ns, SUTRO_TURN_MOST_NS) << SUTRO_TURN_SHIFT;
	ns = div64_u64(ns, max(share, 1ULL));
	return min(ns >> SUTRO_TURN_UNIT_SHIFT, SUTRO_TURN_FAR);
}

/**
 * sutro_turn_of - when is it the turn of a group's next request to get a slot?
 * @core:	the leaf
 * @group:	the group
 * @class:	class of its entity where it waits
 *
 * Groups without a slot are not active, so the vtime of the tree runs ahead of theirs.  Among
 * those that wait, turns have a vtime of their own: that of the last one that got a slot.  A group
 * of the mean weight is owed SUTRO_TURN_OWED slices at most, and all others the same in vtime.
 *
 * Return: its turn.  Of those with the same one, the first to come is the first to be served.
 */
struct sutro_turn sutro_turn_of(const struct sutro_core *core,
				const struct sutro_group *group,
				enum sutro_class class)
{
	u64 owed = SUTRO_TURN_OWED * READ_ONCE(core->tunables.slice_ns) *
			   READ_ONCE(core->nr_active) >>
		   SUTRO_TURN_UNIT_SHIFT;
	struct sutro_turn oldest = {
		class,
		READ_ONCE(core->turn_vtime) - owed,
	};
	struct sutro_turn turn = { class, READ_ONCE(group->turn_vtime) };

	return sutro_turn_before(&turn, &oldest) ? oldest : turn;
}

/**
 * sutro_turn_came - a group gets a slot in its turn
 * @core:	the leaf
 * @group:	the group
 * @turn:	its turn
 *
 * It is charged for the device time that it has used since the last one, by its hierarchical
 * weight.  So its next request waits for the share of the last but one: one with a request at a
 * time waits for its share in the elevator, too, and would wait for it twice.
 */
void sutro_turn_came(struct sutro_core *core, struct sutro_group *group,
		     const struct sutro_turn *turn)
{
	u32 used = READ_ONCE(group->stat.time_ns) >> SUTRO_TURN_USED_SHIFT;
	u64 ns = (u64)(used - group->turn_used) << SUTRO_TURN_USED_SHIFT;

	ns = min(ns, SUTRO_TURN_CHARGED * READ_ONCE(core->tunables.slice_ns));
	if ((s32)(core->turn_vtime - turn->vtime) < 0)
		WRITE_ONCE(core->turn_vtime, turn->vtime);
	WRITE_ONCE(group->turn_vtime,
		   turn->vtime + sutro_turn_vtime(group, ns));
	group->turn_used = used;
}

/**
 * sutro_group_lag_ns - how far is a group behind its entitlement?
 * @group: the group
 *
 * Return: device time it is owed among the siblings of its class, negative
 * if it was served in advance; 0 while it does not take part.
 */
s64 sutro_group_lag_ns(const struct sutro_group *group)
{
	struct sutro_level *level = sutro_level_of(group);
	const struct sutro_entity *entity = &group->entity;
	const struct sutro_rank *rank;
	s64 behind;

	if (!level || !READ_ONCE(entity->active))
		return 0;
	rank = &level->rank[READ_ONCE(entity->class)];
	behind = READ_ONCE(rank->vtime) - READ_ONCE(entity->vtime);
	return div_s64(behind * READ_ONCE(entity->weight),
		       SUTRO_WEIGHT_DFL << SUTRO_VTIME_SHIFT);
}
