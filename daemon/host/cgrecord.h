/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CGRECORD_H
#define SUTRO_CGRECORD_H

#include "host/cgformat.h"
#include "host/cgroup.h"
#include "host/record.h"
#include "host/topology.h"

/**
 * struct cgrecords - former values of lines that the daemon replaced, in /run/sutro
 * @disks: diskseq and queue of the devices to which the numbers in @files belong
 */
struct cgrecords {
	struct record files[CGFILES];
	struct record disks;
};

/** cgrecords_open() - read the records of a former daemon */
int cgrecords_open(struct cgrecords *records, const struct roots *roots);
void cgrecords_done(struct cgrecords *records);

/** cgrecord_find() - the records of all lines of @c in @file, NULL: there are none */
const struct record_subject *cgrecord_find(const struct cgrecords *records,
					   const struct cgroup *c,
					   enum cgfile file);

/** cgrecord_former() - did a line of the daemon replace another value, @ret? */
bool cgrecord_former(const struct cgrecords *records, const struct cgroup *c,
		     enum cgfile file, dev_t devno, struct cgvalue *ret);

/** cgrecord_of_others() - the value that the daemon replaced, with later changes by others */
struct cgvalue cgrecord_of_others(const struct cgrecords *records,
				  const struct cgroup *c,
				  const struct cglines *present, dev_t devno);

/**
 * cgrecord_save() - record what is restored when the line for @devno is withdrawn
 * @value: is about to be written
 * @ret: the record before, NULL: there was none
 */
int cgrecord_save(struct cgrecords *records, const struct cgroup *c,
		  const struct cglines *before, dev_t devno,
		  const struct cgvalue *value, char **ret);

/**
 * cgrecord_take_back() - the line was not written: the record is what it was before
 * @was: from cgrecord_save()
 */
void cgrecord_take_back(struct cgrecords *records, const struct cgroup *c,
			enum cgfile file, dev_t devno, const char *was);

/** cgrecord_confirm() - the line has @value: if that was to be written, the one before is not the daemon's */
void cgrecord_confirm(struct cgrecords *records, const struct cgroup *c,
		      enum cgfile file, dev_t devno,
		      const struct cgvalue *value);

/** cgrecord_drop() - drop the record of a line that no longer belongs to the daemon */
void cgrecord_drop(struct cgrecords *records, const struct cgroup *c,
		   enum cgfile file, dev_t devno);

/** cgrecords_prune() - drop records of cgroups that are gone from @tree */
void cgrecords_prune(struct cgrecords *records, const struct cgroup_tree *tree);

/**
 * cgrecords_device_gone() - drop the records of a removed device
 * @is_replaced: another one has its number: those of lines that the daemon has written stay
 */
void cgrecords_device_gone(struct cgrecords *records, dev_t devno,
			   bool is_replaced);

/**
 * cgrecords_follow_devices() - drop records of devices whose number another device has now
 *
 * That may have happened while no daemon ran. Devices that are not in @t keep their records: a loop
 * device without a file keeps its lines.
 */
void cgrecords_follow_devices(struct cgrecords *records,
			      const struct topology *t);

/** cgrecords_cgroup_gone() - drop the records of @c, which is removed */
void cgrecords_cgroup_gone(struct cgrecords *records, const struct cgroup *c);

#endif
