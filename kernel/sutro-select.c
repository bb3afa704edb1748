// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: which group may send the next request.
 *
 * 1. The next group
 *
 * Groups form a tree, as their cgroups do.  Device time is divided by weight at
 * each level of it (sutro-tree.c).  The backlogged group that is furthest
 * behind its entitlement is next; of the highest class, unless a lower one has
 * grown 16 slices old, which is 1.6 s where slices are 100 ms.  A group that has waited
 * for 5 s comes before all others, see sutro-starved.c.
 *
 * 2. Slices
 *
 * Where leaving a stream costs a seek, a group of streams keeps the device for a
 * slice of slice_ns of device time.  When streams take turns, it is 24 times what a
 * switch costs, if that is less, but no less than half of slice_ns: the first
 * completion after a switch costs that much more than was estimated.  So where a seek
 * is short, turns are shorter, for the same loss of bandwidth.
 *
 *	A stream's 1 MiB takes 7 ms, the first one after a switch 10: slices of 72 ms.
 *
 * The slice ends early when the group runs empty and is not expected back (see 3),
 * when a group of a higher class wakes up, and when a group wakes up that is owed
 * half a slice more: on a stripe, both halves of a reader's request then move over
 * to the same group at nearly the same time on both disks.  A group whose slice is
 * used up while it is still the one furthest behind, but has all its requests at the
 * device, keeps it: with one request at a time it would otherwise lose its turn
 * whenever that request is on the way.
 *
 * Elsewhere (flash, or a group of random requests, for which one seek is as good
 * as another) each request is its own turn.
 *
 * 3. Groups without queued requests
 *
 * A group may have nothing queued because all its requests are at the device, or
 * because it has just seen its last one complete and will send the next in a
 * moment.  If the others went on, a drive that serves the nearest request first
 * could leave its requests waiting behind a stream without end, and a group with
 * one request at a time would find the drive full of others' each time it comes
 * back.  So where requests are served one by one (rotational), others are held
 * back while such a group is owed half a slice or more: until it has received it,
 * or has left.  Where many are served at once, that is done only while the device
 * has enough in flight to be busy without a pause (busy_ns), and only for groups that
 * have requests there: no throughput is given up, but a heavy group has its share also
 * when the device could take all requests of both.
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
 * device, and on one without seeks for as long as that pays (sutro-slices.c).
 *
 * 4. How many at the device
 *
 * Requests at the device can no longer be ordered.  A group with slices sends at
 * most half a slice's worth, also when alone: a stream needs no more, and the next
 * group would have to wait for it (32 writes of 512 KiB are 400 ms of a slow
 * drive).  Random requests are sent as they come: the drive chooses better among
 * many.
 *
 * On devices that serve many requests at once, while more than one group is
 * active, requests are held back when those in flight are estimated to use
 * depth_ns of device time: enough to keep all channels busy, little enough that
 * the backlog stays here.  That is what the latency shows, and beside no favoured
 * group with few requests also what probes have shown to be needed (sutro-due.c).
 *
 * A group that is alone has no more than completes in a moment (sutro-alone.c).
 *
 * A group whose own requests compete with one another (ioprio, submitters) is
 * limited on any device as if it had slices, and as if it were not alone.
 *
 * A group that sends a request, waits for it, and sends the next a moment later has
 * nothing queued that could be put before others' requests: its next request waits at
 * the device behind those that were sent in the meantime.  So when a group has left
 * that usually comes back within slice_ns, all others together get no more than
 * busy_ns in flight until it is back, or twice slice_ns have passed.
 *
 *	a reads 4 KiB at a time and thinks for 1 ms, b reads 128 KiB with 32 in
 *	flight: without this a waits for 32 of b's, with it for three.
 *
 * A group that was protected (sutro-protect.c) and thinks for too long to be waited for is
 * expected for longer (sutro-leave.c).  A second request of others is not sent meanwhile if
 * one keeps the device busy.
 *
 *	a reads 4 times 128 KiB and thinks for 50 ms, b's writes of 1.25 MiB take 41 ms each.  a
 *	waits for one of them at most, not for two.
 *
 * 5. Streams beside a latency-sensitive group
 *
 * A group is latency-sensitive if it is favoured so much that its latency is protected
 * (SUTRO_PROTECT_SENSITIVE).  Here it has one request at a time, too.  By vtime alone a
 * stream of little weight is next after a few requests of such a group, and the next one
 * of these ends its slice: one request in ten or twenty takes several times as long as
 * alone.  So on a rotational device, streams of the group's class wait until
 * SUTRO_SENSITIVE_NR of its requests were served, and then have whole slices until they
 * have received what they are owed.  One request of the group waits for them: less than
 * 1 % do, which a 99th percentile allows.  A flush is no request of its own
 * (sutro-commit.c).
 *
 * Streams do not wait any more when all groups of their class together are owed
 * SUTRO_SENSITIVE_SLICES slices: beside many of them that percentile cannot be kept, and
 * shares would only be kept at a scale of seconds.  While streams wait, idle time is not
 * charged to the latency-sensitive group: one that thinks would lose that part of its
 * throughput alone.
 *
 *	a (weight 1000) reads 4 KiB at a time, 8 ms each, b (100) writes 1 MiB, 7 ms each.
 *	By vtime, b sends a write or two after each ten reads.  Now b waits for 128 reads,
 *	1.02 s, and then has its 102 ms.
 *
 * 6. Writes in the cache of the drive
 *
 * The cache of a hard disk takes what a group writes in a slice within a few ms, and the drive
 * destages it later, in each pause of the reader that is served next (sutro-destage.c).  So
 * nothing is sent for a reader until the time that the writes were charged has passed: if
 * that is half a slice or more, and at the begin of the slice of a stream in any case.
 *
 *	a writes 12 MiB in its slice, which the cache takes in 25 ms, and b reads 64 KiB of a
 *	stream at a time.  b waits for another 75 ms, and then has 100 ms for itself.  Without
 *	this, a seek and 1 MiB of a's come before each of b's reads: b has 1.3 MB/s, not 65.
 *
 * Beside protected groups, writes of others are sent when those before them have had their
 * time: else the cache takes so many in a pause of a protected group that it is full.
 */
