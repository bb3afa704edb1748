/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls of a client that reads no replies, and accounts of users, on a socket without a bus. The
 * client is the bus, too: it sends calls of many connections, and names the user of each.
 */

#include <glib.h>
#include <sys/socket.h>

#include "bus/authority.h"
#include "bus/bus.h"
#include "bus/properties.h"
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
#define LOOKUPS_OF_CALLS_MAX 64U
#define KEPT_BYTES_MAX (8U << 20)
#define COMMON_KEPT_BYTES_MAX (64U << 20)
/* Connections of many users, whose calls together have time enough. */
#define CROWD 1100U
#define SENDERS_MAX 256U
#define USER 1000U

/**
 * struct test - both ends
 * @replies: that the client has received, errors too
 * @refusals: of these
 * @last: the text of the last refusal
 * @is_silent: the bus names no users, and keeps these questions
 * @question: the last one to polkit, which has no answer yet
 */
struct test {
	struct machine machine;
	struct bus bus;
	sd_bus *server;
	sd_bus *client;
	unsigned int replies;
	unsigned int refusals;
	char *last;
	bool is_silent;
	GPtrArray *lookups;
	sd_bus_message *question;
};

static int on_call(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	g_autofree char *text = g_strnfill(REPLY_BYTES, 'x');

	return sd_bus_reply_method_return(call, "s", text);
}

static int on_metered(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct test *t = userdata;

	return bus_metered(&t->bus, call, on_call, error);
}

/* As methods do that are kept again. */
static int on_change(struct bus *b, sd_bus_message *call, sd_bus_error *error)
{
	uid_t uid;
	int r = bus_caller_uid(b, call, &uid);

	check(r < 0 || uid == USER);
	return r < 0 ? r : sd_bus_reply_method_return(call, "s", "");
}

static int on_known(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return bus_with_authority(userdata, call, ACTION_DUMP, NULL, on_change,
				  error);
}

static int on_authorized(sd_bus_message *call, void *userdata,
			 sd_bus_error *error)
{
	struct test *t = userdata;

	return bus_metered(&t->bus, call, on_known, error);
}

/* Keep the call once more, as methods do that a child process goes on with. */
static int on_setting(struct bus *b, sd_bus_message *call, sd_bus_error *error)
{
	struct kept kept;
	int r = bus_keep_call(b, call, &kept, error);

	bus_release_call(b, &kept);
	return r < 0 ? r : sd_bus_reply_method_return(call, "s", "");
}

static int on_known_set(sd_bus_message *call, void *userdata,
			sd_bus_error *error)
{
	return bus_with_authority(userdata, call, ACTION_DUMP, NULL, on_setting,
				  error);
}

static int on_set(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct test *t = userdata;

	return bus_metered(&t->bus, call, on_known_set, error);
}

static int get_text(sd_bus *bus, const char *path, const char *interface,
		    const char *property, sd_bus_message *reply, void *userdata,
		    sd_bus_error *error)
{
	return sd_bus_message_append(reply, "s", property);
}

static void drop_message(void *m)
{
	sd_bus_message_unref(m);
}

/* The user of the connection ":1.7" is 7. */
static int name_user(sd_bus_message *m)
{
	unsigned int uid;
	const char *name;

	check(sd_bus_message_read(m, "s", &name) >= 0);
	check(sscanf(name, ":1.%u", &uid) == 1);
	check(sd_bus_reply_method_return(m, "u", uid) >= 0);
	return 1;
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct test *t = userdata;

	if (sd_bus_message_is_method_call(m, NULL, "CheckAuthorization")) {
		sd_bus_message_unref(t->question);
		t->question = sd_bus_message_ref(m);
		return 1;
	}
	if (sd_bus_message_is_method_call(m, NULL, NULL)) {
		if (!t->is_silent)
			return name_user(m);
		g_ptr_array_add(t->lookups, sd_bus_message_ref(m));
		return 1;
	}
	t->replies++;
	if (sd_bus_message_is_method_error(m, NULL)) {
		check(sd_bus_message_is_method_error(
			m, SD_BUS_ERROR_LIMITS_EXCEEDED));
		t->refusals++;
		g_free(t->last);
		t->last = g_strdup(sd_bus_message_get_error(m)->message);
	}
	return 1;
}

