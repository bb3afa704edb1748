/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PATH_H
#define SUTRO_PATH_H

#include "host/roots.h"
#include "host/topology.h"

/**
 * topology_resolve_literal() - the device behind a path, without a look at the path
 *
 * Links are followed below /dev only, and whether a file exists is known there only. It returns
 * at once. Return: as of topology_resolve().
 */
int topology_resolve_literal(const struct topology *t,
			     const struct roots *roots, const char *path,
			     struct device **ret);

/**
 * path_real() - realpath(3) on the machine; it may take for ever
 *
 * Return: the path, to be freed; NULL with errno set.
 */
char *path_real(const struct roots *roots, const char *path);

/**
 * topology_resolve() - the device behind a node, link, mount point or file
 *
 * It looks the path up, with the privileges of the daemon: for paths of an administrator only.
 * Return: 0; -EINVAL: not absolute; -ENOENT and others of stat(2): no such path;
 * -ENODEV: not on a block device.
 */
int topology_resolve(const struct topology *t, const struct roots *roots,
		     const char *path, struct device **ret);

#endif
