/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BUS_CAPACITY_H
#define SUTRO_BUS_CAPACITY_H

#include "bus/bus.h"

/**
 * bus_admit() - do the devices have the capacity for these settings?
 *
 * With Admission=warn a lack is logged. Return: 0; a negative errno for the method to return,
 * with @error set.
 */
int bus_admit(const struct bus *b, const char *unit,
	      const struct assignment *assignments, size_t n,
	      sd_bus_error *error);

#endif
