// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: how many request slots a group may have.
 *
 * A group with many submitters could take all request slots, and weights have no
 * effect on a submitter that waits for one.  So a group may have its share of the
 * slots, and beyond that as many as are free: the more others use, the less it may have
 * beyond its share, and a newcomer finds slots.  A group alone leaves an eighth of them.  So
 * its submitters wait in an order (sutro-slots.c), and not for a tag of blk-mq: there, a newcomer
 * would come after all that wait already, and each of these would come again after it.
 *
 *	256 slots, groups of weight 100 and 300.  Both have more to send than that:
 *	64 slots for the one, 192 for the other.  The second one has a request at a
 *	time: the first has 64 + (256 - 160) = 160.
 *
 * Slots that a group has beyond its share come free no faster than it is served, and a light one
 * beside heavy ones may need a minute for that.  All others together have fewer slots than their
 * shares meanwhile.  So groups that have a 32nd of the slots or more leave as many to those with
 * fewer.
 *
 *	An hdd with 256 slots.  A group of weight 100 queued 192 random writes before others came: a
 *	service (1000) with a read at a time, another one (1000) with 64, and five of weight 100.
 *	In ten seconds 80 of the writes completed.  Other groups took each slot that became free.
 *	The service waited for one before each read, too long to be expected back.  It had 0.18 of
 *	the device, and the other service 0.49.  Now both have their shares, nearly 0.38.
 *
 * The same holds for a group together with all groups below it: a request needs a slot
 * of its own group, and of each ancestor but the root (sutro_group_slots()).  So a subtree
 * gains nothing by many groups.
 *
 * With more groups than slots, each of these would hold a request that waits for its turn, and
 * the next request of a heavy group would wait for a slot as long as theirs.  So while nearly
 * as many groups as slots are active, and once one without a request finds no slot, submitters
 * wait for their turn (sutro-turn.c).  Protected groups have as large a part of the slots without
 * a turn as their share or the time that is reserved for them, at least an eighth; groups that are
 * held back for their sake leave it to them (sutro_protect_slots()).  On a rotational disk, others
 * are held back for the next request of a group, which must find a slot meanwhile: groups with no
 * more than an even part leave an eighth of the slots, and the group in service has these without
 * a turn, and one slot more than its ancestors have left.  Hardware queues with slots of their own
 * have no turns.
 *
 *	An hdd with 64 slots, 100 writers of weight 100, each with a stream, and a reader of 1000
 *	with a request at a time.  Without turns, the reader received 0.2 of its share, and the
 *	writers 28 MB/s: one had no request left after the first one of its slice.
 *
 *	An ssd with 64 slots, 100 readers with a request each, and a unit with 32 reads of 4 KiB
 *	that has half of the device as its floor.  With an eighth of the slots, it had 8 requests
 *	at the device, which reach 0.51 of the rate of 32.  In 0.84 of the time, that was 0.7 of
 *	its floor, and the device was half empty.
 *
 * While a group is protected (sutro-protect.c), or others are limited for its latency
 * target (sutro-latency.c), others leave an eighth of the slots to it: their requests may
 * be held back, and it must not wait for these.
 *
 * The requests of the others may have all slots when the protection begins, and each new group
 * would take another one for its first request.  In reserved windows none of these is served, and
 * the device would be idle for a group that waits for a slot.  So a slot that comes free goes to
 * protected groups, until they have an eighth, or as many as they had at once if no time is
 * reserved; others wait for their turns.
 *
 *	An hdd with 64 slots, half of the time is reserved for a reader with 8 requests, and seven
 *	new groups a second send 32 requests each.  The reader had no slot for seconds, and 0.03
 *	of its floor.
 *
 * During a probe (sutro-probe.c), only groups with requests that it counts have free
 * slots beyond their share.  These are served alone then.  The slots of their requests that
 * complete would be taken by all others that wait for one, until the probe had too few.
 *
 * With several hardware queues each has slots of its own; a group's limit is its share of one
 * queue's, for all its requests may be on one CPU.  A group alone has no limit there.
 *
 * Some drivers reserve tags, which are not in blk-mq's bitmap (sutro_all_slots()).  If these
 * counted as slots, each request that is done would wake two submitters, and one of them would
 * wait for a tag.
 */
