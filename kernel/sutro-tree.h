/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: the tree of groups, which sutro-tree.c describes.
 *
 * Pure C, like sutro-core.h.  The caller serializes all calls.
 */
#ifndef SUTRO_TREE_H
#define SUTRO_TREE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#define SUTRO_WEIGHT_MIN 1
#define SUTRO_WEIGHT_MAX 10000
#define SUTRO_WEIGHT_DFL 100

/* All of the time, in the unit of reserves. */
#define SUTRO_RESERVE_WHOLE 1000

/*
 * Levels of the tree below the root.  Each request costs a few walks from its group to the
 * root, so no user may make that way longer.
 */
#define SUTRO_LEVELS 16

/*
 * Fractional bits of vtime: a request of 1 us charged at weight 10000 is 10 ns of
 * vtime, and rounding that to whole ns would make errors of 10 %.
 */
#define SUTRO_VTIME_SHIFT 8

/* An hour of device time at weight 1. */
#define SUTRO_VTIME_FAR \
	((3600 * 1000000000ULL * SUTRO_WEIGHT_DFL) << SUTRO_VTIME_SHIFT)

/* Half an even part of the slots, but no more than this, belongs to each competitor. */
#define SUTRO_MIN_SLOTS 16U

/* The root's own requests weigh at least as much as the others of their class, divided by this. */
#define SUTRO_ROOT_PART 8

/* As &sutro_entity.slack: others do not wait for it, because it has to wait for a request slot. */
#define SUTRO_SLACK_EVER BIT_ULL(62)

/* Device time of higher classes for each ns of a lower one: a part of 1 in 33. */
#define SUTRO_AGE_PART 32

/* A higher class is served before a lower one, whatever the weights; as in ioprio. */
enum sutro_class {
	SUTRO_CLASS_RT,
	SUTRO_CLASS_BE,
	SUTRO_CLASS_IDLE,
	SUTRO_CLASS_NR,
};

/**
 * struct sutro_rank - the entities of one class at a level
 * @queue:	backlogged entities by vtime
 * @away:	entities that are active but have nothing queued, by when others have to
 *		wait for them (sutro_due())
 * @vtime:	vtime of the entity that was last served, never falls
 * @weight_sum:	sum of the weights of active entities
 * @waited_ns:	device time that higher classes used while this one was backlogged,
 *		less SUTRO_AGE_PART times what it got nevertheless
 * @nr_active:	how many entities are active
 */
struct sutro_rank {
	struct rb_root_cached queue;
	struct rb_root_cached away;
	u64 vtime;
	s64 waited_ns;
	u32 weight_sum;
	u32 nr_active;
};

/* The most of &sutro_level.looks. */
#define SUTRO_LOOKS_MAX 4095U

/**
 * struct sutro_level - the children of one group, and the group's own requests
 * @rank:	by class
 * @nr_active:	active entities
 * @early:	a bit for each class that was last served before a higher one
 * @is_single:	one entity has @lightest
 * @looks:	how often that was needed since it was found
 * @lightest:	the least weight of an active entity of SUTRO_CLASS_BE, or of one that left lately
 */
struct sutro_level {
	struct sutro_rank rank[SUTRO_CLASS_NR];
	u32 nr_active;
	u16 early : 3;
	u16 is_single : 1;
	u16 looks : 12;
	u16 lightest;
};

/**
 * struct sutro_entity - a competitor at a level
 * @node:	place in &sutro_rank.queue while backlogged, else in
 *		&sutro_rank.away while active
 * @vtime:	device time used, in ns, times SUTRO_WEIGHT_DFL / @weight
 * @slack:	how much further others may be before they have to wait for it; 0 while
 *		backlogged; or SUTRO_SLACK_EVER
 * @weight:	share among the entities of its class at the level
 * @class:	which one, an enum sutro_class
 * @backlogged:	requests are queued at or below it
 * @active:	requests are queued, in flight, expected, or wait for a slot, at or below it
 */
struct sutro_entity {
	struct rb_node node;
	u64 vtime;
	u64 slack;
	u32 weight;
	u8 class;
	bool backlogged;
	bool active;
};

/* The longest latency target. */
#define SUTRO_LATENCY_TARGET_MAX_US (10 * 1000 * 1000)

/* State of a target. */
enum sutro_latency_state {
	SUTRO_LATENCY_UNKNOWN, /* none is set, or no period is complete */
	SUTRO_LATENCY_MET,
	SUTRO_LATENCY_MISSED,
	SUTRO_LATENCY_UNREACHABLE, /* missed even without requests of other groups */
	SUTRO_LATENCY_STATES,
};

