/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The cgroup hierarchy of the io controller: its mount point, and the paths of its cgroups.
 *
 * libcgroup finds the hierarchy and walks it. Its walk returns an error when a directory vanishes
 * meanwhile; that is normal, and the walk here continues.
 *
 * Example: the walk from "/system.slice" returns "/system.slice", then "/system.slice/db.service".
 */

#include <fts.h>
#include <libcgroup.h>

#include "host/hierarchy.h"

/* The cgroup controller that the walk looks for. */
#define CONTROLLER "io"

/**
 * struct hierarchy_walk - a walk of libcgroup, or of fts(3) in the tree of a test
 * @handle, @level, @info: state of the walk of libcgroup, and its last entry
 * @fts: NULL: the hierarchy is mounted
 */
struct hierarchy_walk {
	const struct hierarchy *h;
	char *top;
	bool is_begun;
	void *handle;
	int level;
	struct cgroup_file_info info;
	FTS *fts;
};

/* Return: the next entry if it is a directory, "" if not, NULL at the end. */
static const char *next_of_libcgroup(struct hierarchy_walk *w)
{
	int code = w->is_begun ? cgroup_walk_tree_next(0, &w->handle, &w->info,
						       w->level)
			       : cgroup_walk_tree_begin(CONTROLLER, w->top, 0,
							&w->handle, &w->info,
							&w->level);

	w->is_begun = true;
	/* ECGOTHER: one directory could not be read, most likely because it is gone. The next
	 * call continues after it.
	 */
	if (w->handle && code == ECGOTHER)
		return "";
	if (code && code != ECGEOF)
		log_debug("libcgroup: walk of %s: %s, ignoring.", w->top,
			  cgroup_strerror(code));
	if (!w->handle || code)
		return NULL;
	return w->info.type == CGROUP_FILE_TYPE_DIR ? w->info.full_path : "";
}

static const char *next_of_fts(struct hierarchy_walk *w)
{
	const FTSENT *e = fts_read(w->fts);

	w->is_begun = true;
	if (!e)
		return NULL;
	return e->fts_info == FTS_D ? e->fts_path : "";
}

int hierarchy_walk_next(struct hierarchy_walk *w, char **ret)
{
	const char *entry, *below = NULL;
	size_t length;
	char *path;

	do {
		entry = w->fts ? next_of_fts(w) : next_of_libcgroup(w);
		if (!entry)
			return 0;
		below = startswith(entry, w->h->mount);
	} while (!below);
	below += strspn(below, "/");
	length = strlen(below);
	while (length && below[length - 1] == '/')
		length--;
	path = asprintf_or_null("/%.*s", (int)length, below);
	if (!path)
		return -ENOMEM;
	*ret = path;
	return 1;
}

int hierarchy_walk_new(const struct hierarchy *h, const char *top,
		       struct hierarchy_walk **ret)
{
	_cleanup_free_ char *full = asprintf_or_null("%s%s", h->mount, top);
	char *const tops[] = { full, NULL };
	struct hierarchy_walk *w = full ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return -ENOMEM;
	w->h = h;
	w->top = strdup(top);
	if (w->top && !h->is_mounted)
		w->fts = fts_open(tops, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!w->top || (!h->is_mounted && !w->fts)) {
		hierarchy_walk_free(w);
		return -ENOMEM;
	}
	*ret = w;
	return 0;
}

struct hierarchy_walk *hierarchy_walk_free(struct hierarchy_walk *w)
{
	if (!w)
		return NULL;
	if (w->handle)
		cgroup_walk_tree_end(&w->handle);
	/* glibc does not free the first entry of a walk from which nothing was read. */
	if (w->fts && !w->is_begun)
		fts_read(w->fts);
	if (w->fts)
		fts_close(w->fts);
	free(w->top);
	free(w);
	return NULL;
}

int hierarchy_find(const struct roots *roots, struct hierarchy *ret)
{
	char *point = NULL;
	int code;

	if (roots->cgroup) {
		*ret = (struct hierarchy){ .mount = strdup(roots->cgroup) };
		return ret->mount ? 0 : -ENOMEM;
	}
	code = cgroup_init();
	if (!code)
		code = cgroup_get_subsys_mount_point(CONTROLLER, &point);
	if (code) {
		log_error("No cgroup2 hierarchy with the io controller "
			  "(libcgroup: %s). Boot with "
			  "systemd.unified_cgroup_hierarchy=1.",
			  cgroup_strerror(code));
		return -ENOENT;
	}
	*ret = (struct hierarchy){ .mount = point, .is_mounted = true };
	return 0;
}

void hierarchy_done(struct hierarchy *h)
{
	free(h->mount);
	*h = (struct hierarchy){};
}
