/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CONNECTION_H
#define SUTRO_CONNECTION_H

#include <sys/queue.h>
#include <systemd/sd-event.h>
#include <systemd/sd-varlink.h>

struct bus;
struct connection;

/**
 * struct connections - the socket of a varlink server, and the clients that are connected to it
 * @bus: with the accounts of users
 * @accepting: of the socket
 * @after: runs after each event while there are connections
 * @held: looks again at calls that wait
 */
struct connections {
	struct bus *bus;
	sd_event *event;
	sd_varlink_server *server;
	sd_event_source *accepting;
	sd_event_source *after;
	sd_event_source *held;
	LIST_HEAD(, connection) list;
	char *path;
};

/** connections_open() - accept connections at @path; @c->bus, @c->event and @c->server are set */
int connections_open(struct connections *c, const char *path);

/** connections_drop() - the connection @link of the server has ended */
void connections_drop(struct connections *c, const sd_varlink *link);

void connections_close(struct connections *c);

#endif
