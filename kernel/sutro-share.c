// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a group's part of something that is divided by weight, such as
 * request slots.
 *
 * The functions may be called without the locks that protect the tree.  Members may then
 * be of different moments, which is exact enough; each one is read once.
 */
#include "sutro-tree.h"

/* Is an entity of a higher class than @last's active at its level? */
static bool sutro_outranked(const struct sutro_level *level,
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
 * sutro_group_share - a group's part of an amount that is divided by weight
 * @group:	the group; if it is not active, its share were it so
 * @amount:	the amount, below 2^48
 *
 * Return: @amount times the group's hierarchical weight (hweight); where a higher
 * class is active, of the part that is left to lower ones.
 */
u64 sutro_group_share(const struct sutro_group *group, u64 amount)
{
	const struct sutro_level *level = &group->level;
	const struct sutro_entity *entity = &group->self;

	for (;;) {
		amount = sutro_part(level, entity, amount);
		level = sutro_level_of(group);
		if (!level)
			return amount;
		entity = &group->entity;
		group = group->parent;
	}
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

static void sutro_look_at_weights(struct sutro_level *level,
				  const struct rb_root_cached *tree)
{
	const struct sutro_entity *entity;
	struct rb_node *node;

	for (node = rb_first_cached(tree); node; node = rb_next(node)) {
		entity = rb_entry(node, struct sutro_entity, node);
		sutro_level_see(level, entity->weight);
	}
}

/*
 * Find the lightest entities anew: those that were may have left.  All are looked at, so that is
 * done only after as many calls as there are entities, or after 255.
 */
static void sutro_find_lightest(struct sutro_level *level)
{
	const struct sutro_rank *rank = &level->rank[SUTRO_CLASS_BE];

	if (++level->looks < min_t(u32, rank->nr_active, U8_MAX))
		return;
	level->looks = 0;
	level->lightest = U16_MAX;
	level->is_single = false;
	sutro_look_at_weights(level, &rank->queue);
	sutro_look_at_weights(level, &rank->away);
}

/* Is @entity of a lower class than an active one, or lighter than all others? */
static bool sutro_is_less(const struct sutro_level *level,
			  const struct sutro_entity *entity,
			  const struct sutro_rank *rank)
{
	if (sutro_outranked(level, rank))
		return true;
	if (entity->class != SUTRO_CLASS_BE)
		return (u64)entity->weight * rank->nr_active < rank->weight_sum;
	return rank->nr_active > 1 && level->is_single &&
	       entity->weight == level->lightest;
}

/* Is a class below @rank active? */
static bool sutro_outranks(const struct sutro_level *level,
			   const struct sutro_rank *rank)
{
	while (++rank < level->rank + SUTRO_CLASS_NR)
		if (rank->nr_active)
			return true;
	return false;
}

/* Does the level have another active entity? */
static bool sutro_has_others(const struct sutro_level *level,
			     const struct sutro_rank *rank)
{
	return rank->nr_active > 1 || sutro_outranked(level, rank) ||
	       sutro_outranks(level, rank);
}

/*
 * Is @entity of a higher class than another one, or heavier than the lightest one, or of @times the
 * mean weight of the others?
 */
static bool sutro_is_more(const struct sutro_level *level,
			  const struct sutro_entity *entity,
			  const struct sutro_rank *rank, u32 times)
{
	u64 others = rank->weight_sum - entity->weight;

	if (sutro_outranks(level, rank))
		return true;
	if (times == 1 && entity->class == SUTRO_CLASS_BE)
		return rank->nr_active > 1 && entity->weight > level->lightest;
	return (u64)entity->weight * (rank->nr_active - 1) > times * others;
}

/**
 * sutro_group_favoured - is a group entitled to more than those that it competes with?
 * @group:	the group, which is active
 * @times:	by how much more
 *
 * Return: true if at the highest level where others are active it is of a higher class
 * than these, or weighs more than one of its class, with @times above 1 more than that times
 * the mean of the others, and at no level less than all others.  The settings below that
 * level are the business of one subtree, whose owner must not gain anything against other
 * subtrees by them.
 *
 *	1000, 300 and 100: 300 is more than the third has, although it is less than the mean.
 *
 * Context: as the tree.
 */
bool sutro_group_favoured(struct sutro_group *group, u32 times)
{
	struct sutro_level *level = &group->level;
	const struct sutro_entity *entity = &group->self;
	bool more = false;

	for (;;) {
		const struct sutro_rank *rank = &level->rank[entity->class];

		/* At most levels nothing else is active. */
		if (level->nr_active > 1) {
			sutro_find_lightest(level);
			if (sutro_is_less(level, entity, rank))
				return false;
			if (sutro_has_others(level, rank))
				more = sutro_is_more(level, entity, rank,
						     times);
		}
		level = sutro_level_of(group);
		if (!level)
			return more;
		entity = &group->entity;
		group = group->parent;
	}
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
