// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: who used how much
 *
 * The owner of a request is the cgroup of its bio (bio_blkcg_css()), whoever
 * submits it: a request that a kworker sends for dm-crypt is charged to the
 * service that wrote. Requests without an owner (flushes of the block layer)
 * belong to "/".
 *
 *	# cat /sys/kernel/debug/modeldisk/slow/truth
 *	total time_ns=3000000 rbytes=4096 wbytes=8192 rios=1 wios=2
 *	meta_rbytes=0 meta_wbytes=4096 busy_ns=3000000		(one line)
 *	/ time_ns=0 rbytes=0 wbytes=0 ...
 *	/system.slice/a.service time_ns=1000000 rbytes=4096 wbytes=0 ...
 *	/system.slice/b.service time_ns=2000000 rbytes=0 wbytes=8192 ...
 *	# echo 1 > /sys/kernel/debug/modeldisk/slow/reset
 *
 * Owners are kept by cgroup id; the cgroup is not referenced and may go. One
 * that comes later with the same path continues the line. Beyond
 * MDISK_MAX_OWNERS all further ones share the line "/(others)"; reset forgets
 * the owners that have nothing in flight.
 *
 *	# cat /sys/kernel/debug/modeldisk/slow/model
 *	requests=3 latency_ns=3100000 late_ns=450000 late_max_ns=200000
 *	idle_max_ns=80000 cache_kb=0		(one line)
 *
 * is for judging a measurement: latency_ns is the sum of the model's answer
 * times, late_ns what the guest's timers added to them, idle_max_ns the longest
 * time for which the guest left the disk without a request.
 */
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "modeldisk.h"

/* As many services as a large machine has; 4096 * ~200 bytes. */
#define MDISK_MAX_OWNERS 4096
/* No cgroup has this id: kernfs ids start at 1. */
#define MDISK_NO_ID 0

static struct dentry *mdisk_debugfs_root;

/* ---- owners ---- */

static struct mdisk_owner *mdisk_owner_new(struct mdisk *disk, u64 id,
					   const char *path, gfp_t gfp)
{
	size_t len = strlen(path) + 1;
	struct mdisk_owner *owner = kzalloc(struct_size(owner, path, len), gfp);

	if (!owner)
		return NULL;
	memcpy(owner->path, path, len);
	owner->id = id;
	hash_add(disk->truth.by_id, &owner->hash, id);
	list_add_tail(&owner->list, &disk->truth.owners);
	disk->truth.nr_owners++;
	return owner;
}

static void mdisk_owner_free(struct mdisk *disk, struct mdisk_owner *owner)
{
	hash_del(&owner->hash);
	list_del(&owner->list);
	disk->truth.nr_owners--;
	kfree(owner);
}

static struct mdisk_owner *mdisk_owner_by_id(struct mdisk *disk, u64 id)
{
	struct mdisk_truth *truth = &disk->truth;
	struct mdisk_owner *owner;
	u32 bucket = hash_min(id, HASH_BITS(truth->by_id));

	hlist_for_each_entry(owner, &truth->by_id[bucket], hash) {
		if (owner->id == id)
			return owner;
	}
	return NULL;
}

static struct mdisk_owner *mdisk_owner_by_path(struct mdisk *disk,
					       const char *path)
{
	struct mdisk_owner *owner;

	list_for_each_entry(owner, &disk->truth.owners, list) {
		if (owner != disk->truth.others && !strcmp(owner->path, path))
			return owner;
	}
	return NULL;
}

/**
 * mdisk_owner_get - the owner of a request
 * @disk: the disk, locked
 * @rq: the request
 *
 * Return: the owner, with a reference
 */
struct mdisk_owner *mdisk_owner_get(struct mdisk *disk, struct request *rq)
{
	struct cgroup_subsys_state *css;
	struct mdisk_owner *owner;
	struct cgroup *cgroup;
	u64 id;

	rcu_read_lock();
	css = rq->bio ? bio_blkcg_css(rq->bio) : NULL;
	cgroup = css ? css->cgroup : &cgrp_dfl_root.cgrp;
	id = cgroup_id(cgroup);
	owner = mdisk_owner_by_id(disk, id);
	if (!owner) {
		if (cgroup_path(cgroup, disk->truth.path, PATH_MAX) < 0)
			strscpy(disk->truth.path, "/(unknown)", PATH_MAX);
		owner = mdisk_owner_by_path(disk, disk->truth.path);
		if (owner) {
			/* the path has a new cgroup */
			hash_del(&owner->hash);
			owner->id = id;
			hash_add(disk->truth.by_id, &owner->hash, id);
		} else if (disk->truth.nr_owners <= MDISK_MAX_OWNERS) {
			owner = mdisk_owner_new(disk, id, disk->truth.path,
						GFP_NOWAIT | __GFP_NOWARN);
		}
	}
	rcu_read_unlock();

