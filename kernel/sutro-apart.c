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
 * Beside groups that only keep up with others, a window is divided into sections, which have parts
 * of their own (sutro-section.c).
 *
 * While the other groups think, those that wait are served in gaps, as unprotected groups are
 * (sutro-gap.c).  So are all of them when all have used their parts.  Time in gaps is charged, and
 * does not count for the parts.
 *
 * 2. Whether it is needed
 *
 * The device is not full while others wait for a group with few requests.  They do so only if some
 * group receives less beside them than its share of its rate alone (&enum sutro_phase).
 *
 *	a reads 4 KiB, 9,000 times in a second alone and 6,000 times beside b, which writes
 *	150 times alone and 100 times beside a: more than half.  Neither waits for the other.
 *
 * A group is alone while others wait and their requests have completed, or while no other one is
 * protected.  In one of SUTRO_APART_CYCLES cycles, and while its rate alone is not known, it is
 * first: all others wait until it was alone for SUTRO_APART_KNOWN_NS, or has used its part.
 *
 * 3. How much is shared
 *
 * The shared part of a cycle (sutro-part.c) follows from the rates of all protected groups
 * together, which hide the loss of one.  So it is at most the part p with which each of them
 * receives its share phi of its rate alone, X_a.  X_s is its rate in shared windows, and X_r that
 * in reserved ones, which is its share of X_a among protected groups if the others wait:
 *
 *	p * X_s + (1 - p) * X_r = phi * X_a
 *
 *	phi is 1000 / 2100 for a and for b.  In shared windows a reads 400 times in a second, and
 *	4,500 times in reserved ones: p is (4,500 - 4,286) / (4,500 - 400), 5 %.  Rates are
 *	measured with errors, so phi is a sixteenth larger, and nothing but the least is shared.
 *
 * In reserved windows, time is charged to the groups that a protected one is in, and not to itself:
 * in shared ones its siblings have no more than their shares, and other slices the rest.  That is
 * done for its share at most (sutro-excess.c).
 *
 *	A slice (weight 1000) has a database (1000) and a backup (100), another one (100) reads.
 *	The database uses 0.75 of the time, which is 0.075 for the weight of its slice.  So in
 *	shared windows the other slice comes first until it has used as much.  Without that,
 *	the backup had five times as much as the other slice, which is entitled to more.
 *
 * While time is reserved for a group, the others do not wait for each other: reserved time comes
 * first (sutro-reserve.c), and sutrod reserves time for each unit that needs it.
 *
 * A group with a latency target that is missed does not wait for groups that are entitled to as
 * much or less.  It waits for those that are entitled to more and need protection: by weight or
 * class they come first, and the target is met by as much of the window as is left.  Groups with
 * different targets wait for each other: otherwise the one with more requests at the device would
 * have it.
 *
 *	a (weight 1000) reads 4 KiB at a time, and c (100) writes.  b (100) has eight reads of
 *	16 KiB and a target.  With requests of b at the device all the time, a has 0.4 of its
 *	rate alone.  Now b has 1/11 of each reserved window, then it waits.
 *
 * 4. Rotational devices
 *
 * There, a group that sends a request at a time is waited for while it thinks (sutro-select.c), but
 * not if that is long.  Then it meets all that others have sent meanwhile.  Its requests take so
 * long that a few reserved windows do not show its rate alone.  While that is not known, and it
 * has no backlog, nothing but the least is shared.
 *
 *	a (weight 1000) reads 32 KiB and thinks for 20 ms, and has 0.35 of an hdd alone.  b (1000)
 *	has 64 requests of 64 KiB, c and d (100) read and write.  Each of a's requests waited for
 *	about 30 of b's, and a had 0.04 of the device.  Now a has 0.21, 0.7 of its rate alone, and
 *	b 0.51.
 */
#include <linux/math64.h>

#include "sutro-section.h"

#define MS (1000 * 1000ULL)

/* In one of this many cycles, the rate of a group alone is measured anew. */
#define SUTRO_APART_CYCLES 16
/* It is not known before it was alone for this time. */
#define SUTRO_APART_KNOWN_NS (10 * MS)
/* Sums are halved when they are of more than this many cycles. */
#define SUTRO_APART_OLD 8
/* Rates are requests in 2^30 ns. */
#define SUTRO_APART_RATE_SHIFT 30
/* A group is to receive its share and this part of it more: rates are measured with errors. */
#define SUTRO_APART_SPARE 16

/**
 * sutro_apart_applies - may protected groups wait for each other?
 * @core:	the leaf
 */
bool sutro_apart_applies(const struct sutro_core *core)
{
	return !core->protect.reserve;
}

/*
 * Is a group with a missed latency target beside one with another target, or entitled to less than
 * one that is protected for its share?  Without measured costs, parts are not known, and windows
 * may stay too short for probes.
 */
