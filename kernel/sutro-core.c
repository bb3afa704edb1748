// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the algorithm.
 *
 * 1. Who is next
 *
 * Groups form a tree, as their cgroups do.  At each level the children of a
 * group compete with one another and with the group's own requests, which weigh
 * 100 like a child that nobody configured.  Each competitor (entity) has a
 * virtual time: the device time it has used, times 100 / weight.  The one with
 * the lowest vtime is served: start from the root, take the backlogged entity
 * with the lowest vtime, go down, until the entity is a group's own requests.
 * Device time is charged to every entity on the path, so that it is divided by
 * weight at each level, whatever the levels below do (start-time fair queueing
 * at each level, Goyal, Vin and Cheng 1996, as CFS did for CPU time).
 *
 * One tree flattened by hierarchical weight was tried on paper first: a charge
 * made under yesterday's hweight is then wrong as soon as a group comes or goes
 * anywhere, and mending it touches all groups.  Level by level nothing needs
 * mending, and a weight change moves one entity.
 *
 *	root ----- a (weight 200) ----- own requests
 *	   \------ b (weight 100) --+-- c (weight 100) -- own requests
 *	                            \-- d (weight 300) -- own requests
 *
 * All backlogged, 12 ms of device time in requests of 1 ms: a's entity is
 * charged 0.5 ms of vtime for each, b's 1 ms, so a gets 8 ms and b 4; below b,
 * c is charged 1 ms for each and d 0.33, so c gets 1 ms and d 3.
 *
 * An entity that becomes active starts at the level's vtime, less at most half
 * a slice's worth: sleeping earns no more than that (no hoarding), and who was
 * served in advance keeps that debt.
 *
 * 2. For how long
 *
 * Where leaving a stream costs a seek, a group of streams keeps the device for
 * slice_ns of device time.  The slice ends early when the group runs empty and is
 * not expected back (see 3), and when a group wakes up that is owed half a slice
 * more: on a stripe, both halves of a reader's request then move over to the same
 * group at nearly the same time on both disks.  A group whose slice is used up
 * while it is still the one furthest behind, but has all its requests at the
 * device, keeps it: with one request at a time it would otherwise lose its turn
 * whenever that request is on the way.
 *
 * Elsewhere (flash, or a group of random requests, for which one seek is as good
 * as another) each request is its own turn.
 *
 * 3. Who is waited for
 *
 * A group may have nothing queued because all its requests are at the device, or
 * because it has just seen its last one complete and will send the next in a
 * moment.  If the others went on, a drive that serves the nearest request first
 * could leave its requests waiting behind a stream without end, and a group with
 * one request at a time would find the drive full of others' each time it comes
 * back.  So where requests are served one by one (rotational), others are held
 * back while such a group is owed half a slice or more: until it has received it,
 * or has left.  Where many are served at once, that is done only while the device
 * has enough in flight to be busy without a pause (busy_ns), and nobody is waited
 * for who has nothing there: no throughput is given up, but a heavy group has its
 * share also when the device could take all that both have.
 *
 * A group leaves when its last request completes, unless it usually comes back
 * within group_idle_ns: then after that time.  While the device is idle for its
 * sake, the time is charged to it.
 *
 *	a sends one random read at a time, b has 64 waiting, equal weights: with
 *	slices of 100 ms, b is sent until it is 50 ms ahead; from then on each read
 *	of a's lets as many of b's pass as take the same time.
 *
 * With fairness=1 every group has slices and every group is waited for, on every
 * device.
 *
 * 4. How many at the device
 *
 * What is at the device can no longer be ordered.  A group with slices sends at
 * most half a slice's worth, also when alone: a stream needs no more, and who
 * comes next would have to wait for it (32 writes of 512 KiB are 400 ms of a slow
 * drive).  Random requests are sent as they come: the drive chooses better among
 * many.
 *
 * On devices that serve many requests at once, while more than one group is
 * active, requests are held back when those in flight are estimated to use
 * depth_ns of device time: enough to keep all channels busy, little enough that
 * the backlog stays here.
 *
 * 5. Charging
 *
 * A request is charged an estimate when it is dispatched, so that the next
 * choice already knows of it, and the difference to its measured device time
 * when it completes (sutro-cost.c).
 */
