/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Connections of clients to the varlink server, with bounds of the memory that each takes.
 *
 * sd-varlink keeps up to 16 MiB of a message without an end for each connection, and parses one with
 * an end into many times its bytes. Calls of the daemon's methods have some hundred bytes. So
 * sd-varlink reads from a pair of sockets. The daemon passes on parts of at most PART_BYTES, and a
 * message of more than MESSAGE_BYTES_MAX ends the connection:
 *
 *	client -> connection -> forward() -> inlet ... sd-varlink
 *	client <- connection <-------------------------- sd-varlink
 *
 * The inlet has one call at a time. The others stay in the socket of the client, and the end of its
 * calls is passed on after them. sd-varlink runs a call as soon as it is passed on, so that the user
 * pays for it, also for those that sd-varlink answers by itself. While the account of the user is
 * overdrawn, most calls wait (quota.c).
 *
 * A client may send many calls and read no reply. sd-varlink would keep 16 MiB of replies for each
 * connection, also of its own ones, as that of GetInterfaceDescription. So after each event of the
 * loop a connection whose socket takes no more leaves the loop, until the socket is writable again.
 */

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "bus/connection.h"
#include "bus/quota.h"
#include "host/priority.h"
#include "host/util.h"

#define SOCKET_MODE 0666

#define MESSAGE_BYTES_MAX (64U << 10)
#define PART_BYTES 4096

/* After a failure to accept, without free file descriptors, the connection is still in the queue. */
#define ACCEPTS_PER_SECOND_MAX 1000U
#define USEC_PER_SECOND 1000000ULL

/* Calls of users whose accounts are overdrawn are looked at again after this time. */
#define HELD_USEC USEC_PER_SECOND
#define ACCURACY_USEC 100000ULL

/**
 * struct connection - of a client
 * @client: of a duplicate of the socket, for the loop has sd-varlink's own source of the other one
 * @inlet: the descriptor that calls are passed on to
 * @message_bytes: of the last message, whose end has not come
 * @is_busy: sd-varlink has not answered the last call, and takes no further one
 * @is_held: calls wait, for the account of the user is overdrawn
 * @is_ended: the client sends no more
 * @is_paused: the client reads no replies, and no calls of it are served
 */
struct connection {
	LIST_ENTRY(connection) entry;
	struct connections *all;
	sd_varlink *link;
	uid_t uid;
	sd_event_source *client;
	int inlet;
	size_t message_bytes;
	bool is_busy;
	bool is_held;
	bool is_ended;
	bool is_paused;
};

static int client_fd(const struct connection *c)
{
	return sd_event_source_get_io_fd(c->client);
}

static void connection_free(struct connection *c)
{
	sd_event_source_disable_unref(c->client);
	if (c->inlet >= 0)
		close(c->inlet);
	sd_varlink_unref(c->link);
	free(c);
}

static struct connection *find(const struct connections *all,
			       const sd_varlink *link)
{
	struct connection *c;

	LIST_FOREACH(c, &all->list, entry)
		if (c->link == link)
			break;
	return c;
}

/* Wait for bytes that can be passed on. A closed socket is always ready, so its source is turned off. */
static int set_events(struct connection *c)
{
	bool takes_calls = !c->is_busy && !c->is_held && !c->is_ended &&
			   !c->is_paused;
	uint32_t events = (takes_calls ? EPOLLIN : 0) |
			  (c->is_paused ? EPOLLOUT : 0);
	int r = sd_event_source_set_io_events(c->client, events);

	return r < 0 ? r
		     : sd_event_source_set_enabled(
			       c->client, events ? SD_EVENT_ON : SD_EVENT_OFF);
}

/* ---- calls ---- */

static int end_calls(struct connection *c)
{
	c->is_ended = true;
	return shutdown(c->inlet, SHUT_WR) < 0 ? -errno : 0;
}