/* Requests of other groups at the device, while one of a group was there. */
enum sutro_latency_met {
	SUTRO_LATENCY_MET_OTHERS, /* requests of other groups, in a shared window or without */
	SUTRO_LATENCY_MET_TARGET, /* they waited for a group that is protected for its target */
	SUTRO_LATENCY_MET_NONE,
};

/**
 * struct sutro_latency_counts - requests that have completed
 * @nr:		how many
 * @nr_late:	how many of them took longer than the target
 */
struct sutro_latency_counts {
	u32 nr;
	u32 nr_late;
};

/**
 * struct sutro_latency - the state of the latency target of one cgroup on one leaf
 * @target_us:	the target
 * @state:	an enum sutro_latency_state; read without a lock, too
 * @limit_us:	device time that other groups may have in flight, 0 = not limited
 * @held:	part of a cycle in which other groups are held back, of
 *		SUTRO_PROTECT_WHOLE
 * @calm:	periods in which the means were tighter than needed
 * @patience:	such periods after which they are loosened
 * @is_unreachable: the last verdict on @alone
 * @period:	requests of this period
 * @alone:	requests that met no request of another group, since the last verdict
 * @begin_ns:	when the first request of @period completed
 */
struct sutro_latency {
	u32 target_us;
	u8 state;
	u32 limit_us;
	u16 held;
	u8 calm;
	u8 patience;
	bool is_unreachable;
	struct sutro_latency_counts period;
	struct sutro_latency_counts alone;
	u64 begin_ns;
};

struct sutro_group_protect;

/**
 * struct sutro_group - one cgroup on one leaf
 * @parent:	the group of the parent cgroup, or of the nearest ancestor above
 *		SUTRO_LEVELS; NULL for the root
 * @entity:	the group among its siblings
 * @self:	the group's own requests among its children
 * @level:	where @self and the children compete
 * @queued:	own requests that wait in the elevator
 * @in_flight:	own requests at the device
 * @seek_history: a bit per request, newest lowest, set when far from the last one
 * @commits:	flushes and journal writes among those at the device (sutro-commit.c)
 * @reserve:	part of the time that is reserved for it and all below it, of
 *		SUTRO_RESERVE_WHOLE (sutro-reserve.c)
 * @reserve_seen: &sutro_protect.cycles when @reserve was added up last
 * @reserve_used_ns: device time of the requests that were sent in it in this cycle
 * @least:	the least standing of an entity of @level at or below which a group is protected for
 *		its share, 0 = none is (sutro-favoured.c)
 * @depth:	steps from it to the root, SUTRO_LEVELS at most
 * @gone:	its cgroup has been removed: no more requests are expected
 * @mixed:	set by the caller: its requests compete with one another
 * @cheap:	the last request that it sent was (sutro-starved.c)
 * @caches:	and the device may take it into its cache
 * @think_ns:	mean time from running empty to the next request
 * @busy_since_ns: when it was empty last before it had requests
 * @empty_since_ns: when it ran empty (nothing queued or in flight), 0 if never
 * @leave_at_ns: while empty: until when its next request is expected
 * @waits_since_ns: while it has requests queued: when it was last served, or got the first
 *		of them
 * @node:	place in &sutro_core.waiting while it has requests queued, in
 *		&sutro_core.leaving or &sutro_core.slotless while empty and active
 * @target_us:	the latency target of it and of all below it that have none, 0 = none; read
 *		without a lock, too (sutro-latency.c)
 * @latency:	the state of this target, NULL until requests have completed for which one
 *		holds, and then until the group is freed
 * @protect:	whether it is protected, NULL until it might have been (sutro-protect.c)
 * @slot_waiters: submitters of it that wait for a request slot; the caller protects it apart from
 *		the rest
 * @stat:	counters of io.sutro.stat; time_ns up to the last charge, backlog_ns as
 *		sutro_group_backlog_ns() reads it
 */
