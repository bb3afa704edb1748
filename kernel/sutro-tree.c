// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the tree of groups.
 *
 * Groups form a tree, as their cgroups do.  At each level the children of a
 * group compete with one another and with the group's own requests, which weigh 100 like
 * a child without settings.  The root's own may be metadata that all others wait for, so
 * they weigh an eighth of all others of their class if that is more: no weights leave
 * them less than one part in nine of the time of that class.  Each competitor (entity)
 * has a virtual time: the device time it has used, times 100 / weight.  The one with the
 * lowest vtime is served: start from the root, take the backlogged entity with the
 * lowest vtime, go down, until the entity is a group's own requests.  Device time is
 * charged to every entity on the path, so that it is divided by weight at each level,
 * whatever the levels below do (start-time fair queueing at each level, Goyal, Vin and
 * Cheng 1996, as CFS did for CPU time).
 *
 * In one tree, flattened by hierarchical weight, each charge would be wrong as soon
 * as a group comes or goes anywhere, and its correction would touch all groups.  Level
 * by level no charge needs a correction, and a weight change moves one entity.
 *
 *	root ----- a (weight 200) ----- own requests
 *	   \------ b (weight 100) --+-- c (weight 100) -- own requests
 *	                            \-- d (weight 300) -- own requests
 *
 * All backlogged, 12 ms of device time in requests of 1 ms: a's entity is
 * charged 0.5 ms of vtime for each, b's 1 ms, so a gets 8 ms and b 4; below b,
 * c is charged 1 ms for each and d 0.33, so c gets 1 ms and d 3.
 *
 * An entity that becomes active starts at the vtime of its class, less at most
 * half a slice's worth: sleeping earns no more than that (no hoarding), and a group that
 * was served in advance keeps that debt.
 *
 * Depth.  A request takes a few ways from its group to the root, each under the lock of
 * the leaf.  A user with a delegated cgroup may nest others in it without end, so the tree
 * has SUTRO_LEVELS levels: all cgroups that are deeper compete with one another on the last
 * level, as children of their ancestor above it.  Groups that are not below that ancestor
 * have the same shares as without such a limit.
 *
 *	A cgroup with 1000 others nested in one another beside another one of the same
 *	weight: each of the two has half, and a request passes 17 entities, not 1000.
 *
 * Away.  An entity may be active with nothing queued: its requests are all at the
 * device, or the next one is expected.  Where others are held back for it
 * (sutro-select.c), they may be half a slice of its device time ahead before they are:
 * its slack, in vtime of its weight.  So those that are away are in the order of
 * vtime and slack, when others have to wait for them, and the first one decides whether
 * any group has to.  By vtime alone, a light one, which can wait, would hide a heavy
 * one, which can not:
 *
 *	h (weight 9000) and l (9) are away, m (9) has requests of 10 ms queued, half a
 *	slice is 50 ms.  h is at 100 ms of vtime and has a slack of 0.6 ms, l at 90
 *	with 556 ms, m at 105.  m is ahead of h's 100.6 and held back.  Were it not,
 *	its next request would begin at 216 ms, which is the vtime of the class then: h
 *	would be owed 116 ms times 90, and a newcomer would wait for these 10 s.
 *
 * Where no group is held back, a group that is away falls behind as long as it does not
 * use its share.  When it does, it is owed 250 ms of device time at most: no hoarding,
 * and a newcomer does not wait longer than that for it.
 *
 * Classes.  Each child of a group is of class rt, be or idle; a group's own
 * requests are be.  At each level the entities of one class compete by weight, and
 * a class is served when no higher one has anything to do there.  A class is a
 * matter among siblings: an rt child of an idle group comes before its be
 * siblings, and all of them come after the idle group's siblings.
 *
 * No class starves.  A class that is backlogged while higher ones are served ages by
 * the device time that they use.  When it is age_ns old it comes first, and each
 * ns that it is served makes it 32 ns younger.  So it waits for age_ns of others'
 * device time at most, and then has 1 ns for each 32 of theirs: 3 % of the level's
 * time, little enough for those above, and enough that a task that sleeps on a lock of
 * a lower class, or a filesystem whose journal waits for it, goes on.  Age is
 * kept while a class has nothing queued: one request at a time ages as well.
 *
 *	a is rt, b be, both have requests of 1 ms without end, age_ns is 64 ms: a is
 *	served for 64 ms, b for one request, a for 32 ms, b for one request, ...
 */