static int hold(struct connection *c)
{
	sd_event_source *s = c->all->held;
	int r = 0;

	c->is_held = true;
	if (sd_event_source_get_enabled(s, NULL) > 0)
		return 0;
	r = sd_event_source_set_time_relative(s, HELD_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int on_held(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct connections *all = userdata;

	for (struct connection *c = LIST_FIRST(&all->list), *next; c;
	     c = next) {
		next = LIST_NEXT(c, entry);
		if (!c->is_held)
			continue;
		c->is_held = false;
		if (set_events(c) < 0)
			sd_varlink_close(c->link);
	}
	return 0;
}

/* Drop @n bytes that were peeked at. */
static int drop(struct connection *c, char *part, ssize_t n)
{
	while (n > 0) {
		ssize_t got = recv(client_fd(c), part, n, MSG_DONTWAIT);

		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		n -= got;
	}
	return 0;
}

/* Return: 1: a call, or a part of one, was passed on; 0; or -errno. */
static int forward(struct connection *c)
{
	char part[PART_BYTES];
	size_t bytes;
	ssize_t n, sent;
	char *end;
	int r;

	n = recv(client_fd(c), part, sizeof(part), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return end_calls(c);
	end = memchr(part, '\0', n);
	if (end)
		n = end + 1 - part;
	bytes = c->message_bytes + n;
	if (bytes > MESSAGE_BYTES_MAX || (!end && bytes == MESSAGE_BYTES_MAX))
		return -EMSGSIZE;
	if (!c->message_bytes && bus_call_waits(c->all->bus, c->uid))
		return hold(c);
	/* sd-varlink has read all before. */
	sent = send(c->inlet, part, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < n)
		return sent < 0 ? -errno : -EIO;
	c->message_bytes = end ? 0 : bytes;
	r = drop(c, part, n);
	return r < 0 ? r : 1;
}

/* Run the call that was passed on, on account of its user. The connection may have ended then. */
static void run_call(struct connection *c)
{
	sd_varlink *link = sd_varlink_ref(c->link);
	struct bus *b = c->all->bus;
	uint64_t began = cpu_usec();
	uid_t uid = c->uid;

	while (sd_varlink_process(link) > 0)
		;
	bus_charge(b, uid, cpu_usec() - began);
	sd_varlink_unref(link);
}

static int forward_or_close(struct connection *c)
{
	int r = forward(c);

	if (r > 0) {
		run_call(c);
		return 0;
	}
	if (r == 0)
		r = set_events(c);
	if (r == -EMSGSIZE)
		log_debug("A client of varlink sent a message of more than %u "
			  "bytes: its connection is closed.",
			  MESSAGE_BYTES_MAX);
	else if (r < 0)
		log_debug_errno(
			r, "Cannot pass on messages of a client of varlink, "
			   "its connection is closed: %m");
	if (r < 0)
		sd_varlink_close(c->link);
	return 0;
}

/* ---- replies ---- */

static int resume(struct connection *c)
{
	c->is_paused = false;
	return sd_varlink_attach_event(c->link, c->all->event,
				       MACHINE_PRIORITY_CALLS);
}

static int on_client(sd_event_source *s, int fd, uint32_t events,
		     void *userdata)
{
	struct connection *c = userdata;

	if (c->is_paused && events & ~EPOLLIN && resume(c) < 0) {
		sd_varlink_close(c->link);
		return 0;
	}
	if (events & EPOLLIN)
		return forward_or_close(c);
	if (set_events(c) < 0)
		sd_varlink_close(c->link);
	return 0;
}

/* After a reply the socket still takes bytes, unless the client has not read those before. */
static bool has_unread(struct connection *c)
{
	struct pollfd p = { client_fd(c), POLLOUT, 0 };

	return sd_varlink_get_events(c->link) > 0 &&
	       sd_varlink_get_events(c->link) & EPOLLOUT && poll(&p, 1, 0) == 0;
}

static int pause_connection(struct connection *c)
{
	int r;

	c->is_paused = true;
	r = set_events(c);
	if (r >= 0)
		sd_varlink_detach_event(c->link);
	return r;
}

/* Between two calls sd-varlink waits for the next one. */
static int follow_calls(struct connection *c)
{
	int events = sd_varlink_get_events(c->link);
	bool is_busy = events < 0 || !(events & EPOLLIN);

	if (is_busy == c->is_busy)
		return 0;
	c->is_busy = is_busy;
	return set_events(c);
}

static int on_after(sd_event_source *s, void *userdata)
{
	struct connections *all = userdata;
	int r;

	for (struct connection *c = LIST_FIRST(&all->list), *next; c;
	     c = next) {
		next = LIST_NEXT(c, entry);
		r = follow_calls(c);
		if (r >= 0 && !c->is_paused && has_unread(c))
			r = pause_connection(c);
		if (r < 0)
			sd_varlink_close(c->link);
	}
	return 0;
}

/* ---- clients ---- */

/* @fd belongs to the source, and is closed if there is none. */
static int add_source(sd_event *event, int fd, uint32_t events,
		      sd_event_io_handler_t handler, void *userdata,
		      sd_event_source **ret)
{
	int r = sd_event_add_io(event, ret, fd, events, handler, userdata);

	if (r < 0) {
		close(fd);
		return r;
	}
	sd_event_source_set_io_fd_own(*ret, true);
	return sd_event_source_set_priority(*ret, MACHINE_PRIORITY_CALLS);
}

/* The other end of the inlet is in @ret. */
static int add_inlet(struct connection *c, int *ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		       pair) < 0)
		return -errno;
	c->inlet = pair[0];
	*ret = pair[1];
	return 0;
}

static int add_client(struct connection *c, int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return own < 0 ? -errno
		       : add_source(c->all->event, own, EPOLLIN, on_client, c,
				    &c->client);
}

/* The server refuses a connection beyond its limits. It has both descriptors if this succeeds. */
static int add_link(struct connection *c, int input_fd, int fd)
{
	struct ucred user;
	socklen_t length = sizeof(user);
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length) < 0)
		return -errno;
	r = sd_varlink_server_add_connection_pair(c->all->server, input_fd, fd,
						  &user, &c->link);
	if (r < 0)
		return r;
	sd_varlink_ref(c->link);
	c->uid = user.uid;
	return r;
}

