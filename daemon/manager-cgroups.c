/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The manager's part about cgroups: changes in the tree make cgroups dirty, a flush writes
 * the files of dirty ones, and a periodic comparison finds changes without an event.
 *
 * Users can make any number of cgroups. So the comparison looks at CGROUP_BATCH of them at a time, a
 * flush writes the files of as many of theirs, and the loop serves all else in between.
 */

#include <systemd/sd-daemon.h>

#include "control/ceiling.h"
#include "control/class.h"
#include "control/enforce.h"
#include "control/promised.h"
#include "control/reserve.h"
#include "host/event.h"
#include "manager.h"
#include "policy/unit-cgroup.h"
#include "restore.h"

/* Lost events bring the next comparison forward. Such comparisons take a twentieth of the
 * time at most, and happen once in a second at most.
 */
#define COMPARE_REST 20U
#define COMPARE_MIN_USEC 1000000U

/* Changes that are not setpoints are collected for this long before they are written. */
#define FLUSH_DELAY_USEC 50000U

/* ---- dirty cgroups ---- */

/* Make @c one of those that the next flush takes. */
static void add_mark(struct manager *m, struct cgroup *c)
{
	if (c->is_marked)
		return;
	c->is_marked = true;
	TAILQ_INSERT_TAIL(&m->marked, c, marks);
}

static void mark_dirty(struct manager *m, struct cgroup *c)
{
	/* The root has no settings. */
	if (!c->parent)
		return;
	c->dirty = true;
	add_mark(m, c);
}

/* Choose the cgroups of a flush: all of systemd's, and CGROUP_BATCH of the delegated ones, of which a
 * user can make any number.
 */
static void choose(struct manager *m, struct cgroup_list *chosen)
{
	unsigned int n_delegated = 0;
	struct cgroup *c, *next;

	for (c = TAILQ_FIRST(&m->marked); c; c = next) {
		next = TAILQ_NEXT(c, marks);
		if (c->is_delegated && n_delegated++ >= CGROUP_BATCH)
			continue;
		TAILQ_REMOVE(&m->marked, c, marks);
		TAILQ_INSERT_TAIL(chosen, c, marks);
		c->due = c->dirty;
		c->dirty = false;
	}
}

/* Those that became dirty meanwhile are marked again. */
static void end_flush(struct manager *m, struct cgroup_list *chosen)
{
	struct cgroup *c;

	while ((c = TAILQ_FIRST(chosen))) {
		TAILQ_REMOVE(chosen, c, marks);
		c->is_marked = false;
		if (c->dirty)
			add_mark(m, c);
	}
}

/* Before systemd has answered there are no settings to write. */
static int apply(struct manager *m, struct cgroup *c)
{
	if (!c->due || c->waiting || c->origin == CGROUP_PENDING)
		return 0;
	return ceilings_apply(&m->files, m->machine.topology, c)
		       ?: class_apply(&m->files, c)
		       ?: reserve_apply(&m->files, &m->governor.plant, c)
		       ?: enforce_apply(&m->files, c);
}

/* Weights are written together with those beside them. */
static int apply_weights(struct manager *m, struct cgroup *c)
{
	int err = c->due ? actuate_children(&m->actuator, c->parent) : 0;

	if (!err && c->has_lost_child)
		err = actuate_children(&m->actuator, c);
	return err;
}

static int report_capacities(struct manager *m)
{
	const struct admission_base base = {
		.machine = &m->machine,
		.policies = m->policies,
		.clients = &m->clients,
		.plant = &m->governor.plant,
		.actuator = &m->actuator,
	};

	return promised_report(&base, &m->conf->capacities);
}

