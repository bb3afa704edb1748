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
 * The lists are those of the bus, made by the same functions (method.h), and in pieces where they
 * have an entry for each cgroup (pieces.c). Users have the same accounts (quota.c): a call of a user
 * whose account is overdrawn is refused, and a follower gets no reply meanwhile. connection.c charges
 * calls, and delays those of an overdrawn account.
 */

#include <sys/epoll.h>
#include <systemd/sd-varlink.h>

#include "bus/bus.h"
#include "bus/connection.h"
#include "bus/json-list.h"
#include "bus/json.h"
#include "bus/method.h"
#include "bus/quota.h"
#include "bus/report.h"
#include "bus/varlink-interface.h"
#include "bus/varlink.h"

#define CONNECTIONS_MAX 128U
#define CONNECTIONS_PER_USER_MAX 16U
#define PERIOD_USEC 1000000ULL
#define ACCURACY_USEC 100000ULL

/* ---- lists ---- */

enum list {
	LIST_DEVICES,
	LIST_UNITS,
	LIST_GUARANTEES,
	LIST_CAPACITIES,
	LIST_METRICS,
	LISTS,
};

/**
 * struct varlink_list - a list that a method replies with
 * @field: of the reply
 * @append: makes all of it
 * @append_each: makes the entries of a cgroup, in pieces
 */
static const struct varlink_list {
	const char *field;
	int (*append)(struct bus *b, sd_bus_message *m);
	bus_append_t append_each;
} lists[LISTS] = {
	[LIST_DEVICES] = { "devices", .append = bus_append_devices },
	[LIST_UNITS] = { "units", .append_each = bus_append_units },
	[LIST_GUARANTEES] = { "guarantees",
			      .append_each = bus_append_promises },
	[LIST_CAPACITIES] = { "capacities", .append = bus_append_capacities },
	[LIST_METRICS] = { .append_each = bus_append_promises },
};

/**
 * struct request - a list that is being made
 * @made: as JSON
 * @link: of the call; NULL: for followers
 * @has_more: the call has the flag "more"
 * @held: a metric that is sent when the next one is there, or as the last one
 */
struct request {
	struct json_list made;
	LIST_ENTRY(request) entry;
	struct varlink *varlink;
	enum list list;
	sd_varlink *link;
	bool has_more;
	sd_json_variant *held;
};

/**
 * struct follower - a call with "more"
 * @sent: the list of the last reply
 */
struct follower {
	LIST_ENTRY(follower) entry;
	sd_varlink *link;
	enum list list;
	sd_json_variant *sent;
};

/**
 * struct varlink - the server
 * @timer: for followers
 * @requests: lists that are being made
 */
struct varlink {
	struct bus *bus;
	sd_varlink_server *server;
	sd_event_source *timer;
	struct connections connections;
	LIST_HEAD(, follower) followers;
	LIST_HEAD(, request) requests;
};

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

static void follower_free(struct follower *f)
{
	LIST_REMOVE(f, entry);
	sd_json_variant_unref(f->sent);
	sd_varlink_unref(f->link);
	free(f);
}

