/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_HIERARCHY_H
#define SUTRO_HIERARCHY_H

#include "host/roots.h"
#include "host/util.h"

/**
 * struct hierarchy - the directories of the cgroups of the io controller
 * @mount: the directory of the root cgroup
 * @is_mounted: it is a cgroup file system, and not a tree of a test
 */
struct hierarchy {
	char *mount;
	bool is_mounted;
};

struct hierarchy_walk;

/**
 * hierarchy_find() - the hierarchy of this machine, or the tree of a test
 *
 * Return: 0, -ENOMEM or -ENOENT: the kernel has no such hierarchy, which is logged.
 */
int hierarchy_find(const struct roots *roots, struct hierarchy *ret);
void hierarchy_done(struct hierarchy *h);

/**
 * hierarchy_walk_new() - begin a walk over the cgroup @top and those below it
 * @top: path from the root of the hierarchy, "/system.slice"; root: "/"
 */
int hierarchy_walk_new(const struct hierarchy *h, const char *top,
		       struct hierarchy_walk **ret);
struct hierarchy_walk *hierarchy_walk_free(struct hierarchy_walk *w);

/**
 * hierarchy_walk_next() - the next path, that of the parent first, to be freed
 *
 * A directory is read when the walk goes on after its path. One that cannot be read is left out:
 * most likely the cgroup was removed meanwhile.
 *
 * Return: 1; 0: there are no more; -ENOMEM.
 */
int hierarchy_walk_next(struct hierarchy_walk *w, char **ret);

#endif
