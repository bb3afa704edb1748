/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_DISKCALL_H
#define SUTRO_DISKCALL_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/**
 * diskcall_read(), diskcall_write() - read or write an open file whose driver may wait for a disk
 * @disk: device_id() of the disk
 * @ret: the content without trailing newlines, at most a page
 *
 * Return: 0; -ETIMEDOUT: this call or an earlier one for @disk has not returned, and it still may
 * take effect; or another -errno.
 */
int diskcall_read(uint64_t disk, int fd, char **ret);
int diskcall_write(uint64_t disk, int fd, const char *text);

/** diskcall_is_pending() - has a call for @disk not returned? The disk may only be busy. */
bool diskcall_is_pending(uint64_t disk);

/** diskcall_is_hung() - has a call for @disk not returned for 10 s? */
bool diskcall_is_hung(uint64_t disk);

/**
 * diskcalls_follow() - report changes of the two above
 * @changed: called when a disk begins to hang, or from @event when a pending call has returned
 */
void diskcalls_follow(sd_event *event,
		      void (*changed)(bool has_returned, void *userdata),
		      void *userdata);

/** diskcalls_end() - end the worker processes; pending calls are not waited for */
void diskcalls_end(void);

#endif
