// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: when requests go past the elevator.
 *
 * Direct mode (sutro-direct.c) is a lease to some groups, its members.
 *
 * 1. Begin and end
 *
 *	OFF	A lease begins after a streak: requests in a row, none of which waited,
 *		256 of them within 25 ms; and 20 ms after the last lease was over.  A
 *		group that sends one of them, after the first 128, becomes a member, and
 *		stays one in the next leases.
 *	ON	The lease ends after one second, after a tick of 10 ms with fewer than 32
 *		completions, and at any time when a group has a request that is no member
 *		and does not become one, or a request waits.
 *	DRAINS	Requests that went past the elevator are still at the device, or in the plug
 *		of a task that does not run.  When a tick finds that they have returned all tags,
 *		the lease is over; after one second in any case.
 *
 * With fewer than some 10,000 requests a second, the instructions of the elevator do not
 * matter, and it sees all requests.  Else it sees all of them for at least 20 ms of each second,
 * and measures their cost: a lease of 1000 ms, 10 to 20 ms until it is over, 20 ms before
 * the next one.
 *
 * Where groups share a CPU, each may send more than 256 requests before it is the turn of the
 * next one.  A lease to the first group ends when the second one has its turn, and the next
 * lease is to both.  A lease with several members admits further groups of their weight.  One with
 * a single member does not: this may have more at the device than groups beside others, for which
 * the newcomer would wait, and is not counted.  No group is a member any more when a request had to
 * wait, when a setting has changed, or when a group had its turn that may not be a member
 * (sutro-direct.c).
 *
 *	16 groups share a CPU in turns of 4 ms.  The first lease ends after 4 ms.  In the 32 ms
 *	until the next one seven groups become members, and nine in the 36 ms that follow.
 *
 * Members of one lease have no weights.  When they fill the device, that is seen after a tick
 * at the latest.  Then the pause before the next lease is four times as long, up to 5 s.  A
 * lease of one second halves it, or ends it if it had one member.
 *
 *	Two groups alternate between 5 ms with room and 5 ms without.  Each lease ends after
 *	10 ms, and the pauses are 20, 80, 320, 1280, 5120 ms: shares hold for 0.998 of the
 *	time.
 *
 *	A group sends few requests for 1.5 s, and then as many as it can.  Of two leases one
 *	goes on to its end, and the pauses are 20, 80, 40, 160, 80 ... 5120 ms.
 *
 * 2. Accounting
 *
 * The elevator has no hook where such a request completes.  But the block layer counts what
 * the disk completes, by CPU, and the elevator counts its own requests:
 *
 *	direct = disk - ordered
 *
 *	A disk has completed 1000 reads when a lease begins.  10 ms later it has
 *	completed 1810, and the elevator counted 10 of them: 800 went past it.
 *
 * Both are sums since the lease began, and only differences of them are accounted.  A
 * request that one of the two has counted, and the other one not yet, changes the
 * result by one for one tick, and is accounted exactly once.
 *
 * Each member receives the part of these sums that its requests are of those of all members:
 * sutro-member.c.
 */
#include <linux/minmax.h>

#include "sutro-core.h"
#include "sutro-lease.h"

#define SUTRO_LEASE_STREAK 256
#define SUTRO_LEASE_JOIN 128
#define SUTRO_LEASE_STREAK_NS (25 * 1000 * 1000ULL)
#define SUTRO_LEASE_FEW 32
#define SUTRO_LEASE_PAUSE_NS (20 * 1000 * 1000ULL)
#define SUTRO_LEASE_PAUSE_MAX_NS (256 * SUTRO_LEASE_PAUSE_NS)
#define SUTRO_LEASE_NS (1000 * 1000 * 1000ULL)

static void sutro_lease_set(struct sutro_lease *lease,
			    enum sutro_lease_state state, u64 now_ns)
{
	lease->state = state;
	lease->since_ns = now_ns;
}

/**
 * sutro_lease_init - prepare the lease of a leaf
 * @lease:	the lease, zeroed
 */
void sutro_lease_init(struct sutro_lease *lease)
{
	lease->number = 1;
	lease->pause_ns = SUTRO_LEASE_PAUSE_NS;
}

