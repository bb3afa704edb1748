/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cgroups of units by the names of units, on a fake hierarchy. */

#include <glib.h>
#include <sys/stat.h>

#include "fake.h"
#include "policy/policy.h"
#include "policy/unit-cgroup.h"

#define MOUNT "/sys/fs/cgroup"
#define USER "/user.slice/user-1000.slice/user@1000.service"

/** struct test - units in two slices; the service of a user has cgroups with names of units */
struct test {
	struct roots roots;
	struct cgroup_tree *tree;
};

static void make(struct test *t, const char *path)
{
	g_autofree char *full = g_strconcat(t->roots.prefix, MOUNT, path, NULL);

	check(g_mkdir_with_parents(full, 0755) == 0);
	check(cgroup_tree_scan(t->tree) == 0);
}

static void drop(struct test *t, const char *path)
{
	g_autofree char *full = g_strconcat(t->roots.prefix, MOUNT, path, NULL);

	check(rmdir(full) == 0);
	check(cgroup_tree_scan(t->tree) == 0);
}

static void setup(struct test *t)
{
	*t = (struct test){};
	fake_new(&t->roots);
	fake_dir(&t->roots, MOUNT "/system.slice/a.service");
	fake_dir(&t->roots, MOUNT "/system.slice/_io.service");
	fake_dir(&t->roots, MOUNT USER "/app.slice/b.service");
	fake_dir(&t->roots, MOUNT USER "/app.slice/z.service");
	fake_dir(&t->roots, MOUNT "/user.slice/z.service");
	t->tree = fake_cgroups(&t->roots);
}

static void teardown(struct test *t)
{
	cgroup_tree_free(t->tree);
	fake_remove(&t->roots);
}

/* Is the cgroup @path found as unit @name? */
static bool finds(const struct test *t, const char *name, const char *path)
{
	const struct cgroup *c = unit_find_candidate(t->tree, name);

	return c && streq(c->path, path);
}

/* Cgroups below the service of the user are no units. */
static void end_at_service(struct test *t)
{
	struct cgroup *user = cgroup_find(t->tree, USER);

	check(user);
	for (struct cgroup *c = cgroup_next(user, user); c;
	     c = cgroup_next(user, c))
		c->origin = CGROUP_FOREIGN;
}

static void test_names(struct test *t)
{
	end_at_service(t);
	check(finds(t, "a.service", "/system.slice/a.service"));
	check(finds(t, "io.service", "/system.slice/_io.service"));
	check(finds(t, "user@1000.service", USER));
	check(finds(t, "user-1000.slice", "/user.slice/user-1000.slice"));
	check(!unit_find_candidate(t->tree, "b.service"));
	check(!unit_find_candidate(t->tree, "app.slice"));
	check(!unit_find_candidate(t->tree, "none.service"));
	/* Behind a cgroup of the user with this name. */
	check(finds(t, "z.service", "/user.slice/z.service"));
}

/* A visit would read the name. Users can make systemd load units of any name, at any rate. */
static void test_delegated_cgroups_are_not_visited(struct test *t)
{
	struct cgroup *user = cgroup_find(t->tree, USER);

	end_at_service(t);
	for (struct cgroup *c = cgroup_next(user, user); c;
	     c = cgroup_next(user, c))
		c->name = NULL;
	check(!unit_find_candidate(t->tree, "none.service"));
	check(finds(t, "z.service", "/user.slice/z.service"));
}

static void test_cgroups_come_and_go(struct test *t)
{
	make(t, "/system.slice/new.service");
	check(finds(t, "new.service", "/system.slice/new.service"));
	drop(t, "/system.slice/new.service");
	check(!unit_find_candidate(t->tree, "new.service"));
	make(t, "/user.slice/new.service");
	check(finds(t, "new.service", "/user.slice/new.service"));
}

/* The parent turns out to be no slice of systemd, or to be one after all. */
static void test_slices_of_others(struct test *t)
{
	struct cgroup *slice = cgroup_find(t->tree, "/system.slice");

	slice->origin = CGROUP_FOREIGN;
	check(!unit_find_candidate(t->tree, "a.service"));
	slice->origin = CGROUP_PENDING;
	check(finds(t, "a.service", "/system.slice/a.service"));
	slice->origin = CGROUP_UNIT;
	check(finds(t, "a.service", "/system.slice/a.service"));
}

int main(void)
{
	run_tests(test_names, test_delegated_cgroups_are_not_visited,
		  test_cgroups_come_and_go, test_slices_of_others);
	return 0;
}
