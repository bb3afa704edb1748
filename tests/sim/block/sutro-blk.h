/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of the block layer as sutro-slots.c, sutro-turn.c, sutro-quota.c, sutro-notes.c,
 * sutro-direct.c, sutro-member.c, sutro-flush.c and sutro-polled.c need, in the place of
 * kernel/compat: one CPU, a disk that is its counters, a queue with one hardware queue, whose
 * bitmap of tags is a number, and tasks that count how often they are woken.  A test that lets them
 * sleep defines the functions for that.
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

/* Newer than the list.h of tools/include. */
#define list_entry_is_head(pos, head, member) (&(pos)->member == (head))

struct seq_file;

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
#define REQ_PREFLUSH 0x1000
#define REQ_NOMERGE 0x2000
#define REQ_POLLED 0x4000
#define REQ_IDLE 0x8000
#define HCTX_TYPE_POLL 2
#define RQF_USE_SCHED 1
#define RQF_SCHED_TAGS 2
#define RQF_FLUSH_SEQ 4
#define BLK_FEAT_FUA 1
#define SECTOR_SHIFT 9
#define STAT_READ 0
#define STAT_WRITE 1
#define BLKG_IOSTAT_READ 0
#define BLKG_IOSTAT_WRITE 1
#define WORK_CPU_UNBOUND 0
#define HRTIMER_MODE_REL 0
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)

typedef u32 blk_opf_t;
typedef u32 req_flags_t;
typedef u32 blk_status_t;
typedef u32 gfp_t;
typedef u64 sector_t;

enum req_op {
	REQ_OP_READ,
	REQ_OP_WRITE,
	REQ_OP_DISCARD = 3,
	REQ_OP_WRITE_ZEROES = 9,
	REQ_OP_ZONE_APPEND = 13,
};

struct bio_list;

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int woken;
	unsigned int state;
	struct bio_list *bio_list;
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

#define spin_lock_irq(lock) spin_lock(lock)
#define spin_unlock_irq(lock) spin_unlock(lock)
#define lockdep_assert_held(lock) assert((lock)->held)
#define spin_lock_irqsave(lock, flags) ((flags) = 0, spin_lock(lock))
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), spin_unlock(lock))

static inline void set_current_state(unsigned int state)
{
	current->state = state;
	preempt();
}

#define __set_current_state(value) (current->state = (value))
#define smp_mb() ((void)0)
#define smp_mb__before_atomic() ((void)0)
#define smp_mb__after_atomic() ((void)0)
#define atomic_inc(v) ((v)->counter++)
#define atomic_dec(v) ((v)->counter--)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() preempt()

#define DEFINE_PER_CPU(type, name) type name
#define num_possible_cpus() 1
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define per_cpu_ptr(pointer, cpu) ((void)(cpu), (pointer))
#define this_cpu_inc(value) ((value)++)
#define this_cpu_add(value, n) ((value) += (n))
#define alloc_percpu_gfp(type, gfp) ((type *)calloc(1, sizeof(type) + (gfp)))
#define free_percpu(pointer) free(pointer)
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

struct work_struct {
	bool pending;
};

struct delayed_work {
	struct work_struct work;
};

#define to_delayed_work(one) container_of(one, struct delayed_work, work)
#define nsecs_to_jiffies(ns) ((unsigned long)((ns) / (NSEC_PER_SEC / HZ)))
#define jiffies_to_nsecs(j) ((u64)(j) * (NSEC_PER_SEC / HZ))

#define delayed_work_pending(delayed) ((delayed)->work.pending)
/* A test looks whether it is pending, and calls the function when the time has come. */
#define kblockd_mod_delayed_work_on(cpu, delayed, delay) \
	((void)(delay), (delayed)->work.pending = true)

struct hrtimer {
	bool pending;
};

#define hrtimer_start(timer, time, mode) ((timer)->pending = true)

#define llist_empty(head) (!(head)->first)
#define raw_smp_processor_id() 0
#define DECLARE_HASHTABLE(name, bits) struct hlist_head name[1 << (bits)]

/* The tags in use are all that is known about them. */
struct sbitmap {
	unsigned int used;
};

struct blk_mq_tags {
	unsigned int nr_tags;
	struct request **static_rqs;
	struct {
		struct sbitmap sb;
		atomic_t ws_active;
	} bitmap_tags;
};

static inline unsigned int sbitmap_weight(const struct sbitmap *sb)
{
	return sb->used;
}

struct blk_mq_hw_ctx;
struct io_comp_batch;
struct request;

enum rq_end_io_ret { RQ_END_IO_FREE };

typedef enum rq_end_io_ret(rq_end_io_fn)(struct request *rq,
					 blk_status_t error);

struct blk_mq_ops {
	int (*poll)(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob);
};

