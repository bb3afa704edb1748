/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: protection of favoured groups with few requests.
 * sutro-protect.c, sutro-favoured.c, sutro-trial.c, sutro-window.c, sutro-part.c, sutro-gap.c,
 * sutro-think.c, sutro-away.c, sutro-volume.c, sutro-apart.c, sutro-excess.c and sutro-reserve.c
 * describe it.  struct sutro_core has this state, so the header includes none of theirs.  Pure C,
 * like sutro-core.h.  The caller serializes all calls.
 */
#ifndef SUTRO_CORE_PROTECT_H
#define SUTRO_CORE_PROTECT_H

#include <linux/atomic.h>

#include "sutro-think.h"
#include "sutro-tree.h"

struct sutro_core;

/* Default of &sutro_tunables.protect, in percent. */
#define SUTRO_PROTECT_DFL 97
#define SUTRO_PROTECT_MAX 99
/* The whole of a cycle, or of the device. */
#define SUTRO_PROTECT_WHOLE 1024U
/* Shares of single groups are parts of this: there may be hundreds of protected groups. */
#define SUTRO_SHARE_SHIFT 10
#define SUTRO_SHARE_WHOLE ((u64)SUTRO_PROTECT_WHOLE << SUTRO_SHARE_SHIFT)
/*
 * Reserved part that measures how fast protected groups are alone: as large as the loss that
 * is allowed.  Rates of a smaller part are too inaccurate for that loss.
 */
#define SUTRO_PROTECT_SAMPLE 32U
#define SUTRO_PROTECT_MOST_PART (SUTRO_PROTECT_WHOLE - SUTRO_PROTECT_SAMPLE)
/* Beside a protected group, others have busy_ns divided by this in flight; 2, 4 are no better. */
#define SUTRO_PROTECT_BUSY 3
/* Part that other groups have in any case, in shared windows or gaps. */
#define SUTRO_PROTECT_LEAST 16U
/* Share of a class that others cannot precede. */
#define SUTRO_PROTECT_MOST \
	(SUTRO_PROTECT_WHOLE * (u64)SUTRO_AGE_PART / (SUTRO_AGE_PART + 1))
/*
 * A request that is sent in a gap before the next one of its group has to fit in this many times:
 * estimates may be too low, and gaps would be filled up to their end.  With 1, five of 240 random
 * victims more miss their goals.
 */
#define SUTRO_GAP_SPARE 2
/* A request that smaller ones precede in gaps for longer than this needs a shared window. */
#define SUTRO_GAP_PATIENCE_NS (1000 * 1000 * 1000ULL)

/*
 * A rotational device is kept this long for a group that thinks, unless others can use the time;
 * others for longer (sutro-gap.c), as the floors of others pay less for it without seeks.
 */
#define SUTRO_PROTECT_HOLD_SEEKS_US 32000ULL

/* Other groups leave room for a protected group for this long after its expected return. */
#define SUTRO_PROTECT_EXPECTED_NS (250 * 1000 * 1000ULL)

/* A group of more than this many times the mean weight of its siblings is latency-sensitive. */
#define SUTRO_PROTECT_SENSITIVE 9

/* Requests in windows from which on their rate, or times, are known. */
#define SUTRO_PROTECT_KNOWN 16U
/* The most protected groups that are looked at for a gap: those that were served last. */
#define SUTRO_GAP_LOOKS 64U

/**
 * struct sutro_leaves - counts the leaves on which a protected cgroup has requests
 * @nr:		protected groups with requests: that of the cgroup on each leaf, and those below it
 *		if it has reserved time or a latency target
 * @empty_since_ns: when the last of these requests completed, 0 = never
 * @busy_since_ns: when the first request after that arrived
 * @busy_ns:	time with requests, until @empty_since_ns
 * @part:	the smallest shared part of its leaves (sutro-volume.c)
 * @part_of:	the leaf that has set it
 * @part_until_ns: until when it holds
 *
 * Read and changed by all leaves, without a lock.
 */
