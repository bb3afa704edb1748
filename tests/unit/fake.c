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

/* A line of /sys/class/block/NAME/FILE. */
static void add_attribute(const struct roots *r, const char *name,
			  const char *file, const char *line)
{
	char path[512];

	snprintf(path, sizeof(path), "/sys/class/block/%s/%s", name, file);
	fake_file(r, path, "%s\n", line);
}

void fake_disk(const struct roots *r, const char *name, const char *devno,
	       const char *scheduler)
{
	char path[512], target[512], schedulers[64];

	snprintf(target, sizeof(target), "/sys/devices/virtual/block/%s", name);
	fake_dir(r, target);
	snprintf(target, sizeof(target), "../../devices/virtual/block/%s",
		 name);
	snprintf(path, sizeof(path), "/sys/class/block/%s", name);
	fake_link(r, path, target);
	snprintf(path, sizeof(path), "/sys/dev/block/%s", devno);
	fake_link(r, path, target);
	snprintf(path, sizeof(path), "/dev/%s", name);
	fake_file(r, path, "%s", "");
	snprintf(schedulers, sizeof(schedulers), "none [%s]", scheduler);
	add_attribute(r, name, "dev", devno);
	add_attribute(r, name, "size", "2097152");
	add_attribute(r, name, "diskseq", "7");
	add_attribute(r, name, "queue/scheduler", schedulers);
	add_attribute(r, name, "queue/optimal_io_size", "0");
}
