// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: submitters that wait for a request slot.
 *
 * A submitter that finds no slot sleeps.  When a request is done, the submitter is woken whose
 * turn it is: one of the highest class, and of those one of the group that is entitled to its next
 * request before the others (sutro_turn_of()).  The slot is promised to it: others that look for
 * one in between count it as used.  Without that, a task that is still running takes the slot that
 * its own last request has left, before the woken one runs, and most others get none.  This
 * happens where tasks wait for a tag of blk-mq.
 *
 *	64 slots, and 200 groups of the same weight, each with a read at a time, on a machine
 *	with one CPU.  With blk-mq's order, 64 of them took all slots in turn, and the others had
 *	none in 9 s.  Here a group that has been served is behind those that have not.
 *
 * A lower class has no turn while submitters of a higher one wait, for SUTRO_SLOT_AGE at most.
 *
 * A submitter that waits looks at its turn each SUTRO_SLOT_LOOK.  If its group has a larger weight
 * or a higher class since, its turn is earlier.
 *
 *	64 slots, 100 groups of weight 1000, and one of weight 10 that has used 10 ms more than its
 *	share: its turn is at 100 ms of vtime, which the others reach after 100 s.  At a weight of
 *	10000, its turn is at 0.1 ms, which they reach after 0.1 s.
 *
 * The turn of a light group may be far away.  Its task cannot be killed while it waits, and may
 * hold a lock that others need.  So a submitter that has waited for SUTRO_SLOT_STARVED is starved,
 * as is a group with a queued request (sutro-starved.c).  Of SUTRO_AGE_PART + 1 slots that are
 * promised, one is for the submitter that has waited longest, if it is starved.  The last of n
 * starved ones has its slot after SUTRO_SLOT_STARVED and the time in which
 * (SUTRO_AGE_PART + 1) * n slots come free.
 *
 *	64 slots, 100 groups of weight 1000, and one of weight 1, each with a read of 8 ms at a
 *	time.  By its weight, the light one would have a slot each 800 s.  It has one after 5.3 s:
 *	33 slots come free in 0.26 s.  Its request is served 5 s later at the latest.
 */
#include <linux/jiffies.h>

#include "sutro-arrival.h"

/* As SUTRO_STARVED_NS (sutro-starved.c). */
#define SUTRO_SLOT_STARVED (5 * HZ)

static struct sutro_waiter *sutro_waiter_of(struct rb_node *node)
{
	return rb_entry(node, struct sutro_waiter, node);
}

static bool sutro_waiter_less(struct rb_node *a, const struct rb_node *b)
{
	return sutro_turn_before(&sutro_waiter_of(a)->turn,
				 &rb_entry(b, struct sutro_waiter, node)->turn);
}

static struct sutro_waiter *sutro_first_waiter(struct sutro_turns *turns)
{
	struct rb_node *node = rb_first(&turns->waiters);

	return node ? sutro_waiter_of(node) : NULL;
}

static const struct sutro_waiter *sutro_older_of(const struct rb_node *node)
{
	return rb_entry(node, struct sutro_waiter, oldest_node);
}

static bool sutro_waiter_older(struct rb_node *a, const struct rb_node *b)
{
	const struct sutro_waiter *x = sutro_older_of(a);
	const struct sutro_waiter *y = sutro_older_of(b);

	return x->turns == y->turns ? time_before(x->since, y->since)
				    : x->turns < y->turns;
}

static int sutro_waiter_where(const void *turns, const struct rb_node *node)
{
	const struct sutro_turns *at = sutro_older_of(node)->turns;

	return turns == at ? 0 : turns < (const void *)at ? -1 : 1;
}

/* The one that has waited longest, if that is too long and others have had their part since. */
static struct sutro_waiter *sutro_starved_waiter(struct sutro_queue *sq,
						 struct sutro_turns *turns)
{
	struct sutro_waiter *oldest;
	struct rb_node *node;

	if (turns->others < SUTRO_AGE_PART)
		return NULL;
	node = rb_find_first(turns, &sq->oldest, sutro_waiter_where);
	if (!node)
		return NULL;
	oldest = rb_entry(node, struct sutro_waiter, oldest_node);
	return time_after(jiffies, oldest->since + SUTRO_SLOT_STARVED) ? oldest
								       : NULL;
}

static struct sutro_waiter *sutro_next_waiter(struct sutro_queue *sq,
					      struct sutro_turns *turns)
{
	return sutro_starved_waiter(sq, turns) ?: sutro_first_waiter(turns);
}

/* Its turn, among those that wait where it does. */
static struct sutro_turn sutro_waiter_turn(const struct sutro_waiter *waiter,
					   const struct sutro_group *at)
{
	struct sutro_blkg *sblkg = sutro_blkg_of(waiter->group);

	/* Usually all of them are of the same group, and have no order but that of time. */
	if (waiter->turns == &sblkg->turns && !atomic_read(&sblkg->nr_below))
		return (struct sutro_turn){};
	return sutro_turn_of(waiter->group, at);
}

static void sutro_turns_erase(struct sutro_queue *sq, struct sutro_turns *turns,
			      struct sutro_waiter *waiter)
{
	rb_erase(&waiter->node, &turns->waiters);
	rb_erase(&waiter->oldest_node, &sq->oldest);
}

/**
 * sutro_turns_wait - the running task waits for a slot
 * @sq:		the leaf
 * @sblkg:	its group
 * @turns:	where
 * @at:		the group that @turns are of; the root for those of the leaf
 * @waiter:	zeroed, but for @since
 *
 * The caller then looks whether there is one, before it sleeps.
 */
