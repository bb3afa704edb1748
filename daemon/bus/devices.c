/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Members that show devices: ListDevices, ResolvePath. leaves.c changes them. */

#include "bus/bus.h"
#include "bus/method.h"
#include "host/leaf.h"

static int append_strings(sd_bus_message *r, const char *key, char *const *l)
{
	int err;

	err = sd_bus_message_open_container(r, 'e', "sv");
	if (err >= 0)
		err = sd_bus_message_append(r, "s", key);
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'v', "as");
	if (err >= 0)
		err = sd_bus_message_append_strv(r, (char **)l);
	if (err >= 0)
		err = sd_bus_message_close_container(r);
	return err >= 0 ? sd_bus_message_close_container(r) : err;
}

/* Append the node names of devices, as "as". */
static int append_nodes(sd_bus_message *r, struct device *const *l, size_t n)
{
	int err = sd_bus_message_open_container(r, 'a', "s");

	for (size_t i = 0; i < n && err >= 0; i++)
		err = sd_bus_message_append(r, "s", l[i]->node);
	return err >= 0 ? sd_bus_message_close_container(r) : err;
}

static int append_device(struct bus *b, sd_bus_message *r,
			 const struct device *d)
{
	_cleanup_strv_ char **slaves = NULL;
	int err = 0;

	for (size_t i = 0; i < d->n_slaves && !err; i++)
		err = strv_add(&slaves, d->slaves[i]->name);
	if (!err)
		err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}{sv}{sv}", "node", "s",
					    d->node, "name", "s", d->name,
					    "kind", "s",
					    device_kind_name(d->kind));
	if (err >= 0)
		err = bus_append_devno(r, d);
	if (err >= 0)
		err = append_strings(r, "slaves", slaves);
	if (err >= 0)
		err = append_strings(r, "aliases", d->aliases);
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}", "leaf", "b", d->leaf, "managed",
			"b", leaf_is_managed(&b->machine->roots, d), "hung",
			"b", d->is_hung, "size_bytes", "t", d->size_bytes);
	if (err >= 0 && d->leaf)
		err = sd_bus_message_append(r, "{sv}", "scheduler", "s",
					    d->scheduler);
	return err >= 0 ? sd_bus_message_close_container(r) : err;
}

int bus_append_devices(struct bus *b, sd_bus_message *m)
{
	int r = sd_bus_message_open_container(m, 'a', "a{sv}");

	for (size_t i = 0; i < b->machine->topology->n_devices && r >= 0; i++)
		r = append_device(b, m, b->machine->topology->devices[i]);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

int method_list_devices(sd_bus_message *call, void *userdata,
			sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r = sd_bus_message_new_method_return(call, &reply);

	if (r >= 0)
		r = bus_append_devices(userdata, reply);
	return bus_send(reply, r);
}

static char *step_text(const struct device *d)
{
	struct text t = {};

	text_add(&t, "%s", d->node);
	if (d->aliases)
		text_add(&t, " (%s)", d->aliases[0]);
	text_add(&t, " is %s %s", d->leaf ? "a leaf:" : "a device of kind",
		 device_kind_name(d->kind));
	if (d->leaf)
		text_add(&t, " with scheduler %s", device_scheduler(d));
	if (d->is_hung)
		text_add(&t, ", which hangs");
	for (size_t i = 0; i < d->n_slaves && !device_is_lowest(d); i++)
		text_add(&t, "%s %s", i ? " and" : " on", d->slaves[i]->node);
	return t.p;
}

/* Each device is a step once: there can be very many ways down to it. */
static int append_steps(sd_bus_message *r, const struct device *d,
			uint32_t level, uint64_t walk)
{
	_cleanup_free_ char *text = NULL;
	int err;

	if (!device_enter(d, walk))
		return 0;
	text = step_text(d);
	if (!text)
		return -ENOMEM;
	err = sd_bus_message_append(r, "a{sv}", 4, "device", "s", d->node,
				    "kind", "s", device_kind_name(d->kind),
				    "level", "u", level, "text", "s", text);
	for (size_t i = 0; i < d->n_slaves && !device_is_lowest(d) && err >= 0;
	     i++)
		err = append_steps(r, d->slaves[i], level + 1, walk);
	return err;
}

int method_resolve_path(sd_bus_message *call, void *userdata,
			sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct bus *b = userdata;
	struct device *d;
	const char *path;
	int r;

	r = sd_bus_message_read(call, "s", &path);
	if (r >= 0) {
		b->ops->catch_up(path, b->userdata);
		r = bus_resolve(b, path, &d, error);
	}
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "s", d->node);
	if (r >= 0)
		r = append_nodes(reply, d->leaves, d->n_leaves);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	if (r >= 0)
		r = append_steps(reply, d, 0, device_walk());
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}
