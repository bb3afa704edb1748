// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: weights of groups that compete in the tree (sutro-tree.c).
 *
 * A weight may change while a group has used more or less device time than its share.  This
 * debt or credit is a distance in virtual time, which is inverse to the weight, so the distance
 * is scaled:
 *
 *	a is 10 ms of vtime ahead of its class at weight 200, that is, 20 ms of device time.  At
 *	weight 100 it is 20 ms of vtime ahead.
 */
#include "sutro-tree.h"

/**
 * sutro_vtime_rescale - a distance in vtime for another weight: the same device time
 * @distance:	the distance
 * @old:	the weight, or sum of weights, that it is for
 * @weight:	the other one
 *
 * Return: an hour at weight 1 at most.
 */
s64 sutro_vtime_rescale(s64 distance, u32 old, u32 weight)
{
	u64 far = SUTRO_VTIME_FAR, abs = distance < 0 ? -distance : distance;

	/* Compare before the multiplication, which might overflow 64 bits. */
	if (abs / weight >= far / old)
		abs = far;
	else
		abs = mul_u64_u32_div(abs, old, weight);
	return distance < 0 ? -(s64)abs : abs;
}

/* An entity gets another weight; its debt or credit in device time stays. */
static void sutro_reweigh(struct sutro_level *level,
			  struct sutro_entity *entity, u32 weight)
{
	struct sutro_rank *rank = sutro_rank_of(level, entity);
	s64 ahead = entity->vtime - rank->vtime;
	u32 old = entity->weight;

	entity->weight = weight;
	if (entity->active) {
		rank->weight_sum += weight - old;
		sutro_level_add(level, entity);
	}
	if (entity->slack != SUTRO_SLACK_EVER)
		entity->slack = sutro_vtime_rescale(entity->slack, old, weight);
	sutro_tree_move(level, entity,
			rank->vtime + sutro_vtime_rescale(ahead, old, weight));
}

/**
 * sutro_tree_weigh_root - the weights of a level have changed
 * @level:	the level
 *
 * The weight of the root's own requests follows, if they compete there.
 */
void sutro_tree_weigh_root(struct sutro_level *level)
{
	struct sutro_group *group =
		container_of(level, struct sutro_group, level);
	struct sutro_entity *self = &group->self;
	u64 others;
	u32 weight;

	if (group->parent || !self->active)
		return;
	others = sutro_rank_of(level, self)->weight_sum - self->weight;
	weight = max_t(u64, SUTRO_WEIGHT_DFL, others / SUTRO_ROOT_PART);
	if (weight != self->weight)
		sutro_reweigh(level, self, weight);
}

/**
 * sutro_group_set_weight - change a group's weight
 * @group:	the group
 * @weight:	SUTRO_WEIGHT_MIN to SUTRO_WEIGHT_MAX
 *
 * The debt or credit of the group in device time stays: a group that is raised
 * from weight 1 does not wait for the debt it would have had to pay off at 1.
 */
void sutro_group_set_weight(struct sutro_group *group, u32 weight)
{
	struct sutro_entity *entity = &group->entity;
	struct sutro_level *level = sutro_level_of(group);

	if (entity->weight == weight)
		return;
	if (!level) {
		entity->weight = weight;
		return;
	}
	sutro_reweigh(level, entity, weight);
	sutro_tree_weigh_root(level);
}
