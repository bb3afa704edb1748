/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reads of properties, on account of their callers.
 *
 * Some properties list devices or policies, so a read of them has the cost of a method. A getter
 * cannot be charged: sd-bus calls it for signals, too, and it cannot wait until the bus has named the
 * user of a new connection. So a filter takes these calls before sd-bus does, and answers them as
 * sd-bus would, with the getters of the vtable:
 *
 *	Get Version		constant: left to sd-bus
 *	Get PolicyErrors	metered
 *	GetAll			metered
 *	Get Nothing		left to sd-bus, which returns the error
 */

#include "bus/bus.h"
#include "bus/properties.h"
#include "bus/quota.h"

#define PROPERTIES "org.freedesktop.DBus.Properties"

static const sd_bus_vtable *find(const struct bus *b, const char *name)
{
	const sd_bus_vtable *v = b->members;

	for (; v->type != _SD_BUS_VTABLE_END; v++)
		if (v->type == _SD_BUS_VTABLE_PROPERTY &&
		    streq(v->x.property.member, name))
			return v;
	return NULL;
}

static int append_value(struct bus *b, sd_bus_message *reply,
			const sd_bus_vtable *v, sd_bus_error *error)
{
	int r;

	r = sd_bus_message_open_container(reply, 'v', v->x.property.signature);
	if (r >= 0)
		r = v->x.property.get(b->connection, BUS_PATH, BUS_INTERFACE,
				      v->x.property.member, reply, b, error);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int method_get(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *interface, *name;
	int r;

	r = sd_bus_message_read(call, "ss", &interface, &name);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = append_value(userdata, reply, find(userdata, name), error);
	return bus_send(reply, r);
}

static int append_all(struct bus *b, sd_bus_message *reply, sd_bus_error *error)
{
	int r = sd_bus_message_open_container(reply, 'a', "{sv}");

	for (const sd_bus_vtable *v = b->members;
	     v->type != _SD_BUS_VTABLE_END && r >= 0; v++) {
		if (v->type != _SD_BUS_VTABLE_PROPERTY)
			continue;
		r = sd_bus_message_open_container(reply, 'e', "sv");
		if (r >= 0)
			r = sd_bus_message_append(reply, "s",
						  v->x.property.member);
		if (r >= 0)
			r = append_value(b, reply, v, error);
		if (r >= 0)
			r = sd_bus_message_close_container(reply);
	}
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int method_get_all(sd_bus_message *call, void *userdata,
			  sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r = sd_bus_message_new_method_return(call, &reply);

	if (r >= 0)
		r = append_all(userdata, reply, error);
	return bus_send(reply, r);
}

/* Return: the method to meter, or NULL if sd-bus answers the call. */
static sd_bus_message_handler_t find_method(const struct bus *b,
					    sd_bus_message *m)
{
	const char *path = sd_bus_message_get_path(m);
	const char *interface, *name;
	const sd_bus_vtable *v;

	if (!path || !streq(path, BUS_PATH))
		return NULL;
	if (sd_bus_message_is_method_call(m, PROPERTIES, "GetAll"))
		/* "" stands for all interfaces. */
		return sd_bus_message_read(m, "s", &interface) > 0 &&
				       (!*interface ||
					streq(interface, BUS_INTERFACE))
			       ? method_get_all
			       : NULL;
	if (!sd_bus_message_is_method_call(m, PROPERTIES, "Get") ||
	    sd_bus_message_read(m, "ss", &interface, &name) <= 0 ||
	    !streq(interface, BUS_INTERFACE))
		return NULL;
	v = find(b, name);
	return v && !(v->flags & SD_BUS_VTABLE_PROPERTY_CONST) ? method_get
							       : NULL;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct bus *b = userdata;
	sd_bus_message_handler_t method = find_method(b, m);
	int r = sd_bus_message_rewind(m, true);

	if (r < 0 || !method)
		return r < 0 ? r : 0;
	r = bus_metered(b, m, method, error);
	return r < 0 ? r : 1;
}

int bus_meter_properties(struct bus *b, const sd_bus_vtable *members)
{
	b->members = members;
	return sd_bus_add_filter(b->connection, NULL, on_message, b);
}
