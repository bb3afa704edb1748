/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The mounts of the machine, from mountinfo:
 *
 *	36 35 98:0 /root /point opts ... - type source superopts
 *
 * Users make lines with FUSE mounts, up to 32 KiB each: the file has no largest size. It is read
 * line by line, and again only after a change, which the kernel reports to poll(2). So a look-up
 * costs no reading, and a path keeps its device while the file cannot be read.
 */

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "host/mounts.h"

/** struct mount_list - a growing list */
struct mount_list {
	struct mount *items;
	size_t n;
	size_t size;
};

/**
 * struct mounts - the mounts as they were read last
 * @stream: of @file, NULL: not open
 * @is_known: @all was read
 */
struct mounts {
	char *file;
	bool is_polled;
	FILE *stream;
	bool is_known;
	struct mount_list all;
};

static void list_done(struct mount_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].point);
		free(l->items[i].source);
	}
	free(l->items);
	*l = (struct mount_list){};
}

int mounts_new(const char *file, bool is_polled, struct mounts **ret)
{
	struct mounts *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	*m = (struct mounts){ .file = strdup(file), .is_polled = is_polled };
	if (!m->file) {
		mounts_free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

static void close_stream(struct mounts *m)
{
	if (m->stream)
		fclose(m->stream);
	m->stream = NULL;
}

struct mounts *mounts_free(struct mounts *m)
{
	if (!m)
		return NULL;
	close_stream(m);
	list_done(&m->all);
	free(m->file);
	free(m);
	return NULL;
}

/* ---- lines ---- */

/* mountinfo writes blank, tab, newline and backslash as \ooo. */
static bool is_escape(const char *s)
{
	for (size_t i = 1; *s == '\\' && i <= 3; i++)
		if (s[i] < '0' || s[i] > '7')
			return false;
	return *s == '\\';
}

/*
 * The field that begins at @s. An escaped one may be four times as long as a path.
 *
 * Return: 0; -EINVAL: it is empty or longer than a path; -ENOMEM.
 */
static int read_field(const char *s, char **ret)
{
	char field[PATH_MAX];
	size_t n = 0;

	for (; *s && *s != ' ' && *s != '\n'; n++) {
		if (n == sizeof(field) - 1)
			return -EINVAL;
		if (is_escape(s)) {
			field[n] = (char)((s[1] - '0') << 6 |
					  (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			field[n] = *s++;
		}
	}
	if (!n)
		return -EINVAL;
	*ret = strndup(field, n);
	return *ret ? 0 : -ENOMEM;
}

static int parse(const char *line, struct mount *ret)
{
	unsigned int major_number, minor_number;
	const char *source = strstr(line, " - ");
	_cleanup_free_ char *at = NULL, *from = NULL;
	int point = 0, err;

	if (sscanf(line, "%*u %*u %u:%u %*s %n", &major_number, &minor_number,
		   &point) != 2 ||
	    !point || !source)
		return -EINVAL;
	err = read_field(line + point, &at);
	if (err)
		return err;
	source += strlen(" - ");
	source += strcspn(source, " ");
	/* A source that is no path is no device either. */
	if (source[0] == ' ' && source[1] == '/' &&
	    read_field(source + 1, &from) == -ENOMEM)
		return -ENOMEM;
	*ret = (struct mount){ .devno = makedev(major_number, minor_number),
			       .point = TAKE_PTR(at),
			       .source = TAKE_PTR(from) };
	return 0;
}

static int add(struct mount_list *l, const char *line)
{
	size_t size = l->size * 2 ?: 64;
	struct mount *grown;
	int err;

	if (l->n == l->size) {
		grown = reallocarray(l->items, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->items = grown;
		l->size = size;
	}
	err = parse(line, &l->items[l->n]);
	l->n += !err;
	return err == -ENOMEM ? err : 0;
}

/* ---- the file ---- */

static int open_stream(struct mounts *m)
{
	if (!m->stream)
		m->stream = fopen(m->file, "re");
	else
		rewind(m->stream);
	return m->stream ? 0 : -errno;
}

static int read_all(struct mounts *m, struct mount_list *l)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int err = open_stream(m);

	errno = 0;
	while (!err && getline(&line, &size, m->stream) >= 0)
		err = add(l, line);
	if (!err && !feof(m->stream))
		err = errno ? -errno : -EIO;
	if (err || !m->is_polled)
		close_stream(m);
	return err;
}

static bool is_current(const struct mounts *m)
{
	struct pollfd p = { .events = POLLPRI };

	if (!m->stream)
		return false;
	p.fd = fileno(m->stream);
	return poll(&p, 1, 0) == 0;
}

static int renew(struct mounts *m)
{
	struct mount_list l = {};
	int err;

	if (is_current(m))
		return 0;
	err = read_all(m, &l);
	if (err) {
		list_done(&l);
		if (err != -ENOMEM && m->is_known)
			log_debug_errno(err,
					"Cannot read %s, going on with "
					"its last content: %m",
					m->file);
		return m->is_known && err != -ENOMEM ? 0 : err;
	}
	list_done(&m->all);
	m->all = l;
	m->is_known = true;
	return 0;
}

static bool lies_in(const char *path, const char *point)
{
	size_t n = strlen(point);

	if (streq(point, "/"))
		return true;
	return strncmp(path, point, n) == 0 && (path[n] == '/' || !path[n]);
}

int mounts_find(struct mounts *m, const char *path, const struct mount **ret)
{
	const struct mount *best = NULL;
	int err = renew(m);

	for (size_t i = 0; i < m->all.n && !err; i++) {
		const struct mount *one = &m->all.items[i];

		if (lies_in(path, one->point) &&
		    (!best || strlen(one->point) >= strlen(best->point)))
			best = one;
	}
	if (err || !best)
		return err ?: -ENODEV;
	*ret = best;
	return 0;
}
