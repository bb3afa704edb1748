// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: lanes, which take turns within a group.
 *
 * Requests of one group, kind (sync or async) and ioprio class form a ring of
 * lanes.  With the disciplines fifo and deadline there is a lane for each ioprio
 * level, with process one for each submitter.  A lane weighs 8 - level, from 8 at
 * level 0 to 1 at level 7, 4 without an ioprio.  It has a virtual time,
 * the estimated device time of its requests times 8 / weight, and the lane with the
 * lowest vtime has the next turn: a quantum of device time times its weight, or
 * until it has no more requests.  So lanes share the group's device time as groups
 * share the leaf's, but for idling: no lane is waited for.
 *
 *	Weights 4 and 4, one thread with 64 requests waiting and one with one at a
 *	time, all of 1 ms, a quantum of 0.1 ms: a turn of the deep one is one
 *	request long (0.1 * 4 < 1), then the shallow one's request is first, and so
 *	it waits for one request of the other's, not for 64.
 *
 * A lane that gets its first request starts at the vtime of the lane that had the
 * last turn: sleeping earns nothing.  Its service in advance is remembered up to eight
 * turns.
 *
 * The lane of the usual level is part of its ring.  Others come out of a pool of
 * 256 for the leaf, made when the elevator is selected.  A submitter that finds the
 * pool empty, because 256 lanes have requests, shares the lane of the ring.
 *
 * The six rings of a group are nearly as large as the rest of it, and of thousands of
 * groups few are active at a time, hardly more than there are request slots.  So rings
 * come out of the pool, too, with a group's first request that takes turns, and go
 * back when the group is no longer active.  The pool keeps them for the next group,
 * which finds all old vtimes out of date.  Only when more groups are active than ever
 * before, rings are allocated on the way of a request.  Where there is no memory that
 * can be had without waiting, the group does without: its requests are sent as they
 * came (sutro-requests.c).
 *
 * Who is a submitter?  The thread that made the request; for the workers of an
 * io_uring the thread group they work for.  A kernel worker that carries requests
 * of many is one submitter in each of their groups.
 *
 * Context: sutro_queue.lock is held, but for init and exit.
 */
#include <linux/ioprio.h>
#include <linux/sched.h>

#include "sutro-lanes.h"

#define SUTRO_POOL_LANES 256

/* Some minutes of vtime: no lane is that far from its ring. */
#define SUTRO_RINGS_AFAR BIT_ULL(40)

/* A lane that comes back counts as having had at most this many turns in advance. */
#define SUTRO_LANE_DEBT_TURNS 8

/* Keys from here on are submitters, those below ioprio levels. */
#define SUTRO_KEY_SUBMITTER IOPRIO_NR_LEVELS

/**
 * sutro_pool_init - make a leaf's lanes
 * @pool:	the pool to prepare
 * @node:	where the leaf is
 *
 * Return: 0 or -ENOMEM.
 */
int sutro_pool_init(struct sutro_pool *pool, int node)
{
	unsigned int i;

	pool->lanes = kvcalloc_node(SUTRO_POOL_LANES, sizeof(*pool->lanes),
				    GFP_NOIO, node);
	if (!pool->lanes)
		return -ENOMEM;
	pool->node = node;
	INIT_LIST_HEAD(&pool->idle);
	hash_init(pool->hash);
	for (i = 0; i < SUTRO_POOL_LANES; i++) {
		INIT_LIST_HEAD(&pool->lanes[i].fifo);
		list_add(&pool->lanes[i].node, &pool->idle);
	}
	return 0;
}

/* Called while no group has a request. */
void sutro_pool_exit(struct sutro_pool *pool)
{
	struct sutro_rings *rings;

	while ((rings = pool->rings)) {
		pool->rings = rings->next;
		kfree(rings);
	}
	kvfree(pool->lanes);
}