#include "sutro-core.h"

/* A lower class is served after this many slices of higher classes. */
#define SUTRO_AGE_SLICES 16
/* A slice counts as at least this long for that, because slice_ns may be 0. */
#define SUTRO_AGE_SLICE_MIN_NS (1000 * 1000ULL)
/* A slice is as long as this many switches from one group to another. */
#define SUTRO_SWITCHES 24ULL
/* A slice is not shorter than slice_ns divided by this. */
#define SUTRO_SLICE_PART 2
/* Streams that are owed this many slices together do not wait for a latency-sensitive group. */
#define SUTRO_SENSITIVE_SLICES 4
/* A drive that needs more slices than this for the data in its cache is not waited for. */
#define SUTRO_DESTAGE_SLICES 2

/* Device time after which @group lets others in; 0 = after each request. */
static u64 sutro_slice_ns(const struct sutro_core *core,
			  const struct sutro_group *group)
{
	const struct sutro_tunables *t = &core->tunables;

	if (sutro_is_fair(core) || (t->rotational && !sutro_group_seeky(group)))
		return t->slice_ns;
	return 0;
}

/* Begin a slice of @group, and set its length. */
static void sutro_begin_slice(struct sutro_core *core,
			      struct sutro_group *group)
{
	const struct sutro_tunables *t = &core->tunables;
	/* Nothing was sent since the last slice, which was a stream's. */
	bool turns = t->rotational && core->last_served == core->expired;

