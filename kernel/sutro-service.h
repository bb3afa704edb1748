/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: requests on their way to the device: dispatch and direct mode.
 */
#ifndef SUTRO_SERVICE_H
#define SUTRO_SERVICE_H

#include "sutro.h"

/* sutro-dispatch.c */
struct sutro_blkg *sutro_attach(struct sutro_queue *sq, struct request *rq);
void sutro_queue_one(struct sutro_queue *sq, struct sutro_blkg *sblkg, bool far,
		     u64 now_ns);
void sutro_keep(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		struct request *rq, u64 now_ns);
u64 sutro_price(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		struct request *rq, bool prompt, u64 now_ns);
void sutro_send(struct sutro_queue *sq, struct request *rq, bool prompt,
		u64 now_ns);
void sutro_forget(struct sutro_queue *sq, u64 now_ns);
void sutro_tunables(struct sutro_queue *sq);
void sutro_look(struct sutro_queue *sq, u64 now_ns);
void sutro_collect(struct sutro_queue *sq);
u64 sutro_request_cost_ns(struct sutro_queue *sq,
			  const struct sutro_costs *costs, struct request *rq);
struct request *sutro_dispatch_request(struct blk_mq_hw_ctx *hctx);

/* sutro-fit.c */
struct request *sutro_fitting(struct sutro_queue *sq, struct request *rq,
			      u64 now_ns, enum sutro_verdict *ret_verdict);

/* sutro-pass.c */
bool sutro_may_pass(struct sutro_queue *sq);
struct request *sutro_pass(struct sutro_queue *sq, u64 now_ns);

/*
 * How many requests are at the driver at most when the next one is selected?  A queue with a depth
 * of its own has a budget of that many (SCSI), and one of it is taken before.
 */
static inline u32 sutro_driver_depth(const struct request_queue *q)
{
	u32 tags = q->tag_set->queue_depth * q->nr_hw_queues;
	u32 budget = READ_ONCE(q->queue_depth);

	return min3(tags, budget ? budget - 1 : tags, SUTRO_DEPTH_MAX);
}

/* sutro-polled.c */
void sutro_polled_waits(struct sutro_queue *sq);
void sutro_polled_look(struct work_struct *work);

/* sutro-direct.c */
void sutro_direct_end(struct sutro_queue *sq);
bool sutro_direct_bio(struct sutro_queue *sq, u32 lease, struct bio *bio);
bool sutro_direct_takes(struct sutro_queue *sq, blk_opf_t opf,
			struct blk_mq_hw_ctx *hctx);
void sutro_direct_insert(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			 bool at_head);
void sutro_direct_sent(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		       u64 now_ns);
void sutro_direct_look(struct sutro_queue *sq, u64 now_ns);
void sutro_direct_waits(struct sutro_queue *sq, struct sutro_blkg *sblkg);
void sutro_direct_sends(struct sutro_queue *sq, struct request *rq, s64 bytes);
void sutro_direct_ordered(struct sutro_queue *sq, struct request *rq,
			  u32 sectors, u64 now_ns);
void sutro_direct_tick(struct work_struct *work);
void sutro_direct_forget(struct sutro_queue *sq, struct sutro_blkg *sblkg);

#endif /* SUTRO_SERVICE_H */
