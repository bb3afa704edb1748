/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Watches of the directories of cgroups, within limits for those that users write to.
 *
 * A watch on each cgroup's directory reports cgroups below it and writes to its files at
 * once (systemd writes io.weight when IOWeight= changes, but sends no signal). The scan is
 * the safety net.
 *
 * The owner of a delegated cgroup can write to its files at any rate. Its watches have a queue of
 * their own (sd-event has one for each priority), so that an overflow loses no event of systemd's
 * cgroups. After EVENTS_MAX events a delegated cgroup is looked at with the next scan only.
 *
 * All watches of the machine's root have one limit, fs.inotify.max_user_watches, and the owner can
 * make any number of cgroups. So a topmost delegated cgroup and those below it have WATCHES_MAX
 * watches. The others are looked at with the next scan, which also gives them watches that became
 * free. The limit of the kernel is 8192 or more, that is, the watches of 16 users.
 */

#include <sys/inotify.h>

#include "host/cgroup.h"
#include "host/event.h"
#include "host/priority.h"

#define EVENTS_MAX 1000U
#define WATCHES_MAX 500U

/* The topmost cgroup that others than systemd may write below, NULL: @c is systemd's. That of a
 * service or scope of root is one, for each cgroup in it is delegated.
 */
static struct cgroup *top_delegated(struct cgroup *c)
{
	struct cgroup *top = NULL;

	for (; c->parent; c = c->parent)
		if (c->is_delegated || endswith(c->name, ".service") ||
		    endswith(c->name, ".scope"))
			top = c;
	return top;
}

/* Count a watch of @c. That of the topmost cgroup itself is always granted: systemd writes there. */
static bool count_watch(struct cgroup *c)
{
	struct cgroup *top = top_delegated(c);

	if (!top)
		return true;
	if (top != c && top->n_watches >= WATCHES_MAX) {
		if (!top->is_beyond_watches)
			log_event(
				EVENT_WATCHES_LIMITED, LOG_INFO,
				EVENT_FIELDS({ "SUTRO_CGROUP", top->shown }),
				"%s: more than %u cgroups below it, changes in "
				"the others are found by the periodic "
				"comparison.",
				top->shown, WATCHES_MAX);
		top->is_beyond_watches = true;
		return false;
	}
	top->n_watches++;
	c->watch_counter = top;
	return true;
}

void cgroup_unwatch(struct cgroup *c)
{
	c->watch = sd_event_source_disable_unref(c->watch);
	if (c->watch_counter)
		c->watch_counter->n_watches--;
	c->watch_counter = NULL;
}

/* With too few watches of inotify, thousands of cgroups fail at each scan, so one message stands for
 * all, until a scan without a failure.
 */
static void watch_failed(struct cgroup_watches *w, const char *path, int err)
{
	w->is_unwatched = true;
	if (!w->is_reported)
		log_unwatched(
			path,
			"changes there and in other cgroups without a watch",
			err);
	w->is_reported = true;
}

int cgroup_watch(struct cgroup *c)
{
	struct cgroup_watches *w = cgroup_tree_watches(c->tree);
	_cleanup_free_ char *full = NULL;
	int r;

	if (!w->event || !count_watch(c))
		return 0;
	full = asprintf_or_null("%s%s", cgroup_tree_mount(c->tree), c->path);
	if (!full) {
		cgroup_unwatch(c);
		return -ENOMEM;
	}
	r = sd_event_add_inotify(w->event, &c->watch, full,
				 IN_CREATE | IN_DELETE | IN_MODIFY | IN_ONLYDIR,
				 w->on_event, c);
	/* It is a copy of the path. */
	if (r >= 0)
		r = sd_event_source_set_description(c->watch, NULL);
	if (r >= 0 && c->is_delegated)
		r = sd_event_source_set_priority(c->watch,
						 MACHINE_PRIORITY_CALLS);
	if (r < 0 && r != -ENOENT)
		watch_failed(w, full, r);
	if (r < 0)
		cgroup_unwatch(c);
	return r == -ENOMEM ? r : 0;
}

/* A change of cgroup.subtree_control counts for each child, too. */
bool cgroup_count_event(struct cgroup *c, const char *file)
{
	struct cgroup *child;

	if (!c->is_delegated)
		return true;
	c->n_events++;
	if (streq(file, "cgroup.subtree_control"))
		TAILQ_FOREACH(child, &c->children, siblings)
			c->n_events++;
	if (c->n_events <= EVENTS_MAX)
		return true;
	log_debug("%s: more than %u events, its changes are found by the "
		  "periodic comparison.",
		  c->shown, EVENTS_MAX);
	cgroup_unwatch(c);
	return false;
}
