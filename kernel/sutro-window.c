// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: windows in which protected groups have the device for themselves.
 *
 * 1. Cycles
 *
 * While groups are protected (sutro-protect.c), time is divided into cycles, and each
 * cycle into a shared window, in which requests of all groups are sent, and a reserved
 * window, in which those of protected groups are.
 *
 * Requests of other groups may still be at the device when a shared window ends.  The
 * time until the last one completes (drain) is a debt, as is a probe (sutro-probe.c) that
 * goes on: later shared windows are shorter by it, down to nothing, for
 * SUTRO_PROTECT_DEBT cycles at most.
 *
 * Where protected groups of a slice use more than their shares, a shared window is longer
 * (sutro-excess.c).
 *
 * A cycle begins at a multiple of its length, which is a power of two ns.  So the
 * shared windows of all leaves of a volume fall on the same time without any
 * communication: on a stripe, a request that is split over four leaves would otherwise
 * meet a shared window on one of them four times as often.
 *
 * A cycle is adapted before its end when a setting or the set of protected groups has changed
 * (sutro-protected.c).  Its shared part is set by the rates in both kinds of windows
 * (sutro-part.c), and is the same on all leaves of a group (sutro-volume.c).
 *
 * 2. The length of a cycle
 *
 * One request for each that a group keeps in flight meets the shared window of a
 * cycle.  For less than 1 % of all requests to do so, a cycle takes as long as
 * SUTRO_PROTECT_ROUNDS of them: ROUNDS * depth / X_r.  Where p is large, many requests meet
 * shared windows in any case, and FEW_ROUNDS / p rounds are enough.  Where only the rate is
 * protected, a cycle takes SUTRO_PROTECT_CYCLE_RATE_NS at most.  It also has to be so long
 * that draining takes less than half of either window.
 *
 *	8 readers at 18,000 a second: 128 * 8 / 18,000 = 57 ms; a drain of 4 ms at
 *	p = 3 % needs 267 ms: a cycle of 2^28 ns.
 *
 * A group that no weight favours may be protected because it is entitled to as much as the
 * slice of a favoured one.  It waits in a part of each cycle.  The owner of that slice could make
 * it wait for long by weights in the slice, which make p small.  So on flash such a cycle takes
 * at most SUTRO_PROTECT_CYCLE_RATE_NS, too, whatever draining takes.  With seeks, draining takes so
 * long that a unit of a slice would lose its floor.
 *
 *	a (weight 100) has 32 reads of 64 KiB, a slice of 100 has a database and writes of 1 MiB.
 *	With weights of 10000 and 1 in the slice, P99 of a was 377 ms.  It is 88 ms with this limit,
 *	45 ms with sections (sutro-section.c), and 31 ms beside 32 other reads.  The rate of the
 *	database is the same.
 *
 * 3. Groups that change their work
 *
 * The sums are of some cycles' worth of reserved windows.  Where nearly all of the time is
 * shared, this is a long time, and the shared part would follow a change of work as late.
 * So where half of the time or more is shared, requests in shared windows are counted between
 * two cycles.  If they come twice as fast as before, or half as fast, the sums begin anew.  So they
 * do on flash if a request costs twice as much in the mean, or half: a group that has less to do
 * at a time sends smaller requests, not always more of them.
 *
 *	a (weight 300) thinks for 20 ms after each four reads, 190 in a second: sharing does
 *	it no harm, and 97 % of the time is shared.  Then it reads without pauses, and has
 *	600 in a second, and 2880 alone.  A cycle of 134 ms shows the change.  Without
 *	this, it takes 18 s.
 *
 *	a (weight 150, beside eight of 100) has four reads of 128 KiB at once, and more than its
 *	share.  Then it has one of 32 KiB.  The disk serves 75 of the first kind in a second, and
 *	about 150 of the second one: by the rate, half of such changes were not seen.
 */
#include <linux/bits.h>
#include <linux/string.h>

#include "sutro-section.h"

#define US 1000ULL
#define MS (1000 * US)

/*
 * The length of a cycle in rounds: requests of a protected group for each one that it
 * has in flight.  The first is for its latency.  The second one, divided by the shared
 * part, is for large shared parts.
 */
