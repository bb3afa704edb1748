/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TRAFFIC_H
#define SUTRO_TRAFFIC_H

#include "control/plant.h"
#include "host/machine.h"

/** traffic_sample() - the input of a tick for the floor @f on @d */
void traffic_sample(struct plant *plant, struct governed *f,
		    const struct device *d, const struct sampler *sampler,
		    const struct machine *machine, double dt_s);

#endif
