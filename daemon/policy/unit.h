/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_UNIT_H
#define SUTRO_UNIT_H

#include <systemd/sd-bus.h>

#include "policy/policy.h"

/**
 * struct unit_answer - properties of a unit in systemd
 * @name: as in the request
 * @cgroup: its control group, "" when it has none or is not known; NULL when
 *	systemd did not answer
 * @fragment, @dropins: its files, as systemd read them; "" and NULL: none
 * @policy: IOWeight= and IODeviceWeight=; the receiver may take it
 */
struct unit_answer {
	const char *name;
	const char *cgroup;
	const char *fragment;
	char **dropins;
	struct policy policy;
};

/**
 * struct unit_ops - calls of the follower to its owner
 * @answer: systemd answered, or something of the unit changed
 * @appeared: systemd loaded the unit @name, perhaps only because of a request
 * @all_changed: systemd was reloaded or started again: a request for every unit is due
 */
struct unit_ops {
	void (*answer)(struct unit_answer *a, void *userdata);
	void (*appeared)(const char *name, void *userdata);
	void (*all_changed)(void *userdata);
};

struct units;

/** units_new() - follow systemd on @bus */
int units_new(sd_bus *bus, const struct unit_ops *ops, void *userdata,
	      struct units **ret);
struct units *units_free(struct units *u);
DEFINE_CLEANUP(struct units *, units_free);

/** unit_is_name() - could systemd have made a cgroup of this name? */
bool unit_is_name(const char *name);

/**
 * units_request() - request the properties of unit @name
 *
 * The answer arrives later. Requests for the same unit until then have one answer.
 */
int units_request(struct units *u, const char *name);

/** units_waits_for() - is an answer about unit @name to come? */
bool units_waits_for(const struct units *u, const char *name);

/** units_pending() - number of requests without an answer */
size_t units_pending(const struct units *u);

#endif
