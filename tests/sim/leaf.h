/* SPDX-License-Identifier: GPL-2.0-only */
/* A drive with a scheduler before it; leaf.c describes how it replaces the kernel. */
#ifndef SIM_LEAF_H
#define SIM_LEAF_H

#include <linux/list.h>

#include "disk.h"
#include "sutro-core.h"
#include "sutro-cost.h"
#include "sutro-probe.h"

struct leaf;

/* A piece of a client's request is done, or a request slot is free. */
typedef void leaf_done_fn(void *client, void *whole, u32 bytes);
typedef void leaf_slot_fn(void *client);

/**
 * struct piece - part of a client's request, in a request of the leaf
 * @client, @whole: for the client
 * @submitted_ns:	when the client submitted it, before it waited for a slot
 */
struct piece {
	struct list_head node;
	void *client;
	void *whole;
	u32 bytes;
	u64 submitted_ns;
};

struct leaf_group;

/**
 * struct rq - a request
 * @cmd:	as the drive sees it
 * @pieces:	the pieces that were merged into it
 * @flush:	a flush of the drive's cache, which does not pass the scheduler
 * @expire_ns:	when it has waited too long
 */
struct rq {
	struct mdisk_cmd cmd;
	enum sutro_op op;
	u64 sector;
	u32 bytes;
	struct list_head node;
	struct leaf_group *group;
	struct list_head pieces;
	bool flush;
	bool sync;
	bool shallow;
	u64 submitted_ns;
	u64 added_ns;
	u64 expire_ns;
	u64 estimate_ns;
	unsigned int class;
};

/**
 * struct leaf_group - a cgroup on a leaf
 * @list:	its async and its sync requests that wait, oldest first
 * @requests:	slots in use, and those promised to its clients
 * @below:	the same of groups below it
 * @leaves:	where its cgroup has requests, NULL = not known
 * @owner:	exact device time, bytes and requests by the drive's model
 * @wait_ns:	sum of the times that requests waited before they were sent
 * @wait_max_ns: the longest of them
 * @pending_ns:	sum of the times that requests took
 * @exact_ns:	exact device time that has been charged
 */
struct leaf_group {
	struct sutro_group core;
	struct sutro_leaves *leaves;
	struct mdisk_owner owner;
	struct sutro_costs costs;
	struct sutro_peer peer;
	struct list_head list[2];
	bool batch_sync;
	u32 batch_left;
	u64 position;
	u64 arrival_position;
	u32 requests;
	u32 below;
	struct list_head noted;
	struct {
		u32 weight;
		bool is_reserve;
		u32 reserve;
		u32 nr;
		u32 nr_slow;
		u32 nr_untimed;
		u32 nr_flushes;
		u32 took_us;
		u64 estimate_ns;
		u64 cost_ns;
		u64 now_ns;
	} note;

	u64 wait_ns;
	u64 wait_max_ns;
	u64 pending_ns;
	u64 exact_ns;
};

static inline u64 rq_end(const struct rq *rq)
{
	return rq->sector + (rq->bytes >> MDISK_SECTOR_SHIFT);
}

static inline struct rq *rq_first(struct list_head *list)
{
	return list_first_entry_or_null(list, struct rq, node);
}

static inline struct rq *rq_take(struct rq *rq)
{
	list_del(&rq->node);
	return rq;
}

static inline struct leaf_group *leaf_group_of(struct sutro_group *core)
{
	return container_of(core, struct leaf_group, core);
}

/**
 * struct slot_waiter - a client that waits for a slot
 * @turn:	its turn among all of the leaf
 * @limited:	its group, an ancestor or the turns of others keep it from a slot, not only the lack
 *		of a tag
 * @looked_ns:	when it last looked at its turn
 */
struct slot_waiter {
	struct leaf_group *group;
	bool sync;
	leaf_slot_fn *fn;
	void *client;
	struct sutro_turn turn;
	bool limited;
	u64 looked_ns;
};

#define LEAF_MAX_WAITERS 1024

