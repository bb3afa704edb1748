/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LOOKUP_H
#define SUTRO_LOOKUP_H

#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "host/path.h"

/**
 * struct lookups - paths of settings, which a child process looks up
 * @changed: a path leads elsewhere than before
 */
struct lookups {
	sd_event *event;
	const struct roots *roots;
	void (*changed)(void *userdata);
	void *userdata;
	TAILQ_HEAD(, lookup) items;
	void *index;
	size_t n;
	struct helper *helper;
};

void lookups_init(struct lookups *l, sd_event *event, const struct roots *roots,
		  void (*changed)(void *userdata), void *userdata);
void lookups_done(struct lookups *l);

/**
 * lookups_find() - the device behind the path of a setting; it returns at once
 *
 * Until the path was looked up it is taken literally, see topology_resolve_literal().
 *
 * Return: 0; -EINPROGRESS: it is not known yet; -ETIMEDOUT: the lookup did not end; other errors
 * as of realpath(3) and topology_resolve_literal().
 */
int lookups_find(struct lookups *l, const struct topology *t, const char *path,
		 struct device **ret);

/** lookups_unknown() - add the paths that were not looked up yet */
int lookups_unknown(const struct lookups *l, char ***paths);

/** lookups_is_known() - is the answer for the path known, or not needed? */
bool lookups_is_known(const struct lookups *l, const char *path);

/**
 * lookups_set() - @path was looked up elsewhere; @real: NULL with @error, a positive errno
 *
 * Return: does it lead elsewhere than before? The caller then calls @changed.
 */
bool lookups_set(struct lookups *l, const char *path, const char *real,
		 int error);

/** lookups_keep() - a setting in force has this path */
void lookups_keep(struct lookups *l, const char *path);

/** lookups_drop() - drop the paths not used since the last call, unless a child runs */
void lookups_drop(struct lookups *l);

/** lookups_renew() - look all paths up again, except lookups without an answer */
void lookups_renew(struct lookups *l);

/** lookups_retry() - look up again the paths that led nowhere, except lookups without an answer */
void lookups_retry(struct lookups *l);

/** lookups_forget() - look up all paths again, also after lookups without an answer */
void lookups_forget(struct lookups *l);

/**
 * lookups_write() - look paths up, in a child process
 *
 * The output is a line for each path, "0 /real/path" or "ERRNO".
 */
int lookups_write(const struct roots *roots, char *const *paths, int fd);

/**
 * lookups_read() - the next line of the output of lookups_write()
 * @rest: it is moved behind the line
 * @ret_real: in the output, which is modified; NULL with an error
 *
 * Return: 0; a positive errno of the path; -ENODATA: the output ends here.
 */
int lookups_read(char **rest, const char **ret_real);

#endif
