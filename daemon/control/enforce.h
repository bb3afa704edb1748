/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ENFORCE_H
#define SUTRO_ENFORCE_H

#include "host/cgfile.h"
#include "host/topology.h"
#include "policy/promise.h"

/** enforce_gap() - a leaf under @d that cannot enforce a target, NULL: all can */
const struct device *enforce_gap(const struct device *d);

/** enforce_takes() - can the elevators under @d enforce the target @p? */
bool enforce_takes(const struct promise *p, const struct device *d);

/**
 * enforce_apply() - write the targets of @c to io.sutro.latency of their leaves; none for
 *	other leaves
 *
 * Return: 0 or -ENOMEM; another failure is logged.
 */
int enforce_apply(struct cgfiles *files, struct cgroup *c);

#endif
