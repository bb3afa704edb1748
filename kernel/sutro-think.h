/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: for how long does a group think?
 */
#ifndef SUTRO_THINK_H
#define SUTRO_THINK_H

#include <linux/math64.h>
#include <linux/types.h>

/* The number of think times of a group that are kept. */
#define SUTRO_THINK_NR 64
/* With fewer times, only the one before the shortest is known to be quiet. */
#define SUTRO_THINK_FEW 16

/**
 * struct sutro_think - the last times from the last completion of a group to its next request
 * @mean_us:	their mean and that of older ones, newer ones count more
 * @sum_us:	their sum
 * @max_us:	the longest, nearly
 * @nr:		how many are known
 * @next:	place in @ring_us of the next one
 * @quiet_from_us: the begin of the longest time in which the group did not come back, since its
 *		last completion
 * @quiet_to_us: the end of that time
 * @ring_us:	the times in the order in which they were seen
 * @sorted_us:	the same, the shortest one first
 */
struct sutro_think {
	u32 mean_us;
	u64 sum_us;
	u32 max_us;
	u8 nr;
	u8 next;
	u32 quiet_from_us;
	u32 quiet_to_us;
	u32 ring_us[SUTRO_THINK_NR];
	u32 sorted_us[SUTRO_THINK_NR];
};

/* The shortest of the times, 0 = none is known. */
static inline u32 sutro_think_min_us(const struct sutro_think *think)
{
	return think->sorted_us[0];
}

/*
 * The second longest of the times that are kept: a pause that long is no exception.  0 = not
 * known.
 */
static inline u32 sutro_think_habit_us(const struct sutro_think *think)
{
	return think->nr > 1 ? think->sorted_us[think->nr - 2] : 0;
}

/* For how long does the group not come back? */
static inline u32 sutro_think_quiet_us(const struct sutro_think *think)
{
	return think->quiet_to_us - think->quiet_from_us;
}

/* The mean of the times that are kept, 0 = none is known. */
static inline u64 sutro_think_mean_us(const struct sutro_think *think)
{
	return think->nr ? div_u64(think->sum_us, think->nr) : 0;
}

u64 sutro_think_usual_us(const struct sutro_think *think, u64 need_us);
u64 sutro_think_free_us(const struct sutro_think *think, u64 away_us,
			u64 need_us);
void sutro_think_add(struct sutro_think *think, u32 time_us);
bool sutro_think_is_quiet(const struct sutro_think *think, u64 away_us);

#endif /* SUTRO_THINK_H */
