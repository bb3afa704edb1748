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
 * A part stays in the socket of the client until the inlet takes it, and the end of the client's
 * calls is passed on, too.
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
#include "host/priority.h"
#include "host/util.h"

#define SOCKET_MODE 0666

#define MESSAGE_BYTES_MAX (64U << 10)
#define PART_BYTES 4096
/* The kernel doubles it. */
#define INLET_BYTES (4 * PART_BYTES)

/* After a failure to accept, without free file descriptors, the connection is still in the queue. */
#define ACCEPTS_PER_SECOND_MAX 1000U
#define USEC_PER_SECOND 1000000ULL

/**
 * struct connection - of a client
 * @client: of a duplicate of the socket, for the loop has sd-varlink's own source of the other one
 * @inlet: reports that sd-varlink has read some of it
 * @message_bytes: of the last message, whose end has not come
 * @is_full: the inlet takes no more
 * @is_ended: the client sends no more
 * @is_paused: the client reads no replies, and no calls of it are served
 */
struct connection {
	LIST_ENTRY(connection) entry;
	struct connections *all;
	sd_varlink *link;
	sd_event_source *client;
	sd_event_source *inlet;
	size_t message_bytes;
	bool is_full;
	bool is_ended;
	bool is_paused;
};

static int client_fd(const struct connection *c)
{
	return sd_event_source_get_io_fd(c->client);
}

static int inlet_fd(const struct connection *c)
{
	return sd_event_source_get_io_fd(c->inlet);
}

static void connection_free(struct connection *c)
{
	sd_event_source_disable_unref(c->client);
	sd_event_source_disable_unref(c->inlet);
	sd_varlink_unref(c->link);
	free(c);
}

/* Wait for bytes that can be passed on. A closed socket is always ready, so its source is turned off. */
static int set_events(struct connection *c)
{
	uint32_t events = (c->is_full || c->is_ended ? 0 : EPOLLIN) |
			  (c->is_paused ? EPOLLOUT : 0);
	int r = sd_event_source_set_io_events(c->client, events);

	if (r >= 0)
		r = sd_event_source_set_enabled(
			c->client, events ? SD_EVENT_ON : SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_enabled(
			c->inlet, c->is_full ? SD_EVENT_ON : SD_EVENT_OFF);
	return r;
}

/* ---- calls ---- */

/* Count @n bytes of messages. Return: the bytes of the last one without its end, or -EMSGSIZE. */
static ssize_t count(size_t bytes, const char *part, size_t n)
{
	const char *end;

	for (; (end = memchr(part, '\0', n)); part = end + 1) {
		bytes += end + 1 - part;
		n -= end + 1 - part;
		if (bytes > MESSAGE_BYTES_MAX)
			return -EMSGSIZE;
		bytes = 0;
	}
	return bytes + n < MESSAGE_BYTES_MAX ? (ssize_t)(bytes + n) : -EMSGSIZE;
}

static int end_calls(struct connection *c)
{
	c->is_ended = true;
	c->is_full = false;
	return shutdown(inlet_fd(c), SHUT_WR) < 0 ? -errno : 0;
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

static int forward(struct connection *c)
{
	char part[PART_BYTES];
	ssize_t bytes, n, sent;

	n = recv(client_fd(c), part, sizeof(part), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return end_calls(c);
	bytes = count(c->message_bytes, part, n);
	if (bytes < 0)
		return bytes;
	sent = send(inlet_fd(c), part, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	c->is_full = sent < 0 && errno == EAGAIN;
	if (sent < 0)
		return c->is_full || errno == EINTR ? 0 : -errno;
	if (sent < n)
		bytes = count(c->message_bytes, part, sent);
	c->message_bytes = bytes;
	return drop(c, part, sent);
}

static int forward_or_close(struct connection *c)
{
	int r = forward(c);

	if (r >= 0)
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

static int on_room(sd_event_source *s, int fd, uint32_t events, void *userdata)
{
	return forward_or_close(userdata);
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

static int on_after(sd_event_source *s, void *userdata)
{
	struct connections *all = userdata;

	for (struct connection *c = LIST_FIRST(&all->list), *next; c;
	     c = next) {
		next = LIST_NEXT(c, entry);
		if (!c->is_paused && has_unread(c) && pause_connection(c) < 0)
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
	int pair[2], bytes = INLET_BYTES, r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		       pair) < 0)
		return -errno;
	r = setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (r < 0) {
		r = -errno;
		close(pair[0]);
		close(pair[1]);
		return r;
	}
	*ret = pair[1];
	return add_source(c->all->event, pair[0], EPOLLOUT, on_room, c,
			  &c->inlet);
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
	if (r >= 0)
		sd_varlink_ref(c->link);
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
	struct connection *c;

	LIST_FOREACH(c, &all->list, entry)
		if (c->link == link)
			break;
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
	if (all->accepting)
		unlink(all->path);
	sd_event_source_disable_unref(all->accepting);
	free(all->path);
	*all = (struct connections){};
}
