/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Proposed files, and the files that they would replace. */

#include "policy/proposal.h"

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Is the file in a folder of this name? */
static bool is_in(const char *path, const char *folder)
{
	size_t length = name_of(path) - path, n = strlen(folder);

	return length > n + 1 && path[length - n - 2] == '/' &&
	       !strncmp(path + length - n - 1, folder, n);
}

static bool is_for(const char *path, enum policyfile_kind kind,
		   const char *folder)
{
	bool runtime = startswith(path, "/run/");

	switch (kind) {
	case POLICYFILE_DROPIN:
		return is_in(path, folder);
	case POLICYFILE_CONTROL:
		return *folder ? runtime : !runtime;
	default:
		return true;
	}
}

const char *proposals_text(const struct proposals *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (streq(l->items[i].path, path))
			return l->items[i].text;
	return NULL;
}

int proposals_put(const struct proposals *l, enum policyfile_kind kind,
		  const char *folder, struct dropins *files)
{
	int err = 0;

	for (size_t i = 0; i < l->n && !err; i++) {
		const char *path = l->items[i].path;

		if (policyfile_kind_of(path) == kind &&
		    is_for(path, kind, folder))
			err = dropins_put(files, name_of(path), path);
	}
	return err;
}

char *proposal_unit(const char *path)
{
	const char *name = name_of(path);
	_cleanup_free_ char *folder = NULL, *unit = NULL;

	if (unit_name_is_valid(name))
		return strdup(name);
	folder = strndup(path, name > path ? name - path - 1 : 0);
	if (!folder)
		return NULL;
	name = name_of(folder);
	if (!endswith(name, ".d"))
		return strdup("");
	unit = strndup(name, strlen(name) - strlen(".d"));
	if (unit && !unit_name_is_valid(unit))
		*unit = '\0';
	return TAKE_PTR(unit);
}
