/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: the requests of one group (sutro-requests.c), and merging
 * (sutro-merge.c).
 */
#ifndef SUTRO_REQUESTS_H
#define SUTRO_REQUESTS_H

#include "sutro.h"

/* rq->fifo_time of requests that the driver gave back, which are in no tree. */
#define SUTRO_IN_HEAD U64_MAX
/* rq->fifo_time of prompt requests, which are never passed over. */
#define SUTRO_IN_PROMPT 0

/* The defaults of mq-deadline's read_expire and write_expire. */
#define SUTRO_SYNC_EXPIRE_NS (500 * NSEC_PER_MSEC)
#define SUTRO_ASYNC_EXPIRE_NS (5 * NSEC_PER_SEC)

/* May a request be sent that is not the next one? */
typedef bool (*sutro_wanted_t)(struct request *rq, void *data);

/* sutro-requests.c */
void sutro_requests_init(struct sutro_requests *requests);
void sutro_requests_leave(struct sutro_queue *sq,
			  struct sutro_requests *requests);
bool sutro_requests_far(struct sutro_requests *requests, struct request *rq);
bool sutro_requests_turns(struct sutro_requests *requests, struct request *rq);
void sutro_requests_add(struct sutro_queue *sq, struct sutro_requests *requests,
			struct request *rq, u64 now_ns);
void sutro_requests_add_head(struct sutro_queue *sq,
			     struct sutro_requests *requests,
			     struct request *rq);
void sutro_requests_del(struct sutro_queue *sq, struct sutro_requests *requests,
			struct request *rq);
struct request *sutro_requests_next(struct sutro_queue *sq,
				    struct sutro_requests *requests,
				    u64 now_ns);
struct request *sutro_requests_search(struct sutro_requests *requests,
				      unsigned int most, sutro_wanted_t wanted,
				      void *data);
void sutro_requests_take(struct sutro_queue *sq,
			 struct sutro_requests *requests, struct request *rq);
struct request *sutro_requests_prompt(struct sutro_queue *sq);
enum sutro_prio sutro_prio_of(struct request *rq);
struct rb_root *sutro_sorted_of(struct sutro_requests *requests,
				struct request *rq);

/* sutro-merge.c */
bool sutro_bio_merge(struct request_queue *q, struct bio *bio,
		     unsigned int nr_segs);
bool sutro_allow_merge(struct request_queue *q, struct request *rq,
		       struct bio *bio);
int sutro_request_merge(struct request_queue *q, struct request **ret_rq,
			struct bio *bio);
void sutro_request_merged(struct request_queue *q, struct request *rq,
			  enum elv_merge type);
void sutro_requests_merged(struct request_queue *q, struct request *rq,
			   struct request *next);

#endif /* SUTRO_REQUESTS_H */
