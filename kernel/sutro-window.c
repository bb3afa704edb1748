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
 * A cycle begins at a multiple of its length, which is a power of two ns.  So the
 * shared windows of all leaves of a volume fall on the same time without any
 * communication: on a stripe, a request that is split over four leaves would otherwise
 * meet a shared window on one of them four times as often.
 *
 * 2. The shared part of a cycle
 *
 * The sums of the two kinds of windows show the cost of sharing for the protected groups.
 * With the rates X_r in reserved and X_s in shared windows (completions in a second), a
 * shared part p of the time loses p * (1 - X_s / X_r) of their rate alone.  p is the
 * largest part with which
 *
 *  - the loss is at most 1 - protect / 100, 3 % if protect is 97;
 *  - for a latency-sensitive group, at most SUTRO_PROTECT_SLOW of 1024 requests
 *    take longer than twice their mean in reserved windows, so that the 99th percentile
 *    of latency stays below that.  With S slow requests in a second of shared windows,
 *    p is at most that part of X_r / S.  If a cycle has fewer than 1024 / SLOW requests,
 *    they arrive in short windows as in reserved ones: p is at most that part by the part
 *    of requests in shared windows that are slow;
 *
 * The first bound alone leaves others at least (100 - protect) percent of the time, less
 * draining: 0.03 / (1 - phi) of their entitlement, a tenth if phi is 0.7.  p is
 * not less than SUTRO_PROTECT_LEAST, less what other groups receive in gaps: that is
 * what they receive in any case.  With a part g of the time in gaps, p is at most
 * 2 * (p - g), or p - g for a latency-sensitive group: where others have that much, shared
 * windows would only disturb.  Of g, only half of SUTRO_PROTECT_LEAST counts while some group
 * has no request that fits into a gap.  If sharing does no harm, p is 1 less
 * SUTRO_PROTECT_SAMPLE, which keeps X_r known.  Time that protected groups use in the sample
 * is charged as any other: a group of share 0.12 would otherwise have 3 % of the device more,
 * a quarter of its share.
 *
 * Protected groups are not entitled to more than their share phi of the device.  They use a
 * part u of it in reserved windows, and s = u * X_s / X_r in shared ones.  Let v be the most
 * that all groups use in shared windows.  A mix of requests may use several parts of the device
 * at once, so v may be more than 1.  In reserved windows the whole is w = min(v, 1), or u if
 * that is more.  If u > phi * w, p is at least
 *
 *	(u - phi * w) / (u - phi * w + phi * v - s)
 *
 * Then they receive (1 - p) * u + p * s = phi * ((1 - p) * w + p * v).  If s is phi * v or
 * more, they need no protection at the moment, and p is 1 less SUTRO_PROTECT_SAMPLE.
 * When it was that for SUTRO_RELEASE_NS, the groups are released and on trial again
 * (sutro-protect.c).
 *
 * Protection has a price: reserved windows take no more than SUTRO_PROTECT_PRICE times phi.
 * One group of weight 1000 beside 200 of weight 100 is entitled to 5 % of the device, and
 * takes 19 % of the time from the others, not all of it.  While u is less than phi and other
 * groups find no gaps, they have only a third of busy_ns in flight in shared windows, and on
 * a rotational device one request: X_s is higher then, and p is larger.  Protected groups
 * do not wait where others wait for that (sutro-select.c).
 *
 * The trial of a group that becomes protected alone measures X_s.  Otherwise, as long as
 * nothing is known, u = 1 and s = 0 are assumed.  So it is whenever a group becomes
 * protected that was not when these were measured.
 *
 *	a (weight 200) has 8 readers of 4 KiB, b (100) writes 1 MiB, 7.4 ms each.
 *	X_r is 18,000 a second, X_s 400: p = 0.03 / (1 - 0.02) = 3 %.  a's requests use
 *	u = 0.54 of the device, less than phi = 0.67.  So a receives 97 % of its rate
 *	alone.  At 1000:100 all requests in shared windows are slow: the second bound is
 *	4 / 1024 * 18,000 / 400 = 18 %, so p is 3 %, too.
 *
 *	a reads 16 KiB with 16 requests in flight, u = 1, otherwise the same at 200:100,
 *	s = 0.05: p = 0.33 / 0.95 = 35 %, and both receive what they are entitled to.  If
 *	b's writes and a's reads overlap, v = 1.3: p = 0.33 / (0.33 + 0.87 - 0.05) = 29 %.
 *
 * If a group is protected for its latency target, p is at most what that allows
 * (sutro-latency.c).  If time is reserved, p is at most what that leaves (sutro-reserve.c).
 * If no group is protected for its share, p is the lesser of these.
 *
 * 3. The length of a cycle
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
 */
