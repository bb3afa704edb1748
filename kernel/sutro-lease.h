/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: when requests of a group go past the elevator.
 */
#ifndef SUTRO_LEASE_H
#define SUTRO_LEASE_H

#include <linux/math64.h>
#include <linux/types.h>

/* Between two calls of sutro_lease_tick(). */
#define SUTRO_LEASE_TICK_NS (10 * 1000 * 1000ULL)

/**
 * enum sutro_lease_state - direct mode of a leaf
 * @SUTRO_LEASE_OFF:	all requests go through the elevator
 * @SUTRO_LEASE_ON:	requests of one group go past it
 * @SUTRO_LEASE_DRAINS:	no more do, and those that went are at the device
 */
enum sutro_lease_state {
	SUTRO_LEASE_OFF,
	SUTRO_LEASE_ON,
	SUTRO_LEASE_DRAINS,
};

/**
 * struct sutro_tally - completed requests, reads (0) and writes (1)
 * @ios:	their number
 * @sectors:	their size
 * @took_ns:	sum of their times from allocation to completion
 *
 * The types are those of struct disk_stats; only differences count, so it may wrap.
 */
struct sutro_tally {
	unsigned long ios[2];
	unsigned long sectors[2];
	u64 took_ns[2];
};

/**
 * struct sutro_lease - direct mode of a leaf
 * @state:	see there
 * @since_ns:	when it became @state
 * @streak:	requests in a row that did not wait, while @state is OFF
 * @streak_ns:	when the first of them was sent
 * @base:	requests that the disk had completed when the lease began
 * @ordered:	requests of the elevator that completed since then
 * @accounted:	requests that went past the elevator and are accounted for
 */
struct sutro_lease {
	enum sutro_lease_state state;
	u64 since_ns;
	u32 streak;
	u64 streak_ns;
	struct sutro_tally base;
	struct sutro_tally ordered;
	struct sutro_tally accounted;
};

bool sutro_lease_passed(struct sutro_lease *lease, u64 now_ns);
void sutro_lease_begin(struct sutro_lease *lease,
		       const struct sutro_tally *disk, u64 now_ns);
long sutro_lease_account(struct sutro_lease *lease,
			 const struct sutro_tally *disk,
			 struct sutro_tally *ret_new);
enum sutro_lease_state sutro_lease_tick(struct sutro_lease *lease,
					long completed, long slack, bool calm,
					u64 now_ns);

#endif /* SUTRO_LEASE_H */
