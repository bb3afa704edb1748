/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Values of the bus as JSON, so that varlink has the same content as the bus from the same
 * functions:
 *
 *	aa{sv}	[{"unit": <"db.service">, "weight": <t 300>}]	[{"unit":"db.service","weight":300}]
 */

#include "bus/json.h"
#include "host/util.h"

/* The only structure of lists, (st): a device weight. */
static const char *const device_weight[] = { "path", "weight" };

void json_values_done(struct json_values *l)
{
	for (size_t i = 0; i < l->n; i++)
		sd_json_variant_unref(l->items[i]);
	free(l->items);
	*l = (struct json_values){};
}

int json_values_add(struct json_values *l, sd_json_variant *v)
{
	sd_json_variant **grown = l->items;

	/* Room for a power of two. */
	if ((l->n & (l->n - 1)) == 0)
		grown = reallocarray(l->items, l->n ? 2 * l->n : 1,
				     sizeof(*grown));
	if (!grown) {
		sd_json_variant_unref(v);
		return -ENOMEM;
	}
	l->items = grown;
	l->items[l->n++] = v;
	return 0;
}

static int add_string(struct json_values *l, const char *s)
{
	sd_json_variant *v = NULL;
	int r = sd_json_variant_new_string(&v, s);

	return r < 0 ? r : json_values_add(l, v);
}

static int add_next(sd_bus_message *m, struct json_values *l)
{
	sd_json_variant *v = NULL;
	int r = bus_message_to_json(m, &v);

	return r < 0 ? r : json_values_add(l, v);
}

static int read_entry(sd_bus_message *m, struct json_values *l)
{
	const char *key, *contents;
	char type;
	int r;

	r = sd_bus_message_peek_type(m, &type, &contents);
	if (r >= 0)
		r = sd_bus_message_enter_container(m, type, contents);
	if (r >= 0)
		r = sd_bus_message_read(m, "s", &key);
	if (r >= 0)
		r = add_string(l, key);
	if (r >= 0)
		r = add_next(m, l);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_array(sd_bus_message *m, bool is_dictionary,
		      sd_json_variant **ret)
{
	_cleanup_(json_values_done) struct json_values l = {};
	int r = 0;

	while (r >= 0 && !(r = sd_bus_message_at_end(m, false)))
		r = is_dictionary ? read_entry(m, &l) : add_next(m, &l);
	if (r < 0)
		return r;
	return is_dictionary ? sd_json_variant_new_object(ret, l.items, l.n)
			     : sd_json_variant_new_array(ret, l.items, l.n);
}

static int read_structure(sd_bus_message *m, sd_json_variant **ret)
{
	_cleanup_(json_values_done) struct json_values l = {};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(device_weight) && r >= 0; i++) {
		r = add_string(&l, device_weight[i]);
		if (r >= 0)
			r = add_next(m, &l);
	}
	return r < 0 ? r : sd_json_variant_new_object(ret, l.items, l.n);
}

static int read_container(sd_bus_message *m, char type, const char *contents,
			  sd_json_variant **ret)
{
	_cleanup_(sd_json_variant_unrefp) sd_json_variant *v = NULL;
	int r = sd_bus_message_enter_container(m, type, contents);

	if (r < 0)
		return r;
	if (type == SD_BUS_TYPE_VARIANT)
		r = bus_message_to_json(m, &v);
	else if (type == SD_BUS_TYPE_STRUCT)
		r = read_structure(m, &v);
	else
		r = read_array(m, contents[0] == '{', &v);
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(v);
	return 0;
}

int bus_message_to_json(sd_bus_message *m, sd_json_variant **ret)
{
	union {
		const char *string;
		uint64_t number;
		double real;
		int boolean;
	} value;
	const char *contents;
	char type;
	int r;

	r = sd_bus_message_peek_type(m, &type, &contents);
	if (r < 0)
		return r;
	if (contents)
		return read_container(m, type, contents, ret);
	r = sd_bus_message_read_basic(m, type, &value);
	if (r < 0)
		return r;
	switch (type) {
	case SD_BUS_TYPE_STRING:
		return sd_json_variant_new_string(ret, value.string);
	case SD_BUS_TYPE_UINT64:
		return sd_json_variant_new_unsigned(ret, value.number);
	case SD_BUS_TYPE_DOUBLE:
		return sd_json_variant_new_real(ret, value.real);
	case SD_BUS_TYPE_BOOLEAN:
		return sd_json_variant_new_boolean(ret, value.boolean);
	default:
		return -EOPNOTSUPP;
	}
}
