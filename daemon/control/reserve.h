/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_RESERVE_H
#define SUTRO_RESERVE_H

#include "control/plant.h"
#include "host/cgfile.h"

/**
 * reserve_apply() - write what the law reserves for @c to io.sutro.reserve; reserve
 *	nothing on other leaves
 *
 * Return: 0 or -ENOMEM; another failure is logged.
 */
int reserve_apply(struct cgfiles *files, const struct plant *plant,
		  struct cgroup *c);

#endif
