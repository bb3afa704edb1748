/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls of a client that reads no replies, on a socket without a bus. */

#include <glib.h>
#include <sys/socket.h>

#include "bus/quota.h"
#include "fake.h"

#define PATH "/org/sutro1"
#define INTERFACE "org.sutro1.Test"

/* More than the limits of quota.c, and their values. */
#define CALLS 5000U
#define QUEUED_MAX 32U
#define QUEUED_REFUSALS_MAX 1024U
#define REPLY_BYTES 10000U
#define SOCKET_BYTES 4096
#define IDLE_ROUNDS 10U

/**
 * struct test - both ends
 * @replies: that the client has received, errors too
 * @refusals: of these
 */
struct test {
	sd_bus *server;
	sd_bus *client;
	unsigned int replies;
	unsigned int refusals;
};

static int on_call(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	g_autofree char *text = g_strnfill(REPLY_BYTES, 'x');

	return sd_bus_reply_method_return(call, "s", text);
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct test *t = userdata;

	t->replies++;
	if (sd_bus_message_is_method_error(m, NULL)) {
		check(sd_bus_message_is_method_error(
			m, SD_BUS_ERROR_LIMITS_EXCEEDED));
		t->refusals++;
	}
	return 1;
}

static void setup(struct test *t)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_METHOD("Get", "", "s", on_call,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_VTABLE_END,
	};
	int fds[2], bytes = SOCKET_BYTES;
	sd_id128_t id;

	*t = (struct test){};
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			 fds) == 0);
	check(sd_id128_randomize(&id) == 0);
	check(sd_bus_new(&t->server) == 0);
	check(sd_bus_set_fd(t->server, fds[0], fds[0]) == 0);
	check(sd_bus_set_server(t->server, true, id) == 0);
	check(sd_bus_start(t->server) >= 0);
	check(sd_bus_new(&t->client) == 0);
	check(sd_bus_set_fd(t->client, fds[1], fds[1]) == 0);
	check(sd_bus_start(t->client) >= 0);
	check(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes,
			 sizeof(bytes)) == 0);
	check(bus_limit_replies(t->server) >= 0);
	check(sd_bus_add_object_vtable(t->server, NULL, PATH, INTERFACE, vtable,
				       NULL) >= 0);
	check(sd_bus_add_filter(t->client, NULL, on_reply, t) >= 0);
}

static void teardown(struct test *t)
{
	sd_bus_close_unref(t->server);
	sd_bus_close_unref(t->client);
}

static bool serve(struct test *t)
{
	bool busy = false;

	while (sd_bus_process(t->server, NULL) > 0)
		busy = true;
	return busy;
}

static uint64_t queued(const struct test *t)
{
	uint64_t n;

	check(sd_bus_get_n_queued_write(t->server, &n) >= 0);
	return n;
}

/* Both ends do their work until there is none; a message may cross the socket in pieces. */
static void settle(struct test *t)
{
	unsigned int idle = 0;

	while (idle < IDLE_ROUNDS) {
		bool busy = serve(t);

		busy |= sd_bus_process(t->client, NULL) > 0;
		idle = busy || queued(t) ? 0 : idle + 1;
	}
}

static void call(struct test *t, const char *interface, const char *member)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	uint64_t cookie; /* without it, no reply is expected */

	check(sd_bus_message_new_method_call(t->client, &m, NULL, PATH,
					     interface, member) >= 0);
	check(sd_bus_send(t->client, m, &cookie) >= 0);
}

static void test_replies_are_read(struct test *t)
{
	settle(t);
	for (unsigned int i = 0; i < 10 * QUEUED_MAX; i++) {
		call(t, INTERFACE, "Get");
		settle(t);
	}
	check(t->replies == 10 * QUEUED_MAX);
	check(!t->refusals);
}

static void check_limits(struct test *t, const char *interface,
			 const char *member)
{
	settle(t);
	for (unsigned int i = 0; i < CALLS; i++) {
		call(t, interface, member);
		serve(t);
		check(queued(t) <= QUEUED_REFUSALS_MAX);
	}
	check(queued(t) == QUEUED_REFUSALS_MAX);
	settle(t);
	check(t->replies < CALLS);
	check(t->replies - t->refusals >= QUEUED_MAX);
	check(t->refusals >= QUEUED_REFUSALS_MAX - QUEUED_MAX);
	/* Calls are served again. */
	t->replies = t->refusals = 0;
	call(t, interface, member);
	settle(t);
	check(t->replies == 1 && !t->refusals);
}

static void test_no_reply_is_read(struct test *t)
{
	check_limits(t, INTERFACE, "Get");
}

/* sd-bus answers these by itself. */
static void test_introspection(struct test *t)
{
	check_limits(t, "org.freedesktop.DBus.Introspectable", "Introspect");
}

int main(void)
{
	run_tests(test_replies_are_read, test_no_reply_is_read,
		  test_introspection);
	return 0;
}
