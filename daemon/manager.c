/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The daemon: events arrive, cgroups become dirty, a flush writes their files.
 *
 *	cgroup made		request the properties of the unit; without a unit,
 *				mirror its io.weight
 *	io.weight written	request again, or mirror again
 *	systemd reloaded	request all units
 *	udev event, md		after a pause make a new topology, resolve all
 *				statements, switch configured leaves, all dirty
 *	mount, unmount		resolve all statements, those that lead elsewhere are dirty
 *	queue/scheduler written	all dirty; restore costs of requests
 *	every second		look for the volumes in use, if a promise is about any
 *	every ReconcileSec=	scan the tree, all dirty
 */

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "bus/interface.h"
#include "bus/pieces.h"
#include "bus/quota.h"
#include "bus/wait.h"
#include "host/diskcall.h"
#include "host/event.h"
#include "host/sampler.h"
#include "job.h"
#include "manager.h"
#include "restore.h"

/* Shares are about the last second. */
#define SAMPLE_INTERVAL_USEC 1000000U

/* ---- samples ---- */

static int on_sample(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	uint64_t began = cpu_usec();
	int r = sampler_next(&m->watcher, m->machine.topology,
			     machine_now_usec(&m->machine));

	if (r < 0)
		return r;
	m->sample_took_usec += cpu_usec() - began;
	if (r > 0)
		return manager_arm_batch(s);
	bus_charge_samples(&m->bus, m->sample_took_usec);
	bus_samples_taken(&m->bus);
	sd_event_source_set_time_relative(m->sampling, SAMPLE_INTERVAL_USEC);
	return sd_event_source_set_enabled(m->sampling, SD_EVENT_ONESHOT);
}

static int on_sampling(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *root = cgroup_tree_root(m->machine.tree);

	/* on_samples_read() goes on. */
	if (bus_reads_samples(&m->bus))
		return 0;
	/* Without calls the samples are freed; a call that comes later waits for two new ones. */
	if (!bus_has_waiters(&m->bus) &&
	    machine_now_usec(&m->machine) >= m->sample_until_usec) {
		sampler_forget(&m->watcher, root);
		malloc_trim(0);
		return 0;
	}
	sampler_begin(&m->watcher, root);
	m->sample_took_usec = 0;
	return on_sample(m->sample, 0, m);
}

/* Begin the next sample, unless its time is set or it is being taken. */
static int go_on_sampling(struct manager *m)
{
	int enabled = SD_EVENT_OFF;

	sd_event_source_get_enabled(m->sampling, &enabled);
	if (enabled != SD_EVENT_OFF ||
	    cgroup_cursor_goes_on(&m->watcher.cursor))
		return 0;
	sd_event_source_set_time(m->sampling, 0);
	return sd_event_source_set_enabled(m->sampling, SD_EVENT_ONESHOT);
}

static int on_want_samples(void *userdata)
{
	struct manager *m = userdata;

	m->sample_until_usec =
		machine_now_usec(&m->machine) + SAMPLE_LINGER_USEC;
	return go_on_sampling(m);
}

static void on_samples_read(void *userdata)
{
	go_on_sampling(userdata);
}

/* ---- configuration ---- */

static int load_conf(struct manager *m)
{
	_cleanup_strv_ char **errors = NULL;
	struct conf *conf;
	int err;

	err = conf_load(&m->machine.roots, &conf, &errors);
	manager_log_sentences(errors);
	if (err)
		return err;
	if (m->conf)
		capacities_keep_state(&conf->capacities, &m->conf->capacities);
	conf_free(m->conf);
	m->conf = conf;
	m->bus.conf = conf;
	m->machine.max_sectors_kb = conf->max_sectors_kb;
	m->machine.nr_requests = conf->nr_requests;
	return 0;
}

