/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: what the glue files share.
 *
 * Locks, outermost first:
 *
 *  q->queue_lock, blkcg->lock	taken by the block layer around the pd callbacks
 *  sutro_queue.lock		the algorithm, the groups' requests, merging.
 *				Process context only; nothing is taken under it but:
 *  sutro_stage.lock		requests just inserted, one list per software queue
 *  sutro_queue.done_lock	what completions and new settings left for the
 *				next dispatch; taken in hard interrupt context and
 *				under q->queue_lock
 *
 * sutro_queue.lock is never taken under q->queue_lock: writing a setting or
 * removing a cgroup only leaves a note under done_lock.
 */
#ifndef SUTRO_H
#define SUTRO_H

#include <linux/sbitmap.h>

#include "sutro-blk.h"
#include "sutro-core.h"
#include "sutro-cost.h"

/**
 * struct sutro_list - requests of one kind of one group that wait
 * @sorted:	by sector
 * @fifo:	by arrival; rq->fifo_time is when the wait becomes too long
 */
struct sutro_list {
	struct rb_root sorted;
	struct list_head fifo;
};

/**
 * struct sutro_requests - all requests of one group that wait
 * @head:	to be sent before all others
 * @list:	async (0) and sync (1)
 * @batch_sync:	which of the two is being served
 * @batch_left:	requests before the other one is served
 * @position:	end of the last request sent
 * @arrival_position: end of the last request that arrived
 */
struct sutro_requests {
	struct list_head head;
	struct sutro_list list[2];
	bool batch_sync;
	unsigned int batch_left;
	sector_t position;
	sector_t arrival_position;
};

/* What an administrator sets for a cgroup, on all leaves or one. */
enum sutro_setting {
	SUTRO_SETTING_WEIGHT,
	SUTRO_SETTING_CLASS,
	SUTRO_SETTINGS,
};

/* A class as a setting, where 0 means that none is set. */
static inline u32 sutro_class_setting(enum sutro_class class)
{
	return class + 1;
}

static inline enum sutro_class sutro_setting_class(u32 value)
{
	return value - 1;
}

/**
 * struct sutro_note - what a group has to tell the next dispatch
 * @gone:	its cgroup has been removed; stays set
 * @setting:	its new weight and class, 0 where that did not change
 * @nr:		requests that left the device
 * @estimate_ns: what they were charged when they were sent
 * @cost_ns:	what they cost
 * @now_ns:	when the last one completed
 */
struct sutro_note {
	bool gone;
	u32 setting[SUTRO_SETTINGS];
	u32 nr;
	u64 estimate_ns;
	u64 cost_ns;
	u64 now_ns;
};

/**
 * struct sutro_blkg - one cgroup on one leaf, as the block layer sees it
 * @pd:		must be first
 * @group:	as the algorithm sees it
 * @requests:	what waits; protected by sutro_queue.lock
 * @costs:	what its requests cost; protected by sutro_queue.done_lock
 * @device_setting: weight and class set for this leaf, 0 if none
 * @nr_requests: request slots in use
 * @note_node:	place in sutro_queue.notes, empty while there is nothing to tell
 * @note:	see there; both protected by sutro_queue.done_lock
 * @stat:	totals for io.sutro.stat
 */
struct sutro_blkg {
	struct blkg_policy_data pd;
	struct sutro_group group;
	struct sutro_requests requests;
	struct sutro_costs costs;
	u32 device_setting[SUTRO_SETTINGS];
	atomic_t nr_requests;
	struct list_head note_node;
	struct sutro_note note;
	struct {
		u64 bytes[2];
		u64 ios[2];
		u64 wait_ns;
	} stat;
};

/**
 * struct sutro_stage - requests just inserted on one software queue
 * @lock:	protects @list
 * @list:	by arrival
 */
struct sutro_stage {
	spinlock_t lock; /* protects @list */
	struct list_head list;
} ____cacheline_aligned_in_smp;

/**
 * struct sutro_hctx - per hardware queue
 * @stages:	one for each software queue mapped to it
 * @busy:	which of them hold requests
 */
struct sutro_hctx {
	struct sutro_stage *stages;
	struct sbitmap busy;
};

/**
 * struct sutro_queue - per leaf
 * @q:		its request queue
 * @lock:	protects @core and all groups' requests
 * @core:	the algorithm
 * @timer:	runs the queue: when the wait for a group's next request ends, and
 *		where the queue cannot be run at once
 * @group_requests: request slots of each group, 0 = by weight
 * @staged:	some stage may hold requests
 * @waiting:	a completion shall run the queue
 * @kick:	a note must be taken although nothing is queued
 * @done_lock:	protects @device, @notes and @exiting
 * @device:	what is known of the leaf's speed
 * @notes:	groups with something to tell the next dispatch; each holds its blkg
 * @exiting:	no more notes are taken
 */
