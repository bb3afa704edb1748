/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <fcntl.h>
#include <stdio.h>

#include "host/record.h"

static char **find(const struct record *r, const char *key)
{
	for (char **l = r->lines; l && *l; l++) {
		const char *rest = startswith(*l, key);

		if (rest && *rest == '\t')
			return l;
	}
	return NULL;
}

static int save(const struct record *r)
{
	_cleanup_free_ char *new = asprintf_or_null("%s.new", r->path);
	FILE *f;
	int err = 0;

	if (!new)
		return -ENOMEM;
	f = fopen(new, "we");
	if (!f)
		return -errno;
	for (char **l = r->lines; l && *l; l++)
		fprintf(f, "%s\n", *l);
	if (ferror(f))
		err = -EIO;
	if (fclose(f) != 0 && !err)
		err = -errno;
	if (!err && rename(new, r->path) < 0)
		err = -errno;
	return err;
}

const char *record_get(const struct record *r, const char *key)
{
	char **l = find(r, key);

	return l ? *l + strlen(key) + 1 : NULL;
}

int record_set(struct record *r, const char *key, const char *value)
{
	_cleanup_free_ char *line = NULL;
	char **l = find(r, key);
	int err;

	if (strpbrk(key, "\t\n") || strpbrk(value, "\t\n"))
		return -EINVAL;
	line = asprintf_or_null("%s\t%s", key, value);
	if (!line)
		return -ENOMEM;
	if (l && streq(*l, line))
		return 0;
	if (l) {
		free(*l);
		*l = TAKE_PTR(line);
	} else {
		err = strv_add(&r->lines, line);
		if (err)
			return err;
	}
	return save(r);
}

int record_drop(struct record *r, const char *key)
{
	char **l = find(r, key);
	size_t n = strv_length(r->lines);

	if (!l)
		return 0;
	free(*l);
	*l = r->lines[n - 1];
	r->lines[n - 1] = NULL;
	return save(r);
}

int record_prune(struct record *r,
		 bool (*is_over)(const char *line, const void *userdata),
		 const void *userdata)
{
	size_t n = strv_length(r->lines), kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_over(r->lines[i], userdata))
			free(r->lines[i]);
		else
			r->lines[kept++] = r->lines[i];
	}
	if (kept == n)
		return 0;
	r->lines[kept] = NULL;
	return save(r);
}

static int on_line(char *line, void *userdata)
{
	struct record *r = userdata;

	return strchr(line, '\t') ? strv_add(&r->lines, line) : 0;
}

int record_open(struct record *r, const struct roots *roots, const char *name)
{
	_cleanup_close_ int fd = -1;
	int err;

	*r = (struct record){ .path = asprintf_or_null("%s/%s", roots->run,
						       name) };
	if (!r->path)
		return -ENOMEM;
	fd = open(r->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	err = fd < 0 ? -errno : read_lines(fd, on_line, r);
	/* After another error, a later record_set() would lose the lines that could not be read. */
	if (err == -EFBIG) {
		log_warning_errno(err, "Cannot read all of %s, going on: %m",
				  r->path);
		err = 0;
	}
	return err;
}

void record_done(struct record *r)
{
	free(r->path);
	strv_free(r->lines);
	*r = (struct record){};
}
