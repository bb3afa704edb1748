/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Records in a file of lines "PATH TAB VALUE", with a device "8:16 PATH TAB VALUE".
 *
 * A change adds a line, so that its cost does not depend on the number of lines: a tenant may have
 * thousands of cgroups with limits. Of several lines with one key the last counts, and a line
 * without a value drops the key:
 *
 *	8:16 /a	rbps=9
 *	8:16 /a	rbps=7
 *	/b	rt
 *	8:16 /a
 *
 * has a value for /b only. The file is replaced when most of its lines do not count any more.
 *
 * A path with a tab begins with a backslash, and has "\t" for the tab and "\\" for a backslash. Other
 * paths are as they are: cgroups of systemd have backslashes, which former daemons recorded so.
 */

#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "host/record.h"

/* So many lines that do not count are left in the file. */
#define OVERRIDDEN_MIN 64U

/* ---- memory ---- */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct record_subject *)a)->path,
		      ((const struct record_subject *)b)->path);
}

static struct record_subject *find(const struct record *r, const char *path)
{
	const struct record_subject key = { .path = (char *)path };
	struct record_subject **found = tfind(&key, &r->index, by_path);

	return found ? *found : NULL;
}

static struct record_line *find_line(const struct record *r, const char *path,
				     dev_t devno)
{
	struct record_subject *s = find(r, path);

	for (size_t i = 0; s && i < s->n; i++)
		if (s->lines[i].devno == devno)
			return &s->lines[i];
	return NULL;
}

static void subject_free(struct record_subject *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->lines[i].value);
	free(s->lines);
	free(s->path);
	free(s);
}

/* Find or make the subject of @path, with room for one more line. */
static int make_room(struct record *r, const char *path,
		     struct record_subject **ret)
{
	struct record_subject *s = find(r, path);
	struct record_line *grown;

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->path = strdup(path);
		if (!s->path || !tsearch(s, &r->index, by_path)) {
			subject_free(s);
			return -ENOMEM;
		}
		TAILQ_INSERT_TAIL(&r->subjects, s, list);
	}
	*ret = s;
	grown = reallocarray(s->lines, s->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	s->lines = grown;
	return 0;
}

static void remove_subject(struct record *r, struct record_subject *s)
{
	tdelete(s, &r->index, by_path);
	TAILQ_REMOVE(&r->subjects, s, list);
	subject_free(s);
}

/* @copy: becomes part of the record. */
static void put(struct record *r, struct record_subject *s, dev_t devno,
		char *copy)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->lines[i].devno == devno) {
			free(s->lines[i].value);
			s->lines[i].value = copy;
			return;
		}
	s->lines[s->n++] =
		(struct record_line){ .devno = devno, .value = copy };
	r->n++;
}

static void forget(struct record *r, const char *path, dev_t devno)
{
	struct record_line *l = find_line(r, path, devno);
	struct record_subject *s = find(r, path);

	if (!l)
		return;
	free(l->value);
	*l = s->lines[--s->n];
	r->n--;
	if (!s->n)
		remove_subject(r, s);
}

/* ---- lines ---- */

static char *escape(const char *path)
{
	char *escaped, *to;

	if (!strpbrk(path, "\t\n"))
		return strdup(path);
	escaped = to = malloc(2 * strlen(path) + 2);
	if (!escaped)
		return NULL;
	*to++ = '\\';
	for (const char *s = path; *s; s++) {
		if (*s == '\t' || *s == '\n' || *s == '\\')
			*to++ = '\\';
		*to++ = *s == '\t' ? 't' : *s == '\n' ? 'n' : *s;
	}
	*to = '\0';
	return escaped;
}