#include <linux/bits.h>

#include "sutro-tree.h"

/*
 * Device time that an active entity with nothing queued can be owed: a few of the
 * largest requests of a slow device.
 */
#define SUTRO_AWAY_OWED_NS (250 * 1000000ULL)

/* A class that received more than its part pays for at most one second of it. */
#define SUTRO_AGE_DEBT_NS (SUTRO_AGE_PART * 1000000000LL)

static struct sutro_entity *sutro_entity_of(struct rb_node *node)
{
	return rb_entry(node, struct sutro_entity, node);
}

static bool sutro_entity_less(struct rb_node *a, const struct rb_node *b)
{
	return sutro_before(sutro_due(rb_entry(a, struct sutro_entity, node)),
			    sutro_due(rb_entry(b, struct sutro_entity, node)));
}

/**
 * sutro_tree_vtime - device time as virtual time
 * @entity:	the entity
 * @ns:		|@ns| below 2^48 (3 days): no overflow
 */
s64 sutro_tree_vtime(const struct sutro_entity *entity, s64 ns)
{
	return div_s64(ns * (SUTRO_WEIGHT_DFL << SUTRO_VTIME_SHIFT),
		       entity->weight);
}

/* The tree that an active entity is in. */
static struct rb_root_cached *sutro_tree_of(struct sutro_level *level,
					    const struct sutro_entity *entity)
{
	struct sutro_rank *rank = sutro_rank_of(level, entity);

	return entity->backlogged ? &rank->queue : &rank->away;
}

static void sutro_enter(struct sutro_level *level, struct sutro_entity *entity)
{
	rb_add_cached(&entity->node, sutro_tree_of(level, entity),
		      sutro_entity_less);
}

static void sutro_quit(struct sutro_level *level, struct sutro_entity *entity)
{
	struct rb_root_cached *tree = sutro_tree_of(level, entity);

	/* At most levels it is the only one, in whichever tree. */
	if (level->nr_active == 1)
		*tree = RB_ROOT_CACHED;
	else
		rb_erase_cached(&entity->node, tree);
}

/**
 * sutro_tree_move - an entity has another vtime
 * @level:	where it competes
 * @entity:	the entity, which usually keeps its place in the tree
 * @vtime:	its vtime from now on
 */
void sutro_tree_move(struct sutro_level *level, struct sutro_entity *entity,
		     u64 vtime)
{
	u64 due = vtime + entity->slack;
	struct rb_node *next, *prev;

	if (!entity->active || level->nr_active == 1) {
		entity->vtime = vtime;
		return;
	}

	next = rb_next(&entity->node);
	prev = rb_prev(&entity->node);
	if ((!next || !sutro_before(sutro_due(sutro_entity_of(next)), due)) &&
	    (!prev || !sutro_before(due, sutro_due(sutro_entity_of(prev))))) {
		entity->vtime = vtime;
		return;
	}

	sutro_quit(level, entity);
	entity->vtime = vtime;
	sutro_enter(level, entity);
}

/* The class of all active entities, SUTRO_CLASS_NR if they are of several. */
static enum sutro_class sutro_only_class(const struct sutro_level *level)
{
	const struct sutro_rank *rank = level->rank;

	/* The usual case first. */
	if (rank[SUTRO_CLASS_BE].nr_active == level->nr_active)
		return SUTRO_CLASS_BE;
	while (rank < level->rank + SUTRO_CLASS_NR &&
	       rank->nr_active != level->nr_active)
		rank++;
	return rank - level->rank;
}

