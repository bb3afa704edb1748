/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From a path to the block device behind it (step 3 of discover.c).
 *
 * Paths of callers and names that others gave to mounts are taken literally: of a path outside
 * /dev no file is looked up, and its device is that of the deepest mount point in mountinfo. To
 * look it up may take for ever on a dead file server, and would show to any user which files exist
 * in closed directories. Only below /dev, where root alone makes links, links are followed. That
 * needs no mountinfo, to which users add lines.
 *
 * A node is its device number. Any other file is on the device of its file
 * system: st_dev, or, when that is an anonymous number (btrfs), the source that
 * /proc/1/mountinfo names for the mount it lies in. A fake machine of a test
 * has neither nodes nor mounts: there a node is a file below /dev with the name of
 * the device, and mountinfo has the devices of all other files.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "host/path.h"

/* ---- literal paths ---- */

#define LINKS_MAX 16U

/* "/a//b/./c/../d" becomes "/a/b/d". */
static void normalise(char *path)
{
	char *to = path;

	for (const char *s = path; *s;) {
		size_t n;

		s += strspn(s, "/");
		n = strcspn(s, "/");
		if (n == 2 && s[0] == '.' && s[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (n && !(n == 1 && s[0] == '.')) {
			*to++ = '/';
			memmove(to, s, n);
			to += n;
		}
		s += n;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

/* A fake machine has no mounts, but lines of them. */
static bool is_on_fake_dev(const struct roots *roots, const char *path)
{
	const struct mount *m;
	dev_t dev;

	if (mounts_find(roots->mounts, "/dev", &m))
		return true;
	dev = m->devno;
	return mounts_find(roots->mounts, path, &m) || m->devno == dev;
}

static bool is_in_dev(const struct roots *roots, const char *path)
{
	return startswith(path, "/dev/") &&
	       (roots_are_real(roots) || is_on_fake_dev(roots, path));
}

/* The number of the mount of an open file. Its file system is not called.
 *
 * Return: 0; -EXDEV: the kernel has no such number; -errno.
 */
static int mount_number(int fd, uint64_t *ret)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		  STATX_MNT_ID, &st) < 0)
		return -errno;
	if (!(st.stx_mask & STATX_MNT_ID))
		return -EXDEV;
	*ret = st.stx_mnt_id;
	return 0;
}

/* @link: the file at the first @length bytes of @path. */
static int follow(char **path, size_t length, int link)
{
	const char *rest = *path + length;
	char target[PATH_MAX], *next;
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (target[0] == '/')
		next = asprintf_or_null("%s%s", target, rest);
	else
		next = asprintf_or_null("%.*s/../%s%s", (int)length, *path,
					target, rest);
	if (!next)
		return -ENOMEM;
	normalise(next);
	free(*path);
	*path = next;
	return 1;
}

/*
 * Walk down a path below /dev, not into a file system that is mounted there: users make files in
 * /dev/shm, and may mount file systems of their own on these.
 *
 * Return: 1: it met a link, @path is where the link leads; 0: @st is set; -EXDEV: the path lies on
 * another mount; -errno.
 */
static int walk(const struct roots *roots, char **path, struct stat *st)
{
	_cleanup_free_ char *top = asprintf_or_null("%s/dev", roots->prefix);
	size_t at = strlen("/dev");
	_cleanup_close_ int fd = -1;
	uint64_t mount = 0, mount_of_dev = 0;
	int err;

	if (!top)
		return -ENOMEM;
	fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = mount_number(fd, &mount_of_dev);
	if (err)
		return err;
	while ((*path)[at]) {
		const char *name = *path + at + 1;
		char step[NAME_MAX + 1];
		size_t n = strcspn(name, "/");
		int next;

		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(step, name, n);
		step[n] = '\0';
		at += n + 1;
		next = openat(fd, step, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(fd);
		fd = next;
		err = mount_number(fd, &mount);
		if (err || mount != mount_of_dev)
			return err ?: -EXDEV;
		if (fstat(fd, st) < 0)
			return -errno;
		if (S_ISLNK(st->st_mode))
			return follow(path, at, fd);
	}
	return 0;
}

static struct device *by_node(const struct topology *t,
			      const struct roots *roots, const char *real,
			      const struct stat *st)
{
	if (S_ISBLK(st->st_mode))
		return topology_by_devno(t, st->st_rdev);
	if (!roots_are_real(roots) && startswith(real, "/dev/"))
		return topology_by_name(t, real + strlen("/dev/"));
	return NULL;
}

/* A node below /dev. Return: 0; -ENOTBLK: a path elsewhere, or another kind of file; -errno. */
static int by_dev(const struct topology *t, const struct roots *roots,
		  const char *path, struct device **ret)
{
	_cleanup_free_ char *real = strdup(path);
	struct device *d;
	struct stat st;
	int r = 1;

	for (unsigned int i = 0; real && r > 0; i++) {
		if (i > LINKS_MAX)
			return -ELOOP;
		r = is_in_dev(roots, real) ? walk(roots, &real, &st) : -EXDEV;
		if (r == -EXDEV)
			return i ? -ENODEV : -ENOTBLK;
	}
	if (!real || r < 0)
		return real ? r : -ENOMEM;
	d = by_node(t, roots, real, &st);
	if (!d)
		return S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode) ? -ENODEV
								  : -ENOTBLK;
	*ret = d;
	return 0;
}

static int by_mount(const struct topology *t, const struct roots *roots,
		    const char *real, struct device **ret)
{
	_cleanup_free_ char *source = NULL;
	const struct mount *m;
	struct device *d;
	int err = mounts_find(roots->mounts, real, &m);

	if (err)
		return err;
	if (major(m->devno) == 0) {
		/* a device behind btrfs; tmpfs, proc, nfs and overlay have none */
		if (!m->source)
			return -ENODEV;
		source = strdup(m->source);
		err = source ? by_dev(t, roots, source, ret) : -ENOMEM;
		return err == -ENOMEM || !err ? err : -ENODEV;
	}
	d = topology_by_devno(t, m->devno);
	if (!d)
		return -ENODEV;
	*ret = d;
	return 0;
}

int topology_resolve_literal(const struct topology *t,
			     const struct roots *roots, const char *path,
			     struct device **ret)
{
	_cleanup_free_ char *plain = NULL;
	int err;

	if (path[0] != '/')
		return -EINVAL;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	plain = strdup(path);
	if (!plain)
		return -ENOMEM;
	normalise(plain);
	err = by_dev(t, roots, plain, ret);
	return err == -ENOTBLK ? by_mount(t, roots, plain, ret) : err;
}

char *path_real(const struct roots *roots, const char *path)
{
	_cleanup_free_ char *full =
		asprintf_or_null("%s%s", roots->prefix, path);
	_cleanup_free_ char *real = NULL;
	const char *inside;

	if (path[0] != '/') {
		errno = EINVAL;
		return NULL;
	}
	real = full ? realpath(full, NULL) : NULL;
	if (!real)
		return NULL;
	inside = startswith(real, roots->prefix);
	errno = ENOENT; /* a link that leaves the fake machine */
	return inside ? strdup(*inside ? inside : "/") : NULL;
}

int topology_resolve(const struct topology *t, const struct roots *roots,
		     const char *path, struct device **ret)
{
	_cleanup_free_ char *full = NULL, *real = NULL;
	const char *inside;
	struct device *d;
	struct stat st;

	if (path[0] != '/')
		return -EINVAL;
	full = asprintf_or_null("%s%s", roots->prefix, path);
	if (!full)
		return -ENOMEM;
	real = realpath(full, NULL);
	if (!real || stat(real, &st) < 0)
		return -errno;
	inside = startswith(real, roots->prefix);
	if (!inside)
		return -ENOENT; /* a link that leaves the fake machine */
	d = by_node(t, roots, inside, &st);
	if (d) {
		*ret = d;
		return 0;
	}
	if (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode))
		return -ENODEV;
	if (roots_are_real(roots) && major(st.st_dev) != 0) {
		d = topology_by_devno(t, st.st_dev);
		if (!d)
			return -ENODEV;
		*ret = d;
		return 0;
	}
	return by_mount(t, roots, *inside ? inside : "/", ret);
}