struct sutro_group {
	struct sutro_group *parent;
	struct sutro_entity entity;
	struct sutro_entity self;
	struct sutro_level level;
	u32 queued;
	u32 in_flight;
	u32 seek_history;
	u32 reserve_seen;
	u32 reserve_used_ns;
	u16 commits;
	u16 reserve;
	u16 least;
	u8 depth;
	u8 gone : 1;
	u8 mixed : 1;
	u8 cheap : 1;
	u8 caches : 1;
	u32 target_us;
	u64 think_ns;
	u64 busy_since_ns;
	u64 empty_since_ns;
	union {
		u64 leave_at_ns;
		u64 waits_since_ns;
	};
	struct list_head node;
	struct sutro_latency *latency;
	struct sutro_group_protect *protect;
	u32 slot_waiters;
	struct {
		u64 time_ns;
		u64 idle_ns;
		u64 busy_ns;
		s64 backlog_ns;
		u64 dequeue;
	} stat;
};

/**
 * sutro_group_backlog_ns - for how long has a group had requests queued?
 * @group:	the group
 * @now_ns:	the time
 *
 * While requests are queued, the time since which they are is subtracted from the sum,
 * which is negative then: readers need one load and no lock.
 */
static inline u64 sutro_group_backlog_ns(const struct sutro_group *group,
					 u64 now_ns)
{
	s64 ns = READ_ONCE(group->stat.backlog_ns);

	return ns < 0 ? max_t(s64, ns + (s64)now_ns, 0) : ns;
}

/* A sum that falls by more than this began anew. */
#define SUTRO_FALL_NS BIT(20)

/**
 * sutro_rising_ns - a sum of times as its readers see it: it does not fall
 * @seen_ns:	the low bits of the sum that was read last
 * @ns:		the sum up to the time of the reader
 *
 * A group's time with requests ends at the time that the last call of the elevator took.  A
 * reader may have seen a later one before that call, and thus a larger sum, by microseconds.
 */
static inline u64 sutro_rising_ns(u32 *seen_ns, u64 ns)
{
	u32 last_ns = READ_ONCE(*seen_ns), more_ns;

	do {
		more_ns = last_ns - (u32)ns;
		if (more_ns < SUTRO_FALL_NS)
			return ns + more_ns;
	} while (!try_cmpxchg(seen_ns, &last_ns, (u32)ns));
	return ns;
}

/* Virtual times only have meaning relative to one another: they may wrap. */
static inline bool sutro_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* An entity of SUTRO_CLASS_BE with this weight is active: does it have the least one? */
static inline void sutro_level_see(struct sutro_level *level, u32 weight)
{
	/* Only that of the root's own requests may be larger. */
	u16 limited = min_t(u32, weight, U16_MAX);

	level->is_single = limited < level->lightest ||
			   (level->is_single && limited > level->lightest);
	level->lightest = min(level->lightest, limited);
}

/* An entity is active, with a weight that it had not before. */
static inline void sutro_level_add(struct sutro_level *level,
				   const struct sutro_entity *entity)
{
	if (entity->class != SUTRO_CLASS_BE)
		return;
	if (level->rank[SUTRO_CLASS_BE].nr_active == 1)
		level->lightest = U16_MAX;
	sutro_level_see(level, entity->weight);
}

/**
 * sutro_level_is_equal - are several entities active, all of SUTRO_CLASS_BE and of one weight?
 * @level:	the level
 *
 * Return: false as well while a lighter one is remembered that left lately.
 */
static inline bool sutro_level_is_equal(const struct sutro_level *level)
{
	const struct sutro_rank *rank = &level->rank[SUTRO_CLASS_BE];

	return rank->nr_active > 1 && level->nr_active == rank->nr_active &&
	       rank->weight_sum == (u64)rank->nr_active * level->lightest;
}

static inline u64 sutro_earlier(u64 a, u64 b)
{
	return sutro_before(a, b) ? a : b;
}

/* The vtime at which others begin to wait for an entity. */
static inline u64 sutro_due(const struct sutro_entity *entity)
{
	return entity->vtime + entity->slack;
}

/* Is a group without requests because it waits for a slot?  A hint. */
static inline bool sutro_is_slotless(const struct sutro_group *group)
{
	return !group->queued && !group->in_flight &&
	       READ_ONCE(group->slot_waiters);
}

/* The level at which a group's entity competes; NULL for the root. */
static inline struct sutro_level *
sutro_level_of(const struct sutro_group *group)
{
	return group->parent ? &group->parent->level : NULL;
}

/* Where an entity of a level competes. */
static inline struct sutro_rank *
sutro_rank_of(struct sutro_level *level, const struct sutro_entity *entity)
{
	return &level->rank[entity->class];
}

/* The first entity of a tree, or NULL. */
static inline struct sutro_entity *
sutro_first(const struct rb_root_cached *tree)
{
	struct rb_node *node = rb_first_cached(tree);

	return node ? rb_entry(node, struct sutro_entity, node) : NULL;
}