/* @class was served: reduce its age if that was early, and let the lower classes grow older. */
static void sutro_age(struct sutro_level *level, enum sutro_class class, s64 ns)
{
	struct sutro_rank *rank = &level->rank[class];

	if (sutro_only_class(level) == class && !(level->early & BIT(class)))
		return;
	if (level->early & BIT(class))
		rank->waited_ns = max(rank->waited_ns - ns * SUTRO_AGE_PART,
				      -SUTRO_AGE_DEBT_NS);
	while (++class < SUTRO_CLASS_NR) {
		rank = &level->rank[class];
		if (sutro_first(&rank->queue))
			rank->waited_ns += ns;
	}
}

/* A competitor of @level used device time. */
static void sutro_charge(struct sutro_level *level, struct sutro_entity *entity,
			 s64 ns)
{
	sutro_tree_move(level, entity,
			entity->vtime + sutro_tree_vtime(entity, ns));
	sutro_age(level, entity->class, ns);
}

/* @group and the groups that it is in used device time: charge them among their siblings. */
static void sutro_charge_above(struct sutro_group *group, s64 ns)
{
	for (; group->parent; group = group->parent)
		sutro_charge(&group->parent->level, &group->entity, ns);
}

/**
 * sutro_tree_charge_slices - the groups that a group is in used device time
 * @group:	the group, which is not charged itself
 * @ns:		how much; negative to give some back
 */
void sutro_tree_charge_slices(struct sutro_group *group, s64 ns)
{
	if (ns && group->parent)
		sutro_charge_above(group->parent, ns);
}

/**
 * sutro_tree_charge - a group used device time
 * @group:	the group
 * @ns:		how much; negative to give some back
 */
void sutro_tree_charge(struct sutro_group *group, s64 ns)
{
	if (!ns)
		return;
	sutro_charge(&group->level, &group->self, ns);
	sutro_charge_above(group, ns);
}

/**
 * sutro_tree_lead - a group used device time that was not charged
 * @group:	the group
 * @ns:		how much
 *
 * It is ahead of the others of each level by that at least from now on, not by the sum of all
 * such times: it is not left without service for long afterwards.  Lower classes grow older.
 */
void sutro_tree_lead(struct sutro_group *group, u64 ns)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	for (;;) {
		u64 vtime = sutro_rank_of(level, entity)->vtime +
			    sutro_tree_vtime(entity, ns);

		if (sutro_before(entity->vtime, vtime))
			sutro_tree_move(level, entity, vtime);
		sutro_age(level, entity->class, ns);
		level = sutro_level_of(group);
		if (!level)
			return;
		entity = &group->entity;
		group = group->parent;
	}
}

/**
 * sutro_tree_lead_inside - a group used device time that was not charged to it nor to its slices
 * @group:	the group, not the root
 * @ns:		how much
 *
 * As sutro_tree_lead(), but only among its siblings.
 */
void sutro_tree_lead_inside(struct sutro_group *group, u64 ns)
{
	struct sutro_level *level = sutro_level_of(group);
	struct sutro_entity *entity = &group->entity;
	u64 vtime = sutro_rank_of(level, entity)->vtime +
		    sutro_tree_vtime(entity, ns);

	if (sutro_before(entity->vtime, vtime))
		sutro_tree_move(level, entity, vtime);
}

/* An entity that was not active starts anew, owed at most @credit_ns. */
static void sutro_wake(struct sutro_level *level, struct sutro_entity *entity,
		       u64 credit_ns)
{
	struct sutro_rank *rank = sutro_rank_of(level, entity);
	u64 oldest = rank->vtime;

	/* Without others, no group owes it anything. */
	if (rank->nr_active)
		oldest -= sutro_tree_vtime(entity, credit_ns);
	/*
	 * No entity is served an hour in advance.  If its vtime looks so, the clock of the
	 * class has wrapped half way since (in 4 days of a group of weight 1).
	 */
	if (sutro_before(entity->vtime, oldest) ||
	    sutro_before(rank->vtime + SUTRO_VTIME_FAR, entity->vtime))
		entity->vtime = oldest;
	entity->active = true;
	rank->weight_sum += entity->weight;
	rank->nr_active++;
	level->nr_active++;
	sutro_level_add(level, entity);
}

