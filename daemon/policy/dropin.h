/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_DROPIN_H
#define SUTRO_DROPIN_H

#include "host/util.h"

/** struct dropin - a file of one of several directories */
struct dropin {
	char *name;
	char *path;
};

/** struct dropins - sorted by name, no name twice */
struct dropins {
	struct dropin *items;
	size_t n;
};

/**
 * dropins_list() - the files of all @dirs
 * @dirs: of two files with the same name the one in the earlier directory counts
 * @folder: look into this folder of each of @dirs; "" : into themselves
 * @suffix: of the names that count
 *
 * Directories that do not exist are empty, hidden files do not count.
 */
int dropins_list(char *const *dirs, const char *folder, const char *suffix,
		 struct dropins *ret);

/** dropins_append() - add a file at the end, whose name is not in the list */
int dropins_append(struct dropins *l, const char *name, const char *path);

/** dropins_put() - add @path, or replace the file of the same @name by it */
int dropins_put(struct dropins *l, const char *name, const char *path);

void dropins_done(struct dropins *l);

#endif