static void setup(struct test *t)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_METHOD("Get", "", "s", on_call,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("GetMetered", "", "s", on_metered,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("GetAuthorized", "", "s", on_authorized,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("SetAuthorized", "a(sv)", "s", on_set,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_VTABLE_END,
	};
	int fds[2], bytes = SOCKET_BYTES;
	sd_id128_t id;

	*t = (struct test){ .lookups = g_ptr_array_new_with_free_func(
				    drop_message) };
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
	check(sd_event_new(&t->machine.event) >= 0);
	t->bus =
		(struct bus){ .connection = t->server, .machine = &t->machine };
	check(bus_limit_replies(&t->bus) >= 0);
	check(sd_bus_add_object_vtable(t->server, NULL, PATH, INTERFACE, vtable,
				       t) >= 0);
	check(sd_bus_add_filter(t->client, NULL, on_reply, t) >= 0);
}

static void teardown(struct test *t)
{
	sd_bus_message_unref(t->question);
	g_ptr_array_free(t->lookups, true);
	bus_drop_authorizations(&t->bus);
	bus_quotas_done(&t->bus);
	sd_bus_close_unref(t->server);
	sd_bus_close_unref(t->client);
	sd_event_unref(t->machine.event);
	g_free(t->last);
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

/* A call of a connection, whose name the bus adds. */
static void call_from(struct test *t, const char *sender, const char *interface,
		      const char *member)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	uint64_t cookie; /* without it, no reply is expected */

	check(sd_bus_message_new_method_call(t->client, &m, NULL, PATH,
					     interface, member) >= 0);
	if (sender)
		check(sd_bus_message_set_sender(m, sender) >= 0);
	check(sd_bus_send(t->client, m, &cookie) >= 0);
}

static void get_property(struct test *t, unsigned int uid, const char *name)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	g_autofree char *sender = g_strdup_printf(":1.%u", uid);
	uint64_t cookie;

	check(sd_bus_message_new_method_call(t->client, &m, NULL, PATH,
					     "org.freedesktop.DBus.Properties",
					     "Get") >= 0);
	check(sd_bus_message_append(m, "ss", BUS_INTERFACE, name) >= 0);
	check(sd_bus_message_set_sender(m, sender) >= 0);
	check(sd_bus_send(t->client, m, &cookie) >= 0);
	settle(t);
}

static void call(struct test *t, const char *interface, const char *member)
{
	call_from(t, NULL, interface, member);
}

static void method_of_user(struct test *t, unsigned int uid, const char *member)
{
	g_autofree char *sender = g_strdup_printf(":1.%u", uid);

	call_from(t, sender, INTERFACE, member);
}

static void call_of_user(struct test *t, unsigned int uid)
{
	method_of_user(t, uid, "GetMetered");
}

/* A call that waits for polkit, with values that have @n times @bytes together. */
static void set_of_user(struct test *t, unsigned int uid, size_t n,
			size_t bytes)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	g_autofree char *sender = g_strdup_printf(":1.%u", uid);
	g_autofree char *text = g_strnfill(bytes, 'x');
	uint64_t cookie;

	check(sd_bus_message_new_method_call(t->client, &m, NULL, PATH,
					     INTERFACE, "SetAuthorized") >= 0);
	check(sd_bus_message_open_container(m, 'a', "(sv)") >= 0);
	for (size_t i = 0; i < n; i++)
		check(sd_bus_message_append(m, "(sv)", "", "as", 1, text) >= 0);
	check(sd_bus_message_close_container(m) >= 0);
	check(sd_bus_message_set_sender(m, sender) >= 0);
	check(sd_bus_send(t->client, m, &cookie) >= 0);
	settle(t);
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

/* Root has a reply although programs of others read none. */
static void test_no_reply_is_read_but_root_calls(struct test *t)
{
	settle(t);
	call_of_user(t, 0);
	call_of_user(t, USER);
	settle(t);
	check(t->replies == 2 && !t->refusals);
	for (unsigned int i = 0; i < 2 * QUEUED_MAX; i++) {
		call_of_user(t, USER);
		serve(t);
	}
	call_of_user(t, 0);
	serve(t);
	t->replies = 0;
	settle(t);
	check(t->replies == 2 * QUEUED_MAX + 1);
	check(t->refusals && t->refusals <= QUEUED_MAX);
	call_of_user(t, 0);
	settle(t);
	check(t->replies == 2 * QUEUED_MAX + 2);
}

/* Users with accounts of their own, as those of /etc/subuid, share one. */
static void test_common_account(struct test *t)
{
	const uint64_t most_usec = 900000;

	for (unsigned int i = 0; i < 3; i++) {
		check(bus_check_account(&t->bus, USER + i) == 0);
		bus_charge(&t->bus, USER + i, most_usec);
	}
	check(bus_check_account(&t->bus, USER) == -EBUSY);
	check(bus_check_account(&t->bus, USER + 9) == -EBUSY);
	check(bus_check_account(&t->bus, 0) == 0);
}

/* More users than there are accounts take the entry of the user with the debt. */
static void test_debt_outlives_accounts(struct test *t)
{
	check(bus_check_account(&t->bus, USER) == 0);
	bus_charge(&t->bus, USER, 3000000);
	for (unsigned int i = 0; i < 100; i++)
		check(bus_check_account(&t->bus, 2 * USER + i) == -EBUSY);
}

static void test_samples_are_shared(struct test *t)
{
	uint64_t now_usec = machine_now_usec(&t->machine);

	check(bus_check_account(&t->bus, USER) == 0);
	bus_share_samples(&t->bus, USER, now_usec + 10000000);
	bus_share_samples(&t->bus, 0, now_usec + 10000000);
	/* Over long ago. */
	bus_share_samples(&t->bus, USER + 1, now_usec - 1);
	bus_charge_samples(&t->bus, 1900000);
	check(bus_check_account(&t->bus, USER) == 0);
	bus_charge_samples(&t->bus, 1900000);
	check(bus_check_account(&t->bus, USER) == -EBUSY);
	check(bus_check_account(&t->bus, USER + 1) == 0);
}

/* The bus names no user yet, and many connections call for the first time: one call of each is kept. */
static void test_crowd_of_connections(struct test *t)
{
	settle(t);
	t->is_silent = true;
	for (unsigned int i = 0; i < CROWD; i++) {
		call_of_user(t, USER + i);
		settle(t);
		call_of_user(t, USER + i);
		settle(t);
	}
	check(t->replies == t->refusals);
	check(t->refusals == CROWD - LOOKUPS_OF_CALLS_MAX);
	check(startswith(t->last, "Too many programs call sutrod"));
	/* The first call of root waits for the bus as others do. */
	call_of_user(t, 0);
	settle(t);
	check(t->refusals == CROWD - LOOKUPS_OF_CALLS_MAX);
	check(t->lookups->len == CROWD + 1);
	t->replies = 0;
	check(name_user(g_ptr_array_index(t->lookups, CROWD)) > 0);
	settle(t);
	check(t->replies == 1);
	for (unsigned int i = 0; i < CROWD; i++) {
		check(name_user(g_ptr_array_index(t->lookups, i)) > 0);
		settle(t);
	}
	check(t->replies == 1 + CROWD + LOOKUPS_OF_CALLS_MAX);
}

/* The bus has not taken the questions about a crowd yet: these are no replies that wait for a reader. */
static void test_root_behind_a_crowd(struct test *t)
{
	settle(t);
	for (unsigned int i = 0; i < CROWD; i++) {
		call_of_user(t, USER + i);
		serve(t);
	}
	check(queued(t) >= QUEUED_MAX);
	call_of_user(t, 0);
	serve(t);
	check(!t->refusals);
	settle(t);
	check(t->replies == CROWD + 1 && !t->refusals);
}

/* More connections than are remembered call while polkit has a question. */
static void test_user_of_a_kept_call(struct test *t)
{
	settle(t);
	method_of_user(t, USER, "GetAuthorized");
	settle(t);
	check(t->question && !t->replies);
	for (unsigned int i = 1; i <= SENDERS_MAX; i++) {
		call_of_user(t, USER + i);
		settle(t);
	}
	check(t->replies == SENDERS_MAX && !t->refusals);
	check(sd_bus_reply_method_return(t->question, "(bba{ss})", true, false,
					 0) >= 0);
	settle(t);
	check(t->replies == SENDERS_MAX + 1 && !t->refusals);
}

/* A call may be as large as the bus takes it, but those that wait besides may not. */
static void test_bytes_of_kept_calls(struct test *t)
{
	settle(t);
	set_of_user(t, USER, 1, 2 * KEPT_BYTES_MAX);
	check(t->question && !t->replies);
	set_of_user(t, USER, 1, 1);
	check(t->replies == 1 && t->refusals == 1);
	check(startswith(t->last, "The arguments of calls that wait"));
	set_of_user(t, USER + 1, 3, KEPT_BYTES_MAX / 4);
	check(t->replies == 1);
	set_of_user(t, USER + 1, 1, KEPT_BYTES_MAX / 4);
	check(t->replies == 2 && t->refusals == 2);
	set_of_user(t, USER + 1, 1, KEPT_BYTES_MAX / 5);
	check(t->replies == 2);
	/* Many small values need memory, too. */
	set_of_user(t, USER + 2, KEPT_BYTES_MAX / 64, 0);
	set_of_user(t, USER + 2, 1, 0);
	check(t->replies == 3 && t->refusals == 3);
	/* The room is free when the call has its reply. */
	set_of_user(t, USER + 3, 1, KEPT_BYTES_MAX);
	check(sd_bus_reply_method_return(t->question, "(bba{ss})", true, false,
					 0) >= 0);
	settle(t);
	check(t->replies == 4 && t->refusals == 3);
	set_of_user(t, USER + 3, 1, KEPT_BYTES_MAX);
	check(t->replies == 4);
}

/* Users with accounts of their own have a limit together. */
static void test_bytes_of_all_users(struct test *t)
{
	const size_t bytes = KEPT_BYTES_MAX - 1024;
	const unsigned int n = COMMON_KEPT_BYTES_MAX / KEPT_BYTES_MAX;

	settle(t);
	for (unsigned int i = 0; i < n; i++)
		set_of_user(t, USER + i, 1, bytes);
	check(!t->replies);
	set_of_user(t, USER + n, 1, bytes);
	check(t->replies == 1 && t->refusals == 1);
	set_of_user(t, 0, 1, bytes);
	check(t->replies == 2 && t->refusals == 1);
}

/* They are refused as methods are; a constant one has no cost. */
static void test_properties_of_users(struct test *t)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_PROPERTY("List", "s", get_text, 0, 0),
		SD_BUS_PROPERTY("Constant", "s", get_text, 0,
				SD_BUS_VTABLE_PROPERTY_CONST),
		SD_BUS_VTABLE_END,
	};

	check(bus_meter_properties(&t->bus, vtable) >= 0);
	check(sd_bus_add_object_vtable(t->server, NULL, PATH, BUS_INTERFACE,
				       vtable, &t->bus) >= 0);
	settle(t);
	get_property(t, USER, "List");
	check(t->replies == 1 && !t->refusals);
	bus_charge(&t->bus, USER, 1500000);
	get_property(t, USER, "List");
	check(t->replies == 2 && t->refusals == 1);
	get_property(t, USER, "Constant");
	get_property(t, USER + 1, "List");
	get_property(t, 0, "List");
	check(t->replies == 5 && t->refusals == 1);
}

int main(void)
{
	run_tests(test_replies_are_read, test_no_reply_is_read,
		  test_introspection, test_no_reply_is_read_but_root_calls,
		  test_common_account, test_debt_outlives_accounts,
		  test_samples_are_shared, test_crowd_of_connections,
		  test_root_behind_a_crowd, test_user_of_a_kept_call,
		  test_bytes_of_kept_calls, test_bytes_of_all_users,
		  test_properties_of_users);
	return 0;
}
