/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The manager's part about block devices: udev, md and the schedulers of leaves are
 * watched, and after a pause the topology is made anew and all paths are resolved in
 * it.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "control/promised.h"
#include "host/discover.h"
#include "host/diskcall.h"
#include "host/event.h"
#include "host/path.h"
#include "host/sysblock.h"
#include "manager.h"

/* One new device is a burst of uevents (partitions, LVM, udev's own changes); this is
 * long enough to take most of it in one go and short enough for a person.
 */
#define RESCAN_DELAY_USEC 100000U

/* Users make mounts, too: paths are resolved again once in this time at most. */
#define MOUNTS_REST_USEC 1000000U

/* A switch of sutrod itself is reported at its end, by leaf_end(). */
static void report_switch(const struct manager *m, const struct device *leaf,
			  const char *before)
{
	struct device former = *leaf;
	bool is_loss;

	if (leaf->is_switching || !before || !*before || !leaf->scheduler ||
	    streq(before, leaf->scheduler))
		return;
	former.scheduler = (char *)before;
	is_loss = actuator_backend(&m->actuator, &former) &&
		  !actuator_backend(&m->actuator, leaf);
	log_event(EVENT_LEAF_SWITCHED_BY_OTHERS,
		  is_loss ? LOG_WARNING : LOG_INFO,
		  EVENT_FIELDS({ "SUTRO_LEAF", leaf->node },
			       { "SUTRO_SCHEDULER", leaf->scheduler },
			       { "SUTRO_PREVIOUS", before }),
		  "%s: scheduler %s -> %s, switched by another program%s%s%s.",
		  leaf->node, before, leaf->scheduler,
		  is_loss ? ": weights have no effect there. To select sutro: "
			    "\"sutroctl use "
			  : "",
		  is_loss ? leaf->node : "", is_loss ? "\"" : "");
}

int manager_read_schedulers(struct manager *m)
{
	bool switched = false;

	for (size_t i = 0; i < m->machine.topology->n_devices; i++) {
		struct device *d = m->machine.topology->devices[i];
		_cleanup_free_ char *before = NULL;

		if (!d->leaf)
			continue;
		before = strdup(d->scheduler ?: "");
		if (!before ||
		    device_read_scheduler(d, &m->machine.roots) == -ENOMEM)
			return -ENOMEM;
		if (d->scheduler && !streq(before, d->scheduler)) {
			report_switch(m, d, before);
			manager_leaf_switched(m, d);
			switched = true;
		}
	}
	return switched;
}

static int on_scheduler_written(sd_event_source *s,
				const struct inotify_event *event,
				void *userdata)
{
	struct manager *m = userdata;
	int r = manager_read_schedulers(m);

	/* The leaf was switched away and back at once: weights and costs in the kernel are lost. */
	if (r == 0) {
		for (size_t i = 0; i < m->machine.topology->n_devices; i++)
			m->machine.topology->devices[i]->has_costs = false;
		costs_job_follow(&m->costs);
		manager_mark_all(m);
	}
	return r < 0 ? r : 0;
}

void manager_leaf_switched(struct manager *m, const struct device *leaf)
{
	log_debug("%s: has the scheduler %s now.", leaf->node, leaf->scheduler);
	bus_property_changed(&m->bus, "ManagedLeaves");
	governor_renew(&m->governor);
	costs_job_follow(&m->costs);
	manager_mark_all(m);
}

void manager_unwatch_devices(struct manager *m)
{
	for (size_t i = 0; i < m->n_schedulers; i++)
		sd_event_source_disable_unref(m->schedulers[i]);
	m->n_schedulers = 0;
}

static void rescan_soon(struct manager *m)
{
	int enabled = SD_EVENT_OFF;

	/* The first event of a burst sets the time, so that a device that
	 * never stops changing cannot put it off for ever.
	 */
	sd_event_source_get_enabled(m->rescan, &enabled);
	if (enabled == SD_EVENT_OFF) {
		sd_event_source_set_time_relative(m->rescan, RESCAN_DELAY_USEC);
		sd_event_source_set_enabled(m->rescan, SD_EVENT_ONESHOT);
	}
}