/* @ring is zeroed. */
static void sutro_ring_init(struct sutro_ring *ring, bool sync)
{
	INIT_LIST_HEAD(&ring->lanes);
	INIT_LIST_HEAD(&ring->main.fifo);
	INIT_LIST_HEAD(&ring->main.node);
	ring->main.ring = ring;
	ring->main.key = IOPRIO_BE_NORM;
	ring->main.weight = SUTRO_LANE_WEIGHT_MAX - IOPRIO_BE_NORM;
	ring->sync = sync;
}

/* Allocate the rings of a group. */
static struct sutro_rings *sutro_rings_make(int node)
{
	struct sutro_rings *rings =
		kzalloc_node(sizeof(*rings), GFP_NOWAIT | __GFP_NOWARN, node);
	int sync, prio;

	if (!rings)
		return NULL;
	for (sync = 0; sync < 2; sync++)
		for (prio = 0; prio < SUTRO_PRIOS; prio++)
			sutro_ring_init(&rings->of[sync][prio], sync);
	return rings;
}

/**
 * sutro_rings_get - rings for a group
 * @pool:	the leaf's
 *
 * Return: the rings, empty, or NULL if there is no memory.
 */
struct sutro_rings *sutro_rings_get(struct sutro_pool *pool)
{
	struct sutro_rings *rings = pool->rings;
	int prio;

	if (!rings)
		return sutro_rings_make(pool->node);
	pool->rings = rings->next;
	rings->position = 0;
	for (prio = 0; prio < SUTRO_PRIOS; prio++) {
		rings->of[0][prio].vtime += SUTRO_RINGS_AFAR;
		rings->of[1][prio].vtime += SUTRO_RINGS_AFAR;
	}
	return rings;
}

/**
 * sutro_rings_put - a group no longer needs its rings
 * @pool:	the leaf's
 * @rings:	the rings, empty
 */
void sutro_rings_put(struct sutro_pool *pool, struct sutro_rings *rings)
{
	rings->next = pool->rings;
	pool->rings = rings;
}

/* The usual level without an ioprio, and in the class that has no levels. */
unsigned int sutro_level(struct request *rq)
{
	unsigned int ioprio = req_get_ioprio(rq);
	unsigned int class = IOPRIO_PRIO_CLASS(ioprio);

	if (class == IOPRIO_CLASS_RT || class == IOPRIO_CLASS_BE)
		return IOPRIO_PRIO_LEVEL(ioprio);
	return IOPRIO_BE_NORM;
}

/*
 * The pool's lane for @key, which may be one of the group that had the rings before:
 * its vtime is out of date then.
 */
static struct sutro_lane *sutro_pool_find(struct sutro_pool *pool,
					  struct sutro_ring *ring, u64 key)
{
	u64 hash = (uintptr_t)ring ^ (key << 32);
	struct sutro_lane *lane;

	hash_for_each_possible(pool->hash, lane, hash, hash) {
		if (lane->ring == ring && lane->key == key)
			return lane;
	}

	lane = list_first_entry_or_null(&pool->idle, struct sutro_lane, node);
	if (!lane)
		return NULL;
	hash_del(&lane->hash);
	lane->ring = ring;
	lane->key = key;
	lane->vtime = ring->vtime;
	hash_add(pool->hash, &lane->hash, hash);
	return lane;
}

/**
 * sutro_lane_find - the lane for a request
 * @pool:	the leaf's lanes
 * @ring:	the ring for it
 * @rq:		the request, which is in no group yet
 * @discipline:	the discipline, by which requests are divided into lanes
 *
 * Return: the lane; to be used before another one is looked for.
 */
struct sutro_lane *sutro_lane_find(struct sutro_pool *pool,
				   struct sutro_ring *ring, struct request *rq,
				   enum sutro_discipline discipline)
{
	u64 level = sutro_level(rq), key = level;
	struct sutro_lane *lane;

	if (discipline == SUTRO_PROCESS)
		key = SUTRO_KEY_SUBMITTER + sutro_rq_submitter(rq);
	else if (level == IOPRIO_BE_NORM)
		return &ring->main;

