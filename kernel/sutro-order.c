// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the order of groups in the tree (sutro-tree.c).
 */
#include "sutro-tree.h"

/**
 * sutro_tree_compare - through which entities do two groups compete?
 * @a:		a group
 * @b:		another group
 * @ret_a:	child of their nearest common ancestor, or its own requests
 * @ret_b:	likewise
 *
 * Return: the level at which these compete.
 */
struct sutro_level *sutro_tree_compare(struct sutro_group *a,
				       struct sutro_group *b,
				       struct sutro_entity **ret_a,
				       struct sutro_entity **ret_b)
{
	unsigned int depth_a = a->depth, depth_b = b->depth;

	*ret_a = &a->self;
	*ret_b = &b->self;
	while (a != b) {
		if (depth_a >= depth_b) {
			*ret_a = &a->entity;
			a = a->parent;
			if (depth_a-- > depth_b)
				continue;
		}
		*ret_b = &b->entity;
		b = b->parent;
		depth_b--;
	}
	return &a->level;
}

/**
 * sutro_tree_precedes - would a group be next if it had a request queued?
 * @group:	the group
 * @age_ns:	as for sutro_tree_turn()
 *
 * Return: true if no group with requests queued is further behind, and others are not
 * held back for a group without.
 */
bool sutro_tree_precedes(struct sutro_group *group, u64 age_ns)
{
	struct sutro_level *level = &group->level;
	const struct sutro_entity *entity = &group->self, *first;

	for (;;) {
		const struct sutro_rank *rank = sutro_rank_of(level, entity);

		if (sutro_tree_turn(level, age_ns, true) != entity->class)
			return false;
		first = sutro_first(&rank->queue);
		if (first && sutro_before(first->vtime, entity->vtime))
			return false;
		first = sutro_first_away(rank);
		if (first && sutro_before(sutro_due(first), entity->vtime))
			return false;
		level = sutro_level_of(group);
		if (!level)
			return true;
		entity = &group->entity;
		group = group->parent;
	}
}

/**
 * sutro_tree_may_borrow - may a group be served before its turn?
 * @group:	the group, which is active
 * @most_ns:	device time that it may be in advance
 *
 * Return: true if at each level it was served no more than @most_ns in advance of its
 * entitlement.
 */
bool sutro_tree_may_borrow(const struct sutro_group *group, u64 most_ns)
{
	const struct sutro_entity *entity = &group->self;
	const struct sutro_rank *rank = &group->level.rank[entity->class];

	for (;;) {
		u64 most = rank->vtime + sutro_tree_vtime(entity, most_ns);

		if (sutro_before(most, entity->vtime))
			return false;
		if (!group->parent)
			return true;
		entity = &group->entity;
		group = group->parent;
		rank = &group->level.rank[entity->class];
	}
}