#include <linux/bits.h>
#include <linux/string.h>

#include "sutro-core.h"

#define US 1000ULL
#define MS (1000 * US)

/* Of SUTRO_PROTECT_LEAST, the part of shared windows: they measure the cost of sharing. */
#define SUTRO_PROTECT_LEAST_SHARED 2U
/*
 * The reserved part is at most this many times the share of protected groups.  Of 2, 4 and
 * 8, it is the largest with which others receive their entitled device time in the
 * simulation.
 */
#define SUTRO_PROTECT_PRICE 4U
/* Slow requests, of 1024, that sharing may cause. */
#define SUTRO_PROTECT_SLOW 4U
/* Requests in reserved windows from which on rates, or times, are known. */
#define SUTRO_PROTECT_KNOWN 16U
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
/* Sums are halved when they hold more than this many cycles. */
#define SUTRO_PROTECT_CYCLES 4
/*
 * Groups are released after this time.  The trial that follows takes half a second, in
 * which a group may receive nothing: 3 % of this time.
 */
#define SUTRO_RELEASE_NS (16000 * MS)
/* Weight of the newest sample in the mean time that draining takes: 1/8. */
#define SUTRO_DRAIN_SHIFT 3
/* Shared windows of at least this part of a cycle measure how much of the device all groups use. */
#define SUTRO_MOST_PART (SUTRO_PROTECT_WHOLE / 4)
#define SUTRO_MOST_SHIFT 3
/* They count only if they are this many times as long as an expensive request of others. */
#define SUTRO_MOST_REQUESTS 4
#define SUTRO_MOST_MIN_NS (8 * MS)

/**
 * sutro_window_halve - halve a sum, so that it counts less than newer samples
 * @sums:	the sum
 */
void sutro_window_halve(struct sutro_protect_sums *sums)
{
	sums->time_ns /= 2;
	sums->all_ns /= 2;
	sums->cost_ns /= 2;
	sums->took_us /= 2;
	sums->nr /= 2;
	sums->nr_seen /= 2;
	sums->nr_slow /= 2;
}

/*
 * Requests per second: the mean of arrivals and completions, because a window may begin or
 * end between both.
 */
static u64 sutro_window_rate(const struct sutro_protect_sums *sums)
{
	return div64_u64(sums->nr_seen * 500 * MS, max(sums->time_ns, 1ULL));
}

/* A part of a time, of SUTRO_PROTECT_WHOLE. */
static u64 sutro_part_of(u64 part_ns, u64 time_ns)
{
	return div64_u64(part_ns * SUTRO_PROTECT_WHOLE, max(time_ns, 1ULL));
}

/* The part of the time that protected groups use in reserved windows. */
static u64 sutro_window_used(const struct sutro_protect *protect)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];

	return sutro_part_of(alone->cost_ns, alone->time_ns);
}

/*
 * Learn from shared windows how much use is the whole device.  At the beginning of a window
 * few requests complete, so short windows yield only a lower bound.  In too short a time,
 * one completion looks like more than the whole.
 */
static void sutro_window_learn_most(struct sutro_protect *protect)
{
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];
	s64 used = sutro_part_of(shared->all_ns, shared->time_ns);

	if (shared->time_ns <
	    max(SUTRO_MOST_REQUESTS * protect->other_ns, SUTRO_MOST_MIN_NS))
		return;
	if (used > protect->most)
		protect->most = used;
	else if (protect->part >= SUTRO_MOST_PART && !protect->gentle)
		protect->most -= (protect->most - used) >> SUTRO_MOST_SHIFT;
}

/**
 * sutro_window_init - reset the measurements of the windows
 * @protect:	the protection
 */
void sutro_window_init(struct sutro_protect *protect)
{
	memset(protect->sums, 0, sizeof(protect->sums));
	protect->most = 0;
	protect->cycle_ns = SUTRO_PROTECT_CYCLE_FIRST_NS;
	protect->part = SUTRO_PROTECT_WHOLE;
}

/* The part of reserved windows that other groups use in gaps. */
static u64 sutro_window_gaps(const struct sutro_protect *protect)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];

	return sutro_part_of(alone->all_ns - alone->cost_ns, alone->time_ns);
}

/* The part that other groups have in any case, less @gaps. */
static u64 sutro_window_least(u64 gaps)
{
	return SUTRO_PROTECT_LEAST -
	       min_t(u64, gaps,
		     SUTRO_PROTECT_LEAST - SUTRO_PROTECT_LEAST_SHARED);
}

