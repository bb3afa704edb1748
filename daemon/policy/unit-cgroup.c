/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The cgroups of units.
 *
 * Only cgroups whose parent is a slice of systemd (or the root) can be units of the
 * system manager; cgroups below a service or scope belong to that service.
 */

#include "policy/match.h"
#include "policy/policy.h"
#include "policy/unit-cgroup.h"
#include "policy/unit.h"

const char *cgroup_unit_name(const struct cgroup *c)
{
	return cgroup_name_to_unit(c->name);
}

/* Could cgroups in @c be those of units? */
static bool may_have_units(const struct cgroup *c)
{
	return !c->parent ||
	       (c->origin != CGROUP_FOREIGN && endswith(c->name, ".slice"));
}

bool cgroup_may_be_unit(const struct cgroup *c)
{
	return c->parent && unit_is_name(c->name) && may_have_units(c->parent);
}

/* Are all cgroups above the one with this path slices of systemd, as far as they are there? */
static bool is_below_slices(const struct cgroup_tree *t, const char *path)
{
	for (const char *end = path; (end = strchr(end + 1, '/'));) {
		_cleanup_free_ char *above = strndup(path, end - path);
		const struct cgroup *c = above ? cgroup_find(t, above) : NULL;

		if (!above || !endswith(above, ".slice") ||
		    (c && c->origin == CGROUP_FOREIGN))
			return false;
	}
	return true;
}

const char *unit_of_path(const struct cgroup_tree *t, const char *path)
{
	const struct cgroup *c = cgroup_find(t, path);
	const char *name = cgroup_name_to_unit(strrchr(path, '/') + 1);

	if (c)
		return c->origin == CGROUP_UNIT ? c->policy->subject : NULL;
	return unit_name_is_valid(name) && is_below_slices(t, path) ? name
								    : NULL;
}

/* Any user can make systemd load and unload units of any name, at any rate, and the signal for each
 * leads to this search. Only slices are entered: no number of cgroups below delegated units makes it
 * longer.
 */
struct cgroup *unit_find_candidate(const struct cgroup_tree *t,
				   const char *name)
{
	struct cgroup *root = cgroup_tree_root(t), *c = root;

	while (c) {
		if (streq(cgroup_unit_name(c), name) && cgroup_may_be_unit(c))
			return c;
		c = may_have_units(c) ? cgroup_next(root, c)
				      : cgroup_next_beside(root, c);
	}
	return NULL;
}

const char *cgroup_subject(const struct cgroup *c)
{
	return c->origin == CGROUP_UNIT ? c->policy->subject : c->path;
}

struct cgroup *unit_find_cgroup(const struct cgroup_tree *t, const char *name)
{
	struct cgroup *c;

	if (name[0] == '/')
		return cgroup_find(t, name);
	c = unit_find_candidate(t, name);
	return c && c->origin == CGROUP_UNIT ? c : NULL;
}
