/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: protection of favoured groups with few requests.
 * sutro-protect.c and
 * sutro-window.c describe the algorithm.
 *
 * Pure C, like sutro-core.h.  The caller serializes all calls.
 */
#ifndef SUTRO_PROTECT_H
#define SUTRO_PROTECT_H

#include "sutro-tree.h"

struct sutro_core;

/* Default of &sutro_tunables.protect, in percent: off. */
#define SUTRO_PROTECT_DFL 0
#define SUTRO_PROTECT_MAX 99

/* The two kinds of windows of a cycle. */
enum sutro_window {
	SUTRO_WINDOW_SHARED, /* requests of all groups are sent */
	SUTRO_WINDOW_RESERVED, /* requests of protected groups are sent */
	SUTRO_WINDOWS,
};

/**
 * struct sutro_protect_sums - what protected groups received in windows of one kind
 * @time_ns:	length of the windows
 * @all_ns:	device time of the requests of all groups that completed
 * @cost_ns:	that of protected groups
 * @took_ns:	time from submission to completion of these requests
 * @nr:		how many completed
 * @nr_slow:	how many of them took longer than &sutro_group.protect.slow_ns
 */
struct sutro_protect_sums {
	u64 time_ns;
	u64 all_ns;
	u64 cost_ns;
	u64 took_ns;
	u64 nr;
	u64 nr_slow;
};

/**
 * struct sutro_protect - protection on one leaf
 * @groups:	protected groups
 * @queue:	those with queued requests, by their protect.vtime
 * @vtime:	protect.vtime of the group that was served last, never decreases
 * @in_flight:	requests of protected groups at the device
 * @requests:	all of their requests
 * @reserved:	only requests of protected groups are sent
 * @clear:	a reserved window, and no request of another group is at the device
 * @changed:	the weight or class of a group has changed
 * @late:	a probe has prolonged the shared window
 * @trial_ns:	since when all windows are shared, to see whether protection is needed, or 0
 * @sample_ns:	when the groups' share is to be sampled during a trial
 * @share_sum:	sum of the samples
 * @samples:	how many
 * @retry_ns:	when the next trial may begin
 * @retries:	how many trials in a row have shown that it is needed
 * @cycle_ns:	length of a cycle, a power of two
 * @begin_ns:	when the cycle began, a multiple of @cycle_ns
 * @shared_ns:	when its shared window ends
 * @cleared_from_ns: when the reserved window began, for @debt_ns
 * @sum_ns:	until when @sums are complete
 * @drain_ns:	mean time that requests of other groups take to complete after the end
 *		of a shared window
 * @debt_ns:	device time that other groups have used beyond their shared windows
 * @other_ns:	estimate of an expensive request of other groups
 * @part:	shared part of a cycle, in 1/SUTRO_PROTECT_WHOLE
 * @sums:	by enum sutro_window, older ones count less
 */
struct sutro_protect {
	struct list_head groups;
	struct rb_root_cached queue;
	u64 vtime;
	u32 in_flight;
	u32 requests;
	bool reserved;
	bool clear;
	bool late;
	bool changed;
	u64 trial_ns;
	u64 sample_ns;
	u64 share_sum;
	u32 samples;
	u64 retry_ns;
	u32 retries;
	u64 cycle_ns;
	u64 begin_ns;
	u64 shared_ns;
	u64 cleared_from_ns;
	u64 sum_ns;
	u64 drain_ns;
	s64 debt_ns;
	u64 other_ns;
	u32 part;
	struct sutro_protect_sums sums[SUTRO_WINDOWS];
};

/* The whole of a cycle, or of the device. */
#define SUTRO_PROTECT_WHOLE 1024U

static inline bool sutro_protects(const struct sutro_protect *protect)
{
	return !list_empty(&protect->groups);
}

static inline bool sutro_group_protected(const struct sutro_group *group)
{
	return !list_empty(&group->protect.list);
}

/* Is protection known to be needed?  A hint, where the caller is not serialized. */
static inline bool sutro_protect_needed(const struct sutro_protect *protect)
{
	return !list_empty_careful(&protect->groups) &&
	       !READ_ONCE(protect->trial_ns);
}

void sutro_protect_init(struct sutro_protect *protect);
struct sutro_group *sutro_protect_next(struct sutro_protect *protect);
/* Other groups leave room for a group that was protected for so long. */
#define SUTRO_PROTECT_EXPECTED_NS (250 * 1000 * 1000ULL)

struct sutro_group *sutro_protect_awaited(const struct sutro_core *core,
					  u64 now_ns);
u64 sutro_protect_leave_ns(const struct sutro_group *group, u64 idle_ns);
void sutro_protect_learn(struct sutro_group *group, u64 think_ns);
void sutro_protect_arrived(struct sutro_core *core, struct sutro_group *group,
			   u64 now_ns);
void sutro_protect_unqueued(struct sutro_core *core, struct sutro_group *group);
void sutro_protect_sent(struct sutro_core *core, struct sutro_group *group,
			u64 estimate_ns);
void sutro_protect_took(struct sutro_core *core, struct sutro_group *group,
			u64 took_ns, u32 nr_slow);
void sutro_protect_completed(struct sutro_core *core, struct sutro_group *group,
			     u32 nr, u64 cost_ns, u64 now_ns);
void sutro_protect_drop(struct sutro_core *core, struct sutro_group *group);

/* sutro-window.c */
void sutro_window_init(struct sutro_protect *protect);
void sutro_window_begin(struct sutro_protect *protect, u64 now_ns);
void sutro_window_look(struct sutro_core *core, u64 now_ns);
void sutro_window_sum(struct sutro_protect *protect, u64 now_ns);
void sutro_window_owe(struct sutro_protect *protect, u64 ns);
void sutro_window_cleared(struct sutro_protect *protect, u64 now_ns);

#endif /* SUTRO_PROTECT_H */
