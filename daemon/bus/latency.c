/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * ListLatencies: latencies of a unit on the devices of its targets. All is in memory:
 * a call reads no file, and the reply has at most a histogram for each kind of request
 * and target.
 */

#include "bus/bus.h"
#include "bus/method.h"
#include "policy/policy.h"
#include "policy/unit-cgroup.h"

static const char *const op_names[] = {
	[LATENCY_READ] = "read",
	[LATENCY_WRITE] = "write",
	[LATENCY_FSYNC] = "fsync",
};

/**
 * struct row - latencies of one kind of request on one device
 * @source: where they were measured
 */
struct row {
	const struct cgroup *c;
	const struct device *d;
	enum latency_op op;
	enum target_source source;
	const struct histogram *h;
};

const char *bus_source_name(enum target_source source)
{
	return source == TARGET_AT_VOLUME ? "volume" : "leaves";
}

/* Append each bucket with requests: its begin, its end, and the number of requests in it. */
static int append_buckets(sd_bus_message *r, const struct histogram *h)
{
	int err;

	err = sd_bus_message_open_container(r, 'e', "sv");
	if (err >= 0)
		err = sd_bus_message_append(r, "s", "buckets");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'v', "a(ddd)");
	if (err >= 0)
		err = sd_bus_message_open_container(r, 'a', "(ddd)");
	for (size_t i = 0; i < HISTOGRAM_BUCKETS && err >= 0; i++)
		if (h->count[i] > 0)
			err = sd_bus_message_append(r, "(ddd)",
						    histogram_begin_us(i),
						    histogram_end_us(i),
						    h->count[i]);
	for (int i = 0; i < 3 && err >= 0; i++)
		err = sd_bus_message_close_container(r);
	return err;
}

static int append_percentiles(sd_bus_message *r, const struct histogram *h)
{
	static const struct {
		const char *key;
		double part;
	} percentiles[] = {
		{ "p50_us", 0.5 },  { "p90_us", 0.9 },	   { "p95_us", 0.95 },
		{ "p99_us", 0.99 }, { "p99_9_us", 0.999 },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(percentiles) && err >= 0; i++)
		err = sd_bus_message_append(
			r, "{sv}", percentiles[i].key, "d",
			histogram_percentile_us(h, percentiles[i].part));
	return err;
}

static int append_row(sd_bus_message *r, const struct row *row)
{
	int err;

	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(
			r, "{sv}{sv}{sv}{sv}{sv}", "cgroup", "s", row->c->shown,
			"device", "s", row->d->node, "op", "s",
			op_names[row->op], "source", "s",
			bus_source_name(row->source), "requests", "t",
			(uint64_t)(histogram_sum(row->h) + 0.5));
	if (err >= 0)
		err = append_percentiles(r, row->h);
	if (err >= 0)
		err = append_buckets(r, row->h);
	return err < 0 ? err : sd_bus_message_close_container(r);
}

/* At the volume, latencies of all kinds of requests are measured; at the leaves only the
 * kind of the target.
 */
static int append_rows(const struct bus *b, sd_bus_message *r,
		       const struct governed *f, const struct device *d)
{
	const struct latency_series *series =
		latency_find(b->machine->latency, f->cgroup->inode, f->devno);
	int err = 0;

	if (!series) {
		const struct row row = { f->cgroup, d, f->target->op,
					 TARGET_AT_LEAVES, &f->target->total };

		return append_row(r, &row);
	}
	for (enum latency_op op = 0; op < LATENCY_OPS && err >= 0; op++) {
		const struct row row = { f->cgroup, d, op, TARGET_AT_VOLUME,
					 &series->total[op] };

		err = append_row(r, &row);
	}
	return err;
}

/* Does an earlier target have the same rows as @f? */
static bool is_shown(const struct plant *plant, const struct governed *f)
{
	for (const struct governed *e = plant->floors; e < f; e++)
		if (e->target && e->cgroup == f->cgroup &&
		    e->devno == f->devno &&
		    (e->target->op == f->target->op ||
		     f->target->source == TARGET_AT_VOLUME))
			return true;
	return false;
}

int method_list_latencies(sd_bus_message *call, void *userdata,
			  sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct bus *b = userdata;
	const struct plant *plant = &b->governor->plant;
	const struct cgroup *c;
	const char *unit;
	size_t n = 0;
	int r;

	r = sd_bus_message_read(call, "s", &unit);
	if (r < 0)
		return r;
	c = unit_find_cgroup(b->machine->tree, unit);
	if (!c)
		return bus_no_such_unit(error, unit);
	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; i < plant->n_floors && r >= 0; i++) {
		const struct governed *f = &plant->floors[i];
		const struct device *d =
			topology_by_devno(b->machine->topology, f->devno);

		if (!f->target || f->cgroup != c || !d || is_shown(plant, f))
			continue;
		n++;
		r = append_rows(b, reply, f, d);
	}
	if (r >= 0 && !n)
		return bus_error(
			error, ERROR_NO_SUCH_PROMISE,
			"%s has no latency target, and latencies are measured "
			"for targets only; set one, for instance with "
			"\"sutroctl policy set --runtime %s%s%s "
			"LatencyTarget='any 1min'\".",
			unit, text_quote(unit), unit, text_quote(unit));
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}
