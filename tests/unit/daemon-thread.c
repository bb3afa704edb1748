/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <signal.h>

#include "daemon-thread.h"

static void *run(void *userdata)
{
	struct daemon_thread *d = userdata;

	d->result = manager_run(d->manager);
	d->manager = manager_free(d->manager);
	return NULL;
}

void daemon_start(struct daemon_thread *d, const struct roots *roots,
		  const char *(*cgroup_of)(const char *unit))
{
	*d = (struct daemon_thread){};
	peer_listen(&d->peer, roots, cgroup_of);
	check(manager_new(roots->prefix, false, &d->manager) == 0);
	check(pthread_create(&d->thread, NULL, run, d) == 0);
	peer_serve(&d->peer);
}

void daemon_stop(struct daemon_thread *d)
{
	/* It waits for the signal on a signalfd of its own. */
	check(pthread_kill(d->thread, SIGTERM) == 0);
	while (pthread_tryjoin_np(d->thread, NULL) != 0) {
		sd_bus_process(d->peer.bus, NULL);
		usleep(1000);
	}
	check(d->result == 0);
	d->peer.bus = sd_bus_flush_close_unref(d->peer.bus);
}