/* No group is a member any more. */
static void sutro_lease_renew(struct sutro_lease *lease)
{
	lease->renewed = false;
	if (!lease->members)
		return;
	lease->members = 0;
	lease->number = lease->number + 1 ?: 1;
}

/**
 * sutro_lease_restart - a request waits, has to be ordered, or a setting has changed
 * @lease:	the lease of the leaf
 *
 * The next lease, which follows another streak, has members of its own.
 */
void sutro_lease_restart(struct sutro_lease *lease)
{
	if (lease->state == SUTRO_LEASE_OFF) {
		lease->streak = 0;
		sutro_lease_renew(lease);
	} else {
		lease->renewed = true;
	}
}

/**
 * sutro_lease_admits - does a group that sends the next request become a member?
 * @lease:	the lease of the leaf
 */
bool sutro_lease_admits(const struct sutro_lease *lease)
{
	return lease->streak >= SUTRO_LEASE_STREAK - SUTRO_LEASE_JOIN;
}

/**
 * sutro_lease_passed - a request did not wait
 * @lease:	the lease of the leaf
 * @now_ns:	the time
 *
 * Return: true if a lease may begin.
 */
bool sutro_lease_passed(struct sutro_lease *lease, u64 now_ns)
{
	if (lease->state != SUTRO_LEASE_OFF)
		return false;
	if (!lease->streak++)
		lease->streak_ns = now_ns;
	if (lease->streak < SUTRO_LEASE_STREAK)
		return false;
	if (lease->streak == SUTRO_LEASE_STREAK &&
	    now_ns > lease->streak_ns + SUTRO_LEASE_STREAK_NS) {
		sutro_lease_restart(lease);
		return false;
	}
	return now_ns >= lease->since_ns + lease->pause_ns;
}

/**
 * sutro_lease_begin - a lease begins
 * @lease:	the lease of the leaf, which is due
 * @disk:	the requests that the disk has completed since it exists
 * @now_ns:	the time
 */
void sutro_lease_begin(struct sutro_lease *lease,
		       const struct sutro_tally *disk, u64 now_ns)
{
	lease->streak = 0;
	lease->base = *disk;
	lease->ordered = (struct sutro_tally){};
	lease->accounted = (struct sutro_tally){};
	sutro_lease_set(lease, SUTRO_LEASE_ON, now_ns);
}

/* The increase since the last call; a sum that decreased waits until it has its old value. */
static unsigned long sutro_lease_new(unsigned long sum,
				     unsigned long *accounted)
{
	long delta = sum - *accounted;

	if (delta <= 0)
		return 0;
	*accounted += delta;
	return delta;
}

static u64 sutro_lease_new_ns(u64 sum_ns, u64 *accounted_ns)
{
	s64 delta_ns = sum_ns - *accounted_ns;

	if (delta_ns <= 0)
		return 0;
	*accounted_ns += delta_ns;
	return delta_ns;
}

/**
 * sutro_lease_account - account for requests that went past the elevator
 * @lease:	the lease of the leaf, not OFF
 * @disk:	the requests that the disk has completed since it exists
 * @ret_new:	such requests since the last call
 *
 * Return: their number, negative if the elevator has counted requests that the disk
 * has not counted yet.
 */
long sutro_lease_account(struct sutro_lease *lease,
			 const struct sutro_tally *disk,
			 struct sutro_tally *ret_new)
{
	const struct sutro_tally *base = &lease->base;
	const struct sutro_tally *ordered = &lease->ordered;
	struct sutro_tally *accounted = &lease->accounted;
	long completed = 0;
	int op;

	for (op = 0; op < 2; op++) {
		unsigned long ios =
			disk->ios[op] - base->ios[op] - ordered->ios[op];
		unsigned long sectors = disk->sectors[op] - base->sectors[op] -
					ordered->sectors[op];
		u64 took_ns = disk->took_ns[op] - base->took_ns[op] -
			      ordered->took_ns[op];

		completed += ios - accounted->ios[op];
		ret_new->ios[op] = sutro_lease_new(ios, &accounted->ios[op]);
		ret_new->sectors[op] =
			sutro_lease_new(sectors, &accounted->sectors[op]);
		ret_new->took_ns[op] =
			sutro_lease_new_ns(took_ns, &accounted->took_ns[op]);
	}
	return completed;
}

