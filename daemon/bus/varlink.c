/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The varlink interface io.sutro.Status, which only shows:
 *
 *	varlinkctl call /run/sutro/io.sutro.Status io.sutro.Status.ListGuarantees {}
 *	varlinkctl call --more ...
 *
 * A method without the flag "more" has one reply with the whole list. With it, a reply follows for
 * each change, again with the whole list: once a second, the lists that a client follows are made
 * anew, and are sent where they differ from the last ones. So a client needs no second call and
 * merges nothing, and fast changes cost no more than slow ones.
 *
 * io.systemd.Metrics on the same socket has the guarantees as metrics; see report.c.
 *
 * The lists are those of the bus, made by the same functions (method.h). Users have the same
 * accounts (quota.c): a call of a user whose account is overdrawn is refused, and a follower gets
 * no reply meanwhile.
 *
 * A client may send many calls and read no reply. sd-varlink would keep 16 MiB of replies for each
 * connection, also of its own ones, as that of GetInterfaceDescription. So after each event of the
 * loop a connection whose socket takes no more leaves the loop, until the socket is writable again.
 */

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <systemd/sd-varlink-idl.h>
#include <systemd/sd-varlink.h>

#include "bus/bus.h"
#include "bus/json.h"
#include "bus/method.h"
#include "bus/quota.h"
#include "bus/report.h"
#include "bus/varlink.h"

#define INTERFACE "io.sutro.Status"
#define SOCKET_MODE 0666

#define CONNECTIONS_MAX 128U
#define CONNECTIONS_PER_USER_MAX 16U
#define PERIOD_USEC 1000000ULL
#define ACCURACY_USEC 100000ULL

/* ---- the interface ---- */

#define STRING(name) SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_STRING, 0)
#define STRINGS(name) \
	SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_STRING, SD_VARLINK_ARRAY)
#define BOOL(name) SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_BOOL, 0)
#define INT(name) SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_INT, 0)
#define FLOAT(name) SD_VARLINK_DEFINE_FIELD(name, SD_VARLINK_FLOAT, 0)
#define ARRAY(field, type) ARRAY_OF(field, type, SD_VARLINK_REGULAR)
#define OUTPUT(field, type) ARRAY_OF(field, type, SD_VARLINK_OUTPUT)
#define ARRAY_OF(field, type, direction)       \
	{ .name = #field,                      \
	  .field_type = SD_VARLINK_NAMED_TYPE, \
	  .named_type = #type,                 \
	  .symbol = &vl_type_##type,           \
	  .field_flags = SD_VARLINK_ARRAY,     \
	  .field_direction = direction }

static SD_VARLINK_DEFINE_STRUCT_TYPE(
	Device, STRING(node), STRING(name), STRING(kind), STRING(devno),
	STRINGS(slaves), STRINGS(aliases), BOOL(leaf), BOOL(managed),
	BOOL(hung), INT(size_bytes), SD_VARLINK_FIELD_COMMENT("Of a leaf"),
	SD_VARLINK_DEFINE_FIELD(scheduler, SD_VARLINK_STRING,
				SD_VARLINK_NULLABLE));

static SD_VARLINK_DEFINE_STRUCT_TYPE(DeviceWeight, STRING(path), INT(weight));

static SD_VARLINK_DEFINE_STRUCT_TYPE(
	Unit, SD_VARLINK_FIELD_COMMENT("Empty for a cgroup that is no unit"),
	STRING(unit), STRING(cgroup), INT(weight), BOOL(weight_set),
	ARRAY(device_weights, DeviceWeight));

static SD_VARLINK_DEFINE_STRUCT_TYPE(GuaranteeLeaf, STRING(leaf),
				     STRING(scheduler), FLOAT(share_needed),
				     FLOAT(share_allotted), FLOAT(share_got),
				     FLOAT(backlog), INT(weight),
				     FLOAT(cost_ns), FLOAT(price));

static SD_VARLINK_DEFINE_STRUCT_TYPE(
	Guarantee, STRING(unit), STRING(cgroup), STRING(key), STRING(path),
	STRING(device),
	SD_VARLINK_FIELD_COMMENT(
		"Bytes or requests per second, or microseconds"),
	INT(value), FLOAT(percent), INT(importance), STRING(source),
	FLOAT(percentile), STRING(measured_at), STRING(state), STRING(cause),
	INT(got), FLOAT(granted), FLOAT(gain), FLOAT(amplification),
	FLOAT(reserve), ARRAY(leaves, GuaranteeLeaf));