	core->in_service = group;
	core->slice_ns = sutro_slice_ns(core, group);
	core->fresh = turns && core->expired != group;
	if (turns && core->switch_ns)
		core->slice_ns = clamp(SUTRO_SWITCHES * core->switch_ns,
				       t->slice_ns / SUTRO_SLICE_PART,
				       t->slice_ns);
}

/* The age at which a class is served before higher ones. */
static u64 sutro_age_ns(const struct sutro_core *core)
{
	return SUTRO_AGE_SLICES *
	       max(core->tunables.slice_ns, SUTRO_AGE_SLICE_MIN_NS);
}

/* May others be held back for a group whose requests are all at the device? */
static bool sutro_may_hold(const struct sutro_core *core)
{
	u64 busy_ns = core->tunables.busy_ns;

	return sutro_waits(core) || (busy_ns && core->in_flight_ns >= busy_ns &&
				     core->in_flight >= SUTRO_DEPTH_MIN);
}

/**
 * sutro_stop_idling - the device no longer idles for a group
 * @core:	the leaf
 * @why:	why not
 * @now_ns:	the time
 */
void sutro_stop_idling(struct sutro_core *core, enum sutro_idle_end why,
		       u64 now_ns)
{
	struct sutro_group *group = core->idle_for;
	s64 idle_ns;

	if (!group)
		return;

	idle_ns = max_t(s64, now_ns - core->idle_since_ns, 0);
	core->idle_for = NULL;
	core->idle_end = why;
	core->idled_for = group;
	core->idled_ns = idle_ns;
	group->stat.idle_ns += idle_ns;
	if (sutro_protect_charged(core, group) &&
	    !(core->postponed && group == core->sensitive))
		sutro_tree_charge(group, idle_ns);
	if (group == core->in_service)
		core->slice_used_ns += idle_ns;
}

/* Send nothing: the device is kept for @group, which has nothing queued. */
static enum sutro_verdict sutro_hold(struct sutro_core *core,
				     struct sutro_group *group, u64 now_ns)
{
	if (group->in_flight)
		return SUTRO_WAIT;
	if (!core->in_flight && core->idle_for != group) {
		sutro_stop_idling(core, SUTRO_IDLE_END_OTHER, now_ns);
		core->idle_for = group;
		core->idle_since_ns = now_ns;
	}
	core->idle_until_ns = group->leave_at_ns;
	return SUTRO_IDLE;
}

/**
 * sutro_expire - the slice in service ends
 * @core:	the leaf
 * @why:	why
 */
void sutro_expire(struct sutro_core *core, enum sutro_expiry why)
{
	core->expired = core->in_service;
	core->expiry = why;
	core->in_service = NULL;
	core->slice_used_ns = 0;
	core->preempt = false;
}

/* Does the owner of the slice keep it? */
static bool sutro_keeps_slice(struct sutro_core *core)
{
	struct sutro_group *group = core->in_service;
	u64 slice_ns = sutro_slice_ns(core, group) ? core->slice_ns : 0;

	if (core->preempt) {
		sutro_expire(core, SUTRO_EXPIRY_PREEMPTED);
		return false;
	}
	if (!group->queued && (sutro_commit_waits(core, group) ||
			       sutro_is_away(core, group, core->now_ns) ||
			       sutro_others_skip(core, group))) {
		sutro_expire(core, SUTRO_EXPIRY_EMPTY);
		return false;
	}
	if (core->slice_used_ns < slice_ns)
		return true;
	if (slice_ns && !group->queued && group->in_flight &&
	    sutro_tree_precedes(group, sutro_age_ns(core))) {
		core->slice_used_ns = 0;
		return true;
	}
	sutro_expire(core, SUTRO_EXPIRY_USED);
	return false;
}

/*
 * The backlogged group that is furthest behind, unless others have to wait for a
 * group that is away, and may be held back: then that one.  Advances the clocks.
 */
