/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * When costs of requests are saved and restored (costs.c).
 *
 *	a leaf gets the elevator	restored: after a boot, a switch, a start of the daemon
 *	5 minutes after that		saved
 *	each hour			saved
 *	a leaf is released		saved (leaf-switch.c)
 *	sutrod --restore		saved, when the service has ended (restore.c)
 *
 * The file system of /var may be on a disk that hangs, so a child process does it, one at a time. A
 * child that takes longer than a minute is killed. The next save tries again. A restore does not: the
 * elevator measures from its first requests on, and the costs that it has measured are newer.
 */

#include "host/costs-job.h"
#include "host/costs.h"
#include "host/event.h"
#include "host/helper.h"

#define USEC_PER_MINUTE 60000000ULL
#define LIMIT_USEC USEC_PER_MINUTE
#define FIRST_USEC (5 * USEC_PER_MINUTE)
#define SAVE_USEC (60 * USEC_PER_MINUTE)

static int save_in_child(int fd, void *userdata)
{
	const struct costs_job *j = userdata;

	costs_save_all(&j->machine->roots, j->machine->topology);
	return 0;
}

static bool is_new(const struct device *d)
{
	return costs_has_elevator(d) && !d->has_costs && !d->is_switching;
}

static int restore_in_child(int fd, void *userdata)
{
	const struct costs_job *j = userdata;
	const struct topology *t = j->machine->topology;

	for (size_t i = 0; i < t->n_devices; i++)
		if (is_new(t->devices[i]))
			costs_restore(&j->machine->roots, t->devices[i]);
	return 0;
}

static void on_done(int err, const char *output, size_t length, void *userdata)
{
	struct costs_job *j = userdata;
	const char *folder = j->machine->roots.costs;

	j->helper = NULL;
	if (err && j->is_save)
		log_event(
			EVENT_COSTS_NOT_SAVED, LOG_WARNING,
			EVENT_FIELDS({ "SUTRO_FILE", folder }),
			"Cannot save costs of requests in %s: %s. sutrod tries again within an hour; is a disk busy or dead?",
			folder, strerror(-err));
	else if (err)
		log_warning_errno(
			err,
			"Cannot restore costs of requests from %s: %m. "
			"They are measured again. Is a disk busy or dead?",
			j->machine->roots.costs);
	if (j->is_due)
		costs_job_follow(j);
}

static int start_child(struct costs_job *j, bool save)
{
	const struct helper_job job = {
		.keep_fd = -1,
		.limit_usec = LIMIT_USEC,
		.work = save ? save_in_child : restore_in_child,
		.done = on_done,
		.userdata = j,
	};
	int err = helper_start(j->machine->event, &job, &j->helper);

	j->is_save = save;
	if (err)
		log_debug_errno(err, "Cannot start a child for costs: %m");
	return err;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct costs_job *j = userdata;

	if (!j->helper)
		start_child(j, true);
	sd_event_source_set_time_relative(s, SAVE_USEC);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static bool has_new(const struct topology *t)
{
	for (size_t i = 0; i < t->n_devices; i++)
		if (is_new(t->devices[i]))
			return true;
	return false;
}

void costs_job_follow(struct costs_job *j)
{
	struct topology *t = j->timer ? j->machine->topology : NULL;

	if (!t || !has_new(t))
		return;
	j->is_due = j->helper != NULL;
	if (j->is_due || start_child(j, false))
		return;
	for (size_t i = 0; i < t->n_devices; i++)
		t->devices[i]->has_costs |= is_new(t->devices[i]);
	sd_event_source_set_time_relative(j->timer, FIRST_USEC);
	sd_event_source_set_enabled(j->timer, SD_EVENT_ONESHOT);
}

int costs_job_start(struct costs_job *j, struct machine *m)
{
	int r;

	j->machine = m;
	if (m->dry_run)
		return 0;
	r = sd_event_add_time_relative(m->event, &j->timer, CLOCK_MONOTONIC,
				       SAVE_USEC, 0, on_timer, j);
	if (r >= 0)
		costs_job_follow(j);
	return r;
}

void costs_job_stop(struct costs_job *j)
{
	j->helper = helper_cancel(j->helper);
	j->timer = sd_event_source_disable_unref(j->timer);
}
