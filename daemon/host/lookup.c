/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where the paths of settings lead, with all links followed.
 *
 * A user may set floors of units of their own, and a path may lead to a file server that does not
 * answer. So the loop takes paths literally (path.c), and a child process with a time limit looks
 * up those that are not below /dev, /tmp or /var/tmp. Its answers are kept:
 *
 *	/srv/link	looked up	/data		the device of /data
 *	/srv/dead	not looked up	-ETIMEDOUT	no device, until the next Reload
 *
 * The loop waits for no answer: until there is one, a path is taken literally.
 */

#include <search.h>
#include <stdio.h>

#include "host/event.h"
#include "host/helper.h"
#include "host/lookup.h"

/* More paths in all settings are a mistake or an attack. */
#define PATHS_MAX 16384U

/* The time for the paths of one child. After it, the first path without an answer is given up. */
#define LIMIT_USEC 5000000U

/* Paths of one child. Paths of another child do not wait for them. */
#define BATCH 64U

/**
 * struct lookup - the path of a setting, and where it leads
 * @real: NULL: it leads nowhere, or is not known yet
 * @error: why it leads nowhere, -EINPROGRESS: not known yet
 * @is_due: it is to be looked up
 * @is_in_child: the child that runs looks it up
 * @is_used: by a setting or a call since the last lookups_drop()
 * @is_reported: its time limit was reported, and no lookup has ended since
 */
struct lookup {
	char *path;
	char *real;
	int error;
	bool is_due;
	bool is_in_child;
	bool is_used;
	bool is_reported;
	TAILQ_ENTRY(lookup) list;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct lookup *)a)->path,
		      ((const struct lookup *)b)->path);
}

static struct lookup *find(const struct lookups *l, const char *path)
{
	const struct lookup key = { .path = (char *)path };
	struct lookup **found = tfind(&key, &l->index, by_path);

	return found ? *found : NULL;
}

static void lookup_free(struct lookups *l, struct lookup *one)
{
	tdelete(one, &l->index, by_path);
	TAILQ_REMOVE(&l->items, one, list);
	l->n--;
	free(one->path);
	free(one->real);
	free(one);
}

void lookups_init(struct lookups *l, sd_event *event, const struct roots *roots,
		  void (*changed)(void *userdata), void *userdata)
{
	*l = (struct lookups){ .event = event,
			       .roots = roots,
			       .changed = changed,
			       .userdata = userdata };
	TAILQ_INIT(&l->items);
}

void lookups_done(struct lookups *l)
{
	struct lookup *one;

	if (!l->event)
		return;
	l->helper = helper_cancel(l->helper);
	while ((one = TAILQ_FIRST(&l->items)))
		lookup_free(l, one);
}

/* ---- the child ---- */

int lookups_write(const struct roots *roots, char *const *paths, int fd)
{
	int err = 0;

	for (; paths && *paths && !err; paths++) {
		_cleanup_free_ char *real = NULL, *line = NULL;

		/* A path with a newline would look like two lines. */
		if (!strchr(*paths, '\n'))
			real = path_real(roots, *paths);
		else
			errno = ENOENT;
		if (real && strchr(real, '\n')) {
			free(real);
			real = NULL;
			errno = ENOENT;
		}
		line = real ? asprintf_or_null("0 %s\n", real)
			    : asprintf_or_null("%d\n", errno);
		err = line ? write_all(fd, line, strlen(line)) : -ENOMEM;
	}
	return err;
}

int lookups_read(char **rest, const char **ret_real)
{
	char *line = *rest, *end = strchr(line, '\n');
	int err;

	/* A line without a newline is incomplete. */
	if (!end)
		return -ENODATA;
	*end = '\0';
	*rest = end + 1;
	err = atoi(line);
	*ret_real = err || !startswith(line, "0 ") ? NULL : line + 2;
	return *ret_real ? 0 : err ?: EIO;
}

static int on_work(int fd, void *userdata)
{
	const struct lookups *l = userdata;
	_cleanup_strv_ char **paths = NULL;
	struct lookup *one;
	int err = 0;

	TAILQ_FOREACH(one, &l->items, list)
		if (one->is_in_child && !err)
			err = strv_add(&paths, one->path);
	return err ?: lookups_write(l->roots, paths, fd);
}

/* ---- answers ---- */

/* Store an answer. Return: does the path lead elsewhere than before? Before the first
 * answer, the path was taken literally.
 */
static bool set(struct lookup *one, const char *real, int error)
{
	const char *before = one->error == -EINPROGRESS ? one->path : one->real;
	bool is_other = !before || !real ? before != real
					 : !streq(before, real);
	char *copy = real ? strdup(real) : NULL;

	one->is_due = false;
	one->is_reported &= error == ETIMEDOUT;
	one->error = real && !copy ? -ENOMEM : -error;
	free(one->real);
	one->real = copy;
	return is_other;
}

static void start(struct lookups *l);

static bool give_up(struct lookup *one)
{
	if (!one->is_reported)
		log_event(EVENT_LOOKUP_TIMEOUT, LOG_WARNING,
			  EVENT_FIELDS({ "SUTRO_PATH", one->path }),
			  "%s could not be looked up within %u s and has no "
			  "effect until policies are loaded again. Does its "
			  "file server answer?",
			  one->path, LIMIT_USEC / 1000000);
	one->is_reported = true;
	return set(one, NULL, ETIMEDOUT);
}