static struct sutro_group *sutro_furthest_behind(struct sutro_core *core,
						 bool may_hold)
{
	struct sutro_group *group = core->root;
	u64 age_ns = sutro_age_ns(core);

	for (;;) {
		struct sutro_level *level = &group->level;
		struct sutro_rank *rank =
			&level->rank[sutro_tree_turn(level, age_ns, may_hold)];
		struct sutro_entity *first = sutro_first(&rank->queue);
		struct sutro_entity *away = sutro_first_away(rank);

		if (!first)
			away = sutro_first(&rank->away);
		if (!first || (away && may_hold &&
			       sutro_before(sutro_due(away), first->vtime)))
			first = away;
		else if (sutro_before(rank->vtime, first->vtime))
			rank->vtime = first->vtime;

		if (first == &group->self)
			return group;
		group = container_of(first, struct sutro_group, entity);
	}
}

/* Are all groups of the latency-sensitive one's class owed so little that a stream can wait? */
static bool sutro_may_postpone(const struct sutro_core *core,
			       struct sutro_group *group)
{
	u64 owed_ns = SUTRO_SENSITIVE_SLICES * core->tunables.slice_ns;
	struct sutro_entity *sensitive, *stream;
	struct sutro_level *level;
	u64 owed;
	u32 others;

	level = sutro_tree_compare(core->sensitive, group, &sensitive, &stream);
	if (sensitive->class != stream->class)
		return false;
	others =
		sutro_rank_of(level, sensitive)->weight_sum - sensitive->weight;
	owed = div_u64(owed_ns * (SUTRO_WEIGHT_DFL << SUTRO_VTIME_SHIFT),
		       others);
	return sutro_before(sensitive->vtime, stream->vtime + owed);
}

/* The group that is furthest behind, or the latency-sensitive one for which it waits. */
static struct sutro_group *sutro_next_group(struct sutro_core *core,
					    bool may_hold)
{
	struct sutro_group *group = sutro_furthest_behind(core, may_hold);

	core->postponed = false;
	if (!core->sensitive || !may_hold)
		return group;
	if (group == core->sensitive) {
		/* Streams have received what they are owed. */
		if (core->sensitive_nr >= SUTRO_SENSITIVE_NR)
			core->sensitive_nr = 0;
		return group;
	}
	if (core->sensitive_nr >= SUTRO_SENSITIVE_NR ||
	    !sutro_slice_ns(core, group))
		return group;
	core->postponed = sutro_may_postpone(core, group);
	if (core->postponed)
		return core->sensitive;
	core->sensitive_nr = 0;
	return group;
}

/*
 * Beside protected groups that use less than their share, others have few requests at the
 * device, but always one.  So have protected ones that are ahead (sutro-others.c, which also has
 * an exception).  Does @group have to wait for these?  Beside sporadic groups, for as long
 * as these would lose more than is allowed if they came now (sutro-part.c).
 */
static bool sutro_stands_back(const struct sutro_core *core,
			      const struct sutro_group *group)
{
	const struct sutro_tunables *t = &core->tunables;
	const struct sutro_protect *protect = &core->protect;
	u32 others;

	if (!protect->gentle || !sutro_protects(protect) ||
	    (sutro_group_protected(group) && !group->protect->leads))
		return false;
	others = core->in_flight - protect->in_flight + protect->ahead;
	/* A flush may wait for queued data (sutro-commit.c), also one of a group that is ahead. */
	if (core->flush_data)
		others -= min_t(u32, others, core->commits);
	if (!others)
		return false;
	/* Gaps end in time, whatever others have at the device. */
	if (t->rotational)
		return !protect->reserved;
	if (protect->others_many && !protect->reserved &&
	    !sutro_group_protected(group))
		return false;
	if (protect->room_ns)
		return core->in_flight_ns >= protect->room_ns + t->latency_ns;
	return t->busy_ns && (others + 1) * protect->other_ns >=
				     t->busy_ns / SUTRO_PROTECT_BUSY;
}

