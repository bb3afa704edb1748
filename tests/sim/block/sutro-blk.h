/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of the block layer as sutro-turn.c and sutro-quota.c need, in the place of
 * kernel/compat: a queue with one hardware queue, whose bitmap of tags is a number, and tasks that
 * count how often they are woken.
 */
#ifndef SUTRO_BLK_H
#define SUTRO_BLK_H

#include <limits.h>

#include <linux/atomic.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#define ____cacheline_aligned_in_smp
#define __percpu
#define data_race(expression) (expression)
#define HZ 100
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define PF_IO_WORKER 1

#define REQ_OP_MASK 255
#define REQ_SYNC 0x100
#define REQ_META 0x200
#define REQ_SWAP 0x400
#define REQ_FUA 0x800
#define SECTOR_SHIFT 9
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)

typedef u32 blk_opf_t;
typedef u32 req_flags_t;
typedef u32 blk_status_t;
typedef u64 sector_t;

enum req_op { REQ_OP_READ, REQ_OP_WRITE, REQ_OP_ZONE_APPEND = 13 };

/* A test is one thread. */
typedef struct {
	int unused;
} spinlock_t;
#define spin_lock_irqsave(lock, flags) ((void)(lock), (flags) = 0)
#define spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int woken;
};

extern struct task_struct *current;
extern unsigned long jiffies;

static inline int wake_up_process(struct task_struct *task)
{
	task->woken++;
	return 1;
}

struct llist_head {
	void *first;
};

struct llist_node {
	void *next;
};

struct rcu_head {
	void *unused;
};

struct delayed_work {
	int unused;
};

struct hrtimer {
	int unused;
};

#define llist_empty(head) (!(head)->first)
#define raw_smp_processor_id() 0
#define DECLARE_HASHTABLE(name, bits) struct hlist_head name[1 << (bits)]

/* The tags in use are all that is known about them. */
struct sbitmap {
	unsigned int used;
};

struct blk_mq_tags {
	struct {
		struct sbitmap sb;
	} bitmap_tags;
};

static inline unsigned int sbitmap_weight(const struct sbitmap *sb)
{
	return sb->used;
}

struct blk_mq_tag_set {
	unsigned int reserved_tags;
};

struct blk_mq_hw_ctx {
	struct blk_mq_tags *sched_tags;
};

struct request_queue {
	unsigned int nr_requests;
	unsigned int nr_hw_queues;
	struct blk_mq_tags *sched_shared_tags;
	struct blk_mq_tag_set *tag_set;
	struct blk_mq_hw_ctx hctx;
};

#define queue_for_each_hw_ctx(queue, hw, i) \
	for ((i) = 0, (hw) = &(queue)->hctx; (i) < 1; (i)++)

static inline void blk_mq_run_hw_queues(struct request_queue *q, bool async)
{
}

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct request_queue *q;
	struct blkcg *blkcg;
};

struct blkg_policy_data {
	struct blkcg_gq *blkg;
};

#define pd_to_blkg(pd) ((pd)->blkg)
#define cgroup_id(cgroup) 0ULL

struct bio {
	struct blkcg_gq *bi_blkg;
	blk_opf_t bi_opf;
};

struct request {
	struct {
		void *priv[2];
	} elv;
	blk_opf_t cmd_flags;
	u64 fifo_time;
	u64 start_time_ns;
	u16 stats_sectors;
	struct request_queue *q;
	struct list_head queuelist;
};

struct blk_mq_alloc_data {
	int unused;
};

#define blk_queue_write_cache(q) false
#define req_op(rq) ((enum req_op)((rq)->cmd_flags & REQ_OP_MASK))
#define op_is_write(operation) ((operation) & 1)
#define blk_rq_sectors(rq) ((rq)->stats_sectors)
#define blk_rq_bytes(rq) (blk_rq_sectors(rq) << SECTOR_SHIFT)

#endif
