/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_MATCH_H
#define SUTRO_MATCH_H

#include "host/util.h"

/**
 * unit_name_is_valid() - may @name be a unit with a cgroup?
 *
 * Only what systemd allows: letters, digits, ":-_.\@", a suffix such as .service,
 * at most 255 bytes. So it is a file name, too, and no glob.
 */
bool unit_name_is_valid(const char *name);

/** unit_file_is_valid() - may @name be a file of a unit with a cgroup, or of a template? */
bool unit_file_is_valid(const char *name);

/* The unit of the root of the hierarchy, which has no settings. */
#define ROOT_SLICE "-.slice"

/**
 * cgroup_path_is_valid() - may policies be set for a cgroup with this path?
 *
 * It begins with "/", which is the root of the hierarchy, has no empty component, no "." and "..",
 * and letters, digits and ":-_.\@+,=~" only. So it is no glob, and a line of a file can hold it.
 */
bool cgroup_path_is_valid(const char *path);

/**
 * control_name() - the name of the control file for a unit or a cgroup path, without ".policy"
 *
 * "db.service", and "batch-job_7.cgroup" for /batch/job_7: the path as systemd-escape --path
 * writes it, which is no name of a unit with that suffix. To be freed; NULL: no memory.
 */
char *control_name(const char *subject);

/**
 * cgroup_name_to_unit() - the name of the unit that has a cgroup of this name, a part of it
 *
 * systemd prefixes names that could be those of the kernel's files: io.service has the cgroup
 * _io.service, and _x.service has __x.service.
 */
const char *cgroup_name_to_unit(const char *name);

/**
 * struct match - a section [Match]
 * @units: names and globs of Unit= in their order, "" for an empty one, which resets
 * @cgroups: paths and globs of Cgroup=, likewise
 */
struct match {
	char **units;
	char **cgroups;
};

/** match_list() - the list of Unit= or Cgroup=; NULL: no such key */
char ***match_list(struct match *m, const char *key);

#define MATCH_UNITS_ALLOWED                                                 \
	"names or globs of units, separated by blanks, such as db.service " \
	"kubepods-*.slice"
#define MATCH_CGROUPS_ALLOWED                                                \
	"paths or globs of cgroups that are no units, from the root of the " \
	"hierarchy, separated by blanks, such as /delegated/batch/*"

/** match_mistake() - what is allowed in the list of @key in the place of @word; NULL: @word is */
const char *match_mistake(const char *key, const char *word);

/**
 * match_unit_of() - the unit whose cgroup has this path by systemd's rules, a part of @path
 *
 * NULL: no unit has it, or it is a glob, which matches other cgroups, too.
 */
const char *match_unit_of(const char *path);

/** match_append() - append the patterns of @more to those of @m */
int match_append(struct match *m, const struct match *more);

/** match_length() - entries of both lists, resets among them */
size_t match_length(const struct match *m);

/** match_patterns() - entries of both lists that no reset has cleared */
size_t match_patterns(const struct match *m);

/**
 * match_covers() - does a pattern after the last reset match?
 * @subject: name of a unit, or path of a cgroup that is no unit
 *
 * In paths, "*" and "?" match no "/".
 */
bool match_covers(const struct match *m, const char *subject);

void match_done(struct match *m);

#endif