struct sutro_leaves {
	atomic_t nr;
	u32 part;
	u64 empty_since_ns;
	u64 busy_since_ns;
	u64 busy_ns;
	const struct sutro_core *part_of;
	u64 part_until_ns;
};

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
 * @all_bytes:	their bytes, in the sums of a trial
 * @cost_ns:	that of protected groups
 * @took_us:	time from submission to completion of these requests
 * @nr:		how many completed, without flushes
 * @nr_seen:	how many arrived and how many completed, with flushes
 * @nr_slow:	how many of them took longer than &sutro_group_protect.slow_ns
 */
struct sutro_protect_sums {
	u64 time_ns;
	u64 all_ns;
	u64 all_bytes;
	u64 cost_ns;
	u64 took_us;
	u64 nr;
	u64 nr_seen;
	u64 nr_slow;
};

/* Of a cycle, by the groups that may have requests at the device. */
enum sutro_phase {
	SUTRO_PHASE_SHARED, /* all groups */
	SUTRO_PHASE_BESIDE, /* protected ones */
	SUTRO_PHASE_ALONE, /* those that do not wait for others (sutro-apart.c) */
	SUTRO_PHASES,
};

/**
 * struct sutro_phase_sum - requests of a group in phases of one kind
 * @ns:		length of these phases; while the group is protected, the value of
 *		&sutro_protect.phase_ns at which that was 0
 * @nr:		how many arrived and how many completed
 */
struct sutro_phase_sum {
	u64 ns;
	u64 nr;
};

