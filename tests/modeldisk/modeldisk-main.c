// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: between blk-mq and a model
 *
 * Model time and real time
 *
 * The model is a discrete event simulation whose clock is the kernel's
 * monotonic clock. A request's arrival is the time of queue_rq. Before a
 * request is added, and whenever the timer fires, all events up to now happen
 * in the order of their model times; each sets the times of the next from model
 * times only. So the model never sees how late a timer was:
 *
 *	model	A finishes at 10.00 ms, B starts there and finishes at 13.20 ms
 *	guest	the timer fires at 10.35 ms: A is delivered 0.35 ms late, B
 *		still finishes at 13.20 ms
 *
 * and the throughput of a disk that always has work is that of the model, on
 * any CPU. A late delivery does make the host's next request late, which a
 * queue that runs empty cannot hide; `model` in debugfs tells how late. As a
 * request joins only after all events before its arrival have happened, each
 * decision sees exactly the requests that had arrived by its model time.
 *
 * Data are copied when a request arrives, by the CPU that submits it.
 *
 * The host interface (the "link") takes commands that do not concern the medium
 * at once: flush, discard, write-zeroes, and on an hdd writes into the cache.
 * It is a FIFO: overhead_us, then the data at bus_kbps.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bio.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "modeldisk-compat.h"
#include "modeldisk.h"

/* What Linux sends to a disk by default at most (BLK_DEF_MAX_SECTORS_CAP). */
#define MDISK_MAX_SECTORS 2560
#define MDISK_PHYSICAL_BLOCK_BYTES 4096

/* A request fails if there is no memory for its data for so long. */
#define MDISK_MEMORY_PATIENCE (10 * HZ)

static struct kmem_cache *mdisk_op_slab;

/* ---- operations and commands ---- */

/**
 * mdisk_op_free - an operation is over
 * @disk: the disk
 * @op: no longer on any list
 */
void mdisk_op_free(struct mdisk *disk, struct mdisk_op *op)
{
	lockdep_assert_held(&disk->lock);

	op->owner->refs--;
	kmem_cache_free(mdisk_op_slab, op);
}

/**
 * mdisk_cmd_done - the disk answers
 * @disk: the disk
 * @cmd: the command
 * @now_ns: model time
 */
void mdisk_cmd_done(struct mdisk *disk, struct mdisk_cmd *cmd, u64 now_ns)
{
	struct request *rq = blk_mq_rq_from_pdu(cmd);

	cmd->finish_ns = now_ns;
	if (cmd->ops_total) {
		if (disk->model->charge_ns)
			mdisk_charge_time(disk, cmd->owner,
					  disk->model->charge_ns(disk, cmd));
		mdisk_charge_io(disk, cmd->owner, rq);
	}
	mdisk_note_answer(disk, cmd);
	cmd->owner->refs--;
	list_add_tail(&cmd->node, &disk->done);
}

/**
 * mdisk_op_done - the medium, or the cache, has done an operation for its command
 * @disk: the disk
 * @op: the operation; its command is forgotten
 * @now_ns: model time
 *
 * The command is done with its last operation.
 */
void mdisk_op_done(struct mdisk *disk, struct mdisk_op *op, u64 now_ns)
{
	struct mdisk_cmd *cmd = op->cmd;

	op->cmd = NULL;
	if (!--cmd->ops_left)
		mdisk_cmd_done(disk, cmd, now_ns);
}

static void mdisk_cmd_free_ops(struct mdisk_cmd *cmd)
{
	struct mdisk_op *op, *next;

	list_for_each_entry_safe(op, next, &cmd->ops, node)
		kmem_cache_free(mdisk_op_slab, op);
	INIT_LIST_HEAD(&cmd->ops);
}

static struct mdisk_op *mdisk_op_new(struct mdisk_cmd *cmd, u64 start, u64 end)
{
	const gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN;
	struct mdisk_op *op = kmem_cache_zalloc(mdisk_op_slab, gfp);

	if (!op)
		return NULL;
	op->cmd = cmd;
	op->sector = start >> SECTOR_SHIFT;
	op->bytes = end - start;
	op->write = op_is_write(req_op(blk_mq_rq_from_pdu(cmd)));
	list_add_tail(&op->node, &cmd->ops);
	return op;
}

/* Cuts a read or write into operations at multiples of the model's op_bytes. */
static int mdisk_cmd_init(struct mdisk *disk, struct mdisk_cmd *cmd,
			  struct request *rq)
{
	u32 op_bytes = disk->model->op_bytes;
	u64 start = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	u64 end = start + blk_rq_bytes(rq);

	INIT_LIST_HEAD(&cmd->ops);
	cmd->ops_total = 0;
	cmd->cached = false;
	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return 0;

