/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_COSTS_H
#define SUTRO_COSTS_H

#include "host/roots.h"
#include "host/topology.h"

/* Files that are kept; of more, the oldest are removed. */
#define COSTS_FILES_MAX 256U

/**
 * costs_save() - save the measured costs of requests of @leaf, if they differ from the saved ones
 *
 * Mistakes are logged. It waits for the file system of /var, and for a disk as long as diskcall.c.
 */
void costs_save(const struct roots *roots, const struct device *leaf);

/** costs_read() - the text of costs_write(); NULL: there is none, or the disk hangs */
char *costs_read(const struct roots *roots, const struct device *leaf);

/** costs_write() - costs_save() with the text of costs_read(), which @leaf may have lost since */
void costs_write(const struct roots *roots, const struct device *leaf,
		 const char *text);

/**
 * costs_restore() - let an elevator that has no costs begin with those that were saved
 *
 * Nothing happens without a file for the disk. One that does not fit it is logged, and ignored.
 */
void costs_restore(const struct roots *roots, const struct device *leaf);

/** costs_save_all() - costs_save() for each leaf that has the elevator */
void costs_save_all(const struct roots *roots, const struct topology *t);

/** costs_has_elevator() - does @d have an elevator that has costs? */
bool costs_has_elevator(const struct device *d);

#endif