/**
 * struct sutro_protect - protection on one leaf
 * @groups:	protected groups; if there are more than SUTRO_GAP_LOOKS, in the order in which
 *		they were served
 * @nr:		how many there are
 * @queue:	those with queued requests, by their vtime
 * @vtime:	vtime of the group that was served last, never decreases
 * @in_flight:	requests of protected groups at the device
 * @ahead:	those of groups that are ahead (sutro-others.c)
 * @requests:	all of their requests
 * @used_ns:	device time of all requests that completed in shared windows
 * @shared_bytes: bytes that completed in shared windows
 * @seen_bytes:	&sutro_tunables.done_bytes at the last completion
 * @used_nr:	how many
 * @withheld_ns: length of all reserved windows without requests of other groups
 * @share:	the share of the protected groups, of SUTRO_PROTECT_WHOLE
 * @room_ns:	if @sporadic, how much longer one of their requests may take; else 0
 * @reserved:	only requests of protected groups are sent
 * @clear:	a reserved window, and no request of another group is at the device
 * @changed:	a setting or the set of protected groups has changed; a group that only keeps
 *		up with others may join or leave without that (sutro-protected.c)
 * @prolonged:	a probe has prolonged the shared window
 * @limited:	in this cycle, leads were limited (sutro-favoured.c)
 * @sensitive:	a protected group is latency-sensitive
 * @gentle:	protected groups use less than their share of the device: others send less
 *		in shared windows
 * @others_many: unprotected groups send as much as they can all the same (sutro-others.c)
 * @sporadic:	they have requests for a small part of the time, and some of them may be back at
 *		any time
 * @by_share:	a group is protected for its share, not for time that is reserved for it
 * @by_target:	a group is protected for its latency target
 * @rivals:	groups are protected for different targets
 * @keeps_up:	on flash, a group is protected that no weight or class favours, because it is
 *		entitled to as much as the slice of another one
 * @target:	one of these targets
 * @unfit:	a group had no request in this cycle that fits into a whole gap, or one that does
 *		not has waited for SUTRO_GAP_PATIENCE_NS
 * @target_part: shared part of a cycle with which these targets are met, of
 *		SUTRO_PROTECT_WHOLE
 * @reserve:	part of the time that is reserved for these groups, of
 *		SUTRO_PROTECT_WHOLE
 * @reserving:	groups for which it is
 * @used_up:	how many of them have used all of their parts of this cycle
 * @cycles:	how often that was added up
 * @epoch:	number of the set of groups that @sums are of
 * @full_ns:	since when nearly all of the time is shared
 * @cycle_ns:	length of a cycle, a power of two
 * @begin_ns:	when the cycle began, a multiple of @cycle_ns
 * @shared_ns:	when its shared window ends
 * @clear_ns:	since when @clear is set
 * @cleared_from_ns: when the reserved window began, for @debt_ns
 * @sum_ns:	until when @sums are complete
 * @drain_ns:	mean time that requests of other groups take to complete after the end
 *		of a shared window
 * @debt_ns:	device time that other groups have used beyond their shared windows
 * @paid_ns:	debt by which this cycle's shared window is shorter
 * @other_ns:	estimate of an expensive request of other groups
 * @others_ns:	device time of requests of other groups that completed in this cycle
 * @all_ns:	that of requests of all groups
 * @more_ns:	by how much the shared window may be longer for the excess of the cycle before
 *		(sutro-excess.c)
 * @other_done_ns: when a request of another group has completed last
 * @other_came_ns: when one arrived last
 * @away:	others are served because a protected group stays away (sutro-away.c)
 * @away_sent_ns: when a request of others was sent for that reason last
 * @shares:	sum of the shares of all groups in @groups, of SUTRO_SHARE_WHOLE; groups that
 *		join or leave without @changed change it in the next cycle
 * @depth:	how many requests they have at most
 * @gap_end_ns:	in a gap, when requests of other groups have to be done
 * @limits:	the group that is expected back then; NULL if there is none
 * @gap_more:	by how much more than estimated requests take in gaps, of 2048
 * @gap_random:	the last number of a random sequence
 * @most:	the part of the device that all groups use in shared windows, if these are
 *		long enough to measure it, else the largest part that they used
 * @part:	shared part of a cycle, of SUTRO_PROTECT_WHOLE
 * @others:	part of their entitlement that shared windows are to give to others, of
 *		SUTRO_PROTECT_WHOLE (sutro-others.c)
 * @sums:	by enum sutro_window, older ones count less
 * @mark_ns:	length of the shared windows in @sums when their rate was compared last
 * @mark_nr:	requests seen in them
 * @mark_cost_ns: device time of those of protected groups
 * @guessing:	&sutro_tunables.guessing when the cycle began
 * @apart:	protected groups that have used their part of a reserved window wait
 * @waited:	groups wait, and their requests have completed
 * @waited_from_ns: since when
 * @first:	the group for which the others wait in this window, or NULL
 * @first_ns:	that of SUTRO_PHASE_ALONE in @phase_ns when they began to
 * @section_from_ns: when the section of the reserved window began (sutro-section.c)
 * @section_ns:	how long it is
 * @section_shift: the window has 2^this sections
 * @phase_ns:	how long phases of each kind have been
 * @beside_ns:	the same of SUTRO_PHASE_BESIDE, older ones count less
 * @beside_used_ns: device time of requests that completed in these
 */
