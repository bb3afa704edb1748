/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_VOLUME_H
#define SUTRO_VOLUME_H

#include "host/cgroup.h"
#include "host/topology.h"

/**
 * volumes_used() - the devices that a cgroup uses itself, see volume.c
 * @ret: to be freed; the devices belong to @t
 */
int volumes_used(const struct cgroup *c, const struct topology *t,
		 const struct device ***ret, size_t *ret_n);

#endif
