/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_INTERFACE_H
#define SUTRO_INTERFACE_H

#include "bus/bus.h"

/** bus_open() - connect to the system bus, attach it to the loop, take the name */
int bus_open(struct bus *b);
void bus_close(struct bus *b);

/** bus_introspect() - the interface as XML, from the vtable; to be freed */
int bus_introspect(char **ret);

#endif
