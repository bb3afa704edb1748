/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The daemon: events come in, cgroups become dirty, a flush makes their files right.
 *
 *	cgroup made		a unit of systemd? ask for its properties; else
 *				mirror its io.weight
 *	io.weight written	ask again, or mirror again
 *	systemd reloaded	ask about all units
 *	udev event		after a pause make a new topology, resolve all
 *				statements, switch configured leaves, all dirty
 *	queue/scheduler written	all dirty
 *	every ReconcileSec=	scan the tree, all dirty
 *
 * Only cgroups whose parent is a slice of systemd (or the root) can be units of the
 * system manager; below a service or scope is what somebody else made there.
 */

#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "bus.h"
#include "manager.h"

/* One new device is a burst of uevents (partitions, LVM, udev's own changes); this is
 * long enough to take most of it in one go and short enough for a person.
 */
#define RESCAN_DELAY_USEC 100000U

/* Shares are about the last second. */
#define SAMPLE_INTERVAL_USEC 1000000U

/* Somebody who watches asks again within this time; then sampling stops, because
 * reading the counters of a thousand cgroups each second costs a few percent CPU.
 */
#define SAMPLE_LINGER_USEC 10000000U

/* ---- dirty cgroups ---- */

static int on_flush(sd_event_source *s, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *root = cgroup_tree_root(m->tree);
	int err = 0;

	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c))
		err = actuate_children(&m->actuator, c);
	if (err)
		return err;
	if (!m->ready && units_pending(m->units) == 0) {
		m->ready = true;
		log_debug("All units are known, weights are in force.");
		sd_notify(false, "READY=1");
	}
	return 0;
}

static void flush_soon(struct manager *m)
{
	sd_event_source_set_enabled(m->flush, SD_EVENT_ONESHOT);
}

static void mark(struct manager *m, struct cgroup *c)
{
	c->dirty = true;
	if (c->parent && actuator_needs_siblings(&m->actuator)) {
		struct cgroup *s;

		TAILQ_FOREACH(s, &c->parent->children, siblings)
			s->dirty = true;
	}
	flush_soon(m);
}

void manager_mark_all(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->tree);

	for (struct cgroup *c = root; c; c = cgroup_next(root, c)) {
		c->dirty = true;
		c->refused = false;
	}
	flush_soon(m);
}

/* ---- what is said about a cgroup ---- */

static bool may_be_unit(const struct cgroup *c)
{
	const struct cgroup *up = c->parent;

	return up && unit_is_name(c->name) &&
	       (!up->parent ||
		(up->origin != CGROUP_FOREIGN && endswith(up->name, ".slice")));
}

static void set_policy(struct manager *m, struct cgroup *c, struct policy *p)
{
	policy_done(&c->policy);
	c->policy = *p;
	*p = (struct policy){};
	c->waiting = false;
	policy_resolve(&c->policy, m->topology, &m->roots);
	c->refused = false;
	mark(m, c);
}

/* io.weight of a cgroup that systemd did not make is what its owner asks for. */
static int mirror(struct manager *m, struct cgroup *c)
{
	struct policy p = { .source = POLICY_FILE, .weight = WEIGHT_DEFAULT };
	_cleanup_free_ char *text = NULL;
	struct weights w = {};
	int r;

	p.subject = strdup(c->path);
	if (!p.subject)
		return -ENOMEM;
	r = cgroup_read(c, "io.weight", &text);
	if (!r)
		r = weights_parse(&w, text);
	if (r > 0)
		log_warning("%s: io.weight has %d line(s) that are no weights "
			    "in 1..10000, ignoring.",
			    c->path, r);
	if (w.fallback) {
		p.weight = w.fallback;
		p.weight_set = w.fallback != WEIGHT_DEFAULT;
	}
	for (size_t i = 0; i < w.n_lines && r != -ENOMEM; i++) {
		struct device *d =
			topology_by_devno(m->topology, w.lines[i].devno);

		if (d)
			r = policy_add(&p, d->node, w.lines[i].weight);
	}
	weights_done(&w);
	if (r != -ENOMEM) {
		c->origin = CGROUP_FOREIGN;
		set_policy(m, c, &p);
	}
	policy_done(&p);
	return r == -ENOMEM ? r : 0;
}

