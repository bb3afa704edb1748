// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: latency targets.
 *
 * A cgroup with a target (io.sutro.latency) is to have at most one read in
 * SUTRO_LATENCY_LIMIT take longer than it: the target is for the 95th percentile of
 * latency.  The time of a read is that from its submission to its completion.
 * Reads of all groups below the cgroup count.  Weights and classes do not matter, except beside
 * protected groups that are entitled to more (sutro-apart.c).
 *
 * 1. Periods
 *
 * Reads and late ones are counted in periods of SUTRO_LATENCY_NR requests.  Each period
 * ends with a verdict.  SUTRO_LATENCY_FIRST late requests end one at once if they are more
 * than one in SUTRO_LATENCY_LIMIT.
 *
 * 2. Means
 *
 * While the target is met, nothing is done.  If it is missed, there are two means, the
 * second one only if the first one did not help:
 *
 *  - Groups without a target may have only a part of the target in flight, estimated in
 *    device time, or one request.  A request of the cgroup then finds little at the
 *    device.  After SUTRO_LATENCY_FEW periods with at most one late request in
 *    SUTRO_LATENCY_AIM the limit doubles, until there is none.  When the target is missed
 *    again, the limit begins anew, and doubles after twice as many periods.
 *
 *  - The cgroup is protected (sutro-protect.c): other groups are served in the shared
 *    window of each cycle only, which is the shortest one at first.  Nearly all late
 *    requests are those that meet shared windows, so the part l of requests that are
 *    late is nearly proportional to the shared part p of a cycle, and
 *
 *	p' = p * (1 / SUTRO_LATENCY_AIM) / l
 *
 *    but not less than p / 4, nor more than 3 / 2 * p, or less than that if the period had
 *    fewer requests.  Here periods end with a cycle, for
 *    part of a cycle has too many requests of the shared window or too few, and after
 *    SUTRO_LATENCY_PERIOD_NS at the latest.
 *
 *    The limit does not hold for groups with a target.  So a cgroup that waits in the windows
 *    of another one for its target is protected at once, after half of SUTRO_LATENCY_FIRST
 *    late requests: it may have one in a few seconds.
 *
 *    p is at most one half, for a single late request may take as long as a shared window:
 *    the target would be met while the cgroup waits most of the time.  If p could be more
 *    for SUTRO_LATENCY_CALM periods or more, the limit takes over.
 *
 * Other groups may use gaps while the cgroup thinks (sutro-gap.c).
 *
 * The aim is well below what is allowed: a second of a disk with 50 requests meets the
 * target with at most 2 late ones.
 *
 *	a (target 0.15 ms) reads 4 KiB at a time, 0.1 ms each alone.  b writes 1 MiB, and
 *	each read of a takes 2.5 ms.  After four reads b may have one write in flight,
 *	after four more a is protected with p = 1.6 %: of 340 reads in a cycle of 34 ms,
 *	one is late.  p grows by half with each cycle.  With p = 0.4 there are 5 late reads
 *	in a shared window and 200 others in the cycle: the next p is 0.4 / 64 / 0.024 =
 *	0.26.
 *
 * 3. Unreachable targets
 *
 * Requests that met no request of another group are counted once more: those of reserved
 * windows in which no other group is protected or the others wait (sutro-apart.c), and those of a
 * group that is the only active one.  If more than one in SUTRO_LATENCY_LIMIT of
 * SUTRO_LATENCY_ALONE_NR is late, the device cannot meet the target.  The cgroup is still
 * protected, but for no more of the time than its share, and that of groups that are protected
 * with it: other groups must not starve for a target that nothing meets.
 *
 * Until then they get next to nothing, and a disk with 50 reads a second takes 5 s for
 * these.  So the verdict comes as soon as SUTRO_LATENCY_CLEARLY requests more are late than
 * twice what is allowed:
 *
 *	Of 50 reads a second one in four is late.  After 56 reads, in little more than a
 *	second, 14 were late, the first time more than 8 + 2 * 56 / 20.
 *
 * A target that was unreachable is so until at most one in SUTRO_LATENCY_TIGHTEN is late,
 * for one near the latency alone would change with each verdict.
 */
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "sutro-core.h"

