// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: which groups are entitled to more than others.
 *
 * 1. Favoured groups
 *
 * A group is favoured if it is entitled to more than a group that it competes with: by its class
 * or weight at some level of the tree.
 *
 *	1000, 300 and 100: 300 is favoured, although it is less than the mean.
 *
 *	Two slices of weight 100; in the first one a database of 1000 and a backup of 100, in the
 *	second one a shell of 100.  The database is favoured, by the backup.
 *
 * A group that is entitled to less than all others at a level is not favoured by that level or
 * those below it.  At a higher level it has only its part of the weight of the entity that it is
 * in, or of its class.  With the whole weight, each backup in a heavy slice would be protected
 * beside its database.
 *
 *	A slice of weight 1000 with a group of 100 and one of 200, beside a backup of 100.  The
 *	lighter one has a third of 1000, which is more than 100: it is favoured, as it is with a
 *	weight of 333 without slices.
 *
 *	With 100 and 1000 in the slice, the lighter one has 91, and is not favoured.
 *
 * On a rotational device, only the highest level counts where others are active, and a group that
 * is entitled to less than all others at any level is not favoured: streams have slices there and
 * are not protected, so a stream of the second slice would wait for the database.
 *
 * 2. Groups that keep up
 *
 * While favoured groups are protected (sutro-protect.c), those wait that are entitled to less.
 * Two groups are compared where their ways to the root meet, by the classes and weights of the
 * entities there.  So the settings in one subtree decide between its own groups, and its owner
 * gains nothing by them against other subtrees.
 *
 *	While the database is protected, the backup waits, and the shell does not: the first slice
 *	weighs no more than the second one, although the shell and the backup both weigh 100.
 *
 * Each level is marked with the least standing (class, then weight) of its entities at or below
 * which a protected group is.  So the question costs one way to the root, not one for each
 * protected group.  All marks are made anew once in a cycle, and when a marked group leaves.
 *
 * 3. Groups that are ahead
 *
 * A group may be ahead of others: it gave requests for a probe, or was served before others were
 * protected.  Then it waits until these have had as much.  While groups are protected, others may
 * have a few percent of the time, and would pay back half a second of service for a minute.  So in
 * each cycle the group that is farthest ahead at a level loses the part of its lead that exceeds
 * its part of the time that others have in SUTRO_LEAD_NS (sutro-protect.c).  Entities with the
 * standing of those with protected groups lose nothing: the time of these counts for their share.
 *
 *	A database of 1000 has 97 % of the time.  Beside it, b and c of 100 read 1 MiB at a time.
 *	In the first second b gave 700 ms for a probe and c nothing.  Others have 30 ms in a
 *	second, so b would have nothing for 23 s.  It keeps a lead of 30 / 12 = 2.5 ms.
 */
#include <linux/bits.h>
#include <linux/math64.h>

#include "sutro-tree.h"

/* The whole weight of an entity: the part of a group that is at no level less than all others. */
#define SUTRO_PART_WHOLE BIT_ULL(20)
/* Entities that are examined to find the one that is farthest ahead. */
#define SUTRO_LEAD_LOOKS 8

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
 * Find the lightest entities anew: those that were may have left.  All are looked at, unless they
 * are equal, so that is done only after as many calls as there are entities, or after
 * SUTRO_LOOKS_MAX.
 */
static void sutro_find_lightest(struct sutro_level *level)
{
	const struct sutro_rank *rank = &level->rank[SUTRO_CLASS_BE];

	if (++level->looks < min(rank->nr_active, SUTRO_LOOKS_MAX))
		return;
	level->looks = 0;
	if (sutro_level_is_equal(level))
		return;
	level->lightest = U16_MAX;
	level->is_single = false;
	sutro_look_at_weights(level, &rank->queue);
	sutro_look_at_weights(level, &rank->away);
}

/* Is @entity lighter than all others of its class, or than the mean in rt and idle? */
static bool sutro_is_less(const struct sutro_level *level,
			  const struct sutro_entity *entity,
			  const struct sutro_rank *rank)
{
	if (entity->class != SUTRO_CLASS_BE)
		return (u64)entity->weight * rank->nr_active < rank->weight_sum;
	return rank->nr_active > 1 && level->is_single &&
	       entity->weight == level->lightest;
}

/*
 * No higher class is active.  Is @entity of a higher class than another one, or @part of it, of
 * SUTRO_PART_WHOLE, heavier than the lightest one, or of @times the mean weight of the others?
 */
static bool sutro_is_more(const struct sutro_level *level,
			  const struct sutro_entity *entity,
			  const struct sutro_rank *rank, u64 part, u32 times)
{
	u64 others = rank->weight_sum - entity->weight;
	u64 weight = entity->weight * part;

	/* For each SUTRO_AGE_PART ns of the higher class, the lower one has 1 ns. */
	if (rank->nr_active < level->nr_active)
		return part > SUTRO_PART_WHOLE / SUTRO_AGE_PART;
	if (times == 1 && entity->class == SUTRO_CLASS_BE)
		return rank->nr_active > 1 &&
		       weight > level->lightest * SUTRO_PART_WHOLE;
	return weight * (rank->nr_active - 1) >
	       times * others * SUTRO_PART_WHOLE;
}

/*
 * As sutro_group_favoured(); with @inside, a lower level is enough, and the lightest of a level may
 * be favoured by a higher one.
 */
