/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Walks and scans in batches, while cgroups come and go.
 */

#include "fake-tree.h"

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
	/* A walk that was ended has no next one, and may be ended again. */
	cgroup_cursor_begin(&k, cgroup_tree_root(t->tree));
	check(is_next(&k, "/"));
	cgroup_cursor_end(&k);
	check(!cgroup_cursor_goes_on(&k) && is_next(&k, NULL));
	cgroup_cursor_end(&k);
	drop(t, "/y.slice");
	settle(t);
	check(is_next(&k, NULL));
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
	run_tests(test_cursor_at_a_removed_cgroup, test_cursor_at_the_end,
		  test_changes_during_a_scan, test_large_tree_at_once);
	return 0;
}