static void ask_about(struct manager *m, struct cgroup *c)
{
	bool unit = may_be_unit(c);
	int r = unit ? units_ask(m->units, c->name) : mirror(m, c);

	c->waiting = unit && r >= 0;
	if (r < 0)
		log_warning_errno(r,
				  "%s: cannot find out what is asked for "
				  "it, ignoring: %m",
				  c->path);
}

/* Now that a slice is known to be a unit, those below it may be units. */
static void ask_about_children(struct manager *m, const struct cgroup *slice)
{
	struct cgroup *c;

	TAILQ_FOREACH(c, &slice->children, siblings)
		if (c->origin == CGROUP_FOREIGN && may_be_unit(c))
			ask_about(m, c);
}

static void ask_about_all(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->tree);

	for (struct cgroup *c = cgroup_next(root, root); c;
	     c = cgroup_next(root, c))
		ask_about(m, c);
}

/* ---- the cgroup tree ---- */

static void on_cgroup_added(struct cgroup *c, void *userdata)
{
	struct manager *m = userdata;

	c->policy.weight = WEIGHT_DEFAULT;
	c->policy.subject = strdup(c->path);
	if (c->parent)
		ask_about(m, c);
}

static void on_cgroup_removed(struct cgroup *c, void *userdata)
{
	struct manager *m = userdata;

	/* The children of bfq are scaled together. */
	if (c->parent && m->flush)
		mark(m, c);
}

static void on_cgroup_modified(struct cgroup *c, const char *file,
			       void *userdata)
{
	struct manager *m = userdata;

	/* systemd or somebody may have written over our lines. It may also be
	 * the echo of our own write; one that failed must not go round for ever.
	 */
	if (streq(file, "io.weight"))
		ask_about(m, c);
	else if (!c->refused)
		mark(m, c);
}

static void on_events_lost(void *userdata)
{
	struct manager *m = userdata;

	log_debug("Events about cgroups were lost, looking at all of them.");
	sd_event_source_set_time(m->reconcile, 0);
}

static const struct cgroup_ops cgroup_ops = {
	.added = on_cgroup_added,
	.removed = on_cgroup_removed,
	.modified = on_cgroup_modified,
	.lost = on_events_lost,
};

/* ---- systemd ---- */

static struct cgroup *find_candidate(const struct manager *m, const char *name)
{
	struct cgroup *root = cgroup_tree_root(m->tree);

	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		if (streq(c->name, name) && may_be_unit(c))
			return c;
	return NULL;
}

static void on_unit_answer(struct unit_answer *a, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *c = NULL;

	if (!a->cgroup) {
		log_warning("systemd does not answer about %s.", a->name);
		c = find_candidate(m, a->name);
		if (c)
			c->waiting = false;
		return;
	}
	if (*a->cgroup)
		c = cgroup_find(m->tree, a->cgroup);
	if (c && c->parent) {
		bool is_new = c->origin != CGROUP_UNIT;

		c->origin = CGROUP_UNIT;
		set_policy(m, c, &a->policy);
		if (is_new)
			ask_about_children(m, c);
	} else if (!*a->cgroup && (c = find_candidate(m, a->name))) {
		/* It only looks like a unit, or is one no more. */
		if (mirror(m, c) == -ENOMEM)
			log_oom();
	}
	if (!m->ready)
		flush_soon(m);
}

/* A question about a cgroup that only looks like a unit makes systemd load, and soon
 * unload, a unit of that name; to ask again then would never end.
 */
static void on_unit_appeared(const char *name, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *c = find_candidate(m, name);

	if (c && c->origin == CGROUP_UNIT)
		ask_about(m, c);
}

static void on_all_units_changed(void *userdata)
{
	ask_about_all(userdata);
}

static const struct unit_ops unit_ops = {
	.answer = on_unit_answer,
	.appeared = on_unit_appeared,
	.all_changed = on_all_units_changed,
};

