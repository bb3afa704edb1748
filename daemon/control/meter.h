/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_METER_H
#define SUTRO_METER_H

#include "control/plant.h"
#include "host/latency.h"

/**
 * meters_watch() - measure latencies for the targets of @plant, and for no others
 *
 * Return: 0; -ENOMEM; another -errno: those that cannot be measured at their volume are
 * measured at its leaves.
 */
int meters_watch(const struct plant *plant, struct latency *l);

/** meter_sample() - the input of a tick for the target @f on @d */
void meter_sample(struct plant *plant, struct governed *f,
		  const struct device *d, const struct sampler *sampler,
		  const struct latency *l, double dt_s);

#endif
