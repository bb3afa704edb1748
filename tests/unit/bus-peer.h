/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_BUS_PEER_H
#define SUTRO_TEST_BUS_PEER_H

#include <systemd/sd-bus.h>

#include "fake.h"

/* All that the daemon speaks with, in the test itself: a bus whose clients are root,
 * and a systemd that knows the units the test says.
 */

/* Who takes longer for an answer hangs. */
#define PEER_PATIENCE_USEC 60000000U

/**
 * struct peer - our end of the daemon's connection
 * @bus: calls on it are calls to the daemon
 * @cgroup_of: ControlGroup= of a unit, "" if systemd has none of that name
 */
struct peer {
	sd_bus *bus;
	int listener;
	bool greeted;
	const char *(*cgroup_of)(const char *unit);
};

/** peer_listen() - where DBUS_SYSTEM_BUS_ADDRESS says from now on */
void peer_listen(struct peer *p, const struct roots *roots,
		 const char *(*cgroup_of)(const char *unit));

/** peer_serve() - after the daemon was started, until it serves */
void peer_serve(struct peer *p);

/** peer_step() - serve the daemon, or wait for it, at most so long */
void peer_step(struct peer *p, uint64_t timeout_usec);

/** peer_call() - a message to the daemon from the bus client @sender; NULL: no such name */
sd_bus_message *peer_call(struct peer *p, const char *sender,
			  const char *interface, const char *member);

#endif