static int on_mdstat(sd_event_source *s, int fd, uint32_t revents,
		     void *userdata)
{
	char text[4096];
	ssize_t n;

	/* The file reports the same change until it is read. */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	do
		n = read(fd, text, sizeof(text));
	while (n > 0);
	rescan_soon(userdata);
	return 0;
}

/* When a member of an array is removed md makes no uevent, but wakes programs that
 * poll /proc/mdstat, which does not exist before the first array.
 */
static int watch_md(struct manager *m)
{
	int fd, r;

	if (m->md || !roots_are_real(&m->machine.roots))
		return 0;
	fd = open(m->machine.roots.mdstat, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	r = sd_event_add_io(m->machine.event, &m->md, fd, EPOLLPRI, on_mdstat,
			    m);
	if (r >= 0)
		r = sd_event_source_set_io_fd_own(m->md, true);
	if (r < 0)
		close(fd);
	return r < 0 ? r : 0;
}

static int on_mounts(sd_event_source *s, int fd, uint32_t revents,
		     void *userdata)
{
	if (manager_compare_paths(userdata) < 0)
		log_oom();
	return 0;
}

/* The kernel makes no uevent for a mount, but wakes programs that poll mountinfo. Each open file
 * reports a change once, so this one is not that of mounts.c.
 */
static int watch_mounts(struct manager *m)
{
	int fd, r;

	fd = open(m->machine.roots.mountinfo, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	r = sd_event_add_io(m->machine.event, &m->mounts, fd, EPOLLPRI,
			    on_mounts, m);
	if (r >= 0)
		r = sd_event_source_set_io_fd_own(m->mounts, true);
	if (r < 0)
		close(fd);
	return r < 0 ? r
		     : sd_event_source_set_ratelimit(m->mounts,
						     MOUNTS_REST_USEC, 1);
}

/* One message stands for all leaves, until all have a watch. Return: true. */
static bool report_unwatched(struct manager *m, const char *path, int err)
{
	if (!m->is_unwatched)
		log_unwatched(
			path,
			"switches of this and of other schedulers without "
			"a watch",
			err);
	m->is_unwatched = true;
	return true;
}

static int watch_schedulers(struct manager *m)
{
	bool is_unwatched = false;

	manager_unwatch_devices(m);
	for (size_t i = 0; i < m->machine.topology->n_devices; i++) {
		const struct device *d = m->machine.topology->devices[i];
		_cleanup_free_ char *path = NULL;
		sd_event_source **grown;
		int r;

		if (!d->leaf)
			continue;
		path = asprintf_or_null("%s/class/block/%s/queue/scheduler",
					m->machine.roots.sysfs, d->name);
		grown = reallocarray(m->schedulers, m->n_schedulers + 1,
				     sizeof(*grown));
		if (grown)
			m->schedulers = grown;
		if (!path || !grown)
			return -ENOMEM;
		r = sd_event_add_inotify(m->machine.event,
					 &m->schedulers[m->n_schedulers], path,
					 IN_MODIFY, on_scheduler_written, m);
		if (r >= 0)
			m->n_schedulers++;
		/* A leaf without a queue, or one that is removed now, has no such file. */
		else if (r != -ENOENT)
			is_unwatched |= report_unwatched(m, path, r);
	}
	m->is_unwatched = is_unwatched;
	return 0;
}

static void forget_lines(struct manager *m, const struct device *d,
			 bool is_replaced)
{
	struct cgroup *root = cgroup_tree_root(m->machine.tree);

	cgfiles_device_gone(&m->files, d->devno, is_replaced);
	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		policy_device_gone(c->policy, d->node);
}

/* Lines in cgroup files end with their disk, and another disk may get its number or its name. A
 * loop device without a file is in no topology, but its queue keeps scheduler and lines.
 */
static void forget_removed(struct manager *m, const struct topology *new)
{
	const struct topology *old = m->machine.topology;

	for (size_t i = 0; old && i < old->n_devices; i++) {
		const struct device *d = old->devices[i];
		const struct device *now = topology_by_devno(new, d->devno);

		if (now && now->diskseq == d->diskseq) {
			if (now->leaf)
				report_switch(m, now, d->scheduler);
			continue;
		}
		if (d->queue &&
		    d->queue == queue_inode(&m->machine.roots, d->name))
			continue;
		forget_lines(m, d, now != NULL);
		if (d->leaf)
			leaf_report_removed(&m->machine.roots, d, now != NULL);
	}
}

/* An upgrade of the packages leaves the module that is in use in memory until the next boot. */
static void compare_versions(struct manager *m)
{
	_cleanup_free_ char *path = NULL, *version = NULL;

	path = asprintf_or_null("%s/module/sutro", m->machine.roots.sysfs);
	if (!path || access(path, F_OK) < 0)
		return;
	free(path);
	path = asprintf_or_null("%s/module/sutro/version",
				m->machine.roots.sysfs);
	if (!path || read_file_at(AT_FDCWD, path, &version) == -ENOMEM ||
	    (version && streq(version, SUTRO_VERSION)) ||
	    m->complained_of_version)
		return;
	m->complained_of_version = true;
	log_event(
		EVENT_MODULE_DIFFERS, LOG_WARNING,
		EVENT_FIELDS({ "SUTRO_VERSION", version ?: "0" }),
		"The kernel module sutro in memory has version %s, sutrod "
		"has " SUTRO_VERSION ": settings that the module lacks are not "
		"made. Boot again, or release all disks and run \"modprobe -r "
		"sutro\".",
		version ?: "0");
}

void manager_on_lookups(void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *root = cgroup_tree_root(m->machine.tree);

	for (struct cgroup *c = root; c; c = cgroup_next(root, c)) {
		policy_resolve(c->policy, m->machine.topology,
			       m->machine.lookups);
		if (manager_look_at_volumes(m, c) < 0)
			log_oom();
	}
	governor_renew(&m->governor);
	manager_mark_all(m);
}

static void keep_path(const char *path, void *userdata)
{
	lookups_keep(userdata, path);
}

void manager_drop_paths(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->machine.tree);

	/* Settings made at run time count for admission while their units do not run, too. */
	policies_each_path(m->policies, keep_path, &m->lookups);
	clients_each_path(&m->clients, keep_path, &m->lookups);
	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		policy_each_path(c->policy, keep_path, &m->lookups);
	lookups_drop(&m->lookups);
}

int manager_renew_topology(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->machine.tree);
	struct topology *new;
	int err;

	err = topology_new(&m->machine.roots, m->machine.topology, &new);
	if (err)
		return log_error_errno(err, "Cannot read %s: %m",
				       m->machine.roots.sysfs);
	manager_drop_paths(m);
	lookups_renew(&m->lookups);
	forget_removed(m, new);
	cgfiles_follow_devices(&m->files, new);
	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		policy_resolve(c->policy, new, m->machine.lookups);
	topology_free(m->machine.topology);
	m->machine.topology = new;
	m->actuator.topology = new;
	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		if (manager_look_at_volumes(m, c) < 0)
			return log_oom();
	err = leaf_switch_configured(&m->switches, m->conf->use);
	if (!err)
		err = watch_schedulers(m) ?: watch_md(m);
	/* A switch before its watch began makes no event. */
	if (!err && manager_read_schedulers(m) == -ENOMEM)
		err = -ENOMEM;
	if (!err && root)
		err = actuator_survey(&m->actuator, root);
	if (err >= 0 && root)
		err = resyncs_follow(&m->machine, m->conf->resync.n);
	if (err < 0)
		return err;
	compare_versions(m);
	promised_warn(&m->machine, &m->conf->capacities);
	bus_property_changed(&m->bus, "ManagedLeaves");
	costs_job_follow(&m->costs);
	if (root) {
		governor_renew(&m->governor);
		manager_mark_all(m);
	}
	return 0;
}