/**
 * sutro_lease_part - the part of a member in a sum
 * @left:	the sum, less the parts of former members; this one is subtracted
 * @mine:	requests or bytes that the member has sent
 * @all:	those of it and of all next members; @mine is subtracted
 *
 * The parts of all members add up to the sum; the last one receives what rounding has left.
 *
 *	Members have sent 10, 10 and 10, and 100 have completed: 33, 33 and 34.
 *
 * Return: the part.
 */
u64 sutro_lease_part(u64 *left, u64 mine, u64 *all)
{
	u64 part = mine >= *all ? *left : div64_u64(*left * mine, *all);

	*left -= part;
	*all -= min(mine, *all);
	return part;
}

/**
 * sutro_lease_is_deep - did members have so much at the device that others would have to wait?
 * @lease:	the lease of the leaf
 * @new:	from sutro_lease_account()
 * @elapsed_ns:	time since the tick before
 * @cost_ns:	device time of these requests
 * @depth_ns:	the most that several groups may have at the device
 * @alone_ns:	the same for a group alone
 *
 * In the mean, they had the sum of the times that requests took (Little's law), by their mean cost.
 * With one member, the mean of these times shows it (sutro-alone.c).
 */
bool sutro_lease_is_deep(const struct sutro_lease *lease,
			 const struct sutro_tally *new, u64 elapsed_ns,
			 u64 cost_ns, u64 depth_ns, u64 alone_ns)
{
	u64 took_ns = new->took_ns[0] + new->took_ns[1];
	u64 ios = max(new->ios[0] + new->ios[1], 1UL);
	u64 in_flight = div64_u64(took_ns, max(elapsed_ns, 1ULL));

	if (in_flight < SUTRO_DEPTH_MIN)
		return false;
	if (lease->members > 1)
		return in_flight * div64_u64(cost_ns, ios) >= depth_ns;
	return div64_u64(took_ns, ios) >= alone_ns;
}

/* A lease ends by the news of a tick, or because its time is over (@news is CALM). */
static void sutro_lease_end(struct sutro_lease *lease,
			    enum sutro_lease_news news, u64 now_ns)
{
	sutro_lease_set(lease, SUTRO_LEASE_DRAINS, now_ns);
	if (news == SUTRO_LEASE_FULL)
		lease->renewed = true;
	if (news == SUTRO_LEASE_CALM && lease->members < 2)
		lease->pause_ns = SUTRO_LEASE_PAUSE_NS;
	else if (news == SUTRO_LEASE_CALM)
		lease->pause_ns =
			max(lease->pause_ns / 2, SUTRO_LEASE_PAUSE_NS);
	else if (news == SUTRO_LEASE_FULL && lease->members > 1)
		lease->pause_ns =
			min(4 * lease->pause_ns, SUTRO_LEASE_PAUSE_MAX_NS);
}

/**
 * sutro_lease_tick - go on or end
 * @lease:	the lease of the leaf, not OFF
 * @completed:	from sutro_lease_account()
 * @left:	not all of its requests had completed before that was called
 * @news:	whether something has to be ordered
 * @now_ns:	the time
 *
 * Return: the new state.
 */
enum sutro_lease_state sutro_lease_tick(struct sutro_lease *lease,
					long completed, bool left,
					enum sutro_lease_news news, u64 now_ns)
{
	u64 elapsed_ns = now_ns - lease->since_ns;

	if (lease->state == SUTRO_LEASE_ON) {
		if (news != SUTRO_LEASE_CALM || elapsed_ns >= SUTRO_LEASE_NS)
			sutro_lease_end(lease, news, now_ns);
		else if (completed < SUTRO_LEASE_FEW)
			sutro_lease_set(lease, SUTRO_LEASE_DRAINS, now_ns);
	} else if (!left || elapsed_ns >= SUTRO_LEASE_NS) {
		sutro_lease_set(lease, SUTRO_LEASE_OFF, now_ns);
		if (lease->renewed)
			sutro_lease_renew(lease);
	}
	return lease->state;
}