static SD_VARLINK_DEFINE_STRUCT_TYPE(
	Capacity,
	SD_VARLINK_FIELD_COMMENT("As declared; the device is \"\" without one"),
	STRING(path), STRING(device),
	SD_VARLINK_FIELD_COMMENT("Of the floors that count"), STRING(key),
	SD_VARLINK_FIELD_COMMENT("Bytes or requests per second"), INT(capacity),
	INT(promised), INT(left));

static SD_VARLINK_DEFINE_METHOD_FULL(ListDevices, SD_VARLINK_SUPPORTS_MORE,
				     OUTPUT(devices, Device));
static SD_VARLINK_DEFINE_METHOD_FULL(ListUnits, SD_VARLINK_SUPPORTS_MORE,
				     OUTPUT(units, Unit));
static SD_VARLINK_DEFINE_METHOD_FULL(ListGuarantees, SD_VARLINK_SUPPORTS_MORE,
				     OUTPUT(guarantees, Guarantee));
static SD_VARLINK_DEFINE_METHOD_FULL(ListCapacities, SD_VARLINK_SUPPORTS_MORE,
				     OUTPUT(capacities, Capacity));
static SD_VARLINK_DEFINE_ERROR(TooManyCalls);

static SD_VARLINK_DEFINE_INTERFACE(
	status, INTERFACE,
	SD_VARLINK_INTERFACE_COMMENT(
		"Devices, units, guarantees and capacities of sutrod; see sutrod(8)"),
	SD_VARLINK_SYMBOL_COMMENT("A block device"), &vl_type_Device,
	&vl_type_DeviceWeight, &vl_type_Unit, &vl_type_GuaranteeLeaf,
	SD_VARLINK_SYMBOL_COMMENT("A floor, ceiling or latency target"),
	&vl_type_Guarantee,
	SD_VARLINK_SYMBOL_COMMENT(
		"A rate that all floors on a device together may promise"),
	&vl_type_Capacity,
	SD_VARLINK_SYMBOL_COMMENT(
		"All block devices; with \"more\" again when one changes"),
	&vl_method_ListDevices,
	SD_VARLINK_SYMBOL_COMMENT(
		"All units that sutrod follows; with \"more\" again"),
	&vl_method_ListUnits,
	SD_VARLINK_SYMBOL_COMMENT(
		"All guarantees and limits; with \"more\" again"),
	&vl_method_ListGuarantees,
	SD_VARLINK_SYMBOL_COMMENT(
		"All declared capacities; with \"more\" again"),
	&vl_method_ListCapacities,
	SD_VARLINK_SYMBOL_COMMENT("Calls of this user take too much time"),
	&vl_error_TooManyCalls);

/* ---- lists ---- */

enum list {
	LIST_DEVICES,
	LIST_UNITS,
	LIST_GUARANTEES,
	LIST_CAPACITIES,
	LIST_METRICS,
	LISTS,
};

static const struct {
	const char *field;
	int (*append)(struct bus *b, sd_bus_message *m);
} lists[LISTS] = {
	[LIST_DEVICES] = { "devices", bus_append_devices },
	[LIST_UNITS] = { "units", bus_append_units },
	[LIST_GUARANTEES] = { "guarantees", bus_append_promises },
	[LIST_CAPACITIES] = { "capacities", bus_append_capacities },
	[LIST_METRICS] = { NULL, bus_append_promises },
};

/**
 * struct follower - a call with "more"
 * @sent: the list of the last reply
 */
struct follower {
	struct follower *next;
	sd_varlink *link;
	enum list list;
	sd_json_variant *sent;
};

/**
 * struct connection - of a client
 * @writable: reports that the socket takes bytes again; NULL: calls are served
 */
struct connection {
	struct connection *next;
	struct varlink *varlink;
	sd_varlink *link;
	sd_event_source *writable;
};

/**
 * struct varlink - the server
 * @timer: for followers
 * @after: runs after each event while there are connections
 */
