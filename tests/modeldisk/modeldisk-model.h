/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * modeldisk: the model of a disk, as plain C
 *
 * A drive is a discrete event simulation. Its caller passes the time to each
 * function, serializes the calls and delivers the answers; a drive has no lock,
 * no timer and no kernel object. The kernel module (modeldisk-main.c) and the
 * userspace simulation (tests/sim) compile the same files:
 *
 *	modeldisk-drive.c	the path of a command; the order of events
 *	modeldisk-hdd.c		one actuator: seek, rotation, transfer, read-ahead
 *	modeldisk-flash.c	channels and a shared bus
 *	modeldisk-ftl.c		flash translation layer with garbage collection
 *	modeldisk-cache.c	the volatile write cache of either
 *	modeldisk-numbers.c	names, ranges and defaults of the numbers
 *
 * A request is a command (struct mdisk_cmd, the host waits for it) of one or
 * more operations (struct mdisk_op, work of the medium: one on an hdd; on an ssd one
 * per flash page, or per MiB of a discard). An operation outlives its command when the write
 * cache has taken it.
 *
 * Flushes and write-zeroes take the host interface only, and so do discards on an
 * hdd and on flash without a cost of them and without a translation layer.
 */
#ifndef MODELDISK_MODEL_H
#define MODELDISK_MODEL_H

#include <linux/list.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/types.h>

/* The time of the next event of an idle model. */
#define MDISK_NEVER_NS U64_MAX
/* More than any flash drive has. */
#define MDISK_MAX_CHANNELS 256
#define MDISK_SECTOR_SHIFT 9
/* Discards are cut into operations at multiples of this. */
#define MDISK_DISCARD_BYTES SZ_1M

enum mdisk_kind { MDISK_HDD, MDISK_SSD, MDISK_NVME, MDISK_KINDS };

enum mdisk_order { MDISK_FIFO, MDISK_SPTF };

enum mdisk_bus_order { MDISK_BUS_FIFO, MDISK_BUS_ROUND_ROBIN };

enum mdisk_action {
	MDISK_READ,
	MDISK_WRITE,
	MDISK_FLUSH,
	MDISK_DISCARD,
	MDISK_WRITE_ZEROES,
};

/**
 * struct mdisk_numbers - the parameters of a drive
 *
 * Every number may be written at any time; the next decision of the model uses
 * it. modeldisk-table.h has the kinds and the range of each number,
 * modeldisk-numbers.c the defaults.
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
	u32 bus_order; /* enum mdisk_bus_order */
	u32 discard_us; /* per command */
	u32 discard_us_per_mb;
	u32 erase_us; /* per block */
	/* all */
	u32 bus_kbps;
	u32 cache_kb;
	u32 drain_kbps;
	u32 give_back;
	u32 fail;
	u32 lose;
	/* before online only */
	u32 discard_segments; /* ssd, nvme */
	u32 over_provision_percent; /* ssd, nvme; 0: no translation layer */
	u32 fill_percent;
	u32 size_mb;
	u32 queue_depth;
	u32 hw_queues;
	u32 seed;
	u32 fua; /* with a cache: announced */
};

/**
 * struct mdisk_number - one of struct mdisk_numbers
 * @name: its name in configfs and in scene files
 * @offset: of a u32 in struct mdisk_numbers
 * @kinds: bits of the kinds that have it
 * @min: smallest value
 * @max: largest
 * @offline: can only change while the disk is offline
 * @names: configfs and scene files have these names for the values 0 to @max;
 *	NULL: digits
 */
struct mdisk_number {
	const char *name;
	size_t offset;
	u32 kinds;
	u32 min;
	u32 max;
	bool offline;
	const char *const *names;
};

/**
 * struct mdisk_counts - device time, bytes and requests of one owner or of all
 * @time_ns: device time
 * @bytes: by direction (MDISK_READ, MDISK_WRITE)
 * @ios: requests by direction
 * @meta_bytes: those of @bytes in requests marked as metadata
 */
struct mdisk_counts {
	u64 time_ns;
	u64 bytes[2];
	u64 ios[2];
	u64 meta_bytes[2];
};

