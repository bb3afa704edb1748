/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Dump: the whole state as text. It reads the weight files of each cgroup for each leaf, which
 * takes seconds on a large machine, so a child process makes the text.
 */

#include <sys/sysmacros.h>

#include "bus/authority.h"
#include "bus/background.h"
#include "bus/bus.h"
#include "bus/method.h"
#include "host/leaf.h"
#include "policy/policy.h"

/* Less than the 25 s for which callers of the bus wait. */
#define LIMIT_SEC 20U

static int dump_device(const struct bus *b, struct text *t,
		       const struct device *d)
{
	text_add(t, "  %-12s %3u:%-4u %-10s %12llu bytes", d->name,
		 major(d->devno), minor(d->devno), device_kind_name(d->kind),
		 (unsigned long long)d->size_bytes);
	for (size_t i = 0; i < d->n_slaves; i++)
		text_add(t, "%s%s", i ? " " : " on ", d->slaves[i]->name);
	if (d->leaf)
		text_add(t, " leaf, scheduler %s%s", device_scheduler(d),
			 leaf_is_managed(&b->machine->roots, d) ? ", managed"
								: "");
	for (char **a = d->aliases; a && *a; a++)
		text_add(t, " %s", *a);
	return text_add(t, "\n");
}

static int dump_on_leaf(const struct bus *b, struct text *t,
			const struct cgroup *c, const struct device *leaf)
{
	struct leaf_weight wanted = policy_weight(c->policy, leaf);
	_cleanup_free_ char *reason = policy_reason(c->policy, &wanted);
	struct actuation e;
	int err;

	if (!reason)
		return -ENOMEM;
	err = actuate_explain(b->actuator, c, leaf, &e);
	if (err)
		return err;
	if (*e.file)
		err = text_add(t,
			       "      %s: %s, weight %llu (%s), line \"%s\", "
			       "read back \"%s\"%s%s\n",
			       leaf->name, e.backend,
			       (unsigned long long)wanted.weight, reason,
			       e.written, e.read_back, *e.error ? ", " : "",
			       e.error);
	actuation_done(&e);
	return err;
}

static int dump_cgroup(const struct bus *b, struct text *t,
		       const struct cgroup *c)
{
	static const char *const origins[] = {
		[CGROUP_PENDING] = "pending",
		[CGROUP_UNIT] = "unit",
		[CGROUP_FOREIGN] = "foreign",
	};
	const struct policy *p = c->policy;
	int err;

	err = text_add(t, "  %s  %s, weight %llu%s\n", c->shown,
		       origins[c->origin], (unsigned long long)p->weight,
		       p->weight_set ? "" : " (not set)");
	for (size_t i = 0; i < p->n_statements && !err; i++)
		err = text_add(t, "    on %s %llu (%s)\n",
			       p->statements[i].path,
			       (unsigned long long)p->statements[i].weight,
			       p->statements[i].device
				       ? p->statements[i].device->node
				       : "leads nowhere");
	for (size_t i = 0; i < b->machine->topology->n_devices && !err; i++)
		if (b->machine->topology->devices[i]->leaf)
			err = dump_on_leaf(b, t, c,
					   b->machine->topology->devices[i]);
	return err;
}

static int work(struct bus *b, void *userdata, int fd)
{
	_cleanup_(text_freep) struct text t = {};
	struct cgroup *root = cgroup_tree_root(b->machine->tree);
	int err;

	text_add(&t, "sutrod %s%s\n", SUTRO_VERSION,
		 b->machine->dry_run ? ", dry run" : "");
	text_add(&t, "configuration: ReconcileSec=%llu ",
		 (unsigned long long)b->conf->reconcile_usec / 1000000);
	text_add(&t,
		 "MaxSectorsKB=%u NrRequests=%u Use=", b->conf->max_sectors_kb,
		 b->conf->nr_requests);
	for (char **u = b->conf->use; u && *u; u++)
		text_add(&t, "%s%s", u == b->conf->use ? "" : " ", *u);
	text_add(&t, "\ncalls to systemd without a reply: %zu\n",
		 units_pending(b->units));
	text_add(
		&t,
		"floors and targets kept: %zu, last step of control: %llu us of CPU time\n",
		b->governor->plant.n_floors,
		(unsigned long long)b->governor->step_usec);
	err = text_add(&t, "devices:\n");
	for (size_t i = 0; i < b->machine->topology->n_devices && !err; i++)
		err = dump_device(b, &t, b->machine->topology->devices[i]);
	if (!err)
		err = text_add(&t, "cgroups in %s:\n",
			       cgroup_tree_mount(b->machine->tree));
	for (struct cgroup *c = cgroup_next(root, root); c && !err;
	     c = cgroup_next(root, c))
		err = dump_cgroup(b, &t, c);
	return err ?: write_all(fd, t.p, t.length);
}

static int then(struct bus *b, sd_bus_message *call, void *userdata, int err,
		const char *output, sd_bus_error *error)
{
	if (err == -ETIMEDOUT)
		return bus_error(error, SD_BUS_ERROR_TIMEOUT,
				 "The state was not complete after %u s; try "
				 "again. If it stays so, see \"journalctl -u "
				 "sutrod\" for a disk that hangs.",
				 LIMIT_SEC);
	return err ?: sd_bus_reply_method_return(call, "s", output);
}

static int dump(struct bus *b, sd_bus_message *call, sd_bus_error *error)
{
	static const struct bus_background method = {
		.limit_usec = LIMIT_SEC * 1000000ULL,
		.work = work,
		.then = then,
	};

	return bus_in_background(b, call, &method, NULL, error);
}

int method_dump(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return bus_with_authority(userdata, call, ACTION_DUMP, NULL, dump,
				  error);
}
