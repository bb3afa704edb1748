/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ENTITLEMENT_H
#define SUTRO_ENTITLEMENT_H

#include "host/sample.h"

/** entitlement() - share of @leaf that the weights entitle @c to, 0..1 */
double entitlement(const struct sampler *s, const struct cgroup *c,
		   const struct device *leaf);

#endif