#include "sutro-core.h"

/*
 * Fractional bits of vtime: a request of 1 us charged at weight 10000 is 10 ns of
 * vtime, and rounding that to whole ns would make errors of 10 %.
 */
#define SUTRO_VTIME_SHIFT 8
/* An hour of device time at weight 1. */
#define SUTRO_VTIME_FAR \
	((3600 * 1000000000ULL * SUTRO_WEIGHT_DFL) << SUTRO_VTIME_SHIFT)
/* A group of which more than 1 in 8 requests is far from the last one seeks. */
#define SUTRO_SEEKY_BITS 4
/* Weight of the newest sample in the mean think time: 1 / 8. */
#define SUTRO_THINK_SHIFT 3

static struct sutro_entity *sutro_entity_of(struct rb_node *node)
{
	return rb_entry(node, struct sutro_entity, node);
}

/* Virtual times only have meaning relative to one another: they may wrap. */
static bool sutro_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static bool sutro_entity_less(struct rb_node *a, const struct rb_node *b)
{
	return sutro_before(rb_entry(a, struct sutro_entity, node)->vtime,
			    rb_entry(b, struct sutro_entity, node)->vtime);
}

/* Device time to vtime; |ns| stays below 2^48 (3 days): no overflow. */
static s64 sutro_vtime_of(const struct sutro_entity *entity, s64 ns)
{
	return div_s64(ns * (SUTRO_WEIGHT_DFL << SUTRO_VTIME_SHIFT),
		       entity->weight);
}

/* The level at which a group's entity competes; NULL for the root. */
static struct sutro_level *sutro_level_of(const struct sutro_group *group)
{
	return group->parent ? &group->parent->level : NULL;
}

static struct sutro_entity *sutro_first(const struct rb_root_cached *tree)
{
	struct rb_node *node = rb_first_cached(tree);

	return node ? sutro_entity_of(node) : NULL;
}

/* The tree that an active entity is in. */
static struct rb_root_cached *sutro_tree_of(struct sutro_level *level,
					    const struct sutro_entity *entity)
{
	return entity->backlogged ? &level->queue : &level->away;
}

/* Move @entity to @vtime; it usually keeps its place, above all when alone. */
static void sutro_move(struct sutro_level *level, struct sutro_entity *entity,
		       u64 vtime)
{
	struct rb_root_cached *tree = sutro_tree_of(level, entity);
	struct rb_node *next, *prev;

	if (!entity->active) {
		entity->vtime = vtime;
		return;
	}

	next = rb_next(&entity->node);
	prev = rb_prev(&entity->node);
	if ((!next || !sutro_before(sutro_entity_of(next)->vtime, vtime)) &&
	    (!prev || !sutro_before(vtime, sutro_entity_of(prev)->vtime))) {
		entity->vtime = vtime;
		return;
	}

	rb_erase_cached(&entity->node, tree);
	entity->vtime = vtime;
	rb_add_cached(&entity->node, tree, sutro_entity_less);
}

static void sutro_charge(struct sutro_group *group, s64 ns)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	for (;;) {
		sutro_move(level, entity,
			   entity->vtime + sutro_vtime_of(entity, ns));
		level = sutro_level_of(group);
		if (!level)
			break;
		entity = &group->entity;
		group = group->parent;
	}
}

/* An entity that was not active starts anew, owed at most half a slice. */
static void sutro_wake(struct sutro_core *core, struct sutro_level *level,
		       struct sutro_entity *entity)
{
	u64 oldest = level->vtime;

	/* Alone, there is nobody who could owe it anything. */
	if (level->nr_active)
		oldest -= sutro_vtime_of(entity, core->tunables.slice_ns / 2);
	/*
	 * Nobody is served an hour in advance: then the level's clock has gone
	 * half round since (in 4 days of a group of weight 1).
	 */
	if (sutro_before(entity->vtime, oldest) ||
	    sutro_before(level->vtime + SUTRO_VTIME_FAR, entity->vtime))
		entity->vtime = oldest;
	entity->active = true;
	level->weight_sum += entity->weight;
	level->nr_active++;
}

