// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: device time, bytes and requests by cgroup
 *
 * The owner of a request is the cgroup of its bio (bio_blkcg_css()), whoever
 * submits it: a request that a kworker sends for dm-crypt is charged to the
 * service that wrote. Requests without an owner (flushes of the block layer)
 * belong to "/". README.rst explains the files truth, model and reset.
 *
 * Owners are kept by cgroup id; the cgroup is not referenced and may go. Beyond
 * MDISK_MAX_OWNERS all further ones share the line "/(others)".
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

static struct mdisk_cgroup *mdisk_cgroup_new(struct mdisk *disk, u64 id,
					     const char *path, gfp_t gfp)
{
	size_t len = strlen(path) + 1;
	struct mdisk_cgroup *cg = kzalloc(struct_size(cg, path, len), gfp);

	if (!cg)
		return NULL;
	memcpy(cg->path, path, len);
	cg->id = id;
	hash_add(disk->cgroups.by_id, &cg->hash, id);
	list_add_tail(&cg->list, &disk->cgroups.list);
	disk->cgroups.nr++;
	return cg;
}

static void mdisk_cgroup_free(struct mdisk *disk, struct mdisk_cgroup *cg)
{
	hash_del(&cg->hash);
	list_del(&cg->list);
	disk->cgroups.nr--;
	kfree(cg);
}

static struct mdisk_cgroup *mdisk_cgroup_by_id(struct mdisk *disk, u64 id)
{
	struct mdisk_cgroups *cgroups = &disk->cgroups;
	u32 bucket = hash_min(id, HASH_BITS(cgroups->by_id));
	struct mdisk_cgroup *cg;

	hlist_for_each_entry(cg, &cgroups->by_id[bucket], hash) {
		if (cg->id == id)
			return cg;
	}
	return NULL;
}

static struct mdisk_cgroup *mdisk_cgroup_by_path(struct mdisk *disk,
						 const char *path)
{
	struct mdisk_cgroup *cg;

	list_for_each_entry(cg, &disk->cgroups.list, list) {
		if (cg != disk->cgroups.others && !strcmp(cg->path, path))
			return cg;
	}
	return NULL;
}

/**
 * mdisk_owner_get - the owner of a request
 * @disk: the disk, locked
 * @rq: the request
 *
 * Return: the owner; valid as long as the lock is held or it has references
 */
struct mdisk_owner *mdisk_owner_get(struct mdisk *disk, struct request *rq)
{
	struct mdisk_cgroups *cgroups = &disk->cgroups;
	struct cgroup_subsys_state *css;
	struct cgroup *cgroup;
	struct mdisk_cgroup *cg;
	u64 id;

	rcu_read_lock();
	css = rq->bio ? bio_blkcg_css(rq->bio) : NULL;
	cgroup = css ? css->cgroup : &cgrp_dfl_root.cgrp;
	id = cgroup_id(cgroup);
	cg = mdisk_cgroup_by_id(disk, id);
	if (!cg) {
		if (cgroup_path(cgroup, cgroups->path, PATH_MAX) < 0)
			strscpy(cgroups->path, "/(unknown)", PATH_MAX);
		cg = mdisk_cgroup_by_path(disk, cgroups->path);
		if (cg) {
			/* the path has a new cgroup */
			hash_del(&cg->hash);
			cg->id = id;
			hash_add(cgroups->by_id, &cg->hash, id);
		} else if (cgroups->nr <= MDISK_MAX_OWNERS) {
			cg = mdisk_cgroup_new(disk, id, cgroups->path,
					      GFP_NOWAIT | __GFP_NOWARN);
		}
	}
	rcu_read_unlock();

	return &(cg ?: cgroups->others)->owner;
}

/**
 * mdisk_truth_init - no cgroup has used the disk
 * @disk: the disk
 *
 * Return: 0 or -ENOMEM
 */
int mdisk_truth_init(struct mdisk *disk)
{
	hash_init(disk->cgroups.by_id);
	INIT_LIST_HEAD(&disk->cgroups.list);
	disk->cgroups.others =
		mdisk_cgroup_new(disk, MDISK_NO_ID, "/(others)", GFP_KERNEL);
	return disk->cgroups.others ? 0 : -ENOMEM;
}