#define US 1000ULL
#define MS (1000 * US)

/* One request in LIMIT may be late; protection aims at one in AIM. */
#define SUTRO_LATENCY_LIMIT 20U
#define SUTRO_LATENCY_AIM 64U
/* More late requests than one in TIGHTEN tighten the means at the end of a period. */
#define SUTRO_LATENCY_TIGHTEN 32U
/* A period ends after this many requests, or after this time while the cgroup is protected. */
#define SUTRO_LATENCY_NR 128U
#define SUTRO_LATENCY_PERIOD_NS (1000 * MS)
/* A period without cycles ends after this time. */
#define SUTRO_LATENCY_ALONE_NS (16 * SUTRO_LATENCY_PERIOD_NS)
/* Late requests that end a period. */
#define SUTRO_LATENCY_FIRST 4U
/* Requests for a verdict on the latency of the device alone. */
#define SUTRO_LATENCY_ALONE_NR 256U
/* A verdict comes earlier with this many late requests beyond twice what is allowed.  If exactly
 * one in LIMIT is late by chance, less than one target in 50,000 gets it (Lundberg's bound).
 */
#define SUTRO_LATENCY_CLEARLY 8U
/* The first limit is the target divided by PART, the largest one TIMES the target. */
#define SUTRO_LATENCY_LIMIT_PART 4U
#define SUTRO_LATENCY_LIMIT_TIMES 4U
/* The limit holds for this long after a request of the cgroup. */
#define SUTRO_LATENCY_LIMIT_NS (1000 * MS)
/* The largest shared part. */
#define SUTRO_LATENCY_MOST (SUTRO_PROTECT_WHOLE / 2)
/* Calm periods after which the limit is raised, and protection ends: at least, at most. */
#define SUTRO_LATENCY_FEW 4U
#define SUTRO_LATENCY_CALM 16U
#define SUTRO_LATENCY_PATIENCE_MAX 64

/**
 * sutro_latency_group - the group of which the latency target holds for a group
 * @group:	the group
 *
 * Return: the group itself, or its nearest ancestor with a target; NULL if there is none.
 */
struct sutro_group *sutro_latency_group(const struct sutro_group *group)
{
	while (group && !READ_ONCE(group->target_us))
		group = group->parent;
	return (struct sutro_group *)group;
}

/**
 * sutro_latency_of - the state of the target that holds for a group
 * @group:	the group
 *
 * Return: the state, NULL if there is no target, or none of its requests has completed.
 *
 * Context: any, for targets change at any time.
 */
struct sutro_latency *sutro_latency_of(const struct sutro_group *group)
{
	group = sutro_latency_group(group);
	return group ? READ_ONCE(group->latency) : NULL;
}

static struct sutro_latency *sutro_latency_new(struct sutro_group *group)
{
	struct sutro_latency *latency =
		kzalloc(sizeof(*latency), GFP_NOWAIT | __GFP_NOWARN);

	if (!latency)
		return NULL;
	latency->target_us = group->target_us;
	/* Pairs with READ_ONCE() in sutro_latency_of(). */
	smp_store_release(&group->latency, latency);
	return latency;
}

/**
 * sutro_latency_get - the same, allocated if need be
 * @group:	the group
 *
 * Return: the state, NULL if there is no target, or no memory: then the next completion
 * tries again.
 */
struct sutro_latency *sutro_latency_get(struct sutro_group *group)
{
	group = sutro_latency_group(group);
	if (!group)
		return NULL;
	return group->latency ?: sutro_latency_new(group);
}

/**
 * sutro_latency_late_ns - from which time on is a request of a group late?
 * @group:	the group
 *
 * Return: 0 if no target holds for the group.
 *
 * Context: as sutro_latency_of().
 */
u64 sutro_latency_late_ns(const struct sutro_group *group)
{
	u32 target_us = 0;

	for (; group && !target_us; group = group->parent)
		target_us = READ_ONCE(group->target_us);
	return US * target_us;
}

/**
 * sutro_latency_set - a group has another target from now on
 * @group:	the group
 * @target_us:	the target, 0 = none
 */