#include "sutro-arrival.h"

/*
 * Does a submitter rather wait for a slot of quota @a than of @b?  Where it waits already, @at, it
 * stays while there is none: slots that were promised to others there look as if they were used.
 * If it left for that, waiters would wake one another without end.
 */
static bool sutro_quota_binds(const struct sutro_quota *a,
			      const struct sutro_quota *b,
			      const struct sutro_turns *at)
{
	if (a->turns == at && sutro_quota_left(a) <= 0)
		return true;
	if (b->turns == at && sutro_quota_left(b) <= 0)
		return false;
	return sutro_quota_left(a) < sutro_quota_left(b);
}

/**
 * sutro_shares_slots - do all hardware queues have the same slots?
 * @q:		the request queue
 */
bool sutro_shares_slots(const struct request_queue *q)
{
	return q->nr_hw_queues == 1 || q->sched_shared_tags;
}

/**
 * sutro_used_slots - slots in use, those just taken and those of kernel threads included
 * @q:		the request queue, whose hardware queues have the same slots
 */
unsigned int sutro_used_slots(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		return sbitmap_weight(&hctx->sched_tags->bitmap_tags.sb);
	return 0;
}

/**
 * sutro_free_slots - slots that no request uses
 * @sq:		the leaf
 *
 * Where hardware queues have slots of their own, those just taken are not counted: a dispatch
 * counts them, and there is none while the device is full.
 */
unsigned int sutro_free_slots(struct sutro_queue *sq)
{
	unsigned int slots = sutro_all_slots(sq->q), used;

	if (sutro_shares_slots(sq->q))
		used = sutro_used_slots(sq->q);
	else
		used = READ_ONCE(sq->core.queued) +
		       READ_ONCE(sq->core.in_flight);
	return slots - min(used, slots);
}

/**
 * sutro_is_held_back - is a group held back for others?  A hint.
 * @sq:		the leaf
 * @sblkg:	the group
 */
bool sutro_is_held_back(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	if (sutro_protects(&sq->core.protect))
		return !sutro_group_protected(&sblkg->group);
	return READ_ONCE(sq->core.limit_ns) &&
	       !sutro_latency_late_ns(&sblkg->group);
}

/* Does a probe count no request like that which a group has queued last?  A hint. */
static bool sutro_is_not_probed(struct sutro_queue *sq,
				struct sutro_blkg *sblkg)
{
	/* Written under the lock of the dispatcher, which this does not hold. */
	return data_race(sq->probe.active &&
			 !sutro_probe_is_of(&sq->probe, sblkg->peer.class));
}

/* Do groups that are held back use all slots but those of protected ones? A hint. */
static bool sutro_leaves_slots(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			       unsigned int free)
{
	unsigned int left = sutro_all_slots(sq->q) / SUTRO_LEFT_PART;
	unsigned int others = READ_ONCE(sq->core.protect.requests);

	return sutro_is_held_back(sq, sblkg) && free + others <= left;
}

/**
 * sutro_is_alone - is at most one group active, and none limited for a latency target?  A hint.
 * @sq:		the leaf
 */
bool sutro_is_alone(struct sutro_queue *sq)
{
	return READ_ONCE(sq->core.nr_active) < 2 &&
	       !READ_ONCE(sq->core.limit_ns);
}

/*
 * No other group is active.  The slots in use are the group's, and perhaps those of kernel threads.
 * All are counted, with those just taken: where many submitters are woken at once, none would find
 * the slots of the others.
 */
static void sutro_quota_alone(struct sutro_queue *sq, struct sutro_quota *own)
{
	unsigned int slots = sutro_all_slots(sq->q);

	if (!sutro_shares_slots(sq->q))
		return;
	own->limit = slots - slots / SUTRO_LEFT_PART;
	if (own->used)
		own->used =
			max(own->used, sutro_used_slots(sq->q) +
					       READ_ONCE(own->turns->promised));
}