/* Another disk may bear the name of one that went. Those without a size (a loop
 * device that is not in use) are in no topology.
 */
static bool is_new_device(const struct manager *m, const char *name)
{
	const struct device *d = topology_by_name(m->machine.topology, name);
	_cleanup_free_ char *path = NULL, *size = NULL;

	if (name[0] == '.' || (d && device_is_current(d, &m->machine.roots)))
		return false;
	path = asprintf_or_null("%s/class/block/%s/size",
				m->machine.roots.sysfs, name);
	return path && read_file_at(AT_FDCWD, path, &size) == 0 &&
	       !streq(size, "0") && device_is_readable(name, &m->machine.roots);
}

static bool has_new_device(const struct manager *m)
{
	_cleanup_free_ char *path =
		asprintf_or_null("%s/class/block", m->machine.roots.sysfs);
	DIR *dir = path ? opendir(path) : NULL;
	const struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir)))
		found = is_new_device(m, e->d_name);
	if (dir)
		closedir(dir);
	return found;
}

void manager_compare_devices(struct manager *m)
{
	const struct topology *t = m->machine.topology;
	bool is_current = !has_new_device(m);

	for (size_t i = 0; i < t->n_devices && is_current; i++)
		is_current =
			device_is_current(t->devices[i], &m->machine.roots);
	if (!is_current) {
		log_debug("Devices have changed without an event.");
		manager_renew_topology(m);
	}
}