void sutro_latency_set(struct sutro_group *group, u32 target_us)
{
	struct sutro_latency *latency = group->latency;

	if (group->target_us == target_us)
		return;
	if (latency) {
		memset_startat(latency, 0, limit_us);
		WRITE_ONCE(latency->state, SUTRO_LATENCY_UNKNOWN);
		latency->target_us = target_us;
	}
	WRITE_ONCE(group->target_us, target_us);
}

/* Are more than one in @allowed requests late? */
static bool sutro_latency_exceeds(const struct sutro_latency_counts *counts,
				  u32 allowed)
{
	return counts->nr_late * allowed > counts->nr;
}

/* Process the end of a period. */
static void sutro_latency_judge(struct sutro_latency *latency)
{
	u8 state = SUTRO_LATENCY_MET;

	if (sutro_latency_exceeds(&latency->period, SUTRO_LATENCY_LIMIT))
		state = latency->is_unreachable ? SUTRO_LATENCY_UNREACHABLE
						: SUTRO_LATENCY_MISSED;
	WRITE_ONCE(latency->state, state);
	latency->period = (struct sutro_latency_counts){};
}

/* ---- the limit ---- */

/* Means are loosened after latency->patience calm periods, which doubles if that was in vain. */
static bool sutro_latency_is_calm(struct sutro_latency *latency, u32 least)
{
	return ++latency->calm >= max(latency->patience, least);
}

static void sutro_latency_tighten(struct sutro_latency *latency,
				  enum sutro_latency_met met)
{
	u32 first_us = max(latency->target_us / SUTRO_LATENCY_LIMIT_PART, 1U);

	latency->calm = 0;
	latency->patience =
		clamp(2 * latency->patience, 1, SUTRO_LATENCY_PATIENCE_MAX);
	if (latency->limit_us != first_us && met != SUTRO_LATENCY_MET_TARGET) {
		latency->limit_us = first_us;
		return;
	}
	latency->limit_us = 0;
	latency->held = SUTRO_PROTECT_WHOLE - SUTRO_PROTECT_LEAST;
}

static void sutro_latency_loosen(struct sutro_latency *latency)
{
	if (!latency->limit_us ||
	    !sutro_latency_is_calm(latency, SUTRO_LATENCY_FEW))
		return;
	latency->calm = 0;
	latency->limit_us *= 2;
	if (latency->limit_us > SUTRO_LATENCY_LIMIT_TIMES * latency->target_us)
		latency->limit_us = 0;
}

/**
 * sutro_latency_limit - how much may other groups have in flight?
 * @core:	the leaf
 * @latency:	a target for which requests have completed
 * @now_ns:	the time
 */
void sutro_latency_limit(struct sutro_core *core,
			 const struct sutro_latency *latency, u64 now_ns)
{
	u64 limit_ns = US * latency->limit_us;

	if (!limit_ns || (sutro_before(now_ns, core->limit_until_ns) &&
			  core->limit_ns && core->limit_ns < limit_ns))
		return;
	WRITE_ONCE(core->limit_ns, limit_ns);
	core->limit_until_ns = now_ns + SUTRO_LATENCY_LIMIT_NS;
}

/* ---- completions ---- */

/* Are so many requests late, beyond one in @allowed, that it cannot be chance? */
static bool sutro_latency_is_clear(const struct sutro_latency_counts *counts,
				   u32 allowed)
{
	return counts->nr_late >
	       SUTRO_LATENCY_CLEARLY + 2 * counts->nr / allowed;
}

static void sutro_latency_took_alone(struct sutro_latency *latency, u32 nr,
				     u32 nr_late)
{
	struct sutro_latency_counts *alone = &latency->alone;
	u32 allowed = latency->is_unreachable ? SUTRO_LATENCY_TIGHTEN
					      : SUTRO_LATENCY_LIMIT;

	alone->nr += nr;
	alone->nr_late += nr_late;
	if (sutro_latency_is_clear(alone, allowed))
		latency->is_unreachable = true;
	else if (alone->nr >= SUTRO_LATENCY_ALONE_NR)
		latency->is_unreachable = sutro_latency_exceeds(alone, allowed);
	else
		return;
	*alone = (struct sutro_latency_counts){};
}

