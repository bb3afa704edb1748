// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: between blk-mq and a model
 *
 * Model time and real time
 *
 * The clock of the model (modeldisk-drive.c) is the kernel's monotonic clock. A
 * request's arrival is the time of queue_rq. The throughput of a disk that
 * always has work is that of the model, on any CPU. A late timer delays only
 * the delivery of an answer, which makes the host's next request late. A queue
 * that runs empty cannot hide that; `model` in debugfs reports how late.
 *
 * The CPU that submits a request copies its data at once.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bio.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "modeldisk-compat.h"
#include "modeldisk.h"

/* The largest request that Linux sends to a disk by default (BLK_DEF_MAX_SECTORS_CAP). */
#define MDISK_MAX_SECTORS 2560
#define MDISK_PHYSICAL_BLOCK_BYTES 4096

/* A request fails if there is no memory for its data for this time. */
#define MDISK_MEMORY_PATIENCE (10 * HZ)

static struct kmem_cache *mdisk_op_slab;

/* ---- memory of operations ---- */

struct mdisk_op *mdisk_op_alloc(void)
{
	return kmem_cache_zalloc(mdisk_op_slab, GFP_NOWAIT | __GFP_NOWARN);
}

void mdisk_op_release(struct mdisk_op *op)
{
	kmem_cache_free(mdisk_op_slab, op);
}

/* ---- the clock ---- */

/**
 * mdisk_run - let all events up to now happen and set the timer for the next
 * @disk: the disk, locked
 * @done: commands to give to mdisk_deliver() after unlocking
 *
 * Return: now, in nanoseconds
 */
u64 mdisk_run(struct mdisk *disk, struct list_head *done)
{
	struct mdisk_drive *drive = &disk->drive;
	u64 now_ns = ktime_get_ns();
	u64 next_ns;

	lockdep_assert_held(&disk->lock);
	next_ns = mdisk_drive_run(drive, now_ns);
	if (next_ns < disk->armed_ns) {
		disk->armed_ns = next_ns;
		hrtimer_start(&disk->timer, ns_to_ktime(next_ns),
			      HRTIMER_MODE_ABS);
	}

	list_splice_tail_init(&drive->done, done);
	return now_ns;
}

/* Is this one of every @nth, as counted in @seen? */
static bool mdisk_is_nth(u32 nth, atomic_t *seen)
{
	return nth && (u32)atomic_inc_return(seen) % nth == 0;
}

/**
 * mdisk_deliver - answers reach the host
 * @done: from mdisk_run()
 *
 * Lost answers (lose) are left to blk-mq's timeout.
 */
void mdisk_deliver(struct list_head *done)
{
	struct mdisk_pdu *pdu, *next;

	list_for_each_entry_safe(pdu, next, done, cmd.node) {
		struct request *rq = blk_mq_rq_from_pdu(pdu);
		struct mdisk *disk = rq->q->queuedata;

		if (mdisk_is_nth(READ_ONCE(disk->drive.num.lose), &disk->lost))
			WRITE_ONCE(pdu->lost, true);
		else
			blk_mq_complete_request(rq);
	}
}

static enum hrtimer_restart mdisk_timer(struct hrtimer *timer)
{
	struct mdisk *disk = container_of(timer, struct mdisk, timer);
	unsigned long flags;
	LIST_HEAD(done);

	spin_lock_irqsave(&disk->lock, flags);
	disk->armed_ns = MDISK_NEVER_NS;
	mdisk_run(disk, &done);
	spin_unlock_irqrestore(&disk->lock, flags);
	mdisk_deliver(&done);
	return HRTIMER_NORESTART;
}

/* ---- blk-mq ---- */

/* For a moment: blk-mq tries again. For good: the disk is larger than memory. */
static blk_status_t mdisk_no_memory(struct mdisk *disk, struct request *rq)
{
	struct mdisk_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!(rq->rq_flags & RQF_DONTPREP)) {
		rq->rq_flags |= RQF_DONTPREP;
		pdu->first_try = jiffies;
	}
	if (time_before(jiffies, pdu->first_try + MDISK_MEMORY_PATIENCE))
		return BLK_STS_RESOURCE;
	pr_warn_ratelimited("%s: no memory for the data: I/O error\n",
			    config_item_name(&disk->item));
	return BLK_STS_IOERR;
}

static enum mdisk_action mdisk_action(struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return MDISK_READ;
	case REQ_OP_WRITE:
		return MDISK_WRITE;
	case REQ_OP_FLUSH:
		return MDISK_FLUSH;
	case REQ_OP_DISCARD:
		return MDISK_DISCARD;
	default:
		return MDISK_WRITE_ZEROES;
	}
}

