/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BUS_CAPACITY_H
#define SUTRO_BUS_CAPACITY_H

#include "bus/bus.h"

/** struct reservation - capacity of a setting that is admitted, and not in force yet */
struct reservation;

/**
 * bus_admit() - do the devices have the capacity for these settings?
 * @ret: a reservation of the capacity, until capacity_release(); NULL: nothing is reserved
 *
 * With Admission=warn a lack is logged by capacity_in_force(). Return: 0; a negative errno for the method to return,
 * with @error set.
 */
int bus_admit(struct bus *b, const char *unit,
	      const struct assignment *assignments, size_t n,
	      struct reservation **ret, sd_bus_error *error);

/** capacity_in_force() - log a lack of capacity, because the setting is in force */
void capacity_in_force(struct bus *b, const struct reservation *r);

/** capacity_release() - drop the reservation, because the setting is in force or has failed */
void capacity_release(struct reservation *r);

#endif
