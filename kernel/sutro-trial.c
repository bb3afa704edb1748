// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: does a favoured group need protection, or another one slices?
 *
 * From time to time the device time that a favoured group got is compared with its due:
 * its share of the time that all groups have used in shared windows while it had
 * requests.  It needs protection (sutro-protect.c) if it got less than
 * SUTRO_TRIAL_ENTITLED percent of that.  Groups that have a backlog get their share by
 * weight and need none; of those that are able to have one, less than SUTRO_TRIAL_SHORT
 * percent is expected before they are protected.  A group is able to if it had more
 * requests at once than the device needs to be busy: on a rotational one, more than one.
 *
 * While others are protected, reserved windows count as used, too, unless these are entitled to
 * more than SUTRO_PROTECT_SENSITIVE times as much.  There may be hardly any shared windows: the
 * group has its share of these, and next to nothing of the device.  A lighter group pays so for
 * their latency.  One that had less than TRIAL_FAR percent of its due in TRIAL_FAR_NR trials, one
 * after another, is far short, and becomes protected with queued requests.  So is one that had less
 * than TRIAL_FARTHEST percent of TRIAL_FARTHEST_DUE_NS or more in one trial: a trial ends when
 * requests of its group complete, which takes seconds then.
 *
 *	A slice (weight 1000) has a database (200) that reads 4 KiB at a time, and c (100), which
 *	has 32 reads of 16 KiB; b (100) writes 1 MiB.  The database is protected, and 3 % of the
 *	time is shared.  c had a third of that by its weight, and was entitled to 0.3 of the
 *	device.  In 0.1 s it is due 30 ms and got 3.
 *
 *	A service (weight 500) reads now and then, and eight groups (100) have many requests, of
 *	which those of 4 and 16 KiB fit into gaps.  a (482) writes 128 KiB.  It has 19 percent of
 *	its due in a trial of 1.5 s, and 0 and 3 percent in two more, which end 4.3 s later
 *	(tests/sim/draws.py --unlike 1011 1).
 *
 *	Without slices, a database (weight 400) has 8 readers that think for 2 ms, c (200) has 16
 *	reads of 8 KiB, and b (100) writes.  c got 5 percent of its due or less in each trial.
 *
 * The share is no measure of latency.  A group whose latency is protected, and that is not
 * able to have a backlog, needs protection after each trial.  If sharing does it no harm,
 * nearly all of the time is shared (sutro-window.c).  If it has one request at a time, its trial
 * on flash ends after TRIAL_FEW of them: others may fill the cache of a drive meanwhile, whose
 * work delays the group for seconds.  With more requests, costs have to be known first, which
 * show whether it has a backlog.  On a rotational device, the trial also shows for how long the
 * group thinks.
 *
 *	a (weight 500) reads 4 KiB at a time, b (100) writes 1 MiB with 32 in flight.  In a
 *	trial of 512 ms a got 10 of 427 ms that it was entitled to.
 *
 *	a (weight 500) reads 4 KiB and thinks for 1 ms, b (100) writes 1 MiB at a time in 8.4 ms.
 *	The bus has the data after 7.5 ms, and reads for a: these reads complete before the
 *	write for which they have waited, and a has no request when that counts as used.  But
 *	the write was there for all of the 7.4 ms of a read, and a was due 0.83 of them.
 *
 *	a (weight 1000) reads 4 KiB at a time, b (100) writes 4 KiB to random places of a
 *	drive that is nearly full.  In half a second, the cache takes 4,000 writes.  The
 *	flash needs 1 ms for each: reads of a would wait for garbage collection for 4 s.
 *
 * A group that comes to a device at work may have next to nothing from the first request on: with
 * less than TRIAL_FARTHEST percent of its due, its trial ends after TRIAL_PLAIN requests.  If it
 * has one at a time, the first one is enough: the second one may wait for a probe, up to 0.1 s.
 * While a device begins to work, costs are guesses and its cache is empty: a trial goes on then.
 *
 *	b (weight 100) writes 1 MiB, 7.4 ms each, and has nine at the device.  Then a (1000) reads
 *	4 KiB at a time for a second.  Its first read waits for these, and each of the next ones for
 *	one or two.  After 16 reads, a third of the second is over.  Now a is protected after the
 *	first one, and has 0.89 of its bytes alone (tests/sim/test_short_jobs.py).
 *
 * Before the first probes of the classes that are in use (sutro-probe.c), costs are guesses, and
 * so are the times that groups got.  A share is not decided by these for TRIAL_LONG_NS: protection
 * delays the probes, and wrong costs may keep groups protected that need it not.  A trial does not
 * begin anew when costs are known, for that delays protection where it is needed.
 *
 *	16 groups with 64 requests each: reads and writes of 4 to 256 KiB.  After 0.2 s, before
 *	writes of 256 KiB were measured, one seemed to be short.  While it was protected, charges of
 *	writes were four times too high for 16 s.
 *
 * A trial also measures the rate of a group in shared windows (sutro-window.c).
 */
