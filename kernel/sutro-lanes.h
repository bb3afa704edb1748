/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: lanes, which take turns within a group (sutro-lanes.c).
 */
#ifndef SUTRO_LANES_H
#define SUTRO_LANES_H

#include <linux/hashtable.h>

#include "sutro-rq.h"

#define SUTRO_LANE_WEIGHT_MAX 8

/* How a group's requests are ordered. */
enum sutro_discipline {
	SUTRO_FIFO, /* in order of arrival */
	SUTRO_DEADLINE, /* by sector, with a deadline for each request */
	SUTRO_PROCESS, /* round robin over submitters */
	SUTRO_DISCIPLINES,
};

/* ioprio classes within a group, in the order in which they are served. */
enum sutro_prio {
	SUTRO_PRIO_RT,
	SUTRO_PRIO_BE,
	SUTRO_PRIO_IDLE,
	SUTRO_PRIOS,
};

/**
 * struct sutro_lane - requests of a ring that take turns together
 * @fifo:	by arrival; rq->fifo_time is when the wait becomes too long
 * @node:	place in &sutro_ring.lanes while it has requests; else, if the lane
 *		is out of a pool, in &sutro_pool.idle
 * @hash:	place in &sutro_pool.hash, if the lane is out of a pool
 * @ring:	where it takes turns
 * @key:	its ioprio level or submitter
 * @vtime:	device time used, in ns, times SUTRO_LANE_WEIGHT_MAX / @weight
 * @weight:	1 to SUTRO_LANE_WEIGHT_MAX
 */
struct sutro_lane {
	struct list_head fifo;
	struct list_head node;
	struct hlist_node hash;
	struct sutro_ring *ring;
	u64 key;
	u64 vtime;
	u32 weight;
};

/**
 * struct sutro_ring - lanes of one kind (sync or async) and ioprio class
 * @lanes:	those with requests, by vtime
 * @main:	the lane of requests without a lane of their own
 * @turn:	the lane that has its turn, or NULL
 * @turn_left_ns: device time before it is another one's
 * @quantum_ns:	device time of a turn of a lane of weight 1
 * @vtime:	vtime of the lane that had the last turn, never falls
 * @nr:		requests in all lanes
 * @sync:	the kind
 */
struct sutro_ring {
	struct list_head lanes;
	struct sutro_lane main;
	struct sutro_lane *turn;
	s64 turn_left_ns;
	u64 quantum_ns;
	u64 vtime;
	u32 nr;
	bool sync;
};

/**
 * struct sutro_rings - all rings of one group
 * @next:	in &sutro_pool.rings, while no group has them
 * @of:		async (0) and sync (1) ones, by prio
 * @prio_ns:	when a prio was served last, or got its first request
 * @position:	end of the last request sent
 */
struct sutro_rings {
	struct sutro_rings *next;
	struct sutro_ring of[2][SUTRO_PRIOS];
	u64 prio_ns[SUTRO_PRIOS];
	sector_t position;
};

/**
 * struct sutro_pool - lanes and rings of all groups of one leaf
 * @node:	where its memory shall be
 * @rings:	those that no group has now
 * @lanes:	all of them
 * @idle:	those without requests, the one idle longest first
 * @hash:	those in use and those that were, by ring and key
 */
struct sutro_pool {
	int node;
	struct sutro_rings *rings;
	struct sutro_lane *lanes;
	struct list_head idle;
	DECLARE_HASHTABLE(hash, 6);
};

unsigned int sutro_level(struct request *rq);
int sutro_pool_init(struct sutro_pool *pool, int node);
void sutro_pool_exit(struct sutro_pool *pool);
struct sutro_rings *sutro_rings_get(struct sutro_pool *pool);
void sutro_rings_put(struct sutro_pool *pool, struct sutro_rings *rings);
struct sutro_lane *sutro_lane_find(struct sutro_pool *pool,
				   struct sutro_ring *ring, struct request *rq,
				   enum sutro_discipline discipline);
void sutro_lane_add(struct sutro_lane *lane, struct request *rq,
		    struct list_head *after);
void sutro_lane_del(struct sutro_pool *pool, struct request *rq);
struct sutro_lane *sutro_ring_turn(struct sutro_ring *ring, u64 quantum_ns);
void sutro_lane_charge(struct request *rq, u64 estimate_ns);

#endif /* SUTRO_LANES_H */
