/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TOPOLOGY_H
#define SUTRO_TOPOLOGY_H

#include "host/roots.h"
#include "host/util.h"

enum device_kind {
	DEVICE_UNKNOWN,
	DEVICE_DISK,
	DEVICE_PARTITION,
	DEVICE_LINEAR,
	DEVICE_STRIPED,
	DEVICE_CRYPT,
	DEVICE_MIRROR,
	DEVICE_RAID0,
	DEVICE_RAID1,
	DEVICE_RAID10,
	DEVICE_RAID4,
	DEVICE_RAID5,
	DEVICE_RAID6,
	DEVICE_THIN,
	DEVICE_THIN_POOL,
	DEVICE_CACHE,
	DEVICE_SNAPSHOT,
	DEVICE_MULTIPATH,
	DEVICE_LOOP,
	DEVICE_BCACHE,
};

const char *device_kind_name(enum device_kind kind);

/**
 * struct device - one block device
 * @name: kernel name, "dm-0"
 * @node: "/dev/dm-0"
 * @label: its name in device-mapper (dm/name), NULL for others
 * @devno: its number; 0: a hidden disk, for which cgroup files can have no line
 * @slaves: the devices it stands on directly; a partition stands on its disk, a
 *	loop device on the device of its backing file
 * @leaves: all leaves under it; a leaf has itself
 * @aliases: other nodes, /dev/mapper/NAME, /dev/VG/LV
 * @leaf: it has a request queue and no slaves
 * @scheduler: of a leaf, the one in use; NULL: it could not be read yet, as of a disk that hangs
 * @rotational: of a leaf, from its queue
 * @diskseq: unlike the name, never used twice between two boots; 0: unknown
 * @queue: inode of its folder queue/ in sysfs: the same queue serves one medium after another in
 *	a loop device or a card reader, and only @diskseq changes; 0: it has none
 * @is_switching: its scheduler is being switched, and a read of its queue would wait for that
 * @has_costs: of a leaf, saved costs of requests were restored since it got its scheduler
 * @is_hung: it was reported that a call for it has not returned for 10 s
 * @walk: the last walk that met it, see device_enter()
 */
struct device {
	char *name;
	char *node;
	char *label;
	dev_t devno;
	enum device_kind kind;
	struct device **slaves;
	size_t n_slaves;
	struct device **leaves;
	size_t n_leaves;
	char **aliases;
	bool leaf;
	char *scheduler;
	bool rotational;
	uint64_t size_bytes;
	uint64_t diskseq;
	uint64_t queue;
	bool is_switching;
	bool has_costs;
	bool is_hung;
	uint64_t walk;
};

struct device *device_free(struct device *d);
DEFINE_CLEANUP(struct device *, device_free);

/**
 * struct topology - a snapshot of the block devices of the machine, a DAG
 *
 * It is not changed, except for @scheduler, @rotational and the state of leaves: when devices come and go a new
 * one is made, and all pointers into the old one are resolved again.
 */
struct topology {
	struct device **devices;
	size_t n_devices;
};

struct topology *topology_free(struct topology *t);
DEFINE_CLEANUP(struct topology *, topology_free);

struct device *topology_by_name(const struct topology *t, const char *name);
struct device *topology_by_devno(const struct topology *t, dev_t devno);

/** device_id() - distinguishes it from all other devices, also without a number */
uint64_t device_id(const struct device *d);

/** device_is_same() - is it the disk, or the queue, that had these numbers? */
bool device_is_same(const struct device *d, uint64_t diskseq, uint64_t queue);

/** device_stands_on() - is @leaf one of the leaves under @d? */
bool device_stands_on(const struct device *d, const struct device *leaf);

/**
 * device_hidden_leaf() - a leaf under @d without a number, NULL: there is none
 *
 * No cgroup file can have a line for it: it has no weights, reserves and latency targets of its own.
 */
const struct device *device_hidden_leaf(const struct device *d);

/** device_label() - a node of it that people use, "/dev/vg/db" */
const char *device_label(const struct device *d);

/** device_scheduler() - the scheduler of a leaf for messages, "unknown" if it could not be read */
const char *device_scheduler(const struct device *leaf);

/** device_is_above() - does @top stand on @d, directly or not, or is it @d? */
bool device_is_above(const struct device *top, const struct device *d);

/** device_walk() - number of a new walk over devices */
uint64_t device_walk(void);

/**
 * device_enter() - does @walk meet @d for the first time?
 *
 * In a stack whose layers share devices, the number of ways down doubles with each layer. A walk
 * that goes on from each device once is as long as there are edges.
 */
bool device_enter(const struct device *d, uint64_t walk);

/** device_is_part_of() - is @d the leaf itself or a partition of it? */
bool device_is_part_of(const struct device *d, const struct device *leaf);

/**
 * device_is_lowest() - is nothing below it that weights could be written to?
 *
 * Below a request-based multipath device is the same queue's dispatch list. A loop
 * device on a file is a leaf and stands on leaves.
 */
bool device_is_lowest(const struct device *d);

#endif