#include "sutro-core.h"

#define MS (1000 * 1000ULL)

/*
 * A trial takes until its group was entitled to TRIAL_DUE_NS.  Where its share decides, it
 * takes at least TRIAL_MIN_NS, or longer, up to TRIAL_MAX_NS, while fewer than TRIAL_NR of its
 * requests have completed.  It takes up to TRIAL_LONG_NS while there are fewer than TRIAL_FEW,
 * while costs are guesses, or if the group got between TRIAL_SHORT and TRIAL_ENTITLED percent and
 * was not protected lately: on a stripe, the shares of one leaf change from moment to moment.  With
 * slices for its sake (sutro-slices.c) its requests decide, not its share.
 */
#define SUTRO_TRIAL_MIN_NS (128 * MS)
#define SUTRO_TRIAL_MAX_NS (512 * MS)
#define SUTRO_TRIAL_LONG_NS (1024 * MS)
#define SUTRO_TRIAL_DUE_NS (8 * MS)
#define SUTRO_TRIAL_NR 256
#define SUTRO_TRIAL_FEW 16
#define SUTRO_TRIAL_SHORT 75
#define SUTRO_TRIAL_ENTITLED 95
/* The result of a trial weighs as much as this many requests in the sums of windows. */
#define SUTRO_TRIAL_COUNTS 64
/* The shortage must be larger than this many requests of mean cost. */
#define SUTRO_TRIAL_MISSING 4
/*
 * With less than this percent in this many trials, a queue is no backlog.  A trial of a group that
 * has its share may show 60 percent: device time is estimated, and windows are of unlike lengths.
 */
#define SUTRO_TRIAL_FAR 50
#define SUTRO_TRIAL_FAR_NR 3
/* With less than this percent of a due of at least this time, one trial is enough. */
#define SUTRO_TRIAL_FARTHEST 25
#define SUTRO_TRIAL_FARTHEST_DUE_NS (128 * MS)
/*
 * As few of its requests are enough beside others that have used TRIAL_LONG_NS before, and one of a
 * group that has one at a time.
 */
#define SUTRO_TRIAL_PLAIN 2
/* Device time after which a trial looks at the group's share again. */
#define SUTRO_TRIAL_LOOK_NS MS

/**
 * sutro_trial_begin - the trial of a group begins anew
 * @protect:	the protection of the leaf
 * @own:	that of the group
 * @now_ns:	the time
 */
void sutro_trial_begin(const struct sutro_protect *protect,
		       struct sutro_group_protect *own, u64 now_ns)
{
	own->trial_ns = now_ns;
	own->from_ns = protect->used_ns;
	own->from_bytes = protect->shared_bytes;
	own->from_nr = protect->used_nr;
	own->from_shared_ns = now_ns - protect->withheld_ns;
	own->seen_ns = protect->used_ns;
	own->seen_withheld_ns = protect->withheld_ns;
	own->beside_ns = 0;
	own->due_ns = 0;
	own->got_ns = 0;
	own->nr = 0;
	own->depth = 0;
}

/**
 * sutro_trial_shared_ns - how much of a trial was not in reserved windows?
 * @protect:	the protection of the leaf
 * @own:	the protection of the group
 * @now_ns:	the time
 *
 * Reserved time is counted after the completions that end a trial (sutro_protect_completed()).  So
 * some of it may be from before the trial, and be more than the time since then.
 */
u64 sutro_trial_shared_ns(const struct sutro_protect *protect,
			  const struct sutro_group_protect *own, u64 now_ns)
{
	s64 ns = now_ns - protect->withheld_ns - own->from_shared_ns;

	return max_t(s64, ns, 0);
}

/* Did a group have next to nothing since it came to a device that was at work before? */
static bool sutro_trial_is_plain(const struct sutro_group_protect *own,
				 u32 percent)
{
	u32 enough = own->depth == 1 ? 1 : SUTRO_TRIAL_PLAIN;

	return percent < SUTRO_TRIAL_FARTHEST && own->nr >= enough &&
	       own->from_ns >= SUTRO_TRIAL_LONG_NS;
}

