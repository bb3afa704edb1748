/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Helpers of all members of the bus interface: containers, errors, signals. */

#include <stdarg.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "bus/bus.h"
#include "host/path.h"
#include "policy/policy.h"

/* Room for a path of 4095 bytes and a sentence. */
#define ERROR_BYTES_MAX 6000U

/* ---- replies ---- */

int bus_append_devno(sd_bus_message *r, const struct device *d)
{
	char text[32];

	snprintf(text, sizeof(text), "%u:%u", major(d->devno), minor(d->devno));
	return sd_bus_message_append(r, "{sv}", "devno", "s", text);
}

int bus_open_list(sd_bus_message *r, const char *key)
{
	int err = sd_bus_message_open_container(r, 'e', "sv");

	if (err >= 0)
		err = sd_bus_message_append(r, "s", key);
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'v', "aa{sv}");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'a', "a{sv}");
	return err;
}

int bus_close_list(sd_bus_message *r)
{
	int err = 0;

	for (int i = 0; i < 3 && err >= 0; i++)
		err = sd_bus_message_close_container(r);
	return err;
}

int bus_error(sd_bus_error *error, const char *name, const char *format, ...)
{
	_cleanup_(text_freep) struct text t = {};
	_cleanup_free_ char *message = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&message, format, ap);
	va_end(ap);
	if (n < 0) {
		message = NULL;
		return -ENOMEM;
	}
	n = text_add_plain(&t, message, ERROR_BYTES_MAX);
	return n < 0 ? n : sd_bus_error_set(error, name, t.p);
}

int bus_no_such_unit(sd_bus_error *error, const char *unit)
{
	return bus_error(error, ERROR_NO_SUCH_UNIT,
			 "There is no unit \"%s\" with a control "
			 "group. Is it a running service, scope "
			 "or slice? A cgroup begins with \"/\".",
			 unit);
}

int bus_send(sd_bus_message *reply, int r)
{
	return r < 0 ? r : sd_bus_message_send(reply);
}

int bus_path_error(sd_bus_error *error, const char *path, int err)
{
	if (err == -ENOMEM)
		return err;
	if (err == -EINVAL)
		return bus_error(error, ERROR_NO_SUCH_PATH,
				 "\"%s\" is no absolute path, it has to "
				 "begin with \"/\".",
				 path);
	if (err == -ENODEV)
		return bus_error(error, ERROR_NO_QUEUE,
				 "%s is not on a block device with a "
				 "request queue (tmpfs, a network or "
				 "other virtual file system).",
				 path);
	return bus_error(error, ERROR_NO_SUCH_PATH, "%s: %s.", path,
			 strerror(-err));
}

int bus_resolve(struct bus *b, const char *path, struct device **ret,
		sd_bus_error *error)
{
	struct device *d;
	int err;

	err = topology_resolve_literal(b->machine->topology, &b->machine->roots,
				       path, &d);
	if (!err && !d->n_leaves)
		err = -ENODEV;
	if (err)
		return bus_path_error(error, path, err);
	*ret = d;
	return 0;
}

/* ---- signals ---- */

void bus_property_changed(const struct bus *b, const char *property)
{
	if (b->connection)
		sd_bus_emit_properties_changed(b->connection, BUS_PATH,
					       BUS_INTERFACE, property, NULL);
}

void bus_weight_changed(struct bus *b, const struct cgroup *c,
			const struct device *leaf, uint64_t old, uint64_t new,
			const char *reason)
{
	int r;

	r = sd_bus_emit_signal(b->connection, BUS_PATH, BUS_INTERFACE,
			       "WeightChanged", "sstts", c->shown,
			       leaf ? leaf->node : "", old, new, reason);
	if (r < 0)
		log_debug_errno(r, "Cannot emit WeightChanged: %m, ignoring.");
}

void bus_promise_changed(struct bus *b, const struct governed *f)
{
	int r;

	r = sd_bus_emit_signal(
		b->connection, BUS_PATH, BUS_INTERFACE, "PromiseChanged",
		"sssss", f->cgroup->policy->subject, promise_info(f->key)->name,
		f->path, control_state_to_string(f->state), f->cause ?: "");
	if (r < 0)
		log_debug_errno(r, "Cannot emit PromiseChanged: %m, ignoring.");
}
