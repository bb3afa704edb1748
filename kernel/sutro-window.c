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
 * The sums of the two kinds of windows say what sharing costs the protected groups.
 * With the rates X_r in reserved and X_s in shared windows (completions in a second), a
 * shared part p of the time loses p * (1 - X_s / X_r) of what they receive alone.  p is
 * the largest part with which
 *
 *  - the loss is at most 1 - protect / 100, 2 % if protect is 98;
 *  - at most SUTRO_PROTECT_SLOW of 1024 requests take longer than twice their mean in
 *    reserved windows, so that the 99th percentile of latency stays below that;
 *
 * but not less than SUTRO_PROTECT_LEAST: that is what other groups receive in any case.
 * If sharing does no harm, p is 1 less SUTRO_PROTECT_SAMPLE, which keeps X_r known.
 *
 * A protected group is not entitled to more than its share phi of the device.  If it
 * uses a part u > phi of the device time in reserved windows, and s < phi in shared
 * ones, p is at least (u - phi) / (u - s): then it receives (1 - p) * u + p * s = phi.
 *
 *	a (weight 1000) has 8 readers of 4 KiB, b (100) writes 1 MiB, 7.4 ms each.
 *	X_r is 18,000 a second, X_s 400: p = 0.02 / (1 - 0.02) = 2 %.  a's requests use
 *	u = 0.54 of the device, less than phi = 0.91.  So a receives 98 % of what it
 *	receives alone.  At 200:100 that is the same, as phi = 0.67 > u.
 *
 *	a reads 16 KiB with 16 requests in flight, u = 1, otherwise the same at 200:100,
 *	s = 0.05: p = 0.33 / 0.95 = 35 %, and both receive what they are entitled to.
 *
 * 3. The length of a cycle
 *
 * One request for each that a group keeps in flight meets the shared window of a
 * cycle.  For less than 1 % of all requests to do so, a cycle takes as long as
 * SUTRO_PROTECT_ROUNDS of them: ROUNDS * depth / X_r.  It also has to be so long that
 * draining takes less than half of the shared window.
 *
 *	8 readers at 18,000 a second: 128 * 8 / 18,000 = 57 ms; a drain of 4 ms at
 *	p = 2 % needs 400 ms: a cycle of 2^29 ns.
 *
 * 4. Trials
 *
 * When the first group becomes protected, all windows are shared for a while.  If the
 * protected groups receive their share of the device all the same, they need no
 * protection, and rest: for 1/4 s, then 1/2 s, up to 8 s.  So it is with groups that
 * have a backlog most of the time.  Groups that could use more than their share are
 * tried again from time to time, as they may have got a backlog meanwhile.
 */
#include <linux/bits.h>
#include <linux/string.h>

#include "sutro-core.h"

#define MS (1000 * 1000ULL)

/* Shared part that other groups have in any case, of SUTRO_PROTECT_WHOLE. */
#define SUTRO_PROTECT_LEAST 16U
/* Reserved part that measures how fast protected groups are alone. */
#define SUTRO_PROTECT_SAMPLE 20U
/* Share of a class that others cannot precede. */
#define SUTRO_PROTECT_MOST \
	(SUTRO_PROTECT_WHOLE * (u64)SUTRO_AGE_PART / (SUTRO_AGE_PART + 1))
/* Slow requests of 1024. */
#define SUTRO_PROTECT_SLOW 5U
/* Percent of its share with which a group has what it is entitled to. */
#define SUTRO_PROTECT_ENTITLED 95U
/* Shared part as long as nothing is known. */
#define SUTRO_PROTECT_FIRST 256U
/* Completions in reserved windows from which on rates are known. */
#define SUTRO_PROTECT_KNOWN 16U
/* Requests of a protected group in a cycle for each one that it has in flight. */
#define SUTRO_PROTECT_ROUNDS 128U
/* Length of a cycle: 8 ms to 1 s; as long as nothing is known, 34 to 134 ms. */
#define SUTRO_PROTECT_CYCLE_MIN_NS BIT_ULL(23)
#define SUTRO_PROTECT_CYCLE_FIRST_NS BIT_ULL(25)
#define SUTRO_PROTECT_CYCLE_KNOWN_NS BIT_ULL(27)
#define SUTRO_PROTECT_CYCLE_MAX_NS BIT_ULL(30)
/* So many shared windows may be left out for a debt. */
#define SUTRO_PROTECT_DEBT 4
/*
 * A trial takes so long, or until so many requests have completed.  The next one begins
 * after SUTRO_PROTECT_RETRY_NS, then twice as long and so on.
 */