/*
 * Is the trial long enough to decide whether a group needs protection?  If its latency decides
 * (@by_latency), the share that it got does not matter; if its share does, costs have to be known,
 * unless it seems to need protection (@needs), and that is plain.
 */
static bool sutro_trial_ends(const struct sutro_core *core,
			     const struct sutro_group_protect *own, u32 percent,
			     bool by_latency, bool needs, u64 now_ns)
{
	u64 length_ns = now_ns - own->trial_ns;
	bool doubtful = percent >= SUTRO_TRIAL_SHORT &&
			percent < SUTRO_TRIAL_ENTITLED &&
			own->epoch != core->protect.epoch;

	if (by_latency && own->nr >= SUTRO_TRIAL_FEW)
		return true;
	if (needs && sutro_trial_is_plain(own, percent))
		return true;
	if (length_ns < SUTRO_TRIAL_MIN_NS)
		return false;
	if (own->nr < SUTRO_TRIAL_FEW ||
	    ((doubtful || core->tunables.guessing) &&
	     !sutro_slices_are_for(core, own)))
		return length_ns >= SUTRO_TRIAL_LONG_NS;
	return length_ns >= SUTRO_TRIAL_MAX_NS || own->nr >= SUTRO_TRIAL_NR;
}

/*
 * Did a group have more requests at once than the device needs to be busy?  If so it can
 * have a backlog, and its shortage may come from another leaf of its volume.
 */
static bool sutro_trial_deep(const struct sutro_core *core,
			     const struct sutro_group_protect *own)
{
	if (core->tunables.rotational)
		return own->depth > 1;
	return own->depth * own->got_ns >
	       (u64)core->tunables.depth_ns * own->nr;
}

/* A class that precedes others has a backlog only if the whole device is not enough for it. */
static bool sutro_trial_precedes(const struct sutro_group *group)
{
	for (; group->parent; group = group->parent)
		if (group->entity.class == SUTRO_CLASS_RT)
			return true;
	return false;
}

/**
 * sutro_trial_back - a group without requests is back
 * @core:	the leaf
 * @group:	the group, which was favoured
 * @now_ns:	the time
 *
 * Device time used while the group had no requests does not count in its trial.
 */
void sutro_trial_back(const struct sutro_core *core, struct sutro_group *group,
		      u64 now_ns)
{
	struct sutro_group_protect *own = group->protect;

	own->seen_ns = core->protect.used_ns;
	own->seen_withheld_ns = core->protect.withheld_ns;
	own->came_ns = now_ns;
	own->beside_ns = core->in_flight_ns;
}

static u64 sutro_trial_share(const struct sutro_group *group)
{
	return min(sutro_group_share(group, SUTRO_PROTECT_WHOLE),
		   SUTRO_PROTECT_MOST);
}

/* Is a group entitled to enough for reserved windows to count as time that it is due a part of? */
static bool sutro_trial_counts_reserved(const struct sutro_protect *protect,
					u64 share)
{
	return share * SUTRO_PROTECT_SENSITIVE >= protect->share;
}

/*
 * The device time of which a group was due its share, since the last look.  It is known when
 * requests complete, and the device works on them before: on those that it had when the group
 * came, or as long as the group was there.
 */
static u64 sutro_trial_used(const struct sutro_protect *protect,
			    struct sutro_group_protect *own, u64 share,
			    u64 now_ns)
{
	u64 used_ns = protect->used_ns - own->seen_ns;
	u64 withheld_ns = protect->withheld_ns - own->seen_withheld_ns;
	u64 beside_ns = min(own->beside_ns, now_ns - own->came_ns);

	own->seen_ns = protect->used_ns;
	own->seen_withheld_ns = protect->withheld_ns;
	own->beside_ns = 0;
	if (!sutro_trial_counts_reserved(protect, share))
		withheld_ns = 0;
	return max(used_ns, beside_ns) + withheld_ns;
}

/*
 * Trials, one after another, in which a group that waits was far short beside protected ones.  One
 * in which it had next to nothing counts as all that are needed.
 */