/**
 * struct mdisk_owner - the group that a command is charged to
 * @refs: commands and operations that point here
 * @counts: its use of the drive
 */
struct mdisk_owner {
	u32 refs;
	struct mdisk_counts counts;
};

/**
 * struct mdisk_truth - the exact use of one drive
 * @total: the sum over all owners
 * @busy_ns: time in which the device had work
 * @requests: requests answered, of any kind
 * @latency_ns: sum over requests of finish - arrival
 * @written_pages: flash pages that the host wrote, with a translation layer
 * @moved_pages: flash pages that garbage collection wrote
 * @erased_blocks: flash blocks that it erased
 */
struct mdisk_truth {
	struct mdisk_counts total;
	u64 busy_ns;
	u64 requests;
	u64 latency_ns;
	u64 written_pages;
	u64 moved_pages;
	u64 erased_blocks;
};

struct mdisk_cmd;

/**
 * struct mdisk_turn - operations that share one turn of the bus (flash)
 * @node: in the list of turns, while there are operations
 * @ops: operations that wait for the bus, oldest first
 */
struct mdisk_turn {
	struct list_head node;
	struct list_head ops;
};

/**
 * struct mdisk_op - one piece of work for the medium
 * @node: place in a queue of the model, or in &mdisk_cmd.ops
 * @dirty: place in &mdisk_cache.dirty while the cache holds its data
 * @cmd: the command that waits for it; NULL for a destage
 * @owner: the owner that is charged
 * @arrival_ns: the model may serve it from then on
 * @transfer_ns: time that it needs on the bus (flash)
 * @reclaim_ns: time of the channel for garbage collection (flash)
 * @finish_ns: when it leaves the channel or the bus (flash)
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
	u64 transfer_ns;
	u64 reclaim_ns;
	u64 finish_ns;
	u64 seq;
	u64 sector;
	u32 bytes;
	bool write;
};

/**
 * struct mdisk_cmd - a request as the drive sees it
 * @node: in one of the link, the cache's waiting or flushing list, the done list
 * @ops: operations not handed to the model yet
 * @turn: those that wait for the bus, with round robin (flash)
 * @owner: its owner, from the caller
 * @action: from the caller
 * @fua: from the caller: a write that is answered by the medium only
 * @meta: from the caller: metadata
 * @bytes: length
 * @arrival_ns: when the drive received it
 * @finish_ns: when the drive answered
 * @flush_seq: a flush waits for all that the cache took before this
 * @reclaim_ns: the sum over the operations (flash)
 * @ops_total: operations of the command
 * @ops_left: operations that are not done
 * @cached: a write that the cache took
 */