	if (!owner)
		owner = disk->truth.others;
	owner->refs++;
	return owner;
}

/* ---- charging ---- */

/**
 * mdisk_charge_time - device time was used
 * @disk: the disk, locked
 * @owner: for whom
 * @time_ns: how much
 */
void mdisk_charge_time(struct mdisk *disk, struct mdisk_owner *owner,
		       u64 time_ns)
{
	owner->counts.time_ns += time_ns;
	disk->truth.total.time_ns += time_ns;
}

/**
 * mdisk_charge_io - a read or write was answered
 * @disk: the disk, locked
 * @owner: whose it was
 * @rq: its request
 */
void mdisk_charge_io(struct mdisk *disk, struct mdisk_owner *owner,
		     struct request *rq)
{
	struct mdisk_counts *both[] = { &owner->counts, &disk->truth.total };
	bool write = op_is_write(req_op(rq));
	u32 bytes = blk_rq_bytes(rq);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(both); i++) {
		both[i]->bytes[write] += bytes;
		both[i]->ios[write]++;
		if (rq->cmd_flags & REQ_META)
			both[i]->meta_bytes[write] += bytes;
	}
}

/**
 * mdisk_note_arrival - a request enters the disk
 * @disk: the disk, locked
 * @now_ns: model time
 */
void mdisk_note_arrival(struct mdisk *disk, u64 now_ns)
{
	struct mdisk_truth *truth = &disk->truth;

	if (!truth->inside++)
		truth->idle_max_ns =
			max(truth->idle_max_ns, now_ns - truth->idle_since_ns);
}

/**
 * mdisk_note_answer - a request leaves the disk
 * @disk: the disk, locked
 * @cmd: its command, with the time of the answer
 */
void mdisk_note_answer(struct mdisk *disk, struct mdisk_cmd *cmd)
{
	struct mdisk_truth *truth = &disk->truth;

	truth->requests++;
	truth->latency_ns += cmd->finish_ns - cmd->arrival_ns;
	if (!--truth->inside)
		truth->idle_since_ns = cmd->finish_ns;
}

/**
 * mdisk_truth_init - empty books
 * @disk: the disk
 *
 * Return: 0 or -ENOMEM
 */
int mdisk_truth_init(struct mdisk *disk)
{
	hash_init(disk->truth.by_id);
	INIT_LIST_HEAD(&disk->truth.owners);
	disk->truth.others =
		mdisk_owner_new(disk, MDISK_NO_ID, "/(others)", GFP_KERNEL);
	return disk->truth.others ? 0 : -ENOMEM;
}

/**
 * mdisk_truth_exit - free the books
 * @disk: a disk that is offline
 */
void mdisk_truth_exit(struct mdisk *disk)
{
	struct mdisk_owner *owner, *next;

	list_for_each_entry_safe(owner, next, &disk->truth.owners, list)
		mdisk_owner_free(disk, owner);
}

/* ---- debugfs ---- */

/* Locks the disk with all events up to now accounted for ... */
static void mdisk_lock_now(struct mdisk *disk, struct list_head *done,
			   unsigned long *flags) __acquires(&disk->lock)
{
	spin_lock_irqsave(&disk->lock, *flags);
	if (disk->gendisk)
		mdisk_run(disk, done);
}

/* ... and delivers what they finished. */
static void mdisk_unlock_now(struct mdisk *disk, struct list_head *done,
			     unsigned long *flags) __releases(&disk->lock)
{
	spin_unlock_irqrestore(&disk->lock, *flags);
	local_bh_disable();
	mdisk_deliver(done);
	local_bh_enable();
}

static void mdisk_counts_show(struct seq_file *m, const char *name,
			      const struct mdisk_counts *c)
{
	seq_printf(m, "%s time_ns=%llu rbytes=%llu wbytes=%llu", name,
		   c->time_ns, c->bytes[READ], c->bytes[WRITE]);
	seq_printf(m, " rios=%llu wios=%llu", c->ios[READ], c->ios[WRITE]);
	seq_printf(m, " meta_rbytes=%llu meta_wbytes=%llu", c->meta_bytes[READ],
		   c->meta_bytes[WRITE]);
}