#define SUTRO_PROTECT_TRIAL_MIN_NS (128 * MS)
#define SUTRO_PROTECT_TRIAL_MAX_NS (512 * MS)
#define SUTRO_PROTECT_TRIAL_NR 256U
#define SUTRO_PROTECT_SAMPLE_NS (8 * MS)
#define SUTRO_PROTECT_RETRY_NS (2000 * MS)
#define SUTRO_PROTECT_RETRIES 4
/* A group that needs no protection is left alone for 1/4 s, then 1/2, up to 8 s. */
#define SUTRO_PROTECT_REST_NS (250 * MS)
#define SUTRO_PROTECT_RESTS 5
/* Sums are halved when they hold more than so many cycles. */
#define SUTRO_PROTECT_CYCLES 4
/* Weight of the newest sample in the mean time that draining takes: 1/8. */
#define SUTRO_DRAIN_SHIFT 3

/* Requests a second. */
static u64 sutro_window_rate(const struct sutro_protect_sums *sums)
{
	return div64_u64(sums->nr * 1000 * MS, max(sums->time_ns, 1ULL));
}

/* A part of a time, of SUTRO_PROTECT_WHOLE. */
static u64 sutro_part_of(u64 part_ns, u64 time_ns)
{
	return div64_u64(part_ns * SUTRO_PROTECT_WHOLE, max(time_ns, 1ULL));
}

/*
 * The part of the device that protected groups use in one kind of windows.  Estimates of
 * costs are right in proportion only, so the whole is what all groups use together.
 */
static u64 sutro_window_used(const struct sutro_protect_sums *sums,
			     enum sutro_window window)
{
	const struct sutro_protect_sums *shared = &sums[SUTRO_WINDOW_SHARED];
	const struct sutro_protect_sums *alone = &sums[SUTRO_WINDOW_RESERVED];
	u64 whole = max(sutro_part_of(shared->all_ns, shared->time_ns),
			sutro_part_of(alone->cost_ns, alone->time_ns));
	u64 part = sutro_part_of(sums[window].cost_ns, sums[window].time_ns);

	return sutro_part_of(part, whole);
}

/* Begin to look whether protection is needed. */
static void sutro_window_try(struct sutro_protect *protect, u64 now_ns)
{
	protect->sums[SUTRO_WINDOW_SHARED] = (struct sutro_protect_sums){};
	protect->debt_ns = 0;
	protect->trial_ns = now_ns;
	protect->sample_ns = now_ns;
	protect->samples = 0;
	protect->share_sum = 0;
}

/**
 * sutro_window_init - prepare the windows of a leaf
 * @protect:	the protection
 */
void sutro_window_init(struct sutro_protect *protect)
{
	protect->cycle_ns = SUTRO_PROTECT_CYCLE_FIRST_NS;
	protect->part = SUTRO_PROTECT_FIRST;
}

/**
 * sutro_window_begin - a group joins, and nothing is known of the windows
 * @protect:	the protection
 * @now_ns:	the time
 */
void sutro_window_begin(struct sutro_protect *protect, u64 now_ns)
{
	memset(protect->sums, 0, sizeof(protect->sums));
	sutro_window_init(protect);
	protect->retries = 0;
	sutro_window_try(protect, now_ns);
}

/* Did protected groups receive what they are entitled to without protection? */
static bool sutro_protect_needless(const struct sutro_protect *protect,
				   u64 share)
{
	const struct sutro_protect_sums *shared =
		&protect->sums[SUTRO_WINDOW_SHARED];

	return shared->cost_ns * SUTRO_PROTECT_WHOLE * 100 >=
	       shared->all_ns * share * SUTRO_PROTECT_ENTITLED;
}

/* All protected groups are left to their weights for a while, longer each time. */
static void sutro_protect_rest(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	struct sutro_group *group, *next;

	list_for_each_entry_safe(group, next, &protect->groups, protect.list) {
		sutro_protect_drop(core, group);
		group->protect.needed = false;
		group->protect.rest_until_ns =
			now_ns +
			(SUTRO_PROTECT_REST_NS << group->protect.rests);
		if (group->protect.rests < SUTRO_PROTECT_RESTS)
			group->protect.rests++;
	}
}