struct mdisk_cmd {
	struct list_head node;
	struct list_head ops;
	struct mdisk_turn turn;
	struct mdisk_owner *owner;
	enum mdisk_action action;
	bool fua;
	bool meta;
	u32 bytes;
	u64 arrival_ns;
	u64 finish_ns;
	u64 flush_seq;
	u64 reclaim_ns;
	u32 ops_total;
	u32 ops_left;
	bool cached;
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

struct mdisk_drive;

/**
 * struct mdisk_model - the functions of a kind of medium
 * @state_bytes: Return: size of &mdisk_drive.state
 * @op_bytes: operations are cut at multiples of this, 0: one per command
 * @init: makes the zeroed state that of an idle medium
 * @submit: a data command reaches the medium
 * @next_ns: time of the next event, MDISK_NEVER_NS when there is none
 * @wake_ns: no command is done before, if nothing arrives; NULL: next_ns. Events
 *	between next_ns and wake_ns have no effect outside of the drive
 * @step: performs the next event
 * @charge_ns: device time of a finished command; NULL when the model charges each operation
 *
 * Time never goes back: submit and step get a time not smaller than any before.
 */
struct mdisk_model {
	size_t (*state_bytes)(const struct mdisk_drive *drive);
	u32 op_bytes;
	void (*init)(struct mdisk_drive *drive);
	void (*submit)(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
		       u64 now_ns);
	u64 (*next_ns)(struct mdisk_drive *drive);
	u64 (*wake_ns)(struct mdisk_drive *drive);
	void (*step)(struct mdisk_drive *drive, u64 now_ns);
	u64 (*charge_ns)(struct mdisk_drive *drive, struct mdisk_cmd *cmd);
};

/**
 * struct mdisk_drive - a drive
 * @num: the numbers
 * @model: the functions of its kind
 * @state: the state of the medium, &mdisk_model.state_bytes, allocated by the caller
 * @cache: volatile write cache
 * @link: commands in the host interface, by finish_ns
 * @link_free_ns: when the interface is idle
 * @done: finished commands; the caller takes them away
 * @truth: exact use
 */
struct mdisk_drive {
	struct mdisk_numbers num;
	const struct mdisk_model *model;
	void *state;
	struct mdisk_cache cache;
	struct list_head link;
	u64 link_free_ns;
	struct list_head done;
	struct mdisk_truth truth;
};

/* The caller's: memory of operations. A zeroed one, or NULL. */
struct mdisk_op *mdisk_op_alloc(void);
void mdisk_op_release(struct mdisk_op *op);

/* modeldisk-drive.c: for the caller */
void mdisk_drive_init(struct mdisk_drive *drive, enum mdisk_kind kind);
void mdisk_drive_start(struct mdisk_drive *drive);
void mdisk_drive_stop(struct mdisk_drive *drive);
int mdisk_cmd_init(struct mdisk_drive *drive, struct mdisk_cmd *cmd, u64 sector,
		   u32 bytes);
void mdisk_cmd_exit(struct mdisk_cmd *cmd);
void mdisk_drive_submit(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
			u64 now_ns);
u64 mdisk_drive_run(struct mdisk_drive *drive, u64 now_ns);

/* modeldisk-drive.c: for models and cache */
void mdisk_submit(struct mdisk_drive *drive, struct mdisk_cmd *cmd, u64 now_ns);
void mdisk_link_add(struct mdisk_drive *drive, struct mdisk_cmd *cmd, u64 bytes,
		    u64 now_ns);
void mdisk_op_done(struct mdisk_drive *drive, struct mdisk_op *op, u64 now_ns);
void mdisk_op_free(struct mdisk_op *op);
void mdisk_cmd_done(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
		    u64 now_ns);
void mdisk_charge_time(struct mdisk_drive *drive, struct mdisk_owner *owner,
		       u64 time_ns);

/* modeldisk-numbers.c */
extern const char *const mdisk_kind_names[MDISK_KINDS];
void mdisk_numbers_load(struct mdisk_numbers *num, enum mdisk_kind kind);
const struct mdisk_number *mdisk_number_find(const char *name);
u32 *mdisk_number_of(struct mdisk_numbers *num,
		     const struct mdisk_number *number);

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
void mdisk_cache_drop(struct mdisk_drive *drive);
enum mdisk_cache_verdict mdisk_cache_offer(struct mdisk_drive *drive,
					   struct mdisk_cmd *cmd);
void mdisk_cache_stored(struct mdisk_drive *drive, struct mdisk_op *op,
			u64 now_ns);
u64 mdisk_cache_next_ns(struct mdisk_drive *drive);
bool mdisk_cache_urgent(struct mdisk_drive *drive);
void mdisk_cache_take(struct mdisk_drive *drive, struct mdisk_op *op,
		      u64 now_ns);
void mdisk_cache_cleaned(struct mdisk_drive *drive, struct mdisk_op *op,
			 u64 now_ns);
void mdisk_cache_admit(struct mdisk_drive *drive, u64 now_ns);
void mdisk_cache_flush(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
		       u64 now_ns);

/**
 * mdisk_transfer_ns - the time of a transfer
 * @bytes: below 2^34
 * @kbps: the rate in KiB per second
 *
 * Return: nanoseconds
 */
static inline u64 mdisk_transfer_ns(u64 bytes, u32 kbps)
{
	/* bytes * 10^9 / (kbps * 1024), with 2^9 taken out of both to stay below 2^64 */
	return div_u64(bytes * (1000000000 >> 9), kbps * 2);
}

#endif /* MODELDISK_MODEL_H */