/* An entity that was active with nothing queued comes back to the queue. */
static void sutro_return(struct sutro_level *level, struct sutro_entity *entity,
			 u64 credit_ns)
{
	u64 owed_ns = entity->slack == SUTRO_SLACK_EVER
			      ? credit_ns
			      : max(credit_ns, SUTRO_AWAY_OWED_NS);
	u64 oldest = sutro_rank_of(level, entity)->vtime -
		     sutro_tree_vtime(entity, owed_ns);

	sutro_quit(level, entity);
	if (sutro_before(entity->vtime, oldest))
		entity->vtime = oldest;
}

/**
 * sutro_tree_backlog - a group got its first queued request
 * @group:	the group
 * @credit_ns:	device time that a group that was not active is owed at most
 */
void sutro_tree_backlog(struct sutro_group *group, u64 credit_ns)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	while (!entity->backlogged) {
		if (entity->active)
			sutro_return(level, entity, credit_ns);
		else
			sutro_wake(level, entity, credit_ns);
		entity->backlogged = true;
		entity->slack = 0;
		sutro_enter(level, entity);
		sutro_tree_weigh_root(level);

		level = sutro_level_of(group);
		if (!level)
			break;
		entity = &group->entity;
		group = group->parent;
	}
}

static bool sutro_backlogged(const struct sutro_level *level)
{
	const struct sutro_rank *rank;

	for (rank = level->rank; rank < level->rank + SUTRO_CLASS_NR; rank++)
		if (sutro_first(&rank->queue))
			return true;
	return false;
}

static bool sutro_waits_for_away(const struct sutro_level *level)
{
	const struct sutro_rank *rank;

	for (rank = level->rank; rank < level->rank + SUTRO_CLASS_NR; rank++)
		if (sutro_first_away(rank))
			return true;
	return false;
}

/**
 * sutro_tree_unbacklog - a group has no queued request left
 * @group:	the group
 * @slack_ns:	device time that it can be owed before others are held back for it
 * @ns:		device time that the last one uses, 0 if it is not charged
 *
 * As sutro_tree_charge() before that, but no entity is moved twice.
 */
void sutro_tree_unbacklog(struct sutro_group *group, u64 slack_ns, s64 ns)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	for (;;) {
		sutro_quit(level, entity);
		entity->backlogged = false;
		entity->slack = sutro_tree_vtime(entity, slack_ns);
		entity->vtime += sutro_tree_vtime(entity, ns);
		sutro_enter(level, entity);
		sutro_age(level, entity->class, ns);
		if (sutro_backlogged(level))
			break;
		level = sutro_level_of(group);
		if (!level)
			return;
		entity = &group->entity;
		group = group->parent;
	}
	if (ns)
		sutro_charge_above(group, ns);
}

/* Others do not wait for an entity of @group's level, nor for those that it is in. */
static void sutro_slacken(struct sutro_group *group,
			  struct sutro_entity *entity, u64 credit_ns)
{
	for (;;) {
		struct sutro_level *level = &group->level;

		if (entity->active)
			sutro_quit(level, entity);
		else
			sutro_wake(level, entity, credit_ns);
		entity->slack = SUTRO_SLACK_EVER;
		sutro_enter(level, entity);
		sutro_tree_weigh_root(level);
		if (!group->parent || sutro_backlogged(level) ||
		    sutro_waits_for_away(level))
			return;
		entity = &group->entity;
		group = group->parent;
	}
}

/**
 * sutro_tree_wait_slot - a group has nothing queued, and its next request waits for a slot
 * @group:	the group, which may not be active
 * @credit_ns:	device time that it is owed at most if it was not active
 *
 * It is active, so that its weight counts.  Others do not wait for it: if they did, no slot might
 * become free.
 */
void sutro_tree_wait_slot(struct sutro_group *group, u64 credit_ns)
{
	sutro_slacken(group, &group->self, credit_ns);
}

