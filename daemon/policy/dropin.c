/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A folder that cannot be read is an error, and not an empty one: settings must not go with it.
 *
 * Which files count, of directories that stand before each other (systemd.unit(5)):
 *
 *	/etc	20-b.conf		20-b.conf of /etc
 *	/run	30-c.conf	->	30-c.conf of /run
 *	/usr	10-a.conf 20-b.conf	10-a.conf of /usr, which comes first
 */

#include <dirent.h>

#include "policy/dropin.h"

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct dropin *)a)->name,
		      ((const struct dropin *)b)->name);
}

static bool is_known(const struct dropins *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (streq(l->items[i].name, name))
			return true;
	return false;
}

static int add(struct dropins *l, const char *dir, const char *name)
{
	struct dropin *grown, d;

	grown = reallocarray(l->items, l->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->items = grown;
	d.name = strdup(name);
	d.path = asprintf_or_null("%s/%s", dir, name);
	if (!d.name || !d.path) {
		free(d.name);
		free(d.path);
		return -ENOMEM;
	}
	grown[l->n++] = d;
	return 0;
}

/* A policy file of 254 bytes has no folder of drop-ins: no file system has such a long name. */
static bool is_missing(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

static int list_one(const char *dir, const char *suffix, struct dropins *l)
{
	DIR *d = opendir(dir);
	struct dirent *e = NULL;
	int err = d || is_missing(errno) ? 0 : -errno;

	while (d && !err) {
		errno = 0;
		e = readdir(d);
		if (!e)
			break;
		if (e->d_name[0] != '.' && endswith(e->d_name, suffix) &&
		    !is_known(l, e->d_name))
			err = add(l, dir, e->d_name);
	}
	if (d && !e)
		err = -errno;
	if (d)
		closedir(d);
	if (err && err != -ENOMEM)
		log_error_errno(err, "Cannot read the folder %s: %m", dir);
	return err;
}

int dropins_list(char *const *dirs, const char *folder, const char *suffix,
		 struct dropins *ret)
{
	struct dropins l = {};
	int err = 0;

	for (; *dirs && !err; dirs++) {
		_cleanup_free_ char *dir = NULL;

		dir = asprintf_or_null("%s%s%s", *dirs, *folder ? "/" : "",
				       folder);
		err = dir ? list_one(dir, suffix, &l) : -ENOMEM;
	}
	if (err) {
		dropins_done(&l);
		return err;
	}
	if (l.n)
		qsort(l.items, l.n, sizeof(*l.items), by_name);
	*ret = l;
	return 0;
}

int dropins_append(struct dropins *l, const char *name, const char *path)
{
	struct dropin *grown, d = { strdup(name), strdup(path) };

	grown = d.name && d.path
			? reallocarray(l->items, l->n + 1, sizeof(*grown))
			: NULL;
	if (!grown) {
		free(d.name);
		free(d.path);
		return -ENOMEM;
	}
	l->items = grown;
	grown[l->n++] = d;
	return 0;
}

int dropins_put(struct dropins *l, const char *name, const char *path)
{
	int err;

	for (size_t i = 0; i < l->n; i++)
		if (streq(l->items[i].name, name)) {
			char *copy = strdup(path);

			if (!copy)
				return -ENOMEM;
			free(l->items[i].path);
			l->items[i].path = copy;
			return 0;
		}
	err = dropins_append(l, name, path);
	if (!err)
		qsort(l->items, l->n, sizeof(*l->items), by_name);
	return err;
}

void dropins_done(struct dropins *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].name);
		free(l->items[i].path);
	}
	free(l->items);
	*l = (struct dropins){};
}
