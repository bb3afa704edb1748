/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CEILING_H
#define SUTRO_CEILING_H

#include "host/cgfile.h"
#include "host/topology.h"
#include "policy/promise.h"

/**
 * ceilings_apply() - write the ceilings of the policy of @c to io.max; lines without a
 *	ceiling get back the limits that they had before
 *
 * Return: 0 or -ENOMEM; another failure is logged.
 */
int ceilings_apply(struct cgfiles *files, const struct topology *topology,
		   struct cgroup *c);

/** ceiling_refusal() - why the ceiling @p of @c does not hold, NULL: the kernel took it */
const struct cgrefusal *ceiling_refusal(const struct cgroup *c,
					const struct promise *p);

#endif