static bool sutro_apart_yields(const struct sutro_protect *protect,
			       const struct sutro_group_protect *own)
{
	if (protect->guessing)
		return false;
	return protect->rivals ||
	       (protect->by_share && !sutro_group_keeps_up(own->group));
}

/* May a group have to wait for other protected ones? */
static bool sutro_apart_may(const struct sutro_protect *protect,
			    const struct sutro_group_protect *own)
{
	return !list_is_singular(&protect->groups) && !protect->reserve &&
	       !own->reserving &&
	       (!sutro_protect_by_target(own) ||
		sutro_apart_yields(protect, own));
}

/**
 * sutro_apart_shares - the sum of the shares of all protected groups
 * @protect:	the protection
 */
u64 sutro_apart_shares(const struct sutro_protect *protect)
{
	const struct sutro_group_protect *own;
	u64 sum = 0;

	list_for_each_entry(own, &protect->groups, list)
		sum += sutro_group_share(own->group, SUTRO_SHARE_WHOLE);
	return max(sum, 1ULL);
}

/**
 * sutro_apart_share - the share of a group among protected ones
 * @own:	its protection
 * @shares:	the sum of their shares
 * @whole:	the amount that is divided
 */
u64 sutro_apart_share(const struct sutro_group_protect *own, u64 shares,
		      u64 whole)
{
	u64 share = sutro_group_share(own->group, SUTRO_SHARE_WHOLE);

	return div64_u64(whole * share, shares);
}

/* ---- phases ---- */

static enum sutro_phase sutro_apart_phase(const struct sutro_protect *protect)
{
	if (!protect->clear)
		return SUTRO_PHASE_SHARED;
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
	enum sutro_phase phase = sutro_apart_phase(protect);

	protect->phase_ns[phase] += ns;
	if (phase == SUTRO_PHASE_BESIDE)
		protect->beside_ns += ns;
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
	enum sutro_phase phase = sutro_apart_phase(protect);

	if (!own->waits || phase != SUTRO_PHASE_ALONE)
		own->phases[phase].nr += nr;
	own->all.nr += nr;
}

/* For how long has a group been in phases of a kind?  Those in which it waits are not its own. */
static u64 sutro_apart_ns(const struct sutro_protect *protect,
			  const struct sutro_group_protect *own,
			  enum sutro_phase phase)
{
	u64 now_ns = protect->phase_ns[phase];

	if (own->waits && phase == SUTRO_PHASE_ALONE)
		now_ns = own->waits_from_ns;
	return now_ns - own->phases[phase].ns;
}

static u64 sutro_apart_rate(const struct sutro_protect *protect,
			    const struct sutro_group_protect *own,
			    enum sutro_phase phase)
{
	return div64_u64(own->phases[phase].nr << SUTRO_APART_RATE_SHIFT,
			 sutro_apart_ns(protect, own, phase) + 1);
}

/* Halve a sum that is of more than @most_ns, so that it counts less than newer requests. */
static void sutro_apart_age(const struct sutro_protect *protect,
			    struct sutro_group_protect *own,
			    enum sutro_phase phase, u64 most_ns)
{
	u64 ns = sutro_apart_ns(protect, own, phase);

	if (ns <= most_ns)
		return;
	own->phases[phase].ns += ns / 2;
	own->phases[phase].nr /= 2;
}

/* ---- who waits ---- */

static void sutro_apart_set(const struct sutro_protect *protect,
			    struct sutro_group_protect *own, bool waits)
{
	u64 alone_ns = protect->phase_ns[SUTRO_PHASE_ALONE];

	if (own->waits == waits)
		return;
	own->waits = waits;
	if (waits)
		own->waits_from_ns = alone_ns;
	else
		own->phases[SUTRO_PHASE_ALONE].ns +=
			alone_ns - own->waits_from_ns;
}

/* Have the requests of groups that wait completed? */
static void sutro_apart_look(struct sutro_protect *protect)
{
	const struct sutro_group_protect *own;
	bool waited = protect->waited;

	protect->waited = false;
	list_for_each_entry(own, &protect->groups, list) {
		if (own->waits && own->group->in_flight) {
			protect->waited = false;
			return;
		}
		protect->waited |= own->waits;
	}
	if (!waited)
		protect->waited_from_ns = protect->sum_ns;
}

static void sutro_apart_decide(struct sutro_protect *protect)
{
	struct sutro_group_protect *own;
	bool waits;

	list_for_each_entry(own, &protect->groups, list) {
		waits = protect->first ? own != protect->first
				       : protect->apart &&
						 own->window_ns >= own->part_ns;
		sutro_apart_set(protect, own,
				waits && sutro_apart_may(protect, own));
	}
	sutro_apart_look(protect);
}