struct sutro_protect {
	struct list_head groups;
	u32 nr;
	struct rb_root_cached queue;
	u64 vtime;
	u32 in_flight;
	u32 ahead;
	u32 requests;
	u64 used_ns;
	u64 shared_bytes;
	u64 seen_bytes;
	u32 used_nr;
	u64 withheld_ns;
	u64 share;
	u64 room_ns;
	bool reserved;
	bool clear;
	bool changed;
	bool prolonged;
	bool limited;
	bool sensitive;
	bool gentle;
	bool others_many;
	bool sporadic;
	bool by_share;
	bool by_target;
	bool rivals;
	bool keeps_up;
	const struct sutro_latency *target;
	bool unfit;
	u32 target_part;
	u32 reserve;
	u32 reserving;
	u32 used_up;
	u32 cycles;
	u32 epoch;
	u64 full_ns;
	u64 cycle_ns;
	u64 begin_ns;
	u64 shared_ns;
	u64 cleared_from_ns;
	u64 clear_ns;
	u64 sum_ns;
	u64 drain_ns;
	s64 debt_ns;
	s64 paid_ns;
	u64 other_ns;
	u64 others_ns;
	u64 all_ns;
	u64 more_ns;
	u64 other_done_ns;
	u64 other_came_ns;
	bool away;
	u64 away_sent_ns;
	u64 shares;
	u32 depth;
	u64 gap_end_ns;
	const struct sutro_group_protect *limits;
	u32 gap_more;
	u32 gap_random;
	s64 most;
	u32 part;
	u32 others;
	struct sutro_protect_sums sums[SUTRO_WINDOWS];
	u64 mark_ns;
	u64 mark_cost_ns;
	u32 mark_nr;
	bool guessing;
	bool apart;
	bool waited;
	u64 waited_from_ns;
	struct sutro_group_protect *first;
	u64 first_ns;
	u64 section_from_ns;
	u64 section_ns;
	u32 section_shift;
	u64 phase_ns[SUTRO_PHASES];
	u64 beside_ns;
	u64 beside_used_ns;
};

/**
 * struct sutro_group_protect - a group that was favoured, or kept up with one
 * @group:	the group
 * @list:	place in &sutro_protect.groups while protected
 * @node:	place in &sutro_protect.queue while it has queued requests, too
 * @vtime:	device time used among protected groups, by share
 * @reserving:	the group for which time is reserved that this one may use, or NULL
 * @latency:	the target that holds for it, or NULL
 * @leads:	in this cycle it is ahead by its part of the reserved window (sutro-others.c)
 * @needed:	its last trial has shown that it needs protection
 * @far_nr:	trials, one after another, in which it was far short beside protected groups
 * @marked:	it is protected for its share, and marked (sutro-favoured.c)
 * @epoch:	&sutro_protect.epoch when it was protected last
 * @tried_ns:	&sutro_protect.begin_ns when its joining of others was decided last
 * @depth:	most requests queued and in flight
 * @slow_ns:	a request that takes longer is slow, 0 = not known
 * @trial_ns:	when its trial began, 0 = never
 * @from_ns:	&sutro_protect.used_ns then
 * @from_bytes:	&sutro_protect.shared_bytes then
 * @from_nr:	&sutro_protect.used_nr then
 * @from_shared_ns: the same of the time without reserved windows (sutro_trial_shared_ns())
 * @seen_ns:	&sutro_protect.used_ns up to which @due_ns is complete
 * @seen_withheld_ns: the same of &sutro_protect.withheld_ns
 * @came_ns:	when it got requests again
 * @beside_ns:	estimate of the requests that were at the device then, until @due_ns has them
 * @due_ns:	its share of the device time that all groups have used in the trial, or that was
 *		withheld from it
 * @got_ns:	the device time that it has used
 * @nr:		requests of it that have completed
 * @shared:	the service that it received in its last trial, without slices
 * @slices_ns:	when groups began to have slices for its sake the last time (sutro-slices.c)
 * @think:	the times from its last completion to its next request; from the last one at any
 *		leaf if it moves (sutro-volume.c)
 * @leaves:	those of the cgroup of @reserving, or of the one with its target, or its own;
 *		NULL = not counted
 * @counted:	@leaves while it counts this group, which has requests, or NULL
 * @awaited:	a task waits for one of the requests that were sent since it had none
 * @beside:	of how many requests that found none at this leaf there were others elsewhere, of
 *		SUTRO_VOLUME_WHOLE
 * @chance:	of how many there would have been by chance
 * @mark_ns:	for how long its cgroup had requests at any leaf, until its last completion here
 * @learned_ns:	&sutro_leaves.busy_since_ns up to which @think has these times
 * @back_ns:	when it got requests again last
 * @spare_ns:	device time that others may still cost it
 * @unpaid_ns:	device time in reserved windows that its slices were not charged (sutro-excess.c)
 * @credit_ns:	for how much more of its time they may be charged
 * @excess_ns:	device time that it has used beyond its share
 * @cycle_used_ns: device time of its requests that completed in this cycle
 * @window_ns:	device time of requests sent in this section, and the excess of those before
 * @part_ns:	its part of the section
 * @waits:	it waits for others in reserved windows
 * @waits_from_ns: that of SUTRO_PHASE_ALONE in &sutro_protect.phase_ns when it began to
 * @phases:	its requests in each kind of phase, older ones count less
 * @all:	those in phases of all kinds; @ns is the value of &sutro_protect.sum_ns at which
 *		that was 0
 */