#define SUTRO_PROTECT_ROUNDS 128U
#define SUTRO_PROTECT_FEW_ROUNDS 16U
/* Length of a cycle: 8 ms to 1 s; 34 ms to begin with. */
#define SUTRO_PROTECT_CYCLE_MIN_NS BIT_ULL(23)
#define SUTRO_PROTECT_CYCLE_FIRST_NS BIT_ULL(25)
#define SUTRO_PROTECT_CYCLE_MAX_NS BIT_ULL(30)
/* Longer cycles only for latency, or for requests of others that take long. */
#define SUTRO_PROTECT_CYCLE_RATE_NS BIT_ULL(27)
/* At most this many shared windows are left out for a debt. */
#define SUTRO_PROTECT_DEBT 4
/* Requests seen in shared windows after which their rate is compared with that before. */
#define SUTRO_WINDOW_COMPARED (4 * SUTRO_PROTECT_KNOWN)
/* Sums are halved when they hold more than this many cycles. */
#define SUTRO_PROTECT_CYCLES 4
/*
 * Groups are released after this time.  The trial that follows takes half a second, in
 * which a group may receive nothing: 3 % of this time.
 */
#define SUTRO_RELEASE_NS (16000 * MS)
/* Weight of the newest sample in the mean time that draining takes: 1/8. */
#define SUTRO_DRAIN_SHIFT 3
/**
 * sutro_window_halve - halve a sum, so that it counts less than newer samples
 * @sums:	the sum
 */
void sutro_window_halve(struct sutro_protect_sums *sums)
{
	sums->time_ns /= 2;
	sums->all_ns /= 2;
	sums->all_bytes /= 2;
	sums->cost_ns /= 2;
	sums->took_us /= 2;
	sums->nr /= 2;
	sums->nr_seen /= 2;
	sums->nr_slow /= 2;
}

/**
 * sutro_window_init - reset the measurements of the windows
 * @protect:	the protection
 */
void sutro_window_init(struct sutro_protect *protect)
{
	memset(protect->sums, 0, sizeof(protect->sums));
	protect->mark_nr = 0;
	protect->sporadic = false;
	protect->most = 0;
	protect->cycle_ns = SUTRO_PROTECT_CYCLE_FIRST_NS;
	protect->part = SUTRO_PROTECT_WHOLE;
	protect->others = SUTRO_PROTECT_WHOLE;
}

/* Does a group wait in each cycle for others that are entitled to no more, for their rate only? */
static bool sutro_window_is_bounded(const struct sutro_protect *protect)
{
	return protect->keeps_up && !protect->sensitive && !protect->reserve;
}

/**
 * sutro_window_round_ns - how long take as many requests as protected groups have at once?
 * @protect:	the protection
 * @depth:	how many these are
 *
 * Return: 0 or a large number if it is not known.
 */
u64 sutro_window_round_ns(const struct sutro_protect *protect, u32 depth)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];

	return div64_u64(alone->time_ns, max(alone->nr, 1ULL)) * max(depth, 1U);
}

/* How long shall cycles be? */
static u64 sutro_window_cycle_ns(const struct sutro_protect *protect, u32 depth)
{
	u32 rounds = protect->by_target
			     ? SUTRO_PROTECT_ROUNDS
			     : min(SUTRO_PROTECT_ROUNDS,
				   SUTRO_PROTECT_FEW_ROUNDS *
					   SUTRO_PROTECT_WHOLE / protect->part);
	u32 less = min(protect->part, SUTRO_PROTECT_WHOLE - protect->part);
	u64 target_ns = sutro_window_round_ns(protect, depth) * rounds;
	u64 cycle_ns = SUTRO_PROTECT_CYCLE_MIN_NS;

	if (!protect->sensitive)
		target_ns = min_t(u64, target_ns, SUTRO_PROTECT_CYCLE_RATE_NS);
	target_ns = max(target_ns, sutro_reserve_cycle_ns(protect));
	target_ns =
		max(target_ns,
		    div_u64(2 * protect->drain_ns * SUTRO_PROTECT_WHOLE, less));
	if (sutro_window_is_bounded(protect))
		target_ns = min_t(u64, target_ns, SUTRO_PROTECT_CYCLE_RATE_NS);
	while (cycle_ns < SUTRO_PROTECT_CYCLE_MAX_NS && cycle_ns < target_ns)
		cycle_ns *= 2;
	return cycle_ns;
}

/*
 * Cycles get longer by doubling, at a time at which a longer one begins, so that none
 * is cut.
 */
