/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The interface org.sutro1 on the system bus, documented in
 * Documentation/org.sutro1.xml. The vtable is the only source of the API.
 *
 * The members about devices are in devices.c, those about units in explain.c;
 * authority.c checks with polkit.
 */

#include <sys/socket.h>

#include "bus/authority.h"
#include "bus/background.h"
#include "bus/bus.h"
#include "bus/interface.h"
#include "bus/leaves.h"
#include "bus/log-control.h"
#include "bus/method.h"
#include "bus/pieces.h"
#include "bus/properties.h"
#include "bus/quota.h"
#include "bus/varlink.h"
#include "bus/wait.h"
#include "host/event.h"
#include "host/leaf.h"

/* The reply of RequestName: the daemon owns the name. */
#define REQUEST_NAME_OWNER 1U

/* ---- Reload, properties ---- */

static int reload(struct bus *b, sd_bus_message *call, sd_bus_error *error)
{
	if (b->ops->reload(b->userdata) < 0)
		return sd_bus_error_set(error, SD_BUS_ERROR_FAILED,
					"The configuration cannot be read, and "
					"the last one stays in force; see "
					"\"journalctl -u sutrod\".");
	return sd_bus_reply_method_return(call, "");
}

static int method_reload(sd_bus_message *call, void *userdata,
			 sd_bus_error *error)
{
	return bus_with_authority(userdata, call, ACTION_MANAGE_DEVICES, NULL,
				  reload, error);
}

static int property_version(sd_bus *bus, const char *path,
			    const char *interface, const char *property,
			    sd_bus_message *reply, void *userdata,
			    sd_bus_error *error)
{
	return sd_bus_message_append(reply, "s", SUTRO_VERSION);
}

static int property_dry_run(sd_bus *bus, const char *path,
			    const char *interface, const char *property,
			    sd_bus_message *reply, void *userdata,
			    sd_bus_error *error)
{
	struct bus *b = userdata;

	return sd_bus_message_append(reply, "b", b->machine->dry_run);
}

static int property_control_step(sd_bus *bus, const char *path,
				 const char *interface, const char *property,
				 sd_bus_message *reply, void *userdata,
				 sd_bus_error *error)
{
	struct bus *b = userdata;

	return sd_bus_message_append(reply, "t", b->governor->step_usec);
}