/**
 * sutro_latency_took - requests have completed for which a target holds
 * @latency:	the target
 * @nr:		how many
 * @nr_late:	how many of them were late
 * @met:	the requests of others that they met at the device
 * @now_ns:	the time
 */
void sutro_latency_took(struct sutro_latency *latency, u32 nr, u32 nr_late,
			enum sutro_latency_met met, u64 now_ns)
{
	struct sutro_latency_counts *period = &latency->period;
	bool is_full, is_missed;
	u32 first;

	if (!period->nr)
		latency->begin_ns = now_ns;
	period->nr += nr;
	period->nr_late += nr_late;
	if (met == SUTRO_LATENCY_MET_NONE)
		sutro_latency_took_alone(latency, nr, nr_late);
	/* Then a period ends with a cycle, of which there is none without other groups. */
	if (latency->held) {
		if (!sutro_before(now_ns,
				  latency->begin_ns + SUTRO_LATENCY_ALONE_NS))
			sutro_latency_judge(latency);
		return;
	}
	is_full = period->nr >= SUTRO_LATENCY_NR;
	first = met == SUTRO_LATENCY_MET_TARGET ? SUTRO_LATENCY_FIRST / 2
						: SUTRO_LATENCY_FIRST;
	is_missed = period->nr_late >= first &&
		    sutro_latency_exceeds(period, SUTRO_LATENCY_LIMIT);
	if (!is_full && !is_missed)
		return;
	/* The device alone misses the target, so no means help. */
	if (is_missed || sutro_latency_exceeds(period, SUTRO_LATENCY_TIGHTEN)) {
		if (met != SUTRO_LATENCY_MET_NONE)
			sutro_latency_tighten(latency, met);
	} else if (!sutro_latency_exceeds(period, SUTRO_LATENCY_AIM)) {
		sutro_latency_loosen(latency);
	}
	sutro_latency_judge(latency);
}

/* ---- cycles ---- */

static bool sutro_latency_ends(const struct sutro_latency *latency, u64 now_ns)
{
	const struct sutro_latency_counts *period = &latency->period;

	return period->nr >= SUTRO_LATENCY_NR ||
	       period->nr_late > SUTRO_LATENCY_NR / SUTRO_LATENCY_LIMIT ||
	       (period->nr &&
		!sutro_before(now_ns,
			      latency->begin_ns + SUTRO_LATENCY_PERIOD_NS));
}

/**
 * sutro_latency_adapt - a cycle is over: how much of the next ones is shared?
 * @latency:	the target
 * @now_ns:	the time
 */
void sutro_latency_adapt(struct sutro_latency *latency, u64 now_ns)
{
	u32 shared = SUTRO_PROTECT_WHOLE - latency->held, aim = U32_MAX, most;

	if (!latency->held || !sutro_latency_ends(latency, now_ns))
		return;
	if (latency->period.nr_late)
		aim = min_t(u64, U32_MAX,
			    div64_u64((u64)shared * latency->period.nr,
				      (u64)SUTRO_LATENCY_AIM *
					      latency->period.nr_late));
	/* Few requests show little. */
	most = shared + shared * min(latency->period.nr, SUTRO_LATENCY_NR) /
				(2 * SUTRO_LATENCY_NR);
	shared = clamp(aim, shared / 4, most);
	shared = clamp(shared, SUTRO_PROTECT_LEAST, SUTRO_LATENCY_MOST);
	latency->held = SUTRO_PROTECT_WHOLE - shared;
	if (aim <= SUTRO_LATENCY_MOST) {
		latency->calm = 0;
	} else if (sutro_latency_is_calm(latency, SUTRO_LATENCY_CALM)) {
		latency->held = 0;
		sutro_latency_tighten(latency, SUTRO_LATENCY_MET_OTHERS);
	}
	sutro_latency_judge(latency);
}

/**
 * sutro_latency_part - how much of a cycle is shared
 * @latency:	the target
 * @share:	that of the groups that are protected, of SUTRO_PROTECT_WHOLE
 *
 * Return: of SUTRO_PROTECT_WHOLE.
 */
u32 sutro_latency_part(const struct sutro_latency *latency, u64 share)
{
	u64 held = latency->held;

	if (latency->is_unreachable)
		held = min(held, share);
	return SUTRO_PROTECT_WHOLE - held;
}