int manager_reload(struct manager *m)
{
	int err = manager_load_policies(m), conf_err;

	if (err == -ENOMEM)
		return log_oom();
	bus_property_changed(&m->bus, "PolicyErrors");
	conf_err = load_conf(m);
	if (conf_err)
		log_error_errno(conf_err,
				"Cannot load the configuration, the last one "
				"stays in force: %m");
	manager_drop_paths(m);
	lookups_forget(&m->lookups);
	leaf_switches_retry(&m->switches);
	manager_renew_topology(m);
	sd_event_source_set_time(m->reconcile, 0);
	manager_request_all(m);
	err = err ?: conf_err;
	if (!err)
		log_event(EVENT_RELOADED, LOG_INFO, NULL,
			  "The configuration and all policies were read "
			  "again.");
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
	governor_save(&m->governor);
	if (roots_are_real(&m->machine.roots) &&
	    job_kind(m->systemd) == JOB_RESTART) {
		log_event(EVENT_RESTARTS, LOG_INFO, NULL,
			  "sutrod restarts: weights and limits stay in force.");
		return sd_event_exit(m->machine.event, 0);
	}
	if (resyncs_follow(&m->machine, false) < 0)
		log_oom();
	cgfiles_restore(&m->files, cgroup_tree_root(m->machine.tree));
	log_event(EVENT_STOPPED, LOG_INFO, NULL,
		  "sutrod has stopped: weights and limits are restored.");
	return sd_event_exit(m->machine.event, 0);
}

static void on_weight_changed(const struct cgroup *c, const struct device *leaf,
			      uint64_t old, uint64_t new, const char *reason,
			      void *userdata)
{
	struct manager *m = userdata;

	bus_weight_changed(&m->bus, c, leaf, old, new, reason);
}

static void on_setpoint_changed(struct cgroup *c, void *userdata)
{
	struct manager *m = userdata;

	manager_mark(m, c);
	sd_event_source_set_time(m->flush_due, 0);
}

static void on_state_changed(const struct governed *f, void *userdata)
{
	struct manager *m = userdata;

	bus_promise_changed(&m->bus, f);
}

static void on_opened(void *userdata)
{
	manager_flush_soon(userdata);
}

static int on_reload(void *userdata)
{
	return manager_reload(userdata);
}

static int on_reload_policies(void *userdata)
{
	return manager_reload_policies(userdata);
}

static void on_catch_up(const char *path, void *userdata)
{
	manager_catch_up(userdata, path);
}

static void on_switch_over(const struct device *leaf, bool changed,
			   void *userdata)
{
	struct manager *m = userdata;

	if (leaf && changed)
		manager_leaf_switched(m, leaf);
	else if (!m->ready)
		manager_flush_soon(m);
}

static int start_bus(struct manager *m)
{
	static const struct bus_ops ops = {
		.reload = on_reload,
		.reload_policies = on_reload_policies,
		.policy_changed = manager_policy_changed,
		.catch_up = on_catch_up,
		.want_samples = on_want_samples,
		.samples_read = on_samples_read,
		.opened = on_opened,
	};

	m->bus = (struct bus){
		.ops = &ops,
		.userdata = m,
		.machine = &m->machine,
		.switches = &m->switches,
		.policies = m->policies,
		.clients = &m->clients,
		.watcher = &m->watcher,
		.governor = &m->governor,
		.actuator = &m->actuator,
		.conf = m->conf,
	};
	return bus_open(&m->bus);
}

static int start_governor(struct manager *m)
{
	const struct control_context context = {
		.machine = &m->machine,
		.actuator = &m->actuator,
		.setpoint_changed = on_setpoint_changed,
		.state_changed = on_state_changed,
		.userdata = m,
	};

	return governor_start(&m->governor, &context);
}

