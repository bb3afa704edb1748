// SPDX-License-Identifier: GPL-2.0-only
/*
 * A drive of tests/modeldisk in simulated time: the part that modeldisk-main.c has in
 * the kernel. A timer is never late here, so each command is delivered when it is done.
 */
#include "disk.h"

#include <assert.h>
#include <stdlib.h>

struct mdisk_op *mdisk_op_alloc(void)
{
	return calloc(1, sizeof(struct mdisk_op));
}

void mdisk_op_release(struct mdisk_op *op)
{
	free(op);
}

static void disk_wake(void *context, u64 now_ns);

static void disk_run(struct disk *disk)
{
	u64 now_ns = disk->clock->now_ns;
	u64 next_ns = mdisk_drive_run(&disk->drive, now_ns);
	struct mdisk_cmd *cmd, *next;
	LIST_HEAD(done);

	if (next_ns < disk->armed_ns) {
		disk->armed_ns = next_ns;
		clock_at(disk->clock, next_ns, disk_wake, disk);
	}
	list_splice_init(&disk->drive.done, &done);
	list_for_each_entry_safe(cmd, next, &done, node) {
		assert(cmd->finish_ns == now_ns);
		disk->nr--;
		disk->done(disk->context, cmd);
	}
}

static void disk_wake(void *context, u64 now_ns)
{
	struct disk *disk = context;

	/* An earlier event was set after this one. */
	if (disk->armed_ns != now_ns)
		return;
	disk->armed_ns = MDISK_NEVER_NS;
	disk_run(disk);
}

/* The drive has other numbers from now on. The past is by the old ones, as in the kernel module. */
void disk_change(struct disk *disk, const struct mdisk_numbers *num)
{
	if (!disk->drive.state) {
		/* It has not started. */
		disk->drive.num = *num;
		return;
	}
	disk_run(disk);
	disk->drive.num = *num;
	mdisk_cache_admit(&disk->drive, disk->clock->now_ns);
	disk_run(disk);
}

/* A command arrives. */
void disk_submit(struct disk *disk, struct mdisk_cmd *cmd)
{
	assert(disk->nr < disk->drive.num.queue_depth);
	disk->nr++;
	disk_run(disk);
	mdisk_drive_submit(&disk->drive, cmd, disk->clock->now_ns);
	disk_run(disk);
}

/* A drive with the defaults of its kind, whose numbers may be changed. */
void disk_init(struct disk *disk, struct clock *clock, enum mdisk_kind kind,
	       disk_done_fn *done, void *context)
{
	*disk = (struct disk){
		.clock = clock,
		.done = done,
		.context = context,
		.armed_ns = MDISK_NEVER_NS,
	};
	mdisk_drive_init(&disk->drive, kind);
}

/* The drive is ready for commands. */
void disk_start(struct disk *disk)
{
	disk->drive.state =
		calloc(1, disk->drive.model->state_bytes(&disk->drive));
	assert(disk->drive.state);
	mdisk_drive_start(&disk->drive);
}

void disk_exit(struct disk *disk)
{
	mdisk_drive_stop(&disk->drive);
	free(disk->drive.state);
}
