// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: the volatile write cache
 *
 * With cache_kb a write is answered when the cache has its data, at the speed
 * of the interface, and reaches the medium later (destage). The destage uses
 * the same actuator or channels as everything else.
 *
 *   1. A write that fits takes room at once and gives it back when the medium
 *	has the data. One that does not fit now waits, in order of arrival. One
 *	larger than the whole cache, or with FUA, goes to the medium directly.
 *   2. The medium serves the host first. It destages when the host has nothing
 *	for it, and on equal terms with the host when the cache is urgent: 3/4
 *	full, or a write or a flush waits for it.
 *   3. drain_kbps, if not 0, is the pace of the destage: on average an operation
 *	begins its size / drain_kbps before the next.
 *   4. A flush is answered when all that the cache had taken before it is on
 *	the medium.
 *   5. The device time of a destage is charged to the cgroup that wrote: on an
 *	hdd when it happens, on flash, where the charge is a formula, with the
 *	write (modeldisk-flash.c).
 *
 * Example: cache_kb=1024, an hdd that destages 2 MB/s of random 4 KiB writes. A
 * burst of 256 writes is answered in 0.03 + 256 * 0.007 = 1.8 ms. The 257th
 * waits about 2 ms, and so on: after the burst writes run at the speed of the
 * medium.
 *
 * Not modelled: reads are not served from the cache, and a block written twice
 * is destaged twice.
 */
#include <linux/minmax.h>

#include "modeldisk-model.h"

/**
 * mdisk_cache_init - an empty cache
 * @cache: the cache
 */
void mdisk_cache_init(struct mdisk_cache *cache)
{
	INIT_LIST_HEAD(&cache->dirty);
	INIT_LIST_HEAD(&cache->destage);
	INIT_LIST_HEAD(&cache->waiting);
	INIT_LIST_HEAD(&cache->flushing);
	cache->used_bytes = 0;
	cache->pace_ns = 0;
	cache->next_seq = 0;
}

/**
 * mdisk_cache_drop - discard the data that were not destaged
 * @drive: a drive without commands
 */
void mdisk_cache_drop(struct mdisk_drive *drive)
{
	struct mdisk_op *op, *next;

	list_for_each_entry_safe(op, next, &drive->cache.dirty, dirty)
		mdisk_op_free(op);
	mdisk_cache_init(&drive->cache);
}

static u64 mdisk_cache_bytes(struct mdisk_drive *drive)
{
	return (u64)drive->num.cache_kb << 10;
}

static bool mdisk_cache_has_room(struct mdisk_drive *drive,
				 struct mdisk_cmd *cmd)
{
	return drive->cache.used_bytes + cmd->bytes <= mdisk_cache_bytes(drive);
}

/**
 * mdisk_cache_offer - put a write into the cache, if it may be there
 * @drive: the drive
 * @cmd: a write command
 *
 * Return: the fate of the command
 */
enum mdisk_cache_verdict mdisk_cache_offer(struct mdisk_drive *drive,
					   struct mdisk_cmd *cmd)
{
	struct mdisk_cache *cache = &drive->cache;
	struct mdisk_op *op;

	if (cmd->fua || cmd->bytes > mdisk_cache_bytes(drive))
		return MDISK_CACHE_THROUGH;
	if (!list_empty(&cache->waiting) || !mdisk_cache_has_room(drive, cmd)) {
		list_add_tail(&cmd->node, &cache->waiting);
		return MDISK_CACHE_FULL;
	}
	cache->used_bytes += cmd->bytes;
	list_for_each_entry(op, &cmd->ops, node) {
		op->seq = cache->next_seq++;
		list_add_tail(&op->dirty, &cache->dirty);
	}
	return MDISK_CACHE_TAKEN;
}

/**
 * mdisk_cache_admit - writes that waited for room and now have it go on
 * @drive: the drive
 * @now_ns: model time
 */
