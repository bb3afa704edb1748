/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The tree of cgroups, on a fake hierarchy: which callbacks follow from which changes.
 *
 * A callback adds a word to the log of the test: "+/a" added, "-/a" removed, "~/a:io.max" modified,
 * "lost".
 */

#include <fcntl.h>
#include <glib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "host/cgroup.h"
#include "host/priority.h"

#define MOUNT "/sys/fs/cgroup"

/* More than EVENTS_MAX of cgroup.c. */
#define FLOOD 1100U
/* As in cgroup.c. */
#define WATCHES_MAX 500U
#define IDLE_ROUNDS 50U

/** struct test - a hierarchy with /system.slice/a.service */
struct test {
	struct roots roots;
	sd_event *event;
	struct cgroup_tree *tree;
	GString *log;
};

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

static void setup(struct test *t)
{
	static const struct cgroup_ops ops = {
		.policy_bytes = 1,
		.added = on_added,
		.removed = on_removed,
		.modified = on_modified,
		.lost = on_lost,
	};

	*t = (struct test){ .log = g_string_new(NULL) };
	fake_new(&t->roots);
	fake_dir(&t->roots, MOUNT "/system.slice/a.service");
	check(sd_event_new(&t->event) >= 0);
	check(cgroup_tree_new(&t->roots, t->event, &ops, t, &t->tree) == 0);
	check(cgroup_tree_scan(t->tree) == 0);
}

static void teardown(struct test *t)
{
	cgroup_tree_free(t->tree);
	sd_event_unref(t->event);
	g_string_free(t->log, true);
	fake_remove(&t->roots);
}

/* sd-event returns 0 also after events of watches that have ended, a buffer of them at a time. */
static void handle_events(struct test *t)
{
	for (unsigned int idle = 0; idle < IDLE_ROUNDS; idle++)
		if (sd_event_run(t->event, 0) > 0)
			idle = 0;
}

/* Handle all events and empty the log. */
static void settle(struct test *t)
{
	handle_events(t);
	g_string_truncate(t->log, 0);
}

/* Handle all events; is the log as expected? It is empty afterwards. */
static bool has_logged(struct test *t, const char *expected)
{
	bool is_same;

	handle_events(t);
	is_same = streq(t->log->str, expected);
	if (!is_same)
		fprintf(stderr, "\"%s\", not \"%s\"\n", t->log->str, expected);
	g_string_truncate(t->log, 0);
	return is_same;
}

static void make(struct test *t, const char *path)
{
	g_autofree char *full = g_strconcat(t->roots.prefix, MOUNT, path, NULL);

	check(mkdir(full, 0755) == 0);
}

static void drop(struct test *t, const char *path)
{
	g_autofree char *full = g_strconcat(t->roots.prefix, MOUNT, path, NULL);

	check(rmdir(full) == 0);
}

/* ---- the tests ---- */

static void test_scan(struct test *t)
{
	const struct cgroup *a =
		cgroup_find(t->tree, "/system.slice/a.service");

	check(has_logged(t, "+/ +/system.slice +/system.slice/a.service "));
	check(a && streq(a->name, "a.service"));
	check(a->parent == cgroup_find(t->tree, "/system.slice"));
	check(a->parent->parent == cgroup_tree_root(t->tree));
	check(a->inode && cgroup_by_inode(t->tree, a->inode) == a);
	check(!a->is_delegated);
	/* A present cgroup is not added again. */
	check(cgroup_tree_scan(t->tree) == 0);
	check(has_logged(t, ""));
}

static void test_events(struct test *t)
{
	settle(t);
	make(t, "/b.slice");
	check(has_logged(t, "+/b.slice "));
	make(t, "/b.slice/c.service");
	make(t, "/b.slice/c.service/d");
	check(has_logged(t, "+/b.slice/c.service +/b.slice/c.service/d "));
	check(cgroup_find(t->tree, "/b.slice/c.service/d")->is_delegated);
	drop(t, "/b.slice/c.service/d");
	drop(t, "/b.slice/c.service");
	check(has_logged(t, "-/b.slice/c.service/d -/b.slice/c.service "));
	check(!cgroup_find(t->tree, "/b.slice/c.service"));
}

