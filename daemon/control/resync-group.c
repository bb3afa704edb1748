/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Resyncs of RAID arrays as a competitor of their own.
 *
 * The threads of resyncs are in the root cgroup. There their requests compete with
 * the weight of the root's own requests, which no setting changes. With
 * ResyncWeight= they are moved into the cgroup of resync.slice, a unit like others: its
 * weight, policies and usage need nothing of their own. One cgroup is enough for all
 * arrays, since its weight may differ from disk to disk, and md never runs two resyncs on
 * one disk at a time. A thread ends with its resync.
 */

#include <stdio.h>

#include "control/resync-group.h"
#include "host/event.h"

static void complain(struct resync *r, const struct cgroup *to, int err)
{
	if (r->is_refused)
		return;
	r->is_refused = true;
	if (to)
		log_event(EVENT_RESYNC_NOT_MOVED, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_DEVICE", r->name }),
			  "%s of %s: cannot move its thread to %s: %s",
			  r->action, r->name, to->path, strerror(-err));
	else
		log_event(EVENT_RESYNC_NOT_MOVED, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_DEVICE", r->name }),
			  "%s of %s: there is no cgroup for its weight; run "
			  "\"systemctl start " RESYNC_UNIT "\".",
			  r->action, r->name);
}

static void move(const struct machine *machine, struct resync *r,
		 const struct cgroup *to, bool wanted)
{
	char thread[32];
	int err;

	if (machine->dry_run)
		return;
	snprintf(thread, sizeof(thread), "%llu\n",
		 (unsigned long long)r->thread);
	err = to ? cgroup_write(to, "cgroup.procs", thread) : -ENOENT;
	if (err) {
		complain(r, to, err);
		return;
	}
	r->is_refused = false;
	r->is_moved = wanted;
	log_event(EVENT_RESYNC_MOVED, LOG_INFO,
		  EVENT_FIELDS({ "SUTRO_DEVICE", r->name },
			       { "SUTRO_CGROUP", to->path }),
		  "%s of %s: its thread is in %s now.", r->action, r->name,
		  to->path);
}

int resyncs_follow(struct machine *machine, bool wanted)
{
	struct resyncs *l = &machine->resyncs;
	const struct cgroup *to =
		wanted ? cgroup_find(machine->tree, "/" RESYNC_UNIT)
		       : cgroup_tree_root(machine->tree);
	int err;

	err = resyncs_find(l, &machine->roots, machine->topology,
			   machine->tree);
	for (size_t i = 0; i < l->n && !err; i++)
		if (l->items[i].thread && l->items[i].is_moved != wanted)
			move(machine, &l->items[i], to, wanted);
	return err;
}
