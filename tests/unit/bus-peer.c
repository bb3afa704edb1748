/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <sys/socket.h>
#include <sys/un.h>

#include "bus.h"
#include "bus-peer.h"

#define DBUS "org.freedesktop.DBus"
#define UNITS_PATH "/org/freedesktop/systemd1/unit"

static int reply_get(struct peer *p, sd_bus_message *m)
{
	_cleanup_free_ char *unit = NULL;
	const char *interface, *property, *cgroup;

	check(sd_bus_path_decode(sd_bus_message_get_path(m), UNITS_PATH,
				 &unit) >= 0);
	check(sd_bus_message_read(m, "ss", &interface, &property) >= 0);
	cgroup = unit ? p->cgroup_of(unit) : "";
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

/* Replies to our calls do not come here. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct peer *p = userdata;
	const char *member = sd_bus_message_get_member(m);
	uint8_t type;

	check(sd_bus_message_get_type(m, &type) >= 0);
	check(type == SD_BUS_MESSAGE_METHOD_CALL ||
	      type == SD_BUS_MESSAGE_SIGNAL);
	if (type == SD_BUS_MESSAGE_SIGNAL)
		return 1;
	if (streq(member, "Hello")) {
		p->greeted = true;
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
		return reply_get(p, m);
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

void peer_listen(struct peer *p, const struct roots *roots,
		 const char *(*cgroup_of)(const char *unit))
{
	_cleanup_free_ char *path = NULL, *address = NULL;

	path = asprintf_or_null("%s/bus", roots->prefix);
	address = asprintf_or_null("unix:path=%s/bus", roots->prefix);
	check(path && address);
	check(setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1) == 0);
	*p = (struct peer){ .listener = listen_at(path),
			    .cgroup_of = cgroup_of };
}

static void accept_daemon(struct peer *p)
{
	int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	sd_id128_t id;

	check(fd >= 0);
	close(p->listener);
	check(sd_id128_randomize(&id) >= 0);
	check(sd_bus_new(&p->bus) >= 0);
	check(sd_bus_set_fd(p->bus, fd, fd) >= 0);
	check(sd_bus_set_server(p->bus, true, id) >= 0);
	check(sd_bus_add_filter(p->bus, NULL, on_message, p) >= 0);
	check(sd_bus_start(p->bus) >= 0);
}

void peer_step(struct peer *p, uint64_t timeout_usec)
{
	int r = sd_bus_process(p->bus, NULL);

	check(r >= 0);
	if (r == 0)
		check(sd_bus_wait(p->bus, timeout_usec) >= 0);
}

static int on_ready(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	check(!sd_bus_message_get_error(reply));
	*(bool *)userdata = true;
	return 1;
}

void peer_serve(struct peer *p)
{
	bool ready = false;
	sd_bus_message *m;

	accept_daemon(p);
	/* Nothing else may come before the reply to Hello. */
	while (!p->greeted)
		peer_step(p, PEER_PATIENCE_USEC);
	m = peer_call(p, ":1.9", DBUS ".Peer", "Ping");
	check(m);
	check(sd_bus_call_async(p->bus, NULL, m, on_ready, &ready,
				PEER_PATIENCE_USEC) >= 0);
	sd_bus_message_unref(m);
	while (!ready)
		peer_step(p, PEER_PATIENCE_USEC);
}

sd_bus_message *peer_call(struct peer *p, const char *sender,
			  const char *interface, const char *member)
{
	sd_bus_message *m;

	if (sd_bus_message_new_method_call(p->bus, &m, BUS_NAME, BUS_PATH,
					   interface, member) < 0)
		return NULL;
	check(sd_bus_message_set_sender(m, sender) >= 0);
	return m;
}
