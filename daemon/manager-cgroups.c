/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The manager's part about cgroups: changes in the tree make cgroups dirty, a flush writes
 * the files of dirty ones, and a periodic comparison finds changes without an event.
 *
 * Users can make any number of cgroups. So the comparison reads and writes the files of COMPARE_BATCH
 * of them at a time, and the loop serves all else in between.
 */

#include <systemd/sd-daemon.h>

#include "control/ceiling.h"
#include "control/class.h"
#include "control/enforce.h"
#include "control/reserve.h"
#include "manager.h"
#include "policy/unit-cgroup.h"
#include "restore.h"

/* Lost events bring the next comparison forward. Such comparisons take a twentieth of the
 * time at most, and happen once in a second at most.
 */
#define COMPARE_REST 20U
#define COMPARE_MIN_USEC 1000000U
#define COMPARE_BATCH 200U

/* Changes that are not setpoints are collected for this long before they are written. */
#define FLUSH_DELAY_USEC 50000U

/* ---- dirty cgroups ---- */

static int flush(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->machine.tree);
	int err;

	sd_event_source_set_enabled(m->flush, SD_EVENT_OFF);
	sd_event_source_set_enabled(m->flush_due, SD_EVENT_OFF);
	/* Any unit may have a floor that needs lines of other cgroups: those of a predecessor
	 * stay until all units are known. The last answer causes the next flush.
	 */
	if (!m->governor.has_begun && units_pending(m->units) > 0)
		return 0;
	err = governor_begin(&m->governor);
	/* Before systemd has answered there are no settings to write. */
	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c))
		if (c->dirty && c->parent && !c->waiting &&
		    c->origin != CGROUP_PENDING)
			err = ceilings_apply(&m->files, m->machine.topology, c)
				      ?: class_apply(&m->files, c)
				      ?: reserve_apply(&m->files,
						       &m->governor.plant, c)
				      ?: enforce_apply(&m->files, c);
	for (struct cgroup *c = root; c && !err; c = cgroup_next(root, c))
		err = actuate_children(&m->actuator, c);
	if (err)
		return err;
	if (!m->ready && m->bus.is_open && units_pending(m->units) == 0 &&
	    TAILQ_EMPTY(&m->switches.list)) {
		m->ready = true;
		log_debug("All units are known, weights are in force.");
		sd_notify(false, "READY=1");
	}
	return 0;
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
	c->dirty = true;
	manager_flush_soon(m);
}

void manager_mark_all(struct manager *m)
{
	struct cgroup *root = cgroup_tree_root(m->machine.tree);

	for (struct cgroup *c = root; c; c = cgroup_next(root, c)) {
		c->dirty = true;
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

	/* While the daemon ends, cgroups are freed, but none was removed. */
	if (m->flush) {
		if (m->compare_next == c)
			m->compare_next = cgroup_next_beside(
				cgroup_tree_root(m->machine.tree), c);
		governor_cgroup_gone(&m->governor, c);
		cgfiles_cgroup_gone(&m->files, c);
		if (c->parent) {
			c->parent->has_lost_child = true;
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
	c->dirty = true;
	cgfile_retry(c);
	return 0;
}

/* A daemon that ends in each comparison, as by the watchdog, does not serve. */
static void end_comparison(struct manager *m)
{
	if (m->ready)
		crashes_forget(&m->machine.roots);
	request_lost(m);
	rest_after_comparison(m, m->compare_took_usec);
}

int manager_on_compare(sd_event_source *s, void *userdata)
{
	struct manager *m = userdata;
	struct cgroup *root = cgroup_tree_root(m->machine.tree);
	uint64_t began = cpu_usec();
	int err;

	for (unsigned int i = 0; m->compare_next && i < COMPARE_BATCH; i++) {
		struct cgroup *c = m->compare_next;

		m->compare_next = cgroup_next(root, c);
		if (compare_cgroup(m, c) < 0)
			return log_oom();
	}
	err = flush(m);
	m->compare_took_usec += cpu_usec() - began;
	if (err)
		return err;
	if (m->compare_next)
		return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	end_comparison(m);
	return 0;
}

int manager_on_reconcile(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;
	uint64_t began = cpu_usec();
	struct cgroup *root;
	int err, changed;

	sd_event_source_set_time_relative(s, m->compare_next
						     ? COMPARE_MIN_USEC
						     : m->conf->reconcile_usec);
	err = sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	/* The last one is still under way. */
	if (err < 0 || m->compare_next)
		return err;
	manager_compare_devices(m);
	err = cgroup_tree_scan(m->machine.tree);
	root = cgroup_tree_root(m->machine.tree);
	if (!err && manager_read_schedulers(m) == -ENOMEM)
		err = -ENOMEM;
	changed = err ?: actuator_survey(&m->actuator, root);
	if (changed > 0)
		governor_renew(&m->governor);
	else
		err = changed;
	if (!err)
		err = resyncs_follow(&m->machine, m->conf->resync.n);
	if (err)
		return log_error_errno(err, "Cannot look at all cgroups: %m");
	manager_drop_paths(m);
	if (manager_compare_paths(m) < 0)
		return log_oom();
	m->compare_next = root;
	m->compare_took_usec = cpu_usec() - began;
	return sd_event_source_set_enabled(m->compare, SD_EVENT_ONESHOT);
}