void manager_on_hung_changed(bool has_returned, void *userdata)
{
	struct manager *m = userdata;

	m->call_has_returned |= has_returned;
	sd_event_source_set_enabled(m->hung, SD_EVENT_ONESHOT);
}

static void report_hung(const struct device *d)
{
	if (d->is_hung)
		log_event(EVENT_DISK_HANGS, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_LEAF", d->node }),
			  "%s: the disk hangs, its requests do not complete. "
			  "Its scheduler and lines in cgroup files stay as "
			  "they are until it answers. See \"journalctl "
			  "--dmesg\".",
			  d->node);
	else
		log_event(EVENT_DISK_ANSWERS, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_LEAF", d->node }),
			  "%s: the disk answers again.", d->node);
}

int manager_on_hung(sd_event_source *s, void *userdata)
{
	struct manager *m = userdata;
	bool has_returned = m->call_has_returned;

	m->call_has_returned = false;
	for (size_t i = 0; i < m->machine.topology->n_devices; i++) {
		struct device *d = m->machine.topology->devices[i];
		bool is_hung = diskcall_is_hung(device_id(d));

		if (is_hung == d->is_hung)
			continue;
		d->is_hung = is_hung;
		report_hung(d);
	}
	/* That of a busy disk, too. */
	if (has_returned)
		manager_renew_topology(m);
	return 0;
}

void manager_catch_up(struct manager *m, const char *path)
{
	struct device *d;
	int r = topology_resolve_literal(m->machine.topology, &m->machine.roots,
					 path, &d);

	/* Calls about a path on no disk must not keep the daemon busy. */
	if (r == 0 ? !device_is_current(d, &m->machine.roots)
		   : r == -ENODEV && has_new_device(m))
		manager_renew_topology(m);
}

int manager_on_rescan(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	manager_renew_topology(m);
	return 0;
}

static void on_uevent(void *userdata)
{
	rescan_soon(userdata);
}

int manager_watch_devices(struct manager *m)
{
	int r;

	if (!roots_are_real(&m->machine.roots))
		return 0;
	r = watch_mounts(m);
	if (r < 0)
		return r;
	m->uevents = (struct uevents){ .changed = on_uevent, .userdata = m };
	return uevents_start(&m->uevents, m->machine.event);
}
