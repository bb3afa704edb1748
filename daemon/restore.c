/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * sutrod --restore: the lines of the daemon end with it, also after a crash.
 *
 * A daemon that crashes leaves its last weights in force, and the next one takes them over. After
 * CRASHES_MAX crashes or failed starts in a row no daemon follows the units. Outdated weights are
 * worse than none, so all are restored. systemd continues to start the daemon.
 *
 * It may wait for a disk, which the daemon may not. So it also saves the costs of requests at the end
 * of the service (host/costs.c).
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "control/resync-group.h"
#include "host/cgfile.h"
#include "host/costs.h"
#include "host/discover.h"
#include "host/event.h"
#include "host/leaf-switch.h"
#include "job.h"
#include "policy/policy.h"
#include "restore.h"

#define CRASHES_MAX 3U

/* ---- crashes ---- */

static char *crashes_path(const struct roots *roots)
{
	return asprintf_or_null("%s/crashes", roots->run);
}

void crashes_forget(const struct roots *roots)
{
	_cleanup_free_ char *path = crashes_path(roots);

	if (path)
		unlink(path);
}

/* Count one more crash. Without a readable count, assume too many. */
static uint64_t count_crash(const struct roots *roots)
{
	_cleanup_free_ char *path = crashes_path(roots), *text = NULL;
	uint64_t n = 0;
	FILE *f;

	if (!path)
		return CRASHES_MAX;
	if (read_file_at(AT_FDCWD, path, &text) == 0)
		parse_u64(text, &n);
	n++;
	mkdir(roots->run, 0755);
	f = fopen(path, "we");
	if (!f)
		return CRASHES_MAX;
	fprintf(f, "%llu\n", (unsigned long long)n);
	return fclose(f) ? CRASHES_MAX : n;
}

/* ---- the successor ---- */

static enum job find_job(void)
{
	enum job job = JOB_NONE;
	sd_bus *bus = NULL;

	if (sd_bus_open_system(&bus) >= 0)
		job = job_kind(bus);
	sd_bus_flush_close_unref(bus);
	return job;
}

static bool is_continued(const struct roots *roots)
{
	const char *result = getenv("SERVICE_RESULT");
	enum job job = result ? find_job() : JOB_STOP;
	uint64_t n;

	if (job != JOB_NONE || streq(result, "success")) {
		crashes_forget(roots);
		return job == JOB_RESTART;
	}
	n = count_crash(roots);
	if (n < CRASHES_MAX)
		return true;
	log_event(EVENT_WEIGHTS_TAKEN_BACK, LOG_WARNING, NULL,
		  "sutrod crashed or failed to start %llu times in a row: "
		  "restoring all weights and limits. Run \"journalctl "
		  "--unit=sutrod\" for the cause; systemd continues to start "
		  "sutrod.",
		  (unsigned long long)n);
	return false;
}

/* ---- restoring ---- */

static void on_added(struct cgroup *c, void *userdata)
{
}

static void on_removed(struct cgroup *c, void *userdata)
{
	cgfile_retry(c);
}

static int restore_cgroups(struct machine *m)
{
	static const struct cgroup_ops ops = {
		.policy_bytes = sizeof(struct policy),
		.added = on_added,
		.removed = on_removed,
	};
	struct cgfiles files;
	int err;

	err = cgroup_tree_new(&m->roots, NULL, &ops, NULL, &m->tree)
		      ?: cgroup_tree_scan(m->tree);
	if (err)
		return err;
	err = cgfiles_init(&files, &m->roots, false);
	if (!err) {
		cgfiles_follow_devices(&files, m->topology);
		err = resyncs_follow(m, false)
			      ?: cgfiles_restore(&files,
						 cgroup_tree_root(m->tree));
	}
	if (!err)
		cgfiles_prune(&files, m->tree);
	cgfiles_done(&files);
	return err;
}

static void on_released(const struct device *leaf,
			const struct leaf_result *result, void *userdata)
{
	int *failed = userdata;

	*failed |= leaf && result->error;
}

/* The event loop for the children that switch the leaves. */
static int new_event(sd_event **ret)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &child, NULL) < 0)
		return -errno;
	return sd_event_new(ret);
}

/* Return: 0, -EIO if a leaf kept the scheduler, or another -errno. */
static int release_leaves(struct machine *m)
{
	int err = new_event(&m->event), failed = 0;
	struct leaf_switches all;

	leaf_switches_init(&all, m);
	for (size_t i = 0; err >= 0 && i < m->topology->n_devices; i++)
		if (m->topology->devices[i]->leaf)
			err = leaf_switch(&all, m->topology->devices[i], false,
					  on_released, &failed);
	while (err >= 0 && !TAILQ_EMPTY(&all.list))
		err = sd_event_run(m->event, UINT64_MAX);
	leaf_switches_done(&all);
	m->event = sd_event_unref(m->event);
	return err < 0 ? err : failed ? -EIO : 0;
}

/* Without the devices, schedulers and threads of md stay as they are, but weights do not need them. */
static int find_devices(struct machine *m)
{
	int err = topology_new(&m->roots, NULL, &m->topology);

	if (!err)
		return 0;
	log_error_errno(err, "Cannot read %s, taking back weights only: %m",
			m->roots.sysfs);
	m->topology = calloc(1, sizeof(*m->topology));
	return m->topology ? err : -ENOMEM;
}

int restore(const char *root, bool release)
{
	struct machine m = {};
	int err = roots_init(&m.roots, root), released = 0;

	if (err)
		return log_oom();
	if (!is_continued(&m.roots)) {
		released = find_devices(&m);
		if (!released)
			costs_save_all(&m.roots, m.topology);
		if (!released && release)
			released = release_leaves(&m);
		err = m.topology ? restore_cgroups(&m) : -ENOMEM;
		if (err)
			log_error_errno(err, "Cannot take back all weights: "
					     "%m");
	}
	cgroup_tree_free(m.tree);
	topology_free(m.topology);
	resyncs_done(&m.resyncs);
	roots_done(&m.roots);
	return err ?: released;
}