	while (start < end) {
		u64 cut = end;

		if (op_bytes)
			cut = min(end, round_down(start, op_bytes) + op_bytes);
		if (!mdisk_op_new(cmd, start, cut)) {
			mdisk_cmd_free_ops(cmd);
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
 * @disk: the disk
 * @cmd: the command
 * @bytes: data that cross the interface
 * @now_ns: model time
 */
void mdisk_link_add(struct mdisk *disk, struct mdisk_cmd *cmd, u64 bytes,
		    u64 now_ns)
{
	u64 start_ns = max(disk->link_free_ns,
			   now_ns + disk->num.overhead_us * NSEC_PER_USEC);

	disk->link_free_ns =
		start_ns + mdisk_transfer_ns(bytes, disk->num.bus_kbps);
	cmd->finish_ns = disk->link_free_ns;
	list_add_tail(&cmd->node, &disk->link);
}

static u64 mdisk_link_next_ns(struct mdisk *disk)
{
	struct mdisk_cmd *cmd =
		list_first_entry_or_null(&disk->link, struct mdisk_cmd, node);

	return cmd ? cmd->finish_ns : MDISK_NEVER_NS;
}

static void mdisk_link_step(struct mdisk *disk, u64 now_ns)
{
	struct mdisk_cmd *cmd =
		list_first_entry(&disk->link, struct mdisk_cmd, node);
	struct mdisk_op *op, *next;

	list_del(&cmd->node);
	if (req_op(blk_mq_rq_from_pdu(cmd)) == REQ_OP_FLUSH) {
		mdisk_cache_flush(disk, cmd, now_ns);
		return;
	}
	if (!cmd->ops_total) {
		mdisk_cmd_done(disk, cmd, now_ns);
		return;
	}
	list_for_each_entry_safe(op, next, &cmd->ops, node) {
		list_del(&op->node);
		mdisk_cache_stored(disk, op, now_ns);
	}
}

/* ---- the clock ---- */

/**
 * mdisk_submit - a command starts its way through the disk
 * @disk: the disk
 * @cmd: the command; a write that waited for room in the cache comes here again
 * @now_ns: model time
 */
void mdisk_submit(struct mdisk *disk, struct mdisk_cmd *cmd, u64 now_ns)
{
	struct request *rq = blk_mq_rq_from_pdu(cmd);
	struct mdisk_op *op;

	if (!cmd->ops_total) {
		mdisk_link_add(disk, cmd, 0, now_ns);
		return;
	}
	if (op_is_write(req_op(rq))) {
		switch (mdisk_cache_offer(disk, cmd, rq->cmd_flags & REQ_FUA)) {
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
	disk->model->submit(disk, cmd, now_ns);
}

/**
 * mdisk_run - let all events up to now happen and set the timer for the next
 * @disk: the disk, locked
 * @done: commands to give to mdisk_deliver() after unlocking
 *
 * Return: now, in nanoseconds
 */
u64 mdisk_run(struct mdisk *disk, struct list_head *done)
{
	u64 now_ns = ktime_get_ns();
	u64 link_ns, model_ns, next_ns;

	lockdep_assert_held(&disk->lock);
	for (;;) {
		link_ns = mdisk_link_next_ns(disk);
		model_ns = disk->model->next_ns(disk);
		next_ns = min(link_ns, model_ns);
		if (next_ns > now_ns)
			break;
		if (link_ns <= model_ns)
			mdisk_link_step(disk, link_ns);
		else
			disk->model->step(disk, model_ns);
	}
	if (disk->model->wake_ns)
		next_ns = min(link_ns, disk->model->wake_ns(disk));
	if (next_ns < disk->armed_ns) {
		disk->armed_ns = next_ns;
		hrtimer_start(&disk->timer, ns_to_ktime(next_ns),
			      HRTIMER_MODE_ABS);
	}

	if (!list_empty(&disk->done)) {
		struct mdisk_cmd *cmd;

		list_for_each_entry(cmd, &disk->done, node) {
			u64 late_ns = now_ns - cmd->finish_ns;

			disk->truth.late_ns += late_ns;
			disk->truth.late_max_ns =
				max(disk->truth.late_max_ns, late_ns);
		}
		list_splice_tail_init(&disk->done, done);
	}
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
 * But for those that are lost on the way (lose): blk-mq's timeout finds them.
 */
void mdisk_deliver(struct list_head *done)
{
	struct mdisk_cmd *cmd, *next;

	list_for_each_entry_safe(cmd, next, done, node) {
		struct request *rq = blk_mq_rq_from_pdu(cmd);
		struct mdisk *disk = rq->q->queuedata;

		if (mdisk_is_nth(READ_ONCE(disk->num.lose), &disk->lost))
			WRITE_ONCE(cmd->lost, true);
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
	struct mdisk_cmd *cmd = blk_mq_rq_to_pdu(rq);

	if (!(rq->rq_flags & RQF_DONTPREP)) {
		rq->rq_flags |= RQF_DONTPREP;
		cmd->first_try = jiffies;
	}
	if (time_before(jiffies, cmd->first_try + MDISK_MEMORY_PATIENCE))
		return BLK_STS_RESOURCE;
	pr_warn_ratelimited("%s: no memory for the data: I/O error\n",
			    config_item_name(&disk->item));
	return BLK_STS_IOERR;
}

static blk_status_t mdisk_queue_rq(struct blk_mq_hw_ctx *hctx,
				   const struct blk_mq_queue_data *bd)
{
	struct mdisk *disk = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	struct mdisk_cmd *cmd = blk_mq_rq_to_pdu(rq);
	unsigned long flags;
	LIST_HEAD(done);

	if (mdisk_cmd_init(disk, cmd, rq))
		return mdisk_no_memory(disk, rq);
	if (mdisk_store_request(disk, rq)) {
		mdisk_cmd_free_ops(cmd);
		return mdisk_no_memory(disk, rq);
	}
	cmd->status = BLK_STS_OK;
	WRITE_ONCE(cmd->lost, false);
	blk_mq_start_request(rq);

	spin_lock_irqsave(&disk->lock, flags);
	cmd->arrival_ns = mdisk_run(disk, &done);
	mdisk_note_arrival(disk, cmd->arrival_ns);
	cmd->owner = mdisk_owner_get(disk, rq);
	mdisk_submit(disk, cmd, cmd->arrival_ns);
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
	u32 nth = READ_ONCE(disk->num.give_back);
	u32 n;

	if (!nth)
		return false;
	n = (u32)atomic_inc_return(&disk->given_back);
	if (n % nth)
		return false;
	if (n / nth % 2) {
		struct mdisk_cmd *cmd = blk_mq_rq_to_pdu(rq);

		rq->rq_flags |= RQF_DONTPREP;
		cmd->first_try = jiffies;
	}
	blk_mq_requeue_request(rq, true);
	return true;
}

static void mdisk_complete_rq(struct request *rq)
{
	struct mdisk *disk = rq->q->queuedata;
	struct mdisk_cmd *cmd = blk_mq_rq_to_pdu(rq);

	if (mdisk_is_nth(READ_ONCE(disk->num.fail), &disk->failed))
		cmd->status = BLK_STS_IOERR;
	if (cmd->status || !mdisk_gives_back(disk, rq))
		blk_mq_end_request(rq, cmd->status);
}

/* A slow disk only takes its time; what is lost has failed. */
static enum blk_eh_timer_return mdisk_timeout_rq(struct request *rq)
{
	struct mdisk_cmd *cmd = blk_mq_rq_to_pdu(rq);

	if (!READ_ONCE(cmd->lost))
		return BLK_EH_RESET_TIMER;
	cmd->status = BLK_STS_TIMEOUT;
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
	if (disk->num.cache_kb)
		features |= BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	return features;
}

/**
 * mdisk_announce_cache - tell the block layer whether there is a write cache
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
		.max_discard_segments = 1,
		.discard_granularity = PAGE_SIZE,
		.max_write_zeroes_sectors = UINT_MAX >> SECTOR_SHIFT,
		.features = mdisk_features(disk),
	};
	struct gendisk *gendisk;
	char path[DISK_NAME_LEN + 8];
	dev_t taken;
	int ret;

	/* add_disk() would refuse too, with a stack trace */
	snprintf(path, sizeof(path), "/dev/%s", name);
	if (!lookup_bdev(path, &taken))
		return -EEXIST;

	disk->tag_set = (struct blk_mq_tag_set){
		.ops = &mdisk_mq_ops,
		.nr_hw_queues = disk->num.hw_queues,
		.queue_depth = disk->num.queue_depth,
		.numa_node = NUMA_NO_NODE,
		.cmd_size = sizeof(struct mdisk_cmd),
		.flags = MDISK_TAG_SET_FLAGS,
	};
	ret = blk_mq_alloc_tag_set(&disk->tag_set);
	if (ret)
		return ret;

	ret = disk->model->init(disk);
	if (ret)
		goto err_tag_set;
	mdisk_cache_init(&disk->cache);
	disk->link_free_ns = 0;
	disk->armed_ns = MDISK_NEVER_NS;

	gendisk = blk_mq_alloc_disk(&disk->tag_set, &lim, disk);
	if (IS_ERR(gendisk)) {
		ret = PTR_ERR(gendisk);
		goto err_model;
	}
	strscpy(gendisk->disk_name, name, DISK_NAME_LEN);
	gendisk->fops = &mdisk_fops;
	gendisk->private_data = disk;
	set_capacity(gendisk,
		     (sector_t)disk->num.size_mb << (20 - SECTOR_SHIFT));
	ret = add_disk(gendisk);
	if (ret)
		goto err_disk;

	disk->gendisk = gendisk;
	return 0;

err_disk:
	put_disk(gendisk);
err_model:
	disk->model->exit(disk);
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
	mdisk_cache_drop(disk);
	disk->model->exit(disk);
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
	INIT_LIST_HEAD(&disk->link);
	INIT_LIST_HEAD(&disk->done);
	hrtimer_setup(&disk->timer, mdisk_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	mdisk_cache_init(&disk->cache);
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

/* configfs holds the module while a disk exists, so there is none here. */
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
MODULE_DESCRIPTION("Block devices that behave like disks and know the truth");
MODULE_LICENSE("GPL");
