/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * modeldisk - block devices of model disks that report exact device time
 *
 * A model disk keeps its data in memory and answers each request when a disk of
 * the modelled kind would have answered it. The model computes the work of the
 * disk, so it reports for every cgroup the exact device time of its requests.
 * Sutro's fairness tests compare with these times.
 *
 *	modeldisk-configfs.c	a directory per disk, a file per number
 *	modeldisk-main.c	blk-mq: a request becomes a command, model time becomes real time
 *	modeldisk-store.c	the data, a sparse array of pages
 *	modeldisk-truth.c	device time, bytes and requests by cgroup
 *	modeldisk-model.h	the model itself: plain C that needs no kernel
 */
#ifndef MODELDISK_H
#define MODELDISK_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/configfs.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "modeldisk-model.h"

/**
 * struct mdisk_cgroup - a cgroup that used the disk
 * @owner: its use
 * @hash: in &mdisk_cgroups.by_id
 * @list: in &mdisk_cgroups.list
 * @id: cgroup id of the cgroup that has the path now; the cgroup itself is not referenced
 * @path: from the root of the cgroup hierarchy, of the first request
 */
struct mdisk_cgroup {
	struct mdisk_owner owner;
	struct hlist_node hash;
	struct list_head list;
	u64 id;
	char path[];
};

/**
 * struct mdisk_cgroups - all cgroups that used one disk, under the lock of the disk
 * @by_id: by cgroup id
 * @list: in order of appearance
 * @nr: their number
 * @others: takes the use of cgroups without an entry
 * @path: scratch space for the path of a new one
 */
struct mdisk_cgroups {
	DECLARE_HASHTABLE(by_id, 7);
	struct list_head list;
	u32 nr;
	struct mdisk_cgroup *others;
	char path[PATH_MAX];
};

/**
 * struct mdisk_pdu - the disk's part of a request
 * @cmd: the request as the drive sees it
 * @first_try: jiffies of the first try without memory
 * @status: the status for blk-mq
 * @lost: only blk-mq's timeout ends it
 */
struct mdisk_pdu {
	struct mdisk_cmd cmd;
	unsigned long first_try;
	blk_status_t status;
	bool lost;
};

/**
 * struct mdisk - a model disk
 * @item: its configfs directory
 * @config: held while attributes change; orders online and offline
 * @kind: hdd, ssd, nvme
 * @lock: guards @drive, @armed_ns and @cgroups; interrupts off
 * @drive: the model
 * @armed_ns: expiry of @timer
 * @cgroups: the owners of requests
 * @timer: fires at the next event
 * @pages: the data
 * @pages_made: pages requested so far; free memory is checked now and then
 * @memory_low: no more pages for now
 * @given_back: requests counted for give_back
 * @failed: the same for fail
 * @lost: the same for lose
 * @tag_set: blk-mq
 * @gendisk: NULL when offline
 * @debugfs: its directory
 */
struct mdisk {
	struct config_item item;
	struct mutex config; /* attributes, online, offline */
	enum mdisk_kind kind;

	spinlock_t lock; /* drive, armed_ns, cgroups */
	struct mdisk_drive drive;
	u64 armed_ns;
	struct mdisk_cgroups cgroups;

	struct hrtimer timer;
	struct xarray pages;
	atomic_t pages_made;
	bool memory_low;
	atomic_t given_back;
	atomic_t failed;
	atomic_t lost;
	struct blk_mq_tag_set tag_set;
	struct gendisk *gendisk;
	struct dentry *debugfs;
};

/* modeldisk-main.c */
int mdisk_online(struct mdisk *disk);
void mdisk_offline(struct mdisk *disk);
int mdisk_announce_cache(struct mdisk *disk);
int mdisk_prepare(struct mdisk *disk);
u64 mdisk_run(struct mdisk *disk, struct list_head *done);
void mdisk_deliver(struct list_head *done);

/* modeldisk-configfs.c */
int mdisk_configfs_init(void);
void mdisk_configfs_exit(void);

/* modeldisk-store.c */
void mdisk_store_init(struct mdisk *disk);
void mdisk_store_free(struct mdisk *disk);
int mdisk_store_request(struct mdisk *disk, struct request *rq);

/* modeldisk-truth.c */
int mdisk_truth_init(struct mdisk *disk);
void mdisk_truth_exit(struct mdisk *disk);
struct mdisk_owner *mdisk_owner_get(struct mdisk *disk, struct request *rq);
void mdisk_debugfs_add(struct mdisk *disk);
void mdisk_debugfs_remove(struct mdisk *disk);
void mdisk_debugfs_init(void);
void mdisk_debugfs_exit(void);

#endif /* MODELDISK_H */
