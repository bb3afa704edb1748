/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: the algorithm, which sutro-core.c and sutro-select.c describe.
 *
 * Pure C: no locks, no clock, no allocation, no struct request.  The same files
 * are built into the kernel module and into the userspace simulation, which
 * brings its own <linux/...> headers.  The caller serializes all calls.
 */
#ifndef SUTRO_CORE_H
#define SUTRO_CORE_H

#include <linux/bitops.h>

#include "sutro-core-protect.h"
#include "sutro-tree.h"

/* Requests that may always be in flight, whatever their estimated cost. */
#define SUTRO_DEPTH_MIN 2
/* Requests that may be in flight while several groups are active: enough for a fast drive,
 * few enough that the others wait in the elevator, which can order them.
 */
#define SUTRO_DEPTH_MAX 128U
/* A latency-sensitive group has rare requests if it comes back within this time. */
#define SUTRO_SHALLOW_NS (5000 * 1000 * 1000ULL)

/* Of this many requests of a latency-sensitive group, one waits for streams: less than 1 %. */
#define SUTRO_SENSITIVE_NR 128U

/**
 * struct sutro_tunables - settings of the administrator, and properties of the device
 * @rotational:	leaving a stream costs a seek
 * @fairness:	exact shares are worth more than throughput
 * @slice_ns:	device time that a group may use before others are served, and twice
 *		the most that a sleeping group can be owed
 * @group_idle_ns: longest wait for the next request of a group with a slice
 * @busy_ns:	estimated device time in flight with which the device has no pause, 0 if
 *		not known
 * @depth_ns:	estimated device time that may be in flight while several groups
 *		are active and none has a slice
 * @latency_ns:	latency of a request on a device with little to do, less its cost, 0 if
 *		not known
 * @cached_ns:	device time that the data in the cache of a rotational device still need
 *		(sutro-destage.c)
 * @destaged_ns: when they have had it, if nothing else is sent
 * @done_bytes:	bytes of all reads and writes that the device has completed
 * @protect:	percent of their service alone that protected groups shall receive,
 *		0 = none is protected (sutro-protect.c)
 * @probing:	a probe is going on: requests of all groups are needed
 * @guessing:	costs of requests that wait were not measured, and will soon be
 */
struct sutro_tunables {
	bool rotational;
	bool fairness;
	u64 slice_ns;
	u64 group_idle_ns;
	u64 busy_ns;
	u64 depth_ns;
	u64 latency_ns;
	u64 cached_ns;
	u64 destaged_ns;
	u64 done_bytes;
	u32 protect;
	bool probing;
	bool guessing;
};

/* Length of a window in which it is measured how much a group alone may have at the device. */
#define SUTRO_ALONE_NS (64 * 1000 * 1000ULL)

/**
 * struct sutro_alone - how much a group alone may have at the device (sutro-alone.c)
 * @begin_ns:	of the window
 * @done_ns:	estimates of the requests that completed in it
 * @nr:		windows in which the group was alone, up to SUTRO_ALONE_WINDOWS
 * @most_ns:	the most that may be in flight, by estimates, 0 = any
 */
struct sutro_alone {
	u64 begin_ns;
	u64 done_ns;
	u32 nr;
	u64 most_ns;
};

/* The result of sutro_core_select(). */
enum sutro_verdict {
	SUTRO_SERVE, /* dispatch a request of the group returned */
	SUTRO_EMPTY, /* nothing is queued */
	SUTRO_WAIT, /* select again after a completion or an arrival */
	SUTRO_IDLE, /* as SUTRO_WAIT, and at &sutro_core.idle_until_ns */
};

/* Why a group lost its slice. */
enum sutro_expiry {
	SUTRO_EXPIRY_NONE,
	SUTRO_EXPIRY_USED, /* used up */
	SUTRO_EXPIRY_EMPTY, /* its next request did not come, or was not expected */
	SUTRO_EXPIRY_PREEMPTED, /* a group that precedes it got a request */
};

/* Why the device no longer idles for a group. */
enum sutro_idle_end {
	SUTRO_IDLE_END_NONE,
	SUTRO_IDLE_END_ARRIVED, /* its next request came */
	SUTRO_IDLE_END_LATE, /* it did not come in time */
	SUTRO_IDLE_END_OTHER, /* another one is served, or waited for */
};