/*
 * The shared part with which SUTRO_PROTECT_SLOW of 1024 requests are slow.  A second of shared
 * windows has a number of slow requests, of @rate that complete in a second of all time.  With
 * few requests in a cycle they arrive in short windows as in reserved ones, and each cycle has
 * a slow one.
 */
static u64 sutro_window_prompt(const struct sutro_protect *protect, u64 rate)
{
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];
	u64 in_cycle = rate * div64_u64(protect->cycle_ns, US);

	if (in_cycle * SUTRO_PROTECT_SLOW < SUTRO_PROTECT_WHOLE * MS)
		return div64_u64(SUTRO_PROTECT_SLOW * shared->nr,
				 shared->nr_slow);
	return div64_u64(SUTRO_PROTECT_SLOW * rate *
				 div64_u64(shared->time_ns, US),
			 shared->nr_slow * MS);
}

/* The largest shared part that costs protected groups no more than is allowed. */
static u64 sutro_window_harmless(const struct sutro_core *core)
{
	const struct sutro_protect_sums *sums = core->protect.sums;
	const struct sutro_protect_sums *shared = &sums[SUTRO_WINDOW_SHARED];
	u64 rate = max(sutro_window_rate(&sums[SUTRO_WINDOW_RESERVED]), 1ULL);
	u64 shared_rate = min(sutro_window_rate(shared), rate);
	u64 loss = (100 - core->tunables.protect) * SUTRO_PROTECT_WHOLE / 100;
	u64 gaps = sutro_window_gaps(&core->protect);
	u64 part = SUTRO_PROTECT_MOST_PART, rest;

	if (shared_rate < rate)
		part = min(part, div64_u64(loss * rate, rate - shared_rate));
	if (core->protect.sensitive && shared->nr_slow)
		part = min(part, sutro_window_prompt(&core->protect, rate));
	/* Not all groups can use gaps. */
	if (core->protect.unfit)
		gaps = min_t(u64, gaps, SUTRO_PROTECT_LEAST / 2);
	rest = part - min(part, gaps);
	part = min(part, core->protect.sensitive ? rest : 2 * rest);
	return max(part, sutro_window_least(gaps));
}

/*
 * The smallest shared part with which protected groups receive their share.  Estimates of
 * costs are right in proportion only, so the whole is the most that is used in windows of
 * either kind.  Of that, only what exceeds the time is not there in reserved windows.
 */
static u64 sutro_window_entitled(const struct sutro_protect *protect, u64 share,
				 bool known)
{
	const struct sutro_protect_sums *sums = protect->sums;
	u64 rate = max(sutro_window_rate(&sums[SUTRO_WINDOW_RESERVED]), 1ULL);
	u64 shared_rate =
		min(sutro_window_rate(&sums[SUTRO_WINDOW_SHARED]), rate);
	u64 used = SUTRO_PROTECT_WHOLE, shared_used = 0;
	u64 whole = SUTRO_PROTECT_WHOLE, shared_whole = SUTRO_PROTECT_WHOLE;
	u64 due, shared_due;

	if (known) {
		used = sutro_window_used(protect);
		shared_used = div64_u64(used * shared_rate, rate);
		shared_whole = max_t(u64, protect->most, used);
		whole = max(used, min(shared_whole, whole));
	}
	due = share * whole / SUTRO_PROTECT_WHOLE;
	shared_due = share * shared_whole / SUTRO_PROTECT_WHOLE;
	if (used <= due)
		return 0;
	return div64_u64((used - due) * SUTRO_PROTECT_WHOLE,
			 used - due + shared_due -
				 min(shared_used, shared_due));
}

/*
 * Are the rates of protected groups known?  Requests count by arrival and completion: those
 * of a deep group wait for longer than a window, and none is sent and completes in one.
 */
static bool sutro_window_is_known(const struct sutro_protect *protect)
{
	return protect->sums[SUTRO_WINDOW_RESERVED].nr_seen >=
	       2 * SUTRO_PROTECT_KNOWN;
}

static u32 sutro_window_part(struct sutro_core *core, u64 share)
{
	struct sutro_protect *protect = &core->protect;
	u32 most = SUTRO_PROTECT_WHOLE -
		   clamp(protect->reserve, SUTRO_PROTECT_SAMPLE,
			 SUTRO_PROTECT_WHOLE - SUTRO_PROTECT_LEAST);
	bool known = sutro_window_is_known(protect);
	u64 part, entitled;

	protect->gentle = false;
	if (protect->by_target)
		most = min(most, protect->target_part);
	if (!protect->by_share)
		return most;
	part = known ? sutro_window_harmless(core) : SUTRO_PROTECT_LEAST;
	entitled = sutro_window_entitled(protect, share, known);
	/* In gaps, others send as much as can complete in them. */
	protect->gentle =
		known && !entitled &&
		(core->tunables.rotational || !sutro_window_gaps(protect));
	part = max(part, entitled);
	/* Others do not lose the device for a group that is entitled to little of it. */
	if (SUTRO_PROTECT_PRICE * share < SUTRO_PROTECT_WHOLE)
		part = max(part,
			   SUTRO_PROTECT_WHOLE - SUTRO_PROTECT_PRICE * share);
	return min_t(u64, part, most);
}