/* The largest shared part that costs no more than is allowed. */
static u32 sutro_window_part(const struct sutro_core *core, u64 share)
{
	const struct sutro_protect_sums *sums = core->protect.sums;
	const struct sutro_protect_sums *shared = &sums[SUTRO_WINDOW_SHARED];
	const struct sutro_protect_sums *alone = &sums[SUTRO_WINDOW_RESERVED];
	u64 rate = max(sutro_window_rate(alone), 1ULL);
	u64 shared_rate = min(sutro_window_rate(shared), rate);
	u64 loss = (100 - core->tunables.protect) * SUTRO_PROTECT_WHOLE / 100;
	u64 part = SUTRO_PROTECT_WHOLE, used, shared_used;

	if (shared_rate < rate)
		part = min(part, div64_u64(loss * rate, rate - shared_rate));
	if (shared->nr_slow && shared_rate)
		part = min(part,
			   div64_u64(SUTRO_PROTECT_SLOW * shared->nr * rate,
				     shared->nr_slow * shared_rate));
	part = clamp_t(u64, part, SUTRO_PROTECT_LEAST,
		       SUTRO_PROTECT_WHOLE - SUTRO_PROTECT_SAMPLE);
	used = sutro_window_used(sums, SUTRO_WINDOW_RESERVED);
	shared_used = sutro_window_used(sums, SUTRO_WINDOW_SHARED);
	if (used > share && share > shared_used)
		part = max(part, div64_u64((used - share) * SUTRO_PROTECT_WHOLE,
					   used - shared_used));
	return min(part, (u64)SUTRO_PROTECT_WHOLE - SUTRO_PROTECT_SAMPLE);
}

/* How long shall cycles be? */
static u64 sutro_window_cycle_ns(const struct sutro_protect *protect, u32 depth)
{
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];
	u64 target_ns = div64_u64(alone->time_ns, max(alone->nr, 1ULL)) *
			max(depth, 1U) * SUTRO_PROTECT_ROUNDS;
	u64 cycle_ns = SUTRO_PROTECT_CYCLE_MIN_NS;

	target_ns = max(target_ns,
			div_u64(2 * protect->drain_ns * SUTRO_PROTECT_WHOLE,
				protect->part));
	while (cycle_ns < SUTRO_PROTECT_CYCLE_MAX_NS && cycle_ns < target_ns)
		cycle_ns *= 2;
	return cycle_ns;
}

/* Cycles get longer by doubling, where a longer one begins, so that none is cut. */
static void sutro_window_resize(struct sutro_protect *protect, u64 cycle_ns,
				u64 now_ns)
{
	u64 begin_ns = now_ns & ~(protect->cycle_ns - 1);

	if (cycle_ns <= protect->cycle_ns)
		protect->cycle_ns = cycle_ns;
	else if (!(begin_ns & (2 * protect->cycle_ns - 1)))
		protect->cycle_ns *= 2;
}

/* What is long ago counts less. */
static void sutro_window_age(struct sutro_protect *protect)
{
	struct sutro_protect_sums *sums;

	if (protect->sums[SUTRO_WINDOW_RESERVED].time_ns <
	    SUTRO_PROTECT_CYCLES * protect->cycle_ns)
		return;
	for (sums = protect->sums; sums < protect->sums + SUTRO_WINDOWS;
	     sums++) {
		sums->time_ns /= 2;
		sums->all_ns /= 2;
		sums->cost_ns /= 2;
		sums->took_ns /= 2;
		sums->nr /= 2;
		sums->nr_slow /= 2;
	}
}

/* Set the shared part and the length of cycles by what has been measured. */
static void sutro_window_adapt(struct sutro_core *core, u64 share, u32 depth,
			       u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	const struct sutro_protect_sums *alone =
		&protect->sums[SUTRO_WINDOW_RESERVED];
	struct sutro_group *group;
	u64 slow_ns;

	if (alone->nr < SUTRO_PROTECT_KNOWN) {
		/* Draining may take as long as the reserved window. */
		sutro_window_resize(protect, SUTRO_PROTECT_CYCLE_KNOWN_NS,
				    now_ns);
		return;
	}
	protect->part = sutro_window_part(core, share);
	sutro_window_resize(protect, sutro_window_cycle_ns(protect, depth),
			    now_ns);
	slow_ns = min_t(u64, div64_u64(2 * alone->took_ns, alone->nr), U32_MAX);
	list_for_each_entry(group, &protect->groups, protect.list)
		group->protect.slow_ns = slow_ns;
	sutro_window_age(protect);
}

/* The share and the depth of all groups that are still to be protected. */
static u64 sutro_protect_share(struct sutro_core *core, u32 *ret_depth)
{
	struct sutro_group *group, *next;
	u64 share = 0;
	u32 depth = 0;

	list_for_each_entry_safe(group, next, &core->protect.groups,
				 protect.list) {
		if (!core->tunables.protect || !sutro_group_favoured(group)) {
			sutro_protect_drop(core, group);
			continue;
		}
		share += sutro_group_share(group, SUTRO_PROTECT_WHOLE);
		depth += group->protect.depth;
	}
	*ret_depth = depth;
	/* Lower classes have a part in any case (sutro-tree.c). */
	return min(share, SUTRO_PROTECT_MOST);
}