/**
 * sutro_apart_waits - must a protected group wait for the other protected groups?
 * @protect:	the protection
 * @own:	that of the group
 */
bool sutro_apart_waits(const struct sutro_protect *protect,
		       const struct sutro_group_protect *own)
{
	return protect->reserved && own->waits;
}

/* ---- a cycle ---- */

/* Does a group receive less beside others than its share of its rate alone? */
static bool sutro_apart_is_harmful(const struct sutro_protect *protect)
{
	u64 shares = sutro_apart_shares(protect), alone;
	const struct sutro_group_protect *own;

	if (list_is_singular(&protect->groups))
		return false;
	list_for_each_entry(own, &protect->groups, list) {
		if (!own->phases[SUTRO_PHASE_ALONE].nr)
			continue;
		alone = sutro_apart_rate(protect, own, SUTRO_PHASE_ALONE);
		if (sutro_apart_rate(protect, own, SUTRO_PHASE_BESIDE) <
		    sutro_apart_share(own, shares, alone))
			return true;
	}
	return false;
}

/**
 * sutro_apart_is_short - did a group receive less than its share of its rate alone?
 * @protect:	the protection
 * @own:	that of the group
 *
 * Return: false, too, if that is not known.
 */
bool sutro_apart_is_short(const struct sutro_protect *protect,
			  const struct sutro_group_protect *own)
{
	u64 ns = protect->sum_ns - own->all.ns, alone, rate;

	if (own->phases[SUTRO_PHASE_ALONE].nr < SUTRO_PROTECT_KNOWN ||
	    own->all.nr < 4 * SUTRO_PROTECT_KNOWN || ns < 2 * protect->cycle_ns)
		return false;
	alone = sutro_apart_rate(protect, own, SUTRO_PHASE_ALONE);
	rate = div64_u64(own->all.nr << SUTRO_APART_RATE_SHIFT, ns);
	return rate < sutro_apart_share(own, SUTRO_SHARE_WHOLE,
					alone + alone / SUTRO_APART_SPARE);
}

/**
 * sutro_apart_most_shared - with how large a shared part does each group receive its share?
 * @core:	the leaf
 *
 * Return: of SUTRO_PROTECT_WHOLE.
 */
