// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a group's part of something that is divided by weight, such as
 * request slots.
 *
 * The functions may be called without the locks that protect the tree.  Members may then
 * be of different moments, which is exact enough; each one is read once.
 */
#include "sutro-tree.h"

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
