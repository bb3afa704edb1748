/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_FOLDERS_H
#define SUTRO_EXPORTER_FOLDERS_H

#include "host/util.h"

/* Is it a lack of memory or of files, and no sign of a cgroup that has gone? */
static inline bool is_shortage(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/**
 * struct folder - the directory of a cgroup
 * @path: from the root of the hierarchy, "/system.slice/db.service"; root: "/"
 * @altered: the path as it is shown, if it is not fit for that; else NULL
 * @first: of those with the same shown path, the first one; its members below are for all of them
 * @has_file_below: a cgroup below has io.stat, so that of this one counts others, too
 * @used: device time in ns, or bytes where the kernel counts no time
 * @is_used: it has counters
 * @is_promised: it has a promise
 * @is_kept: it is among those that are exported
 */
struct folder {
	char *path;
	char *altered;
	struct folder *first;
	bool has_file_below;
	uint64_t used;
	bool is_used;
	bool is_promised;
	bool is_kept;
};

/** folder_shown() - the path as the daemon shows it */
static inline const char *folder_shown(const struct folder *f)
{
	return f->altered ?: f->path;
}

/**
 * struct folders - directories, by path
 * @are_shared: some have the same shown path
 */
struct folders {
	struct folder **items;
	size_t n;
	bool are_shared;
};

/**
 * folders_walk() - all cgroups of a hierarchy
 * @hierarchy: its directory; -1: there is none, and no cgroup
 *
 * One that is removed meanwhile may be in the list, or not. Return: 0, or an error is_shortage().
 */
int folders_walk(int hierarchy, struct folders *ret);
void folders_done(struct folders *f);

/** folders_find() - by path, NULL: there is none */
struct folder *folders_find(const struct folders *f, const char *path);

/** folders_filter() - free those whose @first is not kept */
void folders_filter(struct folders *f);

/** struct file_buffer - the text of one file after the other */
struct file_buffer {
	char *p;
	size_t size;
};

static inline void file_buffer_done(struct file_buffer *b)
{
	free(b->p);
}

/**
 * folder_read() - a file of a cgroup
 * @path: of the cgroup
 * @b: gets the text, terminated
 *
 * Return: 0; -ENOENT: there is none, as without the controller; or another -errno.
 */
int folder_read(int hierarchy, const char *path, const char *file,
		struct file_buffer *b);

#endif
