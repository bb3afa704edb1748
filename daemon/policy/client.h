/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CLIENT_H
#define SUTRO_CLIENT_H

#include <systemd/sd-bus.h>

#include "policy/policies.h"

/* Clients with promises, and units of each client. root may have many programs. */
#define CLIENTS_MAX 256U
#define CLIENT_UNITS_MAX 1024U

/**
 * struct clients - settings of clients of the bus, as long as they are connected
 * @changed: settings of @unit have changed
 */
struct clients {
	sd_bus *bus;
	struct client *first;
	void (*changed)(const char *unit, void *userdata);
	void *userdata;
};

void clients_init(struct clients *c, sd_bus *bus,
		  void (*changed)(const char *unit, void *userdata),
		  void *userdata);
void clients_done(struct clients *c);

/**
 * clients_assign() - add to the settings of @unit by the client @name, all or nothing
 * @name: unique bus name
 * @ret_error: on -EINVAL a sentence, to be freed
 *
 * Return: 1; 0: they had these values before; -EINVAL: a mistake; -E2BIG: too many settings;
 *	another -errno.
 */
int clients_assign(struct clients *c, const char *name, const char *unit,
		   const struct assignment *assignments, size_t n,
		   char **ret_error);

/** clients_forget() - drop the settings of @unit by the client @name; false: there were none */
bool clients_forget(struct clients *c, const char *name, const char *unit);

/**
 * clients_about() - all settings of @unit, the latest client last
 * @ret: an array to be freed; its elements belong to the clients
 *
 * Return: how many, or -ENOMEM.
 */
int clients_about(const struct clients *c, const char *unit,
		  const struct promises ***ret);

/** clients_units() - add the units that clients have settings for, each once */
int clients_units(const struct clients *c, char ***names);

/** clients_each_path() - call @fn for each path of the clients' settings */
void clients_each_path(const struct clients *c, paths_fn *fn, void *userdata);

/** clients_state() - the policies of files and clients for @unit, see policies_state() */
int clients_state(const struct clients *c, const struct policies *p,
		  const char *unit, struct stated *ret);

#endif
