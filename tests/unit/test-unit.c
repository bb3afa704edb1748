/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Properties of units, from a systemd at the other end of a connection: this program has both.
 *
 * An answer adds a line to the log of the test: "a.service 300 /a 2 files"; a call of another
 * callback "appeared a.service" or "all changed".
 */

#include <glib.h>
#include <limits.h>
#include <sys/socket.h>

#include "fake.h"
#include "policy/unit.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define PATH "/org/freedesktop/systemd1"
#define UNITS_PATH PATH "/unit"

/* Get calls of one request. */
#define PROPERTIES 5U

/**
 * struct test - a follower of a systemd whose units have the same properties
 * @is_silent: systemd keeps calls in @kept, and replies later
 * @error: reply to each call, NULL: none
 */
struct test {
	sd_bus *systemd;
	sd_bus *bus;
	struct units *units;
	GString *log;
	uint64_t weight;
	uint64_t device_weight;
	bool is_silent;
	const char *error;
	unsigned int n_calls;
	GPtrArray *kept;
};

/* ---- without memory ---- */

/* Calls until one fails. */
static unsigned int calls_left = UINT_MAX;

int sd_bus_call_method_async(sd_bus *bus, sd_bus_slot **slot,
			     const char *destination, const char *path,
			     const char *interface, const char *member,
			     sd_bus_message_handler_t callback, void *userdata,
			     const char *types, ...)
{
	va_list ap;
	int r;

	if (!calls_left)
		return -ENOMEM;
	calls_left -= calls_left != UINT_MAX;
	va_start(ap, types);
	r = sd_bus_call_method_asyncv(bus, slot, destination, path, interface,
				      member, callback, userdata, types, ap);
	va_end(ap);
	return r;
}

/* ---- systemd ---- */

static int reply_to(struct test *t, sd_bus_message *m)
{
	sd_bus_message *reply = NULL;
	const char *interface, *name;
	int r;

	if (t->error)
		return sd_bus_reply_method_errorf(m, t->error, "no reply");
	check(sd_bus_message_rewind(m, true) >= 0);
	check(sd_bus_message_read(m, "ss", &interface, &name) >= 0);
	check(sd_bus_message_new_method_return(m, &reply) >= 0);
	if (streq(name, "IOWeight"))
		r = sd_bus_message_append(reply, "v", "t", t->weight);
	else if (streq(name, "IODeviceWeight"))
		r = sd_bus_message_append(reply, "v", "a(st)", 1, "/dev/sda",
					  t->device_weight);
	else if (streq(name, "DropInPaths"))
		r = sd_bus_message_append(reply, "v", "as", 2, "/1", "/2");
	else
		r = sd_bus_message_append(reply, "v", "s",
					  streq(name, "ControlGroup") ? "/a"
								      : "/f");
	check(r >= 0);
	r = sd_bus_send(t->systemd, reply, NULL);
	sd_bus_message_unref(reply);
	return r;
}

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct test *t = userdata;

	if (!sd_bus_message_is_method_call(m, NULL, "Get"))
		return 0;
	t->n_calls++;
	if (t->is_silent) {
		g_ptr_array_add(t->kept, sd_bus_message_ref(m));
		return 1;
	}
	return reply_to(t, m) < 0 ? -EIO : 1;
}

static void drop_message(void *m)
{
	sd_bus_message_unref(m);
}

/* Let both ends handle all messages that are there. */
static void settle(struct test *t)
{
	int n;

	do {
		n = sd_bus_process(t->systemd, NULL);
		check(n >= 0);
		n += sd_bus_process(t->bus, NULL);
	} while (n > 0);
}

static void emit(struct test *t, const char *path, const char *interface,
		 const char *member, const char *types, ...)
{
	sd_bus_message *m;
	va_list ap;

	check(sd_bus_message_new_signal(t->systemd, &m, path, interface,
					member) >= 0);
	/* Without a daemon in between the sender has to be set. */
	check(sd_bus_message_set_sender(m, streq(member, "NameOwnerChanged")
						   ? "org.freedesktop.DBus"
						   : SYSTEMD) >= 0);
	va_start(ap, types);
	check(sd_bus_message_appendv(m, types, ap) >= 0);
	va_end(ap);
	check(sd_bus_send(t->systemd, m, NULL) >= 0);
	sd_bus_message_unref(m);
	settle(t);
}

static void emit_manager(struct test *t, const char *member, const char *name)
{
	emit(t, PATH, SYSTEMD ".Manager", member, "so", name, "/x");
}

static void emit_reloading(struct test *t, int active)
{
	emit(t, PATH, SYSTEMD ".Manager", "Reloading", "b", active);
}

