/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_RECORD_H
#define SUTRO_RECORD_H

#include "host/roots.h"
#include "host/util.h"

/**
 * struct record - former values, to undo writes after any end of the daemon
 * @path: /run/sutro/NAME
 * @lines: "KEY TAB VALUE", the file's content
 *
 * It is on disk before the function that changes it returns.
 */
struct record {
	char *path;
	char **lines;
};

/** record_open() - read the records of a former daemon */
int record_open(struct record *r, const struct roots *roots, const char *name);
void record_done(struct record *r);

/** record_get() - the value of @key, NULL: there is none */
const char *record_get(const struct record *r, const char *key);

/** record_set() - remember @value for @key; neither may have tabs or newlines */
int record_set(struct record *r, const char *key, const char *value);

/** record_prune() - drop all lines for which @is_over is true */
int record_prune(struct record *r,
		 bool (*is_over)(const char *line, const void *userdata),
		 const void *userdata);

/** record_drop() - drop @key; nothing happens if it is not there */
int record_drop(struct record *r, const char *key);

#endif