void sutro_turns_wait(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		      struct sutro_turns *turns, const struct sutro_group *at,
		      struct sutro_waiter *waiter)
{
	struct sutro_group *group = &sblkg->group;
	unsigned long flags;

	waiter->task = current;
	waiter->turns = turns;
	waiter->group = group;
	waiter->turn = sutro_waiter_turn(waiter, at);
	spin_lock_irqsave(&sq->turn_lock, flags);
	WRITE_ONCE(group->slot_waiters, group->slot_waiters + 1);
	rb_add(&waiter->node, &turns->waiters, sutro_waiter_less);
	rb_add(&waiter->oldest_node, &sq->oldest, sutro_waiter_older);
	spin_unlock_irqrestore(&sq->turn_lock, flags);
}

/**
 * sutro_turns_renew - is the turn of the running task earlier than when it began to wait?
 * @sq:		the leaf
 * @turns:	where it waits
 * @at:		as for sutro_turns_wait()
 * @waiter:	likewise
 *
 * Its place never gets worse: others of its group have been served since, and it has waited.
 */
void sutro_turns_renew(struct sutro_queue *sq, struct sutro_turns *turns,
		       const struct sutro_group *at,
		       struct sutro_waiter *waiter)
{
	struct sutro_turn turn = sutro_waiter_turn(waiter, at);
	unsigned long flags;

	if (!sutro_turn_before(&turn, &waiter->turn))
		return;
	spin_lock_irqsave(&sq->turn_lock, flags);
	if (!waiter->is_promised) {
		rb_erase(&waiter->node, &turns->waiters);
		waiter->turn = turn;
		rb_add(&waiter->node, &turns->waiters, sutro_waiter_less);
	}
	spin_unlock_irqrestore(&sq->turn_lock, flags);
}

/**
 * sutro_turns_end - the running task takes its slot, or waits no longer
 * @sq:		the leaf
 * @turns:	where it waited
 * @waiter:	as for sutro_turns_wait()
 *
 * Return: whether a slot was promised to it.
 */
bool sutro_turns_end(struct sutro_queue *sq, struct sutro_turns *turns,
		     struct sutro_waiter *waiter)
{
	struct sutro_group *group = waiter->group;
	unsigned long flags;

	spin_lock_irqsave(&sq->turn_lock, flags);
	WRITE_ONCE(group->slot_waiters, group->slot_waiters - 1);
	if (waiter->is_promised)
		turns->promised--;
	else
		sutro_turns_erase(sq, turns, waiter);
	spin_unlock_irqrestore(&sq->turn_lock, flags);
	return waiter->is_promised;
}

static void sutro_turns_promise(struct sutro_queue *sq,
				struct sutro_turns *turns,
				struct sutro_waiter *waiter)
{
	turns->others = waiter == sutro_starved_waiter(sq, turns)
				? 0
				: turns->others + 1;
	sutro_turns_erase(sq, turns, waiter);
	turns->promised++;
	WRITE_ONCE(waiter->is_promised, true);
	/* It may go on as soon as the lock is free, and @waiter is on its stack. */
	wake_up_process(waiter->task);
}

/**
 * sutro_turns_next - there is a slot for one of those that wait
 * @sq:		the leaf
 * @turns:	the group's
 */
void sutro_turns_next(struct sutro_queue *sq, struct sutro_turns *turns)
{
	struct sutro_waiter *next;
	unsigned long flags;

	if (!sutro_turns_pending(turns))
		return;
	spin_lock_irqsave(&sq->turn_lock, flags);
	next = sutro_next_waiter(sq, turns);
	if (next)
		sutro_turns_promise(sq, turns, next);
	spin_unlock_irqrestore(&sq->turn_lock, flags);
}

/**
 * sutro_turns_serve - wake those that wait for any slot of a leaf
 * @sq:		the leaf
 * @slots:	how many there are
 * @used:	how many are in use
 *
 * The next one is not passed by another that leaves less to others.
 */
void sutro_turns_serve(struct sutro_queue *sq, unsigned int slots,
		       unsigned int used)
{
	struct sutro_turns *turns = &sq->turns;
	struct sutro_waiter *next;
	unsigned long flags;
	unsigned int left;

	spin_lock_irqsave(&sq->turn_lock, flags);
	for (;;) {
		next = sutro_next_waiter(sq, turns);
		if (!next)
			break;
		left = sutro_left_in_crowd(sq, sutro_blkg_of(next->group));
		if (used + turns->promised + left >= slots)
			break;
		sutro_turns_promise(sq, turns, next);
	}
	spin_unlock_irqrestore(&sq->turn_lock, flags);
}

/**
 * sutro_turns_pass - may a group have a slot of the leaf before those that wait for one?
 * @sq:		the leaf
 * @sblkg:	the group
 * @root:	its root
 *
 * The running task is one of those if it waits already.  It passes if it is the next of them: its
 * group may have been charged since it began to wait, and perhaps no request is left that would
 * wake it.
 */
bool sutro_turns_pass(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		      const struct sutro_group *root)
{
	struct sutro_turn turn = sutro_turn_of(&sblkg->group, root);
	struct sutro_waiter *starved, *next;
	unsigned long flags;
	bool passes;

	spin_lock_irqsave(&sq->turn_lock, flags);
	starved = sutro_starved_waiter(sq, &sq->turns);
	next = starved ?: sutro_first_waiter(&sq->turns);
	passes = !next || next->task == current ||
		 (!starved && !sutro_turn_before(&next->turn, &turn));
	spin_unlock_irqrestore(&sq->turn_lock, flags);
	return passes;
}
