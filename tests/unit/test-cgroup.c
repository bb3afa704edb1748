/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The tree of cgroups, on a fake hierarchy: which callbacks follow from which changes.
 */

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake-tree.h"

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

/* As after an overflow, the scan comes before the events, and the watch is of a dead inode. */
static void test_made_again_unnoticed(struct test *t)
{
	g_autofree char *full =
		g_strconcat(t->roots.prefix, MOUNT "/b.slice", NULL);
	int fd;

	make(t, "/b.slice");
	settle(t);
	/* The kernel numbers cgroups in order. Other file systems may give a free number to the next
	 * inode, and that of an open directory is not free.
	 */
	fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	drop(t, "/b.slice");
	make(t, "/b.slice");
	check(close(fd) == 0);
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

/* Make a directory, whose path has @length bytes, and return it opened. */
static int make_long(const char *dir, size_t length)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t rest = length - strlen(dir);

	while (rest) {
		size_t n = rest > 2 * NAME_MAX ? NAME_MAX
			   : rest > NAME_MAX   ? rest / 2
					       : rest - 1;
		g_autofree char *name = g_strnfill(n, 'x');
		int parent = fd;

		check(mkdirat(parent, name, 0755) == 0);
		fd = openat(parent, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		check(fd >= 0 && close(parent) == 0);
		rest -= n + 1;
	}
	return fd;
}

/* A user can make cgroups with paths for which that of a file is longer than the kernel takes. */
static void test_paths_of_any_length(struct test *t)
{
	static const char file[] = "io.sutro.weight";
	char dir[] = "/tmp/XXXXXX";
	_cleanup_free_ char *text = NULL;
	struct cgroup *c;
	int fd, made;

	check(mkdtemp(dir));
	fd = make_long(dir, PATH_MAX - 1);
	made = openat(fd, file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	check(made >= 0 && close(made) == 0);
	mount_at(t, dir);
	c = cgroup_tree_root(t->tree);
	while (!TAILQ_EMPTY(&c->children))
		c = TAILQ_FIRST(&c->children);
	check(strlen(dir) + strlen(c->path) == PATH_MAX - 1);
	check(cgroup_write(c, file, "default 200") == 0);
	check(cgroup_read(c, file, &text) == 0 && streq(text, "default 200"));
	check(cgroup_write(c, "none", "new") == -ENOENT);
	check(unlinkat(fd, file, 0) == 0 && close(fd) == 0);
	fake_remove_dir(dir);
}

int main(void)
{
	run_tests(test_scan, test_events, test_files, test_made_again_unnoticed,
		  test_names_of_any_bytes, test_links_are_not_followed,
		  test_paths_of_any_length);
	return 0;
}
