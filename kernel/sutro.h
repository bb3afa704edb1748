/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: a leaf, and a cgroup on it, as the block layer sees them.
 *
 * Locks, outermost first:
 *
 *  q->elevator_lock		(q->sysfs_lock before 6.15) held while the elevator
 *				changes; then the queue is frozen and quiesced, and
 *				nothing but the files of cgroups is used
 *  q->queue_lock, blkcg->lock	in this order, taken by the block layer around the pd callbacks
 *  sutro_queue.lock		the algorithm, the groups' requests, merging.
 *				Process context only; taken under it, one at a time:
 *  sutro_stage.lock		requests just inserted, one list per CPU
 *  sutro_queue.done_lock	what completions and new settings left for the
 *				next dispatch; taken in hard interrupt context and
 *				under q->queue_lock
 *  sutro_active_lock		which groups are in use; under sutro_queue.lock or
 *				q->queue_lock
 *  sutro_queue.turn_lock	submitters that wait for a request slot; under done_lock, too
 *
 * sutro_queue.lock is never taken under q->queue_lock: writing a setting or
 * removing a cgroup only leaves a note under done_lock.
 *
 * Documentation/block/sutro-locking.rst has the context of each lock and barrier.
 */
#ifndef SUTRO_H
#define SUTRO_H

#include <linux/llist.h>
#include <linux/workqueue.h>

#include "sutro-blk.h"
#include "blk-mq-debugfs.h"
#include "sutro-core.h"
#include "sutro-cost.h"
#include "sutro-lanes.h"
#include "sutro-latency.h"
#include "sutro-lease.h"
#include "sutro-probe.h"
#include "sutro-setting.h"

struct sutro_member;
struct sutro_stage;

/**
 * struct sutro_requests - all requests of one group that wait
 * @prompt:	to be sent before those in rings; first those that the driver gave back
 * @sorted:	those in rings and prompt ones by sector, async (0) and sync (1)
 * @rings:	the others; NULL if there were none since the group became active
 * @turn:	ioprio class and lane of the last request out of a ring, 0 if none yet
 * @alike:	an ioprio of @turn
 * @alike_valid: there is one
 * @batch_sync:	which of the two kinds is being served
 * @batch_left:	requests before the other one is served
 * @mixed:	@mixed_until_ns has not come
 * @mixed_until_ns: until when others than those of @turn may follow
 * @arrival_position: end of the last request that arrived
 */
struct sutro_requests {
	struct list_head prompt;
	struct rb_root sorted[2];
	struct sutro_rings *rings;
	u32 turn;
	u16 alike;
	u8 alike_valid : 1;
	u8 batch_sync : 1;
	u8 mixed : 1;
	u8 batch_left;
	u64 mixed_until_ns;
	sector_t arrival_position;
};

/**
 * struct sutro_note - changes of a group that the next dispatch processes
 * @gone:	its cgroup has been removed; stays set
 * @held:	the note holds its blkg
 * @settings:	a bit for each of its settings that has changed
 * @nr_flushes:	flushes that began
 * @nr_commits:	commits (sutro-commit.c) among the requests that left the device
 * @nr_untimed:	flushes that are over, requests that the driver gave back, and others whose latency
 *		does not count
 * @nr:		requests that left the device, with these
 * @nr_slow:	how many of them took longer than sutro_protect_slow_ns()
 * @took_us:	sum of the times since their submission, without @nr_untimed
 * @estimate_ns: charges when they were sent
 * @cost_ns:	their measured cost
 * @now_ns:	when the last one completed
 */
struct sutro_note {
	bool gone;
	bool held;
	u8 settings;
	u16 nr_flushes;
	u16 nr_commits;
	u32 nr;
	u32 nr_slow;
	u32 nr_untimed;
	u32 took_us;
	u64 estimate_ns;
	u64 cost_ns;
	u64 now_ns;
};

/* A time in about milliseconds: 32 bits last for 52 days. */
static inline u32 sutro_ticks(u64 ns)
{
	return ns >> 20;
}

/* A group with more reads than this has a histogram of their latency. */
#define SUTRO_FEW_READS 2

/**
 * struct sutro_busy - the part of a group that only those have which send more than some requests
 * @rlat:	completed reads by latency; written as &sutro_blkg.stat
 * @member:	it as a member of a lease; NULL if it never was one (sutro-member.c)
 */
struct sutro_busy {
	u32 rlat[SUTRO_LATENCY_BUCKETS];
	struct sutro_member *member;
};