static int property_managed_leaves(sd_bus *bus, const char *path,
				   const char *interface, const char *property,
				   sd_bus_message *reply, void *userdata,
				   sd_bus_error *error)
{
	struct bus *b = userdata;
	int r;

	r = sd_bus_message_open_container(reply, 'a', "s");
	for (size_t i = 0; i < b->machine->topology->n_devices && r >= 0; i++) {
		const struct device *d = b->machine->topology->devices[i];

		if (leaf_is_managed(&b->machine->roots, d))
			r = sd_bus_message_append(reply, "s", d->node);
	}
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* ---- the vtable ---- */

#define METERED(name)                                                     \
	static int metered_##name(sd_bus_message *call, void *userdata,   \
				  sd_bus_error *error)                    \
	{                                                                 \
		return bus_metered(userdata, call, method_##name, error); \
	}

METERED(check_policies)
METERED(dump)
METERED(explain)
METERED(get_policy)
METERED(history)
METERED(list_capacities)
METERED(list_devices)
METERED(list_latencies)
METERED(list_promise_states)
METERED(list_promises)
METERED(list_resyncs)
METERED(list_units)
METERED(list_usage)
METERED(release_devices)
METERED(reload)
METERED(reload_policies)
METERED(reset_policy)
METERED(resolve_path)
METERED(set_policy)
METERED(use_devices)

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS(
		"ListDevices", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", devices),
		metered_list_devices, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS(
		"ResolvePath", SD_BUS_ARGS("s", path),
		SD_BUS_RESULT("s", device, "as", leaves, "aa{sv}", steps),
		metered_resolve_path, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListUnits", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("aa{sv}", units),
				metered_list_units, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("s", unit, "s", path),
				SD_BUS_RESULT("a{sv}", explanation),
				metered_explain, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("UseDevices", SD_BUS_ARGS("as", paths),
				SD_BUS_RESULT("aa{sv}", results),
				metered_use_devices,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ReleaseDevices", SD_BUS_ARGS("as", paths),
				SD_BUS_RESULT("aa{sv}", results),
				metered_release_devices,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListPromises", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("aa{sv}", promises),
				metered_list_promises,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListPromiseStates", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("a(ssssssttd)", states),
				metered_list_promise_states,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS(
		"ListResyncs", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", resyncs),
		metered_list_resyncs, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListCapacities", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("aa{sv}", capacities),
				metered_list_capacities,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListUsage", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("aa{sv}", usage),
				metered_list_usage, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListLatencies", SD_BUS_ARGS("s", unit),
				SD_BUS_RESULT("aa{sv}", latencies),
				metered_list_latencies,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("History",
				SD_BUS_ARGS("s", unit, "s", key, "s", path),
				SD_BUS_RESULT("a(tddd)", rows), metered_history,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("SetPolicy",
				SD_BUS_ARGS("s", unit, "a(ss)", assignments,
					    "s", lifetime),
				SD_BUS_NO_RESULT, metered_set_policy,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ResetPolicy",
				SD_BUS_ARGS("s", unit, "s", lifetime),
				SD_BUS_NO_RESULT, metered_reset_policy,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("GetPolicy", SD_BUS_ARGS("s", unit),
				SD_BUS_RESULT("aa{sv}", assignments),
				metered_get_policy, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("CheckPolicies", SD_BUS_ARGS("a(ss)", files),
				SD_BUS_RESULT("s", verdict, "aa{sv}", devices),
				metered_check_policies,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ReloadPolicies", SD_BUS_NO_ARGS,
				SD_BUS_NO_RESULT, metered_reload_policies,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
				metered_reload, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Dump", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("s", text), metered_dump,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_SIGNAL_WITH_ARGS("WeightChanged",
				SD_BUS_ARGS("s", cgroup, "s", leaf, "t", old,
					    "t", new, "s", reason),
				0),
	SD_BUS_SIGNAL_WITH_ARGS("PromiseChanged",
				SD_BUS_ARGS("s", unit, "s", key, "s", path, "s",
					    state, "s", cause),
				0),
	SD_BUS_PROPERTY("Version", "s", property_version, 0,
			SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("DryRun", "b", property_dry_run, 0,
			SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("ManagedLeaves", "as", property_managed_leaves, 0,
			SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("PolicyErrors", "as", property_policy_errors, 0,
			SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("MistakenPolicyFiles", "a(sb)",
			property_mistaken_policy_files, 0, 0),
	SD_BUS_PROPERTY("ControlStepUSec", "t", property_control_step, 0, 0),
	SD_BUS_VTABLE_END,
};

/* ---- life ---- */

/* Only the owner of the name may replace the socket of another daemon. */
static void open_varlink(struct bus *b)
{
	const char *run = b->machine->roots.run;
	_cleanup_free_ char *path = asprintf_or_null("%s/" VARLINK_SOCKET, run);
	int r = varlink_open(b, &b->varlink);

	if (r < 0 && r != -EOPNOTSUPP)
		log_event(
			EVENT_VARLINK_FAILED, LOG_WARNING,
			EVENT_FIELDS({ "SUTRO_FILE", path ?: run }),
			"Cannot serve io.sutro.Status at %s, going on without varlink: %s",
			path ?: run, strerror(-r));
}

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	struct bus *b = userdata;
	const sd_bus_error *e = sd_bus_message_get_error(reply);
	uint32_t code = 0;

	if (!e)
		sd_bus_message_read(reply, "u", &code);
	if (code == REQUEST_NAME_OWNER) {
		open_varlink(b);
		b->is_open = true;
		b->ops->opened(b->userdata);
		return 0;
	}
	log_error("Cannot take the bus name " BUS_NAME "%s%s. Is another "
		  "sutrod running?",
		  e ? ": " : "", e ? e->message : "");
	return sd_event_exit(b->machine->event, -EBUSY);
}

int bus_open(struct bus *b)
{
	int r;

	r = sd_bus_open_system(&b->connection);
	if (r < 0)
		return log_error_errno(r, "Cannot connect to the system bus: "
					  "%m");
	/* Without the bus there is no systemd to follow; the service manager restarts
	 * this daemon when the bus is back. Weights stay in force.
	 */
	r = sd_bus_set_exit_on_disconnect(b->connection, true);
	if (r >= 0)
		r = bus_open_pieces(b);
	/* Filters that are added later run first: no refused call has a cost. */
	if (r >= 0)
		r = bus_meter_properties(b, vtable);
	if (r >= 0)
		r = bus_limit_replies(b);
	if (r >= 0)
		r = sd_bus_add_object_vtable(b->connection, &b->vtable,
					     BUS_PATH, BUS_INTERFACE, vtable,
					     b);
	if (r >= 0)
		r = bus_add_log_control(b->connection);
	if (r >= 0)
		r = sd_bus_attach_event(b->connection, b->machine->event,
					MACHINE_PRIORITY_CALLS);
	if (r >= 0)
		r = sd_bus_request_name_async(b->connection, NULL, BUS_NAME, 0,
					      on_name, b);
	if (r < 0)
		return log_error_errno(r, "Cannot serve on the system bus: %m");
	return 0;
}

void bus_close(struct bus *b)
{
	varlink_close(b->varlink);
	b->varlink = NULL;
	bus_drop_waiters(b);
	bus_drop_background(b);
	bus_drop_changes(b);
	bus_drop_authorizations(b);
	bus_drop_pieces(b);
	bus_quotas_done(b);
	b->vtable = sd_bus_slot_unref(b->vtable);
}

/* ---- introspection without a bus ---- */

static int connect_pair(sd_bus **ret_server, sd_bus **ret_client)
{
	sd_id128_t id;
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       fds) < 0)
		return -errno;
	r = sd_id128_randomize(&id);
	if (r >= 0)
		r = sd_bus_new(ret_server);
	if (r >= 0)
		r = sd_bus_set_fd(*ret_server, fds[0], fds[0]);
	if (r >= 0)
		r = sd_bus_set_server(*ret_server, true, id);
	if (r >= 0)
		r = sd_bus_start(*ret_server);
	if (r >= 0)
		r = sd_bus_new(ret_client);
	if (r >= 0)
		r = sd_bus_set_fd(*ret_client, fds[1], fds[1]);
	if (r >= 0)
		r = sd_bus_start(*ret_client);
	return r;
}

static int on_xml(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const char *xml, *begin, *end;
	char **ret = userdata;

	if (sd_bus_message_read(reply, "s", &xml) < 0)
		return -EIO;
	/* Without the interfaces that sd-bus adds to every object. */
	begin = strstr(xml, " <interface name=\"" BUS_INTERFACE "\">");
	end = begin ? strstr(begin, "</interface>\n") : NULL;
	if (!end)
		return -EIO;
	*ret = asprintf_or_null("<node>\n%.*s</node>\n",
				(int)(end + strlen("</interface>\n") - begin),
				begin);
	return *ret ? 0 : -ENOMEM;
}

int bus_introspect(char **ret)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *server = NULL;
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *client = NULL;
	_cleanup_free_ char *xml = NULL;
	int r;

	r = connect_pair(&server, &client);
	if (r >= 0)
		r = sd_bus_add_object_vtable(server, NULL, BUS_PATH,
					     BUS_INTERFACE, vtable, NULL);
	if (r >= 0)
		r = sd_bus_call_method_async(
			client, NULL, NULL, BUS_PATH,
			"org.freedesktop.DBus.Introspectable", "Introspect",
			on_xml, &xml, "");
	while (r >= 0 && !xml) {
		int busy;

		r = sd_bus_process(server, NULL);
		busy = r;
		if (r >= 0)
			r = sd_bus_process(client, NULL);
		if (r == 0 && busy == 0 && !xml)
			r = sd_bus_wait(client, 10000);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(xml);
	return 0;
}
