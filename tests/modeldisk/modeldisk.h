/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * modeldisk - block devices that behave like disks and know the truth
 *
 * A model disk keeps its data in memory and answers each request when a disk of
 * the modelled kind would have answered it. Because it computes what the disk
 * does, it can say for every cgroup how much device time its requests really
 * took. That is the oracle of Sutro's fairness tests.
 *
 * Who does what:
 *
 *	modeldisk-configfs.c	a directory per disk, a file per number
 *	modeldisk-main.c	blk-mq: a request becomes a command, model time becomes real time
 *	modeldisk-hdd.c		one actuator: seek, rotation, transfer, read-ahead
 *	modeldisk-flash.c	channels and a shared bus
 *	modeldisk-cache.c	the volatile write cache of either
 *	modeldisk-store.c	the data, a sparse array of pages
 *	modeldisk-truth.c	device time, bytes and requests by cgroup
 *
 * A request is a command (struct mdisk_cmd, what the host waits for) of one or
 * more operations (struct mdisk_op, what the medium does: one on an hdd, one
 * per flash page on an ssd). An operation outlives its command when the write
 * cache has taken it.
 */
#ifndef MODELDISK_H
#define MODELDISK_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/configfs.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

/* "Nothing will happen": the time of the next event of an idle model. */
#define MDISK_NEVER_NS U64_MAX
/* More than any flash drive has. */
#define MDISK_MAX_CHANNELS 256

enum mdisk_kind { MDISK_HDD, MDISK_SSD, MDISK_NVME, MDISK_KINDS };

enum mdisk_order { MDISK_FIFO, MDISK_SPTF };

/**
 * struct mdisk_numbers - what a model is made of
 *
 * Every number may be written at any time; the next decision of the model uses
 * it. Which kind has which number, with its range and default, is in
 * modeldisk-configfs.c and README.rst.
 */
struct mdisk_numbers {
	/* hdd */
	u32 rpm;
	u32 seek_min_us;
	u32 seek_max_us;
	u32 bandwidth_kbps; /* KiB per second under the head */
	u32 overhead_us;
	u32 order; /* enum mdisk_order */
	u32 age_limit_ms;
	u32 readahead_kb;
	/* ssd, nvme */
	u32 channels;
	u32 read_us; /* per 16 KiB page */
	u32 write_us;
	u32 noise_percent;
	u32 hiccup_us;
	/* all */
	u32 bus_kbps;
	u32 cache_kb;
	u32 drain_kbps;
	u32 give_back;
	u32 fail;
	u32 lose;
	/* before online only */
	u32 size_mb;
	u32 queue_depth;
	u32 hw_queues;
	u64 seed;
};

/**
 * struct mdisk_counts - what was truly used, by one owner or by all
 * @time_ns: device time
 * @bytes: by direction (READ, WRITE)
 * @ios: requests by direction
 * @meta_bytes: those of @bytes in requests marked REQ_META
 */
struct mdisk_counts {
	u64 time_ns;
	u64 bytes[2];
	u64 ios[2];
	u64 meta_bytes[2];
};

/**
 * struct mdisk_owner - a cgroup that used the disk
 * @hash: in &mdisk_truth.by_id
 * @list: in &mdisk_truth.owners
 * @id: cgroup id of the cgroup that has the path now; the cgroup itself is not referenced
 * @refs: commands and operations that point here
 * @counts: what it used
 * @path: from the root of the cgroup hierarchy, taken when the cgroup was first seen
 */
struct mdisk_owner {
	struct hlist_node hash;
	struct list_head list;
	u64 id;
	u32 refs;
	struct mdisk_counts counts;
	char path[];
};

/**
 * struct mdisk_truth - the books of one disk, under the lock of the disk
 * @by_id: owners by cgroup id
 * @owners: all owners, in order of appearance
 * @nr_owners: how many
 * @others: takes what a cgroup used for which there is no entry
 * @total: the sum over all cgroups
 * @busy_ns: time in which the device had work
 * @requests: how many were answered, of any kind
 * @latency_ns: sum over requests of model finish - arrival
 * @late_ns: sum over requests of delivery - model finish: the error of the guest, not of the model
 * @late_max_ns: the largest of them
 * @inside: requests in the disk
 * @idle_since_ns: when it became zero
 * @idle_max_ns: the longest time for which it was
 * @path: scratch space for the path of a new owner
 */
struct mdisk_truth {
	DECLARE_HASHTABLE(by_id, 7);
	struct list_head owners;
	u32 nr_owners;
	struct mdisk_owner *others;
	struct mdisk_counts total;
	u64 busy_ns;
	u64 requests;
	u64 latency_ns;
	u64 late_ns;
	u64 late_max_ns;
	u32 inside;
	u64 idle_since_ns;
	u64 idle_max_ns;
	char path[PATH_MAX];
};