static int flush(struct manager *m)
{
	struct cgroup_list chosen = TAILQ_HEAD_INITIALIZER(chosen);
	struct cgroup *c;
	int err;

	sd_event_source_set_enabled(m->flush, SD_EVENT_OFF);
	sd_event_source_set_enabled(m->flush_due, SD_EVENT_OFF);
	/* Any unit may have a floor that needs lines of other cgroups: those of a predecessor
	 * stay until all units are known. The last answer causes the next flush.
	 */
	if (!m->governor.has_begun && units_pending(m->units) > 0)
		return 0;
	err = governor_begin(&m->governor);
	choose(m, &chosen);
	TAILQ_FOREACH(c, &chosen, marks)
		if (!err)
			err = apply(m, c);
	TAILQ_FOREACH(c, &chosen, marks)
		if (!err)
			err = apply_weights(m, c);
	end_flush(m, &chosen);
	if (err)
		return err;
	if (!TAILQ_EMPTY(&m->marked)) {
		manager_flush_soon(m);
		return 0;
	}
	if (!m->ready && m->bus.is_open && units_pending(m->units) == 0 &&
	    TAILQ_EMPTY(&m->switches.list)) {
		m->ready = true;
		log_event(EVENT_STARTED, LOG_INFO,
			  EVENT_FIELDS({ "SUTRO_VERSION", SUTRO_VERSION }),
			  "sutrod " SUTRO_VERSION " has started: %s.",
			  m->machine.dry_run ? "it writes nothing"
					     : "weights are in force");
		/* The journal has the report when units after this one start. */
		err = report_capacities(m);
		if (!err)
			sd_notify(false, "READY=1");
	}
	return err;
}

int manager_on_flush(sd_event_source *s, void *userdata)
{
	return flush(userdata);
}

int manager_on_flush_due(sd_event_source *s, uint64_t usec, void *userdata)
{
	return flush(userdata);
}

void manager_flush_soon(struct manager *m)
{
	int enabled = SD_EVENT_ON;

	sd_event_source_set_enabled(m->flush, SD_EVENT_ONESHOT);
	sd_event_source_get_enabled(m->flush_due, &enabled);
	if (enabled != SD_EVENT_OFF)
		return;
	sd_event_source_set_time_relative(m->flush_due, FLUSH_DELAY_USEC);
	sd_event_source_set_enabled(m->flush_due, SD_EVENT_ONESHOT);
}

void manager_mark(struct manager *m, struct cgroup *c)
{
	mark_dirty(m, c);
	manager_flush_soon(m);
}

void manager_mark_all(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->machine.tree);

	for (struct cgroup *c = root; c; c = cgroup_next(root, c)) {
		mark_dirty(m, c);
		cgfile_retry(c);
	}
	manager_flush_soon(m);
}

/* ---- the cgroup tree ---- */

static void on_cgroup_added(struct cgroup *c, void *userdata)
{
	struct manager *m = userdata;

	c->policy->weight = WEIGHT_DEFAULT;
	c->policy->subject = strdup(c->shown);
	c->node = CONTROL_NONE;
	if (!c->parent) {
		manager_request_root(m);
		return;
	}
	governor_cgroup_added(&m->governor, c);
	manager_request(m, c);
}

static void on_cgroup_removed(struct cgroup *c, void *userdata)
{
	struct manager *m = userdata;

	if (c->is_marked)
		TAILQ_REMOVE(&m->marked, c, marks);
	/* While the daemon ends, cgroups are freed, but none was removed. */
	if (m->flush) {
		governor_cgroup_gone(&m->governor, c);
		cgfiles_cgroup_gone(&m->files, c);
		if (c->parent) {
			c->parent->has_lost_child = true;
			add_mark(m, c->parent);
			manager_flush_soon(m);
		}
	}
	policy_done(c->policy);
	cgfile_retry(c);
	samples_drop(c);
}

static void on_cgroup_modified(struct cgroup *c, const char *file,
			       void *userdata)
{
	struct manager *m = userdata;

	/* systemd or another program may have overwritten lines. The daemon's own write
	 * causes an event, too: the comparison then finds no difference, or
	 * only lines that the kernel refused, which are not written again.
	 */
	if (streq(file, "io.bfq.weight") && manager_has_new_bfq_weight(m, c)) {
		manager_request(m, c);
	} else if (!streq(file, "io.weight")) {
		manager_mark(m, c);
	} else if (!cgfile_take_echo(c)) {
		log_debug("%s: io.weight was written, requesting its settings.",
			  c->shown);
		manager_request(m, c);
	}
}

static void on_events_lost(void *userdata)
{
	struct manager *m = userdata;
	uint64_t due = 0;

	log_debug("Events about cgroups were lost, looking at all of them.");
	m->events_lost = true;
	sd_event_source_get_time(m->reconcile, &due);
	if (due > m->compare_after_usec)
		sd_event_source_set_time(m->reconcile, m->compare_after_usec);
}

const struct cgroup_ops manager_cgroup_ops = {
	.policy_bytes = sizeof(struct policy),
	.added = on_cgroup_added,
	.removed = on_cgroup_removed,
	.modified = on_cgroup_modified,
	.lost = on_events_lost,
};