/**
 * struct sutro_slices - slices where streams do not need them (sutro-slices.c)
 * @since_ns:	when they began to have slices the last time
 * @until_ns:	they have slices until then
 * @from_ns:	they are not given slices before
 * @guessed_ns:	when a trial ended the last time that costs were guesses
 * @rest_ns:	for how long not after the last try, 0 = slices were worth their price
 * @poor:	in the last trial with slices, groups used less of the device than is allowed
 */
struct sutro_slices {
	u64 since_ns;
	u64 until_ns;
	u64 from_ns;
	u64 guessed_ns;
	u64 rest_ns;
	bool poor;
};

/**
 * struct sutro_core - the state of one leaf
 * @tunables:	may change between any two calls
 * @root:	group of the root cgroup, NULL until sutro_core_init()
 * @leaves_of:	set by the caller: the requests of a group's cgroup on all leaves (sutro-volume.c);
 *		NULL = not known
 * @in_service:	the group that holds the slice, or NULL
 * @last_served: the group of the last dispatched request; it may be gone, and is only compared
 * @slice_ns:	how long the slice is
 * @slice_used_ns: device time of the slice so far; requests in flight by estimate
 * @fresh:	nothing has completed yet in this slice, and another one came right before
 * @switch_ns:	mean excess of the first completion of such a slice over its estimate, 0
 *		= not known
 * @preempt:	the slice shall end
 * @expiry:	why the last slice ended, for tracepoints; reset by its reader
 * @expired:	its group
 * @idle_for:	the group for whose next request an idle device waits, or NULL
 * @idle_since_ns: since when
 * @idle_until_ns: until when; valid with SUTRO_IDLE
 * @idle_end:	why it last ceased to idle, for tracepoints; reset by its reader
 * @idled_for:	the group that it had idled for
 * @idled_ns:	and how long
 * @sensitive:	the latency-sensitive group for which streams wait (sutro-select.c), or NULL
 * @sensitive_nr:	its requests since no device time was owed to streams
 * @postponed:	the group that is next was put before a stream that is further behind
 * @gap:	others are served in a reserved window, because protected groups are away
 * @beside:	the group that is next was put before others that stand back for its sake, or that
 *		have no request for a gap: its vtime does not count that, unless nearly all of the
 *		time is shared
 * @expected:	a group that has left and will probably be back soon; it may be gone,
 *		and is only compared
 * @expected_protected: it was protected, or is a favoured one that pauses
 * @expected_room_ns: on a rotational device, for how long requests of others may take then
 * @expected_until_ns: until when
 * @shallow_until_ns: until when little waits at the device, also of a group alone
 * @wide:	part of the depth of probes that favoured groups leave to others (sutro-due.c), at
 * @wide_ns:	this time
 * @alone_window: how much a group alone may have at the device
 * @limit_ns:	device time that groups without a latency target may have in flight
 * @limit_until_ns: until when that holds
 * @alone:	the only active group, if its requests pass
 * @alone_ns:	device time that it has used and was not charged yet
 * @leaving:	empty groups, by when they leave
 * @slotless:	the same of those that wait for a request slot
 * @protect:	groups for which others are held back
 * @slices:	slices where none are needed for streams
 * @now_ns:	the time of the last choice, or of the last arrival if that was later; see
 *		sutro_core_time()
 * @waiting:	groups with requests queued, the one served longest ago first
 * @starved:	a group that was chosen because it had waited too long (sutro-starved.c),
 *		until a request is sent
 * @starved_until_ns: until when no other group is chosen for that
 * @queued:	requests of all groups that wait
 * @in_flight:	requests of all groups at the device
 * @in_flight_ns: their estimated device time
 * @commits:	flushes and journal writes among them (sutro-commit.c)
 * @commit_until_ns: until when no other request is sent for their sake
 * @async:	no task waits for the request that is dispatched next; set by the caller, reset by
 *		sutro_core_dispatch()
 * @flush_data:	requests queued for which flushes may wait; counted by the caller
 * @nr_active:	active groups
 */
