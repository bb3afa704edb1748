// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: protected groups beside each other.
 *
 * In reserved windows (sutro-window.c) the shares of protected groups decide which of them is
 * served next.  That helps one with few requests as little as it does without protection: each of
 * them waits at the device for those of the others.
 *
 * 1. Parts of a window
 *
 * So a group may use its share of the device in each reserved window.  Then it waits until those
 * that use less have had the rest of the window for themselves.  The time that its last request
 * takes beyond its part is missing in the next window.
 *
 *	a (weight 1000) reads 4 KiB in 0.1 ms, one at a time.  b (1000) has 32 writes of 1 MiB,
 *	5 ms each, and c (100) all that it can send.  In windows of 60 ms, b has sent six writes
 *	when 30 ms are over, and a has read a few times between them.  Until the end of the
 *	window a reads 300 times.  Both receive half of their rates alone.
 *
 * 2. Whether it is needed
 *
 * The device is not full while others wait for a group with few requests.  They do so only if some
 * group receives less beside them than its share of its rate alone (&enum sutro_phase).
 *
 *	a reads 4 KiB, 9,000 times in a second alone and 6,000 times beside b: more than half.
 *	Neither waits for the other.
 *
 * The rate alone is measured in windows in which the others have used their parts, and while one
 * group only is protected.  In one of SUTRO_APART_CYCLES cycles, and while its rate is not known, a
 * group is served first for SUTRO_APART_KNOWN_NS, or until it has used its part of the window.
 *
 * The parts are those of reserved windows, so while a group receives too little beside others, as
 * much of the time is reserved as the shares allow (sutro-part.c).  All groups together may lose
 * nothing in shared windows while one of them does.
 *
 * On rotational devices slices do this (sutro-select.c).  While time is reserved for a group, the
 * others do not wait for each other: reserved time comes first (sutro-reserve.c), and sutrod
 * reserves time for each unit that needs it.  Groups with a latency target that is missed do not
 * wait.
 */
#include <linux/math64.h>

#include "sutro-core.h"

#define MS (1000 * 1000ULL)

/* In one of this many cycles, the rate of a group alone is measured anew. */
#define SUTRO_APART_CYCLES 16
/* It is not known before it was alone for this time. */
#define SUTRO_APART_KNOWN_NS (10 * MS)
/* Sums are halved when they are of more than this many cycles. */
#define SUTRO_APART_OLD 8
/* Rates are requests in 2^30 ns. */
#define SUTRO_APART_RATE_SHIFT 30

static bool sutro_apart_may(const struct sutro_protect *protect,
			    const struct sutro_group_protect *own)
{
	return !list_is_singular(&protect->groups) && !own->reserving &&
	       !sutro_protect_by_target(own);
}

/* The share of a group among protected ones, of @whole. */
static u64 sutro_apart_share(const struct sutro_protect *protect,
			     const struct sutro_group_protect *own, u64 whole)
{
	u64 share = sutro_group_share(own->group, SUTRO_PROTECT_WHOLE);

	return div64_u64(whole * share, max(protect->share, 1ULL));
}

/* The part of a reserved window that a group may use, as device time by estimates. */
static u64 sutro_apart_part_ns(const struct sutro_protect *protect,
			       const struct sutro_group_protect *own)
{
	u64 window_ns =
		protect->begin_ns + protect->cycle_ns - protect->shared_ns;

	if (protect->most > 0)
		window_ns = window_ns *
			    min_t(u64, protect->most, SUTRO_PROTECT_WHOLE) /
			    SUTRO_PROTECT_WHOLE;
	return sutro_apart_share(protect, own, window_ns);
}

static bool sutro_apart_is_over(const struct sutro_protect *protect,
				const struct sutro_group_protect *own)
{
	return own->window_ns >= sutro_apart_part_ns(protect, own);
}

/**
 * sutro_apart_waits - has a group to wait for other protected ones?
 * @protect:	the protection, in a reserved window
 * @own:	that of the group
 */
bool sutro_apart_waits(const struct sutro_protect *protect,
		       const struct sutro_group_protect *own)
{
	if (!sutro_apart_may(protect, own))
		return false;
	if (protect->first)
		return own != protect->first;
	return protect->apart && sutro_apart_is_over(protect, own);
}

/* ---- rates ---- */

static enum sutro_phase sutro_apart_phase(const struct sutro_protect *protect)
{
	if (protect->waited || list_is_singular(&protect->groups))
		return SUTRO_PHASE_ALONE;
	return SUTRO_PHASE_BESIDE;
}

/**
 * sutro_apart_passed - time has passed
 * @protect:	the protection
 * @ns:		since the last call
 */
void sutro_apart_passed(struct sutro_protect *protect, u64 ns)
{
	if (protect->clear)
		protect->phase_ns[sutro_apart_phase(protect)] += ns;
}

/**
 * sutro_apart_seen - requests of a protected group arrived, or completed
 * @protect:	the protection
 * @own:	that of the group
 * @nr:		how many
 */
void sutro_apart_seen(const struct sutro_protect *protect,
		      struct sutro_group_protect *own, u32 nr)
{
	if (protect->clear)
		own->phases[sutro_apart_phase(protect)].nr += nr;
}

/**
 * sutro_apart_turn - a group is protected from now on, or no longer
 * @protect:	the protection
 * @own:	that of the group
 *
 * While it is, its sums have the time at which they would have begun.
 */
void sutro_apart_turn(struct sutro_protect *protect,
		      struct sutro_group_protect *own)
{
	u32 i;

	for (i = 0; i < SUTRO_PHASES; i++)
		own->phases[i].ns = protect->phase_ns[i] - own->phases[i].ns;
	if (protect->first == own)
		protect->first = NULL;
}

