// SPDX-License-Identifier: GPL-2.0-only
/*
 * The requests of a group that wait, as in sutro-requests.c: merges, and the request that is
 * next: in turn, of a class for a probe, or one that fits into a gap.
 */
#include "leaf.h"

#define SYNC_BATCH 32
#define ASYNC_BATCH 16
#define FAR_SECTORS 2048
#define PROBE_SCAN 128
#define GAP_SCAN 32

/* sutro-dispatch.c */
#define GAP_TRIES 8

/* max_sectors_kb of the block layer. */
#define MERGE_BYTES (1280 << 10)

/* Append a request to one that waits and ends where it begins. */
bool rq_merge(struct list_head *list, struct rq *rq)
{
	struct rq *to;

	list_for_each_entry(to, list, node) {
		if (to->op != rq->op || to->group != rq->group ||
		    to->sync != rq->sync || rq_end(to) != rq->sector ||
		    to->bytes + rq->bytes > MERGE_BYTES)
			continue;
		to->bytes += rq->bytes;
		list_splice_tail(&rq->pieces, &to->pieces);
		return true;
	}
	return false;
}

bool group_far(struct leaf_group *group, const struct rq *rq)
{
	u64 last = group->arrival_position, sector = rq->sector;

	group->arrival_position = rq_end(rq);
	return (sector > last ? sector - last : last - sector) > FAR_SECTORS;
}

static struct list_head *group_batch(struct leaf_group *group)
{
	bool sync = group->batch_sync;

	if (list_empty(&group->list[sync]) ||
	    (!group->batch_left && !list_empty(&group->list[!sync]))) {
		sync = !sync;
		group->batch_sync = sync;
		group->batch_left = sync ? SYNC_BATCH : ASYNC_BATCH;
	}
	if (group->batch_left)
		group->batch_left--;
	return &group->list[sync];
}

/* The first request at or behind the last one, or the lowest of all. */
static struct rq *rq_from(struct list_head *list, u64 position)
{
	struct rq *rq, *behind = NULL, *lowest = NULL;

	list_for_each_entry(rq, list, node) {
		if (rq->sector >= position &&
		    (!behind || rq->sector < behind->sector))
			behind = rq;
		if (!lowest || rq->sector < lowest->sector)
			lowest = rq;
	}
	return behind ?: lowest;
}

struct rq *group_next(struct leaf_group *group, bool rotational, u64 now_ns)
{
	struct list_head *list = group_batch(group);
	struct rq *rq = rq_first(list);

	if (rotational && rq->expire_ns > now_ns)
		rq = rq_from(list, group->position);
	group->position = rq_end(rq);
	return rq_take(rq);
}

/* Among the first requests of a group, one that a probe counts. */
struct rq *group_next_of(struct leaf_group *group,
			 const struct sutro_probe *probe)
{
	int sync, scanned = 0;
	struct rq *rq;

	for (sync = 1; sync >= 0; sync--)
		list_for_each_entry(rq, &group->list[sync], node) {
			if (scanned++ == PROBE_SCAN)
				return NULL;
			if (sutro_probe_is_of(
				    probe, sutro_cost_class(rq->op, rq->bytes)))
				return rq_take(rq);
		}
	return NULL;
}

/* In a gap: among the first requests of a group, one that fits into it. */
static struct rq *group_fitting(struct leaf *leaf, struct leaf_group *group)
{
	u64 least_ns = U64_MAX;
	int sync, scanned = 0;
	struct rq *rq;

	for (sync = 1; sync >= 0; sync--)
		list_for_each_entry(rq, &group->list[sync], node) {
			if (scanned++ >= GAP_SCAN)
				break;
			leaf_price(leaf, rq);
			if (sutro_core_fits(&leaf->core, rq->estimate_ns, false,
					    leaf->clock->now_ns))
				return rq;
			least_ns = min(least_ns, rq->estimate_ns);
		}
	sutro_gap_missed(&leaf->core, least_ns);
	return NULL;
}

/* One of @group, whose turn it is, or of another one. */
struct rq *leaf_fitting(struct leaf *leaf, struct leaf_group *group)
{
	struct rq *rq = group_fitting(leaf, group), *other;
	struct sutro_group *core;
	int tries = GAP_TRIES;
	u64 chances = 0;

	if (rq)
		return rq_take(rq);
	list_for_each_entry(core, &leaf->core.waiting, node) {
		if (!tries--)
			break;
		if (core == &group->core)
			continue;
		other = group_fitting(leaf, leaf_group_of(core));
		if (other && sutro_gap_draw(&leaf->core.protect, core,
					    other->estimate_ns, &chances))
			rq = other;
	}
	leaf->core.beside = rq;
	return rq ? rq_take(rq) : NULL;
}
