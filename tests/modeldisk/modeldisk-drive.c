// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: the path of a command through a drive, and the order of events
 *
 * Before a command is added, and whenever its caller's timer fires, all events
 * up to now happen in the order of their times; each sets the times of the next
 * from model times only. So the model does not depend on how late a timer was:
 *
 *	model	A finishes at 10.00 ms, B starts there and finishes at 13.20 ms
 *	guest	the timer fires at 10.35 ms: A is delivered 0.35 ms late, B
 *		still finishes at 13.20 ms
 *
 * As a command joins only after all events before its arrival have happened,
 * each decision sees exactly the commands that had arrived by its model time.
 *
 * The host interface (the "link") takes commands that do not concern the medium
 * at once: flush, write-zeroes, discard without a cost, and on an hdd writes into
 * the cache.
 * It is a FIFO: overhead_us, then the data at bus_kbps.
 */
#include <linux/errno.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "modeldisk-model.h"

/**
 * mdisk_charge_time - device time was used
 * @drive: the drive
 * @owner: the owner that used it
 * @time_ns: how much
 */
void mdisk_charge_time(struct mdisk_drive *drive, struct mdisk_owner *owner,
		       u64 time_ns)
{
	owner->counts.time_ns += time_ns;
	drive->truth.total.time_ns += time_ns;
}

static void mdisk_charge_io(struct mdisk_counts *counts, struct mdisk_cmd *cmd)
{
	if (cmd->action != MDISK_READ && cmd->action != MDISK_WRITE)
		return;
	counts->bytes[cmd->action] += cmd->bytes;
	counts->ios[cmd->action]++;
	if (cmd->meta)
		counts->meta_bytes[cmd->action] += cmd->bytes;
}

/* ---- operations and commands ---- */

/**
 * mdisk_op_free - an operation is over
 * @op: no longer on any list
 */
void mdisk_op_free(struct mdisk_op *op)
{
	op->owner->refs--;
	mdisk_op_release(op);
}

/**
 * mdisk_cmd_done - the drive answers
 * @drive: the drive
 * @cmd: the command
 * @now_ns: model time
 */
void mdisk_cmd_done(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
		    u64 now_ns)
{
	struct mdisk_truth *truth = &drive->truth;

	cmd->finish_ns = now_ns;
	if (cmd->ops_total) {
		if (drive->model->charge_ns)
			mdisk_charge_time(drive, cmd->owner,
					  drive->model->charge_ns(drive, cmd));
		mdisk_charge_io(&cmd->owner->counts, cmd);
		mdisk_charge_io(&truth->total, cmd);
	}
	truth->requests++;
	truth->latency_ns += cmd->finish_ns - cmd->arrival_ns;
	cmd->owner->refs--;
	list_add_tail(&cmd->node, &drive->done);
}

/**
 * mdisk_op_done - an operation of a command is done, on the medium or in the cache
 * @drive: the drive
 * @op: the operation, which loses its command
 * @now_ns: model time
 *
 * The command is done with its last operation.
 */
void mdisk_op_done(struct mdisk_drive *drive, struct mdisk_op *op, u64 now_ns)
{
	struct mdisk_cmd *cmd = op->cmd;

	op->cmd = NULL;
	if (!--cmd->ops_left)
		mdisk_cmd_done(drive, cmd, now_ns);
}

/**
 * mdisk_cmd_exit - free the operations of a command that was not submitted
 * @cmd: the command
 */
void mdisk_cmd_exit(struct mdisk_cmd *cmd)
{
	struct mdisk_op *op, *next;

	list_for_each_entry_safe(op, next, &cmd->ops, node)
		mdisk_op_release(op);
	INIT_LIST_HEAD(&cmd->ops);
}

static struct mdisk_op *mdisk_op_new(struct mdisk_cmd *cmd, u64 start, u64 end)
{
	struct mdisk_op *op = mdisk_op_alloc();

	if (!op)
		return NULL;
	op->cmd = cmd;
	op->sector = start >> MDISK_SECTOR_SHIFT;
	op->bytes = end - start;
	op->write = cmd->action == MDISK_WRITE;
	list_add_tail(&op->node, &cmd->ops);
	return op;
}

/* The size at whose multiples a command is cut, 0: nowhere. -1: it has no operations. */
static s64 mdisk_cut_bytes(struct mdisk_drive *drive, enum mdisk_action action)
{
	switch (action) {
	case MDISK_READ:
	case MDISK_WRITE:
		return drive->model->op_bytes;
	case MDISK_DISCARD:
		if (drive->num.discard_us || drive->num.discard_us_per_mb ||
		    drive->num.over_provision_percent)
			return MDISK_DISCARD_BYTES;
		return -1;
	default:
		return -1;
	}
}

/**
 * mdisk_cmd_init - cut a command into operations
 * @drive: the drive
 * @cmd: a command with its action, fua and meta
 * @sector: where it begins
 * @bytes: its length
 *
 * Return: 0, or -ENOMEM with nothing left behind
 */
int mdisk_cmd_init(struct mdisk_drive *drive, struct mdisk_cmd *cmd, u64 sector,
		   u32 bytes)
{
	s64 cut_bytes = mdisk_cut_bytes(drive, cmd->action);
	u64 start = sector << MDISK_SECTOR_SHIFT;
	u64 end = start + bytes;

	INIT_LIST_HEAD(&cmd->ops);
	INIT_LIST_HEAD(&cmd->turn.ops);
	cmd->bytes = bytes;
	cmd->reclaim_ns = 0;
	cmd->ops_total = 0;
	cmd->cached = false;
	if (cut_bytes < 0)
		return 0;

	while (start < end) {
		u64 cut = end;

		if (cut_bytes)
			cut = min(end,
				  round_down(start, cut_bytes) + cut_bytes);
		if (!mdisk_op_new(cmd, start, cut)) {
			mdisk_cmd_exit(cmd);
			return -ENOMEM;
		}
		cmd->ops_total++;
		start = cut;
	}
	cmd->ops_left = cmd->ops_total;
	return 0;
}

