// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: when is a group back that thinks?
 *
 * A group thinks while it has no requests at any leaf (sutro-volume.c).  Few groups do so for the
 * same time after each request.  A database writes, flushes at once, and comes back with the next
 * transaction; threads that pause together come back one after another.  So the last
 * SUTRO_THINK_NR think times of a group are kept, sorted.  The longest time between two neighbours
 * of these, or before the shortest one, is quiet: the group did not come back then.  If it is still
 * away when that time begins, it is expected back when it ends.
 *
 *	A group flushes 0.1 ms after each write and writes 10 ms after each flush.  Half of
 *	its think times are 0.1 ms, half are 10 ms.  It is quiet from 0.1 to 10 ms: others use the
 *	device for most of that, although the shortest think time is 0.1 ms.
 *
 * A new think time lies between two given neighbours with a chance of 1 in SUTRO_THINK_NR + 1: if
 * think times do not depend on one another, each place among the others is equally likely.  The
 * longest of these times has a higher chance, 7 % if think times are spread evenly: in that many
 * cases a group is back early.  The last quarter of think times does not count, because few of
 * them are as long.
 */
#include <linux/minmax.h>
#include <linux/string.h>

#include "sutro-think.h"

/* The quiet time is determined after each eighth think time. */
#define SUTRO_THINK_LOOK 8
/* A group is rarely back within some time if it is in one of this many cases. */
#define SUTRO_THINK_RARE 4
/* A think time ends by this part of that time later than it did before. */
#define SUTRO_THINK_MARGIN 8
/* Weight of the newest sample in the mean: 1/8; in the maximum: 1/64. */
#define SUTRO_THINK_MEAN_SHIFT 3
#define SUTRO_THINK_MAX_SHIFT 6

/* Remove the oldest time from those that are sorted. */
static void sutro_think_forget(struct sutro_think *think)
{
	u32 *sorted_us = think->sorted_us;
	u32 i;

	for (i = 0; sorted_us[i] != think->ring_us[think->next]; i++)
		;
	think->nr--;
	think->sum_us -= sorted_us[i];
	memmove(sorted_us + i, sorted_us + i + 1,
		(think->nr - i) * sizeof(*sorted_us));
}

static void sutro_think_sort(struct sutro_think *think, u32 time_us)
{
	u32 i;

	for (i = think->nr; i && think->sorted_us[i - 1] > time_us; i--)
		think->sorted_us[i] = think->sorted_us[i - 1];
	think->sorted_us[i] = time_us;
	think->sum_us += time_us;
	think->nr++;
}

static void sutro_think_find_quiet(struct sutro_think *think)
{
	u32 nr = think->nr < SUTRO_THINK_FEW ? 1 : think->nr * 3 / 4;
	u32 from_us = 0;
	u32 i;

	think->quiet_from_us = 0;
	think->quiet_to_us = 0;
	for (i = 0; i < nr; i++) {
		if (think->sorted_us[i] - from_us >
		    sutro_think_quiet_us(think)) {
			think->quiet_from_us = from_us;
			think->quiet_to_us = think->sorted_us[i];
		}
		from_us = think->sorted_us[i];
	}
}

/**
 * sutro_think_add - a group is back
 * @think:	its think times
 * @time_us:	time since its last completion
 */
void sutro_think_add(struct sutro_think *think, u32 time_us)
{
	think->mean_us += ((s32)time_us - (s32)think->mean_us) >>
			  SUTRO_THINK_MEAN_SHIFT;
	if (time_us > think->max_us)
		think->max_us = time_us;
	else
		think->max_us -= (think->max_us - time_us) >>
				 SUTRO_THINK_MAX_SHIFT;
	if (think->nr == SUTRO_THINK_NR)
		sutro_think_forget(think);
	sutro_think_sort(think, time_us);
	think->ring_us[think->next] = time_us;
	think->next = (think->next + 1) % SUTRO_THINK_NR;
	if (think->nr < SUTRO_THINK_FEW || !(think->next % SUTRO_THINK_LOOK))
		sutro_think_find_quiet(think);
}

/**
 * sutro_think_is_quiet - is a group not expected back yet?
 * @think:	its think times
 * @away_us:	time since its last completion
 *
 * Return: true if it is expected back at &sutro_think.quiet_to_us, false if it may be back at any
 * time.
 */
bool sutro_think_is_quiet(const struct sutro_think *think, u64 away_us)
{
	return away_us >= think->quiet_from_us && away_us < think->quiet_to_us;
}

/**
 * sutro_think_usual_us - when do three of four think times end?
 * @think:	its think times, at least four
 * @need_us:	a time of which they may be a part in SUTRO_THINK_MARGIN longer than before
 */
u64 sutro_think_usual_us(const struct sutro_think *think, u64 need_us)
{
	return think->sorted_us[think->nr * 3 / 4 - 1] + 1ULL +
	       need_us / SUTRO_THINK_MARGIN;
}

/* How many of the think times are shorter? */
static u32 sutro_think_shorter(const struct sutro_think *think, u64 time_us)
{
	u32 low = 0, high = think->nr, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (think->sorted_us[middle] < time_us)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/**
 * sutro_think_free_us - from when on is a group rarely back within some time?
 * @think:	its think times
 * @away_us:	time since its last completion
 * @need_us:	that time
 *
 * Of the think times that are as long as the returned one, at most one in SUTRO_THINK_RARE ends
 * within @need_us after it.
 *
 *	Of 64 think times 60 are 10 us, the others 30, 30, 40 and 60 ms.  For 20 ms, the group is
 *	rarely back from 2.5 ms on, but not from 11 ms on: it may be back after 30.
 *
 * Return: a time since its last completion, @away_us or later.
 */
u64 sutro_think_free_us(const struct sutro_think *think, u64 away_us,
			u64 need_us)
{
	u64 margin_us = need_us / SUTRO_THINK_MARGIN;
	u32 i, end;

	for (;;) {
		i = sutro_think_shorter(think,
					away_us - min(away_us, margin_us));
		end = sutro_think_shorter(think, away_us + need_us);
		if (SUTRO_THINK_RARE * (end - i) <= think->nr - i)
			return away_us;
		away_us = think->sorted_us[i] + margin_us + 1;
	}
}
