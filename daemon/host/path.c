/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From a path to the block device behind it (step 3 of discover.c).
 *
 * Paths of callers and names that others gave to mounts are taken literally: of a path outside
 * /dev no file is looked up, and its device is that of the deepest mount point in mountinfo. To
 * look it up may take for ever on a dead file server, and would show to any user which files exist
 * in closed directories. Only below /dev, where root alone makes links, links are followed.
 *
 * A node is its device number. Any other file is on the device of its file
 * system: st_dev, or, when that is an anonymous number (btrfs), the source that
 * /proc/1/mountinfo names for the mount it lies in. A fake machine of a test
 * has neither nodes nor mounts: there a node is a file below /dev with the name of
 * the device, and mountinfo has the devices of all other files.
 */

#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "host/path.h"

struct mount {
	dev_t devno;
	char point[PATH_MAX];
	char source[PATH_MAX];
};

/* mountinfo writes blank, tab, newline and backslash as \ooo. */
static bool is_escape(const char *s)
{
	for (size_t i = 1; *s == '\\' && i <= 3; i++)
		if (s[i] < '0' || s[i] > '7')
			return false;
	return *s == '\\';
}

/*
 * The field that begins at @s. Users choose mount points and sources of FUSE file systems, and an
 * escaped one may be four times as long as a path.
 *
 * Return: its end; NULL: it is empty or longer than a path.
 */
static const char *read_field(const char *s, char ret[static PATH_MAX])
{
	size_t n = 0;

	for (; *s && *s != ' '; n++) {
		if (n == PATH_MAX - 1)
			return NULL;
		if (is_escape(s)) {
			ret[n] = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
					(s[3] - '0'));
			s += 4;
		} else {
			ret[n] = *s++;
		}
	}
	ret[n] = '\0';
	return n ? s : NULL;
}

static int parse_mount(const char *line, struct mount *m)
{
	unsigned int major_number, minor_number;
	const char *source = strstr(line, " - ");
	int point = 0;

	/* 36 35 98:0 /root /point opts ... - type source superopts */
	if (sscanf(line, "%*u %*u %u:%u %*s %n", &major_number, &minor_number,
		   &point) != 2 ||
	    !point || !source || !read_field(line + point, m->point))
		return -EINVAL;
	source += strlen(" - ");
	source += strcspn(source, " ");
	/* A source that is no path is no device either. */
	if (*source != ' ' || !read_field(source + 1, m->source))
		m->source[0] = '\0';
	m->devno = makedev(major_number, minor_number);
	return 0;
}

static bool lies_in(const char *path, const char *point)
{
	size_t n = strlen(point);

	if (streq(point, "/"))
		return true;
	return strncmp(path, point, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The mount that contains a canonical path: the deepest, of several at one point the last. */
static int find_mount(const struct roots *roots, const char *path,
		      struct mount *ret)
{
	_cleanup_free_ char *text = NULL;
	struct mount *m, *best;
	char *save = NULL;
	bool found = false;
	int err;

	err = read_file_at(AT_FDCWD, roots->mountinfo, &text);
	if (err)
		return err;
	m = malloc(sizeof(*m));
	best = ret;
	if (!m)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (parse_mount(line, m) < 0 || !lies_in(path, m->point))
			continue;
		if (!found || strlen(m->point) >= strlen(best->point)) {
			*best = *m;
			found = true;
		}
	}
	free(m);
	return found ? 0 : -ENODEV;
}

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

/* Is it a path of the file system in /dev, not of one mounted below it? */
static bool is_in_dev(const struct roots *roots, const char *path)
{
	_cleanup_free_ struct mount *dev = calloc(1, sizeof(*dev));
	_cleanup_free_ struct mount *m = calloc(1, sizeof(*m));

	if (!startswith(path, "/dev/") || !dev || !m)
		return false;
	if (find_mount(roots, "/dev", dev) || find_mount(roots, path, m))
		return !roots_are_real(roots);
	return streq(dev->point, m->point);
}

/* Follow a link below /dev. Return: 1: @path is where it leads, 0: it is no link; -errno. */
static int follow(char **path, const char *full)
{
	char target[PATH_MAX];
	ssize_t n = readlink(full, target, sizeof(target) - 1);
	char *next;

	if (n < 0)
		return errno == EINVAL ? 0 : -errno;
	target[n] = '\0';
	if (target[0] == '/')
		next = strdup(target);
	else
		next = asprintf_or_null("%s/../%s", *path, target);
	if (!next)
		return -ENOMEM;
	normalise(next);
	free(*path);
	*path = next;
	return 1;
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
		_cleanup_free_ char *full = NULL;

		if (i > LINKS_MAX)
			return -ELOOP;
		if (!is_in_dev(roots, real))
			return i ? -ENODEV : -ENOTBLK;
		full = asprintf_or_null("%s%s", roots->prefix, real);
		if (!full)
			return -ENOMEM;
		r = follow(&real, full);
		if (r == 0 && stat(full, &st) < 0)
			return -errno;
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
	_cleanup_free_ struct mount *m = calloc(1, sizeof(*m));
	struct device *d;
	int err;

	if (!m)
		return -ENOMEM;
	err = find_mount(roots, real, m);
	if (err)
		return err;
	if (major(m->devno) == 0) {
		/* a device behind btrfs; tmpfs, proc, nfs and overlay have none */
		err = by_dev(t, roots, m->source, ret);
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