/* ---- the link ---- */

/**
 * mdisk_link_add - a command enters the host interface
 * @drive: the drive
 * @cmd: the command
 * @bytes: data that cross the interface
 * @now_ns: model time
 */
void mdisk_link_add(struct mdisk_drive *drive, struct mdisk_cmd *cmd, u64 bytes,
		    u64 now_ns)
{
	u64 start_ns = max(drive->link_free_ns,
			   now_ns + drive->num.overhead_us * NSEC_PER_USEC);

	drive->link_free_ns =
		start_ns + mdisk_transfer_ns(bytes, drive->num.bus_kbps);
	cmd->finish_ns = drive->link_free_ns;
	list_add_tail(&cmd->node, &drive->link);
}

static u64 mdisk_link_next_ns(struct mdisk_drive *drive)
{
	struct mdisk_cmd *cmd =
		list_first_entry_or_null(&drive->link, struct mdisk_cmd, node);

	return cmd ? cmd->finish_ns : MDISK_NEVER_NS;
}

static void mdisk_link_step(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_cmd *cmd =
		list_first_entry(&drive->link, struct mdisk_cmd, node);
	struct mdisk_op *op, *next;

	list_del(&cmd->node);
	if (cmd->action == MDISK_FLUSH) {
		mdisk_cache_flush(drive, cmd, now_ns);
		return;
	}
	if (!cmd->ops_total) {
		mdisk_cmd_done(drive, cmd, now_ns);
		return;
	}
	list_for_each_entry_safe(op, next, &cmd->ops, node) {
		list_del(&op->node);
		mdisk_cache_stored(drive, op, now_ns);
	}
}

/* ---- the clock ---- */

/**
 * mdisk_submit - a command goes to the interface, the cache or the medium
 * @drive: the drive
 * @cmd: the command; a write that waited for room in the cache comes here again
 * @now_ns: model time
 */
void mdisk_submit(struct mdisk_drive *drive, struct mdisk_cmd *cmd, u64 now_ns)
{
	struct mdisk_op *op;

	if (!cmd->ops_total) {
		mdisk_link_add(drive, cmd, 0, now_ns);
		return;
	}
	if (cmd->action == MDISK_WRITE) {
		switch (mdisk_cache_offer(drive, cmd)) {
		case MDISK_CACHE_FULL:
			return;
		case MDISK_CACHE_TAKEN:
			cmd->cached = true;
			break;
		case MDISK_CACHE_THROUGH:
			break;
		}
	}
	list_for_each_entry(op, &cmd->ops, node) {
		op->arrival_ns = now_ns;
		op->owner = cmd->owner;
		op->owner->refs++;
	}
	drive->model->submit(drive, cmd, now_ns);
}

/**
 * mdisk_drive_submit - a command arrives
 * @drive: a drive that has been run up to @now_ns
 * @cmd: the command, after mdisk_cmd_init(), with its owner
 * @now_ns: model time
 */
void mdisk_drive_submit(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
			u64 now_ns)
{
	cmd->arrival_ns = now_ns;
	cmd->owner->refs++;
	mdisk_submit(drive, cmd, now_ns);
}

/**
 * mdisk_drive_run - let all events up to now happen
 * @drive: the drive
 * @now_ns: model time
 *
 * Finished commands are on &mdisk_drive.done, in the order in which they finished.
 *
 * Return: when to run the drive again at the latest, MDISK_NEVER_NS for an idle one
 */
u64 mdisk_drive_run(struct mdisk_drive *drive, u64 now_ns)
{
	u64 link_ns, model_ns;

	for (;;) {
		link_ns = mdisk_link_next_ns(drive);
		model_ns = drive->model->next_ns(drive);
		if (min(link_ns, model_ns) > now_ns)
			break;
		if (link_ns <= model_ns)
			mdisk_link_step(drive, link_ns);
		else
			drive->model->step(drive, model_ns);
	}
	if (drive->model->wake_ns)
		model_ns = drive->model->wake_ns(drive);
	return min(link_ns, model_ns);
}

/**
 * mdisk_drive_init - make a drive one of a kind, with the defaults of that kind
 * @drive: a drive that is not started
 * @kind: hdd, ssd, nvme
 *
 * Size and seed, if set before, stay.
 */
void mdisk_drive_init(struct mdisk_drive *drive, enum mdisk_kind kind)
{
	drive->model = kind == MDISK_HDD ? &mdisk_hdd_model
					 : &mdisk_flash_model;
	mdisk_numbers_load(&drive->num, kind);
	INIT_LIST_HEAD(&drive->link);
	INIT_LIST_HEAD(&drive->done);
	mdisk_cache_init(&drive->cache);
}

/**
 * mdisk_drive_start - make a drive idle and ready
 * @drive: a drive whose state is allocated and zeroed
 */
void mdisk_drive_start(struct mdisk_drive *drive)
{
	drive->model->init(drive);
	mdisk_cache_init(&drive->cache);
	drive->link_free_ns = 0;
}

/**
 * mdisk_drive_stop - discard the data that were not destaged
 * @drive: a drive without commands; its state may be freed afterwards
 */
void mdisk_drive_stop(struct mdisk_drive *drive)
{
	mdisk_cache_drop(drive);
}
