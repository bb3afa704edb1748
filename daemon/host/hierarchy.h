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

/**
 * hierarchy_find() - the hierarchy of this machine, or the tree of a test
 *
 * Return: 0, -ENOMEM or -ENOENT: the kernel has no such hierarchy, which is logged.
 */
int hierarchy_find(const struct roots *roots, struct hierarchy *ret);
void hierarchy_done(struct hierarchy *h);

/**
 * hierarchy_walk() - call @on_cgroup for the cgroup @top and each one below it
 * @top: path from the root of the hierarchy, "/system.slice"; root: "/"
 * @on_cgroup: gets such a path, that of the parent first; a result other than 0 ends the walk
 *
 * A directory that cannot be read is left out: most likely the cgroup was removed meanwhile.
 *
 * Return: the result of the last call of @on_cgroup, 0 without a call, or -ENOMEM.
 */
int hierarchy_walk(const struct hierarchy *h, const char *top,
		   int (*on_cgroup)(const char *path, void *userdata),
		   void *userdata);

#endif
