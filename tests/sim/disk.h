/* SPDX-License-Identifier: GPL-2.0-only */
/* A drive of tests/modeldisk in simulated time. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "event.h"
#include "modeldisk-model.h"

/* The drive is done with a command. */
typedef void disk_done_fn(void *context, struct mdisk_cmd *cmd);

/**
 * struct disk - a drive and the clock that runs it
 * @drive:	the model, its numbers and its exact device times
 * @done:	called with @context for each finished command
 * @armed_ns:	time of the event that runs the drive next
 * @nr:		commands in the drive
 */
struct disk {
	struct mdisk_drive drive;
	struct clock *clock;
	disk_done_fn *done;
	void *context;
	u64 armed_ns;
	u32 nr;
};

void disk_init(struct disk *disk, struct clock *clock, enum mdisk_kind kind,
	       disk_done_fn *done, void *context);
void disk_start(struct disk *disk);
void disk_exit(struct disk *disk);
void disk_submit(struct disk *disk, struct mdisk_cmd *cmd);
void disk_change(struct disk *disk, const struct mdisk_numbers *num);

static inline u64 disk_bytes(const struct disk *disk)
{
	return (u64)disk->drive.num.size_mb << 20;
}

#endif /* SIM_DISK_H */