static void test_files(struct test *t)
{
	settle(t);
	fake_file(&t->roots, MOUNT "/system.slice/io.weight", "1");
	check(has_logged(t, "~/system.slice:io.weight "));
	fake_file(&t->roots, MOUNT "/system.slice/io.max", "1");
	check(has_logged(t, "~/system.slice:io.max "));
	fake_file(&t->roots, MOUNT "/system.slice/memory.max", "1");
	check(has_logged(t, ""));
	/* The files of the children appear or go. */
	fake_file(&t->roots, MOUNT "/system.slice/cgroup.subtree_control", "1");
	check(has_logged(t, "~/system.slice/a.service:io.weight "));
}

static void test_delegated_flood(struct test *t)
{
	const char *file = MOUNT "/system.slice/a.service/x/io.max";
	struct cgroup *x;

	make(t, "/system.slice/a.service/x");
	settle(t);
	x = cgroup_find(t->tree, "/system.slice/a.service/x");
	check(x && x->is_delegated && x->watch);
	for (unsigned int i = 0; i < FLOOD; i++) {
		fake_file(&t->roots, file, "%u", i);
		settle(t);
	}
	check(!x->watch);
	fake_file(&t->roots, file, "more");
	check(has_logged(t, ""));
	/* The next scan watches it again, and looks at its files. */
	check(cgroup_tree_scan(t->tree) == 0);
	check(has_logged(t, "~/system.slice/a.service/x:io.weight "
			    "~/system.slice/a.service/x:io.bfq.weight "
			    "~/system.slice/a.service/x:io.max "));
	fake_file(&t->roots, file, "again");
	check(has_logged(t, "~/system.slice/a.service/x:io.max "));
}

/* systemd gives a cgroup to a user after it has made it. */
static void give_away(struct test *t, const char *cgroup)
{
	fake_file(&t->roots, "/owners", "%s %u\n", cgroup + 1, getuid() + 1);
	fake_kernel(&t->roots);
}

static void test_given_to_a_user(struct test *t)
{
	const char *file = MOUNT "/system.slice/a.service/cgroup.procs";
	struct cgroup *a = cgroup_find(t->tree, "/system.slice/a.service");
	int64_t priority;

	make(t, "/system.slice/a.service/old");
	settle(t);
	give_away(t, a->path);
	make(t, "/system.slice/a.service/x");
	drop(t, "/system.slice/a.service/old");
	/* Events that the old watch had are not lost. */
	handle_events(t);
	check(strstr(t->log->str, "+/system.slice/a.service/x "));
	check(strstr(t->log->str, "-/system.slice/a.service/old "));
	check(strstr(t->log->str, "~/system.slice/a.service:io.max "));
	check(a->is_delegated && a->watch);
	check(sd_event_source_get_priority(a->watch, &priority) >= 0);
	check(priority == MACHINE_PRIORITY_CALLS);
	settle(t);
	for (unsigned int i = 0; i < FLOOD; i++) {
		fake_file(&t->roots, file, "%u", i);
		settle(t);
	}
	check(!a->watch);
	unsetenv("SUTRO_FAKE_ROOT");
}

static void test_scan_finds_a_new_owner(struct test *t)
{
	struct cgroup *a = cgroup_find(t->tree, "/system.slice/a.service");
	int64_t priority;

	settle(t);
	give_away(t, a->path);
	check(cgroup_tree_scan(t->tree) == 0);
	check(has_logged(t, ""));
	check(a->is_delegated);
	check(sd_event_source_get_priority(a->watch, &priority) >= 0);
	check(priority == MACHINE_PRIORITY_CALLS);
	fake_file(&t->roots, MOUNT "/system.slice/a.service/io.max", "1");
	check(has_logged(t, "~/system.slice/a.service:io.max "));
	unsetenv("SUTRO_FAKE_ROOT");
}

/* As after an overflow, the scan comes before the events, and the watch is of a dead inode. */
static void test_made_again_unnoticed(struct test *t)
{
	make(t, "/b.slice");
	settle(t);
	drop(t, "/b.slice");
	make(t, "/b.slice");
	check(cgroup_tree_scan(t->tree) == 0);
	check(streq(t->log->str, "-/b.slice +/b.slice "));
	settle(t);
	fake_file(&t->roots, MOUNT "/b.slice/io.max", "1");
	check(has_logged(t, "~/b.slice:io.max "));
}

static void test_names_of_any_bytes(struct test *t)
{
	struct cgroup *c;

	settle(t);
	make(t, "/\xff\x1b[2J");
	check(has_logged(t, "+/?\?[2J "));
	c = cgroup_find(t->tree, "/\xff\x1b[2J");
	check(c && streq(c->shown, "/?\?[2J"));
}