static void sutro_window_resize(struct sutro_protect *protect, u64 cycle_ns,
				u64 now_ns)
{
	u64 begin_ns = now_ns & ~(protect->cycle_ns - 1);

	/* Leaves of one volume measure nearly the same, and need the same. */
	if (cycle_ns < protect->cycle_ns && protect->reserve)
		cycle_ns *= 2;
	if (cycle_ns <= protect->cycle_ns)
		protect->cycle_ns = cycle_ns;
	else if (!(begin_ns & (2 * protect->cycle_ns - 1)))
		protect->cycle_ns *= 2;
}

/*
 * Halve the sums of windows, so that older windows count less.  They are still known then: groups
 * with a request now and then have few in some cycles.
 */
static void sutro_window_age(struct sutro_protect *protect)
{
	u64 enough_ns = SUTRO_PROTECT_CYCLES * protect->cycle_ns;
	struct sutro_protect_sums *sums = protect->sums;

	if (sums[SUTRO_WINDOW_RESERVED].time_ns < enough_ns ||
	    sums[SUTRO_WINDOW_RESERVED].nr_seen < 4 * SUTRO_PROTECT_KNOWN)
		return;
	sutro_window_halve(&sums[SUTRO_WINDOW_RESERVED]);
	/* Debts may have left no shared windows; their sums stay. */
	if (sums[SUTRO_WINDOW_SHARED].time_ns * SUTRO_PROTECT_WHOLE * 2 >=
	    enough_ns * protect->part)
		sutro_window_halve(&sums[SUTRO_WINDOW_SHARED]);
}

/* Is one of two numbers more than twice the other one? */
static bool sutro_window_differs(u64 a, u64 b)
{
	return a > 2 * b || b > 2 * a;
}

/*
 * Where half of the time or more is shared: do requests of protected groups come twice or half as
 * fast as before, or is a mean one twice or half as expensive?  With seeks, costs vary as much
 * while a group goes on.
 */
static bool sutro_window_is_other_work(struct sutro_core *core)
{
	struct sutro_protect *protect = &core->protect;
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];
	u64 nr = shared->nr_seen - protect->mark_nr;
	u64 length_us = div64_u64(shared->time_ns - protect->mark_ns, US);
	u64 mark_us = div64_u64(protect->mark_ns, US);
	u64 before =
		div64_u64(protect->mark_nr * length_us, max(mark_us, 1ULL));
	u64 mark_cost_us = div64_u64(protect->mark_cost_ns, US);
	u64 cost_us = div64_u64(shared->cost_ns, US) - mark_cost_us;
	bool known = protect->by_share &&
		     protect->part >= SUTRO_PROTECT_WHOLE / 2 &&
		     protect->mark_nr >= 2 * SUTRO_PROTECT_KNOWN &&
		     shared->time_ns >= protect->mark_ns &&
		     shared->nr_seen >= protect->mark_nr &&
		     shared->cost_ns >= protect->mark_cost_ns;
	bool other = sutro_window_differs(nr, before) ||
		     (!core->tunables.rotational &&
		      sutro_window_differs(cost_us * protect->mark_nr,
					   mark_cost_us * nr));

	if (known && max(nr, before) < SUTRO_WINDOW_COMPARED)
		return false;
	protect->mark_ns = shared->time_ns;
	protect->mark_nr = shared->nr_seen;
	protect->mark_cost_ns = shared->cost_ns;
	return known && other;
}

/* Set the shared part and the length of cycles by the measurements. */
static void sutro_window_adapt(struct sutro_core *core, u64 share, u32 depth,
			       u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];
	struct sutro_group_protect *own;
	u64 slow_ns;

	if (sutro_window_is_other_work(core)) {
		memset(protect->sums, 0, sizeof(protect->sums));
		protect->mark_nr = 0;
	}
	sutro_part_learn_most(protect);
	protect->part =
		sutro_volume_part(core, sutro_part_shared(core, share), now_ns);
	sutro_window_resize(protect, sutro_window_cycle_ns(protect, depth),
			    now_ns);
	if (alone->nr >= SUTRO_PROTECT_KNOWN) {
		slow_ns = min_t(u64,
				div64_u64(2 * US * alone->took_us, alone->nr),
				U32_MAX);
		list_for_each_entry(own, &protect->groups, list)
			WRITE_ONCE(own->slow_ns, slow_ns);
	}
	if (sutro_part_is_known(protect))
		sutro_window_age(protect);
}