static bool sutro_favoured(struct sutro_group *group, u32 times, bool inside)
{
	struct sutro_level *level = &group->level;
	const struct sutro_entity *entity = &group->self;
	u64 part = SUTRO_PART_WHOLE;
	bool more = false, less = false;

	for (;;) {
		const struct sutro_rank *rank = &level->rank[entity->class];

		/* At most levels nothing else is active. */
		if (level->nr_active > 1) {
			sutro_find_lightest(level);
			if (rank->nr_active < level->nr_active &&
			    sutro_outranked(level, rank))
				return false;
			if (sutro_is_less(level, entity, rank)) {
				if (times == 1 && !inside)
					return false;
				less = true;
				more = false;
			}
			more = sutro_is_more(level, entity, rank, part,
					     times) ||
			       (more && inside);
			if (less)
				part = div_u64(part * entity->weight,
					       rank->weight_sum);
		}
		level = sutro_level_of(group);
		if (!level)
			return more;
		entity = &group->entity;
		group = group->parent;
	}
}

/**
 * sutro_group_favoured - is a group entitled to more than those that it competes with?
 * @group:	the group, which is active
 * @times:	by how much more
 *
 * Return: true if at the highest level where others are active it is of a higher class than one of
 * these, or weighs more than one of its class, with @times above 1 more than that times the mean
 * of the others.  If it weighs less than all others at a lower level, its part counts, or with
 * @times = 1 it is not favoured.
 *
 * Context: as the tree.
 */
bool sutro_group_favoured(struct sutro_group *group, u32 times)
{
	return sutro_favoured(group, times, false);
}

/**
 * sutro_group_favoured_inside - is a group entitled to more than another one at any level?
 * @group:	the group, which is active
 *
 * Return: as sutro_group_favoured() with @times = 1, but by any level.
 *
 * Context: as the tree.
 */
bool sutro_group_favoured_inside(struct sutro_group *group)
{
	return sutro_favoured(group, 1, true);
}

/*
 * The standing of an entity at its level: its class, then its weight.  Only that of the root's own
 * requests may be larger than SUTRO_WEIGHT_MAX.
 */
static u16 sutro_standing(const struct sutro_entity *entity)
{
	u32 class = SUTRO_CLASS_NR - entity->class;

	return class << 14 | min_t(u32, entity->weight, BIT(14) - 1);
}

/**
 * sutro_group_mark - a group is protected for its share
 * @group:	the group
 */
void sutro_group_mark(struct sutro_group *group)
{
	const struct sutro_entity *entity = &group->self;

	for (;;) {
		u16 standing = sutro_standing(entity);

		if (!group->least || standing < group->least)
			group->least = standing;
		if (!group->parent)
			return;
		entity = &group->entity;
		group = group->parent;
	}
}

/**
 * sutro_group_unmark - the marks of a group are no longer right, nor those of groups beside it
 * @group:	the group, which may have no marks
 */
void sutro_group_unmark(struct sutro_group *group)
{
	for (; group; group = group->parent)
		group->least = 0;
}

/**
 * sutro_group_keeps_up - is a group entitled to as much as a protected one?
 * @group:	the group
 *
 * Groups are compared where their ways to the root meet: weights within a subtree do not matter to
 * other subtrees.
 *
 * Return: false if no group is marked.
 */
bool sutro_group_keeps_up(const struct sutro_group *group)
{
	const struct sutro_entity *entity = &group->self;

	for (;;) {
		if (group->least && sutro_standing(entity) < group->least)
			return false;
		if (!group->parent)
			return group->least;
		entity = &group->entity;
		group = group->parent;
	}
}

/* Of the entities in a rank of @group's level that are entitled to less, the one farthest ahead. */
static struct sutro_entity *sutro_farthest(const struct sutro_group *group,
					   const struct sutro_rank *rank)
{
	struct rb_node *node = rb_last(&rank->queue.rb_root);
	unsigned int left = SUTRO_LEAD_LOOKS;
	struct sutro_entity *entity;

	for (; node && left--; node = rb_prev(node)) {
		entity = rb_entry(node, struct sutro_entity, node);
		if (!group->least || sutro_standing(entity) < group->least)
			return entity;
	}
	return NULL;
}

/* At @group's level, an entity is ahead of the others of the rank by @ns of their time at most. */
static void sutro_limit_lead(struct sutro_group *group, struct sutro_rank *rank,
			     u64 ns)
{
	struct sutro_entity *entity = sutro_farthest(group, rank);
	u64 most;

	if (!entity)
		return;
	ns = div_u64(ns * entity->weight, rank->weight_sum);
	most = rank->vtime + sutro_tree_vtime(entity, ns);
	if (sutro_before(most, entity->vtime))
		sutro_tree_move(&group->level, entity, most);
}

/**
 * sutro_group_limit_lead - groups do not wait for long because they are ahead
 * @group:	a group that is served
 * @ns:		device time of all groups after which others are served again, below 2^34
 *
 * One group at each level of @group is looked at.
 *
 * Context: as the tree.
 */
void sutro_group_limit_lead(struct sutro_group *group, u64 ns)
{
	const struct sutro_entity *served = &group->self;

	for (; group; group = group->parent) {
		struct sutro_rank *rank = sutro_rank_of(&group->level, served);

		if (rank->nr_active > 1)
			sutro_limit_lead(group, rank,
					 sutro_level_share(group, ns));
		served = &group->entity;
	}
}
