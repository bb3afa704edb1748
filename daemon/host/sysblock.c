/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Attributes of block devices, in /sys/class/block/NAME. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/diskcall.h"
#include "host/sysblock.h"

int sysblock_note(struct sysblock *s, int err)
{
	/* Errors that mean that the device has no such file, is gone, or hangs. */
	static const int expected[] = {
		0,	-ENOENT, -ENOTDIR,    -ENODEV,
		-ENXIO, -EINVAL, -EOPNOTSUPP, -ETIMEDOUT
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		if (err == expected[i])
			return err;
	s->error = s->error ?: err;
	return err;
}

int sysblock_read(struct sysblock *s, const char *name, const char *attribute,
		  char **ret)
{
	_cleanup_free_ char *path = NULL;

	path = asprintf_or_null("%s/class/block/%s/%s", s->roots->sysfs, name,
				attribute);
	return path ? sysblock_note(s, read_file_at(AT_FDCWD, path, ret))
		    : -ENOMEM;
}

bool sysblock_has(struct sysblock *s, const char *name, const char *attribute)
{
	_cleanup_free_ char *path = NULL;

	path = asprintf_or_null("%s/class/block/%s/%s", s->roots->sysfs, name,
				attribute);
	return path &&
	       sysblock_note(s, access(path, F_OK) < 0 ? -errno : 0) == 0;
}

uint64_t sysblock_number(struct sysblock *s, const char *name,
			 const char *attribute)
{
	_cleanup_free_ char *text = NULL;
	uint64_t v = 0;

	if (sysblock_read(s, name, attribute, &text) == 0)
		parse_u64(text, &v);
	return v;
}

uint64_t queue_inode(const struct roots *roots, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	path = asprintf_or_null("%s/class/block/%s/queue", roots->sysfs, name);
	return path && stat(path, &st) == 0 ? st.st_ino : 0;
}

int queue_read(const struct roots *roots, const struct device *d,
	       const char *attribute, char **ret)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	if (d->is_switching)
		return -ETIMEDOUT;
	path = asprintf_or_null("%s/class/block/%s/queue/%s", roots->sysfs,
				d->name, attribute);
	if (!path)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : diskcall_read(device_id(d), fd, ret);
}

int queue_number(const struct roots *roots, const struct device *d,
		 const char *attribute, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	int err = queue_read(roots, d, attribute, &text);

	return err ?: parse_u64(text, ret);
}
