/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Members about units: ListUnits, Explain. */

#include "bus/bus.h"
#include "bus/method.h"
#include "bus/pieces.h"
#include "bus/wait.h"
#include "policy/entitlement.h"
#include "policy/policy.h"
#include "policy/unit-cgroup.h"

#define HUNG "the disk hangs, see journalctl --dmesg"

/* The keys that ListUnits and Explain share. */
static int append_unit(sd_bus_message *r, const struct cgroup *c)
{
	const struct policy *p = c->policy;
	int err;

	err = sd_bus_message_append(r, "{sv}{sv}{sv}{sv}", "unit", "s",
				    c->origin == CGROUP_UNIT ? p->subject : "",
				    "cgroup", "s", c->shown, "weight", "t",
				    p->weight, "weight_set", "b",
				    p->weight_set);
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'e', "sv");
	if (err >= 0)
		err = sd_bus_message_append(r, "s", "device_weights");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'v', "a(st)");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'a', "(st)");
	for (size_t i = 0; i < p->n_statements && err >= 0; i++)
		err = sd_bus_message_append(r, "(st)", p->statements[i].path,
					    p->statements[i].weight);
	for (int i = 0; i < 3 && err >= 0; i++)
		err = sd_bus_message_close_container(r);
	return err;
}

int bus_append_units(struct bus *b, sd_bus_message *m, const struct cgroup *c)
{
	int r;

	if (c->origin != CGROUP_UNIT && !c->policy->promises.n)
		return 0;
	r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0)
		r = append_unit(m, c);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : 1;
}

int method_list_units(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	static const struct bus_list_kind units = {
		.type = "a{sv}",
		.append = bus_append_units,
	};

	return bus_reply_in_pieces(userdata, call, &units, error);
}

static int append_explained_leaf(struct bus *b, sd_bus_message *r,
				 const struct cgroup *c,
				 const struct device *leaf)
{
	struct leaf_weight wanted = policy_weight(c->policy, leaf);
	const struct usage *usage = sample_usage(b->watcher, c, leaf);
	_cleanup_free_ char *reason = policy_reason(c->policy, &wanted);
	struct actuation e;
	int err;

	if (!reason)
		return -ENOMEM;
	err = actuate_explain(b->actuator, c, leaf, &e);
	if (err)
		return err;
	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = bus_append_devno(r, leaf);
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "leaf", "s",
			leaf->node, "scheduler", "s", leaf->scheduler,
			"backend", "s", e.backend, "asked", "t", wanted.weight,
			"reason", "s", reason, "file", "s", e.file, "written",
			"s", e.written, "read_back", "s", e.read_back, "error",
			"s", *e.error || !leaf->is_hung ? e.error : HUNG);
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}", "hweight", "d",
			entitlement(b->watcher, c, leaf), "got", "d",
			sample_got(b->watcher, c, leaf), "time_ns", "t",
			usage->time_ns, "rbytes", "t", usage->rbytes, "wbytes",
			"t", usage->wbytes);
	if (err >= 0)
		err = sd_bus_message_close_container(r);
	actuation_done(&e);
	return err;
}

/*
 * Is a leaf part of the answer? A loop device without weights is if the caller names a device on it:
 * the disks below divide its requests, too, and a host may have dozens of images.
 */
static bool is_explained(const struct bus *b, const struct device *leaf,
			 const struct device *d)
{
	if (!leaf->leaf)
		return false;
	if (d)
		return device_stands_on(d, leaf);
	return device_is_lowest(leaf) || actuator_backend(b->actuator, leaf);
}

static int append_explained_leaves(struct bus *b, sd_bus_message *r,
				   const struct cgroup *c,
				   const struct device *d)
{
	int err;

	err = bus_open_list(r, "leaves");
	for (size_t i = 0; i < b->machine->topology->n_devices && err >= 0;
	     i++) {
		const struct device *leaf = b->machine->topology->devices[i];

		if (is_explained(b, leaf, d))
			err = append_explained_leaf(b, r, c, leaf);
	}
	return err < 0 ? err : bus_close_list(r);
}

static int explain(struct bus *b, sd_bus_message *call, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *unit, *path;
	struct device *d = NULL;
	struct cgroup *c;
	int r;

	r = sd_bus_message_read(call, "ss", &unit, &path);
	if (r < 0)
		return r;
	c = unit_find_cgroup(b->machine->tree, unit);
	if (!c)
		return bus_no_such_unit(error, unit);
	if (*path) {
		b->ops->catch_up(path, b->userdata);
		r = bus_resolve(b, path, &d, error);
	}
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r >= 0)
		r = append_unit(reply, c);
	if (r >= 0)
		r = sd_bus_message_append(reply, "{sv}", "device", "s",
					  d ? d->node : "");
	if (r >= 0)
		r = append_explained_leaves(b, reply, c, d);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}

int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return bus_with_samples(userdata, call, explain, error);
}
