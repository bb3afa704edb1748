/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_TEST_DAEMON_THREAD_H
#define SUTRO_TEST_DAEMON_THREAD_H

#include <pthread.h>

#include "bus-peer.h"
#include "manager.h"

/** struct daemon_thread - the whole daemon in a thread of the test */
struct daemon_thread {
	struct peer peer;
	pthread_t thread;
	struct manager *manager;
	int result;
};

/** daemon_start() - on the fake machine @roots; until it serves */
void daemon_start(struct daemon_thread *d, const struct roots *roots,
		  const char *(*cgroup_of)(const char *unit));

/** daemon_stop() - as systemd stops it; checks that it ended well */
void daemon_stop(struct daemon_thread *d);

#endif