struct sutro_core {
	struct sutro_tunables tunables;
	struct sutro_group *root;
	struct sutro_leaves *(*leaves_of)(struct sutro_group *group);
	struct sutro_group *in_service;
	const struct sutro_group *last_served;
	u64 slice_ns;
	u64 slice_used_ns;
	bool fresh;
	u64 switch_ns;
	bool preempt;
	enum sutro_expiry expiry;
	struct sutro_group *expired;
	struct sutro_group *idle_for;
	u64 idle_since_ns;
	u64 idle_until_ns;
	enum sutro_idle_end idle_end;
	struct sutro_group *idled_for;
	u64 idled_ns;
	struct sutro_group *sensitive;
	u32 sensitive_nr;
	bool postponed;
	bool gap;
	bool beside;
	const struct sutro_group *expected;
	bool expected_protected;
	u64 expected_room_ns;
	u64 expected_until_ns;
	u64 shallow_until_ns;
	u32 wide;
	u64 wide_ns;
	struct sutro_alone alone_window;
	u64 limit_ns;
	u64 limit_until_ns;
	struct sutro_group *alone;
	s64 alone_ns;
	struct list_head leaving;
	struct list_head slotless;
	struct sutro_protect protect;
	struct sutro_slices slices;
	u64 now_ns;
	struct list_head waiting;
	const struct sutro_group *starved;
	u64 starved_until_ns;
	u32 queued;
	u32 in_flight;
	u64 in_flight_ns;
	u32 commits;
	u64 commit_until_ns;
	bool async;
	u32 flush_data;
	u32 nr_active;
};

/* After this time each group without requests has left, however long it is waited for. */
#define SUTRO_CORE_EVER_NS BIT_ULL(62)

void sutro_core_init(struct sutro_core *core, struct sutro_group *root);

void sutro_core_queue(struct sutro_core *core, struct sutro_group *group,
		      bool far, u64 now_ns);
void sutro_core_unqueue(struct sutro_core *core, struct sutro_group *group);
void sutro_core_interrupt(struct sutro_core *core, u64 now_ns);
void sutro_core_dispatch(struct sutro_core *core, struct sutro_group *group,
			 u64 estimate_ns);
void sutro_core_complete(struct sutro_core *core, struct sutro_group *group,
			 u32 nr, u64 estimate_ns, u64 cost_ns, u64 now_ns);

void sutro_group_set_class(struct sutro_core *core, struct sutro_group *group,
			   enum sutro_class class);
void sutro_group_set_gone(struct sutro_core *core, struct sutro_group *group);
bool sutro_group_seeky(const struct sutro_group *group);

bool sutro_core_may_pass(const struct sutro_core *core,
			 struct sutro_group *group, u64 now_ns);
void sutro_core_pass(struct sutro_core *core, struct sutro_group *group,
		     bool far, u64 estimate_ns, u64 now_ns);
void sutro_core_settle(struct sutro_core *core);
void sutro_core_alone_until(struct sutro_core *core, u64 now_ns);

/* sutro-select.c */
struct sutro_group *sutro_core_select(struct sutro_core *core, u64 now_ns,
				      enum sutro_verdict *ret_verdict);
bool sutro_core_fits(const struct sutro_core *core, u64 cost_ns, bool in_turn,
		     u64 now_ns);
enum sutro_verdict sutro_core_wait(struct sutro_core *core, u64 now_ns);
void sutro_stop_idling(struct sutro_core *core, enum sutro_idle_end why,
		       u64 now_ns);
void sutro_expire(struct sutro_core *core, enum sutro_expiry why);

/* sutro-slices.c */
bool sutro_slices_may(struct sutro_core *core, const struct sutro_group *group);
void sutro_slices_prevent(struct sutro_core *core, u64 now_ns);
void sutro_slices_begin(struct sutro_core *core,
			struct sutro_group_protect *own, u64 now_ns);
bool sutro_slices_are_for(const struct sutro_core *core,
			  const struct sutro_group_protect *own);
bool sutro_slices_worth(struct sutro_core *core,
			const struct sutro_group_protect *own);
bool sutro_slices_judge(struct sutro_core *core,
			const struct sutro_group_protect *own, u64 now_ns);

/* sutro-alone.c */
void sutro_alone_completed(struct sutro_core *core, u64 estimate_ns,
			   u64 now_ns);

/* sutro-leave.c */
u64 sutro_return_ns(const struct sutro_core *core);
void sutro_leave_at_once(struct sutro_core *core, struct sutro_group *group);
void sutro_leave(struct sutro_core *core, struct sutro_group *group,
		 u64 now_ns);
