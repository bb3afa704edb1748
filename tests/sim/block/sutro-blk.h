/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of the block layer as sutro-slots.c, sutro-turn.c and sutro-quota.c need, in the place of
 * kernel/compat: a queue with one hardware queue, whose bitmap of tags is a number, and tasks that
 * count how often they are woken.  A test that lets them sleep defines the functions for that.
 */
#ifndef SUTRO_BLK_H
#define SUTRO_BLK_H

#include <assert.h>
#include <limits.h>
#include <sys/types.h>

#include <linux/atomic.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/types.h>

struct seq_file;
struct work_struct;

struct elv_fs_entry {
	int unused;
};

#define ____cacheline_aligned_in_smp
#define __percpu
#define noinline
#define data_race(expression) (expression)
#define HZ 100
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define PF_IO_WORKER 1
#define PF_KTHREAD 2
#define PF_MEMALLOC 4
#define TASK_RUNNING 0
#define TASK_UNINTERRUPTIBLE 2
#define BLK_MQ_REQ_NOWAIT 1

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

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int woken;
	unsigned int state;
};

extern struct task_struct *current;
extern unsigned long jiffies;

u64 ktime_get_ns(void);

/* Another task may run at each of these, but for spin_lock(). */
void preempt(void);
long io_schedule_timeout(long timeout);

/* One task runs at a time; @held is for the check that it does not sleep with a lock. */
typedef struct {
	bool held;
} spinlock_t;

extern unsigned int locks_held;

static inline void spin_lock(spinlock_t *lock)
{
	assert(!lock->held);
	lock->held = true;
	locks_held++;
}

static inline void spin_unlock(spinlock_t *lock)
{
	assert(lock->held);
	lock->held = false;
	locks_held--;
	preempt();
}

#define spin_lock_irqsave(lock, flags) ((flags) = 0, spin_lock(lock))
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), spin_unlock(lock))

static inline void set_current_state(unsigned int state)
{
	current->state = state;
	preempt();
}

#define __set_current_state(value) (current->state = (value))
#define smp_mb__before_atomic() ((void)0)
#define smp_mb__after_atomic() ((void)0)
#define atomic_inc(v) ((v)->counter++)
#define atomic_dec(v) ((v)->counter--)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() preempt()

#define DEFINE_PER_CPU(type, name) type name
#define get_cpu_ptr(pointer) (pointer)
#define put_cpu_ptr(pointer) ((void)(pointer))

static inline int wake_up_process(struct task_struct *task)
{
	task->woken++;
	task->state = TASK_RUNNING;
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
	unsigned int queue_depth;
	unsigned int reserved_tags;
};

struct blk_mq_hw_ctx {
	unsigned long flags;
	struct blk_mq_tags *sched_tags;
};

struct elevator_queue {
	void *elevator_data;
};

struct request_queue {
	struct elevator_queue *elevator;
	unsigned int queue_depth;
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
	struct request_queue *q;
	struct blk_mq_hw_ctx *hctx;
	unsigned int flags;
	unsigned int shallow_depth;
	req_flags_t rq_flags;
	unsigned int nr_tags;
};

#define blkg_tryget(blkg) true
#define blkg_get(blkg) ((void)(blkg))
#define blkg_put(blkg) ((void)(blkg))

static inline unsigned int sutro_async_depth(struct request_queue *q)
{
	return max(q->nr_requests * 3 / 4, 1U);
}

static inline req_flags_t sutro_direct_flags(unsigned long flags)
{
	return 0;
}

#define blk_queue_write_cache(q) false
#define req_op(rq) ((enum req_op)((rq)->cmd_flags & REQ_OP_MASK))
#define op_is_write(operation) ((operation) & 1)
#define op_is_sync(operation) \
	(!op_is_write(operation) || (operation) & REQ_SYNC)
#define blk_rq_sectors(rq) ((rq)->stats_sectors)
#define blk_rq_bytes(rq) (blk_rq_sectors(rq) << SECTOR_SHIFT)

#endif