/**
 * struct leaf - a drive with a scheduler before it
 * @fifo:	no scheduler: requests are sent as they come
 * @oracle:	requests are charged their exact device time
 * @tags:	requests that the host takes for the drive; those of the drive if 0
 * @has_budget:	requests are selected only while the drive has room, as for a SCSI disk
 * @slots:	nr_requests; twice the depth if 0
 * @slots_used:	requests that wait or are at the drive
 * @slots_promised: clients that have been woken up for a slot
 * @slots_async: of both, those of async requests
 * @turns:	a client waits for any slot, in its turn
 * @crowd:	they take turns as long as there are nearly as many groups as slots
 * @came:	the group of a client whose turn has come, and which takes its slot next
 * @held:	taken from the scheduler, but the drive is full
 * @flushes:	flushes for which the drive is full
 * @timer_ns:	when the wait for a group's next request ends
 * @late_ns:	the longest time from the end of a shared window to the completion of a request of
 *		a group that is not protected, without requests that were sent in gaps
 */
struct leaf {
	struct clock *clock;
	struct disk disk;
	leaf_done_fn *done;
	bool fifo;
	bool oracle;
	u32 tags;
	bool has_budget;
	u32 slots;
	u32 slots_used;
	u32 slots_promised;
	u32 slots_async;
	bool turns;
	bool crowd;
	const struct leaf_group *came;
	struct slot_waiter waiters[LEAF_MAX_WAITERS];
	u32 nr_waiters;

	struct sutro_core core;
	struct sutro_device device;
	struct sutro_probe probe;
	struct leaf_group root;
	struct list_head stage;
	struct list_head notes;
	struct rq *held;
	struct list_head flushes;
	bool waiting;
	u64 timer_ns;
	u64 late_ns;
};

void leaf_init(struct leaf *leaf, struct clock *clock, enum mdisk_kind kind,
	       leaf_done_fn *done);
void leaf_start(struct leaf *leaf);
void leaf_group_init(struct leaf_group *group, struct leaf_group *parent,
		     u32 weight);
void leaf_weight(struct leaf *leaf, struct leaf_group *group, u32 weight);
void leaf_reserve(struct leaf *leaf, struct leaf_group *group, u32 reserve);
bool leaf_exit(struct leaf *leaf);

void leaf_insert(struct leaf *leaf, struct leaf_group *group, enum sutro_op op,
		 bool sync, u64 sector, const struct piece *piece);
void leaf_flush(struct leaf *leaf, struct leaf_group *group,
		const struct piece *piece);
void leaf_run(struct leaf *leaf);

/* leaf-requests.c */
bool rq_merge(struct list_head *list, struct rq *rq);
bool group_far(struct leaf_group *group, const struct rq *rq);
struct rq *group_next(struct leaf_group *group, bool rotational, u64 now_ns);
struct rq *group_next_of(struct leaf_group *group,
			 const struct sutro_probe *probe);
struct rq *leaf_fitting(struct leaf *leaf, struct leaf_group *group);

/* leaf-cost.c */
void rq_prepare(struct leaf *leaf, struct rq *rq);
void leaf_price(struct leaf *leaf, struct rq *rq);
u64 leaf_estimate_ns(struct leaf *leaf, const struct leaf_group *group,
		     struct rq *rq);
u64 leaf_cost_ns(struct leaf *leaf, const struct rq *rq,
		 struct sutro_sample *sample);

/* leaf-slots.c */
bool leaf_has_slot(struct leaf *leaf, struct leaf_group *group, bool sync);
void leaf_wait_slot(struct leaf *leaf, struct leaf_group *group, bool sync,
		    leaf_slot_fn *fn, void *client);
void leaf_end_wait(struct leaf *leaf, struct leaf_group *group, bool sync);
void leaf_take_slot(struct leaf *leaf, struct leaf_group *group, bool sync);
void leaf_free_slot(struct leaf *leaf, struct leaf_group *group, bool sync);

#endif /* SIM_LEAF_H */
