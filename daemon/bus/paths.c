/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Paths of authorized callers, with all links followed. The child writes a line for each path,
 * "0 /real/path" or "ERRNO".
 */

#include <stdio.h>

#include "bus/background.h"
#include "bus/paths.h"
#include "host/path.h"

#define LIMIT_SEC 5U

/** struct lookup - paths of a call, and the method that waits for them */
struct lookup {
	char **paths;
	bus_paths_method_t method;
};

static void lookup_free(void *userdata)
{
	struct lookup *l = userdata;

	strv_free(l->paths);
	free(l);
}

/* A path with a newline would be two lines. */
static int work(struct bus *b, void *userdata, int fd)
{
	const struct lookup *l = userdata;
	int err = 0;

	for (char **p = l->paths; p && *p && !err; p++) {
		_cleanup_free_ char *real = NULL, *line = NULL;

		if (!strchr(*p, '\n'))
			real = path_real(&b->machine->roots, *p);
		else
			errno = ENOENT;
		line = real ? asprintf_or_null("0 %s\n", real)
			    : asprintf_or_null("%d\n", errno);
		err = line ? write_all(fd, line, strlen(line)) : -ENOMEM;
	}
	return err;
}

static int parse(const struct lookup *l, const char *output, char ***ret,
		 sd_bus_error *error)
{
	_cleanup_free_ char *copy = strdup(output);
	char *rest = NULL, *line;

	if (!copy)
		return -ENOMEM;
	line = strtok_r(copy, "\n", &rest);
	for (char **p = l->paths; *p && line; p++) {
		int err = atoi(line);

		if (err)
			return bus_path_error(error, *p, -err);
		if (strv_add(ret, line + 2) < 0)
			return -ENOMEM;
		line = strtok_r(NULL, "\n", &rest);
	}
	return strv_length(*ret) == strv_length(l->paths) ? 0 : -EIO;
}

static int then(struct bus *b, sd_bus_message *call, void *userdata, int err,
		const char *output, sd_bus_error *error)
{
	_cleanup_strv_ char **real = NULL;
	struct lookup *l = userdata;

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
	struct lookup *l = malloc(sizeof(*l));

	if (!l) {
		strv_free(paths);
		return -ENOMEM;
	}
	*l = (struct lookup){ paths, method };
	return bus_in_background(b, call, &background, l, error);
}