struct cgroup *manager_find_unit(const struct manager *m, const char *name)
{
	struct cgroup *c;

	if (name[0] == '/')
		return cgroup_find(m->tree, name);
	c = find_candidate(m, name);
	return c && c->origin == CGROUP_UNIT ? c : NULL;
}

/* ---- block devices ---- */

static int on_scheduler_written(sd_event_source *s,
				const struct inotify_event *event,
				void *userdata)
{
	struct manager *m = userdata;
	bool switched = false;

	for (size_t i = 0; i < m->topology->n_devices; i++) {
		struct device *d = m->topology->devices[i];
		_cleanup_free_ char *before = NULL;

		if (!d->leaf)
			continue;
		before = strdup(d->scheduler ?: "");
		if (!before || device_read_scheduler(d, &m->roots) == -ENOMEM)
			return -ENOMEM;
		if (d->scheduler && !streq(before, d->scheduler)) {
			manager_leaf_switched(m, d);
			switched = true;
		}
	}
	/* Away and back before we looked: the kernel has forgotten weights. */
	if (!switched)
		manager_mark_all(m);
	return 0;
}

void manager_leaf_switched(struct manager *m, const struct device *leaf)
{
	log_debug("%s: has the scheduler %s now.", leaf->node, leaf->scheduler);
	if (m->bus)
		sd_bus_emit_properties_changed(m->bus, BUS_PATH, BUS_INTERFACE,
					       "ManagedLeaves", NULL);
	manager_mark_all(m);
}

static void unwatch_schedulers(struct manager *m)
{
	for (size_t i = 0; i < m->n_schedulers; i++)
		sd_event_source_disable_unref(m->schedulers[i]);
	m->n_schedulers = 0;
}

static int watch_schedulers(struct manager *m)
{
	unwatch_schedulers(m);
	for (size_t i = 0; i < m->topology->n_devices; i++) {
		const struct device *d = m->topology->devices[i];
		_cleanup_free_ char *path = NULL;
		sd_event_source **grown;

		if (!d->leaf)
			continue;
		path = asprintf_or_null("%s/class/block/%s/queue/scheduler",
					m->roots.sysfs, d->name);
		grown = reallocarray(m->schedulers, m->n_schedulers + 1,
				     sizeof(*grown));
		if (grown)
			m->schedulers = grown;
		if (!path || !grown)
			return -ENOMEM;
		if (sd_event_add_inotify(
			    m->event, &m->schedulers[m->n_schedulers], path,
			    IN_MODIFY, on_scheduler_written, m) >= 0)
			m->n_schedulers++;
	}
	return 0;
}

int manager_renew_topology(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->tree);
	struct topology *new;
	int err;

	err = topology_new(&m->roots, &new);
	if (err)
		return log_error_errno(err, "Cannot read %s: %m",
				       m->roots.sysfs);
	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		policy_resolve(&c->policy, new, &m->roots);
	topology_free(m->topology);
	m->topology = new;
	m->actuator.topology = new;
	err = leaves_configure(&m->roots, m->conf, new, m->dry_run);
	if (!err)
		err = watch_schedulers(m);
	if (!err && root)
		err = actuator_survey(&m->actuator, root);
	if (err)
		return err;
	if (m->bus)
		sd_bus_emit_properties_changed(m->bus, BUS_PATH, BUS_INTERFACE,
					       "ManagedLeaves", NULL);
	if (root)
		manager_mark_all(m);
	return 0;
}

static int on_rescan(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	manager_renew_topology(m);
	return 0;
}

static int on_uevent(sd_device_monitor *monitor, sd_device *device,
		     void *userdata)
{
	struct manager *m = userdata;
	int enabled = SD_EVENT_OFF;

	/* The first event of a burst sets the time, so that a device that
	 * never stops changing cannot put it off for ever.
	 */
	sd_event_source_get_enabled(m->rescan, &enabled);
	if (enabled == SD_EVENT_OFF) {
		sd_event_source_set_time_relative(m->rescan, RESCAN_DELAY_USEC);
		sd_event_source_set_enabled(m->rescan, SD_EVENT_ONESHOT);
	}
	return 0;
}

