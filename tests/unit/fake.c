/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fake.h"

unsigned int cases(unsigned int n)
{
	return getenv("SUTRO_LONG") ? n : n / 10;
}

void fake_new(struct roots *roots)
{
	char dir[] = "/tmp/sutro-test-XXXXXX";

	check(mkdtemp(dir));
	check(setenv("SUTRO_FAKE_ROOT", dir, 1) == 0);
	check(roots_init(roots, dir) == 0);
	fake_dir(roots, "/sys/class/block");
	fake_dir(roots, "/sys/dev/block");
	fake_dir(roots, "/sys/fs/cgroup");
	fake_dir(roots, "/dev/mapper");
	fake_dir(roots, "/run/sutro");
	fake_file(roots, "/proc/self/mountinfo", "%s", "");
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	return remove(path);
}

void fake_remove(struct roots *roots)
{
	nftw(roots->prefix, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	roots_done(roots);
}

static void make_parents(char *path)
{
	for (char *c = strchr(path + 1, '/'); c; c = strchr(c + 1, '/')) {
		*c = '\0';
		check(mkdir(path, 0755) == 0 || errno == EEXIST);
		*c = '/';
	}
}

void fake_dir(const struct roots *r, const char *path)
{
	_cleanup_free_ char *full = NULL;

	full = asprintf_or_null("%s%s/", r->prefix, path);
	check(full);
	make_parents(full);
}

void fake_file(const struct roots *r, const char *path, const char *format, ...)
{
	_cleanup_free_ char *full = NULL;
	va_list ap;
	FILE *f;

	full = asprintf_or_null("%s%s", r->prefix, path);
	check(full);
	make_parents(full);
	f = fopen(full, "we");
	check(f);
	va_start(ap, format);
	check(vfprintf(f, format, ap) >= 0);
	va_end(ap);
	check(fclose(f) == 0);
}

static void fake_link(const struct roots *r, const char *path,
		      const char *target)
{
	_cleanup_free_ char *full = NULL;

	full = asprintf_or_null("%s%s", r->prefix, path);
	check(full);
	make_parents(full);
	unlink(full);
	check(symlink(target, full) == 0);
}

/* sys/class/block/NAME -> ../../devices/virtual/block/[PARENT/]NAME, and the node. */
static void add_device(const struct roots *r, const char *name,
		       const char *devno, const char *parent)
{
	char path[512], target[512];

	snprintf(target, sizeof(target), "../../devices/virtual/block/%s%s%s",
		 parent, *parent ? "/" : "", name);
	snprintf(path, sizeof(path), "/sys/class/block/%s", name);
	fake_link(r, path, target);
	snprintf(path, sizeof(path), "/sys/dev/block/%s", devno);
	fake_link(r, path, target);
	snprintf(path, sizeof(path), "/dev/%s", name);
	fake_file(r, path, "%s", "");
	snprintf(path, sizeof(path), "/sys/devices/virtual/block/%s%s%s/dev",
		 parent, *parent ? "/" : "", name);
	fake_file(r, path, "%s\n", devno);
	snprintf(path, sizeof(path), "/sys/class/block/%s/size", name);
	fake_file(r, path, "%d\n", 2 * 1024 * 1024);
}

static void add_queue(const struct roots *r, const char *name,
		      const char *scheduler)
{
	static const char *const all[] = { "none", "mq-deadline", "bfq",
					   "sutro" };
	char path[512], text[256] = "";

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 streq(all[i], scheduler) ? "[%s] " : "%s ", all[i]);
	snprintf(path, sizeof(path), "/sys/class/block/%s/queue/scheduler",
		 name);
	fake_file(r, path, "%s\n", text);
	snprintf(path, sizeof(path),
		 "/sys/class/block/%s/queue/optimal_io_size", name);
	fake_file(r, path, "0\n");
}

void fake_disk(const struct roots *r, const char *name, const char *devno,
	       const char *scheduler)
{
	char path[512];

	add_device(r, name, devno, "");
	add_queue(r, name, scheduler);
	snprintf(path, sizeof(path), "/sys/class/block/%s/diskseq", name);
	fake_file(r, path, "7\n");
}

static void add_stack(const struct roots *r, const char *name,
		      const char *devno, const char *slaves)
{
	char path[512], copy[256], *save = NULL;

	add_device(r, name, devno, "");
	add_queue(r, name, "");
	snprintf(path, sizeof(path), "/sys/class/block/%s/slaves", name);
	fake_dir(r, path);
	snprintf(copy, sizeof(copy), "%s", slaves);
	for (char *s = strtok_r(copy, " ", &save); s;
	     s = strtok_r(NULL, " ", &save)) {
		char target[512];

		snprintf(path, sizeof(path), "/sys/class/block/%s/slaves/%s",
			 name, s);
		snprintf(target, sizeof(target), "../../%s", s);
		fake_link(r, path, target);
	}
}

void fake_dm(const struct roots *r, const char *name, const char *devno,
	     const char *slaves, const char *label, const char *uuid)
{
	char path[512], target[256];

	add_stack(r, name, devno, slaves);
	snprintf(path, sizeof(path), "/sys/class/block/%s/dm/name", name);
	fake_file(r, path, "%s\n", label);
	snprintf(path, sizeof(path), "/sys/class/block/%s/dm/uuid", name);
	fake_file(r, path, "%s\n", uuid);
	snprintf(path, sizeof(path), "/dev/mapper/%s", label);
	snprintf(target, sizeof(target), "../%s", name);
	fake_link(r, path, target);
}

void fake_cgroup(const struct roots *r, const char *path)
{
	static const char *const files[] = { "io.weight", "io.bfq.weight",
					     "io.sutro.weight" };
	char file[512];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(file, sizeof(file), "/sys/fs/cgroup%s/%s", path,
			 files[i]);
		fake_file(r, file, "default 100\n");
	}
}