struct sutro_group_protect {
	struct sutro_group *group;
	struct list_head list;
	struct rb_node node;
	u64 vtime;
	struct sutro_group *reserving;
	struct sutro_latency *latency;
	bool leads;
	bool needed;
	bool marked;
	bool awaited;
	bool pauses;
	u8 far_nr;
	u16 depth;
	u32 epoch;
	u64 tried_ns;
	u32 slow_ns;
	u64 trial_ns;
	u64 from_ns;
	u64 from_bytes;
	u64 from_shared_ns;
	u32 from_nr;
	u32 nr;
	u64 seen_ns;
	u64 seen_withheld_ns;
	u64 came_ns;
	u64 beside_ns;
	u64 due_ns;
	u64 got_ns;
	struct sutro_protect_sums shared;
	u64 slices_ns;
	struct sutro_think think;
	struct sutro_leaves *leaves;
	struct sutro_leaves *counted;
	u32 beside;
	u32 chance;
	u64 mark_ns;
	u64 learned_ns;
	u64 back_ns;
	s64 spare_ns;
	s64 unpaid_ns;
	s64 credit_ns;
	s64 excess_ns;
	u64 cycle_used_ns;
	u64 window_ns;
	u64 part_ns;
	bool waits;
	u64 waits_from_ns;
	struct sutro_phase_sum phases[SUTRO_PHASES];
	struct sutro_phase_sum all;
};

/* Is any group protected?  A hint, where the caller is not serialized. */
static inline bool sutro_protects(const struct sutro_protect *protect)
{
	return !list_empty_careful(&protect->groups);
}

/* Is a group protected?  A hint, where the caller is not serialized. */
static inline bool sutro_group_protected(const struct sutro_group *group)
{
	const struct sutro_group_protect *protect = READ_ONCE(group->protect);

	return protect && !list_empty_careful(&protect->list);
}

/*
 * A request of a group that takes longer than this is slow, or late if a latency target
 * holds for the group.  A hint; 0 = not known.
 */
static inline u64 sutro_protect_slow_ns(const struct sutro_group *group)
{
	const struct sutro_group_protect *protect = READ_ONCE(group->protect);
	u64 late_ns = sutro_latency_late_ns(group);

	if (late_ns || !protect)
		return late_ns;
	return READ_ONCE(protect->slow_ns);
}

/* Does a group think for nearly the same time after each request? */
static inline bool
sutro_protect_is_regular(const struct sutro_group_protect *own)
{
	return 2 * sutro_think_min_us(&own->think) >= own->think.mean_us;
}

/* Is a group protected for its latency target? */
static inline bool
sutro_protect_by_target(const struct sutro_group_protect *own)
{
	return own->latency && own->latency->held;
}

/* sutro-trial.c */
bool sutro_trial_is_far_short(const struct sutro_group_protect *own);
void sutro_trial_begin(const struct sutro_protect *protect,
		       struct sutro_group_protect *own, u64 now_ns);
u64 sutro_trial_shared_ns(const struct sutro_protect *protect,
			  const struct sutro_group_protect *own, u64 now_ns);