static int monitor_devices(struct manager *m)
{
	int r;

	if (!roots_are_real(&m->roots))
		return 0;
	r = sd_device_monitor_new(&m->monitor);
	if (r >= 0)
		r = sd_device_monitor_filter_add_match_subsystem_devtype(
			m->monitor, "block", NULL);
	if (r >= 0)
		r = sd_device_monitor_attach_event(m->monitor, m->event);
	if (r >= 0)
		r = sd_device_monitor_start(m->monitor, on_uevent, m);
	return r;
}

/* ---- samples ---- */

static uint64_t now_usec(const struct manager *m)
{
	uint64_t usec = 0;

	sd_event_now(m->event, CLOCK_MONOTONIC, &usec);
	return usec;
}

static int on_sampling(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	int err;

	err = sampler_take(&m->sampler, cgroup_tree_root(m->tree), m->topology,
			   now_usec(m));
	if (err)
		return err;
	bus_samples_taken(m);
	if (now_usec(m) < m->sample_until_usec) {
		sd_event_source_set_time_relative(s, SAMPLE_INTERVAL_USEC);
		sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	}
	return 0;
}

int manager_want_samples(struct manager *m)
{
	int enabled = SD_EVENT_OFF;

	m->sample_until_usec = now_usec(m) + SAMPLE_LINGER_USEC;
	sd_event_source_get_enabled(m->sampling, &enabled);
	if (enabled != SD_EVENT_OFF)
		return 0;
	sd_event_source_set_time(m->sampling, 0);
	return sd_event_source_set_enabled(m->sampling, SD_EVENT_ONESHOT);
}

/* ---- comparing everything ---- */

