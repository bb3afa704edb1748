/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_HELPER_H
#define SUTRO_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

/**
 * struct helper_job - work for a child process
 * @keep_fd: a file descriptor that @work uses, -1: none; all others are closed
 * @limit_usec: the child is killed after this time
 * @work: runs in the child and writes its output to @fd
 * @after: runs in the child when @done has the output, for AFTER_SEC at most; NULL: nothing does
 * @done: runs in the loop; @err is 0, -ETIMEDOUT, or -EIO when @work failed. @output is complete
 *	lines or more, and ends with a 0 byte. Not called after helper_cancel().
 */
struct helper_job {
	int keep_fd;
	uint64_t limit_usec;
	int (*work)(int fd, void *userdata);
	void (*after)(void *userdata);
	void (*done)(int err, const char *output, size_t length,
		     void *userdata);
	void *userdata;
};

struct helper;

/**
 * helper_start() - begin @job
 * @ret: valid until @done is called
 *
 * Return: 0, -EBUSY when there are too many children, or another -errno.
 */
int helper_start(sd_event *event, const struct helper_job *job,
		 struct helper **ret);

/** child_begin() - in a new child: end with @parent, close all files except @a, @b and 0 to 2 */
void child_begin(pid_t parent, int a, int b);

/** helper_cancel() - kill the child and drop the job; NULL: nothing */
struct helper *helper_cancel(struct helper *h);

#endif