struct blk_mq_tag_set {
	unsigned int queue_depth;
	unsigned int reserved_tags;
	unsigned int flags;
};

struct blk_mq_hw_ctx {
	spinlock_t lock;
	struct list_head dispatch;
	struct request_queue *queue;
	unsigned long flags;
	unsigned int type;
	unsigned int dispatch_busy;
	struct blk_mq_tags *tags;
	struct blk_mq_tags *sched_tags;
};

/* Completed requests of a disk: reads (0) and writes (1). */
struct block_device {
	struct request_queue *bd_queue;
	unsigned long ios[2];
	unsigned long sectors[2];
	u64 nsecs[2];
	unsigned long io_ticks;
};

struct gendisk {
	struct block_device *part0;
};

#define bdev_get_queue(bdev) ((bdev)->bd_queue)
#define part_stat_read(part, field) ((part)->field)

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
	struct gendisk *disk;
	const struct blk_mq_ops *mq_ops;
	struct {
		unsigned int features;
	} limits;
	int q_usage_counter;
	unsigned int runs;
	struct blk_mq_hw_ctx hctx;
};

#define percpu_ref_tryget(counter) (++*(counter))
#define percpu_ref_tryget_live(counter) percpu_ref_tryget(counter)
#define percpu_ref_put(counter) ((void)--*(counter))
#define blk_queue_is_zoned(q) false
#define blk_queue_io_stat(q) true
#define blk_queue_nomerges(q) false
#define sutro_counts_passthrough(q) false

#define queue_for_each_hw_ctx(queue, hw, i) \
	for ((i) = 0, (hw) = &(queue)->hctx; (i) < 1; (i)++)

static inline void blk_mq_run_hw_queues(struct request_queue *q, bool async)
{
	q->runs++;
}

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

/* Bytes that a cgroup has sent on a CPU, reads (0) and writes (1). */
struct blkg_iostat_set {
	int sync;
	struct {
		u64 bytes[2];
	} cur;
};

#define u64_stats_fetch_begin(sync) (*(sync))
#define u64_stats_fetch_retry(sync, seq) (*(sync) != (int)(seq))
#define cgroup_subsys_on_dfl(subsystem) true

struct blkcg_gq {
	struct request_queue *q;
	struct blkcg *blkcg;
	struct blkg_iostat_set *iostat_cpu;
};

struct blkg_policy_data {
	struct blkcg_gq *blkg;
};

#define pd_to_blkg(pd) ((pd)->blkg)
#define cgroup_id(cgroup) 0ULL

struct bio {
	struct blkcg_gq *bi_blkg;
	blk_opf_t bi_opf;
	struct {
		unsigned int bi_size;
	} bi_iter;
	struct block_device *bi_bdev;
};

struct bio_list {
	struct bio *head;
};

#define bio_list_peek(list) ((list)->head)

struct request {
	struct {
		void *priv[2];
	} elv;
	blk_opf_t cmd_flags;
	req_flags_t rq_flags;
	atomic_t ref;
	u64 fifo_time;
	u64 start_time_ns;
	u64 io_start_time_ns;
	unsigned int sectors;
	u16 stats_sectors;
	struct bio *bio;
	struct bio *biotail;
	struct {
		rq_end_io_fn *saved_end_io;
	} flush;
	void *end_io_data;
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

/* sutro-flush.c */
void sutro_flush_after(struct request *rq);

static inline enum rq_end_io_ret sutro_flush_end_io(struct request *rq,
						    blk_status_t error)
{
	sutro_flush_after(rq);
	return RQ_END_IO_FREE;
}

#define blk_time_get_ns() ktime_get_ns()
#define blkg_tryget(blkg) true
#define blkg_get(blkg) ((void)(blkg))
#define blkg_put(blkg) ((void)(blkg))

static inline unsigned int sutro_async_depth(struct request_queue *q)
{
	return max(q->nr_requests * 3 / 4, 1U);
}

static inline req_flags_t sutro_direct_flags(unsigned long flags)
{
	return RQF_USE_SCHED;
}

#define blk_queue_write_cache(q) false
#define req_op(rq) ((enum req_op)((rq)->cmd_flags & REQ_OP_MASK))
#define op_is_write(operation) ((operation) & 1)
#define op_is_discard(operation) (((operation) & REQ_OP_MASK) == REQ_OP_DISCARD)
#define bio_op(bio) ((enum req_op)((bio)->bi_opf & REQ_OP_MASK))
#define blk_rq_is_passthrough(rq) ((void)(rq), false)
#define op_is_sync(operation) \
	(!op_is_write(operation) || (operation) & REQ_SYNC)
#define blk_rq_sectors(rq) ((rq)->sectors)
#define blk_rq_bytes(rq) (blk_rq_sectors(rq) << SECTOR_SHIFT)

#endif