/* @group got its first queued request. */
static void sutro_backlog(struct sutro_core *core, struct sutro_group *group)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	if (!entity->active)
		core->nr_active++;
	while (!entity->backlogged) {
		if (entity->active)
			rb_erase_cached(&entity->node, &level->away);
		else
			sutro_wake(core, level, entity);
		entity->backlogged = true;
		rb_add_cached(&entity->node, &level->queue, sutro_entity_less);

		level = sutro_level_of(group);
		if (!level)
			break;
		entity = &group->entity;
		group = group->parent;
	}
}

/* @group has no queued request left. */
static void sutro_unbacklog(struct sutro_group *group)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	for (;;) {
		rb_erase_cached(&entity->node, &level->queue);
		entity->backlogged = false;
		rb_add_cached(&entity->node, &level->away, sutro_entity_less);
		if (sutro_first(&level->queue))
			break;
		level = sutro_level_of(group);
		if (!level)
			break;
		entity = &group->entity;
		group = group->parent;
	}
}

/* @group, which is away, no longer counts. */
static void sutro_deactivate(struct sutro_core *core, struct sutro_group *group)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	core->nr_active--;
	for (;;) {
		rb_erase_cached(&entity->node, &level->away);
		entity->active = false;
		level->weight_sum -= entity->weight;
		if (--level->nr_active)
			break;
		level = sutro_level_of(group);
		if (!level)
			break;
		entity = &group->entity;
		group = group->parent;
	}
}

static unsigned int sutro_depth_of(const struct sutro_group *group)
{
	unsigned int depth = 0;

	while ((group = group->parent))
		depth++;
	return depth;
}

/*
 * The entities through which two different groups compete: children of their
 * nearest common ancestor, or its own requests.
 */
static void sutro_compare(struct sutro_group *a, struct sutro_group *b,
			  struct sutro_entity **ret_a,
			  struct sutro_entity **ret_b)
{
	unsigned int depth_a = sutro_depth_of(a), depth_b = sutro_depth_of(b);

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
}

/**
 * sutro_group_seeky - does the group jump about?
 * @group: the group
 *
 * Return: true if more than one in eight of its last 32 requests was far from
 * the one before.
 */
bool sutro_group_seeky(const struct sutro_group *group)
{
	return hweight32(group->seek_history) > SUTRO_SEEKY_BITS;
}

/* Device time after which @group lets others in; 0 = after each request. */
static u64 sutro_slice_ns(const struct sutro_core *core,
			  const struct sutro_group *group)
{
	const struct sutro_tunables *t = &core->tunables;

	if (t->fairness || (t->rotational && !sutro_group_seeky(group)))
		return t->slice_ns;
	return 0;
}

/* Are groups waited for that have nothing queued? */
static bool sutro_waits(const struct sutro_core *core)
{
	return core->tunables.rotational || core->tunables.fairness;
}

/* May others be held back for a group whose requests are all at the device? */
static bool sutro_may_hold(const struct sutro_core *core)
{
	u64 busy_ns = core->tunables.busy_ns;

	return sutro_waits(core) || (busy_ns && core->in_flight_ns >= busy_ns);
}

/* Is @ahead half a slice or more ahead of what @behind is entitled to? */
static bool sutro_owes(const struct sutro_core *core,
		       const struct sutro_entity *ahead,
		       const struct sutro_entity *behind)
{
	u64 slack = sutro_vtime_of(behind, core->tunables.slice_ns / 2);

	return sutro_before(behind->vtime + slack, ahead->vtime);
}

static void sutro_stop_idling(struct sutro_core *core, u64 now_ns)
{
	struct sutro_group *group = core->idle_for;
	s64 idle_ns;

	if (!group)
		return;

	idle_ns = max_t(s64, now_ns - core->idle_since_ns, 0);
	core->idle_for = NULL;
	group->stat.idle_ns += idle_ns;
	sutro_charge(group, idle_ns);
	if (group == core->in_service)
		core->slice_used_ns += idle_ns;
}