/*
 * The entity with nothing queued for which others have to wait first, or NULL.  Those of
 * SUTRO_SLACK_EVER are behind all others.
 */
static inline struct sutro_entity *
sutro_first_away(const struct sutro_rank *rank)
{
	struct sutro_entity *entity = sutro_first(&rank->away);

	return entity && entity->slack != SUTRO_SLACK_EVER ? entity : NULL;
}

void sutro_group_init(struct sutro_group *group, struct sutro_group *parent,
		      u32 weight);
void sutro_group_set_weight(struct sutro_group *group, u32 weight);
void sutro_tree_weigh_root(struct sutro_level *level);
void sutro_tree_set_class(struct sutro_group *group, enum sutro_class class);
u64 sutro_level_share(const struct sutro_group *group, u64 amount);
u64 sutro_group_share(const struct sutro_group *group, u64 amount);
bool sutro_group_heavy(const struct sutro_group *group, u32 nr);
u32 sutro_group_slots(const struct sutro_group *group, u32 slots, u32 free,
		      u32 ret_slots[SUTRO_LEVELS + 1]);

/*
 * Part of the slots, one in this many, that a group alone and groups which are held back leave to
 * others, that writeback may choose from in any case, and that may be taken uncounted.
 */
#define SUTRO_LEFT_PART 8U
/* Groups with this part of the slots, one in this many, leave as many to those with fewer. */
#define SUTRO_LAST_PART 32U

/* Does a group with @nr slots leave the free ones to groups with few? */
static inline bool sutro_leaves_last(u32 nr, u32 slots, u32 free)
{
	u32 last = slots / SUTRO_LAST_PART;

	return nr >= max(last, 1U) && free <= last;
}

bool sutro_outranked(const struct sutro_level *level,
		     const struct sutro_rank *last);
bool sutro_group_favoured(struct sutro_group *group, u32 times);
bool sutro_group_favoured_inside(struct sutro_group *group);
void sutro_group_mark(struct sutro_group *group);
void sutro_group_unmark(struct sutro_group *group);
void sutro_group_limit_lead(struct sutro_group *group, u64 ns);
bool sutro_group_keeps_up(const struct sutro_group *group);
s64 sutro_group_lag_ns(const struct sutro_group *group);

void sutro_tree_move(struct sutro_level *level, struct sutro_entity *entity,
		     u64 vtime);
s64 sutro_tree_vtime(const struct sutro_entity *entity, s64 ns);
s64 sutro_vtime_rescale(s64 distance, u32 old, u32 weight);
void sutro_tree_charge(struct sutro_group *group, s64 ns);
void sutro_tree_charge_slices(struct sutro_group *group, s64 ns);
void sutro_tree_lead(struct sutro_group *group, u64 ns);
void sutro_tree_lead_inside(struct sutro_group *group, u64 ns);
void sutro_tree_backlog(struct sutro_group *group, u64 credit_ns);
void sutro_tree_unbacklog(struct sutro_group *group, u64 slack_ns, s64 ns);
void sutro_tree_wait_slot(struct sutro_group *group, u64 credit_ns);
void sutro_tree_deactivate(struct sutro_group *group);
struct sutro_level *sutro_tree_compare(struct sutro_group *a,
				       struct sutro_group *b,
				       struct sutro_entity **ret_a,
				       struct sutro_entity **ret_b);
enum sutro_class sutro_tree_turn(struct sutro_level *level, u64 age_ns,
				 bool wait);
bool sutro_tree_precedes(struct sutro_group *group, u64 age_ns);
bool sutro_tree_may_borrow(const struct sutro_group *group, u64 most_ns);

/* sutro-latency.c */
struct sutro_group *sutro_latency_group(const struct sutro_group *group);
struct sutro_latency *sutro_latency_of(const struct sutro_group *group);
struct sutro_latency *sutro_latency_get(struct sutro_group *group);
u64 sutro_latency_late_ns(const struct sutro_group *group);
void sutro_latency_set(struct sutro_group *group, u32 target_us);
void sutro_latency_took(struct sutro_latency *latency, u32 nr, u32 nr_late,
			enum sutro_latency_met met, u64 now_ns);
void sutro_latency_adapt(struct sutro_latency *latency, u64 now_ns);
u32 sutro_latency_part(const struct sutro_latency *latency, u64 share);

#endif /* SUTRO_TREE_H */
