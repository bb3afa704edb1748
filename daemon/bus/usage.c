/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * ListUsage: the present use of devices. A row is a cgroup and a device that it uses
 * directly: no device above it is used by the cgroup, too. For a file system on an LVM volume
 * that is the volume, not the disks under it.
 */

#include <math.h>

#include "bus/bus.h"
#include "bus/method.h"
#include "bus/pieces.h"
#include "bus/wait.h"
#include "policy/entitlement.h"
#include "policy/policy.h"

static bool is_used(const struct bus *b, const struct cgroup *c,
		    const struct device *d)
{
	const struct usage *u = sample_usage(b->watcher, c, d);

	return u->rbytes || u->wbytes;
}

static bool search_above(const struct bus *b, const struct cgroup *c,
			 const struct device *d, uint64_t walk)
{
	for (size_t i = 0; i < b->machine->topology->n_devices; i++) {
		const struct device *top = b->machine->topology->devices[i];

		for (size_t s = 0; s < top->n_slaves; s++)
			if (top->slaves[s] == d && device_enter(top, walk) &&
			    (is_used(b, c, top) ||
			     search_above(b, c, top, walk)))
				return true;
	}
	return false;
}

static bool is_used_above(const struct bus *b, const struct cgroup *c,
			  const struct device *d)
{
	return search_above(b, c, d, device_walk());
}

static int append_leaf(struct bus *b, sd_bus_message *r, const struct cgroup *c,
		       const struct device *leaf)
{
	double backlog = sample_usage(b->watcher, c, leaf)->backlog_ns / 1e9 /
			 sampler_interval_s(b->watcher);
	struct latencies reads = {};
	int err;

	sample_add_latencies(b->watcher, c, leaf, &reads);
	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}", "read_p99_us", "t",
					    sample_latency_us(&reads, 0.99));
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}", "leaf", "s", leaf->node,
			"share_got", "d", sample_got(b->watcher, c, leaf),
			"hweight", "d", entitlement(b->watcher, c, leaf),
			"weight", "t", policy_weight(c->policy, leaf).weight,
			"backlog", "d", backlog < 1 ? backlog : 1.0);
	return err < 0 ? err : sd_bus_message_close_container(r);
}

/* The P99 of the reads at all leaves under the device. */
static uint64_t read_p99_us(const struct bus *b, const struct cgroup *c,
			    const struct device *d)
{
	struct latencies sum = {};

	for (size_t i = 0; i < d->n_leaves; i++)
		sample_add_latencies(b->watcher, c, d->leaves[i], &sum);
	return sample_latency_us(&sum, 0.99);
}

static int append_row(struct bus *b, sd_bus_message *r, const struct cgroup *c,
		      const struct device *d)
{
	const struct usage *u = sample_usage(b->watcher, c, d);
	double s = sampler_interval_s(b->watcher);
	int err;

	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "unit", "s",
			c->origin == CGROUP_UNIT ? c->policy->subject : "",
			"cgroup", "s", c->shown, "device", "s", d->node,
			"rbytes_per_s", "t", (uint64_t)llround(u->rbytes / s),
			"wbytes_per_s", "t", (uint64_t)llround(u->wbytes / s),
			"rios_per_s", "t", (uint64_t)llround(u->rios / s),
			"wios_per_s", "t", (uint64_t)llround(u->wios / s));
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}", "read_p99_us", "t",
					    read_p99_us(b, c, d));
	if (err >= 0)
		err = bus_open_list(r, "leaves");
	for (size_t i = 0; i < d->n_leaves && err >= 0; i++)
		err = append_leaf(b, r, c, d->leaves[i]);
	if (err >= 0)
		err = bus_close_list(r);
	return err < 0 ? err : sd_bus_message_close_container(r);
}

/* The root cgroup has no row: all use is that of cgroups below it, too. */
static int append_rows(struct bus *b, sd_bus_message *m, const struct cgroup *c)
{
	const struct topology *t = b->machine->topology;
	int n = 0, r = 0;

	for (size_t i = 0; c->parent && i < t->n_devices && r >= 0; i++) {
		const struct device *d = t->devices[i];

		if (!d->n_leaves || !is_used(b, c, d) || is_used_above(b, c, d))
			continue;
		r = append_row(b, m, c, d);
		n++;
	}
	return r < 0 ? r : n;
}

static int list_usage(struct bus *b, sd_bus_message *call, sd_bus_error *error)
{
	static const struct bus_list_kind usage = {
		.type = "a{sv}",
		.append = append_rows,
		.reads_samples = true,
	};

	return bus_reply_in_pieces(b, call, &usage, error);
}

int method_list_usage(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return bus_with_samples(userdata, call, list_usage, error);
}
