/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Watches of the directories of cgroups: events of delegated ones, limits, failures.
 */

#include <fcntl.h>
#include <unistd.h>

#include "fake-tree.h"
#include "host/priority.h"

/* As in cgroup-watch.c. */
#define WATCHES_MAX 500U

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

/* Standard error goes to a file until the function returns. */
static char *log_of_scan(struct test *t)
{
	int before = fake_log_begin(&t->roots);

	check(cgroup_tree_scan(t->tree) == 0);
	settle(t);
	return fake_log_end(&t->roots, before);
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

int main(void)
{
	run_tests(test_delegated_flood, test_given_to_a_user,
		  test_scan_finds_a_new_owner,
		  test_cgroups_that_cannot_be_watched,
		  test_watches_of_a_delegated_cgroup,
		  test_cgroups_beyond_the_watches,
		  test_watches_after_a_new_owner,
		  test_watch_of_the_topmost_cgroup);
	return 0;
}