static void emit_changed(struct test *t, const char *unit, const char *property)
{
	_cleanup_free_ char *path = NULL;

	check(sd_bus_path_encode(UNITS_PATH, unit, &path) >= 0);
	emit(t, path, "org.freedesktop.DBus.Properties", "PropertiesChanged",
	     "sa{sv}as", SYSTEMD ".Service", 0, 1, property);
}

/* ---- the follower ---- */

static void on_answer(struct unit_answer *a, void *userdata)
{
	struct test *t = userdata;
	unsigned int n_files = 0;

	while (a->dropins && a->dropins[n_files])
		n_files++;
	n_files += a->fragment && *a->fragment;
	g_string_append_printf(t->log, "%s %llu%s %s %u files\n", a->name,
			       (unsigned long long)a->policy.weight,
			       a->policy.weight_set ? "" : " (unset)",
			       a->cgroup ?: "silent", n_files);
	for (size_t i = 0; i < a->policy.n_statements; i++)
		g_string_append_printf(
			t->log, "  %s %llu\n", a->policy.statements[i].path,
			(unsigned long long)a->policy.statements[i].weight);
}

static void on_appeared(const char *name, void *userdata)
{
	struct test *t = userdata;

	g_string_append_printf(t->log, "appeared %s\n", name);
}

static void on_all_changed(void *userdata)
{
	struct test *t = userdata;

	g_string_append(t->log, "all changed\n");
}

static void setup(struct test *t)
{
	static const struct unit_ops ops = {
		.answer = on_answer,
		.appeared = on_appeared,
		.all_changed = on_all_changed,
	};
	sd_id128_t id;
	int fds[2];

	*t = (struct test){
		.log = g_string_new(NULL),
		.kept = g_ptr_array_new_with_free_func(drop_message),
		.weight = 300,
		.device_weight = 20,
	};
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			 fds) == 0);
	check(sd_id128_randomize(&id) >= 0);
	check(sd_bus_new(&t->systemd) >= 0 && sd_bus_new(&t->bus) >= 0);
	check(sd_bus_set_fd(t->systemd, fds[0], fds[0]) >= 0);
	check(sd_bus_set_server(t->systemd, true, id) >= 0);
	check(sd_bus_add_filter(t->systemd, NULL, on_call, t) >= 0);
	check(sd_bus_start(t->systemd) >= 0);
	check(sd_bus_set_fd(t->bus, fds[1], fds[1]) >= 0);
	check(sd_bus_start(t->bus) >= 0);
	check(units_new(t->bus, &ops, t, &t->units) >= 0);
	settle(t);
}

static void teardown(struct test *t)
{
	units_free(t->units);
	g_ptr_array_free(t->kept, true);
	sd_bus_close_unref(t->bus);
	sd_bus_close_unref(t->systemd);
	g_string_free(t->log, true);
}

static void request(struct test *t, const char *name)
{
	check(units_request(t->units, name) == 0);
}

/* Handle all messages; is the log as expected? It is empty afterwards. */
static bool has_logged(struct test *t, const char *expected)
{
	bool is_same;

	settle(t);
	is_same = streq(t->log->str, expected);
	if (!is_same)
		fprintf(stderr, "\"%s\", not \"%s\"\n", t->log->str, expected);
	g_string_truncate(t->log, 0);
	return is_same;
}

static void reply_to_all(struct test *t)
{
	t->is_silent = false;
	for (guint i = 0; i < t->kept->len; i++)
		check(reply_to(t, g_ptr_array_index(t->kept, i)) >= 0);
	g_ptr_array_set_size(t->kept, 0);
}

/* ---- the tests ---- */

static void test_properties(struct test *t)
{
	request(t, "a.service");
	check(units_pending(t->units) == 1);
	check(has_logged(t, "a.service 300 /a 3 files\n  /dev/sda 20\n"));
	check(units_pending(t->units) == 0);
	check(t->n_calls == PROPERTIES);
}

static void test_weights_that_are_not_set_or_not_valid(struct test *t)
{
	static const uint64_t unset[] = { UINT64_MAX, 0, 10001 };

	for (size_t i = 0; i < ARRAY_SIZE(unset); i++) {
		t->weight = unset[i];
		t->device_weight = unset[i];
		request(t, "a.service");
		check(has_logged(t, "a.service 100 (unset) /a 3 files\n"));
	}
}

