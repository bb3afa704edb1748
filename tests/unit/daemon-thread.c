/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "bus.h"
#include "daemon-thread.h"

#define DBUS "org.freedesktop.DBus"
#define DBUS_PATH "/org/freedesktop/DBus"
#define UNITS_PATH "/org/freedesktop/systemd1/unit"

/* Who takes longer for an answer hangs. */
#define PATIENCE_USEC 60000000U

/* ---- the bus ---- */

static int reply_get(struct daemon_thread *d, sd_bus_message *m)
{
	_cleanup_free_ char *unit = NULL;
	const char *interface, *property, *cgroup;

	check(sd_bus_path_decode(sd_bus_message_get_path(m), UNITS_PATH,
				 &unit) >= 0);
	check(sd_bus_message_read(m, "ss", &interface, &property) >= 0);
	cgroup = unit ? d->cgroup_of(unit) : "";
	if (streq(property, "ControlGroup"))
		return sd_bus_reply_method_return(m, "v", "s", cgroup);
	if (streq(property, "IOWeight"))
		return sd_bus_reply_method_return(m, "v", "t", UINT64_MAX);
	if (streq(property, "IODeviceWeight"))
		return sd_bus_reply_method_return(m, "v", "a(st)", 0);
	if (streq(property, "FragmentPath"))
		return sd_bus_reply_method_return(m, "v", "s", "");
	check(streq(property, "DropInPaths"));
	return sd_bus_reply_method_return(m, "v", "as", 0);
}

static int reply_name(sd_bus_message *m)
{
	const char *name;

	check(sd_bus_message_read(m, "s", &name) >= 0);
	return sd_bus_reply_method_return(m, "s", name);
}

void daemon_check_message(sd_bus_message *m)
{
	const char *signature = sd_bus_message_get_signature(m, true);

	check(!*signature || sd_bus_message_skip(m, signature) > 0);
	check(sd_bus_message_rewind(m, true) >= 0);
}

/* Replies to our calls do not come here; a second one to the same call does. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct daemon_thread *d = userdata;
	const char *member = sd_bus_message_get_member(m);
	uint8_t type;

	check(sd_bus_message_get_type(m, &type) >= 0);
	check(type == SD_BUS_MESSAGE_METHOD_CALL ||
	      type == SD_BUS_MESSAGE_SIGNAL);
	daemon_check_message(m);
	if (type == SD_BUS_MESSAGE_SIGNAL)
		return 1;
	if (streq(member, "Hello")) {
		d->greeted = true;
		return sd_bus_reply_method_return(m, "s", ":1.1");
	}
	if (streq(member, "RequestName"))
		return sd_bus_reply_method_return(m, "u", 1);
	if (streq(member, "GetNameOwner"))
		return reply_name(m);
	if (streq(member, "GetConnectionUnixUser"))
		return sd_bus_reply_method_return(m, "u", 0);
	if (streq(member, "GetConnectionCredentials"))
		return sd_bus_reply_method_return(m, "a{sv}", 1, "UnixUserID",
						  "u", 0);
	if (streq(member, "Get"))
		return reply_get(d, m);
	check(streq(member, "AddMatch") || streq(member, "RemoveMatch") ||
	      streq(member, "Subscribe"));
	return sd_bus_reply_method_return(m, "");
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(fd >= 0 && strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	check(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	check(listen(fd, 1) == 0);
	return fd;
}

static void serve(struct daemon_thread *d, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	sd_id128_t id;

	check(fd >= 0);
	check(sd_id128_randomize(&id) >= 0);
	check(sd_bus_new(&d->bus) >= 0);
	check(sd_bus_set_fd(d->bus, fd, fd) >= 0);
	check(sd_bus_set_server(d->bus, true, id) >= 0);
	check(sd_bus_add_filter(d->bus, NULL, on_message, d) >= 0);
	check(sd_bus_start(d->bus) >= 0);
}

sd_bus_message *daemon_call(struct daemon_thread *d, const char *sender,
			    const char *interface, const char *member)
{
	sd_bus_message *m;

	if (sd_bus_message_new_method_call(d->bus, &m, BUS_NAME, BUS_PATH,
					   interface, member) < 0)
		return NULL;
	check(sd_bus_message_set_sender(m, sender) >= 0);
	return m;
}

void daemon_client_gone(struct daemon_thread *d, const char *name)
{
	sd_bus_message *m;

	check(sd_bus_message_new_signal(d->bus, &m, DBUS_PATH, DBUS,
					"NameOwnerChanged") >= 0);
	check(sd_bus_message_set_sender(m, DBUS) >= 0);
	check(sd_bus_message_append(m, "sss", name, name, "") >= 0);
	check(sd_bus_send(d->bus, m, NULL) >= 0);
	sd_bus_message_unref(m);
}

/* ---- the daemon ---- */

static void *run(void *userdata)
{
	struct daemon_thread *d = userdata;

	d->result = manager_run(d->manager);
	d->manager = manager_free(d->manager);
	return NULL;
}

void daemon_step(struct daemon_thread *d, uint64_t timeout_usec)
{
	int r = sd_bus_process(d->bus, NULL);

	check(r >= 0);
	if (r == 0)
		check(sd_bus_wait(d->bus, timeout_usec) >= 0);
}

static int on_ready(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	check(!sd_bus_message_get_error(reply));
	*(bool *)userdata = true;
	return 1;
}

void daemon_start(struct daemon_thread *d, const struct roots *roots,
		  const char *(*cgroup_of)(const char *unit))
{
	_cleanup_free_ char *path = NULL, *address = NULL;
	bool ready = false;
	sd_bus_message *m;
	int listener;

	*d = (struct daemon_thread){ .cgroup_of = cgroup_of };
	path = asprintf_or_null("%s/bus", roots->prefix);
	address = asprintf_or_null("unix:path=%s/bus", roots->prefix);
	check(path && address);
	check(setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1) == 0);
	listener = listen_at(path);
	check(manager_new(roots->prefix, false, &d->manager) == 0);
	check(pthread_create(&d->thread, NULL, run, d) == 0);
	serve(d, listener);
	close(listener);
	/* Nothing else may come before the reply to Hello. */
	while (!d->greeted)
		daemon_step(d, PATIENCE_USEC);
	m = daemon_call(d, ":1.9", DBUS ".Peer", "Ping");
	check(m);
	check(sd_bus_call_async(d->bus, NULL, m, on_ready, &ready,
				PATIENCE_USEC) >= 0);
	sd_bus_message_unref(m);
	while (!ready)
		daemon_step(d, PATIENCE_USEC);
}

void daemon_stop(struct daemon_thread *d)
{
	/* It waits for the signal on a signalfd of its own. */
	check(pthread_kill(d->thread, SIGTERM) == 0);
	while (pthread_tryjoin_np(d->thread, NULL) != 0) {
		sd_bus_process(d->bus, NULL);
		usleep(1000);
	}
	check(d->result == 0);
	d->bus = sd_bus_flush_close_unref(d->bus);
}