struct mdisk_cmd;

/**
 * struct mdisk_op - one piece of work for the medium
 * @node: place in a queue of the model, or in &mdisk_cmd.ops
 * @dirty: place in &mdisk_cache.dirty while the cache holds its data
 * @cmd: the command that waits for it; NULL when none does (destage)
 * @owner: who is charged
 * @arrival_ns: since when the model may serve it
 * @finish_ns: when the queue it is in is done with it (flash)
 * @seq: order in which the cache took it
 * @sector: first sector
 * @bytes: length
 * @write: direction
 */
struct mdisk_op {
	struct list_head node;
	struct list_head dirty;
	struct mdisk_cmd *cmd;
	struct mdisk_owner *owner;
	u64 arrival_ns;
	u64 finish_ns;
	u64 seq;
	u64 sector;
	u32 bytes;
	bool write;
};

/**
 * struct mdisk_cmd - a request as the disk sees it (the request's pdu)
 * @node: in one of the link, the cache's waiting or flushing list, the done list
 * @ops: operations not handed to the model yet
 * @owner: the cgroup of the request's bio
 * @arrival_ns: when the disk received it
 * @finish_ns: when the disk answered, in model time
 * @flush_seq: a flush waits for what the cache took before this
 * @ops_total: operations of the command
 * @ops_left: operations that are not done
 * @first_try: jiffies when there was no memory for it first
 * @cached: a write that the cache took
 * @status: what blk-mq is told in the end
 * @lost: only blk-mq's timeout ends it
 */
struct mdisk_cmd {
	struct list_head node;
	struct list_head ops;
	struct mdisk_owner *owner;
	u64 arrival_ns;
	u64 finish_ns;
	u64 flush_seq;
	u32 ops_total;
	u32 ops_left;
	unsigned long first_try;
	bool cached;
	blk_status_t status;
	bool lost;
};

/**
 * struct mdisk_cache - volatile write cache
 * @dirty: operations whose data are only in the cache, oldest first
 * @destage: those of them that wait for the medium
 * @waiting: write commands that wait for room
 * @flushing: flush commands, oldest first
 * @used_bytes: room taken
 * @pace_ns: no destage begins before (drain_kbps)
 * @next_seq: for the next operation
 */
struct mdisk_cache {
	struct list_head dirty;
	struct list_head destage;
	struct list_head waiting;
	struct list_head flushing;
	u64 used_bytes;
	u64 pace_ns;
	u64 next_seq;
};

struct mdisk;

/**
 * struct mdisk_model - how a kind of disk works, a discrete event simulation
 * @init: allocates &mdisk.state, which starts idle
 * @exit: frees it
 * @submit: a data command reaches the medium at model time now_ns
 * @next_ns: time of the next event, MDISK_NEVER_NS when there is none
 * @wake_ns: no command is done before, if nothing arrives; NULL: next_ns. Between
 *	next_ns and wake_ns nobody can see whether events have happened
 * @step: that event happens
 * @charge_ns: device time of a finished command; NULL when the model charges each operation
 * @op_bytes: operations are cut at multiples of this, 0: one per command
 *
 * All but init and exit run under the lock of the disk with interrupts off.
 * Time never goes back: submit and step see a time not smaller than any before.
 */
struct mdisk_model {
	int (*init)(struct mdisk *disk);
	void (*exit)(struct mdisk *disk);
	void (*submit)(struct mdisk *disk, struct mdisk_cmd *cmd, u64 now_ns);
	u64 (*next_ns)(struct mdisk *disk);
	u64 (*wake_ns)(struct mdisk *disk);
	void (*step)(struct mdisk *disk, u64 now_ns);
	u64 (*charge_ns)(struct mdisk *disk, struct mdisk_cmd *cmd);
	u32 op_bytes;
};

/**
 * struct mdisk - a model disk
 * @item: its configfs directory
 * @config: held while attributes change; orders online and offline
 * @kind: hdd, ssd, nvme
 * @lock: guards all from @num to @truth; interrupts off
 * @num: the numbers
 * @model: the kind's functions
 * @state: the model's own
 * @cache: volatile write cache
 * @link: commands in the host interface, by finish_ns
 * @link_free_ns: when the interface is idle
 * @done: finished commands on the way to the host
 * @armed_ns: what @timer is set to
 * @truth: the books
 * @timer: fires at the next event
 * @pages: the data
 * @pages_made: how many were wanted, for looking at the memory now and then
 * @memory_low: no more pages for now
 * @given_back: requests counted for give_back
 * @failed: the same for fail
 * @lost: the same for lose
 * @tag_set: blk-mq
 * @gendisk: NULL when offline
 * @debugfs: its directory
 */
