// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: parts and sections of reserved windows.
 *
 * 1. Parts
 *
 * Where protected groups wait for each other (sutro-apart.c), each may use its share of a reserved
 * window first.  Parts are of the device time that groups use while none waits.  Shared windows
 * alone do not show it: short ones end before the device is busy.
 *
 * 2. Sections
 *
 * A group that has used its part waits until the window ends, and cycles are long: each begins
 * with requests of others, which more than 1 % of the requests of protected groups may not meet
 * (sutro-window.c).  For a favoured group, that is the price of its protection.  For one that only
 * keeps up with it, the owner of another slice chooses that by the weights in this slice.
 *
 * So beside such a group on flash, a window is divided into sections of the same length, and each
 * group has its part of each of them.  A section takes as long as SUTRO_SECTION_ROUNDS requests for
 * each that protected groups have at once: then a deep group waits for others about as long as for
 * its own requests.  It is not much shorter, for requests of a group that begins to wait are still
 * at the device, and others have it for themselves only after these.  For the same reason its parts
 * are not of the use of the device: before a group waits, the time is too short for that to show.
 *
 *	a (weight 100) has 32 reads of 64 KiB on an ssd of 540 MB/s.  A slice (100) has a reader of
 *	4 KiB (10000) and 32 other reads (1).  a and the first reader have 9,200 requests in a
 *	second, and 33 at once: a round takes 3.6 ms, and a section 8.  P99 of a was 71 ms, half of
 *	a window of 134, and is 11 ms.  It is 8 ms beside 32 reads like its own.
 */
#include <linux/math64.h>

#include "sutro-section.h"

#define MS (1000 * 1000ULL)

/* The most rounds that a section takes: requests for each that protected groups have at once. */
#define SUTRO_SECTION_ROUNDS 4
/* Shorter ones are not divided. */
#define SUTRO_SECTION_DIVIDED_NS (2 * MS)

/*
 * How much of the device do groups use that do not wait?  Short shared windows, and windows in
 * which groups wait, yield a lower bound.  All of it if that is not known.
 */
static u64 sutro_section_whole(const struct sutro_protect *protect)
{
	s64 used = div64_u64(protect->beside_used_ns * SUTRO_PROTECT_WHOLE,
			     protect->beside_ns + 1);

	used = max(used, protect->most);
	return used ? min_t(s64, used, SUTRO_PROTECT_WHOLE)
		    : SUTRO_PROTECT_WHOLE;
}

/* Divide the reserved window into sections, if a group waits that only keeps up with others. */
static void sutro_section_divide(struct sutro_protect *protect)
{
	u64 most_ns =
		max(SUTRO_SECTION_DIVIDED_NS,
		    SUTRO_SECTION_ROUNDS *
			    sutro_window_round_ns(protect, protect->depth));

	protect->section_from_ns = protect->shared_ns;
	protect->section_ns =
		protect->begin_ns + protect->cycle_ns - protect->shared_ns;
	protect->section_shift = 0;
	if (!protect->apart || !protect->keeps_up ||
	    !protect->sums[SUTRO_WINDOW_RESERVED].nr)
		return;
	while (protect->section_ns > most_ns) {
		protect->section_ns /= 2;
		protect->section_shift++;
	}
}

/**
 * sutro_section_begin - a cycle begins, or a setting or the set of protected groups has changed
 * @protect:	the protection
 *
 * Set the part of each section that each group may use, as device time by estimates.
 */
void sutro_section_begin(struct sutro_protect *protect)
{
	u64 shares = sutro_apart_shares(protect);
	struct sutro_group_protect *own;
	u64 ns;

	sutro_section_divide(protect);
	ns = protect->section_ns;
	if (!protect->section_shift)
		ns = ns * sutro_section_whole(protect) / SUTRO_PROTECT_WHOLE;
	list_for_each_entry(own, &protect->groups, list)
		own->part_ns = max(sutro_apart_share(own, shares, ns), 1ULL);
}

/**
 * sutro_section_ends - is a section over?  Groups have their parts of the next one
 * @protect:	the protection, in a reserved window
 *
 * A group that is measured alone goes on until it has used its part of the window.
 */
bool sutro_section_ends(struct sutro_protect *protect)
{
	struct sutro_group_protect *own;
	u64 nr;

	if (sutro_before(protect->sum_ns, sutro_section_end_ns(protect)))
		return false;
	nr = div64_u64(protect->sum_ns - protect->section_from_ns,
		       protect->section_ns);
	protect->section_from_ns += nr * protect->section_ns;
	list_for_each_entry(own, &protect->groups, list)
		if (own != protect->first)
			own->window_ns -=
				min(own->window_ns, nr * own->part_ns);
	return true;
}

/**
 * sutro_section_end_ns - when does a section end before the window does?
 * @protect:	the protection, in a reserved window
 *
 * Return: a time in the far future for the only one.
 */
u64 sutro_section_end_ns(const struct sutro_protect *protect)
{
	if (!protect->section_shift)
		return protect->sum_ns + SUTRO_CORE_EVER_NS;
	return protect->section_from_ns + protect->section_ns;
}