static void on_done(int err, const char *output, size_t length, void *userdata)
{
	_cleanup_free_ char *copy = strndup(output, length);
	char *rest = copy ?: (char[]){ "" };
	struct lookups *l = userdata;
	bool is_over = false, is_other = false, is_any = false;
	struct lookup *one;

	l->helper = NULL;
	TAILQ_FOREACH(one, &l->items, list) {
		const char *real;
		int r;

		if (!one->is_in_child)
			continue;
		one->is_in_child = false;
		r = is_over ? -ENODATA : lookups_read(&rest, &real);
		if (r >= 0)
			is_other |= set(one, real, r);
		else if (!is_over && err == -ETIMEDOUT)
			is_other |= give_up(one);
		is_any |= r >= 0 || err == -ETIMEDOUT;
		/* The answers of the other paths are still due. */
		is_over |= r < 0;
	}
	/* Without any answer, do not try again before the next setting. */
	if (is_any)
		start(l);
	if (is_other)
		l->changed(l->userdata);
}

static void start(struct lookups *l)
{
	const struct helper_job job = {
		.keep_fd = -1,
		.limit_usec = LIMIT_USEC,
		.work = on_work,
		.done = on_done,
		.userdata = l,
	};
	struct lookup *one;
	size_t n = 0;
	int r;

	if (l->helper)
		return;
	TAILQ_FOREACH(one, &l->items, list) {
		one->is_in_child = one->is_due && n < BATCH;
		n += one->is_in_child;
	}
	r = n ? helper_start(l->event, &job, &l->helper) : 0;
	if (r < 0)
		log_debug_errno(r, "Cannot look up paths, later again: %m");
}

/* ---- questions ---- */

static int add(struct lookups *l, const char *path, struct lookup **ret)
{
	struct lookup *one;

	if (l->n >= PATHS_MAX)
		return -ENOSPC;
	one = calloc(1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	*one = (struct lookup){ .path = strdup(path),
				.error = -EINPROGRESS,
				.is_due = true };
	if (!one->path || !tsearch(one, &l->index, by_path)) {
		free(one->path);
		free(one);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&l->items, one, list);
	l->n++;
	*ret = one;
	return 0;
}

/* Only root makes links below /dev, and the loop follows them itself. Any user makes links in the
 * folders for temporary files, which the daemon does not see (PrivateTmp=): none is followed there.
 */
static bool is_literal(const char *path)
{
	return startswith(path, "/dev/") || startswith(path, "/tmp/") ||
	       startswith(path, "/var/tmp/");
}

int lookups_find(struct lookups *l, const struct topology *t, const char *path,
		 struct device **ret)
{
	struct lookup *one;
	int err = 0;

	if (path[0] != '/')
		return -EINVAL;
	if (is_literal(path))
		return topology_resolve_literal(t, l->roots, path, ret);
	one = find(l, path);
	if (!one)
		err = add(l, path, &one);
	if (err)
		return err;
	one->is_used = true;
	if (one->is_due)
		start(l);
	if (one->error && one->error != -EINPROGRESS)
		return one->error;
	err = topology_resolve_literal(t, l->roots, one->real ?: path, ret);
	return err && err != -ENOMEM && one->error ? one->error : err;
}

int lookups_unknown(const struct lookups *l, char ***paths)
{
	struct lookup *one;
	int err = 0;

	TAILQ_FOREACH(one, &l->items, list)
		if (one->error == -EINPROGRESS && !err)
			err = strv_add(paths, one->path);
	return err;
}

bool lookups_is_known(const struct lookups *l, const char *path)
{
	const struct lookup *one = find(l, path);

	return one ? one->error != -EINPROGRESS : is_literal(path);
}

bool lookups_set(struct lookups *l, const char *path, const char *real,
		 int error)
{
	struct lookup *one = find(l, path);

	return one && set(one, real, error);
}

void lookups_keep(struct lookups *l, const char *path)
{
	struct lookup *one = find(l, path);

	if (one)
		one->is_used = true;
}

/* The child that runs has its answers in the order of the list: nothing is dropped before it ends. */
void lookups_drop(struct lookups *l)
{
	struct lookup *one, *next;

	for (one = TAILQ_FIRST(&l->items); one && !l->helper; one = next) {
		next = TAILQ_NEXT(one, list);
		if (!one->is_used)
			lookup_free(l, one);
		else
			one->is_used = false;
	}
}

static void renew(struct lookups *l, bool (*is_due)(const struct lookup *one))
{
	struct lookup *one;

	TAILQ_FOREACH(one, &l->items, list)
		one->is_due |= is_due(one);
	start(l);
}

static bool has_ended(const struct lookup *one)
{
	return one->error != -ETIMEDOUT;
}

static bool leads_nowhere(const struct lookup *one)
{
	return one->error && has_ended(one);
}

static bool is_any(const struct lookup *one)
{
	return true;
}

void lookups_renew(struct lookups *l)
{
	renew(l, has_ended);
}

void lookups_retry(struct lookups *l)
{
	renew(l, leads_nowhere);
}

void lookups_forget(struct lookups *l)
{
	renew(l, is_any);
}
