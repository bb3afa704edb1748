/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CGFILE_H
#define SUTRO_CGFILE_H

#include "host/cgrecord.h"

/**
 * cgfile_read() - read a file; its invalid lines are logged and left out
 *
 * Return: 0 or -errno, which is logged, except -ENOENT: the io controller is off for @c,
 * or no leaf has the scheduler of this file.
 */
int cgfile_read(const struct cgroup *c, enum cgfile file, struct cglines *ret);

/**
 * struct cgchange - a line that a file has to have
 * @devno: of the line, or CGFILE_DEFAULT
 * @value: to be written
 * @reason: for the log, NULL: none
 * @is_routine: the change is logged for debugging only
 * @is_of_user: the value is that of a user, who may change it at any rate: its failures are logged
 *	for debugging only, too
 * @is_setpoint: the value follows from measurements, and may change several times in a second
 * @is_attempt: the caller has another way when the kernel takes no line for @devno: that is
 *	neither logged nor a refusal
 * @written: set by cgfile_write(): the line was written
 * @error: set by cgfile_write(): 0 or -errno
 * @is_of_record: @error is that of the record of the former value; the line was not written
 */
struct cgchange {
	dev_t devno;
	struct cgvalue value;
	const char *reason;
	bool is_routine;
	bool is_of_user;
	bool is_setpoint;
	bool is_attempt;
	bool written;
	int error;
	bool is_of_record;
};

/** cgchange_is_untaken() - the kernel takes no line for the device of @ch in this file */
bool cgchange_is_untaken(const struct cgchange *ch);

/**
 * struct cgfiles - the writer of cgroup files
 * @dry_run: log changes, write nothing
 * @records: values that lines of others had before
 * @changed: called after a line was written and read back
 */
struct cgfiles {
	bool dry_run;
	struct cgrecords records;
	void (*changed)(const struct cgroup *c, const struct cgchange *ch,
			const struct cglines *before,
			const struct cglines *after, void *userdata);
	void *userdata;
};

/** cgfiles_init() - read the records of a former daemon in /run/sutro */
int cgfiles_init(struct cgfiles *files, const struct roots *roots,
		 bool dry_run);
void cgfiles_done(struct cgfiles *files);

/**
 * cgfile_write() - write the lines that differ from @before, and read them back
 * @before: content of the file now
 *
 * Return: 0 or -ENOMEM; another failure is logged and is in @error of its change.
 */
int cgfile_write(struct cgfiles *files, struct cgroup *c,
		 const struct cglines *before, struct cgchange *changes,
		 size_t n);

/**
 * cgfile_withdraw() - restore all lines of the daemon in @file except those for a device of @keep
 *
 * Return: 0 or -ENOMEM; another failure is logged.
 */
int cgfile_withdraw(struct cgfiles *files, struct cgroup *c, enum cgfile file,
		    const struct cgchange *keep, size_t n_keep);

/**
 * cgfile_set() - make @changes all lines of the daemon in @file: write them, withdraw others
 *
 * Return: 0 or -ENOMEM; another failure is logged.
 */
int cgfile_set(struct cgfiles *files, struct cgroup *c, enum cgfile file,
	       struct cgchange *changes, size_t n);

/** cgfiles_restore() - withdraw all lines of the daemon from all files of @top and below */
int cgfiles_restore(struct cgfiles *files, struct cgroup *top);

/** cgfiles_prune() - drop the records of cgroups that were removed while no daemon ran */
void cgfiles_prune(struct cgfiles *files, const struct cgroup_tree *tree);

/** cgfiles_device_gone() - drop the records of a removed device, see cgrecords_device_gone() */
void cgfiles_device_gone(struct cgfiles *files, dev_t devno, bool is_replaced);

/** cgfiles_follow_devices() - the devices are those of @t, see cgrecords_follow_devices() */
void cgfiles_follow_devices(struct cgfiles *files, const struct topology *t);

/** cgfiles_cgroup_gone() - drop the records of @c, which is removed */
void cgfiles_cgroup_gone(struct cgfiles *files, const struct cgroup *c);

/**
 * cgfile_merge() - the lower value of each limit, of @ours and of other programs' lines for @devno
 * @present: the content of the file now, with later changes by other programs
 */
struct cgvalue cgfile_merge(const struct cgfiles *files, const struct cgroup *c,
			    const struct cglines *present, dev_t devno,
			    const struct cgvalue *ours);

/** cgfile_of_others() - the value for @devno that the daemon replaced, or that others wrote later */
struct cgvalue cgfile_of_others(const struct cgfiles *files,
				const struct cgroup *c,
				const struct cglines *present, dev_t devno);

/**
 * struct cgrefusal - a line whose write failed or had no effect
 *
 * @error: -errno, 0: the write had no effect
 * @is_of_record: @error is that of the record of the former value
 *
 * The line is not written again until cgfile_retry(), unless with another value. Other lines and
 * files of the cgroup are written as usual.
 */
struct cgrefusal {
	struct cgrefusal *next;
	enum cgfile file;
	dev_t devno;
	struct cgvalue value;
	int error;
	bool is_of_record;
};

/** cgfile_refusal() - refusal of the line for @devno, NULL: none; a busy disk may still take it */
const struct cgrefusal *cgfile_refusal(const struct cgroup *c, enum cgfile file,
				       dev_t devno);

/** cgrefusal_text() - "the kernel ignored "8:16 300" for io.sutro.weight"; NULL: out of memory */
char *cgrefusal_text(const struct cgrefusal *r);

/** cgfile_retry() - drop refusals: the policy changed, or the periodic comparison begins */
void cgfile_retry(struct cgroup *c);

/**
 * cgfile_take_echo() - is an event about io.weight the one of the daemon's last write?
 *
 * Both systemd and the daemon write io.weight, and an event does not identify the writer. The
 * first event after the daemon's last write is its own if the content is the same as then. Later
 * ones are not: systemd writes the same content again when only a statement about a stack changed.
 */
bool cgfile_take_echo(struct cgroup *c);

#endif