static blk_status_t mdisk_queue_rq(struct blk_mq_hw_ctx *hctx,
				   const struct blk_mq_queue_data *bd)
{
	struct mdisk *disk = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	struct mdisk_pdu *pdu = blk_mq_rq_to_pdu(rq);
	struct mdisk_cmd *cmd = &pdu->cmd;
	unsigned long flags;
	LIST_HEAD(done);
	u64 now_ns;

	cmd->action = mdisk_action(rq);
	cmd->fua = rq->cmd_flags & REQ_FUA;
	cmd->meta = rq->cmd_flags & REQ_META;
	if (mdisk_cmd_init(&disk->drive, cmd, blk_rq_pos(rq), blk_rq_bytes(rq)))
		return mdisk_no_memory(disk, rq);
	if (mdisk_store_request(disk, rq)) {
		mdisk_cmd_exit(cmd);
		return mdisk_no_memory(disk, rq);
	}
	pdu->status = BLK_STS_OK;
	WRITE_ONCE(pdu->lost, false);
	blk_mq_start_request(rq);

	spin_lock_irqsave(&disk->lock, flags);
	now_ns = mdisk_run(disk, &done);
	cmd->owner = mdisk_owner_get(disk, rq);
	mdisk_drive_submit(&disk->drive, cmd, now_ns);
	mdisk_run(disk, &done);
	spin_unlock_irqrestore(&disk->lock, flags);

	if (!list_empty(&done)) {
		/* so that the completion softirq runs here and not in ksoftirqd */
		local_bh_disable();
		mdisk_deliver(&done);
		local_bh_enable();
	}
	return BLK_STS_OK;
}

/*
 * Now and then (give_back) the driver has blk-mq try a request again, as one does
 * for a retry: in turn a request that it had prepared (as nvme's are), which goes
 * past the elevator, and one that it had not (as scsi's), which goes through it.
 */
static bool mdisk_gives_back(struct mdisk *disk, struct request *rq)
{
	u32 nth = READ_ONCE(disk->drive.num.give_back);
	u32 n;

	if (!nth)
		return false;
	n = (u32)atomic_inc_return(&disk->given_back);
	if (n % nth)
		return false;
	if (n / nth % 2) {
		struct mdisk_pdu *pdu = blk_mq_rq_to_pdu(rq);

		rq->rq_flags |= RQF_DONTPREP;
		pdu->first_try = jiffies;
	}
	blk_mq_requeue_request(rq, true);
	return true;
}

static void mdisk_complete_rq(struct request *rq)
{
	struct mdisk *disk = rq->q->queuedata;
	struct mdisk_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (mdisk_is_nth(READ_ONCE(disk->drive.num.fail), &disk->failed))
		pdu->status = BLK_STS_IOERR;
	if (pdu->status || !mdisk_gives_back(disk, rq))
		blk_mq_end_request(rq, pdu->status);
}

/* A slow disk only takes its time; a lost request has failed. */
static enum blk_eh_timer_return mdisk_timeout_rq(struct request *rq)
{
	struct mdisk_pdu *pdu = blk_mq_rq_to_pdu(rq);

	if (!READ_ONCE(pdu->lost))
		return BLK_EH_RESET_TIMER;
	pdu->status = BLK_STS_TIMEOUT;
	blk_mq_complete_request(rq);
	return BLK_EH_DONE;
}

static const struct blk_mq_ops mdisk_mq_ops = {
	.queue_rq = mdisk_queue_rq,
	.complete = mdisk_complete_rq,
	.timeout = mdisk_timeout_rq,
};

static const struct block_device_operations mdisk_fops = {
	.owner = THIS_MODULE,
};

static blk_features_t mdisk_features(struct mdisk *disk)
{
	blk_features_t features = 0;

	if (disk->kind == MDISK_HDD)
		features |= BLK_FEAT_ROTATIONAL;
	if (disk->drive.num.cache_kb)
		features |= BLK_FEAT_WRITE_CACHE;
	if (disk->drive.num.cache_kb && disk->drive.num.fua)
		features |= BLK_FEAT_FUA;
	return features;
}

/**
 * mdisk_announce_cache - set whether the block layer sees a write cache
 * @disk: an online disk whose cache_kb became zero or non-zero
 *
 * Return: 0 or a negative error
 */
int mdisk_announce_cache(struct mdisk *disk)
{
	struct request_queue *q = disk->gendisk->queue;
	struct queue_limits lim = queue_limits_start_update(q);

	lim.features &= ~(BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA);
	lim.features |= mdisk_features(disk);
	return queue_limits_commit_update_frozen(q, &lim);
}

static void mdisk_state_free(struct mdisk *disk)
{
	kvfree(disk->drive.state);
	disk->drive.state = NULL;
}

/**
 * mdisk_online - create the block device
 * @disk: a disk without one; @disk->config is held
 *
 * Return: 0 or a negative error
 */