void mdisk_cache_admit(struct mdisk_drive *drive, u64 now_ns)
{
	LIST_HEAD(waiting);
	struct mdisk_cmd *cmd;

	list_splice_init(&drive->cache.waiting, &waiting);
	while ((cmd = list_first_entry_or_null(&waiting, struct mdisk_cmd,
					       node))) {
		if (!mdisk_cache_has_room(drive, cmd) &&
		    cmd->bytes <= mdisk_cache_bytes(drive))
			break;
		list_del(&cmd->node);
		mdisk_submit(drive, cmd, now_ns);
	}
	list_splice(&waiting, &drive->cache.waiting);
}

/**
 * mdisk_cache_stored - the data of a cached operation have arrived
 * @drive: the drive
 * @op: the operation, on no list but the cache's
 * @now_ns: model time
 */
void mdisk_cache_stored(struct mdisk_drive *drive, struct mdisk_op *op,
			u64 now_ns)
{
	op->arrival_ns = now_ns;
	list_add_tail(&op->node, &drive->cache.destage);
	mdisk_op_done(drive, op, now_ns);
}

/**
 * mdisk_cache_urgent - must the medium destage although requests of the host wait?
 * @drive: the drive
 *
 * Return: true if so
 */
bool mdisk_cache_urgent(struct mdisk_drive *drive)
{
	struct mdisk_cache *cache = &drive->cache;

	return !list_empty(&cache->waiting) || !list_empty(&cache->flushing) ||
	       cache->used_bytes * 4 > mdisk_cache_bytes(drive) * 3;
}

/**
 * mdisk_cache_next_ns - when the next destage may begin
 * @drive: the drive
 *
 * Return: model time, which may have passed; MDISK_NEVER_NS when there is nothing to destage
 */
u64 mdisk_cache_next_ns(struct mdisk_drive *drive)
{
	struct mdisk_cache *cache = &drive->cache;

	if (list_empty(&cache->destage))
		return MDISK_NEVER_NS;
	return max(cache->pace_ns,
		   list_first_entry(&cache->destage, struct mdisk_op, node)
			   ->arrival_ns);
}

/**
 * mdisk_cache_take - the medium begins to destage
 * @drive: the drive
 * @op: one of the destage list; it is removed from there
 * @now_ns: model time
 */
void mdisk_cache_take(struct mdisk_drive *drive, struct mdisk_op *op,
		      u64 now_ns)
{
	struct mdisk_cache *cache = &drive->cache;
	u64 pause_ns;

	list_del(&op->node);
	if (!drive->num.drain_kbps)
		return;
	/* a start that was late by less than a pause is made up for */
	pause_ns = mdisk_transfer_ns(op->bytes, drive->num.drain_kbps);
	cache->pace_ns = max(cache->pace_ns + pause_ns, now_ns);
}

static void mdisk_cache_answer_flushes(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_cache *cache = &drive->cache;
	struct mdisk_op *oldest =
		list_first_entry_or_null(&cache->dirty, struct mdisk_op, dirty);
	struct mdisk_cmd *cmd, *next;

	list_for_each_entry_safe(cmd, next, &cache->flushing, node) {
		if (oldest && oldest->seq < cmd->flush_seq)
			break;
		list_del(&cmd->node);
		mdisk_cmd_done(drive, cmd, now_ns);
	}
}

/**
 * mdisk_cache_cleaned - the medium has destaged
 * @drive: the drive
 * @op: the operation; it is freed
 * @now_ns: model time
 */
void mdisk_cache_cleaned(struct mdisk_drive *drive, struct mdisk_op *op,
			 u64 now_ns)
{
	drive->cache.used_bytes -= op->bytes;
	list_del(&op->dirty);
	mdisk_op_free(op);
	mdisk_cache_answer_flushes(drive, now_ns);
	mdisk_cache_admit(drive, now_ns);
}

/**
 * mdisk_cache_flush - a flush command has arrived
 * @drive: the drive
 * @cmd: the command
 * @now_ns: model time
 */
void mdisk_cache_flush(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
		       u64 now_ns)
{
	cmd->flush_seq = drive->cache.next_seq;
	list_add_tail(&cmd->node, &drive->cache.flushing);
	mdisk_cache_answer_flushes(drive, now_ns);
}
