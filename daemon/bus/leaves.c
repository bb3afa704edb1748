/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Members that switch leaves: UseDevices, ReleaseDevices.
 *
 * All leaves of a call are switched side by side, and the reply follows the last of them. Results
 * have the order of the topology.
 */

#include "bus/authority.h"
#include "bus/bus.h"
#include "bus/leaves.h"
#include "bus/method.h"
#include "bus/paths.h"
#include "bus/quota.h"

/* More paths in a call than a machine has devices are a mistake. */
#define PATHS_MAX 1024

/** struct outcome - a leaf of a call */
struct outcome {
	struct bus_change *change;
	char *node;
	char *scheduler;
	char *previous;
	char *error;
	bool changed;
};

/**
 * struct bus_change - a call that waits for its leaves
 * @pending: leaves without a result, plus 1 until all switches have begun
 */
struct bus_change {
	struct bus *bus;
	sd_bus_message *call;
	struct kept kept;
	struct outcome *outcomes;
	size_t n;
	size_t pending;
	struct bus_change *next;
};

static void change_free(struct bus_change *c)
{
	struct bus_change **at = &c->bus->changes;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	for (size_t i = 0; i < c->n; i++) {
		struct outcome *o = &c->outcomes[i];

		leaf_switches_forget(c->bus->switches, o);
		free(o->node);
		free(o->scheduler);
		free(o->previous);
		free(o->error);
	}
	free(c->outcomes);
	bus_release_call(c->bus, &c->kept);
	sd_bus_message_unref(c->call);
	free(c);
}

void bus_drop_changes(struct bus *b)
{
	while (b->changes)
		change_free(b->changes);
}

/* ---- the reply ---- */

static int append_outcome(sd_bus_message *r, const struct outcome *o)
{
	if (!o->node || !o->scheduler || !o->previous)
		return -ENOMEM;
	return sd_bus_message_append(r, "a{sv}", 5, "leaf", "s", o->node,
				     "scheduler", "s", o->scheduler, "previous",
				     "s", o->previous, "changed", "b",
				     o->changed, "error", "s", o->error ?: "");
}

static int send_reply(struct bus_change *c, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *failure = NULL;
	size_t bad = 0;
	int r;

	r = sd_bus_message_new_method_return(c->call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; i < c->n && r >= 0; i++) {
		r = append_outcome(reply, &c->outcomes[i]);
		bad += c->outcomes[i].error != NULL;
		failure = c->outcomes[i].error ?: failure;
	}
	if (r >= 0 && bad && bad == c->n)
		return bus_error(error, ERROR_NOT_SUPPORTED, "%s", failure);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}

static void one_less(struct bus_change *c)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	int r;

	if (--c->pending)
		return;
	r = send_reply(c, &error);
	if (r < 0)
		sd_bus_reply_method_errno(c->call, r, &error);
	change_free(c);
}

static void on_leaf(const struct device *leaf, const struct leaf_result *result,
		    void *userdata)
{
	struct outcome *o = userdata;

	o->scheduler =
		strdup(leaf && leaf->scheduler ? leaf->scheduler : "none");
	o->previous = strdup(result->previous);
	o->error = result->error ? strdup(result->error) : NULL;
	o->changed = result->changed;
	one_less(o->change);
}

/* ---- the call ---- */

/* The leaves under all @paths, each once, in the order of the topology. */
static int mark_leaves(struct bus *b, char **paths, bool *marks,
		       sd_bus_error *error)
{
	const struct topology *t = b->machine->topology;

	for (char **p = paths; p && *p; p++) {
		struct device *d;
		int r = bus_resolve(b, *p, &d, error);

		if (r < 0)
			return r;
		for (size_t i = 0; i < t->n_devices; i++)
			if (device_stands_on(d, t->devices[i]))
				marks[i] = true;
	}
	return 0;
}