static u64 sutro_apart_ns(const struct sutro_protect *protect,
			  const struct sutro_group_protect *own,
			  enum sutro_phase phase)
{
	return protect->phase_ns[phase] - own->phases[phase].ns;
}

static u64 sutro_apart_rate(const struct sutro_protect *protect,
			    const struct sutro_group_protect *own,
			    enum sutro_phase phase)
{
	return div64_u64(own->phases[phase].nr << SUTRO_APART_RATE_SHIFT,
			 sutro_apart_ns(protect, own, phase) + 1);
}

/* The part of its rate alone that a group receives if the others wait for it. */
static u64 sutro_apart_due(const struct sutro_protect *protect,
			   const struct sutro_group_protect *own)
{
	return sutro_apart_share(protect, own,
				 sutro_apart_rate(protect, own,
						  SUTRO_PHASE_ALONE));
}

static void sutro_apart_age(const struct sutro_protect *protect,
			    struct sutro_group_protect *own)
{
	u32 i;

	for (i = 0; i < SUTRO_PHASES; i++) {
		u64 ns = sutro_apart_ns(protect, own, i);

		if (ns <= SUTRO_APART_OLD * protect->cycle_ns)
			continue;
		own->phases[i].ns += ns / 2;
		own->phases[i].nr /= 2;
	}
}

/* ---- a cycle ---- */

/* Does a group receive less beside others than if they wait? */
static bool sutro_apart_is_harmful(const struct sutro_protect *protect)
{
	const struct sutro_group_protect *own;

	if (list_is_singular(&protect->groups))
		return false;
	list_for_each_entry(own, &protect->groups, list)
		if (own->phases[SUTRO_PHASE_ALONE].nr &&
		    sutro_apart_rate(protect, own, SUTRO_PHASE_BESIDE) <
			    sutro_apart_due(protect, own))
			return true;
	return false;
}

static bool sutro_apart_is_known(const struct sutro_protect *protect)
{
	const struct sutro_group_protect *own;

	list_for_each_entry(own, &protect->groups, list)
		if (own->phases[SUTRO_PHASE_ALONE].nr >= SUTRO_PROTECT_KNOWN)
			return true;
	return false;
}

/* The group of which the rate alone is measured in this cycle, or NULL. */
static struct sutro_group_protect *
sutro_apart_first(const struct sutro_protect *protect, u64 now_ns)
{
	bool again =
		!(div64_u64(now_ns, protect->cycle_ns) % SUTRO_APART_CYCLES);
	u64 least_ns = again ? U64_MAX : SUTRO_APART_KNOWN_NS;
	struct sutro_group_protect *own, *first = NULL;

	list_for_each_entry(own, &protect->groups, list) {
		u64 ns = sutro_apart_ns(protect, own, SUTRO_PHASE_ALONE);

		if (!sutro_apart_may(protect, own) || ns >= least_ns)
			continue;
		least_ns = ns;
		first = own;
	}
	return first;
}

/* Some groups have waited for others: it was these that were alone. */
static void sutro_apart_end(struct sutro_protect *protect)
{
	u64 alone_ns = protect->phase_ns[SUTRO_PHASE_ALONE] - protect->alone_ns;
	struct sutro_group_protect *own;

	list_for_each_entry(own, &protect->groups, list)
		if (sutro_apart_waits(protect, own))
			own->phases[SUTRO_PHASE_ALONE].ns += alone_ns;
	protect->alone_ns = protect->phase_ns[SUTRO_PHASE_ALONE];
	protect->waited = false;
	protect->first = NULL;
}

/**
 * sutro_apart_begin - a cycle begins
 * @core:	the leaf, which still has the times of the cycle before
 * @now_ns:	the time
 */
void sutro_apart_begin(struct sutro_core *core, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *own;

	sutro_apart_end(protect);
	list_for_each_entry(own, &protect->groups, list) {
		sutro_apart_age(protect, own);
		own->window_ns -=
			min(own->window_ns,
			    protect->apart ? sutro_apart_part_ns(protect, own)
					   : U64_MAX);
	}
	protect->apart = false;
	protect->harmed = false;
	if (core->tunables.rotational || protect->reserve)
		return;
	protect->harmed = sutro_apart_is_harmful(protect);
	protect->apart = protect->harmed || !sutro_apart_is_known(protect);
	protect->first = sutro_apart_first(protect, now_ns);
}

/**
 * sutro_apart_look - have the requests of groups that wait completed?
 * @protect:	the protection, in a reserved window
 * @own:	that of a group with completed requests, or NULL
 */
void sutro_apart_look(struct sutro_protect *protect,
		      const struct sutro_group_protect *own)
{
	const struct sutro_group_protect *first = protect->first;

	if (first)
		protect->waited = protect->in_flight == first->group->in_flight;
	else if (own && !own->group->in_flight &&
		 sutro_apart_waits(protect, own))
		protect->waited = true;
}

/**
 * sutro_apart_sent - a request of a protected group goes to the device
 * @protect:	the protection
 * @own:	that of the group
 * @estimate_ns: device time that it will probably use
 */
void sutro_apart_sent(struct sutro_protect *protect,
		      struct sutro_group_protect *own, u64 estimate_ns)
{
	if (!protect->reserved)
		return;
	own->window_ns += estimate_ns;
	if (own == protect->first &&
	    (sutro_apart_is_over(protect, own) ||
	     protect->phase_ns[SUTRO_PHASE_ALONE] - protect->alone_ns >=
		     SUTRO_APART_KNOWN_NS))
		sutro_apart_end(protect);
}
