/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: the algorithm.  sutro-core.c says how it works.
 *
 * Pure C: no locks, no clock, no allocation, no struct request.  The same files
 * are built into the kernel module and into the userspace simulation, which
 * brings its own <linux/...> headers.  The caller serializes all calls.
 */
#ifndef SUTRO_CORE_H
#define SUTRO_CORE_H

#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#define SUTRO_WEIGHT_MIN 1
#define SUTRO_WEIGHT_MAX 10000
#define SUTRO_WEIGHT_DFL 100

/* Requests that may always be in flight, whatever they are estimated at. */
#define SUTRO_DEPTH_MIN 2
/* Requests that may be in flight while several groups are active: enough for a
 * fast drive, few enough that the rest waits where it can be ordered.
 */
#define SUTRO_DEPTH_MAX 128

/**
 * struct sutro_level - the children of one group, and the group's own requests
 * @queue:	backlogged entities by vtime
 * @away:	entities by vtime that are active but have nothing queued
 * @vtime:	vtime of the entity that was last served, never falls
 * @weight_sum:	sum of the weights of active entities
 * @nr_active:	how many these are
 */
struct sutro_level {
	struct rb_root_cached queue;
	struct rb_root_cached away;
	u64 vtime;
	u64 weight_sum;
	u32 nr_active;
};

/**
 * struct sutro_entity - what competes at a level
 * @node:	place in &sutro_level.queue while backlogged, else in
 *		&sutro_level.away while active
 * @vtime:	device time used, in ns, times SUTRO_WEIGHT_DFL / @weight
 * @weight:	share among the entities of the level
 * @backlogged:	requests are queued at or below it
 * @active:	requests are queued, in flight or expected at or below it
 */
struct sutro_entity {
	struct rb_node node;
	u64 vtime;
	u32 weight;
	bool backlogged;
	bool active;
};

/**
 * struct sutro_group - one cgroup on one leaf
 * @parent:	the group of the parent cgroup, NULL for the root
 * @entity:	the group among its siblings
 * @self:	the group's own requests among its children
 * @level:	where @self and the children compete
 * @queued:	own requests that wait in the elevator
 * @in_flight:	own requests at the device
 * @seek_history: a bit per request, newest lowest, set when far from the last one
 * @think_ns:	mean time from running empty to the next request
 * @empty_since_ns: when it ran empty (nothing queued or in flight), 0 if never
 * @leave_at_ns: until when its next request is expected
 * @leaving:	place in &sutro_core.leaving while empty and active
 * @gone:	its cgroup has been removed: no more requests are expected
 * @stat:	what io.sutro.stat reports
 */
struct sutro_group {
	struct sutro_group *parent;
	struct sutro_entity entity;
	struct sutro_entity self;
	struct sutro_level level;
	u32 queued;
	u32 in_flight;
	u32 seek_history;
	u64 think_ns;
	u64 empty_since_ns;
	u64 leave_at_ns;
	struct list_head leaving;
	bool gone;
	struct {
		u64 time_ns;
		u64 idle_ns;
		u64 dequeue;
	} stat;
};

/**
 * struct sutro_tunables - what an administrator may set, and what the device is
 * @rotational:	leaving a stream costs a seek
 * @fairness:	exact shares are worth more than throughput
 * @slice_ns:	device time that a group may use before others are served, and twice
 *		the most that a sleeping group can be owed
 * @group_idle_ns: longest wait for the next request of a group with a slice
 * @busy_ns:	estimated device time in flight with which the device has no pause, 0 if
 *		not known
 * @depth_ns:	estimated device time that may be in flight while several groups
 *		are active and nobody has a slice
 */
struct sutro_tunables {
	bool rotational;
	bool fairness;
	u64 slice_ns;
	u64 group_idle_ns;
	u64 busy_ns;
	u64 depth_ns;
};

/* What sutro_core_select() says. */
enum sutro_verdict {
	SUTRO_SERVE, /* dispatch a request of the group returned */
	SUTRO_EMPTY, /* nothing is queued */
	SUTRO_WAIT, /* ask again after a completion or an arrival */
	SUTRO_IDLE, /* as SUTRO_WAIT, and at &sutro_core.idle_until_ns */
};

/* Why a group lost its slice. */
enum sutro_expiry {
	SUTRO_EXPIRY_NONE,
	SUTRO_EXPIRY_USED, /* used up */
	SUTRO_EXPIRY_EMPTY, /* its next request did not come, or was not expected */
	SUTRO_EXPIRY_PREEMPTED, /* a group that is owed half a slice woke up */
};

/**
 * struct sutro_core - the state of one leaf
 * @tunables:	may change between any two calls
 * @root:	group of the root cgroup
 * @in_service:	who holds the slice, or NULL
 * @slice_used_ns: device time of the slice so far; requests in flight by estimate
 * @preempt:	the slice shall end
 * @expiry:	why the last slice ended, for who wants to tell; reset by its reader
 * @expired:	whose it was
 * @idle_for:	whose next request an idle device waits for, or NULL
 * @idle_since_ns: since when
 * @idle_until_ns: until when; valid with SUTRO_IDLE
 * @leaving:	empty groups; those whose next request is not expected come first
 * @queued:	requests of all groups that wait
 * @in_flight:	requests of all groups at the device
 * @in_flight_ns: their estimated device time
 * @nr_active:	active groups
 */
struct sutro_core {
	struct sutro_tunables tunables;
	struct sutro_group *root;
	struct sutro_group *in_service;
	u64 slice_used_ns;
	bool preempt;
	enum sutro_expiry expiry;
	struct sutro_group *expired;
	struct sutro_group *idle_for;
	u64 idle_since_ns;
	u64 idle_until_ns;
	struct list_head leaving;
	u32 queued;
	u32 in_flight;
	u64 in_flight_ns;
	u32 nr_active;
};

void sutro_core_init(struct sutro_core *core, struct sutro_group *root);
void sutro_group_init(struct sutro_group *group, struct sutro_group *parent,
		      u32 weight);

void sutro_core_queue(struct sutro_core *core, struct sutro_group *group,
		      bool far, u64 now_ns);
void sutro_core_unqueue(struct sutro_core *core, struct sutro_group *group);
struct sutro_group *sutro_core_forget(struct sutro_core *core, u64 now_ns);
struct sutro_group *sutro_core_select(struct sutro_core *core, u64 now_ns,
				      enum sutro_verdict *ret_verdict);
void sutro_core_dispatch(struct sutro_core *core, struct sutro_group *group,
			 u64 estimate_ns);
void sutro_core_complete(struct sutro_core *core, struct sutro_group *group,
			 u32 nr, u64 estimate_ns, u64 cost_ns, u64 now_ns);

void sutro_group_set_gone(struct sutro_core *core, struct sutro_group *group);
void sutro_group_set_weight(struct sutro_group *group, u32 weight);
u64 sutro_group_share(const struct sutro_group *group, u64 amount);
s64 sutro_group_lag_ns(const struct sutro_group *group);
bool sutro_group_seeky(const struct sutro_group *group);

#endif /* SUTRO_CORE_H */