static u8 sutro_trial_far_nr(const struct sutro_protect *protect,
			     const struct sutro_group_protect *own, u32 percent,
			     u64 share)
{
	if (!own->needed || !own->group->queued || !sutro_protects(protect) ||
	    percent >= SUTRO_TRIAL_FAR ||
	    !sutro_trial_counts_reserved(protect, share))
		return 0;
	if (percent < SUTRO_TRIAL_FARTHEST &&
	    own->due_ns >= SUTRO_TRIAL_FARTHEST_DUE_NS)
		return SUTRO_TRIAL_FAR_NR;
	return min(own->far_nr + 1, SUTRO_TRIAL_FAR_NR);
}

/**
 * sutro_trial_is_far_short - is the share of a group too small, however many requests it queues?
 * @own:	the protection of the group, which needs it
 */
bool sutro_trial_is_far_short(const struct sutro_group_protect *own)
{
	return own->far_nr == SUTRO_TRIAL_FAR_NR;
}

/* The trial of a group goes on or ends. */
static void sutro_trial_look(struct sutro_core *core, struct sutro_group *group,
			     u64 now_ns)
{
	const struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *own = group->protect;
	u64 share = sutro_trial_share(group);
	u32 percent, entitled = SUTRO_TRIAL_ENTITLED;
	bool deep, by_latency, needed, begins;
	u64 missing_ns;

	/* A flush may be over before its begin is known, and is dated then. */
	now_ns = max3(now_ns, own->came_ns, own->trial_ns);
	own->due_ns += sutro_trial_used(protect, own, share, now_ns) * share /
		       SUTRO_PROTECT_WHOLE;
	/* Most looks end here, one after each request of a group that has one at a time. */
	if (own->due_ns < SUTRO_TRIAL_DUE_NS)
		return;
	percent = div64_u64(100 * own->got_ns, max(own->due_ns, 1ULL));
	deep = sutro_trial_deep(core, own);
	by_latency = !deep &&
		     sutro_group_favoured(group, SUTRO_PROTECT_SENSITIVE);
	missing_ns = own->due_ns - min(own->got_ns, own->due_ns);
	if (deep && !sutro_trial_precedes(group))
		entitled = SUTRO_TRIAL_SHORT;
	needed = by_latency ||
		 (percent < entitled &&
		  missing_ns * (protect->used_nr - own->from_nr) >
			  SUTRO_TRIAL_MISSING *
				  (protect->used_ns - own->from_ns));
	if (!sutro_trial_ends(core, own, percent,
			      by_latency && own->depth == 1 &&
				      !core->tunables.rotational,
			      needed && !deep && !core->tunables.rotational &&
				      sutro_group_favoured_inside(group),
			      now_ns))
		return;
	if (sutro_slices_judge(core, own, now_ns)) {
		sutro_trial_begin(protect, own, now_ns);
		return;
	}
	begins = needed && !deep && sutro_slices_worth(core, own);
	own->needed = needed;
	own->far_nr = sutro_trial_far_nr(protect, own, percent, share);
	own->shared = (struct sutro_protect_sums){
		.time_ns = sutro_trial_shared_ns(protect, own, now_ns),
		.all_ns = protect->used_ns - own->from_ns,
		.all_bytes = protect->shared_bytes - own->from_bytes,
		.cost_ns = own->got_ns,
		.nr_seen = 2 * own->nr,
	};
	while (own->shared.nr_seen / 2 > SUTRO_TRIAL_COUNTS)
		sutro_window_halve(&own->shared);
	sutro_trial_begin(protect, own, now_ns);
	if (begins)
		sutro_slices_begin(core, own, now_ns);
}

/**
 * sutro_trial_completed - requests of an unprotected group, or in a shared window, have completed
 * @core:	the leaf
 * @group:	the group
 * @nr:		how many
 * @cost_ns:	their device time
 * @now_ns:	the time
 */
void sutro_trial_completed(struct sutro_core *core, struct sutro_group *group,
			   u32 nr, u64 cost_ns, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *own = group->protect;
	u64 passed_ns;

	if (!protect->clear) {
		protect->used_ns += cost_ns;
		protect->used_nr += nr;
	}
	if (!own || sutro_group_protected(group) ||
	    (protect->clear &&
	     !sutro_trial_counts_reserved(protect, sutro_trial_share(group))))
		return;
	own->got_ns += cost_ns;
	own->nr += nr;
	passed_ns = protect->used_ns - own->seen_ns + protect->withheld_ns -
		    own->seen_withheld_ns;
	if (!(group->queued || group->in_flight) ||
	    passed_ns >= SUTRO_TRIAL_LOOK_NS)
		sutro_trial_look(core, group, now_ns);
}
