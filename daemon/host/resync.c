/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Resyncs of RAID arrays: which run, and the cgroup that their requests are charged to.
 *
 * A kernel thread runs each of them, "md0_resync" for the array md0 and "mdX_resync" for
 * each RAID volume of LVM. A bio is charged to the cgroup of the task that sets its
 * device, and may be sent by another one later. So a thread in a cgroup of its own is
 * charged for (Linux 6.12 to 7.2):
 *
 *			reads		writes
 *	raid1, raid10
 *	  check		all		-
 *	  recover	all		all
 *	raid1
 *	  resync	all		all
 *	  repair	all		none: raid1d sets the device again
 *	raid10
 *	  resync	all		none: raid10d does; only blocks that differ
 *	  repair	all		none, likewise
 *	  reshape	all		all
 *	raid4, 5, 6	none		none: raid5d and its workers send all of it
 *
 * All others are charged to the root cgroup, as are those of dm-mirror, which has no
 * thread for them.
 */

#include <fcntl.h>
#include <stdio.h>

#include "host/resync.h"

static void resync_done(struct resync *r)
{
	free(r->name);
	free(r->action);
}

void resyncs_done(struct resyncs *l)
{
	for (size_t i = 0; i < l->n; i++)
		resync_done(&l->items[i]);
	free(l->items);
	*l = (struct resyncs){};
}

static int add(struct resyncs *l, const struct resync *r)
{
	struct resync new = *r, *grown;

	new.name = strdup(r->name);
	new.action = strdup(r->action);
	grown = reallocarray(l->items, l->n + 1, sizeof(*grown));
	if (grown)
		l->items = grown;
	if (!new.name || !new.action || !grown) {
		resync_done(&new);
		return -ENOMEM;
	}
	grown[l->n++] = new;
	return 0;
}

static int add_array(struct resyncs *l, const struct roots *roots,
		     const struct device *d)
{
	_cleanup_free_ char *path = NULL, *action = NULL;
	struct resync r = { .name = d->name,
			    .devno = d->devno,
			    .kind = d->kind };

	path = asprintf_or_null("%s/class/block/%s/md/sync_action",
				roots->sysfs, d->name);
	if (!path)
		return -ENOMEM;
	if (read_file_at(AT_FDCWD, path, &action) < 0)
		return 0;
	action[strcspn(action, "\n")] = '\0';
	if (streq(action, "idle") || streq(action, "frozen"))
		return 0;
	r.action = action;
	return add(l, &r);
}

static bool is_raid_of_lvm(const struct device *d)
{
	return d->label &&
	       (d->kind == DEVICE_UNKNOWN ||
		(d->kind >= DEVICE_RAID1 && d->kind <= DEVICE_RAID6));
}

/* ---- threads ---- */

/**
 * struct search - threads among the tasks of a cgroup
 * @is_moved: the cgroup is that of RESYNC_UNIT
 */
struct search {
	struct resyncs *l;
	const struct roots *roots;
	bool is_moved;
};

/* Take a thread of a known array, or of the volumes of LVM, whose threads all have one name. */
static int take_thread(const struct search *s, uint64_t thread,
		       const char *array, const char *action)
{
	const struct resync volume = { .name = (char *)array,
				       .action = (char *)action,
				       .kind = DEVICE_UNKNOWN,
				       .thread = thread,
				       .is_moved = s->is_moved };

	for (size_t i = 0; i < s->l->n; i++) {
		struct resync *r = &s->l->items[i];

		if (r->thread == thread)
			return 0;
		if (r->thread || !streq(r->name, array))
			continue;
		r->thread = thread;
		r->is_moved = s->is_moved;
		return 0;
	}
	return streq(array, "mdX") ? add(s->l, &volume) : 0;
}

static int on_task(char *line, void *userdata)
{
	const struct search *s = userdata;
	_cleanup_free_ char *path = NULL, *name = NULL;
	uint64_t thread;
	char *last;

	if (parse_u64(line, &thread) < 0)
		return 0;
	path = asprintf_or_null("%s/proc/%s/comm", s->roots->prefix, line);
	if (!path)
		return -ENOMEM;
	if (read_file_at(AT_FDCWD, path, &name) < 0)
		return 0;
	name[strcspn(name, "\n")] = '\0';
	last = strrchr(name, '_');
	if (!last || (!streq(last, "_resync") && !streq(last, "_reshape")))
		return 0;
	*last = '\0';
	return take_thread(s, thread, name, last + 1);
}

static int find_threads(struct resyncs *l, const struct roots *roots,
			const struct cgroup *c, bool is_moved)
{
	struct search s = { l, roots, is_moved };
	int err = c ? cgroup_read_lines(c, "cgroup.procs", on_task, &s) : 0;

	return err == -ENOMEM ? err : 0;
}

static void take_refusals(struct resyncs *l, const struct resyncs *was)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t j = 0; j < was->n; j++)
			if (l->items[i].thread == was->items[j].thread)
				l->items[i].is_refused =
					was->items[j].is_refused;
}

int resyncs_find(struct resyncs *l, const struct roots *roots,
		 const struct topology *t, const struct cgroup_tree *tree)
{
	struct resyncs was = *l;
	bool some = false;
	int err = 0;

	*l = (struct resyncs){};
	for (size_t i = 0; i < t->n_devices && !err; i++) {
		some |= is_raid_of_lvm(t->devices[i]);
		err = add_array(l, roots, t->devices[i]);
	}
	if (!err && (l->n || some))
		err = find_threads(l, roots, cgroup_find(tree, "/" RESYNC_UNIT),
				   true)
			      ?: find_threads(l, roots, cgroup_tree_root(tree),
					      false);
	take_refusals(l, &was);
	resyncs_done(&was);
	if (err)
		resyncs_done(l);
	return err;
}

/* ---- questions ---- */

const struct resync *resyncs_sharing(const struct resyncs *l,
				     const struct topology *t,
				     const struct device *d)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct device *array =
			topology_by_devno(t, l->items[i].devno);

		for (size_t j = 0; array && j < array->n_leaves; j++)
			if (device_stands_on(d, array->leaves[j]))
				return &l->items[i];
	}
	return NULL;
}

const char *resync_note(const struct resync *r)
{
	if (r->kind == DEVICE_RAID4 || r->kind == DEVICE_RAID5 ||
	    r->kind == DEVICE_RAID6)
		return "its driver charges all of it to the root cgroup, so no "
		       "weight has an effect; sync_speed_max of the array "
		       "limits it";
	if (!r->thread)
		return "its kernel thread was not found, so no weight has an "
		       "effect";
	if (!r->is_moved)
		return "it is charged to the root cgroup; ResyncWeight= in "
		       "sutrod.conf gives it a weight";
	if (r->kind == DEVICE_UNKNOWN)
		return "for a volume of LVM with parity, or with blocks that "
		       "differ, its driver charges the root cgroup";
	if (streq(r->action, "repair") ||
	    (r->kind == DEVICE_RAID10 && streq(r->action, "resync")))
		return "writes of blocks that differ are charged to the root "
		       "cgroup";
	return "";
}
