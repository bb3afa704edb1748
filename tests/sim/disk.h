/* SPDX-License-Identifier: GPL-2.0-only */
/* Models of drives, and what a request's true device time is. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "event.h"
#include "sutro-cost.h"

#define SECTOR_SHIFT 9
#define DISK_MAX_DEPTH 1024
#define DISK_MAX_CHANNELS 64

/**
 * struct io - a request at one drive
 * @owner:	for the leaf (leaf.h)
 * @op:		SUTRO_READ or SUTRO_WRITE
 * @sector:	where
 * @bytes:	how much
 * @arrival_ns:	when the drive got it
 * @pages:	flash pages that are not done yet
 */
struct io {
	void *owner;
	enum sutro_op op;
	u64 sector;
	u32 bytes;
	u64 arrival_ns;
	u32 pages;
};

/* A drive tells that it is done with a request, and its true device time. */
typedef void disk_done_fn(void *context, struct io *io, u64 true_ns);

/**
 * struct hdd_model - one actuator
 * @sptf:	the request whose first sector can be reached first is next, but
 *		one that waited longer than @age_limit_ns; else in order of arrival
 * @readahead_bytes: how far a drive with nothing to do reads on
 */
struct hdd_model {
	u64 size_bytes;
	u32 rpm;
	u64 seek_min_ns;
	u64 seek_max_ns;
	u32 bandwidth_kbps;
	u64 overhead_ns;
	bool sptf;
	u64 age_limit_ns;
	u64 readahead_bytes;
	u32 depth;
};

/**
 * struct flash_model - channels and a bus
 * @read_ns:	per page of 16 KiB
 * @write_ns:	likewise
 */
struct flash_model {
	u64 size_bytes;
	u32 channels;
	u64 read_ns;
	u64 write_ns;
	u32 bus_kbps;
	u32 depth;
};

extern const struct hdd_model hdd_default;
extern const struct flash_model ssd_default, nvme_default;

/**
 * struct hdd - the state of the mechanism
 * @queue:	requests, oldest first
 * @serving:	the one that the actuator works on, or NULL
 * @true_ns:	its device time
 * @head_sector: the end of the last transfer, which was under the head ...
 * @head_ns:	... at this time
 * @reading_ahead: the last transfer was a read
 */
struct hdd {
	struct hdd_model model;
	struct io *queue[DISK_MAX_DEPTH];
	struct io *serving;
	u64 true_ns;
	u64 head_sector;
	u64 head_ns;
	bool reading_ahead;
};

/**
 * struct flash - the state of channels and bus
 */
struct flash {
	struct flash_model model;
	u64 channel_free_ns[DISK_MAX_CHANNELS];
	u64 bus_free_ns;
};

/**
 * struct disk - a drive
 * @rotational:	@hdd, otherwise @flash
 * @depth:	requests that it takes
 * @nr:		requests that it has
 */
struct disk {
	struct clock *clock;
	disk_done_fn *done;
	void *context;
	bool rotational;
	u64 size_bytes;
	u32 depth;
	u32 nr;
	union {
		struct hdd hdd;
		struct flash flash;
	};
};

void hdd_init(struct disk *disk, struct clock *clock,
	      const struct hdd_model *model, disk_done_fn *done, void *context);
void hdd_submit(struct disk *disk, struct io *io);

void flash_init(struct disk *disk, struct clock *clock,
		const struct flash_model *model, disk_done_fn *done,
		void *context);
void flash_submit(struct disk *disk, struct io *io);
u64 flash_true_ns(const struct flash_model *model, enum sutro_op op, u32 bytes);

static inline void disk_submit(struct disk *disk, struct io *io)
{
	if (disk->rotational)
		hdd_submit(disk, io);
	else
		flash_submit(disk, io);
}

#endif /* SIM_DISK_H */