/* Nothing may be sent for the sake of @group, which has nothing queued. */
static enum sutro_verdict sutro_hold(struct sutro_core *core,
				     struct sutro_group *group, u64 now_ns)
{
	if (group->in_flight)
		return SUTRO_WAIT;
	if (!core->in_flight && core->idle_for != group) {
		sutro_stop_idling(core, now_ns);
		core->idle_for = group;
		core->idle_since_ns = now_ns;
	}
	core->idle_until_ns = group->leave_at_ns;
	return SUTRO_IDLE;
}

static void sutro_expire(struct sutro_core *core, enum sutro_expiry why)
{
	core->expired = core->in_service;
	core->expiry = why;
	core->in_service = NULL;
	core->slice_used_ns = 0;
	core->preempt = false;
}

/* Is @group further behind than all others, whether they have requests queued
 * or only in flight?
 */
static bool sutro_precedes_all(struct sutro_group *group)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self, *first;

	for (;;) {
		first = sutro_first(&level->queue);
		if (first && sutro_before(first->vtime, entity->vtime))
			return false;
		first = sutro_first(&level->away);
		if (first && sutro_before(first->vtime, entity->vtime))
			return false;
		level = sutro_level_of(group);
		if (!level)
			return true;
		entity = &group->entity;
		group = group->parent;
	}
}

/* Does the owner of the slice keep it? */
static bool sutro_keeps_slice(struct sutro_core *core)
{
	struct sutro_group *group = core->in_service;
	u64 slice_ns = sutro_slice_ns(core, group);

	if (core->preempt) {
		sutro_expire(core, SUTRO_EXPIRY_PREEMPTED);
		return false;
	}
	if (core->slice_used_ns < slice_ns)
		return true;
	if (slice_ns && !group->queued && group->in_flight &&
	    sutro_precedes_all(group)) {
		core->slice_used_ns = 0;
		return true;
	}
	sutro_expire(core, SUTRO_EXPIRY_USED);
	return false;
}

/*
 * The backlogged group that is furthest behind, unless a group that is away is
 * further behind and waited for: then that one.  Advances the clocks.
 */
static struct sutro_group *sutro_furthest_behind(struct sutro_core *core)
{
	struct sutro_group *group = core->root;

	for (;;) {
		struct sutro_level *level = &group->level;
		struct sutro_entity *first = sutro_first(&level->queue);
		struct sutro_entity *away = sutro_first(&level->away);

		if (!first || (away && sutro_may_hold(core) &&
			       sutro_owes(core, first, away)))
			first = away;
		else if (sutro_before(level->vtime, first->vtime))
			level->vtime = first->vtime;

		if (first == &group->self)
			return group;
		group = container_of(first, struct sutro_group, entity);
	}
}

/* Is the device full enough that the rest had better wait here? */
static bool sutro_is_deep(const struct sutro_core *core,
			  const struct sutro_group *group)
{
	const struct sutro_tunables *t = &core->tunables;

	if (core->in_flight < SUTRO_DEPTH_MIN)
		return false;
	if (t->rotational)
		return sutro_slice_ns(core, group) &&
		       core->in_flight_ns >= t->slice_ns / 2;
	return core->nr_active > 1 && (core->in_flight_ns >= t->depth_ns ||
				       core->in_flight >= SUTRO_DEPTH_MAX);
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

	group = list_first_entry_or_null(&core->leaving, struct sutro_group,
					 leaving);
	if (!group || sutro_before(now_ns, group->leave_at_ns))
		return NULL;

	list_del_init(&group->leaving);
	if (group == core->idle_for)
		sutro_stop_idling(core, now_ns);
	if (group == core->in_service)
		sutro_expire(core, SUTRO_EXPIRY_EMPTY);
	sutro_deactivate(core, group);
	group->stat.dequeue++;
	return group;
}

/**
 * sutro_core_select - who may send the next request?
 * @core:	the leaf
 * @now_ns:	the time
 * @ret_verdict: what to do
 *
 * Return: the group to dispatch a request of (SUTRO_SERVE), else NULL.
 */
struct sutro_group *sutro_core_select(struct sutro_core *core, u64 now_ns,
				      enum sutro_verdict *ret_verdict)
{
	struct sutro_group *group;