static void test_types_without_cgroups(struct test *t)
{
	static const char *const names[] = { "a.service", "a.slice", "a.scope",
					     "a.socket",  "a.mount", "a.swap" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		check(unit_is_name(names[i]));
	check(!unit_is_name("a.device") && !unit_is_name("a"));
	check(units_request(t->units, "a.device") == -EINVAL);
	check(units_pending(t->units) == 0);
}

static void test_one_answer_for_many_requests(struct test *t)
{
	for (unsigned int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u.service", i);
		request(t, name);
	}
	/* It waits for its turn. */
	request(t, "18.service");
	request(t, "18.service");
	check(units_pending(t->units) == 20);
	settle(t);
	check(t->n_calls == 20 * PROPERTIES);
	check(strstr(t->log->str, "18.service"));
}

/* Its properties may be from before the change, so they are requested again. */
static void test_change_during_a_request(struct test *t)
{
	t->is_silent = true;
	request(t, "a.service");
	settle(t);
	request(t, "a.service");
	reply_to_all(t);
	t->weight = 400;
	check(has_logged(t, "a.service 400 /a 3 files\n  /dev/sda 20\n"));
	check(t->n_calls == 2 * PROPERTIES);
}

/* The bus refuses more than 128 calls without a reply. */
/* The unit changed during a request, and the next one cannot be sent. */
static void test_change_without_memory(struct test *t)
{
	for (unsigned int n = 0; n < PROPERTIES; n++) {
		t->is_silent = true;
		request(t, "a.service");
		settle(t);
		request(t, "a.service");
		calls_left = n;
		reply_to_all(t);
		check(has_logged(t, "a.service 100 (unset) silent 0 files\n"));
		check(units_pending(t->units) == 0);
		calls_left = UINT_MAX;
	}
}

static void test_few_calls_are_under_way(struct test *t)
{
	t->is_silent = true;
	for (unsigned int i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u.service", i);
		request(t, name);
	}
	settle(t);
	check(t->n_calls == 16 * PROPERTIES);
	reply_to_all(t);
	settle(t);
	check(t->n_calls == 100 * PROPERTIES);
	check(units_pending(t->units) == 0);
}

static void test_errors(struct test *t)
{
	/* Of systemd: there is no such unit, or it has no such property. */
	t->error = SD_BUS_ERROR_UNKNOWN_OBJECT;
	request(t, "a.service");
	check(has_logged(t, "a.service 100 (unset)  0 files\n"));
	/* Of the bus: systemd is not there. */
	t->error = SD_BUS_ERROR_NO_REPLY;
	request(t, "a.service");
	check(has_logged(t, "a.service 100 (unset) silent 0 files\n"));
	t->error = NULL;
	request(t, "a.service");
	check(has_logged(t, "a.service 300 /a 3 files\n  /dev/sda 20\n"));
}

static void test_new_and_removed_units(struct test *t)
{
	emit_manager(t, "UnitNew", "a.service");
	check(has_logged(t, "appeared a.service\n"));
	emit_manager(t, "UnitNew", "a.device");
	check(has_logged(t, ""));
	/* A request would make systemd load the unit again. */
	emit_manager(t, "UnitRemoved", "a.service");
	check(has_logged(t, "a.service 0 (unset)  0 files\n"));
	check(t->n_calls == 0);
}

static void test_reload(struct test *t)
{
	emit_reloading(t, true);
	emit_manager(t, "UnitRemoved", "a.service");
	emit_manager(t, "UnitNew", "a.service");
	check(has_logged(t, ""));
	emit_reloading(t, false);
	check(has_logged(t, "all changed\n"));
	emit_manager(t, "UnitNew", "a.service");
	check(has_logged(t, "appeared a.service\n"));
}

static void test_systemd_that_starts_again(struct test *t)
{
	emit_reloading(t, true);
	emit(t, "/org/freedesktop/DBus", "org.freedesktop.DBus",
	     "NameOwnerChanged", "sss", SYSTEMD, ":1.1", "");
	check(has_logged(t, ""));
	emit(t, "/org/freedesktop/DBus", "org.freedesktop.DBus",
	     "NameOwnerChanged", "sss", SYSTEMD, "", ":1.2");
	check(has_logged(t, "all changed\n"));
	emit_manager(t, "UnitNew", "a.service");
	check(has_logged(t, "appeared a.service\n"));
}

static void test_changed_properties(struct test *t)
{
	emit_changed(t, "a.service", "IOWeight");
	check(has_logged(t, "a.service 300 /a 3 files\n  /dev/sda 20\n"));
	emit_changed(t, "a.service", "ActiveState");
	emit_changed(t, "a.device", "IOWeight");
	check(has_logged(t, ""));
	check(t->n_calls == PROPERTIES);
}

int main(void)
{
	run_tests(test_properties, test_weights_that_are_not_set_or_not_valid,
		  test_types_without_cgroups, test_one_answer_for_many_requests,
		  test_change_during_a_request, test_change_without_memory,
		  test_few_calls_are_under_way, test_errors,
		  test_new_and_removed_units, test_reload,
		  test_systemd_that_starts_again, test_changed_properties);
	return 0;
}
