/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Members about units: ListUnits, Explain.
 *
 * Explain is about the last second, and sampling starts when somebody asks. The
 * first call is kept until there are two samples.
 */

#include "bus/bus.h"
#include "bus/method.h"
#include "policy/entitlement.h"
#include "policy/policy.h"
#include "policy/unit-cgroup.h"

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

int method_list_units(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct manager *m = userdata;
	struct cgroup *root = cgroup_tree_root(m->machine.tree);
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (struct cgroup *c = root; c && r >= 0; c = cgroup_next(root, c)) {
		if (c->origin != CGROUP_UNIT)
			continue;
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
		if (r >= 0)
			r = append_unit(reply, c);
		if (r >= 0)
			r = sd_bus_message_close_container(reply);
	}
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}

static int append_explained_leaf(struct manager *m, sd_bus_message *r,
				 const struct cgroup *c,
				 const struct device *leaf)
{
	struct asked asked = policy_weight(c->policy, leaf);
	const struct usage *usage = sample_usage(&m->watcher, c, leaf);
	_cleanup_free_ char *reason = policy_reason(c->policy, &asked);
	struct actuation e;
	int err;

	if (!reason)
		return -ENOMEM;
	err = actuate_explain(&m->actuator, c, leaf, &e);
	if (err)
		return err;
	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = bus_append_devno(r, leaf);
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "leaf", "s",
			leaf->node, "scheduler", "s", leaf->scheduler,
			"backend", "s", e.backend, "asked", "t", asked.weight,
			"reason", "s", reason, "file", "s", e.file, "written",
			"s", e.written, "read_back", "s", e.read_back);
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}", "hweight", "d",
			entitlement(&m->watcher, c, leaf), "got", "d",
			sample_got(&m->watcher, c, leaf), "time_ns", "t",
			usage->time_ns, "rbytes", "t", usage->rbytes, "wbytes",
			"t", usage->wbytes);
	if (err >= 0)
		err = sd_bus_message_close_container(r);
	actuation_done(&e);
	return err;
}

static int append_explained_leaves(struct manager *m, sd_bus_message *r,
				   const struct cgroup *c,
				   const struct device *d)
{
	int err;

	err = bus_open_list(r, "leaves");
	for (size_t i = 0; i < m->machine.topology->n_devices && err >= 0;
	     i++) {
		const struct device *leaf = m->machine.topology->devices[i];

		if (leaf->leaf && (!d || device_stands_on(d, leaf)))
			err = append_explained_leaf(m, r, c, leaf);
	}
	return err < 0 ? err : bus_close_list(r);
}

static int explain(struct manager *m, sd_bus_message *call, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *unit, *path;
	struct device *d = NULL;
	struct cgroup *c;
	int r;

	r = sd_bus_message_read(call, "ss", &unit, &path);
	if (r < 0)
		return r;
	c = unit_find_cgroup(m->machine.tree, unit);
	if (!c)
		return bus_no_such_unit(error, unit);
	if (*path) {
		manager_catch_up(m, path);
		r = bus_resolve(m, path, &d, error);
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
		r = append_explained_leaves(m, reply, c, d);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}

/* ---- waiting for samples ---- */

/**
 * struct bus_waiter - a call that waits for samples
 * @method: runs when there are some
 */
struct bus_waiter {
	sd_bus_message *call;
	bus_method_t method;
	struct bus_waiter *next;
};

int bus_with_samples(struct manager *m, sd_bus_message *call,
		     bus_method_t method, sd_bus_error *error)
{
	struct bus_waiter *w;
	int r;

	r = manager_want_samples(m);
	if (r < 0)
		return r;
	if (sampler_is_fresh(&m->watcher, machine_now_usec(&m->machine)))
		return method(m, call, error);
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct bus_waiter){ sd_bus_message_ref(call), method,
				  m->waiters };
	m->waiters = w;
	return 1;
}

int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return bus_with_samples(userdata, call, explain, error);
}

void bus_samples_taken(struct manager *m)
{
	struct bus_waiter *w;

	if (!sampler_is_fresh(&m->watcher, machine_now_usec(&m->machine)))
		return;
	while ((w = m->waiters)) {
		_cleanup_(sd_bus_error_free)
			sd_bus_error error = SD_BUS_ERROR_NULL;
		int r;

		m->waiters = w->next;
		r = w->method(m, w->call, &error);
		if (r < 0)
			sd_bus_reply_method_errno(w->call, r, &error);
		sd_bus_message_unref(w->call);
		free(w);
	}
}

void bus_drop_waiters(struct manager *m)
{
	struct bus_waiter *w;

	while ((w = m->waiters)) {
		m->waiters = w->next;
		sd_bus_message_unref(w->call);
		free(w);
	}
}