void sutro_core_wait_slot(struct sutro_core *core, struct sutro_group *group,
			  u64 now_ns);
struct sutro_group *sutro_core_forget(struct sutro_core *core, u64 now_ns);

/* sutro-latency.c */
void sutro_latency_limit(struct sutro_core *core,
			 const struct sutro_latency *latency, u64 now_ns);

/* sutro-commit.c */
void sutro_core_commit(struct sutro_core *core, struct sutro_group *group,
		       u64 now_ns);
void sutro_core_committed(struct sutro_core *core, struct sutro_group *group,
			  u32 nr);

/* sutro-starved.c */
void sutro_starved_queued(struct sutro_core *core, struct sutro_group *group,
			  u64 now_ns);
void sutro_starved_unqueued(struct sutro_group *group);
struct sutro_group *sutro_starved_next(struct sutro_core *core, u64 now_ns);
void sutro_starved_sent(struct sutro_core *core, struct sutro_group *group,
			u64 estimate_ns);

/*
 * The time of a choice, which is not before any arrival.  A CPU may have taken it before another
 * CPU took that of an arrival, and the begin of a flush is dated when a dispatcher learns of it.
 */
static inline u64 sutro_core_time(struct sutro_core *core, u64 now_ns)
{
	core->now_ns = max(core->now_ns, now_ns);
	return core->now_ns;
}

/* Does @group have a commit at the device that may wait for queued requests? */
static inline bool sutro_commit_waits(const struct sutro_core *core,
				      const struct sutro_group *group)
{
	return group->commits && core->flush_data;
}

/* Does a latency-sensitive group wait for streams, to which device time is owed? */
static inline bool sutro_sensitive_waits(const struct sutro_core *core,
					 const struct sutro_group *group)
{
	return group == core->sensitive &&
	       core->sensitive_nr >= SUTRO_SENSITIVE_NR;
}

/*
 * Has every group slices at some time, although that is not needed for streams?  In reserved
 * windows, parts of them decide (sutro-apart.c).
 */
static inline bool sutro_is_fair_at(const struct sutro_core *core, u64 now_ns)
{
	return core->tunables.fairness ||
	       (!core->protect.reserved &&
		sutro_before(now_ns, core->slices.until_ns));
}

static inline bool sutro_is_fair(const struct sutro_core *core)
{
	return sutro_is_fair_at(core, core->now_ns);
}

/* Are groups waited for that have nothing queued? */
static inline bool sutro_waits(const struct sutro_core *core)
{
	return core->tunables.rotational || sutro_is_fair(core);
}

/* Does the latency target of another group limit the requests that @group has in flight? */
static inline bool sutro_is_limited(const struct sutro_core *core,
				    struct sutro_group *group, u64 now_ns)
{
	return core->limit_ns && sutro_before(now_ns, core->limit_until_ns) &&
	       !sutro_latency_late_ns(group);
}

/* Will a group other than @group soon be back with a request or a few? */
static inline bool sutro_expects_other(const struct sutro_core *core,
				       const struct sutro_group *group,
				       u64 now_ns)
{
	return core->expected && core->expected != group &&
	       sutro_before(now_ns, core->expected_until_ns);
}

/* Requests that the device works on: a flush may wait for queued data (sutro-commit.c). */
static inline u32 sutro_at_work(const struct sutro_core *core)
{
	return core->in_flight - (core->flush_data ? core->commits : 0);
}

/*
 * Would one more request like those at work cost a group that is away more than is allowed?  A
 * flush may take any time.
 */
static inline bool sutro_room_is_full(const struct sutro_core *core)
{
	u32 nr = sutro_at_work(core);

	if (!nr)
		return false;
	return (core->commits && !core->flush_data) ||
	       core->in_flight_ns + div_u64(core->in_flight_ns, nr) >
		       core->expected_room_ns;
}

/*
 * Do others leave room for a group that will soon be back?  Beside one that was protected, a
 * single request that keeps the device busy is enough.  Any one does on a rotational device, where
 * more may be sent if they take little of the time for which the group is away (sutro-leave.c).
 */
