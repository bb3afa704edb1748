/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_RECORD_H
#define SUTRO_RECORD_H

#include <sys/queue.h>

#include "host/roots.h"
#include "host/util.h"

/** struct record_line - a value for a device; 0: for none */
struct record_line {
	dev_t devno;
	char *value;
};

/** struct record_subject - all lines of one path */
struct record_subject {
	char *path;
	struct record_line *lines;
	size_t n;
	TAILQ_ENTRY(record_subject) list;
};

/**
 * struct record - former values, to undo writes after any end of the daemon
 * @path: /run/sutro/NAME
 * @fd: of the file, for lines at its end; -1: not open
 * @length: bytes of whole lines in the file
 * @is_torn: the file may have an incomplete line, or not all lines, and has to be replaced
 * @n_written: lines in the file, with those that later ones override
 * @n: lines in force
 * @subjects: with at least one line each
 * @index: of @subjects, by path
 *
 * A change is in the file before the function that makes it returns. If it cannot be written,
 * nothing changes.
 */
struct record {
	char *path;
	int fd;
	off_t length;
	bool is_torn;
	size_t n_written;
	size_t n;
	TAILQ_HEAD(, record_subject) subjects;
	void *index;
};

/** record_open() - read the records of a former daemon */
int record_open(struct record *r, const struct roots *roots, const char *name);
void record_done(struct record *r);

/** record_find() - the lines of @path, NULL: there are none */
const struct record_subject *record_find(const struct record *r,
					 const char *path);

/** record_get() - the value of @path for @devno, NULL: there is none */
const char *record_get(const struct record *r, const char *path, dev_t devno);

/** record_set() - remember @value, which has no tabs and newlines */
int record_set(struct record *r, const char *path, dev_t devno,
	       const char *value);

/** record_cut() - shorten a value in memory; the file has the longer one until the next change */
void record_cut(struct record *r, const char *path, dev_t devno, size_t length);

/** record_drop() - drop a line; nothing happens if it is not there */
int record_drop(struct record *r, const char *path, dev_t devno);

/** record_drop_path() - drop all lines of @path */
int record_drop_path(struct record *r, const char *path);

/** record_prune() - drop all lines for which @is_over is true */
int record_prune(struct record *r,
		 bool (*is_over)(const char *path, dev_t devno,
				 const void *userdata),
		 const void *userdata);

#endif
