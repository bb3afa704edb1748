// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: protected groups on volumes of several leaves.
 *
 * On a stripe or a mirror, a group with few requests has one now at one leaf and now at another.
 * Each leaf protects it by its own measurements.  But a leaf that sees only its own requests takes
 * the time in which the group works at another leaf for one in which it thinks.  Others would
 * send then, or the protection would end, and the group's next request would wait for theirs.
 *
 * 1. Requests at any leaf
 *
 * So &struct sutro_leaves, one for each cgroup, counts the leaves at which it is protected and has
 * requests.  While it has any, it does not think: there is no gap (sutro-gap.c), it is not away
 * (sutro-away.c), and it stays protected, for SUTRO_PROTECT_STAYS_NS at most.  Think times begin
 * when it has none at any leaf.  Groups with reserved time or a latency target are counted together
 * for the cgroup that has it.
 *
 *	a (weight 1000) reads 4 KiB, 0.3 ms each, from a mirror that sends each read to the leaf
 *	with fewer requests; b writes 1 MiB, 7.4 ms each.  a stays at one leaf for 30 ms or
 *	more.  Without the count, the other leaf sends a write of b meanwhile.  When it is done,
 *	that leaf has fewer requests, so a's next read goes there, and waits for the next write.
 *
 * Only protected groups are counted, so others touch no cache line that leaves share.
 *
 * 2. Independent leaves
 *
 * A cgroup may also use leaves that have nothing to do with each other: the log and the data of a
 * database are on disks of their own.  Then its requests arrive at one disk while it has others at
 * the other disk, and neither disk should idle for that reason.  So a leaf looks at each request
 * that arrives while the group has none there: does it have one elsewhere?  If the leaves are
 * independent, the chance of that is the part of the time since its last completion here for which
 * it had one elsewhere.  A group moves between leaves if it happens less than
 * 1 / SUTRO_VOLUME_MOVES as often, in about 2^SUTRO_VOLUME_SHIFT requests.  Only groups that move
 * are treated as in 1 and 3.
 *
 *	a reads one block at a time from a stripe of four leaves.  Between two of its requests at
 *	a leaf it has one at another for three quarters of the time, and none arrives then: a
 *	moves.  With 16 at a time nearly all arrive then, so a leaf uses its own think times.
 *	c reads one block at a time from each of two disks and thinks for 5 ms.  Each disk finds a
 *	request at the other one for 5 % of the time, and in 5 % of the cases: c does not move.
 *
 * Requests that arrive at several leaves within SUTRO_VOLUME_TOGETHER_NS count as one, which was
 * split, or is a write to a mirror.
 *
 * 3. Shared windows
 *
 * If one leaf is slow, the rate of a group at the others depends on that leaf more than on their
 * own windows.  By the rates in both kinds of windows (sutro-part.c), sharing then seems to do no
 * harm there.  So all leaves of a group that moves have the smallest of their shared parts.
 * Windows begin at the same times in any case (sutro-window.c).
 *
 *	A database on a mirror, beside writes of its own slice and commits of another one, has
 *	0.91 of its rate alone, and 0.81 if each leaf has its own part.
 *
 * 4. Rotational devices
 *
 * There the shares of several groups are kept by slices (sutro-select.c).  A group that is
 * protected for its share moves only if it is latency-sensitive and no other one is protected: the
 * reserved windows of a stripe would otherwise belong to those with many requests.
 *
 *	On a stripe of two, a reads 32 KiB at a time and has 0.44 of its rate alone beside 16
 *	writes of b, which weighs as much.  It has 0.27 if it is protected while it moves.
 */
#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/math64.h>

#include "sutro-core.h"

/* A group moves if its requests meet others at another leaf this many times less than by chance. */
#define SUTRO_VOLUME_MOVES 4
/*
 * Weight of the newest request: 1/256.  With 1/64, a group that thinks for 10 ms at one disk and
 * for 13 ms at another one seems to move, and others have half of the time in its gaps.
 */
#define SUTRO_VOLUME_SHIFT 8
#define SUTRO_VOLUME_WHOLE BIT_ULL(20)
/* Requests at several leaves within this time are one that was split. */
#define SUTRO_VOLUME_TOGETHER_NS (100 * 1000)
/* Longer times without requests count as this: 18 minutes. */
#define SUTRO_VOLUME_LONG_NS ((s64)BIT_ULL(40))
/* The shared part of a leaf limits others for this many of its cycles. */
#define SUTRO_VOLUME_CYCLES 2