static int switch_marked(struct bus_change *c, const bool *marks, bool use)
{
	const struct topology *t = c->bus->machine->topology;
	int err = 0;

	for (size_t i = 0; i < t->n_devices && !err; i++) {
		struct outcome *o = &c->outcomes[c->n];

		if (!marks[i])
			continue;
		c->n++;
		c->pending++;
		*o = (struct outcome){ .change = c,
				       .node = strdup(t->devices[i]->node) };
		err = leaf_switch(c->bus->switches, t->devices[i], use, on_leaf,
				  o);
	}
	return err;
}

static int start_change(struct bus *b, sd_bus_message *call, const bool *marks,
			bool use, sd_bus_error *error)
{
	struct bus_change *c = calloc(1, sizeof(*c));
	struct kept kept;
	int r;

	if (!c)
		return -ENOMEM;
	c->outcomes = calloc(b->machine->topology->n_devices + 1,
			     sizeof(*c->outcomes));
	r = c->outcomes ? bus_keep_call(b, call, &kept, error) : -ENOMEM;
	if (r < 0) {
		free(c->outcomes);
		free(c);
		return r;
	}
	c->bus = b;
	c->call = sd_bus_message_ref(call);
	c->kept = kept;
	c->pending = 1;
	c->next = b->changes;
	b->changes = c;
	r = switch_marked(c, marks, use);
	if (r < 0) {
		change_free(c);
		return r;
	}
	one_less(c);
	return 1;
}

static int change_devices(struct bus *b, sd_bus_message *call, char **paths,
			  bool use, sd_bus_error *error)
{
	_cleanup_free_ bool *marks = NULL;
	size_t n;
	int r;

	for (char **p = paths; p && *p; p++)
		b->ops->catch_up(*p, b->userdata);
	n = b->machine->topology->n_devices;
	marks = calloc(n + 1, sizeof(*marks));
	if (!marks)
		return -ENOMEM;
	r = mark_leaves(b, paths, marks, error);
	for (size_t i = 0; i < n && !use && !paths; i++)
		marks[i] = leaf_is_managed(&b->machine->roots,
					   b->machine->topology->devices[i]);
	return r < 0 ? r : start_change(b, call, marks, use, error);
}

static int use_paths(struct bus *b, sd_bus_message *call, char **paths,
		     sd_bus_error *error)
{
	return change_devices(b, call, paths, true, error);
}

static int release_paths(struct bus *b, sd_bus_message *call, char **paths,
			 sd_bus_error *error)
{
	return change_devices(b, call, paths, false, error);
}

static int with_paths(struct bus *b, sd_bus_message *call,
		      bus_paths_method_t method, sd_bus_error *error)
{
	char **paths = NULL;
	int r = sd_bus_message_read_strv(call, &paths);

	if (r < 0)
		return r;
	if (!paths)
		return method(b, call, NULL, error);
	if (strv_length(paths) > PATHS_MAX) {
		strv_free(paths);
		return bus_error(
			error, SD_BUS_ERROR_LIMITS_EXCEEDED,
			"More than %d paths in a call: use several calls.",
			PATHS_MAX);
	}
	return bus_with_real_paths(b, call, paths, method, error);
}

static int use_devices(struct bus *b, sd_bus_message *call, sd_bus_error *error)
{
	return with_paths(b, call, use_paths, error);
}

static int release_devices(struct bus *b, sd_bus_message *call,
			   sd_bus_error *error)
{
	return with_paths(b, call, release_paths, error);
}

int method_use_devices(sd_bus_message *call, void *userdata,
		       sd_bus_error *error)
{
	return bus_with_authority(userdata, call, ACTION_MANAGE_DEVICES, NULL,
				  use_devices, error);
}

int method_release_devices(sd_bus_message *call, void *userdata,
			   sd_bus_error *error)
{
	return bus_with_authority(userdata, call, ACTION_MANAGE_DEVICES, NULL,
				  release_devices, error);
}
