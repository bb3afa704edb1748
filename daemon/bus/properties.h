/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PROPERTIES_H
#define SUTRO_PROPERTIES_H

#include <systemd/sd-bus.h>

struct bus;

/**
 * bus_meter_properties() - charge reads of properties to their callers, see bus_metered()
 * @members: the vtable of BUS_INTERFACE, whose getters have @b as userdata
 *
 * Get of a constant property is free.
 */
int bus_meter_properties(struct bus *b, const sd_bus_vtable *members);

#endif