int mdisk_online(struct mdisk *disk)
{
	const char *name = config_item_name(&disk->item);
	struct queue_limits lim = {
		.logical_block_size = SECTOR_SIZE,
		.physical_block_size = MDISK_PHYSICAL_BLOCK_BYTES,
		.max_hw_sectors = MDISK_MAX_SECTORS,
		.max_segments = BLK_MAX_SEGMENTS,
		.max_hw_discard_sectors = UINT_MAX >> SECTOR_SHIFT,
		.max_discard_segments =
			max(disk->drive.num.discard_segments, 1U),
		.discard_granularity = PAGE_SIZE,
		.max_write_zeroes_sectors = UINT_MAX >> SECTOR_SHIFT,
		.features = mdisk_features(disk),
	};
	struct gendisk *gendisk;
	size_t state_bytes;
	char path[DISK_NAME_LEN + 8];
	dev_t taken;
	int ret;

	/* add_disk() would refuse too, with a stack trace */
	snprintf(path, sizeof(path), "/dev/%s", name);
	if (!lookup_bdev(path, &taken))
		return -EEXIST;

	disk->tag_set = (struct blk_mq_tag_set){
		.ops = &mdisk_mq_ops,
		.nr_hw_queues = disk->drive.num.hw_queues,
		.queue_depth = disk->drive.num.queue_depth,
		.numa_node = NUMA_NO_NODE,
		.cmd_size = sizeof(struct mdisk_pdu),
		.flags = MDISK_TAG_SET_FLAGS,
	};
	ret = blk_mq_alloc_tag_set(&disk->tag_set);
	if (ret)
		return ret;

	state_bytes = disk->drive.model->state_bytes(&disk->drive);
	disk->drive.state = kvzalloc(state_bytes, GFP_KERNEL);
	if (!disk->drive.state) {
		ret = -ENOMEM;
		goto err_tag_set;
	}
	mdisk_drive_start(&disk->drive);
	disk->armed_ns = MDISK_NEVER_NS;

	gendisk = blk_mq_alloc_disk(&disk->tag_set, &lim, disk);
	if (IS_ERR(gendisk)) {
		ret = PTR_ERR(gendisk);
		goto err_state;
	}
	strscpy(gendisk->disk_name, name, DISK_NAME_LEN);
	gendisk->fops = &mdisk_fops;
	gendisk->private_data = disk;
	set_capacity(gendisk,
		     (sector_t)disk->drive.num.size_mb << (20 - SECTOR_SHIFT));
	ret = add_disk(gendisk);
	if (ret)
		goto err_disk;

	disk->gendisk = gendisk;
	return 0;

err_disk:
	put_disk(gendisk);
err_state:
	mdisk_state_free(disk);
err_tag_set:
	blk_mq_free_tag_set(&disk->tag_set);
	return ret;
}

/**
 * mdisk_offline - remove the block device, as if pulled out
 * @disk: an online disk; @disk->config is held
 *
 * Requests in flight are answered first. The data stay for the next
 * mdisk_online().
 */
void mdisk_offline(struct mdisk *disk)
{
	del_gendisk(disk->gendisk);
	hrtimer_cancel(&disk->timer);
	put_disk(disk->gendisk);
	disk->gendisk = NULL;
	spin_lock_irq(&disk->lock);
	mdisk_drive_stop(&disk->drive);
	spin_unlock_irq(&disk->lock);
	mdisk_state_free(disk);
	blk_mq_free_tag_set(&disk->tag_set);
}

/**
 * mdisk_prepare - make a new disk ready for its first mdisk_online()
 * @disk: zeroed
 *
 * Return: 0 or a negative error
 */
int mdisk_prepare(struct mdisk *disk)
{
	mutex_init(&disk->config);
	spin_lock_init(&disk->lock);
	mdisk_drive_init(&disk->drive, disk->kind);
	hrtimer_setup(&disk->timer, mdisk_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	mdisk_store_init(disk);
	return mdisk_truth_init(disk);
}

static int __init mdisk_module_init(void)
{
	int ret;

	mdisk_op_slab = KMEM_CACHE(mdisk_op, 0);
	if (!mdisk_op_slab)
		return -ENOMEM;
	mdisk_debugfs_init();
	ret = mdisk_configfs_init();
	if (ret)
		goto err;
	return 0;

err:
	mdisk_debugfs_exit();
	kmem_cache_destroy(mdisk_op_slab);
	return ret;
}

/* No disk exists any more, because configfs holds the module while there is one. */
static void __exit mdisk_module_exit(void)
{
	mdisk_configfs_exit();
	mdisk_debugfs_exit();
	rcu_barrier();
	kmem_cache_destroy(mdisk_op_slab);
}

module_init(mdisk_module_init);
module_exit(mdisk_module_exit);
MODULE_AUTHOR("Sutro");
MODULE_DESCRIPTION("Model disks that report exact device time");
MODULE_LICENSE("GPL");