/* Slots that protected groups have without a turn, and do not use.  A hint. */
static unsigned int sutro_kept_slots(struct sutro_queue *sq)
{
	unsigned int kept =
		sutro_protect_slots(&sq->core.protect, sutro_all_slots(sq->q));

	return kept - min(kept, READ_ONCE(sq->core.protect.requests));
}

/*
 * Are slots of a leaf taken in turn?  From when a group without a request finds none, and as long
 * as nearly as many groups as slots are active.  A hint.
 */
static bool sutro_is_in_turn(struct sutro_queue *sq)
{
	bool is_crowded = sutro_is_crowded(&sq->core, sutro_all_slots(sq->q));
	bool waits = sutro_turns_pending(&sq->turns);
	bool crowd = READ_ONCE(sq->crowd);

	if (crowd != (is_crowded && (waits || crowd)))
		WRITE_ONCE(sq->crowd, !crowd);
	return waits || (crowd && is_crowded);
}

/*
 * Slots that a group leaves to protected ones which lack them, also if it has no request yet: as
 * many as these had requests at once, and an eighth at most; where time is reserved, an eighth.
 * A hint.
 */
static unsigned int sutro_protected_lack(struct sutro_queue *sq,
					 struct sutro_blkg *sblkg)
{
	unsigned int slots = sutro_all_slots(sq->q), used;
	unsigned int lack = slots / SUTRO_LEFT_PART;

	if (!sutro_protects(&sq->core.protect) ||
	    !sutro_is_held_back(sq, sblkg) || !sutro_shares_slots(sq->q))
		return 0;
	used = sutro_used_slots(sq->q) + READ_ONCE(sq->turns.promised);
	if (!READ_ONCE(sq->core.protect.reserve))
		lack = min(lack, READ_ONCE(sq->core.protect.depth));
	lack -= min(lack, READ_ONCE(sq->core.protect.requests));
	return used + lack >= slots ? lack : 0;
}

/* Are others held back for the next request of a group, because of seeks?  A hint. */
static bool sutro_is_in_service(struct sutro_queue *sq,
				struct sutro_blkg *sblkg)
{
	return sq->core.tunables.rotational &&
	       &sblkg->group == READ_ONCE(sq->core.in_service);
}

/* Does a group wait for its turn, when others do?  A hint. */
static bool sutro_takes_turns(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	if (!sutro_is_in_turn(sq))
		return false;
	if (sutro_group_protected(&sblkg->group))
		return !sutro_kept_slots(sq);
	return !sutro_is_in_service(sq, sblkg);
}

/**
 * sutro_left_in_crowd - slots that a group leaves to others in a crowd
 * @sq:		the leaf
 * @sblkg:	the group
 */
unsigned int sutro_left_in_crowd(struct sutro_queue *sq,
				 struct sutro_blkg *sblkg)
{
	unsigned int nr = READ_ONCE(sq->core.nr_active);
	bool leaves;

	if (!sutro_is_crowded(&sq->core, sutro_all_slots(sq->q)) ||
	    !sutro_takes_turns(sq, sblkg))
		return sutro_protected_lack(sq, sblkg);
	leaves = sq->core.tunables.rotational
			 ? !sutro_group_heavy(&sblkg->group, nr)
			 : sutro_is_held_back(sq, sblkg);
	return leaves ? sutro_kept_slots(sq) : sutro_protected_lack(sq, sblkg);
}

static struct sutro_blkg *sutro_root_of(struct sutro_blkg *sblkg)
{
	struct sutro_group *group = &sblkg->group;

	while (group->parent)
		group = group->parent;
	return sutro_blkg_of(group);
}

/* The slots of the leaf, for one more request of a group.  No limit while there are no turns. */
static struct sutro_quota sutro_quota_of_leaf(struct sutro_queue *sq,
					      struct sutro_blkg *sblkg)
{
	struct sutro_quota all = { .turns = &sq->turns, .limit = UINT_MAX / 2 };
	bool in_turn;