static void test_links_are_not_followed(struct test *t)
{
	struct cgroup *a = cgroup_find(t->tree, "/system.slice/a.service");
	g_autofree char *link = g_strconcat(
		t->roots.prefix, MOUNT "/system.slice/a.service/link", NULL);
	_cleanup_free_ char *text = NULL;

	fake_file(&t->roots, MOUNT "/system.slice/a.service/file", "old");
	check(symlink("file", link) == 0);
	check(cgroup_read(a, "link", &text) == -ELOOP);
	check(cgroup_write(a, "link", "new") == -ELOOP);
	check(cgroup_write(a, "none", "new") == -ENOENT);
	check(cgroup_write(a, "file", "new") == 0);
	check(fake_has(&t->roots, MOUNT "/system.slice/a.service/file", "new"));
}

/* Standard error goes to a file until the function returns. */
static char *log_of_scan(struct test *t)
{
	g_autofree char *path = g_strconcat(t->roots.prefix, "/log", NULL);
	int before = dup(STDERR_FILENO), fd;

	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	check(before >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	check(cgroup_tree_scan(t->tree) == 0);
	settle(t);
	fflush(stderr);
	check(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	close(fd);
	return fake_read(&t->roots, "/log");
}

/* One message stands for all, until a scan without a failure. */
static void test_cgroups_that_cannot_be_watched(struct test *t)
{
	settle(t);
	fake_kernel(&t->roots);
	for (unsigned int i = 0; i < 2; i++) {
		_cleanup_free_ char *first = NULL, *second = NULL;
		_cleanup_free_ char *watched = NULL;
		const char *line;

		fake_fault(&t->roots, "/b.slice unwatchable\n"
				      "/b.slice/c unwatchable");
		make(t, "/b.slice");
		make(t, "/b.slice/c");
		make(t, "/d.slice");
		first = log_of_scan(t);
		line = strstr(first, "Cannot watch ");
		check(line && !strstr(line + 1, "Cannot watch "));
		check(strstr(line, "/b.slice, changes there"));
		check(strstr(line, "raise fs.inotify.max_user_watches"));
		check(!cgroup_find(t->tree, "/b.slice/c")->watch);
		check(cgroup_find(t->tree, "/d.slice")->watch);
		second = log_of_scan(t);
		check(streq(second, ""));

		fake_fault(&t->roots, "");
		watched = log_of_scan(t);
		check(streq(watched, ""));
		check(cgroup_find(t->tree, "/b.slice/c")->watch);
		drop(t, "/b.slice/c");
		drop(t, "/b.slice");
		drop(t, "/d.slice");
		settle(t);
	}
	unsetenv("SUTRO_FAKE_ROOT");
}

/* Watches of @top and of the cgroups below it. */
static unsigned int watches(struct test *t, const char *top)
{
	struct cgroup *first = cgroup_find(t->tree, top);
	unsigned int n = 0;

	check(first);
	for (struct cgroup *c = first; c; c = cgroup_next(first, c))
		n += c->watch != NULL;
	return n;
}

static void make_many(struct test *t, const char *top, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		g_autofree char *path = g_strdup_printf("%s/%u", top, i);

		make(t, path);
	}
}

static void test_watches_of_a_delegated_cgroup(struct test *t)
{
	_cleanup_free_ char *first = NULL, *second = NULL;
	const char *line;

	/* The cgroups in a service have one limit together, however deep they are. */
	make(t, "/system.slice/a.service/x");
	settle(t);
	make_many(t, "/system.slice/a.service/x", WATCHES_MAX / 2);
	settle(t);
	make_many(t, "/system.slice/a.service", WATCHES_MAX / 2);
	first = log_of_scan(t);
	check(watches(t, "/system.slice/a.service") == WATCHES_MAX);
	line = strstr(first, "more than 500 cgroups below it");
	check(line && strstr(first, "/system.slice/a.service: more"));
	check(!strstr(line + 1, "more than"));
	second = log_of_scan(t);
	check(streq(second, ""));
	/* Others have watches of their own. */
	make(t, "/b.slice");
	make(t, "/b.slice/b.service");
	make(t, "/b.slice/b.service/c");
	settle(t);
	check(watches(t, "/b.slice") == 3);
	/* A removed cgroup leaves its watch to another one, with the next scan. */
	drop(t, "/system.slice/a.service/x/0");
	drop(t, "/system.slice/a.service/x/1");
	settle(t);
	check(watches(t, "/system.slice/a.service") == WATCHES_MAX - 2);
	check(cgroup_tree_scan(t->tree) == 0);
	check(watches(t, "/system.slice/a.service") == WATCHES_MAX);
}

/* The comparison reads the files of such cgroups by itself. */
static void test_cgroups_beyond_the_watches(struct test *t)
{
	const struct cgroup *a =
		cgroup_find(t->tree, "/system.slice/a.service");
	unsigned int n_unwatched = 0;

	settle(t);
	make_many(t, "/system.slice/a.service", WATCHES_MAX + 10);
	settle(t);
	for (struct cgroup *c = TAILQ_FIRST(&a->children); c;
	     c = TAILQ_NEXT(c, siblings)) {
		c->origin = CGROUP_FOREIGN;
		if (c->watch)
			continue;
		fake_file(&t->roots, MOUNT "/system.slice/a.service/509/io.max",
			  "%u", n_unwatched++);
		check(has_logged(t, ""));
	}
	check(n_unwatched == 11);
	check(cgroup_tree_scan(t->tree) == 0);
	check(has_logged(t, ""));
}

/* The directories above that of the user are root's, and none is a service. */
static void test_watches_after_a_new_owner(struct test *t)
{
	make(t, "/box");
	settle(t);
	make_many(t, "/box", WATCHES_MAX + 10);
	settle(t);
	check(watches(t, "/box") == WATCHES_MAX + 11);
	give_away(t, "/box");
	check(cgroup_tree_scan(t->tree) == 0);
	check(watches(t, "/box") == WATCHES_MAX);
	unsetenv("SUTRO_FAKE_ROOT");
}

/* The watch of the topmost cgroup is no matter of those below it. */
static void test_watch_of_the_topmost_cgroup(struct test *t)
{
	const char *file = MOUNT "/system.slice/a.service/io.max";
	struct cgroup *a = cgroup_find(t->tree, "/system.slice/a.service");

	settle(t);
	make_many(t, "/system.slice/a.service", WATCHES_MAX + 10);
	settle(t);
	give_away(t, a->path);
	check(cgroup_tree_scan(t->tree) == 0);
	for (unsigned int i = 0; i < FLOOD; i++) {
		fake_file(&t->roots, file, "%u", i);
		settle(t);
	}
	check(!a->watch);
	check(cgroup_tree_scan(t->tree) == 0);
	check(a->watch && watches(t, a->path) <= WATCHES_MAX + 1);
	unsetenv("SUTRO_FAKE_ROOT");
}

/* ---- batches ---- */

/* Go on with a walk up to the cgroup of this name. */
static void walk_to(struct cgroup_cursor *k, const char *name)
{
	struct cgroup *c;

	do
		c = cgroup_cursor_next(k);
	while (c && !streq(c->name, name));
	check(c);
}

static bool is_next(struct cgroup_cursor *k, const char *path)
{
	const struct cgroup *c = cgroup_cursor_next(k);

	return path ? c && streq(c->path, path) : !c;
}

static void make_family(struct test *t)
{
	static const char *const paths[] = { "/b.slice", "/b.slice/x",
					     "/b.slice/x/1", "/b.slice/x/2",
					     "/b.slice/y" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		make(t, paths[i]);
		settle(t);
	}
}

/* A cursor before a removed cgroup goes on with the one after it, and the children are gone, too. */
static void test_cursor_at_a_removed_cgroup(struct test *t)
{
	struct cgroup_cursor k = {}, other = {};

	make_family(t);
	cgroup_cursor_begin(&k, cgroup_tree_root(t->tree));
	cgroup_cursor_begin(&other, cgroup_tree_root(t->tree));
	walk_to(&k, "x");
	walk_to(&other, "b.slice");
	drop(t, "/b.slice/x/1");
	drop(t, "/b.slice/x/2");
	drop(t, "/b.slice/x");
	settle(t);
	check(is_next(&k, "/b.slice/y"));
	check(is_next(&other, "/b.slice/y"));
	drop(t, "/b.slice/y");
	drop(t, "/b.slice");
	settle(t);
	check(is_next(&k, NULL));
	check(!cgroup_cursor_goes_on(&other));
}

/* The last one of a walk is removed; a walk that ended begins again. */
static void test_cursor_at_the_end(struct test *t)
{
	struct cgroup_cursor k = {};

	make(t, "/z.slice");
	settle(t);
	cgroup_cursor_begin(&k, cgroup_tree_root(t->tree));
	walk_to(&k, "a.service");
	check(cgroup_cursor_goes_on(&k));
	drop(t, "/z.slice");
	settle(t);
	check(!cgroup_cursor_goes_on(&k) && is_next(&k, NULL));
	cgroup_cursor_begin(&k, cgroup_tree_root(t->tree));
	check(is_next(&k, "/") && is_next(&k, "/system.slice"));
	/* From the beginning, although it has not ended. */
	cgroup_cursor_begin(&k, cgroup_tree_root(t->tree));
	check(is_next(&k, "/"));
	make(t, "/y.slice");
	settle(t);
	walk_to(&k, "a.service");
	check(is_next(&k, "/y.slice") && is_next(&k, NULL));
}

static unsigned int n_logged(const struct test *t, const char *word)
{
	unsigned int n = 0;

	for (const char *s = t->log->str; (s = strstr(s, word)); s++)
		n++;
	return n;
}

/* Of @n cgroups x/0, x/2 and so on, or x/1, x/3 and so on: how many are in the tree? */
static unsigned int n_found(const struct test *t, unsigned int n,
			    unsigned int first)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < n; i++) {
		g_autofree char *path = g_strdup_printf(
			"/system.slice/a.service/x/%u", 2 * i + first);

		found += cgroup_find(t->tree, path) != NULL;
	}
	return found;
}

