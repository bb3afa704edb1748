/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_UNIT_CGROUP_H
#define SUTRO_UNIT_CGROUP_H

#include "host/cgroup.h"

/** cgroup_may_be_unit() - could @c be the cgroup of a unit of the system manager? */
bool cgroup_may_be_unit(const struct cgroup *c);

/**
 * unit_of_path() - name of the unit that the cgroup @path has, or will have when systemd makes it
 *
 * Return: a part of @path, or the subject of the policy of the cgroup; NULL: it is none of a unit.
 */
const char *unit_of_path(const struct cgroup_tree *t, const char *path);

/** cgroup_unit_name() - the name of the unit whose cgroup @c is, if it is one of a unit */
const char *cgroup_unit_name(const struct cgroup *c);

/** unit_find_candidate() - a cgroup that may be unit @name, NULL: there is none */
struct cgroup *unit_find_candidate(const struct cgroup_tree *t,
				   const char *name);

/** cgroup_subject() - its name in policies: its unit, or the path of a cgroup that is no unit */
const char *cgroup_subject(const struct cgroup *c);

/** unit_find_cgroup() - by unit name or cgroup path, NULL: unknown */
struct cgroup *unit_find_cgroup(const struct cgroup_tree *t, const char *name);

#endif
