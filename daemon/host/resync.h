/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_RESYNC_H
#define SUTRO_RESYNC_H

#include "host/cgroup.h"
#include "host/topology.h"

/* The unit whose cgroup has the threads of resyncs. */
#define RESYNC_UNIT "resync.slice"

/**
 * struct resync - a check, resync, recovery or reshape of an array that runs
 * @name: of the array in the kernel, "md0"; "mdX" for each RAID volume of LVM
 * @devno: of the array, 0 for a volume of LVM
 * @action: "resync", "recover", "check", "repair", "reshape"; for a volume of LVM
 *	"resync" or "reshape"
 * @kind: level of the array
 * @thread: the kernel thread that runs it, 0: not found
 * @is_moved: the thread is in the cgroup of RESYNC_UNIT
 * @is_refused: the thread could not be moved, and the failure was logged
 */
struct resync {
	char *name;
	dev_t devno;
	char *action;
	enum device_kind kind;
	uint64_t thread;
	bool is_moved;
	bool is_refused;
};

/** struct resyncs - the resyncs that are running */
struct resyncs {
	struct resync *items;
	size_t n;
};

void resyncs_done(struct resyncs *l);

/**
 * resyncs_find() - replace @l by the resyncs that are running now
 *
 * Return: 0; -ENOMEM, and @l is empty.
 */
int resyncs_find(struct resyncs *l, const struct roots *roots,
		 const struct topology *t, const struct cgroup_tree *tree);

/** resyncs_sharing() - a resync of an array that has a leaf in common with @d, or NULL */
const struct resync *resyncs_sharing(const struct resyncs *l,
				     const struct topology *t,
				     const struct device *d);

/**
 * resync_note() - which of its requests the weight of RESYNC_UNIT is not about
 *
 * Return: a sentence without its end; "" if the weight is about all of them.
 */
const char *resync_note(const struct resync *r);

#endif