static int on_reconcile(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *root;
	int err;

	err = cgroup_tree_scan(m->tree);
	root = cgroup_tree_root(m->tree);
	for (size_t i = 0; i < m->topology->n_devices && !err; i++)
		if (m->topology->devices[i]->leaf &&
		    device_read_scheduler(m->topology->devices[i], &m->roots) ==
			    -ENOMEM)
			err = -ENOMEM;
	if (!err)
		err = actuator_survey(&m->actuator, root);
	if (err)
		return log_error_errno(err, "Cannot look at all cgroups: %m");
	for (struct cgroup *c = root; c; c = cgroup_next(root, c)) {
		if (c->origin == CGROUP_FOREIGN && mirror(m, c) == -ENOMEM)
			return log_oom();
		if (c->origin == CGROUP_PENDING && c->parent && !c->waiting)
			ask_about(m, c);
	}
	manager_mark_all(m);
	sd_event_source_set_time_relative(s, m->conf->reconcile_usec);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int load_conf(struct manager *m)
{
	_cleanup_strv_ char **errors = NULL;
	struct conf *conf;
	int err;

	err = conf_load(&m->roots, &conf, &errors);
	for (char **e = errors; e && *e; e++)
		log_error("%s", *e);
	if (err)
		return err;
	conf_free(m->conf);
	m->conf = conf;
	return 0;
}

int manager_reload(struct manager *m)
{
	int err;

	err = load_conf(m);
	if (err)
		log_error_errno(err, "The configuration has mistakes, the last "
				     "good one stays in force: %m");
	manager_renew_topology(m);
	sd_event_source_set_time(m->reconcile, 0);
	ask_about_all(m);
	return err;
}

/* ---- life ---- */

static int on_hangup(sd_event_source *s, const struct signalfd_siginfo *si,
		     void *userdata)
{
	manager_reload(userdata);
	return 0;
}

static int on_terminate(sd_event_source *s, const struct signalfd_siginfo *si,
			void *userdata)
{
	struct manager *m = userdata;

	sd_notify(false, "STOPPING=1");
	actuate_restore(&m->actuator, cgroup_tree_root(m->tree));
	return sd_event_exit(m->event, 0);
}

static void on_weight_changed(const struct cgroup *c, const struct device *leaf,
			      uint64_t old, uint64_t new, const char *reason,
			      void *userdata)
{
	bus_weight_changed(userdata, c, leaf, old, new, reason);
}

static int add_sources(struct manager *m)
{
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	r = sd_event_add_signal(m->event, NULL, SIGTERM, on_terminate, m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGINT, on_terminate,
					m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGHUP, on_hangup, m);
	if (r >= 0)
		r = sd_event_add_defer(m->event, &m->flush, on_flush, m);
	if (r >= 0)
		r = sd_event_add_time(m->event, &m->rescan, CLOCK_MONOTONIC, 0,
				      0, on_rescan, m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->rescan, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(m->event, &m->sampling, CLOCK_MONOTONIC,
				      0, 0, on_sampling, m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->sampling, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(m->event, &m->reconcile,
					       CLOCK_MONOTONIC,
					       m->conf->reconcile_usec, 0,
					       on_reconcile, m);
	/* Answers of systemd first, then one flush for all of them. */
	if (r >= 0)
		r = sd_event_source_set_priority(m->flush,
						 SD_EVENT_PRIORITY_IDLE);
	return r < 0 ? r : sd_event_set_watchdog(m->event, true);
}

int manager_new(const char *root, bool dry_run, struct manager **ret)
{
	_cleanup_(manager_freep) struct manager *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return log_oom();
	err = roots_init(&m->roots, root);
	if (err)
		return log_oom();
	m->dry_run = dry_run;
	err = actuator_init(&m->actuator, &m->roots);
	if (err)
		return log_error_errno(err, "Cannot read %s: %m", m->roots.run);
	m->actuator.dry_run = dry_run;
	m->actuator.changed = on_weight_changed;
	m->actuator.userdata = m;
	if (!dry_run)
		mkdir(m->roots.run, 0755);
	err = load_conf(m);
	if (err)
		return log_error_errno(err, "Cannot load the configuration: "
					    "%m");
	*ret = TAKE_PTR(m);
	return 0;
}

static int start(struct manager *m)
{
	int r;

	r = sd_event_default(&m->event);
	if (r >= 0)
		r = add_sources(m);
	if (r < 0)
		return log_error_errno(r, "Cannot set up the event loop: %m");
	r = monitor_devices(m);
	if (r < 0)
		return log_error_errno(r, "Cannot listen to udev: %m");
	r = cgroup_tree_new(&m->roots, m->event, &cgroup_ops, m, &m->tree);
	if (r < 0)
		return r;
	r = manager_renew_topology(m);
	if (r < 0)
		return r;
	r = bus_open(m);
	if (r < 0)
		return r;
	r = units_new(m->bus, &unit_ops, m, &m->units);
	if (r < 0)
		return log_error_errno(r, "Cannot follow systemd: %m");
	r = cgroup_tree_scan(m->tree);
	if (r >= 0)
		r = actuator_survey(&m->actuator, cgroup_tree_root(m->tree));
	if (r < 0)
		return log_error_errno(r, "Cannot read the cgroups in %s: %m",
				       cgroup_tree_mount(m->tree));
	manager_mark_all(m);
	return 0;
}

int manager_run(struct manager *m)
{
	int r = start(m);

	if (r < 0)
		return r;
	return sd_event_loop(m->event);
}

struct manager *manager_free(struct manager *m)
{
	if (!m)
		return NULL;
	bus_close(m);
	m->flush = sd_event_source_disable_unref(m->flush);
	cgroup_tree_free(m->tree);
	units_free(m->units);
	unwatch_schedulers(m);
	free(m->schedulers);
	actuator_done(&m->actuator);
	topology_free(m->topology);
	conf_free(m->conf);
	sd_device_monitor_unref(m->monitor);
	sd_event_source_disable_unref(m->rescan);
	sd_event_source_disable_unref(m->reconcile);
	sd_event_source_disable_unref(m->sampling);
	sd_bus_flush_close_unref(m->bus);
	sd_event_unref(m->event);
	roots_done(&m->roots);
	free(m);
	return NULL;
}