static void unescape(char *s)
{
	char *to = s;

	for (const char *from = s + 1; *from; from++) {
		if (*from == '\\' && from[1]) {
			from++;
			*to++ = *from == 't'   ? '\t'
				: *from == 'n' ? '\n'
					       : *from;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

/* @value: NULL in a line that drops the key. */
static int add_line(struct text *t, const char *path, dev_t devno,
		    const char *value)
{
	_cleanup_free_ char *escaped = escape(path);
	int err = escaped ? 0 : -ENOMEM;

	if (!err && devno)
		err = text_add(t, "%u:%u ", major(devno), minor(devno));
	if (!err)
		err = text_add(t, "%s%s%s\n", escaped, value ? "\t" : "",
			       value ?: "");
	return err;
}

/* @line: is changed. A line that is no record is ignored. */
static int parse_line(struct record *r, char *line)
{
	char *value = strchr(line, '\t'), *path, *copy;
	struct record_subject *s;
	const char *rest = line;
	dev_t devno = 0;
	int err;

	if (value)
		*value++ = '\0';
	if (skip_devno(&rest, &devno) && *rest++ != ' ')
		return 0;
	path = (char *)rest;
	if (*path != '/' && *path != '\\')
		return 0;
	if (*path == '\\')
		unescape(path);
	if (!value) {
		forget(r, path, devno);
		return 0;
	}
	copy = strdup(value);
	err = copy ? make_room(r, path, &s) : -ENOMEM;
	if (err) {
		free(copy);
		return err;
	}
	put(r, s, devno, copy);
	return 0;
}

/* ---- the file ---- */

static void close_file(struct record *r)
{
	closep(&r->fd);
	r->fd = -1;
}

static int open_file(struct record *r)
{
	struct stat st;

	if (r->fd >= 0)
		return 0;
	r->fd = open(r->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (r->fd < 0 || fstat(r->fd, &st) < 0)
		return -errno;
	r->length = st.st_size;
	return 0;
}

static int all_lines(const struct record *r, struct text *t)
{
	const struct record_subject *s;
	int err = text_add(t, "%s", "");

	TAILQ_FOREACH(s, &r->subjects, list)
		for (size_t i = 0; i < s->n && !err; i++)
			err = add_line(t, s->path, s->lines[i].devno,
				       s->lines[i].value);
	return err;
}

static int replace(struct record *r)
{
	_cleanup_free_ char *new = asprintf_or_null("%s.new", r->path);
	_cleanup_(text_freep) struct text t = {};
	_cleanup_close_ int fd = -1;
	int err = new ? all_lines(r, &t) : -ENOMEM;

	if (err)
		return err;
	fd = open(new, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC,
		  0644);
	err = fd < 0 ? -errno : write_all(fd, t.p, t.length);
	if (!err && rename(new, r->path) < 0)
		err = -errno;
	if (err)
		return err;
	close_file(r);
	r->fd = fd;
	fd = -1;
	r->length = t.length;
	r->n_written = r->n;
	r->is_torn = false;
	return 0;
}

static int append(struct record *r, const struct text *t, size_t n_lines)
{
	int err = r->is_torn ? replace(r) : 0;

	if (!err)
		err = open_file(r);
	if (err)
		return err;
	err = write_all(r->fd, t->p, t->length);
	if (err) {
		r->is_torn = ftruncate(r->fd, r->length) < 0;
		return err;
	}
	r->length += t->length;
	r->n_written += n_lines;
	return 0;
}

/* Shorten the file. A failure does no harm, as the lines that count are the same. */
static void tidy(struct record *r)
{
	int err = 0;

	if (!r->n && r->n_written) {
		err = ftruncate(r->fd, 0) < 0 ? -errno : 0;
		r->length = err ? r->length : 0;
		r->n_written = err ? r->n_written : 0;
	} else if (r->n_written > 2 * r->n + OVERRIDDEN_MIN) {
		err = replace(r);
	}
	if (err)
		log_debug_errno(err, "Cannot shorten %s: %m", r->path);
}

/* ---- changes ---- */

const struct record_subject *record_find(const struct record *r,
					 const char *path)
{
	return find(r, path);
}

const char *record_get(const struct record *r, const char *path, dev_t devno)
{
	const struct record_line *l = find_line(r, path, devno);

	return l ? l->value : NULL;
}

int record_set(struct record *r, const char *path, dev_t devno,
	       const char *value)
{
	const char *was = record_get(r, path, devno);
	_cleanup_(text_freep) struct text t = {};
	_cleanup_free_ char *copy = NULL;
	struct record_subject *s;
	int err;

	if (strpbrk(value, "\t\n"))
		return -EINVAL;
	if (was && streq(was, value))
		return 0;
	copy = strdup(value);
	err = copy ? add_line(&t, path, devno, value) : -ENOMEM;
	if (!err)
		err = make_room(r, path, &s);
	if (!err)
		err = append(r, &t, 1);
	if (!err)
		put(r, s, devno, TAKE_PTR(copy));
	s = find(r, path);
	if (s && !s->n)
		remove_subject(r, s);
	if (!err)
		tidy(r);
	return err;
}

void record_cut(struct record *r, const char *path, dev_t devno, size_t length)
{
	struct record_line *l = find_line(r, path, devno);

	if (l && length < strlen(l->value))
		l->value[length] = '\0';
}

int record_drop(struct record *r, const char *path, dev_t devno)
{
	_cleanup_(text_freep) struct text t = {};
	int err;

	if (!find_line(r, path, devno))
		return 0;
	err = add_line(&t, path, devno, NULL) ?: append(r, &t, 1);
	if (err)
		return err;
	forget(r, path, devno);
	tidy(r);
	return 0;
}

int record_drop_path(struct record *r, const char *path)
{
	const struct record_subject *s;
	int err = 0;

	while (!err && (s = find(r, path)))
		err = record_drop(r, path, s->lines[s->n - 1].devno);
	return err;
}

static int add_over(const struct record *r, struct text *t, size_t *n,
		    bool (*is_over)(const char *path, dev_t devno,
				    const void *userdata),
		    const void *userdata)
{
	const struct record_subject *s;
	int err = 0;

	TAILQ_FOREACH(s, &r->subjects, list)
		for (size_t i = 0; i < s->n && !err; i++)
			if (is_over(s->path, s->lines[i].devno, userdata)) {
				err = add_line(t, s->path, s->lines[i].devno,
					       NULL);
				(*n)++;
			}
	return err;
}

int record_prune(struct record *r,
		 bool (*is_over)(const char *path, dev_t devno,
				 const void *userdata),
		 const void *userdata)
{
	_cleanup_(text_freep) struct text t = {};
	char *save = NULL;
	size_t n = 0;
	int err = add_over(r, &t, &n, is_over, userdata);

	if (!err && n)
		err = append(r, &t, n);
	for (char *line = t.p ? strtok_r(t.p, "\n", &save) : NULL; line && !err;
	     line = strtok_r(NULL, "\n", &save))
		err = parse_line(r, line);
	if (!err && n)
		tidy(r);
	return err;
}

/* ---- beginning and end ---- */

/* An incomplete last line is of a write that did not end, and its cgroup file was not written. */
static int read_all(struct record *r, FILE *f)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t n;
	int err = 0;

	errno = 0;
	while (!err && (n = getline(&line, &size, f)) > 0) {
		r->is_torn = line[n - 1] != '\n';
		if (r->is_torn)
			continue;
		line[n - 1] = '\0';
		err = parse_line(r, line);
		r->n_written++;
	}
	if (!err && !feof(f))
		err = errno ? -errno : -EIO;
	return err;
}

int record_open(struct record *r, const struct roots *roots, const char *name)
{
	FILE *f;
	int err;

	*r = (struct record){
		.path = asprintf_or_null("%s/%s", roots->run, name), .fd = -1
	};
	TAILQ_INIT(&r->subjects);
	if (!r->path)
		return -ENOMEM;
	f = fopen(r->path, "re");
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	err = read_all(r, f);
	fclose(f);
	if (!err && r->is_torn)
		log_warning("Cannot read all of %s, going on: its last line is "
			    "incomplete.",
			    r->path);
	return err;
}

void record_done(struct record *r)
{
	struct record_subject *s;

	while (r->path && (s = TAILQ_FIRST(&r->subjects)))
		remove_subject(r, s);
	if (r->path)
		close_file(r);
	free(r->path);
	*r = (struct record){ .fd = -1 };
}
