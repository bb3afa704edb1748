/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <fcntl.h>
#include <ftw.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdarg.h>
#include <unistd.h>

#include "fake.h"
#include "host/diskcall.h"
#include "host/sample.h"
#include "policy/policy.h"

unsigned int cases(unsigned int n)
{
	return getenv("SUTRO_LONG") ? n : n / 10;
}

void fake_new(struct roots *roots)
{
	g_autofree char *dir = g_dir_make_tmp("sutro-test-XXXXXX", NULL);

	check(dir);
	check(roots_init(roots, dir) == 0);
	fake_dir(roots, "/sys/class/block");
	fake_dir(roots, "/sys/dev/block");
	fake_dir(roots, "/sys/fs/cgroup");
	fake_dir(roots, "/dev/mapper");
	fake_dir(roots, "/run/sutro");
	fake_file(roots, "/proc/1/mountinfo", "%s", "");
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	return remove(path);
}

void fake_remove_dir(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void fake_remove(struct roots *roots)
{
	fake_remove_dir(roots->prefix);
	roots_done(roots);
}

/* The path outside of the machine, in a directory that exists. */
static char *outside(const struct roots *r, const char *path)
{
	char *full = g_strconcat(r->prefix, path, NULL);
	g_autofree char *dir = g_path_get_dirname(full);

	check(g_mkdir_with_parents(dir, 0755) == 0);
	return full;
}

void fake_dir(const struct roots *r, const char *path)
{
	g_autofree char *full = outside(r, path);

	check(g_mkdir_with_parents(full, 0755) == 0);
}

void fake_file(const struct roots *r, const char *path, const char *format, ...)
{
	g_autofree char *full = outside(r, path), *text = NULL;
	bool is_kernel = getenv("SUTRO_FAKE_ROOT");
	va_list ap;

	va_start(ap, format);
	text = g_strdup_vprintf(format, ap);
	va_end(ap);
	/* As it is: this is no write to the kernel. */
	unsetenv("SUTRO_FAKE_ROOT");
	/* In place: a reader may have it open. */
	check(g_file_set_contents_full(full, text, -1, G_FILE_SET_CONTENTS_NONE,
				       0644, NULL));
	if (is_kernel)
		fake_kernel(r);
}

void fake_disk(const struct roots *r, const char *name, const char *devno,
	       const char *scheduler)
{
	const char *const files[][2] = { { "dev", devno },
					 { "size", "2097152" },
					 { "diskseq", "7" },
					 { "queue/optimal_io_size", "0" } };
	g_autofree char *block =
		g_strconcat("/sys/devices/virtual/block/", name, NULL);
	g_autofree char *target = g_strconcat("../..", block + 4, NULL);
	g_autofree char *node = g_strconcat("/dev/", name, NULL);
	g_autofree char *of_class =
		g_strconcat(r->prefix, "/sys/class/block/", name, NULL);
	g_autofree char *of_devno =
		g_strconcat(r->prefix, "/sys/dev/block/", devno, NULL);
	g_autofree char *queue = g_strconcat(block, "/queue/scheduler", NULL);

	fake_dir(r, block);
	check(symlink(target, of_class) == 0);
	check(symlink(target, of_devno) == 0);
	fake_file(r, node, "%s", "");
	fake_file(r, queue, "none [%s]\n", scheduler);
	for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
		g_autofree char *file =
			g_strconcat(block, "/", files[i][0], NULL);

		fake_file(r, file, "%s\n", files[i][1]);
	}
}

/* ---- cgroups ---- */

static void on_added(struct cgroup *c, void *userdata)
{
	c->policy->weight = WEIGHT_DEFAULT;
	c->policy->subject = strdup(c->shown);
	c->origin = CGROUP_UNIT;
}

static void on_removed(struct cgroup *c, void *userdata)
{
	policy_done(c->policy);
	cgfile_retry(c);
	samples_drop(c);
}

struct cgroup_tree *fake_cgroups(const struct roots *r)
{
	static const struct cgroup_ops ops = {
		.policy_bytes = sizeof(struct policy),
		.added = on_added,
		.removed = on_removed,
	};
	struct cgroup_tree *tree;

	check(cgroup_tree_new(r, NULL, &ops, NULL, &tree) == 0);
	check(cgroup_tree_scan(tree) == 0);
	return tree;
}

/* ---- files that behave like the kernel's ---- */

void fake_kernel(const struct roots *r)
{
	/* A worker process has the environment that was there at its start. */
	diskcalls_end();
	check(setenv("SUTRO_FAKE_ROOT", r->prefix, 1) == 0);
}

struct cgroup *fake_writer(const struct roots *r, struct cgfiles *files,
			   struct cgroup_tree **ret_tree)
{
	struct cgroup_tree *tree = fake_cgroups(r);
	struct cgroup *a = cgroup_find(tree, "/a");

	check(a);
	fake_kernel(r);
	check(cgfiles_init(files, r, false) == 0);
	*ret_tree = tree;
	return a;
}

void fake_writer_remove(struct roots *r, struct cgfiles *files,
			struct cgroup_tree *tree)
{
	unsetenv("SUTRO_FAKE_ROOT");
	cgfiles_done(files);
	cgroup_tree_free(tree);
	fake_remove(r);
}

void fake_fault(const struct roots *r, const char *fault)
{
	fake_file(r, "/faults", "%s\n", fault);
}

char *fake_read(const struct roots *r, const char *path)
{
	g_autofree char *full = g_strconcat(r->prefix, path, NULL);
	g_autofree char *text = NULL;

	return g_file_get_contents(full, &text, NULL, NULL) ? strdup(text)
							    : strdup("");
}

bool fake_has(const struct roots *r, const char *path, const char *text)
{
	_cleanup_free_ char *is = fake_read(r, path);

	if (!streq(is, text))
		fprintf(stderr, "%s: \"%s\", not \"%s\"\n", path, is, text);
	return streq(is, text);
}

int fake_log_begin(const struct roots *r)
{
	g_autofree char *path = g_strconcat(r->prefix, "/log", NULL);
	int before = dup(STDERR_FILENO), fd;

	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(before >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	return before;
}

char *fake_log_end(const struct roots *r, int before)
{
	fflush(stderr);
	check(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	return fake_read(r, "/log");
}

unsigned int fake_writes(const struct roots *r)
{
	_cleanup_free_ char *text = fake_read(r, "/writes");
	unsigned int n = 0;

	for (const char *s = text; *s; s++)
		n += *s == '\n';
	fake_file(r, "/writes", "%s", "");
	return n;
}