/**
 * struct sutro_turns - submitters that wait for one of some slots
 * @waiters:	by turn
 * @promised:	slots of those that were woken for one, and have not taken it yet
 * @others:	slots that were promised since a starved one had one
 *
 * Both are written under sutro_queue.turn_lock, and read without it as hints.
 */
struct sutro_turns {
	struct rb_root waiters;
	unsigned int promised;
	unsigned int others;
};

/**
 * struct sutro_waiter - a submitter that waits
 * @node:	place in &sutro_turns.waiters, until @is_promised
 * @oldest_node: place in &sutro_queue.oldest, as long
 * @turns:	where it waits
 * @since:	when it began to wait, in jiffies
 * @task:	the task that sleeps
 * @group:	its group
 * @turn:	its turn
 * @is_promised: it was woken for a slot
 */
struct sutro_waiter {
	struct rb_node node;
	struct rb_node oldest_node;
	const struct sutro_turns *turns;
	unsigned long since;
	struct task_struct *task;
	struct sutro_group *group;
	struct sutro_turn turn;
	bool is_promised;
};

/* Does anyone wait?  A hint. */
static inline bool sutro_turns_pending(const struct sutro_turns *turns)
{
	return READ_ONCE(turns->waiters.rb_node);
}

/**
 * struct sutro_blkg - one cgroup on one leaf, as the block layer sees it
 * @pd:		must be first
 * @group:	as the algorithm sees it
 * @requests:	queued requests; protected by sutro_queue.lock
 * @peer:	its place in sutro_queue.probe, if the leaf is not rotational; protected by
 *		sutro_queue.lock
 * @costs:	costs of its requests, if the leaf is rotational; NULL until the first one is
 *		sent; sutro_queue.done_lock protects the costs themselves
 * @device_setting: settings for this leaf, 0 where there is none
 * @entered:	it is in the tree of sutro-active.c
 * @rotational:	the leaf is
 * @few:	latency buckets of the first reads, plus one; 0 = none yet; not used with @busy
 * @nr_requests: request slots in use by the group itself
 * @nr_below:	request slots in use by all groups below it; not counted for the root
 * @turns:	submitters of the group and of those below it, while these together may
 *		not have another slot
 * @note_node:	place in sutro_queue.notes, empty while there is no note
 * @rcu:	to free it, when it is in no list any more; that of @pd is not in every
 *		update of a series
 * @note:	see there; it and @note_node are protected by sutro_queue.done_lock
 * @stat:	totals for io.sutro.stat, and when a request last completed, in sutro_ticks();
 *		written under sutro_queue.done_lock, but for wait_ns, and for backlog_seen_ns:
 *		that is the low bits of backlog_ns as it was read last
 * @active:	place in that tree, and its key there
 * @slots_refused: how often submitters met the limit of its request slots
 * @busy:	NULL while it had no more reads than @few has, and was no member of a lease
 */
struct sutro_blkg {
	struct blkg_policy_data pd;
	struct sutro_group group;
	struct sutro_requests requests;
	union {
		struct sutro_peer peer;
		struct sutro_costs *costs;
	};
	u32 device_setting[SUTRO_SETTINGS];
	bool entered;
	bool rotational;
	u8 few[SUTRO_FEW_READS];
	atomic_t nr_requests;
	atomic_t nr_below;
	atomic_t slots_refused;
	struct sutro_turns turns;
	union {
		struct list_head note_node;
		struct rcu_head rcu;
	};
	struct sutro_note note;
	struct {
		u64 bytes[2];
		u64 ios[2];
		u64 wait_ns;
		u64 time_ns;
		u64 pending_ns;
		u32 used_ticks;
		u32 backlog_seen_ns;
	} stat;
	struct sutro_busy *busy;
	struct {
		struct rb_node node;
		u64 ticket;
	} active;
};