struct varlink {
	struct bus *bus;
	sd_varlink_server *server;
	sd_event_source *timer;
	sd_event_source *after;
	struct follower *followers;
	struct connection *connections;
	char *path;
};

/* Make the reply with a list. The bus message that holds it is never sent. */
static int make_list(struct varlink *v, enum list list, sd_json_variant **ret)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_signal(v->bus->connection, &m, BUS_PATH,
				      BUS_INTERFACE, "List");
	if (r >= 0)
		r = lists[list].append(v->bus, m);
	if (r >= 0)
		r = sd_bus_message_seal(m, 1, 0);
	if (r >= 0)
		r = sd_bus_message_rewind(m, true);
	return r < 0 ? r : bus_message_to_json(m, ret);
}

static int reply_with(sd_varlink *link, enum list list, bool is_last,
		      sd_json_variant *value)
{
	_cleanup_(sd_json_variant_unrefp) sd_json_variant *reply = NULL;
	int r = sd_json_variant_set_field(&reply, lists[list].field, value);

	if (r < 0)
		return r;
	return is_last ? sd_varlink_reply(link, reply)
		       : sd_varlink_notify(link, reply);
}

/* ---- followers ---- */

static void follower_free(struct varlink *v, struct follower *f)
{
	struct follower **at = &v->followers;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	sd_json_variant_unref(f->sent);
	sd_varlink_unref(f->link);
	free(f);
}

static void drop_followers(struct varlink *v, const sd_varlink *link)
{
	for (struct follower *f = v->followers, *next; f; f = next) {
		next = f->next;
		if (f->link == link)
			follower_free(v, f);
	}
}

/* A follower that does not read its replies gets no further ones until it does. */
static int follow(struct follower *f, sd_json_variant *value)
{
	int r;

	if (sd_json_variant_equal(f->sent, value) ||
	    sd_varlink_get_events(f->link) & EPOLLOUT)
		return 0;
	r = reply_with(f->link, f->list, false, value);
	if (r >= 0) {
		sd_json_variant_unref(f->sent);
		f->sent = sd_json_variant_ref(value);
	}
	return r;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
	sd_json_variant *made[LISTS] = {};
	struct varlink *v = userdata;
	int r = 0;

	for (struct follower *f = v->followers, *next; f && r >= 0; f = next) {
		uint64_t began = cpu_usec();
		uid_t uid;

		next = f->next;
		if (sd_varlink_get_peer_uid(f->link, &uid) < 0 ||
		    bus_check_account(v->bus, uid) < 0)
			continue;
		if (!made[f->list])
			r = make_list(v, f->list, &made[f->list]);
		if (r >= 0 && follow(f, made[f->list]) < 0)
			sd_varlink_close(f->link);
		bus_charge(v->bus, uid, cpu_usec() - began);
	}
	for (enum list i = 0; i < LISTS; i++)
		sd_json_variant_unref(made[i]);
	if (r < 0)
		log_debug_errno(r, "A list for varlink could not be made: %m");
	if (!v->followers)
		return sd_event_source_set_enabled(s, SD_EVENT_OFF);
	return sd_event_source_set_time_relative(s, PERIOD_USEC);
}

