/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <sys/sysmacros.h>

#include "bus/dump.h"
#include "host/leaf.h"
#include "policy/policy.h"

static int dump_device(const struct bus *b, struct text *t,
		       const struct device *d)
{
	text_add(t, "  %-12s %3u:%-4u %-10s %12llu bytes", d->name,
		 major(d->devno), minor(d->devno), device_kind_name(d->kind),
		 (unsigned long long)d->size_bytes);
	for (size_t i = 0; i < d->n_slaves; i++)
		text_add(t, "%s%s", i ? " " : " on ", d->slaves[i]->name);
	if (d->leaf)
		text_add(t, " leaf, scheduler %s%s", d->scheduler,
			 leaf_is_managed(&b->machine->roots, d) ? ", managed"
								: "");
	for (char **a = d->aliases; a && *a; a++)
		text_add(t, " %s", *a);
	return text_add(t, "\n");
}

static int dump_on_leaf(const struct bus *b, struct text *t,
			const struct cgroup *c, const struct device *leaf)
{
	struct asked asked = policy_weight(c->policy, leaf);
	_cleanup_free_ char *reason = policy_reason(c->policy, &asked);
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
			       (unsigned long long)asked.weight, reason,
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

int dump_daemon(const struct bus *b, char **ret)
{
	_cleanup_(text_freep) struct text t = {};
	struct cgroup *root = cgroup_tree_root(b->machine->tree);
	int err;

	text_add(&t, "sutrod %s%s\n", SUTRO_VERSION,
		 b->machine->dry_run ? ", dry run" : "");
	text_add(&t, "configuration: ReconcileSec=%llu Use=",
		 (unsigned long long)b->conf->reconcile_usec / 1000000);
	for (char **u = b->conf->use; u && *u; u++)
		text_add(&t, "%s%s", u == b->conf->use ? "" : " ", *u);
	text_add(&t, "\nquestions to systemd without answer: %zu\n",
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
	if (err)
		return err;
	*ret = TAKE_PTR(t.p);
	return 0;
}