struct sutro_queue {
	struct request_queue *q;

	spinlock_t lock; /* protects @core and the groups' requests */
	struct sutro_core core;
	struct hrtimer timer;
	unsigned int group_requests;
	bool staged;
	bool waiting;
	bool kick;

	/* protects what follows, and the groups' notes and costs */
	spinlock_t done_lock ____cacheline_aligned_in_smp;
	struct sutro_device device;
	struct list_head notes;
	bool exiting;
};

static inline struct sutro_blkg *sutro_blkg_of(struct sutro_group *group)
{
	return container_of(group, struct sutro_blkg, group);
}

static inline struct blkcg_gq *sutro_to_blkg(struct sutro_blkg *sblkg)
{
	return pd_to_blkg(&sblkg->pd);
}

/*
 * While a request is at the device, rq->fifo_time holds its estimate, its class
 * and whether few others were there.
 */
#define SUTRO_RQ_SHALLOW 0x80
#define SUTRO_RQ_CLASS 0x7f
#define SUTRO_RQ_SHIFT 8

static inline struct sutro_blkg *sutro_rq_blkg(struct request *rq)
{
	return rq->elv.priv[0];
}

static inline void sutro_rq_pack(struct request *rq, u64 estimate_ns,
				 unsigned int class, bool shallow)
{
	rq->fifo_time = estimate_ns << SUTRO_RQ_SHIFT | class;
	if (shallow)
		rq->fifo_time |= SUTRO_RQ_SHALLOW;
}

static inline u64 sutro_rq_estimate_ns(struct request *rq)
{
	return rq->fifo_time >> SUTRO_RQ_SHIFT;
}

static inline unsigned int sutro_rq_class(struct request *rq)
{
	return rq->fifo_time & SUTRO_RQ_CLASS;
}

static inline bool sutro_rq_shallow(struct request *rq)
{
	return rq->fifo_time & SUTRO_RQ_SHALLOW;
}

static inline enum sutro_op sutro_rq_op(struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return SUTRO_READ;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND:
		return SUTRO_WRITE;
	default:
		return SUTRO_OTHER;
	}
}

/* sutro-requests.c */
void sutro_requests_init(struct sutro_requests *requests);
bool sutro_requests_far(struct sutro_requests *requests, struct request *rq);
void sutro_requests_add(struct sutro_requests *requests, struct request *rq,
			u64 now_ns);
void sutro_requests_add_head(struct sutro_requests *requests,
			     struct request *rq);
void sutro_requests_del(struct sutro_requests *requests, struct request *rq);
struct request *sutro_requests_next(struct sutro_requests *requests,
				    bool rotational, u64 now_ns);
struct request *sutro_requests_find(struct sutro_requests *requests,
				    struct bio *bio);
void sutro_requests_moved(struct sutro_requests *requests, struct request *rq);

/* sutro-cgroup.c */
extern struct blkcg_policy sutro_policy;
struct sutro_blkg *sutro_bio_blkg(struct request_queue *q, struct bio *bio);
struct sutro_blkg *sutro_current_blkg(struct request_queue *q);
int sutro_cgroup_register(void);
void sutro_cgroup_unregister(void);

/* sutro-notes.c */
void sutro_note_setting(struct sutro_blkg *sblkg, enum sutro_setting setting,
			u32 value);
void sutro_note_offline(struct sutro_blkg *sblkg);
u64 sutro_note_completed(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			 struct request *rq, u64 now_ns);
void sutro_note_requeued(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			 struct request *rq);
void sutro_fold(struct sutro_queue *sq);

/* sutro-stage.c */
void sutro_stage_insert(struct blk_mq_hw_ctx *hctx, struct list_head *list);
bool sutro_stage_merge(struct request_queue *q, struct bio *bio,
		       unsigned int nr_segs);
void sutro_stage_collect(struct sutro_queue *sq, struct list_head *list);
int sutro_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);
void sutro_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index);

/* sutro-slots.c */
void sutro_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);

/* sutro-sysfs.c */
extern struct elv_fs_entry sutro_attrs[];
#define SUTRO_MAX_IDLE_NS (1 * NSEC_PER_SEC)

#endif /* SUTRO_H */