struct mdisk {
	struct config_item item;
	struct mutex config; /* attributes, online, offline */
	enum mdisk_kind kind;

	spinlock_t lock; /* from num to truth */
	struct mdisk_numbers num;
	const struct mdisk_model *model;
	void *state;
	struct mdisk_cache cache;
	struct list_head link;
	u64 link_free_ns;
	struct list_head done;
	u64 armed_ns;
	struct mdisk_truth truth;

	struct hrtimer timer;
	struct xarray pages;
	atomic_t pages_made;
	bool memory_low;
	atomic_t given_back;
	atomic_t failed;
	atomic_t lost;
	struct blk_mq_tag_set tag_set;
	struct gendisk *gendisk;
	struct dentry *debugfs;
};

/* modeldisk-main.c */
int mdisk_online(struct mdisk *disk);
void mdisk_offline(struct mdisk *disk);
int mdisk_announce_cache(struct mdisk *disk);
int mdisk_prepare(struct mdisk *disk);
u64 mdisk_run(struct mdisk *disk, struct list_head *done);
void mdisk_deliver(struct list_head *done);
void mdisk_submit(struct mdisk *disk, struct mdisk_cmd *cmd, u64 now_ns);
void mdisk_link_add(struct mdisk *disk, struct mdisk_cmd *cmd, u64 bytes,
		    u64 now_ns);
void mdisk_op_done(struct mdisk *disk, struct mdisk_op *op, u64 now_ns);
void mdisk_op_free(struct mdisk *disk, struct mdisk_op *op);
void mdisk_cmd_done(struct mdisk *disk, struct mdisk_cmd *cmd, u64 now_ns);

/* modeldisk-configfs.c */
int mdisk_configfs_init(void);
void mdisk_configfs_exit(void);

/* modeldisk-hdd.c, modeldisk-flash.c */
extern const struct mdisk_model mdisk_hdd_model;
extern const struct mdisk_model mdisk_flash_model;

/* modeldisk-cache.c */
enum mdisk_cache_verdict {
	MDISK_CACHE_THROUGH, /* to the medium */
	MDISK_CACHE_TAKEN, /* completes when the cache has the data */
	MDISK_CACHE_FULL /* waits for room; the cache will submit it again */
};

void mdisk_cache_init(struct mdisk_cache *cache);
void mdisk_cache_drop(struct mdisk *disk);
enum mdisk_cache_verdict mdisk_cache_offer(struct mdisk *disk,
					   struct mdisk_cmd *cmd, bool fua);
void mdisk_cache_stored(struct mdisk *disk, struct mdisk_op *op, u64 now_ns);
u64 mdisk_cache_next_ns(struct mdisk *disk);
bool mdisk_cache_urgent(struct mdisk *disk);
void mdisk_cache_take(struct mdisk *disk, struct mdisk_op *op, u64 now_ns);
void mdisk_cache_cleaned(struct mdisk *disk, struct mdisk_op *op, u64 now_ns);
void mdisk_cache_admit(struct mdisk *disk, u64 now_ns);
void mdisk_cache_flush(struct mdisk *disk, struct mdisk_cmd *cmd, u64 now_ns);

/* modeldisk-store.c */
void mdisk_store_init(struct mdisk *disk);
void mdisk_store_free(struct mdisk *disk);
int mdisk_store_request(struct mdisk *disk, struct request *rq);

/* modeldisk-truth.c */
int mdisk_truth_init(struct mdisk *disk);
void mdisk_truth_exit(struct mdisk *disk);
struct mdisk_owner *mdisk_owner_get(struct mdisk *disk, struct request *rq);
void mdisk_note_arrival(struct mdisk *disk, u64 now_ns);
void mdisk_note_answer(struct mdisk *disk, struct mdisk_cmd *cmd);
void mdisk_charge_time(struct mdisk *disk, struct mdisk_owner *owner,
		       u64 time_ns);
void mdisk_charge_io(struct mdisk *disk, struct mdisk_owner *owner,
		     struct request *rq);
void mdisk_debugfs_add(struct mdisk *disk);
void mdisk_debugfs_remove(struct mdisk *disk);
void mdisk_debugfs_init(void);
void mdisk_debugfs_exit(void);

/**
 * mdisk_transfer_ns - how long @bytes take at @kbps KiB per second
 * @bytes: below 2^34
 * @kbps: the rate
 *
 * Return: nanoseconds
 */
static inline u64 mdisk_transfer_ns(u64 bytes, u32 kbps)
{
	/* bytes * 10^9 / (kbps * 1024), with 2^9 taken out of both to stay below 2^64 */
	return div_u64(bytes * (NSEC_PER_SEC >> 9), kbps * 2);
}

#endif /* MODELDISK_H */
