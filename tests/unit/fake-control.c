/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <glib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake-control.h"
#include "host/discover.h"
#include "policy/policy.h"

static const char *const paths[] = { "/app.slice/db", "/app.slice/web",
				     "/batch.slice/job" };

/* The clock of sd-event. It begins above 0, which means "never" to timers. */
static uint64_t clock_usec = 1000000;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return syscall(SYS_clock_gettime, clock, t);
	*t = (struct timespec){ .tv_sec = clock_usec / 1000000,
				.tv_nsec = clock_usec % 1000000 * 1000 };
	return 0;
}

static void on_setpoint_changed(struct cgroup *c, void *userdata)
{
	struct fake_control *f = userdata;

	f->n_setpoints++;
}

static void on_state_changed(const struct governed *floor, void *userdata)
{
	struct fake_control *f = userdata;

	f->n_states++;
}

static void fake_stripe(const struct roots *r)
{
	static const char *const files[][2] = {
		{ "dev", "254:0" },
		{ "size", "4194304" },
		{ "dm/name", "fast" },
		{ "queue/optimal_io_size", "131072" },
	};
	g_autofree char *link =
		g_strconcat(r->prefix, "/sys/class/block/dm-0", NULL);

	fake_dir(r, "/sys/devices/virtual/block/dm-0/slaves/sda");
	fake_dir(r, "/sys/devices/virtual/block/dm-0/slaves/sdb");
	for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
		g_autofree char *file = g_strconcat(
			"/sys/devices/virtual/block/dm-0/", files[i][0], NULL);

		fake_file(r, file, "%s\n", files[i][1]);
	}
	check(symlink("../../devices/virtual/block/dm-0", link) == 0);
}

void fake_control_new(struct fake_control *f)
{
	struct roots *r = &f->machine.roots;

	*f = (struct fake_control){};
	fake_new(r);
	fake_disk(r, "sda", "8:0", "sutro");
	fake_disk(r, "sdb", "8:16", "sutro");
	fake_stripe(r);
	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
		g_autofree char *dir =
			g_strconcat("/sys/fs/cgroup", paths[i], NULL);

		fake_dir(r, dir);
	}
	check(topology_new(r, NULL, &f->machine.topology) == 0);
	f->machine.tree = fake_cgroups(r);
	check(sd_event_new(&f->machine.event) >= 0);
	check(cgfiles_init(&f->files, r, false) == 0);
	actuator_init(&f->actuator, &f->files);
	f->actuator.topology = f->machine.topology;
	f->context = (struct control_context){
		.machine = &f->machine,
		.actuator = &f->actuator,
		.setpoint_changed = on_setpoint_changed,
		.state_changed = on_state_changed,
		.userdata = f,
	};
	/* Calls of sd_event_now() before the first run have the time of the last. */
	fake_control_run(f, 0);
}

void fake_control_free(struct fake_control *f)
{
	actuator_done(&f->actuator);
	cgfiles_done(&f->files);
	cgroup_tree_free(f->machine.tree);
	topology_free(f->machine.topology);
	sd_event_unref(f->machine.event);
	fake_remove(&f->machine.roots);
}

struct cgroup *fake_control_cgroup(const struct fake_control *f,
				   const char *path)
{
	struct cgroup *c = cgroup_find(f->machine.tree, path);

	check(c);
	return c;
}

struct device *fake_control_device(const struct fake_control *f,
				   const char *name)
{
	struct device *d = topology_by_name(f->machine.topology, name);

	check(d);
	return d;
}

void fake_control_promise(struct fake_control *f, const char *cgroup,
			  enum promise_key key, const char *text)
{
	struct cgroup *c = fake_control_cgroup(f, cgroup);
	const char *allowed;
	struct promise p;

	check(promise_parse(key, text, "/etc/sutro/policy.d/db.policy:3", &p,
			    &allowed) == 0);
	check(promises_add(&c->policy->promises, &p) == 0);
	c->policy->promises.items[c->policy->promises.n - 1].device =
		fake_control_device(f, startswith(p.path, "/dev/"));
	promise_done(&p);
}

void fake_control_withdraw(struct fake_control *f, const char *cgroup)
{
	promises_done(&fake_control_cgroup(f, cgroup)->policy->promises);
}

void fake_control_scheduler(struct fake_control *f, const char *leaf,
			    const char *scheduler)
{
	struct device *d = fake_control_device(f, leaf);

	free(d->scheduler);
	d->scheduler = strdup(scheduler);
	check(d->scheduler);
}

void fake_control_run(struct fake_control *f, uint64_t usec)
{
	clock_usec += usec;
	while (sd_event_run(f->machine.event, 0) > 0)
		;
}

void fake_control_active(struct fake_control *f, const char *leaf,
			 const uint64_t ms[3], const uint64_t kb[3])
{
	g_autoptr(GString) text = g_string_new(NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
		if (!ms[i])
			continue;
		/* Requests wait all the time, and four of them are in flight. */
		g_string_append_printf(
			text,
			"%s %llu time_ns=%llu rbytes=%llu rios=%llu "
			"wait_ns=%llu pending_ns=%llu busy_ns=%llu "
			"backlog_ns=%llu queued=9\n",
			leaf,
			(unsigned long long)fake_control_cgroup(f, paths[i])
				->inode,
			(unsigned long long)ms[i] * 1000000,
			(unsigned long long)kb[i] * 1000,
			(unsigned long long)kb[i] / 4,
			(unsigned long long)clock_usec * 1000,
			(unsigned long long)clock_usec * 4000,
			(unsigned long long)clock_usec * 1000,
			(unsigned long long)clock_usec * 1000);
	}
	fake_file(&f->machine.roots, "/sys/fs/cgroup/io.sutro.active", "%s",
		  text->str);
}