	if (!core->queued) {
		*ret_verdict = SUTRO_EMPTY;
		return NULL;
	}

	if (core->in_service && sutro_keeps_slice(core)) {
		group = core->in_service;
	} else {
		group = sutro_furthest_behind(core);
		if (group->queued && sutro_slice_ns(core, group))
			core->in_service = group;
	}

	if (!group->queued) {
		*ret_verdict = sutro_hold(core, group, now_ns);
		return NULL;
	}
	if (sutro_is_deep(core, group)) {
		*ret_verdict = SUTRO_WAIT;
		return NULL;
	}
	sutro_stop_idling(core, now_ns);
	*ret_verdict = SUTRO_SERVE;
	return group;
}

/**
 * sutro_core_queue - a request arrived
 * @core:	the leaf
 * @group:	its group
 * @far:	it is far from the group's last request
 * @now_ns:	the time
 */
void sutro_core_queue(struct sutro_core *core, struct sutro_group *group,
		      bool far, u64 now_ns)
{
	bool wakes = !group->queued && !group->in_flight;
	struct sutro_entity *woken, *served;

	group->seek_history = (group->seek_history << 1) | far;

	if (wakes && group->empty_since_ns) {
		s64 think_ns = max_t(s64, now_ns - group->empty_since_ns, 0);

		/* One long sleep must not look like a habit. */
		think_ns =
			min_t(s64, think_ns, 2 * core->tunables.group_idle_ns);
		group->think_ns += (think_ns - (s64)group->think_ns) >>
				   SUTRO_THINK_SHIFT;
	}

	core->queued++;
	if (group->queued++)
		return;

	list_del_init(&group->leaving);
	if (group == core->idle_for)
		sutro_stop_idling(core, now_ns);
	sutro_backlog(core, group);

	if (wakes && core->in_service && group != core->in_service) {
		sutro_compare(group, core->in_service, &woken, &served);
		if (sutro_owes(core, served, woken))
			core->preempt = true;
	}
}

/* @group is empty, and nobody waits for it. */
static void sutro_leave_at_once(struct sutro_core *core,
				struct sutro_group *group)
{
	group->leave_at_ns = group->empty_since_ns;
	list_move(&group->leaving, &core->leaving);
}

/* @group ran empty: it leaves now, or when its next request failed to come. */
static void sutro_leave(struct sutro_core *core, struct sutro_group *group,
			u64 now_ns)
{
	const struct sutro_tunables *t = &core->tunables;

	group->empty_since_ns = now_ns;
	if (sutro_waits(core) && !group->gone &&
	    (t->fairness || group->think_ns <= t->group_idle_ns)) {
		group->leave_at_ns = now_ns + t->group_idle_ns;
		list_move_tail(&group->leaving, &core->leaving);
	} else {
		sutro_leave_at_once(core, group);
	}
}

/**
 * sutro_core_unqueue - a queued request is gone, e.g. merged into another
 * @core:	the leaf
 * @group:	its group
 */
void sutro_core_unqueue(struct sutro_core *core, struct sutro_group *group)
{
	core->queued--;
	if (--group->queued)
		return;
	sutro_unbacklog(group);
	if (!group->in_flight)
		sutro_leave_at_once(core, group);
}

/**
 * sutro_core_dispatch - a request goes to the device
 * @core:	the leaf
 * @group:	its group
 * @estimate_ns: device time that it will probably use
 */
void sutro_core_dispatch(struct sutro_core *core, struct sutro_group *group,
			 u64 estimate_ns)
{
	sutro_charge(group, estimate_ns);
	group->in_flight++;
	sutro_core_unqueue(core, group);
	core->in_flight++;
	core->in_flight_ns += estimate_ns;
	if (group == core->in_service)
		core->slice_used_ns += estimate_ns;
}

/**
 * sutro_core_complete - requests of a group left the device
 * @core:	the leaf
 * @group:	the group
 * @nr:		how many
 * @estimate_ns: sum of what was charged when they were dispatched
 * @cost_ns:	sum of the device time that they used, 0 if they never ran
 * @now_ns:	the time of the last one
 */