/**
 * mdisk_truth_exit - free the cgroups
 * @disk: a disk that is offline
 */
void mdisk_truth_exit(struct mdisk *disk)
{
	struct mdisk_cgroup *cg, *next;

	list_for_each_entry_safe(cg, next, &disk->cgroups.list, list)
		mdisk_cgroup_free(disk, cg);
}

/* ---- debugfs ---- */

/* Lock the disk, with all events up to now accounted for. */
static void mdisk_lock_now(struct mdisk *disk, struct list_head *done,
			   unsigned long *flags) __acquires(&disk->lock)
{
	spin_lock_irqsave(&disk->lock, *flags);
	if (disk->gendisk)
		mdisk_run(disk, done);
}

/* Unlock the disk, and deliver the requests that have finished. */
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
		   c->time_ns, c->bytes[MDISK_READ], c->bytes[MDISK_WRITE]);
	seq_printf(m, " rios=%llu wios=%llu", c->ios[MDISK_READ],
		   c->ios[MDISK_WRITE]);
	seq_printf(m, " meta_rbytes=%llu meta_wbytes=%llu",
		   c->meta_bytes[MDISK_READ], c->meta_bytes[MDISK_WRITE]);
}

/* One consistent moment: copied under the lock, printed after. */
static int mdisk_truth_show(struct seq_file *m, void *v)
{
	struct mdisk *disk = m->private;
	struct mdisk_counts *counts, total;
	struct mdisk_cgroup *cg;
	unsigned long flags;
	LIST_HEAD(done);
	u32 i = 0, nr;
	u64 busy_ns;

	counts = kvcalloc(MDISK_MAX_OWNERS + 2, sizeof(*counts), GFP_KERNEL);
	if (!counts)
		return -ENOMEM;

	mutex_lock(&disk->config);
	mdisk_lock_now(disk, &done, &flags);
	list_for_each_entry(cg, &disk->cgroups.list, list)
		counts[i++] = cg->owner.counts;
	nr = i;
	total = disk->drive.truth.total;
	busy_ns = disk->drive.truth.busy_ns;
	mdisk_unlock_now(disk, &done, &flags);

	mdisk_counts_show(m, "total", &total);
	seq_printf(m, " busy_ns=%llu\n", busy_ns);
	/* owners are only appended, and only a reset, which takes the mutex, removes them */
	i = 0;
	list_for_each_entry(cg, &disk->cgroups.list, list) {
		if (i == nr)
			break;
		if (cg != disk->cgroups.others || counts[i].time_ns) {
			mdisk_counts_show(m, cg->path, &counts[i]);
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
	struct mdisk_truth *truth = &disk->drive.truth;
	unsigned long flags;
	LIST_HEAD(done);

	mutex_lock(&disk->config);
	mdisk_lock_now(disk, &done, &flags);
	seq_printf(m, "requests=%llu latency_ns=%llu cache_kb=%llu",
		   truth->requests, truth->latency_ns,
		   disk->drive.cache.used_bytes >> 10);
	seq_printf(m,
		   " written_pages=%llu moved_pages=%llu erased_blocks=%llu\n",
		   truth->written_pages, truth->moved_pages,
		   truth->erased_blocks);
	mdisk_unlock_now(disk, &done, &flags);
	mutex_unlock(&disk->config);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mdisk_model);

static int mdisk_reset_set(void *data, u64 value)
{
	struct mdisk *disk = data;
	struct mdisk_cgroup *cg, *next;
	unsigned long flags;
	LIST_HEAD(done);

	if (value != 1)
		return -EINVAL;
	mutex_lock(&disk->config);
	mdisk_lock_now(disk, &done, &flags);
	list_for_each_entry_safe(cg, next, &disk->cgroups.list, list) {
		if (cg != disk->cgroups.others && !cg->owner.refs)
			mdisk_cgroup_free(disk, cg);
		else
			memset(&cg->owner.counts, 0, sizeof(cg->owner.counts));
	}
	disk->drive.truth = (struct mdisk_truth){};
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
 * mdisk_debugfs_remove - remove it, after its readers are done
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
