/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The member about resyncs of RAID arrays: ListResyncs. */

#include "bus/bus.h"
#include "bus/method.h"
#include "policy/policy.h"

static int append_leaf(sd_bus_message *r, const struct cgroup *group,
		       const struct device *leaf)
{
	uint64_t weight = group ? policy_weight(group->policy, leaf).weight : 0;

	return sd_bus_message_append(r, "a{sv}", 2, "leaf", "s", leaf->node,
				     "weight", "t", weight);
}

static int append_resync(struct bus *b, sd_bus_message *r,
			 const struct resync *resync)
{
	const struct device *d =
		topology_by_devno(b->machine->topology, resync->devno);
	const struct cgroup *group =
		resync->is_moved
			? cgroup_find(b->machine->tree, "/" RESYNC_UNIT)
			: NULL;
	int err;

	err = sd_bus_message_open_container(r, 'a', "{sv}");
	if (err >= 0)
		err = sd_bus_message_append(r, "{sv}{sv}{sv}{sv}{sv}", "device",
					    "s", d ? d->node : "", "name", "s",
					    resync->name, "action", "s",
					    resync->action, "cgroup", "s",
					    group ? group->path : "/", "note",
					    "s", resync_note(resync));
	if (err >= 0)
		err = bus_open_list(r, "leaves");
	for (size_t i = 0; d && i < d->n_leaves && err >= 0; i++)
		err = append_leaf(r, group, d->leaves[i]);
	if (err >= 0)
		err = bus_close_list(r);
	return err < 0 ? err : sd_bus_message_close_container(r);
}

int method_list_resyncs(sd_bus_message *call, void *userdata,
			sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct bus *b = userdata;
	const struct resyncs *l = &b->machine->resyncs;
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	for (size_t i = 0; i < l->n && r >= 0; i++)
		r = append_resync(b, reply, &l->items[i]);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return bus_send(reply, r);
}