void sutro_core_complete(struct sutro_core *core, struct sutro_group *group,
			 u32 nr, u64 estimate_ns, u64 cost_ns, u64 now_ns)
{
	s64 delta_ns = cost_ns - estimate_ns;

	group->in_flight -= nr;
	core->in_flight -= nr;
	core->in_flight_ns -= estimate_ns;
	group->stat.time_ns += cost_ns;
	sutro_charge(group, delta_ns);
	if (group == core->in_service)
		core->slice_used_ns =
			max_t(s64, 0, core->slice_used_ns + delta_ns);
	if (!group->queued && !group->in_flight)
		sutro_leave(core, group, now_ns);
}

/**
 * sutro_core_init - prepare the state of a leaf
 * @core:	what to prepare, zeroed
 * @root:	the group of the root cgroup
 */
void sutro_core_init(struct sutro_core *core, struct sutro_group *root)
{
	core->root = root;
	INIT_LIST_HEAD(&core->leaving);
}

/**
 * sutro_group_init - prepare a group
 * @group:	what to prepare, zeroed
 * @parent:	its parent, which outlives it; NULL for the root
 * @weight:	SUTRO_WEIGHT_MIN to SUTRO_WEIGHT_MAX
 */
void sutro_group_init(struct sutro_group *group, struct sutro_group *parent,
		      u32 weight)
{
	group->parent = parent;
	group->entity.weight = weight;
	group->self.weight = SUTRO_WEIGHT_DFL;
	group->level.queue = RB_ROOT_CACHED;
	group->level.away = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&group->leaving);
}

/**
 * sutro_group_set_gone - a group's cgroup has been removed
 * @core:	the leaf
 * @group:	the group, which may still have requests
 */
void sutro_group_set_gone(struct sutro_core *core, struct sutro_group *group)
{
	group->gone = true;
	if (list_empty(&group->leaving))
		return;
	sutro_leave_at_once(core, group);
}

/**
 * sutro_group_set_weight - change a group's weight
 * @group:	the group
 * @weight:	SUTRO_WEIGHT_MIN to SUTRO_WEIGHT_MAX
 *
 * What the group is owed or owes, in device time, stays: a group that is raised
 * from weight 1 does not wait for the debt it would have had to pay off at 1.
 */
void sutro_group_set_weight(struct sutro_group *group, u32 weight)
{
	struct sutro_entity *entity = &group->entity;
	struct sutro_level *level = sutro_level_of(group);
	u32 old = entity->weight;
	s64 ahead;

	if (old == weight)
		return;
	entity->weight = weight;
	if (!level)
		return;
	if (entity->active)
		level->weight_sum += (s64)weight - old;

	ahead = entity->vtime - level->vtime;
	sutro_move(level, entity, level->vtime + div_s64(ahead * old, weight));
}

/**
 * sutro_group_share - a group's fraction of something that is divided by weight
 * @group:	the group; if it is not active, its share were it so
 * @amount:	what is divided, below 2^48
 *
 * Return: @amount times the group's hierarchical weight (hweight).
 */
u64 sutro_group_share(const struct sutro_group *group, u64 amount)
{
	const struct sutro_level *level = &group->level;
	const struct sutro_entity *entity = &group->self;

	for (;;) {
		u64 sum = level->weight_sum +
			  (entity->active ? 0 : entity->weight);

		/* Read without locks, the two may not belong together. */
		sum = max_t(u64, sum, entity->weight);

		amount = div64_u64(amount * entity->weight, sum);

		level = sutro_level_of(group);
		if (!level)
			return amount;
		entity = &group->entity;
		group = group->parent;
	}
}

/**
 * sutro_group_lag_ns - how far is a group behind its entitlement?
 * @group: the group
 *
 * Return: device time it is owed among its siblings, negative if it was served
 * in advance; 0 while it does not take part.
 */
s64 sutro_group_lag_ns(const struct sutro_group *group)
{
	const struct sutro_level *level = sutro_level_of(group);

	if (!level || !group->entity.active)
		return 0;
	return div_s64((s64)(level->vtime - group->entity.vtime) *
			       group->entity.weight,
		       SUTRO_WEIGHT_DFL << SUTRO_VTIME_SHIFT);
}
