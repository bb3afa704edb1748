/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <sys/stat.h>
#include <unistd.h>

#include "fake-tree.h"

#define IDLE_ROUNDS 50U

static void on_added(struct cgroup *c, void *userdata)
{
	struct test *t = userdata;

	g_string_append_printf(t->log, "+%s ", c->shown);
}

static void on_removed(struct cgroup *c, void *userdata)
{
	struct test *t = userdata;

	g_string_append_printf(t->log, "-%s ", c->shown);
}

static void on_modified(struct cgroup *c, const char *file, void *userdata)
{
	struct test *t = userdata;

	g_string_append_printf(t->log, "~%s:%s ", c->shown, file);
}

static void on_lost(void *userdata)
{
	struct test *t = userdata;

	g_string_append(t->log, "lost ");
}

static void read_tree(struct test *t)
{
	static const struct cgroup_ops ops = {
		.policy_bytes = 1,
		.added = on_added,
		.removed = on_removed,
		.modified = on_modified,
		.lost = on_lost,
	};

	check(cgroup_tree_new(&t->roots, t->event, &ops, t, &t->tree) == 0);
	check(cgroup_tree_scan(t->tree) == 0);
}

void setup(struct test *t)
{
	*t = (struct test){ .log = g_string_new(NULL) };
	fake_new(&t->roots);
	fake_dir(&t->roots, MOUNT "/system.slice/a.service");
	check(sd_event_new(&t->event) >= 0);
	read_tree(t);
}

void mount_at(struct test *t, const char *dir)
{
	cgroup_tree_free(t->tree);
	free(t->roots.cgroup);
	t->roots.cgroup = strdup(dir);
	read_tree(t);
}

void teardown(struct test *t)
{
	cgroup_tree_free(t->tree);
	sd_event_unref(t->event);
	g_string_free(t->log, true);
	fake_remove(&t->roots);
}

/* sd-event returns 0 also after events of watches that have ended, a buffer of them at a time. */
void handle_events(struct test *t)
{
	for (unsigned int idle = 0; idle < IDLE_ROUNDS; idle++)
		if (sd_event_run(t->event, 0) > 0)
			idle = 0;
}

void settle(struct test *t)
{
	handle_events(t);
	g_string_truncate(t->log, 0);
}

bool has_logged(struct test *t, const char *expected)
{
	bool is_same;

	handle_events(t);
	is_same = streq(t->log->str, expected);
	if (!is_same)
		fprintf(stderr, "\"%s\", not \"%s\"\n", t->log->str, expected);
	g_string_truncate(t->log, 0);
	return is_same;
}

void make(struct test *t, const char *path)
{
	g_autofree char *full = g_strconcat(t->roots.prefix, MOUNT, path, NULL);

	check(mkdir(full, 0755) == 0);
}

void drop(struct test *t, const char *path)
{
	g_autofree char *full = g_strconcat(t->roots.prefix, MOUNT, path, NULL);

	check(rmdir(full) == 0);
}

void make_many(struct test *t, const char *top, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		g_autofree char *path = g_strdup_printf("%s/%u", top, i);

		make(t, path);
	}
}

void give_away(struct test *t, const char *cgroup)
{
	fake_file(&t->roots, "/owners", "%s %u\n", cgroup + 1, getuid() + 1);
	fake_kernel(&t->roots);
}