	lane = sutro_pool_find(pool, ring, key);
	if (!lane)
		return &ring->main;
	lane->weight = SUTRO_LANE_WEIGHT_MAX - level;
	return lane;
}

static bool sutro_lane_before(const struct sutro_lane *a,
			      const struct sutro_lane *b)
{
	return (s64)(a->vtime - b->vtime) < 0;
}

/* Sort @lane by its vtime, not before @next. */
static void sutro_lane_sort(struct sutro_lane *lane, struct list_head *next)
{
	struct list_head *lanes = &lane->ring->lanes;

	while (next != lanes &&
	       !sutro_lane_before(lane,
				  list_entry(next, struct sutro_lane, node)))
		next = next->next;
	list_move_tail(&lane->node, next);
}

/* A lane gets its first request. */
static void sutro_lane_wake(struct sutro_lane *lane)
{
	struct sutro_ring *ring = lane->ring;
	s64 ahead = lane->vtime - ring->vtime;
	s64 most = SUTRO_LANE_DEBT_TURNS * SUTRO_LANE_WEIGHT_MAX *
		   max_t(s64, ring->quantum_ns, 1);

	lane->vtime = ring->vtime + clamp(ahead, 0LL, most);
	sutro_lane_sort(lane, ring->lanes.next);
}

/**
 * sutro_lane_add - let a request wait in a lane
 * @lane:	the lane
 * @rq:		the request
 * @after:	behind which entry of @lane->fifo
 */
void sutro_lane_add(struct sutro_lane *lane, struct request *rq,
		    struct list_head *after)
{
	if (list_empty(&lane->fifo))
		sutro_lane_wake(lane);
	list_add(&rq->queuelist, after);
	sutro_rq_set_lane(rq, lane);
	lane->ring->nr++;
}

/**
 * sutro_lane_del - a request no longer waits in its lane
 * @pool:	the leaf's lanes
 * @rq:		the request; sutro_rq_lane() still returns its lane
 */
void sutro_lane_del(struct sutro_pool *pool, struct request *rq)
{
	struct sutro_lane *lane = sutro_rq_lane(rq);
	struct sutro_ring *ring = lane->ring;

	list_del_init(&rq->queuelist);
	ring->nr--;
	if (!list_empty(&lane->fifo))
		return;
	if (ring->turn == lane)
		ring->turn = NULL;
	if (lane == &ring->main)
		list_del_init(&lane->node);
	else
		list_move_tail(&lane->node, &pool->idle);
}

/**
 * sutro_ring_turn - whose turn is it?
 * @ring:	the ring, which has requests
 * @quantum_ns:	device time of a turn of a lane of weight 1
 *
 * Return: the lane.
 */
struct sutro_lane *sutro_ring_turn(struct sutro_ring *ring, u64 quantum_ns)
{
	struct sutro_lane *lane = ring->turn;

	if (lane && ring->turn_left_ns > 0)
		return lane;

	lane = list_first_entry(&ring->lanes, struct sutro_lane, node);
	if ((s64)(lane->vtime - ring->vtime) > 0)
		ring->vtime = lane->vtime;
	ring->turn = lane;
	ring->turn_left_ns = quantum_ns * lane->weight;
	ring->quantum_ns = quantum_ns;
	return lane;
}

/**
 * sutro_lane_charge - a request that was in a lane is sent
 * @rq:		the request, just taken out; it has no lane any more afterwards
 * @estimate_ns: device time that it will probably use
 */
void sutro_lane_charge(struct request *rq, u64 estimate_ns)
{
	struct sutro_lane *lane = sutro_rq_lane(rq);

	if (!lane)
		return;
	sutro_rq_set_lane(rq, NULL);
	lane->vtime += estimate_ns * SUTRO_LANE_WEIGHT_MAX / lane->weight;
	if (list_empty(&lane->fifo))
		return;
	sutro_lane_sort(lane, lane->node.next);
	lane->ring->turn_left_ns -= estimate_ns;
}