/* Nearly all of the time was shared for long: is protection needed? */
static bool sutro_window_releases(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;

	if (protect->part < SUTRO_PROTECT_MOST_PART || !protect->by_share ||
	    (protect->sporadic && protect->gentle)) {
		protect->full_ns = now_ns;
		return false;
	}
	if (now_ns - protect->full_ns < SUTRO_RELEASE_NS)
		return false;
	sutro_protect_release(core, now_ns);
	return true;
}

/* Does time that other groups use beyond their shared windows become a debt? */
static bool sutro_window_owes(const struct sutro_protect *protect)
{
	return protect->by_share || protect->by_target;
}

/* Begin a cycle, or adapt it after a setting or the set of protected groups has changed. */
static void sutro_window_cycle(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	u64 begin_ns, share;
	s64 shared_ns;
	bool begins;
	u32 depth;

	begins = now_ns - protect->begin_ns >= protect->cycle_ns;
	share = sutro_protect_share(core, begins, &depth, now_ns);
	protect->share = share;
	protect->changed = false;
	if (begins) {
		sutro_excess_end(core);
		sutro_apart_end(core);
	}
	sutro_window_adapt(core, share, depth, now_ns);
	if (begins) {
		protect->unfit = false;
		protect->limited = false;
	}
	if (sutro_window_releases(core, now_ns))
		return;
	begin_ns = now_ns & ~(protect->cycle_ns - 1);
	/*
	 * A debt is paid once in a cycle.  Reserved time, which is a part of the whole,
	 * makes no debt.
	 */
	if (!sutro_window_owes(protect))
		protect->debt_ns = 0;
	else if (begin_ns == protect->begin_ns)
		protect->debt_ns += protect->paid_ns;
	protect->begin_ns = begin_ns;
	shared_ns = protect->cycle_ns * protect->part / SUTRO_PROTECT_WHOLE;
	protect->paid_ns = min(protect->debt_ns, shared_ns);
	protect->debt_ns -= protect->paid_ns;
	shared_ns -= protect->paid_ns;
	shared_ns += sutro_excess_more_ns(protect, shared_ns);
	protect->shared_ns = begin_ns + shared_ns;
	sutro_apart_begin(core, begins, now_ns);
}

/**
 * sutro_window_sum - count the time since the last call
 * @protect:	the protection
 * @now_ns:	the time
 */
void sutro_window_sum(struct sutro_protect *protect, u64 now_ns)
{
	if (!sutro_before(protect->sum_ns, now_ns))
		return;
	protect->sums[protect->clear].time_ns += now_ns - protect->sum_ns;
	if (protect->clear)
		protect->withheld_ns += now_ns - protect->sum_ns;
	sutro_apart_passed(protect, now_ns - protect->sum_ns);
	protect->sum_ns = now_ns;
}

/* Other groups have used the device for @ns beyond their shared windows. */
static void sutro_window_owe(struct sutro_protect *protect, u64 ns)
{
	s64 most_ns = SUTRO_PROTECT_DEBT * protect->cycle_ns * protect->part /
		      SUTRO_PROTECT_WHOLE;

	protect->debt_ns = min_t(s64, protect->debt_ns + ns, most_ns);
}

/* For how long have requests of other groups been at the device after their window? */
static s64 sutro_window_drain_ns(const struct sutro_protect *protect,
				 u64 now_ns)
{
	u64 since_ns = max(protect->shared_ns, protect->cleared_from_ns);

	return max_t(s64, now_ns - since_ns, 0);
}

/* Learn how long requests of other groups took after the end of the shared window. */
static void sutro_window_drained(struct sutro_protect *protect, u64 now_ns)
{
	s64 drain_ns = sutro_window_drain_ns(protect, now_ns);

	sutro_window_owe(protect, drain_ns);
	if (!protect->prolonged)
		protect->drain_ns += (drain_ns - (s64)protect->drain_ns) >>
				     SUTRO_DRAIN_SHIFT;
	protect->prolonged = false;
}

/* The end of a shared window was noticed late: were requests of other groups done before it? */
static void sutro_window_found_clear(struct sutro_protect *protect)
{
	if (sutro_before(protect->shared_ns, protect->other_done_ns))
		sutro_window_drained(protect, protect->other_done_ns);
}