/* A trial goes on or ends; the groups that are protected may change meanwhile. */
static void sutro_window_trial(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	u64 length_ns = now_ns - protect->trial_ns;
	struct sutro_group *group;
	u64 share;
	u32 depth;

	if (sutro_before(now_ns, protect->sample_ns))
		return;
	protect->sample_ns = now_ns + SUTRO_PROTECT_SAMPLE_NS;
	protect->share_sum += sutro_protect_share(core, &depth);
	protect->samples++;
	if (length_ns < SUTRO_PROTECT_TRIAL_MIN_NS ||
	    (protect->sums[SUTRO_WINDOW_SHARED].nr < SUTRO_PROTECT_TRIAL_NR &&
	     length_ns < SUTRO_PROTECT_TRIAL_MAX_NS))
		return;
	share = div_u64(protect->share_sum, protect->samples);
	protect->trial_ns = 0;
	protect->retry_ns =
		now_ns + (SUTRO_PROTECT_RETRY_NS << protect->retries);
	if (protect->retries < SUTRO_PROTECT_RETRIES)
		protect->retries++;
	if (sutro_protect_needless(protect, share)) {
		sutro_protect_rest(core, now_ns);
		return;
	}
	list_for_each_entry(group, &protect->groups, protect.list) {
		group->protect.needed = true;
		group->protect.rests = 0;
	}
}

/* A cycle begins, or weights have changed in the middle of one. */
static void sutro_window_cycle(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	s64 shared_ns;
	u32 depth;
	u64 share = sutro_protect_share(core, &depth);

	protect->changed = false;
	sutro_window_adapt(core, share, depth, now_ns);
	/* A group that can use all of its share may do so without protection now. */
	if (!sutro_before(now_ns, protect->retry_ns) &&
	    sutro_window_used(protect->sums, SUTRO_WINDOW_RESERVED) > share) {
		sutro_window_try(protect, now_ns);
		return;
	}
	protect->begin_ns = now_ns & ~(protect->cycle_ns - 1);
	shared_ns = protect->cycle_ns * protect->part / SUTRO_PROTECT_WHOLE -
		    protect->debt_ns;
	protect->debt_ns = max_t(s64, -shared_ns, 0);
	protect->shared_ns = protect->begin_ns + max_t(s64, shared_ns, 0);
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
 * sutro_window_look - which window is it?
 * @core:	the leaf
 * @now_ns:	the time
 *
 * To be called before &sutro_protect.reserved is read.
 */
void sutro_window_look(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	bool shared;

	if (!sutro_protects(protect)) {
		protect->reserved = false;
		return;
	}
	sutro_window_sum(protect, now_ns);
	if (protect->trial_ns)
		sutro_window_trial(core, now_ns);
	if (!protect->trial_ns &&
	    (protect->changed ||
	     !sutro_before(now_ns, protect->begin_ns + protect->cycle_ns)))
		sutro_window_cycle(core, now_ns);
	shared = protect->trial_ns || sutro_before(now_ns, protect->shared_ns);
	/* A probe needs requests of other groups. */
	if (!shared && core->tunables.probing) {
		protect->late = true;
		shared = true;
	}
	if (shared) {
		protect->reserved = false;
		protect->clear = false;
	} else if (!protect->reserved) {
		protect->reserved = true;
		protect->clear = core->in_flight == protect->in_flight;
	}
}

/**
 * sutro_window_owe - other groups have used the device beyond their shared windows
 * @protect:	the protection
 * @ns:		for so long
 */
void sutro_window_owe(struct sutro_protect *protect, u64 ns)
{
	s64 most_ns = SUTRO_PROTECT_DEBT * protect->cycle_ns * protect->part /
		      SUTRO_PROTECT_WHOLE;

	protect->debt_ns = min_t(s64, protect->debt_ns + ns, most_ns);
}

/**
 * sutro_window_cleared - no request of another group is at the device any more
 * @protect:	the protection, in a reserved window
 * @now_ns:	the time
 */
void sutro_window_cleared(struct sutro_protect *protect, u64 now_ns)
{
	u64 since_ns = max(protect->shared_ns, protect->cleared_from_ns);
	s64 drain_ns = max_t(s64, now_ns - since_ns, 0);

	protect->clear = true;
	sutro_window_owe(protect, drain_ns);
	if (!protect->late)
		protect->drain_ns += (drain_ns - (s64)protect->drain_ns) >>
				     SUTRO_DRAIN_SHIFT;
	protect->late = false;
}