u32 sutro_apart_most_shared(const struct sutro_core *core)
{
	const struct sutro_protect *protect = &core->protect;
	u64 shares = sutro_apart_shares(protect), most = SUTRO_PROTECT_WHOLE;
	const struct sutro_group_protect *own;
	u64 alone, due, shared, reserved;

	if (!sutro_apart_applies(core) || list_is_singular(&protect->groups))
		return most;
	list_for_each_entry(own, &protect->groups, list) {
		if (own->phases[SUTRO_PHASE_ALONE].nr < SUTRO_PROTECT_KNOWN) {
			if (core->tunables.rotational && !own->group->queued)
				return 0;
			continue;
		}
		alone = sutro_apart_rate(protect, own, SUTRO_PHASE_ALONE);
		due = sutro_apart_share(own, SUTRO_SHARE_WHOLE,
					alone + alone / SUTRO_APART_SPARE);
		shared = sutro_apart_rate(protect, own, SUTRO_PHASE_SHARED);
		if (shared >= due)
			continue;
		reserved = sutro_apart_rate(protect, own, SUTRO_PHASE_BESIDE);
		/* One that waits has its rate beside others in its part only. */
		if (protect->apart)
			reserved = max(own->leads ? 0 : reserved,
				       sutro_apart_share(own, shares, alone));
		if (reserved <= due)
			return 0;
		most = min(most,
			   div64_u64((reserved - due) * SUTRO_PROTECT_WHOLE,
				     reserved - shared));
	}
	return most;
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

/*
 * Has a group used its part of the last section, and still has a backlog?  If none waits, it may
 * have used more, which others left.
 */
static bool sutro_apart_is_ahead(const struct sutro_protect *protect,
				 const struct sutro_group_protect *own)
{
	bool more = protect->apart ? own->waits : own->group->queued;

	return more && own->window_ns >= own->part_ns;
}

/**
 * sutro_apart_end - a cycle is over
 * @core:	the leaf, before its measurements are adapted
 */
void sutro_apart_end(struct sutro_core *core)
{
	struct sutro_protect *protect = &core->protect;
	/* Time in windows that are only a sample is charged. */
	bool lead = sutro_apart_applies(core) &&
		    !list_is_singular(&protect->groups) &&
		    protect->part < SUTRO_PROTECT_MOST_PART;
	struct sutro_group_protect *own;
	u32 i;

	sutro_others_end(protect);
	if (protect->beside_ns > SUTRO_APART_OLD * protect->cycle_ns) {
		protect->beside_ns /= 2;
		protect->beside_used_ns /= 2;
	}
	list_for_each_entry(own, &protect->groups, list) {
		bool ahead = lead && sutro_apart_is_ahead(protect, own);

		if (ahead)
			sutro_tree_lead(own->group,
					own->part_ns << protect->section_shift);
		sutro_others_lead(protect, own, ahead);
		sutro_apart_set(protect, own, false);
		for (i = 0; i < SUTRO_PHASES; i++)
			sutro_apart_age(protect, own, i,
					SUTRO_APART_OLD * protect->cycle_ns);
		own->window_ns -= min(own->window_ns,
				      protect->apart ? own->part_ns : U64_MAX);
	}
	protect->first = NULL;
	protect->apart = sutro_apart_applies(core) &&
			 (!sutro_apart_is_known(protect) ||
			  sutro_apart_is_harmful(protect));
}

/**
 * sutro_apart_begin - a cycle begins, or a setting or the set of protected groups has changed
 * @core:	the leaf
 * @begins:	a cycle begins
 * @now_ns:	the time
 */
void sutro_apart_begin(struct sutro_core *core, bool begins, u64 now_ns)
{
	struct sutro_protect *protect = &core->protect;

	protect->guessing = core->tunables.guessing;
	sutro_section_begin(protect);
	if (begins && sutro_apart_applies(core)) {
		protect->first = sutro_apart_first(protect, now_ns);
		protect->first_ns = protect->phase_ns[SUTRO_PHASE_ALONE];
	}
	/* It may do other work than when its rate alone was measured last. */
	if (begins && protect->first)
		sutro_apart_age(protect, protect->first, SUTRO_PHASE_ALONE,
				2 * SUTRO_APART_KNOWN_NS);
	sutro_apart_decide(protect);
}

/* For how long must the group that is first still be alone? */
static u64 sutro_apart_left_ns(const struct sutro_protect *protect)
{
	u64 ns = protect->phase_ns[SUTRO_PHASE_ALONE] - protect->first_ns;

	return SUTRO_APART_KNOWN_NS - min(ns, SUTRO_APART_KNOWN_NS);
}

/**
 * sutro_apart_check - has a group been alone for long enough, or is a section over?
 * @protect:	the protection, in a reserved window
 */
void sutro_apart_check(struct sutro_protect *protect)
{
	bool known = protect->first && !sutro_apart_left_ns(protect);

	if (known)
		protect->first = NULL;
	if (sutro_section_ends(protect) || known)
		sutro_apart_decide(protect);
}

/**
 * sutro_apart_look_ns - when to check that again
 * @protect:	the protection, in a reserved window
 * @now_ns:	the time
 */
u64 sutro_apart_look_ns(const struct sutro_protect *protect, u64 now_ns)
{
	u64 end_ns = sutro_section_end_ns(protect);

	if (!protect->first || !protect->clear || !protect->waited)
		return end_ns;
	return sutro_earlier(end_ns, now_ns + sutro_apart_left_ns(protect));
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

	sutro_apart_set(protect, own, false);
	own->window_ns = 0;
	own->all.ns = protect->sum_ns;
	own->all.nr = 0;
	/* Until the window is divided anew. */
	own->part_ns = U64_MAX;
	for (i = 0; i < SUTRO_PHASES; i++)
		own->phases[i].ns = protect->phase_ns[i] - own->phases[i].ns;
	if (protect->first == own)
		protect->first = NULL;
}

/**
 * sutro_apart_completed - requests of a protected group have completed
 * @protect:	the protection
 * @own:	that of the group
 * @cost_ns:	their device time
 */
void sutro_apart_completed(struct sutro_protect *protect,
			   const struct sutro_group_protect *own, u64 cost_ns)
{
	if (sutro_apart_phase(protect) == SUTRO_PHASE_BESIDE)
		protect->beside_used_ns += cost_ns;
	if (own->waits && !own->group->in_flight)
		sutro_apart_look(protect);
}

/**
 * sutro_apart_sent - a request of a protected group goes to the device
 * @core:	the leaf
 * @own:	the protection of the group
 * @estimate_ns: device time that it will probably use
 *
 * In a gap it takes no time of protected groups.
 */
void sutro_apart_sent(struct sutro_core *core, struct sutro_group_protect *own,
		      u64 estimate_ns)
{
	struct sutro_protect *protect = &core->protect;
	u32 shift = own == protect->first ? protect->section_shift : 0;

	if (!protect->reserved || core->gap)
		return;
	own->window_ns += estimate_ns;
	if (own->waits || own->window_ns < own->part_ns << shift)
		return;
	if (own == protect->first)
		protect->first = NULL;
	else if (!protect->apart)
		return;
	sutro_apart_decide(protect);
}