/* Is the device so full that further requests should wait in the elevator? */
static bool sutro_is_deep(const struct sutro_core *core,
			  struct sutro_group *group, u64 now_ns)
{
	const struct sutro_tunables *t = &core->tunables;

	if (core->in_flight && core->in_flight_ns >= core->limit_ns &&
	    sutro_is_limited(core, group, now_ns))
		return true;
	if (sutro_leaves_room(core, group, now_ns) ||
	    ((t->rotational || core->protect.room_ns) &&
	     sutro_stands_back(core, group)))
		return true;
	if (sutro_at_work(core) < SUTRO_DEPTH_MIN)
		return false;
	if (t->rotational)
		return (sutro_slice_ns(core, group) || group->mixed) &&
		       core->in_flight_ns >= t->slice_ns / 2;
	if (sutro_stands_back(core, group) || sutro_alone_is_full(core))
		return true;
	return (core->nr_active > 1 || group->mixed ||
		sutro_is_shallow(core, now_ns)) &&
	       (core->in_flight_ns >= t->depth_ns ||
		core->in_flight - core->commits >= SUTRO_DEPTH_MAX);
}

/*
 * Does a group that reads wait until the drive has destaged what others wrote, which go on?  If it
 * begins a slice, or they have had half a slice; but not where that would take long.
 */
static bool sutro_lets_destage(const struct sutro_core *core,
			       const struct sutro_group *group, u64 now_ns)
{
	const struct sutro_tunables *t = &core->tunables;
	bool begins = group == core->in_service && group != core->last_served;

	return t->rotational && !core->protect.reserved && !group->caches &&
	       core->queued > group->queued &&
	       sutro_before(now_ns, t->destaged_ns) &&
	       t->cached_ns <= SUTRO_DESTAGE_SLICES * t->slice_ns &&
	       (begins || t->cached_ns >= t->slice_ns / 2);
}

/* Beside protected groups, others have one request at the device, or the writes in the cache. */
static bool sutro_cache_is_busy(struct sutro_core *core,
				const struct sutro_group *group, u64 now_ns)
{
	const struct sutro_tunables *t = &core->tunables;
	bool awaited = core->expected_protected &&
		       sutro_expects_other(core, group, now_ns);

	return t->rotational && group->caches &&
	       sutro_before(now_ns, t->destaged_ns) &&
	       t->cached_ns <= SUTRO_DESTAGE_SLICES * t->slice_ns &&
	       (sutro_protects(&core->protect) || awaited) &&
	       !sutro_group_protected(group);
}

/* In a reserved window: the protected group to serve, or to wait for. */
static struct sutro_group *sutro_reserved(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;

	if (!sutro_protects(protect)) {
		protect->reserved = false;
		protect->clear = false;
		return NULL;
	}
	sutro_window_look(core, now_ns);
	if (!protect->reserved)
		return NULL;
	return sutro_protect_next(core, true)
		       ?: sutro_protect_awaited(core, now_ns);
}

/* Send nothing: the device is kept for @group until the reserved window ends. */
static enum sutro_verdict sutro_hold_reserved(struct sutro_core *core,
					      struct sutro_group *group,
					      u64 now_ns)
{
	u64 end_ns = core->protect.begin_ns + core->protect.cycle_ns;
	enum sutro_verdict verdict = sutro_hold(core, group, now_ns);
	u64 look_ns;

	look_ns = sutro_protect_look_ns(core, group, now_ns);
	core->idle_until_ns = sutro_earlier(look_ns, end_ns);
	return verdict;
}

/**
 * sutro_core_select - which group may send the next request?
 * @core:	the leaf
 * @now_ns:	the time
 * @ret_verdict: the action of the caller
 *
 * Return: the group to dispatch a request of (SUTRO_SERVE), else NULL.
 */