/* Half of the cgroups are removed, and others made, after the first batch. */
static void test_changes_during_a_scan(struct test *t)
{
	const unsigned int half = 2 * CGROUP_BATCH;
	unsigned int n_batches = 1;
	int r;

	settle(t);
	/* More than a delegated cgroup may have events: only the scan finds the others. */
	make(t, "/system.slice/a.service/x");
	settle(t);
	for (unsigned int i = 0; i < FLOOD; i++) {
		fake_file(&t->roots, MOUNT "/system.slice/a.service/x/io.max",
			  "%u", i);
		settle(t);
	}
	make_many(t, "/system.slice/a.service/x", 2 * half);
	check(has_logged(t, ""));
	check(cgroup_scan_begin(t->tree) == 0);
	check(cgroup_scan_next(t->tree) == 1);
	check(cgroup_scan_goes_on(t->tree));
	for (unsigned int i = 0; i < half; i++) {
		g_autofree char *path =
			g_strdup_printf("/system.slice/a.service/x/%u", 2 * i);

		drop(t, path);
	}
	make(t, "/b.slice");
	make(t, "/b.slice/c");
	while ((r = cgroup_scan_next(t->tree)) > 0) {
		handle_events(t);
		n_batches++;
	}
	check(r == 0 && !cgroup_scan_goes_on(t->tree));
	check(n_batches >= 2 * half / CGROUP_BATCH);
	/* Those that the first batch has found are left to the next scan. */
	check(n_found(t, half, 0) <= CGROUP_BATCH);
	check(n_found(t, half, 1) == half);
	check(n_logged(t, "+/b.slice ") == 1);
	check(n_logged(t, "+/b.slice/c ") == 1);
	g_string_truncate(t->log, 0);
	check(cgroup_tree_scan(t->tree) == 0);
	check(n_found(t, half, 0) == 0 && n_found(t, half, 1) == half);
	check(!n_logged(t, "+"));
}

/* A large tree under one event is found by the next scan. */
static void test_large_tree_at_once(struct test *t)
{
	settle(t);
	make(t, "/b.slice");
	make_many(t, "/b.slice", 2 * CGROUP_BATCH);
	sd_event_run(t->event, 0);
	check(n_logged(t, "+") <= CGROUP_BATCH && n_logged(t, "lost ") == 1);
	check(cgroup_tree_scan(t->tree) == 0);
	check(n_logged(t, "+/b.slice") == 2 * CGROUP_BATCH + 1);
}

int main(void)
{
	run_tests(test_scan, test_events, test_files, test_delegated_flood,
		  test_given_to_a_user, test_scan_finds_a_new_owner,
		  test_made_again_unnoticed, test_names_of_any_bytes,
		  test_links_are_not_followed,
		  test_cgroups_that_cannot_be_watched,
		  test_watches_of_a_delegated_cgroup,
		  test_cgroups_beyond_the_watches,
		  test_watches_after_a_new_owner,
		  test_watch_of_the_topmost_cgroup,
		  test_cursor_at_a_removed_cgroup, test_cursor_at_the_end,
		  test_changes_during_a_scan, test_large_tree_at_once);
	return 0;
}