/* One consistent moment: copied under the lock, printed after. */
static int mdisk_truth_show(struct seq_file *m, void *v)
{
	struct mdisk *disk = m->private;
	struct mdisk_counts *counts, total;
	struct mdisk_owner *owner;
	unsigned long flags;
	LIST_HEAD(done);
	u32 i = 0, nr;
	u64 busy_ns;

	counts = kvcalloc(MDISK_MAX_OWNERS + 2, sizeof(*counts), GFP_KERNEL);
	if (!counts)
		return -ENOMEM;

	mutex_lock(&disk->config);
	mdisk_lock_now(disk, &done, &flags);
	list_for_each_entry(owner, &disk->truth.owners, list)
		counts[i++] = owner->counts;
	nr = i;
	total = disk->truth.total;
	busy_ns = disk->truth.busy_ns;
	mdisk_unlock_now(disk, &done, &flags);

	mdisk_counts_show(m, "total", &total);
	seq_printf(m, " busy_ns=%llu\n", busy_ns);
	/* owners are only appended, and only a reset, which takes the mutex, removes them */
	i = 0;
	list_for_each_entry(owner, &disk->truth.owners, list) {
		if (i == nr)
			break;
		if (owner != disk->truth.others || counts[i].time_ns) {
			mdisk_counts_show(m, owner->path, &counts[i]);
			seq_putc(m, '\n');
		}
		i++;
	}
	mutex_unlock(&disk->config);
	kvfree(counts);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mdisk_truth);

static int mdisk_model_show(struct seq_file *m, void *v)
{
	struct mdisk *disk = m->private;
	struct mdisk_truth *truth = &disk->truth;
	unsigned long flags;
	LIST_HEAD(done);

	mutex_lock(&disk->config);
	mdisk_lock_now(disk, &done, &flags);
	seq_printf(m, "requests=%llu latency_ns=%llu late_ns=%llu",
		   truth->requests, truth->latency_ns, truth->late_ns);
	seq_printf(m, " late_max_ns=%llu idle_max_ns=%llu cache_kb=%llu\n",
		   truth->late_max_ns, truth->idle_max_ns,
		   disk->cache.used_bytes >> 10);
	mdisk_unlock_now(disk, &done, &flags);
	mutex_unlock(&disk->config);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mdisk_model);

static int mdisk_reset_set(void *data, u64 value)
{
	struct mdisk *disk = data;
	struct mdisk_truth *truth = &disk->truth;
	struct mdisk_owner *owner, *next;
	unsigned long flags;
	LIST_HEAD(done);

	if (value != 1)
		return -EINVAL;
	mutex_lock(&disk->config);
	mdisk_lock_now(disk, &done, &flags);
	list_for_each_entry_safe(owner, next, &truth->owners, list) {
		if (owner != truth->others && !owner->refs)
			mdisk_owner_free(disk, owner);
		else
			memset(&owner->counts, 0, sizeof(owner->counts));
	}
	memset(&truth->total, 0, sizeof(truth->total));
	truth->busy_ns = 0;
	truth->requests = 0;
	truth->latency_ns = 0;
	truth->late_ns = 0;
	truth->late_max_ns = 0;
	truth->idle_max_ns = 0;
	truth->idle_since_ns = ktime_get_ns();
	mdisk_unlock_now(disk, &done, &flags);
	mutex_unlock(&disk->config);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(mdisk_reset_fops, NULL, mdisk_reset_set, "%llu\n");

/**
 * mdisk_debugfs_add - make the disk's directory
 * @disk: the disk
 */
void mdisk_debugfs_add(struct mdisk *disk)
{
	disk->debugfs = debugfs_create_dir(config_item_name(&disk->item),
					   mdisk_debugfs_root);
	debugfs_create_file("truth", 0444, disk->debugfs, disk,
			    &mdisk_truth_fops);
	debugfs_create_file("model", 0444, disk->debugfs, disk,
			    &mdisk_model_fops);
	debugfs_create_file("reset", 0200, disk->debugfs, disk,
			    &mdisk_reset_fops);
}

/**
 * mdisk_debugfs_remove - remove it, after those who read
 * @disk: the disk
 */
void mdisk_debugfs_remove(struct mdisk *disk)
{
	debugfs_remove_recursive(disk->debugfs);
}

/**
 * mdisk_debugfs_init - make /sys/kernel/debug/modeldisk
 */
void mdisk_debugfs_init(void)
{
	mdisk_debugfs_root = debugfs_create_dir(KBUILD_MODNAME, NULL);
}

/**
 * mdisk_debugfs_exit - remove it
 */
void mdisk_debugfs_exit(void)
{
	debugfs_remove_recursive(mdisk_debugfs_root);
}