/* Do the requests of a group move between leaves (see 2)? */
static bool sutro_volume_moves(const struct sutro_group_protect *own)
{
	return own->leaves && (own->reserving || sutro_protect_by_target(own) ||
			       SUTRO_VOLUME_MOVES * own->beside <= own->chance);
}

/**
 * sutro_volume_is_busy - does a group that moves have requests at another leaf?
 * @own:	its protection, while the group has no request at this leaf
 *
 * Requests of other groups count as well if they share its reserved time or its latency target.
 */
bool sutro_volume_is_busy(const struct sutro_group_protect *own)
{
	return sutro_volume_moves(own) && atomic_read(&own->leaves->nr);
}

/**
 * sutro_volume_since_ns - when did the last request of a group complete?
 * @own:	its protection, while the group has no request at this leaf
 *
 * Return: the time of the last completion at this leaf, or at any leaf if the group moves.
 */
u64 sutro_volume_since_ns(const struct sutro_group_protect *own)
{
	u64 here_ns = own->group->empty_since_ns, all_ns;

	if (!sutro_volume_moves(own))
		return here_ns;
	all_ns = READ_ONCE(own->leaves->empty_since_ns);
	return sutro_before(here_ns, all_ns) ? all_ns : here_ns;
}

/**
 * sutro_volume_used - has a group had requests at another leaf since its last one at this leaf?
 * @own:	its protection, while it has none at this leaf
 */
bool sutro_volume_used(const struct sutro_group_protect *own)
{
	return sutro_volume_is_busy(own) ||
	       sutro_before(own->group->empty_since_ns,
			    sutro_volume_since_ns(own));
}

/* For how long has a cgroup had requests at any leaf? */
static u64 sutro_volume_busy_ns(const struct sutro_leaves *leaves, u64 now_ns)
{
	s64 ns = 0;

	if (atomic_read(&leaves->nr))
		ns = now_ns - READ_ONCE(leaves->busy_since_ns);
	return READ_ONCE(leaves->busy_ns) + max_t(s64, ns, 0);
}

/**
 * sutro_volume_count - a group may have got its first request, or lost its last one
 * @own:	its protection
 * @now_ns:	the time
 */
void sutro_volume_count(struct sutro_group_protect *own, u64 now_ns)
{
	const struct sutro_group *group = own->group;
	struct sutro_leaves *leaves = NULL, *counted = own->counted;

	if (sutro_group_protected(group) && (group->queued || group->in_flight))
		leaves = own->leaves;
	if (leaves == counted)
		return;
	if (counted) {
		own->mark_ns = sutro_volume_busy_ns(counted, now_ns);
		if (atomic_dec_and_test(&counted->nr)) {
			WRITE_ONCE(counted->busy_ns, own->mark_ns);
			WRITE_ONCE(counted->empty_since_ns, now_ns);
		}
	}
	own->counted = leaves;
	if (leaves && atomic_inc_return(&leaves->nr) == 1) {
		WRITE_ONCE(leaves->busy_since_ns, now_ns);
		own->learned_ns = now_ns;
	}
}

/* Are requests of a group counted that is protected for its share?  See 4. */
static bool sutro_volume_counts(const struct sutro_core *core,
				const struct sutro_group_protect *own)
{
	return !core->tunables.rotational ||
	       (list_is_singular(&core->protect.groups) &&
		sutro_group_favoured(own->group, SUTRO_PROTECT_SENSITIVE));
}

/**
 * sutro_volume_find - find the group for which time is reserved that a protected group may use, and
 *	that of which requests are counted
 * @core:	the leaf
 * @own:	the protection of the group
 * @now_ns:	the time
 */
void sutro_volume_find(const struct sutro_core *core,
		       struct sutro_group_protect *own, u64 now_ns)
{
	struct sutro_group *reserving = sutro_group_reserving(own->group);
	struct sutro_group *of = reserving ?: sutro_latency_group(own->group);

	if (!of && sutro_volume_counts(core, own))
		of = own->group;
	own->reserving = reserving;
	own->leaves = of && core->leaves_of ? core->leaves_of(of) : NULL;
	sutro_volume_count(own, now_ns);
}

