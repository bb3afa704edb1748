/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Files that must not be lost: written beside, synced, renamed, the folder synced.
 * One temporary name is enough, because only the process with the lock writes there; a file of
 * that name from before a crash is replaced.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "host/store.h"
#include "host/util.h"

#define TEMPORARY ".new"

/* 0755 whatever the umask of the service is: all users may read policies. */
static int make_dir(const char *dir)
{
	_cleanup_free_ char *above = strdup(dir);
	char *slash;

	if (!above)
		return -ENOMEM;
	if (mkdir(dir, 0755) == 0)
		return chmod(dir, 0755) < 0 ? -errno : 0;
	if (errno == EEXIST)
		return 0;
	slash = strrchr(above, '/');
	if (errno != ENOENT || !slash)
		return -errno;
	*slash = '\0';
	if (mkdir(above, 0755) < 0 || chmod(above, 0755) < 0 ||
	    mkdir(dir, 0755) < 0 || chmod(dir, 0755) < 0)
		return -errno;
	return 0;
}

static int open_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int write_synced(int fd, const char *text)
{
	int err = write_all(fd, text, strlen(text));

	if (err)
		return err;
	return fchmod(fd, 0644) < 0 || fsync(fd) < 0 ? -errno : 0;
}

int store_lock(const char *dir)
{
	int err = make_dir(dir), fd = err ? err : open_dir(dir);

	if (fd >= 0 && flock(fd, LOCK_EX) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int store_put(const char *dir, const char *name, const char *text)
{
	_cleanup_close_ int dirfd = open_dir(dir);
	_cleanup_close_ int fd = -1;
	int err;

	if (dirfd < 0)
		return dirfd;
	if (unlinkat(dirfd, TEMPORARY, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dirfd, TEMPORARY,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	err = write_synced(fd, text);
	if (!err && renameat(dirfd, TEMPORARY, dirfd, name) < 0)
		err = -errno;
	if (err) {
		unlinkat(dirfd, TEMPORARY, 0);
		return err;
	}
	return fsync(dirfd) < 0 ? -errno : 0;
}

int store_remove(const char *dir, const char *name)
{
	_cleanup_close_ int dirfd = open_dir(dir);

	if (dirfd == -ENOENT)
		return 0;
	if (dirfd < 0)
		return dirfd;
	if (unlinkat(dirfd, name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	return fsync(dirfd) < 0 ? -errno : 1;
}