void sutro_trial_back(const struct sutro_core *core, struct sutro_group *group,
		      u64 now_ns);
void sutro_trial_completed(struct sutro_core *core, struct sutro_group *group,
			   u32 nr, u64 cost_ns, u64 now_ns);
void sutro_window_halve(struct sutro_protect_sums *sums);
void sutro_protect_init(struct sutro_protect *protect);
void sutro_protect_exit(struct sutro_group *group);
bool sutro_protect_waits(const struct sutro_core *core,
			 const struct sutro_group_protect *own);
struct sutro_group *sutro_protect_next(const struct sutro_core *core,
				       bool ahead);
struct sutro_group *sutro_protect_awaited(struct sutro_core *core, u64 now_ns);
void sutro_gap_back(struct sutro_core *core, const struct sutro_group *group,
		    u64 think_ns);
bool sutro_gap_is_over(const struct sutro_core *core, u64 cost_ns, u64 now_ns);
struct sutro_group *sutro_gap_last(const struct sutro_core *core);
void sutro_gap_missed(struct sutro_core *core, u64 least_ns);
bool sutro_gap_draw(struct sutro_protect *protect, struct sutro_group *group,
		    u64 cost_ns, u64 *chances);
bool sutro_gap_skips(const struct sutro_core *core,
		     const struct sutro_group *group);
u64 sutro_protect_look_ns(const struct sutro_core *core,
			  const struct sutro_group *group, u64 now_ns);
u64 sutro_protect_leave_ns(const struct sutro_core *core,
			   const struct sutro_group *group, u64 now_ns);
void sutro_protect_learn(struct sutro_group *group, u64 think_ns);
void sutro_protect_arrived(struct sutro_core *core, struct sutro_group *group,
			   u64 now_ns);
void sutro_protect_unqueued(struct sutro_core *core, struct sutro_group *group);
void sutro_protect_sent(struct sutro_core *core, struct sutro_group *group,
			u64 estimate_ns);
bool sutro_protect_charged(const struct sutro_core *core,
			   const struct sutro_group *group);
void sutro_protect_completed(struct sutro_core *core, struct sutro_group *group,
			     u32 nr, u64 cost_ns, u64 now_ns);
void sutro_protect_dequeue(struct sutro_protect *protect,
			   struct sutro_group_protect *own);
void sutro_protect_try(struct sutro_core *core, struct sutro_group *group,
		       u64 now_ns);
void sutro_protect_drop(struct sutro_core *core, struct sutro_group *group);
void sutro_protect_changed(struct sutro_core *core);
void sutro_protect_release(struct sutro_core *core, u64 now_ns);
u64 sutro_protect_share(struct sutro_core *core, bool begins, u32 *ret_depth,
			u64 now_ns);
u64 sutro_gap_needs_ns(const struct sutro_core *core, u64 cost_ns);

/* sutro-volume.c */
void sutro_volume_find(const struct sutro_core *core,
		       struct sutro_group_protect *own, u64 now_ns);
void sutro_volume_count(struct sutro_group_protect *own, u64 now_ns);
bool sutro_volume_is_busy(const struct sutro_group_protect *own);
bool sutro_volume_used(const struct sutro_group_protect *own);
u64 sutro_volume_since_ns(const struct sutro_group_protect *own);
bool sutro_volume_think_ns(struct sutro_group_protect *own, u64 now_ns,
			   u64 *ret_ns);
u32 sutro_volume_part(struct sutro_core *core, u32 part, u64 now_ns);

/* sutro-away.c */
void sutro_away_back(const struct sutro_core *core,
		     struct sutro_group_protect *own, u64 now_ns);
u64 sutro_away_from_ns(const struct sutro_core *core,
		       const struct sutro_group_protect *own, u64 now_ns);
bool sutro_is_away(const struct sutro_core *core,
		   const struct sutro_group *group, u64 now_ns);