static inline bool sutro_leaves_room(const struct sutro_core *core,
				     const struct sutro_group *group,
				     u64 now_ns)
{
	u64 busy_ns = core->tunables.busy_ns;
	u32 enough = core->expected_protected ? 1 : SUTRO_DEPTH_MIN;
	bool busy = busy_ns && core->in_flight_ns >= busy_ns;

	if (core->tunables.rotational)
		busy = core->expected_protected && sutro_room_is_full(core);
	return busy && sutro_at_work(core) >= enough &&
	       sutro_expects_other(core, group, now_ns);
}

/* Was a latency-sensitive group there lately, which may come back?  Then even a group alone lets no
 * more requests wait at the device than it needs.
 */
static inline bool sutro_is_shallow(const struct sutro_core *core, u64 now_ns)
{
	return sutro_before(now_ns, core->shallow_until_ns);
}

/* The whole of &sutro_core.wide, which grows by 1 in 2^WIDE_SHIFT ns: in 4.3 s. */
#define SUTRO_WIDE_WHOLE 1024U
#define SUTRO_WIDE_SHIFT 22

/* The part of the depth of probes that may be in flight, of SUTRO_WIDE_WHOLE. */
static inline u32 sutro_core_wide(const struct sutro_core *core, u64 now_ns)
{
	u64 passed_ns = max_t(s64, now_ns - core->wide_ns, 0);

	return min_t(u64, core->wide + (passed_ns >> SUTRO_WIDE_SHIFT),
		     SUTRO_WIDE_WHOLE);
}

/**
 * struct sutro_turn - place of a request that has no slot yet among others
 * @class:	class of its entity there
 * @vtime:	that of its entity when it is entitled to the request
 */
struct sutro_turn {
	enum sutro_class class;
	u64 vtime;
};

/* Does one come before another?  After those that came before it with the same vtime. */
static inline bool sutro_turn_before(const struct sutro_turn *a,
				     const struct sutro_turn *b)
{
	if (a->class != b->class)
		return a->class < b->class;
	return sutro_before(a->vtime, b->vtime);
}

/* Are there nearly as many active groups as request slots?  A hint. */
static inline bool sutro_is_crowded(const struct sutro_core *core, u32 slots)
{
	return READ_ONCE(core->nr_active) > 3 * slots / 4;
}

/*
 * How many of all slots do protected groups have without a turn?  As large a part as their share or
 * the time that is reserved for them, as far as they may use that; an eighth at least, and all but
 * an eighth at most.  A hint.
 */
static inline u32 sutro_protect_slots(const struct sutro_protect *protect,
				      u32 slots)
{
	u32 least = slots / SUTRO_LEFT_PART;
	u64 part = max(READ_ONCE(protect->share), READ_ONCE(protect->reserve));

	if (!sutro_protects(protect))
		return least;
	part = min(part * slots / SUTRO_PROTECT_WHOLE,
		   2 * (u64)READ_ONCE(protect->depth));
	return clamp_t(u64, part, least, slots - least);
}

struct sutro_turn sutro_turn_of(const struct sutro_group *group,
				const struct sutro_group *at);

/* Is the device so full that a group which is not alone may have to wait?  A hint. */
static inline bool sutro_core_is_full(const struct sutro_core *core)
{
	return core->in_flight >= SUTRO_DEPTH_MIN &&
	       (core->in_flight_ns >= core->tunables.depth_ns ||
		core->in_flight >= SUTRO_DEPTH_MAX);
}

/* Could the device take requests that are held back for other groups, with this @verdict? */
static inline bool sutro_holds_back(const struct sutro_core *core,
				    enum sutro_verdict verdict)
{
	const struct sutro_protect *protect = &core->protect;

	return verdict != SUTRO_SERVE &&
	       (protect->reserved || core->limit_ns ||
		(protect->gentle && sutro_protects(protect)) ||
		(sutro_is_fair(core) && core->queued &&
		 !sutro_core_is_full(core)));
}

/* For how long may the device have work, if it has this latency? */
static inline u64 sutro_alone_ns(u64 latency_ns)
{
	return max(SUTRO_ALONE_NS, 8 * latency_ns);
}

/* Is as much at the device as a group that is alone may have there? */
static inline bool sutro_alone_is_full(const struct sutro_core *core)
{
	u64 most_ns = core->alone_window.most_ns;

	return most_ns && core->in_flight >= SUTRO_DEPTH_MIN &&
	       core->in_flight_ns >= most_ns;
}

#endif /* SUTRO_CORE_H */