	if (!sutro_shares_slots(sq->q))
		return all;
	in_turn = sutro_takes_turns(sq, sblkg);
	if (!in_turn && !sutro_protected_lack(sq, sblkg) &&
	    (atomic_read(&sblkg->nr_requests) ||
	     !sutro_is_crowded(&sq->core, sutro_all_slots(sq->q))))
		return all;
	all.sblkg = sutro_root_of(sblkg);
	all.used = sutro_used_slots(sq->q) + READ_ONCE(all.turns->promised);
	all.limit = sutro_all_slots(sq->q) - sutro_left_in_crowd(sq, sblkg);
	if (in_turn && sutro_quota_left(&all) > 0 &&
	    !sutro_turns_pass(sq, sblkg, &all.sblkg->group))
		all.limit = 0;
	return all;
}

/**
 * sutro_quota_of_slots - the quota with the fewest slots left, of a group and its ancestors
 * @sq:		the leaf
 * @sblkg:	the group
 * @slots:	slots that all share
 * @free:	how many of these a group may have beyond its share
 * @at:		where the submitter waits already, or NULL: the quota of that, if it has none left
 */
struct sutro_quota sutro_quota_of_slots(struct sutro_queue *sq,
					struct sutro_blkg *sblkg,
					unsigned int slots, unsigned int free,
					const struct sutro_turns *at)
{
	struct sutro_group *group = &sblkg->group;
	struct sutro_quota least = { .sblkg = sblkg, .turns = &sblkg->turns };
	struct sutro_quota quota;
	u32 limits[SUTRO_LEVELS + 1];

	least.used = atomic_read(&sblkg->nr_requests) +
		     READ_ONCE(sblkg->turns.promised);
	least.limit = sutro_group_slots(group, slots, free, limits);
	/* Its last slot was promised to another group of its subtree. */
	if (!least.used && sutro_is_in_service(sq, sblkg))
		return least;
	for (; group->parent; group = group->parent) {
		sblkg = sutro_blkg_of(group);
		quota = (struct sutro_quota){
			.sblkg = sblkg,
			.turns = &sblkg->turns,
			.used = atomic_read(&sblkg->nr_requests) +
				atomic_read(&sblkg->nr_below) +
				READ_ONCE(sblkg->turns.promised),
			.limit = limits[group->depth],
		};
		if (sutro_quota_binds(&quota, &least, at))
			least = quota;
	}
	return least;
}

/**
 * sutro_quota_of - the quota with the fewest slots left for requests of a task
 * @sq:		the leaf
 * @sblkg:	its group
 * @promised:	where a slot has been promised to it, or NULL
 * @at:		where it waits already, or NULL: the quota of that, if it has none left
 */
struct sutro_quota sutro_quota_of(struct sutro_queue *sq,
				  struct sutro_blkg *sblkg,
				  const struct sutro_turns *promised,
				  const struct sutro_turns *at)
{
	unsigned int each = READ_ONCE(sq->group_requests);
	struct sutro_quota own = {
		.sblkg = sblkg,
		.turns = &sblkg->turns,
		.used = atomic_read(&sblkg->nr_requests) +
			READ_ONCE(sblkg->turns.promised),
		.limit = each ?: UINT_MAX / 2,
	}, quota, all;
	unsigned int slots = sutro_all_slots(sq->q), free;
	bool leaves, beyond;

	if (each)
		return own;
	if (sutro_is_alone(sq)) {
		sutro_quota_alone(sq, &own);
		return own;
	}
	free = sutro_free_slots(sq);
	leaves = sutro_leaves_slots(sq, sblkg, free);
	beyond = !leaves && !sutro_is_not_probed(sq, sblkg);
	quota = sutro_quota_of_slots(sq, sblkg, slots, beyond ? free : 0, at);
	quota.used -= quota.turns == promised;
	if ((sutro_quota_left(&quota) > 0 || at == &sq->turns) &&
	    promised != &sq->turns) {
		all = sutro_quota_of_leaf(sq, sblkg);
		if (sutro_quota_binds(&all, &quota, at))
			quota = all;
	}
	if (leaves)
		own.limit = 1;
	else if (sutro_shares_slots(sq->q) &&
		 sutro_leaves_last(own.used, slots, free))
		own.limit = own.used;
	return sutro_quota_binds(&own, &quota, at) ? own : quota;
}
