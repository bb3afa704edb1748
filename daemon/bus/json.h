/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_JSON_H
#define SUTRO_JSON_H

#include <systemd/sd-bus.h>
#include <systemd/sd-json.h>

/**
 * bus_message_to_json() - the value at the read position of a sealed message
 *
 * Dictionaries are objects, variants are their values.
 */
int bus_message_to_json(sd_bus_message *m, sd_json_variant **ret);

#endif