/* How long shall cycles be? */
static u64 sutro_window_cycle_ns(const struct sutro_protect *protect, u32 depth)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];
	u32 rounds = protect->by_target
			     ? SUTRO_PROTECT_ROUNDS
			     : min(SUTRO_PROTECT_ROUNDS,
				   SUTRO_PROTECT_FEW_ROUNDS *
					   SUTRO_PROTECT_WHOLE / protect->part);
	u32 less = min(protect->part, SUTRO_PROTECT_WHOLE - protect->part);
	u64 target_ns = div64_u64(alone->time_ns, max(alone->nr, 1ULL)) *
			max(depth, 1U) * rounds;
	u64 cycle_ns = SUTRO_PROTECT_CYCLE_MIN_NS;

	if (!protect->sensitive)
		target_ns = min_t(u64, target_ns, SUTRO_PROTECT_CYCLE_RATE_NS);
	target_ns = max(target_ns, sutro_reserve_cycle_ns(protect));
	target_ns =
		max(target_ns,
		    div_u64(2 * protect->drain_ns * SUTRO_PROTECT_WHOLE, less));
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

/* Halve the sums of windows, so that older windows count less. */
static void sutro_window_age(struct sutro_protect *protect)
{
	u64 enough_ns = SUTRO_PROTECT_CYCLES * protect->cycle_ns;
	struct sutro_protect_sums *sums = protect->sums;

	if (sums[SUTRO_WINDOW_RESERVED].time_ns < enough_ns)
		return;
	sutro_window_halve(&sums[SUTRO_WINDOW_RESERVED]);
	/* Debts may have left no shared windows; their sums stay. */
	if (sums[SUTRO_WINDOW_SHARED].time_ns * SUTRO_PROTECT_WHOLE * 2 >=
	    enough_ns * protect->part)
		sutro_window_halve(&sums[SUTRO_WINDOW_SHARED]);
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

	sutro_window_learn_most(protect);
	protect->part = sutro_window_part(core, share);
	sutro_window_resize(protect, sutro_window_cycle_ns(protect, depth),
			    now_ns);
	if (alone->nr >= SUTRO_PROTECT_KNOWN) {
		slow_ns = min_t(u64,
				div64_u64(2 * US * alone->took_us, alone->nr),
				U32_MAX);
		list_for_each_entry(own, &protect->groups, list)
			WRITE_ONCE(own->slow_ns, slow_ns);
	}
	if (sutro_window_is_known(protect))
		sutro_window_age(protect);
}

/* Nearly all of the time was shared for long: is protection needed? */
static bool sutro_window_releases(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;

	if (protect->part < SUTRO_PROTECT_MOST_PART || !protect->by_share) {
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

/* Begin a cycle, or adapt it after weights or protected groups have changed. */
static void sutro_window_cycle(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	u64 begin_ns, share;
	s64 shared_ns;
	bool begins;
	u32 depth;

	begins = now_ns - protect->begin_ns >= protect->cycle_ns;
	share = sutro_protect_share(core, begins, &depth, now_ns);
	protect->changed = false;
	sutro_window_adapt(core, share, depth, now_ns);
	if (begins)
		protect->unfit = false;
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
	protect->shared_ns = begin_ns + shared_ns - protect->paid_ns;
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
	protect->sum_ns = now_ns;
}

/**
 * sutro_window_owe - other groups have used the device beyond their shared windows
 * @protect:	the protection
 * @ns:		the time for which they used it
 */
void sutro_window_owe(struct sutro_protect *protect, u64 ns)
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
	if (ends && protect->reserved && !protect->clear) {
		/* Draining took longer than the window, so its length is only known to be more. */
		if (sutro_window_owes(protect))
			protect->drain_ns =
				max_t(u64, protect->drain_ns,
				      sutro_window_drain_ns(protect, now_ns));
		else
			sutro_window_drained(protect, now_ns);
	}
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
		/* The end of the shared window may be noticed late. */
		if (protect->clear && !sutro_window_owes(protect))
			sutro_window_drained(protect, protect->other_done_ns);
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