static int add_connection(struct connections *all, int fd)
{
	_cleanup_close_ int own_fd = fd, input_fd = -1;
	struct connection *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->all = all;
	c->inlet = -1;
	r = add_inlet(c, &input_fd);
	if (r >= 0)
		r = add_client(c, fd);
	if (r >= 0)
		r = set_events(c);
	if (r >= 0)
		r = add_link(c, input_fd, fd);
	if (r < 0) {
		connection_free(c);
		return r;
	}
	own_fd = -1;
	input_fd = -1;
	LIST_INSERT_HEAD(&all->list, c, entry);
	return sd_event_source_set_enabled(all->after, SD_EVENT_ON);
}

static int on_accept(sd_event_source *s, int fd, uint32_t events,
		     void *userdata)
{
	int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int r = client < 0 ? -errno : add_connection(userdata, client);

	if (r < 0)
		log_debug_errno(r,
				"A client of varlink cannot be connected: %m");
	return 0;
}

void connections_drop(struct connections *all, const sd_varlink *link)
{
	struct connection *c = find(all, link);

	if (!c)
		return;
	LIST_REMOVE(c, entry);
	connection_free(c);
	if (LIST_EMPTY(&all->list))
		sd_event_source_set_enabled(all->after, SD_EVENT_OFF);
}

/* ---- the socket ---- */

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;
	mode_t mask;
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	mask = umask(0777 & ~SOCKET_MODE);
	r = bind(fd, (struct sockaddr *)&address, sizeof(address));
	r = r < 0 ? -errno : 0;
	umask(mask);
	if (r >= 0 && listen(fd, SOMAXCONN) < 0)
		r = -errno;
	if (r < 0)
		return r;
	r = fd;
	fd = -1;
	return r;
}

int connections_open(struct connections *all, const char *path)
{
	int fd, r;

	all->path = strdup(path);
	if (!all->path)
		return -ENOMEM;
	r = sd_event_add_post(all->event, &all->after, on_after, all);
	if (r >= 0)
		r = sd_event_source_set_enabled(all->after, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(all->event, &all->held, CLOCK_MONOTONIC,
				      0, ACCURACY_USEC, on_held, all);
	if (r >= 0)
		r = sd_event_source_set_enabled(all->held, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(all->held,
						 MACHINE_PRIORITY_CALLS);
	if (r < 0)
		return r;
	fd = listen_at(path);
	if (fd < 0)
		return fd;
	r = add_source(all->event, fd, EPOLLIN, on_accept, all,
		       &all->accepting);
	return r < 0 ? r
		     : sd_event_source_set_ratelimit(all->accepting,
						     USEC_PER_SECOND,
						     ACCEPTS_PER_SECOND_MAX);
}

void connections_close(struct connections *all)
{
	/* The server would live as long as these. */
	while (!LIST_EMPTY(&all->list)) {
		struct connection *c = LIST_FIRST(&all->list);
		sd_varlink *link = sd_varlink_ref(c->link);

		connections_drop(all, link);
		sd_varlink_close_unref(link);
	}
	sd_event_source_disable_unref(all->after);
	sd_event_source_disable_unref(all->held);
	if (all->accepting)
		unlink(all->path);
	sd_event_source_disable_unref(all->accepting);
	free(all->path);
	*all = (struct connections){};
}
