/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_JSON_H
#define SUTRO_JSON_H

#include <systemd/sd-bus.h>
#include <systemd/sd-json.h>

/** struct json_values - a list that grows */
struct json_values {
	sd_json_variant **items;
	size_t n;
};

/** json_values_add() - append @v, which the list takes. Return: 0 or -ENOMEM */
int json_values_add(struct json_values *l, sd_json_variant *v);
void json_values_done(struct json_values *l);

/**
 * bus_message_to_json() - the value at the read position of a sealed message
 *
 * Dictionaries are objects, variants are their values.
 */
int bus_message_to_json(sd_bus_message *m, sd_json_variant **ret);

#endif