/* sutro-apart.c */
bool sutro_apart_waits(const struct sutro_protect *protect,
		       const struct sutro_group_protect *own);
void sutro_apart_passed(struct sutro_protect *protect, u64 ns);
bool sutro_apart_is_short(const struct sutro_protect *protect,
			  const struct sutro_group_protect *own);
bool sutro_apart_applies(const struct sutro_core *core);
void sutro_apart_seen(const struct sutro_protect *protect,
		      struct sutro_group_protect *own, u32 nr);
void sutro_apart_turn(struct sutro_protect *protect,
		      struct sutro_group_protect *own);
void sutro_apart_end(struct sutro_core *core);
void sutro_apart_begin(struct sutro_core *core, bool begins, u64 now_ns);
u32 sutro_apart_most_shared(const struct sutro_core *core);
void sutro_apart_check(struct sutro_protect *protect);
u64 sutro_apart_look_ns(const struct sutro_protect *protect, u64 now_ns);
void sutro_apart_completed(struct sutro_protect *protect,
			   const struct sutro_group_protect *own, u64 cost_ns);
bool sutro_others_skip(const struct sutro_core *core,
		       const struct sutro_group *group);
bool sutro_others_have_many(const struct sutro_core *core);
bool sutro_others_drain(const struct sutro_core *core,
			const struct sutro_group *group);
void sutro_others_lead(struct sutro_protect *protect,
		       struct sutro_group_protect *own, bool leads);
void sutro_others_end(struct sutro_protect *protect);
u32 sutro_others_shared(const struct sutro_core *core, u64 share);
void sutro_apart_sent(struct sutro_core *core, struct sutro_group_protect *own,
		      u64 estimate_ns);

/* sutro-excess.c */
void sutro_excess_join(struct sutro_group_protect *own);
void sutro_excess_charge(struct sutro_group *group, s64 ns, bool charged);
void sutro_excess_pay(const struct sutro_core *core,
		      struct sutro_group_protect *own);
void sutro_excess_end(struct sutro_core *core);
u64 sutro_excess_more_ns(const struct sutro_protect *protect, u64 shared_ns);
void sutro_excess_completed(struct sutro_protect *protect,
			    struct sutro_group *group, u64 cost_ns);

/* sutro-reserve.c */
struct sutro_group *sutro_group_reserving(struct sutro_group *group);
void sutro_reserve_begin(struct sutro_protect *protect);
void sutro_reserve_add(struct sutro_protect *protect, struct sutro_group *group,
		       bool begins);
void sutro_reserve_sent(struct sutro_protect *protect,
			struct sutro_group_protect *own, u64 estimate_ns);
bool sutro_reserve_is_used_up(const struct sutro_protect *protect,
			      const struct sutro_group_protect *own);
bool sutro_reserve_is_left(const struct sutro_protect *protect, u64 now_ns);
u64 sutro_reserve_look_ns(const struct sutro_protect *protect, u64 now_ns);
u64 sutro_reserve_hold_ns(u64 idle_ns);
u64 sutro_reserve_cycle_ns(const struct sutro_protect *protect);

/* sutro-part.c */
void sutro_part_learn_most(struct sutro_protect *protect);
bool sutro_part_is_known(const struct sutro_protect *protect);
u32 sutro_part_shared(struct sutro_core *core, u64 share);

/* sutro-window.c */
void sutro_window_init(struct sutro_protect *protect);
void sutro_window_look(struct sutro_core *core, u64 now_ns);
void sutro_window_sum(struct sutro_protect *protect, u64 now_ns);
void sutro_window_cleared(struct sutro_protect *protect, u64 now_ns);
void sutro_protect_took(struct sutro_core *core, struct sutro_group *group,
			u32 nr, u64 took_us, u32 nr_slow, u64 now_ns);

#endif /* SUTRO_CORE_PROTECT_H */