int manager_arm_batch(sd_event_source *s)
{
	int r = sd_event_source_set_time(s, 0);

	return r < 0 ? r : sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* A walk over all cgroups takes turns with calls of users: the loop serves the source first that has
 * been ready for longer. A timer becomes ready each time, and a deferred source has been ready since
 * it was added.
 */
static int add_batches(struct manager *m, sd_event_source **ret,
		       sd_event_time_handler_t handler)
{
	int r = sd_event_add_time(m->machine.event, ret, CLOCK_MONOTONIC, 0, 0,
				  handler, m);

	if (r >= 0)
		r = sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
	return r < 0 ? r
		     : sd_event_source_set_priority(*ret,
						    MACHINE_PRIORITY_CALLS);
}

static int add_sources(struct manager *m)
{
	sd_event_source **vital[] = { &m->flush,  &m->flush_due, &m->sampling,
				      &m->sample, &m->reconcile, &m->compare,
				      &m->volumes };
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	/* For the children of helper.c. */
	sigaddset(&signals, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	r = sd_event_add_signal(m->machine.event, NULL, SIGTERM, on_terminate,
				m);
	if (r >= 0)
		r = sd_event_add_signal(m->machine.event, NULL, SIGINT,
					on_terminate, m);
	if (r >= 0)
		r = sd_event_add_signal(m->machine.event, NULL, SIGHUP,
					on_hangup, m);
	if (r >= 0)
		r = sd_event_add_defer(m->machine.event, &m->flush,
				       manager_on_flush, m);
	if (r >= 0)
		r = sd_event_add_defer(m->machine.event, &m->hung,
				       manager_on_hung, m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->hung, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(m->machine.event, &m->rescan,
				      CLOCK_MONOTONIC, 0, 0, manager_on_rescan,
				      m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->rescan, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(m->machine.event, &m->sampling,
				      CLOCK_MONOTONIC, 0, 0, on_sampling, m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->sampling, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(m->machine.event, &m->volumes,
				      CLOCK_MONOTONIC, 0, 0, manager_on_volumes,
				      m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->volumes, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(m->machine.event, &m->reconcile,
					       CLOCK_MONOTONIC,
					       m->conf->reconcile_usec, 0,
					       manager_on_reconcile, m);
	if (r >= 0)
		r = sd_event_add_time(m->machine.event, &m->flush_due,
				      CLOCK_MONOTONIC, 0, 0,
				      manager_on_flush_due, m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->flush_due, SD_EVENT_OFF);
	if (r >= 0)
		r = add_batches(m, &m->compare, manager_on_compare);
	if (r >= 0)
		r = add_batches(m, &m->requests, manager_on_requests);
	if (r >= 0)
		r = add_batches(m, &m->sample, on_sample);
	/* Process answers of systemd first, then write once for all of them. */
	if (r >= 0)
		r = sd_event_source_set_priority(m->flush,
						 MACHINE_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_priority(m->flush_due,
						 MACHINE_PRIORITY_SETPOINTS);
	/* These fail without memory only; systemd starts the service again. */
	for (size_t i = 0; i < ARRAY_SIZE(vital) && r >= 0; i++)
		r = sd_event_source_set_exit_on_failure(*vital[i], true);
	return r < 0 ? r : sd_event_set_watchdog(m->machine.event, true);
}

int manager_new(const char *root, bool dry_run, struct manager **ret)
{
	_cleanup_(manager_freep) struct manager *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return log_oom();
	err = roots_init(&m->machine.roots, root);
	if (err)
		return log_oom();
	/* Before anything is read, because this gives up capabilities. */
	if (roots_are_real(&m->machine.roots) &&
	    latency_open(&m->machine.latency) < 0)
		return log_oom();
	TAILQ_INIT(&m->marked);
	m->machine.dry_run = dry_run;
	leaf_switches_init(&m->switches, &m->machine);
	m->switches.over = on_switch_over;
	m->switches.userdata = m;
	err = cgfiles_init(&m->files, &m->machine.roots, dry_run);
	if (err)
		return log_error_errno(err, "Cannot read %s: %m",
				       m->machine.roots.run);
	actuator_init(&m->actuator, &m->files);
	m->actuator.changed = on_weight_changed;
	m->actuator.userdata = m;
	if (!dry_run)
		mkdir(m->machine.roots.run, 0755);
	err = load_conf(m);
	if (err)
		return log_error_errno(err, "Cannot load the configuration: "
					    "%m");
	err = policies_new(&m->machine.roots, &m->policies);
	if (err)
		return log_oom();
	/* Of a folder that cannot be read there is a message; the other settings hold. */
	if (manager_load_policies(m) == -ENOMEM)
		return log_oom();
	*ret = TAKE_PTR(m);
	return 0;
}

static int follow_systemd(struct manager *m)
{
	int r = sd_bus_open_system(&m->systemd);

	if (r >= 0)
		r = sd_bus_set_exit_on_disconnect(m->systemd, true);
	if (r >= 0)
		r = sd_bus_attach_event(m->systemd, m->machine.event,
					SD_EVENT_PRIORITY_NORMAL);
	return r < 0 ? r
		     : units_new(m->systemd, &manager_unit_ops, m, &m->units);
}

static int start(struct manager *m)
{
	int r;

	r = sd_event_default(&m->machine.event);
	lookups_init(&m->lookups, m->machine.event, &m->machine.roots,
		     manager_on_lookups, m);
	m->machine.lookups = &m->lookups;
	if (r >= 0)
		r = add_sources(m);
	if (r < 0)
		return log_error_errno(r, "Cannot set up the event loop: %m");
	diskcalls_follow(m->machine.event, manager_on_hung_changed, m);
	r = manager_watch_devices(m);
	if (r < 0)
		return log_error_errno(r, "Cannot listen to udev: %m");
	r = cgroup_tree_new(&m->machine.roots, m->machine.event,
			    &manager_cgroup_ops, m, &m->machine.tree);
	if (r < 0)
		return r;
	r = manager_renew_topology(m);
	if (r < 0)
		return r;
	r = start_bus(m);
	if (r < 0)
		return r;
	clients_init(&m->clients, m->bus.connection, manager_policy_changed, m);
	r = follow_systemd(m);
	if (r < 0)
		return log_error_errno(r, "Cannot follow systemd: %m");
	m->bus.units = m->units;
	r = start_governor(m);
	if (r < 0)
		return log_error_errno(r, "Cannot keep floors: %m");
	r = costs_job_start(&m->costs, &m->machine);
	if (r < 0)
		return log_error_errno(r, "Cannot save costs of requests: %m");
	r = cgroup_tree_scan(m->machine.tree);
	if (r >= 0)
		cgfiles_prune(&m->files, m->machine.tree);
	if (r >= 0)
		r = actuator_survey(&m->actuator,
				    cgroup_tree_root(m->machine.tree));
	if (r >= 0)
		r = resyncs_follow(&m->machine, m->conf->resync.n);
	if (r < 0)
		return log_error_errno(r, "Cannot read the cgroups in %s: %m",
				       cgroup_tree_mount(m->machine.tree));
	manager_mark_all(m);
	return 0;
}

int manager_run(struct manager *m)
{
	int r = start(m);

	if (r < 0)
		return r;
	r = sd_event_loop(m->machine.event);
	if (r < 0)
		return log_error_errno(r, "Cannot go on: %m");
	/* Both connections end the loop when they are lost. */
	if (r > 0)
		log_error("Cannot go on without the system bus.");
	return r;
}

struct manager *manager_free(struct manager *m)
{
	if (!m)
		return NULL;
	bus_close(&m->bus);
	governor_stop(&m->governor);
	clients_done(&m->clients);
	costs_job_stop(&m->costs);
	leaf_switches_done(&m->switches);
	lookups_done(&m->lookups);
	m->flush = sd_event_source_disable_unref(m->flush);
	m->flush_due = sd_event_source_disable_unref(m->flush_due);
	cgroup_tree_free(m->machine.tree);
	units_free(m->units);
	manager_unwatch_devices(m);
	free(m->schedulers);
	actuator_done(&m->actuator);
	cgfiles_done(&m->files);
	latency_close(m->machine.latency);
	topology_free(m->machine.topology);
	resyncs_done(&m->machine.resyncs);
	conf_free(m->conf);
	policies_free(m->policies);
	uevents_stop(&m->uevents);
	sd_event_source_disable_unref(m->md);
	sd_event_source_disable_unref(m->mounts);
	diskcalls_end();
	sd_event_source_disable_unref(m->hung);
	sd_event_source_disable_unref(m->rescan);
	sd_event_source_disable_unref(m->reconcile);
	sd_event_source_disable_unref(m->compare);
	sd_event_source_disable_unref(m->requests);
	sd_event_source_disable_unref(m->sampling);
	sd_event_source_disable_unref(m->sample);
	sd_event_source_disable_unref(m->volumes);
	sd_bus_flush_close_unref(m->bus.connection);
	sd_bus_flush_close_unref(m->systemd);
	sd_event_unref(m->machine.event);
	roots_done(&m->machine.roots);
	free(m);
	return NULL;
}
