/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PLANT_H
#define SUTRO_PLANT_H

#include "control/governor.h"

/** plant_make() - the plant for what there is now; keeps what was learnt */
int plant_make(struct governor *g);

/** plant_load() - what a predecessor learnt, from /run/sutro */
int plant_load(struct governor *g);

/**
 * plant_traffic() - a number of what a floor is about
 *
 * Floors about the same bytes have the same number: bandwidth and IOPS of the reads of
 * one device are kept with one share.
 */
uint32_t plant_traffic(const struct topology *t, const struct device *d,
		       enum promise_key key);

void plant_free(struct governor *g);

#endif
