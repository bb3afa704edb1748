/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_MOUNTS_H
#define SUTRO_MOUNTS_H

#include "host/util.h"

/**
 * struct mount - a line of mountinfo
 * @devno: of its file system; with the major 0 an anonymous number
 * @point: where it is mounted
 * @source: NULL if it is no path
 */
struct mount {
	dev_t devno;
	char *point;
	char *source;
};

struct mounts;

/**
 * mounts_new() - the mounts of a machine, which are read when they are needed
 * @file: the path of mountinfo
 * @is_polled: the file reports changes to poll(2); else it is read for each mounts_find()
 */
int mounts_new(const char *file, bool is_polled, struct mounts **ret);
struct mounts *mounts_free(struct mounts *m);

/**
 * mounts_find() - the mount that contains a canonical path: the deepest, of several at one point
 *	the last
 * @ret: valid until the next call
 *
 * If the file cannot be read, the mounts that were read last count.
 */
int mounts_find(struct mounts *m, const char *path, const struct mount **ret);

#endif
