/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Paths of authorized callers, with all links followed, in a child process (lookup.c). */

#include "bus/background.h"
#include "bus/paths.h"
#include "host/lookup.h"

#define LIMIT_SEC 5U

/**
 * struct bus_lookup - paths of a call, and the method that waits for them
 * @method: is called with the real paths
 * @learnt: is called instead of @method, and finds the paths in the lookups of the machine
 */
struct bus_lookup {
	char **paths;
	bus_paths_method_t method;
	bus_method_t learnt;
};

static void lookup_free(void *userdata)
{
	struct bus_lookup *l = userdata;

	strv_free(l->paths);
	free(l);
}

static int work(struct bus *b, void *userdata, int fd)
{
	const struct bus_lookup *l = userdata;

	return lookups_write(&b->machine->roots, l->paths, fd);
}

static int parse(const struct bus_lookup *l, const char *output, char ***ret,
		 sd_bus_error *error)
{
	_cleanup_free_ char *copy = strdup(output);
	char *rest = copy;

	if (!copy)
		return -ENOMEM;
	for (char **p = l->paths; *p; p++) {
		const char *real;
		int r = lookups_read(&rest, &real);

		if (r)
			return r < 0 ? -EIO : bus_path_error(error, *p, -r);
		if (strv_add(ret, real) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int then(struct bus *b, sd_bus_message *call, void *userdata, int err,
		const char *output, sd_bus_error *error)
{
	_cleanup_strv_ char **real = NULL;
	struct bus_lookup *l = userdata;

	if (err == -ETIMEDOUT)
		return bus_error(error, SD_BUS_ERROR_TIMEOUT,
				 "%s: the path could not be looked up in %u s. "
				 "Does its file server answer?",
				 l->paths[0], LIMIT_SEC);
	if (!err)
		err = parse(l, output, &real, error);
	return err ? err : l->method(b, call, real, error);
}

int bus_with_real_paths(struct bus *b, sd_bus_message *call, char **paths,
			bus_paths_method_t method, sd_bus_error *error)
{
	static const struct bus_background background = {
		.limit_usec = LIMIT_SEC * 1000000ULL,
		.work = work,
		.then = then,
		.free = lookup_free,
	};
	struct bus_lookup *l = malloc(sizeof(*l));

	if (!l) {
		strv_free(paths);
		return -ENOMEM;
	}
	*l = (struct bus_lookup){ .paths = paths, .method = method };
	return bus_in_background(b, call, &background, l, error);
}

/* ---- paths of settings ---- */

static int then_learnt(struct bus *b, sd_bus_message *call, void *userdata,
		       int err, const char *output, sd_bus_error *error)
{
	_cleanup_free_ char *copy = strdup(output);
	struct lookups *lookups = b->machine->lookups;
	const struct bus_lookup *l = userdata;
	bool is_other = false;
	char *rest = copy;
	int r = 0;

	for (char **p = l->paths; copy && *p && r != -ENODATA; p++) {
		const char *real = NULL;

		r = lookups_read(&rest, &real);
		if (r >= 0)
			is_other |= lookups_set(lookups, *p, real, r);
		else if (err == -ETIMEDOUT)
			is_other |= lookups_set(lookups, *p, NULL, ETIMEDOUT);
	}
	if (is_other)
		lookups->changed(lookups->userdata);
	return l->learnt(b, call, error);
}

int bus_learn_paths(struct bus *b, sd_bus_message *call, char **paths,
		    bus_method_t method, sd_bus_error *error)
{
	static const struct bus_background background = {
		.limit_usec = LIMIT_SEC * 1000000ULL,
		.work = work,
		.then = then_learnt,
		.free = lookup_free,
	};
	struct bus_lookup *l;

	if (!paths)
		return method(b, call, error);
	l = malloc(sizeof(*l));
	if (!l) {
		strv_free(paths);
		return -ENOMEM;
	}
	*l = (struct bus_lookup){ .paths = paths, .learnt = method };
	return bus_in_background(b, call, &background, l, error);
}