/**
 * struct sutro_queue - per leaf
 * @q:		its request queue
 * @direct_lease: in direct mode, the number of the lease whose members' requests go past the
 *		elevator; else 0 (sutro-direct.c)
 * @direct_only: the blkg of the only member, which need not be counted; NULL if there are several.
 *		It is compared only
 * @stages:	requests just inserted, by CPU
 * @lock:	protects @core, @probe and all groups' requests
 * @core:	the algorithm
 * @probe:	which class is measured
 * @timer:	runs the queue: when the wait for a group's next request ends, and
 *		where the queue cannot be run at once
 * @discipline:	how a group's requests are ordered
 * @pool:	lanes for the groups' requests
 * @prompt:	requests that others wait on, by arrival; they do not wait for the
 *		turn of their group
 * @idle_reported_ns: the last begin of idling that was reported
 * @group_requests: request slots of each group, 0 = by weight
 * @busy:	stages that hold requests
 * @passing:	requests that are sent as they came, because no other group has any
 * @passer:	the group of these
 * @passed:	their number
 * @now_ns:	the time of the last dispatch
 * @direct:	@direct_lease was set, and its end was not noted yet
 * @direct_allowed: direct mode may be used
 * @waiting:	a completion shall run the queue
 * @kick:	a note must be taken although nothing is queued
 * @fired:	the timer has fired, and no dispatch has begun since
 * @dispatching: a CPU dispatches, and looks at the stages before it returns without a
 *		request
 * @polled:	requests at the device that complete when a task polls for them
 * @polled_work: polls in the place of these tasks
 * @done_lock:	protects what follows, but for @direct_work
 * @device:	measured speed of the leaf
 * @notes:	groups with notes for the next dispatch
 * @syncer:	the group that last sent data of an fsync(), NULL if none is known
 *		(sutro-flush.c); holds its blkg
 * @synced_ns:	when it did
 * @lease:	when direct mode begins and ends; state and streak change with @lock held
 * @members:	groups that are members of the lease, or were when the last one began
 * @direct_full: a request had to wait in direct mode
 * @direct_tick_ns: when the last tick was
 * @direct_ticks: time for which the disk was busy, in jiffies, at the last tick
 * @direct_busy_ns: for how long it was, in the last tick
 * @direct_cost_ns: device time of the requests that completed in the last tick
 * @direct_work: accounts for requests in direct mode
 * @exiting:	no more notes are taken
 * @turn_lock:	protects all &struct sutro_turns of the leaf, and @sutro_group.slot_waiters
 * @turns:	submitters that wait for any slot of the leaf
 * @oldest:	all that wait for a slot, by their turns, and of these the longest wait first
 * @crowd:	slots are taken in turn as long as there are nearly as many active groups as slots
 */
struct sutro_queue {
	struct request_queue *q;
	u32 direct_lease;
	struct blkcg_gq *direct_only;
	struct sutro_stage *stages;

	/* protects @core and the groups' requests */
	spinlock_t lock ____cacheline_aligned_in_smp;
	struct sutro_core core;
	struct sutro_probe probe;
	struct hrtimer timer;
	enum sutro_discipline discipline;
	struct sutro_pool pool;
	struct list_head prompt;
	u64 idle_reported_ns;
	unsigned int group_requests;
	struct list_head passing;
	struct sutro_blkg *passer;
	unsigned int passed;
	u64 now_ns;
	bool direct;
	bool direct_allowed;
	bool waiting;
	bool kick;
	bool fired;
	bool dispatching;

	struct llist_head busy ____cacheline_aligned_in_smp;
	atomic_t polled;
	struct delayed_work polled_work;

	/* protects what follows, and the groups' notes and costs */
	spinlock_t done_lock ____cacheline_aligned_in_smp;
	struct sutro_device device;
	struct list_head notes;
	struct sutro_blkg *syncer;
	u64 synced_ns;
	struct sutro_lease lease;
	struct list_head members;
	bool direct_full;
	u64 direct_tick_ns;
	unsigned long direct_ticks;
	u64 direct_busy_ns;
	u64 direct_cost_ns;
	struct delayed_work direct_work;
	bool exiting;

	/* protects all &struct sutro_turns of the leaf */
	spinlock_t turn_lock ____cacheline_aligned_in_smp;
	struct sutro_turns turns;
	struct rb_root oldest;
	bool crowd;
};

static inline struct sutro_blkg *sutro_blkg_of(struct sutro_group *group)
{
	return container_of(group, struct sutro_blkg, group);
}

static inline struct blkcg_gq *sutro_to_blkg(struct sutro_blkg *sblkg)
{
	return pd_to_blkg(&sblkg->pd);
}

/* Costs of the group's requests; NULL if they are the leaf's, or there was no memory. */
static inline struct sutro_costs *sutro_blkg_costs(struct sutro_blkg *sblkg)
{
	/* Pairs with smp_store_release() in sutro_costs_make(). */
	return sblkg->rotational ? READ_ONCE(sblkg->costs) : NULL;
}

/* The inode number of the cgroup's directory. */
static inline u64 sutro_cgroup_id(struct sutro_blkg *sblkg)
{
	return cgroup_id(sutro_to_blkg(sblkg)->blkcg->css.cgroup);
}

/* sutro-cgroup.c */
struct sutro_blkg *sutro_from_blkg(struct blkcg_gq *blkg);
struct sutro_blkg *sutro_bio_blkg(struct request_queue *q, struct bio *bio);
struct sutro_blkg *sutro_current_blkg(struct request_queue *q);

#endif /* SUTRO_H */