static void drop_followers(struct varlink *v, const sd_varlink *link)
{
	for (struct follower *f = LIST_FIRST(&v->followers), *next; f;
	     f = next) {
		next = LIST_NEXT(f, entry);
		if (f->link == link)
			follower_free(f);
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

/* Followers that may not cause work now get a later list. */
static bool may_follow(struct varlink *v, const struct follower *f, uid_t *ret)
{
	return sd_varlink_get_peer_uid(f->link, ret) >= 0 &&
	       bus_check_account(v->bus, *ret) >= 0;
}

/* The first one pays for the list, which took @usec. */
static void send_to_followers(struct varlink *v, enum list list,
			      sd_json_variant *value, uint64_t usec)
{
	for (struct follower *f = LIST_FIRST(&v->followers), *next; f;
	     f = next) {
		uint64_t began = cpu_usec();
		uid_t uid;

		next = LIST_NEXT(f, entry);
		if (f->list != list || !may_follow(v, f, &uid))
			continue;
		if (follow(f, value) < 0)
			sd_varlink_close(f->link);
		bus_charge(v->bus, uid, usec + cpu_usec() - began);
		usec = 0;
	}
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
	*f = (struct follower){ .link = sd_varlink_ref(link),
				.list = list,
				.sent = sd_json_variant_ref(value) };
	LIST_INSERT_HEAD(&v->followers, f, entry);
	if (sd_event_source_get_enabled(v->timer, NULL) > 0)
		return 0;
	r = sd_event_source_set_time_relative(v->timer, PERIOD_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(v->timer, SD_EVENT_ON);
}

/* ---- requests ---- */

static void request_free(struct request *q)
{
	LIST_REMOVE(q, entry);
	sd_json_variant_unref(q->held);
	sd_varlink_unref(q->link);
	free(q);
}

static int send_part(struct json_list *l, sd_json_variant *part)
{
	struct request *q = (struct request *)l;

	return report_metrics(q->link, part, &q->held);
}

static int answer(struct request *q, sd_json_variant *value)
{
	if (q->list == LIST_METRICS)
		return report_end(q->link, q->held);
	if (q->has_more)
		return add_follower(q->varlink, q->link, q->list, value);
	return reply_with(q->link, q->list, true, value);
}

static void on_made(struct json_list *l, int r, sd_json_variant *value)
{
	struct request *q = (struct request *)l;

	if (r >= 0 && q->link)
		r = answer(q, value);
	else if (r >= 0)
		send_to_followers(q->varlink, q->list, value, l->pieces.usec);
	if (r < 0 && r != -ECANCELED && q->link)
		sd_varlink_error_errno(q->link, r);
	else if (r < 0 && r != -ECANCELED)
		log_debug_errno(r, "A list for varlink could not be made: %m");
	request_free(q);
}

/* Begin to make a list, for a call of the user @uid or for followers. It may be complete, and sent,
 * on return.
 */
static int request(struct varlink *v, enum list list, uid_t uid,
		   sd_varlink *link, bool has_more)
{
	struct request *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	*q = (struct request){
		.made = { .pieces = { .bus = v->bus,
				      .append = lists[list].append_each,
				      .uid = uid,
				      .is_unpaid = !link },
			  .append_all = lists[list].append,
			  .part = list == LIST_METRICS ? send_part : NULL,
			  .end = on_made },
		.varlink = v,
		.list = list,
		.link = link ? sd_varlink_ref(link) : NULL,
		.has_more = has_more,
	};
	LIST_INSERT_HEAD(&v->requests, q, entry);
	json_list_begin(&q->made);
	return 0;
}

static void drop_requests(struct varlink *v, const sd_varlink *link)
{
	for (struct request *q = LIST_FIRST(&v->requests), *next; q; q = next) {
		next = LIST_NEXT(q, entry);
		if (q->link == link)
			bus_pieces_drop(&q->made.pieces);
	}
}

static bool is_requested(const struct varlink *v, enum list list)
{
	const struct request *q;

	LIST_FOREACH(q, &v->requests, entry)
		if (q->list == list && !q->link)
			return true;
	return false;
}

static bool has_follower(struct varlink *v, enum list list)
{
	const struct follower *f;
	uid_t uid;

	LIST_FOREACH(f, &v->followers, entry)
		if (f->list == list && may_follow(v, f, &uid))
			return true;
	return false;
}

/* A list that is still being made is not made again. */
static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct varlink *v = userdata;
	int r = 0;

	for (enum list i = 0; i < LISTS && r >= 0; i++)
		if (has_follower(v, i) && !is_requested(v, i))
			r = request(v, i, 0, NULL, false);
	if (r < 0)
		log_debug_errno(r, "A list for varlink could not be made: %m");
	if (LIST_EMPTY(&v->followers))
		return sd_event_source_set_enabled(s, SD_EVENT_OFF);
	return sd_event_source_set_time_relative(s, PERIOD_USEC);
}

static void on_disconnect(sd_varlink_server *server, sd_varlink *link,
			  void *userdata)
{
	struct varlink *v = userdata;

	drop_followers(v, link);
	drop_requests(v, link);
	connections_drop(&v->connections, link);
}

/* ---- methods ---- */

static int check_parameters(sd_varlink *link, sd_json_variant *parameters)
{
	static const sd_json_dispatch_field no_fields[] = { {} };

	return sd_varlink_dispatch(link, parameters, no_fields, NULL);
}

/* connection.c charges the user with the time. */
static int run_method(sd_varlink *link, sd_json_variant *parameters,
		      sd_varlink_method_flags_t flags, struct varlink *v,
		      enum list list)
{
	uid_t uid;
	int r;

	/* No client reads the list. A late reply would be that to the next call. */
	if (flags & SD_VARLINK_METHOD_ONEWAY)
		return 0;
	r = sd_varlink_get_peer_uid(link, &uid);
	if (r < 0)
		return r;
	if (bus_check_account(v->bus, uid) < 0)
		return sd_varlink_error(link, STATUS_INTERFACE ".TooManyCalls",
					NULL);
	r = check_parameters(link, parameters);
	if (r == 0)
		r = request(v, list, uid, link, flags & SD_VARLINK_METHOD_MORE);
	return r;
}

#define METHOD(name, list)                                                    \
	static int list_##name(sd_varlink *link, sd_json_variant *parameters, \
			       sd_varlink_method_flags_t flags,               \
			       void *userdata)                                \
	{                                                                     \
		return run_method(link, parameters, flags, userdata, list);   \
	}

METHOD(devices, LIST_DEVICES)
METHOD(units, LIST_UNITS)
METHOD(guarantees, LIST_GUARANTEES)
METHOD(capacities, LIST_CAPACITIES)
METHOD(metrics, LIST_METRICS)

static int describe_metrics(sd_varlink *link, sd_json_variant *parameters,
			    sd_varlink_method_flags_t flags, void *userdata)
{
	return report_families(link);
}

/* ---- life ---- */

static int serve(struct varlink *v, const char *path)
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
			v->server, STATUS_INTERFACE ".ListDevices",
			list_devices, STATUS_INTERFACE ".ListUnits", list_units,
			STATUS_INTERFACE ".ListGuarantees", list_guarantees,
			STATUS_INTERFACE ".ListCapacities", list_capacities,
			REPORT_INTERFACE ".List", list_metrics,
			REPORT_INTERFACE ".Describe", describe_metrics);
	if (r >= 0)
		r = sd_varlink_server_bind_disconnect(v->server, on_disconnect);
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
	if (r < 0)
		return r;
	v->connections.bus = v->bus;
	v->connections.event = event;
	v->connections.server = v->server;
	return connections_open(&v->connections, path);
}

int varlink_open(struct bus *b, struct varlink **ret)
{
	_cleanup_free_ char *path = NULL;
	struct varlink *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	v->bus = b;
	path = asprintf_or_null("%s/" VARLINK_SOCKET, b->machine->roots.run);
	r = path ? serve(v, path) : -ENOMEM;
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
	while (!LIST_EMPTY(&v->requests))
		bus_pieces_drop(&LIST_FIRST(&v->requests)->made.pieces);
	while (!LIST_EMPTY(&v->followers))
		follower_free(LIST_FIRST(&v->followers));
	connections_close(&v->connections);
	sd_event_source_disable_unref(v->timer);
	if (v->server) {
		sd_varlink_server_shutdown(v->server);
		sd_varlink_server_unref(v->server);
	}
	free(v);
}