/* ---- the periodic comparison ---- */

static void rest_after_comparison(struct manager *m, uint64_t took_usec)
{
	uint64_t rest_usec = took_usec * COMPARE_REST;

	if (rest_usec < COMPARE_MIN_USEC)
		rest_usec = COMPARE_MIN_USEC;
	m->compare_after_usec = machine_now_usec(&m->machine) + rest_usec;
}

/* A setting that systemd wrote meanwhile is in none of the files that are compared. Any user can
 * cause the loss of events, so there are requests about all units once in ReconcileSec= at most.
 */
static void request_lost(struct manager *m)
{
	uint64_t now_usec = machine_now_usec(&m->machine);

	if (!m->events_lost || now_usec < m->request_after_usec)
		return;
	m->events_lost = false;
	m->request_after_usec = now_usec + m->conf->reconcile_usec;
	manager_request_all(m);
}

/* The flush that follows compares the files. */
static int compare_cgroup(struct manager *m, struct cgroup *c)
{
	bool is_unknown = c->origin == CGROUP_PENDING && c->parent;
	bool is_due = c->unanswered || (is_unknown && !c->waiting);

	if (c->origin == CGROUP_FOREIGN && manager_mirror(m, c) == -ENOMEM)
		return -ENOMEM;
	if (is_due)
		manager_request(m, c);
	/* The answer was about another cgroup with the name of this one. */
	if (c->waiting && !units_waits_for(m->units, cgroup_unit_name(c)) &&
	    manager_mirror(m, c) == -ENOMEM)
		return -ENOMEM;
	mark_dirty(m, c);
	cgfile_retry(c);
	return 0;
}

/* A daemon that ends in each comparison, as by the watchdog, does not serve. */
static void end_comparison(struct manager *m)
{
	if (m->ready)
		crashes_forget(&m->machine.roots);
	if (m->ready && report_capacities(m) < 0)
		log_oom();
	request_lost(m);
	rest_after_comparison(m, m->compare_took_usec);
}

/* Look for cgroups. At the end of the scan, their comparison begins. */
static int search(struct manager *m)
{
	struct cgroup *root;
	int changed, r = cgroup_scan_next(m->machine.tree);

	if (r > 0)
		return 0;
	root = cgroup_tree_root(m->machine.tree);
	if (!r && manager_read_schedulers(m) == -ENOMEM)
		r = -ENOMEM;
	changed = r ?: actuator_survey(&m->actuator, root);
	if (changed > 0)
		governor_renew(&m->governor);
	else
		r = changed;
	if (!r)
		r = resyncs_follow(&m->machine, m->conf->resync.n);
	if (r)
		return log_error_errno(r, "Cannot look at all cgroups: %m");
	manager_drop_paths(m);
	if (manager_compare_paths(m) < 0)
		return log_oom();
	cgroup_cursor_begin(&m->compared, root);
	return 0;
}

static int compare(struct manager *m)
{
	for (unsigned int i = 0; i < CGROUP_BATCH; i++) {
		struct cgroup *c = cgroup_cursor_next(&m->compared);

		if (c && compare_cgroup(m, c) < 0)
			return log_oom();
	}
	return flush(m);
}

static bool comparison_goes_on(const struct manager *m)
{
	return cgroup_scan_goes_on(m->machine.tree) ||
	       cgroup_cursor_goes_on(&m->compared);
}

int manager_on_compare(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	uint64_t began = cpu_usec();
	int err = cgroup_scan_goes_on(m->machine.tree) ? search(m) : compare(m);

	m->compare_took_usec += cpu_usec() - began;
	if (err)
		return err;
	if (comparison_goes_on(m))
		return manager_arm_batch(s);
	end_comparison(m);
	return 0;
}

int manager_on_reconcile(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	uint64_t began = cpu_usec();
	bool goes_on = comparison_goes_on(m);
	int err;

	sd_event_source_set_time_relative(s, goes_on ? COMPARE_MIN_USEC
						     : m->conf->reconcile_usec);
	err = sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	/* The last one is still under way. */
	if (err < 0 || goes_on)
		return err;
	manager_compare_devices(m);
	err = cgroup_scan_begin(m->machine.tree);
	if (err)
		return log_oom();
	m->compare_took_usec = cpu_usec() - began;
	return manager_arm_batch(m->compare);
}
