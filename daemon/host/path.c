/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From a path to the block device behind it (step 3 of discover.c).
 *
 * A node is its device number. Any other file is on the device of its file
 * system: st_dev, or, when that is an anonymous number (btrfs), the source that
 * /proc/self/mountinfo names for the mount it lies in. A fake machine of a test
 * has neither nodes nor mounts: there a node is a file below /dev with the name of
 * the device, and mountinfo says where everything else lies.
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
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		unsigned int c;

		if (s[0] == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
			*to++ = (char)c;
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static int parse_mount(const char *line, struct mount *m)
{
	const char *rest = strstr(line, " - ");
	unsigned int major_number, minor_number;

	/* 36 35 98:0 /root /point opts ... - type source superopts */
	if (!rest ||
	    sscanf(line, "%*u %*u %u:%u %*s %4095s", &major_number,
		   &minor_number, m->point) != 3 ||
	    sscanf(rest, " - %*s %4095s", m->source) != 1)
		return -EINVAL;
	m->devno = makedev(major_number, minor_number);
	unescape(m->point);
	unescape(m->source);
	return 0;
}

static bool lies_in(const char *path, const char *point)
{
	size_t n = strlen(point);

	if (streq(point, "/"))
		return true;
	return strncmp(path, point, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The mount a canonical path lies in: the deepest, of several the last one. */
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

static int by_mount(const struct topology *t, const struct roots *roots,
		    const char *real, struct device **ret)
{
	_cleanup_free_ struct mount *m = calloc(1, sizeof(*m));
	_cleanup_free_ char *source = NULL, *source_real = NULL;
	struct device *d;
	struct stat st;
	int err;

	if (!m)
		return -ENOMEM;
	err = find_mount(roots, real, m);
	if (err)
		return err;
	if (major(m->devno) != 0) {
		d = topology_by_devno(t, m->devno);
	} else {
		if (m->source[0] != '/')
			return -ENODEV; /* tmpfs, proc, nfs, overlay ... */
		source = asprintf_or_null("%s%s", roots->prefix, m->source);
		source_real = source ? realpath(source, NULL) : NULL;
		if (!source_real || stat(source_real, &st) < 0)
			return -ENODEV;
		d = by_node(t, roots, source_real + strlen(roots->prefix), &st);
	}
	if (!d)
		return -ENODEV;
	*ret = d;
	return 0;
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
