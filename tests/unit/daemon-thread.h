/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_DAEMON_THREAD_H
#define SUTRO_TEST_DAEMON_THREAD_H

#include <pthread.h>
#include <systemd/sd-bus.h>

#include "fake.h"
#include "manager.h"

/* The whole daemon in a thread of the test, and all that it speaks with: a bus whose
 * clients are root, and a systemd that knows the units the test says.
 */

/**
 * struct daemon_thread - the daemon and our end of its connection
 * @bus: calls on it are calls to the daemon; set the sender, ":1.9" for example
 * @cgroup_of: ControlGroup= of a unit, "" if systemd has none of that name
 */
struct daemon_thread {
	sd_bus *bus;
	pthread_t thread;
	struct manager *manager;
	int result;
	bool greeted;
	const char *(*cgroup_of)(const char *unit);
};

/** daemon_start() - on the fake machine @roots; until it serves */
void daemon_start(struct daemon_thread *d, const struct roots *roots,
		  const char *(*cgroup_of)(const char *unit));

/** daemon_step() - serve the daemon, or wait for it, at most so long */
void daemon_step(struct daemon_thread *d, uint64_t timeout_usec);

/** daemon_stop() - as systemd stops it; checks that it ended well */
void daemon_stop(struct daemon_thread *d);

/** daemon_call() - a message to the daemon from the bus client @sender */
sd_bus_message *daemon_call(struct daemon_thread *d, const char *sender,
			    const char *interface, const char *member);

/** daemon_check_message() - would a bus take it? One with wild bytes ends the daemon */
void daemon_check_message(sd_bus_message *m);

/** daemon_client_gone() - tell that a client has left the bus */
void daemon_client_gone(struct daemon_thread *d, const char *name);

#endif