/* A request that finds none at this leaf does so @beside others elsewhere: and by chance? */
static void sutro_volume_meet(struct sutro_group_protect *own, bool beside,
			      u64 now_ns)
{
	s64 away_ns = now_ns - own->group->empty_since_ns;
	s64 busy_ns = sutro_volume_busy_ns(own->leaves, now_ns) - own->mark_ns;
	u64 chance;

	away_ns = clamp_t(s64, away_ns, 1, SUTRO_VOLUME_LONG_NS);
	busy_ns = clamp_t(s64, busy_ns, 0, away_ns);
	chance = div64_u64(SUTRO_VOLUME_WHOLE * busy_ns, away_ns);
	own->chance -= own->chance >> SUTRO_VOLUME_SHIFT;
	own->chance += chance >> SUTRO_VOLUME_SHIFT;
	own->beside -= own->beside >> SUTRO_VOLUME_SHIFT;
	if (beside)
		own->beside += SUTRO_VOLUME_WHOLE >> SUTRO_VOLUME_SHIFT;
}

/* With reserved time, each time without requests is learned once. */
static bool sutro_volume_reserved_ns(struct sutro_group_protect *own,
				     u64 now_ns, u64 *ret_ns)
{
	u64 since_ns = sutro_volume_since_ns(own);

	if (!since_ns || !own->awaited)
		return false;
	if (sutro_volume_is_busy(own)) {
		/* Another leaf got a request first, and that ended it. */
		now_ns = READ_ONCE(own->leaves->busy_since_ns);
		since_ns = READ_ONCE(own->leaves->empty_since_ns);
		if (own->learned_ns == now_ns || !since_ns)
			return false;
		own->learned_ns = now_ns;
	}
	*ret_ns = max_t(s64, now_ns - since_ns, 0);
	return true;
}

/**
 * sutro_volume_think_ns - for how long was a group without requests?
 * @own:	its protection; it gets a request, and had none at this leaf
 * @now_ns:	the time
 * @ret_ns:	the time for which it had none at this leaf; set to that at any, if it moves
 *
 * Return: false if that time is not to be learned.
 */
bool sutro_volume_think_ns(struct sutro_group_protect *own, u64 now_ns,
			   u64 *ret_ns)
{
	u64 busy_ns;
	bool beside;

	if (own->reserving)
		return sutro_volume_reserved_ns(own, now_ns, ret_ns);
	if (!own->leaves || sutro_protect_by_target(own))
		return true;
	beside = atomic_read(&own->leaves->nr);
	busy_ns = READ_ONCE(own->leaves->busy_since_ns);
	if (beside && (s64)(now_ns - busy_ns) < SUTRO_VOLUME_TOGETHER_NS) {
		beside = false;
		now_ns = busy_ns;
	}
	sutro_volume_meet(own, beside, now_ns);
	if (!beside && sutro_volume_moves(own))
		*ret_ns = max_t(s64, now_ns - sutro_volume_since_ns(own), 0);
	return true;
}

/* The smallest shared part at the leaves of a group; each leaf may change its own. */
static u32 sutro_volume_least(const struct sutro_core *core,
			      struct sutro_leaves *leaves, u32 part, u64 now_ns)
{
	u32 least = READ_ONCE(leaves->part);

	/* 0: not set yet; another leaf may be about to, and its stores are seen in any order. */
	if (least && part > least && READ_ONCE(leaves->part_of) != core &&
	    sutro_before(now_ns, READ_ONCE(leaves->part_until_ns)))
		return least;
	WRITE_ONCE(leaves->part, part);
	WRITE_ONCE(leaves->part_of, core);
	WRITE_ONCE(leaves->part_until_ns,
		   now_ns + SUTRO_VOLUME_CYCLES * core->protect.cycle_ns);
	return part;
}

/**
 * sutro_volume_part - which shared part shall a leaf have?
 * @core:	the leaf
 * @part:	by its own measurements
 * @now_ns:	the time
 *
 * Return: at most @part.
 */
u32 sutro_volume_part(struct sutro_core *core, u32 part, u64 now_ns)
{
	struct sutro_group_protect *own;
	u32 least = part;

	list_for_each_entry(own, &core->protect.groups, list)
		if (own->marked && own->chance && sutro_volume_moves(own))
			least = min(least, sutro_volume_least(core, own->leaves,
							      part, now_ns));
	return least;
}
