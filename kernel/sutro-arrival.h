/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: requests on their way in: stages and request slots.
 */
#ifndef SUTRO_ARRIVAL_H
#define SUTRO_ARRIVAL_H

#include "sutro.h"

/**
 * struct sutro_stage - requests just inserted on one CPU
 * @lock:	protects @list and @busy
 * @list:	by arrival
 * @node:	place in &sutro_queue.busy
 * @busy:	it is there
 */
struct sutro_stage {
	spinlock_t lock; /* protects @list and @busy */
	struct list_head list;
	struct llist_node node;
	bool busy;
} ____cacheline_aligned_in_smp;

/* sutro-stage.c */
int sutro_stages_init(struct sutro_queue *sq);
void sutro_stages_exit(struct sutro_queue *sq);
void sutro_stage_insert(struct sutro_queue *sq, struct list_head *list);
bool sutro_stage_merge(struct sutro_queue *sq, struct bio *bio,
		       unsigned int nr_segs);
void sutro_stage_collect(struct sutro_queue *sq, struct list_head *list);

/* Does the stage of the running CPU have a request? A hint. */
static inline bool sutro_stage_has_any(struct sutro_queue *sq)
{
	return !list_empty(&sq->stages[raw_smp_processor_id()].list);
}

/* Is a request in any stage?  A hint. */
static inline bool sutro_staged(struct sutro_queue *sq)
{
	return !llist_empty(&sq->busy);
}

/* Is there anything that no dispatch has seen yet? */
static inline bool sutro_has_news(struct sutro_queue *sq)
{
	return sutro_staged(sq) || READ_ONCE(sq->kick) || READ_ONCE(sq->fired);
}

/* Has a completion that a dispatch waits for arrived? */
static inline bool sutro_is_awaited(struct sutro_queue *sq)
{
	return READ_ONCE(sq->waiting) && !list_empty_careful(&sq->notes);
}

/* Run the queue, after a note of a completion, if a dispatcher waits for one. */
static inline void sutro_wake_dispatcher(struct sutro_queue *sq)
{
	if (READ_ONCE(sq->waiting) || READ_ONCE(sq->kick))
		blk_mq_run_hw_queues(sq->q, true);
}

/**
 * struct sutro_quota - the slots of a group, or of a group and all below it
 * @sblkg:	the group
 * @turns:	those that wait for one of them: of the group, or of the leaf
 * @used:	slots that it uses
 * @limit:	slots that it may use
 */
struct sutro_quota {
	struct sutro_blkg *sblkg;
	struct sutro_turns *turns;
	unsigned int used;
	unsigned int limit;
};

static inline int sutro_quota_left(const struct sutro_quota *quota)
{
	return (int)quota->limit - (int)quota->used;
}

/* Slots of a hardware queue, without those that the driver reserved for its own commands. */
static inline unsigned int sutro_all_slots(const struct request_queue *q)
{
	return q->nr_requests - q->tag_set->reserved_tags;
}

/* sutro-quota.c */
bool sutro_shares_slots(const struct request_queue *q);
unsigned int sutro_used_slots(struct request_queue *q);
unsigned int sutro_free_slots(struct sutro_queue *sq);
bool sutro_is_held_back(struct sutro_queue *sq, struct sutro_blkg *sblkg);
bool sutro_is_alone(struct sutro_queue *sq);
unsigned int sutro_left_in_crowd(struct sutro_queue *sq,
				 struct sutro_blkg *sblkg);
struct sutro_quota sutro_quota_of_slots(struct sutro_queue *sq,
					struct sutro_blkg *sblkg,
					unsigned int slots, unsigned int free,
					const struct sutro_turns *at);
struct sutro_quota sutro_quota_of(struct sutro_queue *sq,
				  struct sutro_blkg *sblkg,
				  const struct sutro_turns *promised,
				  const struct sutro_turns *at);

/* sutro-slots.c */
void sutro_slot_taken(struct sutro_blkg *sblkg);
void sutro_slot_freed(struct sutro_queue *sq, struct sutro_blkg *sblkg);
void sutro_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void sutro_slots_see(struct sutro_queue *sq, struct bio *bio);

/* sutro-turn.c */
void sutro_turns_wait(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		      struct sutro_turns *turns, const struct sutro_group *at,
		      struct sutro_waiter *waiter);
void sutro_turns_renew(struct sutro_queue *sq, struct sutro_turns *turns,
		       const struct sutro_group *at,
		       struct sutro_waiter *waiter);
bool sutro_turns_end(struct sutro_queue *sq, struct sutro_turns *turns,
		     struct sutro_waiter *waiter);
void sutro_turns_next(struct sutro_queue *sq, struct sutro_turns *turns);
void sutro_turns_serve(struct sutro_queue *sq, unsigned int slots,
		       unsigned int used);
bool sutro_turns_pass(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		      const struct sutro_group *root);

#endif /* SUTRO_ARRIVAL_H */
