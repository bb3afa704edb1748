/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The files of cgroups.
 *
 * They are read and written with plain system calls, not with libcgroup: it ignores a write that
 * fails with EOPNOTSUPP, the error of a leaf with another scheduler, writes no line "8:16 300"
 * beside another, and has error codes of its own.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "host/cgroup.h"
#include "host/diskcall.h"

/* The path of the cgroup is as long as the kernel takes, or almost, and that of the file is longer. */
static int open_in_two_steps(const struct cgroup *c, const char *file,
			     int flags)
{
	_cleanup_close_ int dir = -1;
	int fd;

	dir = openat(cgroup_tree_fd(c->tree), c->path + strspn(c->path, "/"),
		     O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = openat(dir, file, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Names come from the kernel and hold no ".."; cgroupfs has no symbolic links.
 * (openat2 could enforce this, but RestrictSUIDSGID= of the service forbids it.)
 */
static int open_beneath(const struct cgroup *c, const char *file, int flags)
{
	char path[PATH_MAX];
	int fd, n;

	/* The path is not allocated, because each tick opens files. */
	n = snprintf(path, sizeof(path), "%s/%s", c->path, file);
	if (n < 0 || (size_t)n >= sizeof(path))
		return open_in_two_steps(c, file, flags);
	fd = openat(cgroup_tree_fd(c->tree), path + strspn(path, "/"),
		    flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cgroup_read(const struct cgroup *c, const char *file, char **ret)
{
	_cleanup_close_ int fd = open_beneath(c, file, O_RDONLY);

	if (fd < 0)
		return fd;
	return read_fd(fd, ret);
}

int cgroup_read_lines(const struct cgroup *c, const char *file,
		      int (*on_line)(char *line, void *userdata),
		      void *userdata)
{
	_cleanup_close_ int fd = open_beneath(c, file, O_RDONLY);

	return fd < 0 ? fd : read_lines(fd, on_line, userdata);
}

int cgroup_write(const struct cgroup *c, const char *file, const char *text)
{
	_cleanup_close_ int fd = open_beneath(c, file, O_WRONLY);
	size_t length = strlen(text);
	ssize_t n;

	if (fd < 0)
		return fd;
	do
		n = write(fd, text, length);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == length ? 0 : -EIO;
}

int cgroup_write_device(const struct cgroup *c, const char *file,
			const char *text, dev_t devno)
{
	_cleanup_close_ int fd = open_beneath(c, file, O_WRONLY);

	return fd < 0 ? fd : diskcall_write(devno, fd, text);
}