static int add_follower(struct varlink *v, sd_varlink *link, enum list list,
			sd_json_variant *value)
{
	struct follower *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	r = reply_with(link, list, false, value);
	if (r < 0) {
		free(f);
		return r;
	}
	*f = (struct follower){ v->followers, sd_varlink_ref(link), list,
				sd_json_variant_ref(value) };
	v->followers = f;
	if (sd_event_source_get_enabled(v->timer, NULL) > 0)
		return 0;
	r = sd_event_source_set_time_relative(v->timer, PERIOD_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(v->timer, SD_EVENT_ON);
}

/* ---- connections ---- */

static void connection_free(struct connection *c)
{
	struct connection **at = &c->varlink->connections;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	sd_event_source_disable_unref(c->writable);
	sd_varlink_unref(c->link);
	free(c);
}

static int on_connect(sd_varlink_server *server, sd_varlink *link,
		      void *userdata)
{
	struct connection *c = calloc(1, sizeof(*c));
	struct varlink *v = userdata;

	if (!c)
		return -ENOMEM;
	*c = (struct connection){ .next = v->connections,
				  .varlink = v,
				  .link = sd_varlink_ref(link) };
	v->connections = c;
	return sd_event_source_set_enabled(v->after, SD_EVENT_ON);
}

static void on_disconnect(sd_varlink_server *server, sd_varlink *link,
			  void *userdata)
{
	struct varlink *v = userdata;

	drop_followers(v, link);
	for (struct connection *c = v->connections; c; c = c->next)
		if (c->link == link) {
			connection_free(c);
			break;
		}
	if (!v->connections)
		sd_event_source_set_enabled(v->after, SD_EVENT_OFF);
}

static int on_writable(sd_event_source *s, int fd, uint32_t events,
		       void *userdata)
{
	struct connection *c = userdata;

	c->writable = sd_event_source_disable_unref(c->writable);
	if (sd_varlink_attach_event(c->link, c->varlink->bus->machine->event,
				    MACHINE_PRIORITY_CALLS) < 0)
		sd_varlink_close(c->link);
	return 0;
}

/* After a reply the socket still takes bytes, unless the client has not read those before. */
static bool is_full(struct connection *c)
{
	struct pollfd p = { sd_varlink_get_fd(c->link), POLLOUT, 0 };

	return sd_varlink_get_events(c->link) > 0 &&
	       sd_varlink_get_events(c->link) & EPOLLOUT && p.fd >= 0 &&
	       poll(&p, 1, 0) == 0;
}

/* The loop has sd-varlink's own event source of the socket, so this one is of a duplicate. */
static int pause_connection(struct connection *c)
{
	int fd = fcntl(sd_varlink_get_fd(c->link), F_DUPFD_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	r = sd_event_add_io(c->varlink->bus->machine->event, &c->writable, fd,
			    EPOLLOUT, on_writable, c);
	if (r < 0) {
		close(fd);
		return r;
	}
	sd_event_source_set_io_fd_own(c->writable, true);
	r = sd_event_source_set_priority(c->writable, MACHINE_PRIORITY_CALLS);
	if (r >= 0)
		sd_varlink_detach_event(c->link);
	return r;
}

static int on_after(sd_event_source *s, void *userdata)
{
	struct varlink *v = userdata;

	for (struct connection *c = v->connections, *next; c; c = next) {
		next = c->next;
		if (!c->writable && is_full(c) && pause_connection(c) < 0)
			sd_varlink_close(c->link);
	}
	return 0;
}

/* ---- methods ---- */

static int run(struct varlink *v, sd_varlink *link, sd_json_variant *parameters,
	       sd_varlink_method_flags_t flags, enum list list)
{
	static const sd_json_dispatch_field no_fields[] = { {} };
	_cleanup_(sd_json_variant_unrefp) sd_json_variant *value = NULL;
	int r;

	r = sd_varlink_dispatch(link, parameters, no_fields, NULL);
	if (r != 0)
		return r;
	r = make_list(v, list, &value);
	if (r < 0)
		return r;
	if (list == LIST_METRICS)
		return report_metrics(link, value);
	if (flags & SD_VARLINK_METHOD_MORE)
		return add_follower(v, link, list, value);
	return reply_with(link, list, true, value);
}

static int run_metered(sd_varlink *link, sd_json_variant *parameters,
		       sd_varlink_method_flags_t flags, struct varlink *v,
		       enum list list)
{
	uint64_t began = cpu_usec();
	uid_t uid;
	int r;

	r = sd_varlink_get_peer_uid(link, &uid);
	if (r < 0)
		return r;
	if (bus_check_account(v->bus, uid) < 0)
		return sd_varlink_error(link, INTERFACE ".TooManyCalls", NULL);
	r = run(v, link, parameters, flags, list);
	bus_charge(v->bus, uid, cpu_usec() - began);
	return r;
}

static int list_devices(sd_varlink *link, sd_json_variant *parameters,
			sd_varlink_method_flags_t flags, void *userdata)
{
	return run_metered(link, parameters, flags, userdata, LIST_DEVICES);
}

static int list_units(sd_varlink *link, sd_json_variant *parameters,
		      sd_varlink_method_flags_t flags, void *userdata)
{
	return run_metered(link, parameters, flags, userdata, LIST_UNITS);
}

static int list_guarantees(sd_varlink *link, sd_json_variant *parameters,
			   sd_varlink_method_flags_t flags, void *userdata)
{
	return run_metered(link, parameters, flags, userdata, LIST_GUARANTEES);
}

static int list_capacities(sd_varlink *link, sd_json_variant *parameters,
			   sd_varlink_method_flags_t flags, void *userdata)
{
	return run_metered(link, parameters, flags, userdata, LIST_CAPACITIES);
}

static int list_metrics(sd_varlink *link, sd_json_variant *parameters,
			sd_varlink_method_flags_t flags, void *userdata)
{
	return run_metered(link, parameters, flags, userdata, LIST_METRICS);
}

static int describe_metrics(sd_varlink *link, sd_json_variant *parameters,
			    sd_varlink_method_flags_t flags, void *userdata)
{
	return report_families(link);
}

/* ---- life ---- */

static int serve(struct varlink *v)
{
	sd_event *event = v->bus->machine->event;
	int r;

	r = sd_varlink_server_new(&v->server,
				  SD_VARLINK_SERVER_ACCOUNT_UID |
					  SD_VARLINK_SERVER_INHERIT_USERDATA);
	if (r < 0)
		return r;
	sd_varlink_server_set_userdata(v->server, v);
	sd_varlink_server_set_connections_max(v->server, CONNECTIONS_MAX);
	sd_varlink_server_set_connections_per_uid_max(v->server,
						      CONNECTIONS_PER_USER_MAX);
	r = sd_varlink_server_set_info(v->server, "Sutro", "sutrod",
				       SUTRO_VERSION, NULL);
	if (r >= 0)
		r = sd_varlink_server_add_interface(v->server,
						    &vl_interface_status);
	if (r >= 0)
		r = report_add(v->server);
	if (r >= 0)
		r = sd_varlink_server_bind_method_many(
			v->server, INTERFACE ".ListDevices", list_devices,
			INTERFACE ".ListUnits", list_units,
			INTERFACE ".ListGuarantees", list_guarantees,
			INTERFACE ".ListCapacities", list_capacities,
			REPORT_INTERFACE ".List", list_metrics,
			REPORT_INTERFACE ".Describe", describe_metrics);
	if (r >= 0)
		r = sd_varlink_server_bind_connect(v->server, on_connect);
	if (r >= 0)
		r = sd_varlink_server_bind_disconnect(v->server, on_disconnect);
	if (r >= 0)
		r = sd_event_add_post(event, &v->after, on_after, v);
	if (r >= 0)
		r = sd_event_source_set_enabled(v->after, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &v->timer,
					       CLOCK_MONOTONIC, PERIOD_USEC,
					       ACCURACY_USEC, on_timer, v);
	if (r >= 0)
		r = sd_event_source_set_priority(v->timer,
						 MACHINE_PRIORITY_CALLS);
	if (r >= 0)
		r = sd_event_source_set_enabled(v->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_varlink_server_attach_event(v->server, event,
						   MACHINE_PRIORITY_CALLS);
	if (r >= 0)
		r = sd_varlink_server_listen_address(v->server, v->path,
						     SOCKET_MODE);
	return r;
}

int varlink_open(struct bus *b, struct varlink **ret)
{
	struct varlink *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	v->bus = b;
	v->path = asprintf_or_null("%s/" INTERFACE, b->machine->roots.run);
	r = v->path ? serve(v) : -ENOMEM;
	if (r < 0) {
		varlink_close(v);
		return r;
	}
	*ret = v;
	return 0;
}

void varlink_close(struct varlink *v)
{
	if (!v)
		return;
	while (v->followers)
		follower_free(v, v->followers);
	/* The server would live as long as these. */
	while (v->connections) {
		sd_varlink *link = sd_varlink_ref(v->connections->link);

		connection_free(v->connections);
		sd_varlink_close_unref(link);
	}
	sd_event_source_disable_unref(v->timer);
	sd_event_source_disable_unref(v->after);
	if (v->server) {
		sd_varlink_server_shutdown(v->server);
		sd_varlink_server_unref(v->server);
		unlink(v->path);
	}
	free(v->path);
	free(v);
}