struct sutro_group *sutro_core_select(struct sutro_core *core, u64 now_ns,
				      enum sutro_verdict *ret_verdict)
{
	struct sutro_group *group, *starved, *next = NULL;
	bool beside;

	now_ns = sutro_core_time(core, now_ns);
	core->starved = NULL;
	core->beside = false;
	core->gap = false;
	if (core->limit_ns && !sutro_before(now_ns, core->limit_until_ns))
		WRITE_ONCE(core->limit_ns, 0);
	if (!core->queued) {
		*ret_verdict = SUTRO_EMPTY;
		return NULL;
	}

	if (core->commits && !core->flush_data &&
	    sutro_before(now_ns, core->commit_until_ns)) {
		core->idle_until_ns = core->commit_until_ns;
		*ret_verdict = SUTRO_IDLE;
		return NULL;
	}
	starved = sutro_starved_next(core, now_ns);
	group = starved ?: sutro_reserved(core, now_ns);
	core->gap = !group && core->protect.reserved;
	if (group && !group->queued && sutro_commit_waits(core, group))
		group = NULL;
	if (group && !group->queued) {
		*ret_verdict = sutro_hold_reserved(core, group, now_ns);
		return NULL;
	}
	if (!starved && group && sutro_others_drain(core, group)) {
		*ret_verdict = SUTRO_WAIT;
		return NULL;
	}
	if (group) {
		/* A starved or protected group is served. */
	} else if (core->in_service && sutro_keeps_slice(core)) {
		group = core->in_service;
	} else {
		group = sutro_next_group(core, sutro_may_hold(core));
		if (!group->queued && (sutro_commit_waits(core, group) ||
				       sutro_gap_skips(core, group) ||
				       sutro_others_skip(core, group)))
			group = sutro_next_group(core, false);
		if (group->queued && sutro_slice_ns(core, group))
			sutro_begin_slice(core, group);
	}

	if (!group->queued) {
		*ret_verdict = sutro_hold(core, group, now_ns);
		return NULL;
	}
	/* Protected groups do not wait where others wait for their sake. */
	if (sutro_stands_back(core, group))
		next = sutro_protect_next(core, false);
	beside = next;
	group = next ?: group;
	if (sutro_is_deep(core, group, now_ns)) {
		*ret_verdict = SUTRO_WAIT;
		return NULL;
	}
	if (!starved && (sutro_lets_destage(core, group, now_ns) ||
			 sutro_cache_is_busy(core, group, now_ns))) {
		/* A flush at the device may wait for queued data, so no completion need come. */
		core->idle_until_ns = core->tunables.destaged_ns;
		*ret_verdict = SUTRO_IDLE;
		return NULL;
	}
	sutro_stop_idling(core, SUTRO_IDLE_END_OTHER, now_ns);
	core->starved = starved;
	core->beside = beside;
	*ret_verdict = SUTRO_SERVE;
	return group;
}

/**
 * sutro_core_fits - may a request be sent that was found after sutro_core_select()?
 * @core:	the leaf
 * @cost_ns:	estimate of the request, which may be more than others of its group cost
 * @in_turn:	it is the next one of the group that was selected
 * @now_ns:	the time
 *
 * Return: false if it would not be done when a protected group is back.
 */
bool sutro_core_fits(const struct sutro_core *core, u64 cost_ns, bool in_turn,
		     u64 now_ns)
{
	if (!core->gap || core->tunables.rotational)
		return true;
	if (!in_turn)
		cost_ns *= SUTRO_GAP_SPARE;
	return !sutro_gap_is_over(core, cost_ns, now_ns);
}

/**
 * sutro_core_wait - no request of other groups fits into the gap
 * @core:	the leaf, after sutro_core_fits() was false
 * @now_ns:	the time
 *
 * Return: the action of the caller.
 */
enum sutro_verdict sutro_core_wait(struct sutro_core *core, u64 now_ns)
{
	return sutro_hold_reserved(core, sutro_gap_last(core), now_ns);
}