/**
 * sutro_tree_deactivate - a group is no longer active
 * @group:	the group, with nothing queued
 */
void sutro_tree_deactivate(struct sutro_group *group)
{
	struct sutro_entity *entity = &group->self;

	for (;;) {
		struct sutro_level *level = &group->level;
		struct sutro_rank *rank = sutro_rank_of(level, entity);

		sutro_quit(level, entity);
		entity->active = false;
		rank->weight_sum -= entity->weight;
		rank->nr_active--;
		level->nr_active--;
		sutro_tree_weigh_root(level);
		if (!group->parent)
			return;
		entity = &group->entity;
		if (level->nr_active)
			break;
		group = group->parent;
	}
	/* Those that are left may all wait for slots. */
	if (entity->slack != SUTRO_SLACK_EVER &&
	    !sutro_backlogged(&group->level) &&
	    !sutro_waits_for_away(&group->level))
		sutro_slacken(group->parent, entity, 0);
}

/**
 * sutro_tree_turn - which class is served at a level?
 * @level:	the level, which has an active entity
 * @age_ns:	how old a class grows before it comes first
 * @wait:	entities that are away come before lower classes, too
 *
 * Return: a class with a queued entity, or with @wait one that is away.
 */
enum sutro_class sutro_tree_turn(struct sutro_level *level, u64 age_ns,
				 bool wait)
{
	struct sutro_rank *rank = level->rank;
	enum sutro_class first = sutro_only_class(level);
	enum sutro_class aged = SUTRO_CLASS_NR - 1;

	/* The usual case first. */
	if (first < SUTRO_CLASS_NR) {
		level->early &= ~BIT(first);
		return first;
	}

	first = 0;
	while (first < SUTRO_CLASS_NR - 1 && !sutro_first(&rank[first].queue) &&
	       !(wait && sutro_first_away(&rank[first])))
		first++;
	for (; aged > first; aged--)
		if (rank[aged].waited_ns >= (s64)age_ns &&
		    sutro_first(&rank[aged].queue))
			break;
	if (aged > first)
		level->early |= BIT(aged);
	else
		level->early &= ~BIT(aged);
	return aged;
}

/**
 * sutro_group_init - prepare a group
 * @group:	the group, zeroed
 * @parent:	the group of its parent cgroup, which outlives it; NULL for the root
 * @weight:	SUTRO_WEIGHT_MIN to SUTRO_WEIGHT_MAX
 *
 * Its class is be.  On the last level it becomes a sibling of @parent.
 */
void sutro_group_init(struct sutro_group *group, struct sutro_group *parent,
		      u32 weight)
{
	if (parent && parent->depth == SUTRO_LEVELS)
		parent = parent->parent;
	group->parent = parent;
	group->depth = parent ? parent->depth + 1 : 0;
	group->entity.weight = weight;
	group->self.weight = SUTRO_WEIGHT_DFL;
	group->entity.class = SUTRO_CLASS_BE;
	group->self.class = SUTRO_CLASS_BE;
	INIT_LIST_HEAD(&group->node);
}

/**
 * sutro_tree_set_class - change a group's class
 * @group:	the group
 * @class:	its new class
 *
 * The group keeps its debt or credit.
 */
void sutro_tree_set_class(struct sutro_group *group, enum sutro_class class)
{
	struct sutro_entity *entity = &group->entity;
	struct sutro_level *level = sutro_level_of(group);
	struct sutro_rank *from, *to;

	if (!level || entity->class == class)
		return;
	from = sutro_rank_of(level, entity);
	to = &level->rank[class];
	entity->vtime += to->vtime - from->vtime;
	/* No sum changes.  A new group is set up without the lock of the tree. */
	if (!entity->active) {
		entity->class = class;
		return;
	}
	sutro_quit(level, entity);
	from->weight_sum -= entity->weight;
	from->nr_active--;
	to->weight_sum += entity->weight;
	to->nr_active++;
	entity->class = class;
	sutro_level_add(level, entity);
	sutro_enter(level, entity);
	sutro_tree_weigh_root(level);
}
