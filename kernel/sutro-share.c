// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a group's part of something that is divided by weight, such as
 * request slots.
 *
 * The functions may be called without the locks that protect the tree.  Members may then
 * be of different moments, which is exact enough; each one is read once.
 */
#include "sutro-core.h"

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
 * sutro_group_heavy - is a group entitled to more than an even part of the time?
 * @group:	the group
 * @nr:		active groups
 */
bool sutro_group_heavy(const struct sutro_group *group, u32 nr)
{
	return sutro_group_share(group, (u64)nr << 16) > 1U << 16;
}

/* How far is an entity ahead of the one of its class that was served last? */
static s64 sutro_ahead(const struct sutro_level *level,
		       const struct sutro_entity *entity)
{
	const struct sutro_rank *rank = &level->rank[READ_ONCE(entity->class)];
	s64 ahead = READ_ONCE(entity->vtime) - READ_ONCE(rank->vtime);

	/* Alone, it is entitled to all.  One that comes back is owed little. */
	if (READ_ONCE(level->nr_active) < 2 ||
	    (ahead < 0 && !READ_ONCE(entity->active)))
		return 0;
	return ahead;
}

/**
 * sutro_turn_of - when is it the turn of a group's next request to get a slot?
 * @group:	the group
 * @at:		where it competes for the slot: @group or one of its ancestors
 *
 * Its turn comes when the vtime of its entity there is reached.  Inside that entity, others may be
 * entitled to requests before the group.  These come first: the group's lead is added, for the sum
 * of the weights there.
 *
 *	b (weight 100) is at 50 ms.  In it, c has used 2 ms more than d, both of 100.  The next
 *	request of d is due at 50 ms, and that of c at 54.
 *
 * Groups that wait for slots are active, so their weights count (sutro-leave.c).
 *
 * Return: its turn.  Of those with the same one, the first to come is the first to be served.
 */
struct sutro_turn sutro_turn_of(const struct sutro_group *group,
				const struct sutro_group *at)
{
	const struct sutro_entity *entity = &group->self;
	s64 ahead = 0;

	for (; group != at; group = group->parent) {
		const struct sutro_level *level = &group->level;
		const struct sutro_rank *rank =
			&level->rank[READ_ONCE(entity->class)];
		u32 sum = max(READ_ONCE(rank->weight_sum), 1U);

		ahead = sutro_vtime_rescale(ahead + sutro_ahead(level, entity),
					    sum,
					    READ_ONCE(group->entity.weight));
		entity = &group->entity;
	}
	ahead += sutro_ahead(&group->level, entity);
	return (struct sutro_turn){
		READ_ONCE(entity->class),
		READ_ONCE(group->level.rank[READ_ONCE(entity->class)].vtime) +
			ahead,
	};
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
