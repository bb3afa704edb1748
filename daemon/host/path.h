/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PATH_H
#define SUTRO_PATH_H

#include "host/roots.h"
#include "host/topology.h"

/**
 * topology_resolve() - the device behind a node, link, mount point or file
 *
 * Return: 0; -EINVAL: not absolute; -ENOENT and others of stat(2): no such path;
 * -ENODEV: not on a block device.
 */
int topology_resolve(const struct topology *t, const struct roots *roots,
		     const char *path, struct device **ret);

#endif
