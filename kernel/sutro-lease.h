/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: when requests go past the elevator.
 *
 * Pure C, like sutro-core.h.  The caller serializes all calls.
 */
#ifndef SUTRO_LEASE_H
#define SUTRO_LEASE_H

#include <linux/math64.h>
#include <linux/types.h>

struct sutro_group;

/* Between two calls of sutro_lease_tick(). */
#define SUTRO_LEASE_TICK_NS (10 * 1000 * 1000ULL)

/**
 * enum sutro_lease_state - direct mode of a leaf
 * @SUTRO_LEASE_OFF:	all requests go through the elevator
 * @SUTRO_LEASE_ON:	requests of its members go past it
 * @SUTRO_LEASE_DRAINS:	no more do, and those that went are at the device
 */
enum sutro_lease_state {
	SUTRO_LEASE_OFF,
	SUTRO_LEASE_ON,
	SUTRO_LEASE_DRAINS,
};

/**
 * enum sutro_lease_news - what a tick has found
 * @SUTRO_LEASE_CALM:	there is nothing to be ordered
 * @SUTRO_LEASE_OVER:	a group that is no member has a request, or a setting has changed
 * @SUTRO_LEASE_FULL:	requests had to wait, or so much is at the device that they soon will
 */
enum sutro_lease_news {
	SUTRO_LEASE_CALM,
	SUTRO_LEASE_OVER,
	SUTRO_LEASE_FULL,
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
 * @number:	of the set of its members; not 0
 * @members:	groups whose requests go past the elevator, or will with the next lease
 * @parent:	that of all members, if they have one weight and class, or NULL
 * @weight:	their weight, if they have a @parent
 * @class:	likewise
 * @renewed:	the next lease has other members
 * @streak:	requests in a row that did not wait, while @state is OFF
 * @streak_ns:	when the first of them was sent
 * @pause_ns:	the least time between the end of a lease and the next one
 * @base:	requests that the disk had completed when the lease began
 * @ordered:	requests of the elevator that completed since then
 * @accounted:	requests that went past the elevator and are accounted for
 */
struct sutro_lease {
	enum sutro_lease_state state;
	u64 since_ns;
	u32 number;
	u32 members;
	const struct sutro_group *parent;
	u32 weight;
	u8 class;
	bool renewed;
	u32 streak;
	u64 streak_ns;
	u64 pause_ns;
	struct sutro_tally base;
	struct sutro_tally ordered;
	struct sutro_tally accounted;
};

void sutro_lease_init(struct sutro_lease *lease);
void sutro_lease_restart(struct sutro_lease *lease);
bool sutro_lease_admits(const struct sutro_lease *lease);
bool sutro_lease_passed(struct sutro_lease *lease, u64 now_ns);
void sutro_lease_begin(struct sutro_lease *lease,
		       const struct sutro_tally *disk, u64 now_ns);
long sutro_lease_account(struct sutro_lease *lease,
			 const struct sutro_tally *disk,
			 struct sutro_tally *ret_new);
u64 sutro_lease_part(u64 *left, u64 mine, u64 *all);
bool sutro_lease_is_deep(const struct sutro_lease *lease,
			 const struct sutro_tally *new, u64 elapsed_ns,
			 u64 cost_ns, u64 depth_ns, u64 alone_ns);
enum sutro_lease_state sutro_lease_tick(struct sutro_lease *lease,
					long completed, bool left,
					enum sutro_lease_news news, u64 now_ns);

#endif /* SUTRO_LEASE_H */