/* A cycle is over, and its reserved window has not shown when requests of others were done. */
static void sutro_window_undrained(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	s64 drain_ns = sutro_window_drain_ns(protect, now_ns);

	if (!sutro_window_owes(protect)) {
		if (protect->reserved)
			sutro_window_drained(protect, now_ns);
	} else if (protect->reserved || core->in_flight > protect->in_flight) {
		/* It took longer than the window, so its length is only known to be more. */
		protect->drain_ns = max_t(u64, protect->drain_ns, drain_ns);
	} else {
		/* Nothing happened in the window until they were done. */
		sutro_window_found_clear(protect);
	}
}

/**
 * sutro_window_look - which window is it?
 * @core:	the leaf, with protected groups
 * @now_ns:	the time
 *
 * To be called before &sutro_protect.reserved is read.
 */
void sutro_window_look(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	bool shared, ends;

	sutro_window_sum(protect, now_ns);
	ends = !sutro_before(now_ns, protect->begin_ns + protect->cycle_ns);
	if (ends && !protect->clear)
		sutro_window_undrained(core, now_ns);
	if (ends || protect->changed)
		sutro_window_cycle(core, now_ns);
	shared = sutro_before(now_ns, protect->shared_ns);
	/* A probe needs requests of other groups. */
	if (!shared && core->tunables.probing) {
		protect->prolonged = true;
		shared = true;
	}
	if (shared) {
		protect->reserved = false;
		protect->clear = false;
	} else if (!protect->reserved) {
		protect->reserved = true;
		protect->clear = core->in_flight == protect->in_flight;
		protect->clear_ns = now_ns;
		/* With seeks, cycles would become too long for a group that thinks. */
		if (protect->clear &&
		    (!core->tunables.rotational || !sutro_window_owes(protect)))
			sutro_window_found_clear(protect);
	} else {
		sutro_apart_check(protect);
	}
}

/**
 * sutro_window_cleared - no request of another group is at the device any more
 * @protect:	the protection, in a reserved window
 * @now_ns:	the time
 */
void sutro_window_cleared(struct sutro_protect *protect, u64 now_ns)
{
	protect->clear = true;
	protect->clear_ns = now_ns;
	sutro_window_drained(protect, now_ns);
}

/* ---- how long requests took ---- */

/* Which requests of other groups were at the device after a request was submitted? */
static enum sutro_latency_met
sutro_protect_met(const struct sutro_core *core,
		  const struct sutro_latency *latency, u64 submitted_ns)
{
	const struct sutro_protect *protect = &core->protect;

	if (core->nr_active < 2)
		return SUTRO_LATENCY_MET_NONE;
	if (sutro_protects(protect) && protect->by_target && !latency->held)
		return SUTRO_LATENCY_MET_TARGET;
	if (!protect->clear || !sutro_before(protect->clear_ns, submitted_ns) ||
	    (!list_is_singular(&protect->groups) &&
	     (!protect->waited ||
	      !sutro_before(protect->waited_from_ns, submitted_ns))) ||
	    core->in_flight > protect->in_flight ||
	    !sutro_before(protect->other_done_ns, submitted_ns))
		return SUTRO_LATENCY_MET_OTHERS;
	return SUTRO_LATENCY_MET_NONE;
}

/**
 * sutro_protect_took - how long requests took that completed
 * @core:	the leaf
 * @group:	their group
 * @nr:		how many, without flushes and others that are not timed
 * @took_us:	sum of the times since their submission
 * @nr_slow:	how many of them took longer than sutro_protect_slow_ns()
 * @now_ns:	when the last one completed
 *
 * To be called before sutro_core_complete().
 */
void sutro_protect_took(struct sutro_core *core, struct sutro_group *group,
			u32 nr, u64 took_us, u32 nr_slow, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	struct sutro_protect_sums *sums = protect->sums;
	struct sutro_latency *latency;
	enum sutro_latency_met met;
	u64 submitted_ns;

	if (!nr)
		return;
	latency = sutro_latency_get(group);
	if (!latency && !sutro_group_protected(group))
		return;
	submitted_ns = now_ns - div_u64(took_us * US, nr);
	if (latency) {
		met = sutro_protect_met(core, latency, submitted_ns);
		sutro_latency_took(latency, nr, nr_slow, met, now_ns);
		sutro_latency_limit(core, latency, now_ns);
	}
	if (!sutro_group_protected(group))
		return;
	/* Requests that met those of a shared window count as its own. */
	if (protect->clear && sutro_before(protect->clear_ns, submitted_ns))
		sums += SUTRO_WINDOW_RESERVED;
	sums->nr += nr;
	sums->took_us += took_us;
	sums->nr_slow += nr_slow;
}
