/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The cgroup hierarchy of the io controller: its mount point, and the paths of its cgroups.
 *
 * libcgroup finds the hierarchy and walks it. Its walk returns an error when a directory vanishes
 * meanwhile; that is normal, and the walk here continues.
 *
 * Example: the walk from "/system.slice" calls its function with "/system.slice", then with
 * "/system.slice/db.service".
 */

#include <dirent.h>
#include <libcgroup.h>

#include "host/hierarchy.h"

/* The cgroup controller that the walk looks for. */
#define CONTROLLER "io"

/* The function that gets each path of a walk. */
struct visit {
	int (*on_cgroup)(const char *path, void *userdata);
	void *userdata;
};

static int walk_with_libcgroup(const struct hierarchy *h, const char *top,
			       const struct visit *v)
{
	struct cgroup_file_info info;
	void *handle = NULL;
	int code, level, err = 0;

	code = cgroup_walk_tree_begin(CONTROLLER, top, 0, &handle, &info,
				      &level);
	while (handle && (code == 0 || code == ECGOTHER) && !err) {
		/* ECGOTHER: one directory could not be read, most likely
		 * because it is gone. The next call continues after it.
		 */
		if (code == 0 && info.type == CGROUP_FILE_TYPE_DIR) {
			const char *path = startswith(info.full_path, h->mount);
			_cleanup_free_ char *clean = NULL;

			clean = asprintf_or_null(
				"/%s", path ? path + strspn(path, "/") : "");
			if (!clean)
				err = -ENOMEM;
			else if (clean[1] && clean[strlen(clean) - 1] == '/')
				clean[strlen(clean) - 1] = '\0';
			if (!err && path)
				err = v->on_cgroup(clean, v->userdata);
		}
		if (!err)
			code = cgroup_walk_tree_next(0, &handle, &info, level);
	}
	if (handle)
		cgroup_walk_tree_end(&handle);
	if (!handle && code && code != ECGEOF)
		log_debug("libcgroup: walk of %s: %s, ignoring.", top,
			  cgroup_strerror(code));
	return err;
}

/* For a directory that is not the mounted hierarchy: the trees of tests. */
static int walk_directories(const struct hierarchy *h, const char *top,
			    const struct visit *v)
{
	_cleanup_free_ char *full = NULL;
	struct dirent *e;
	int err;
	DIR *d;

	full = asprintf_or_null("%s%s", h->mount, top);
	if (!full)
		return -ENOMEM;
	d = opendir(full);
	if (!d)
		return 0;
	err = v->on_cgroup(top, v->userdata);
	while (!err && (e = readdir(d))) {
		_cleanup_free_ char *path = NULL;

		if (e->d_type != DT_DIR || streq(e->d_name, ".") ||
		    streq(e->d_name, ".."))
			continue;
		path = asprintf_or_null("%s/%s", streq(top, "/") ? "" : top,
					e->d_name);
		err = path ? walk_directories(h, path, v) : -ENOMEM;
	}
	closedir(d);
	return err;
}

int hierarchy_walk(const struct hierarchy *h, const char *top,
		   int (*on_cgroup)(const char *path, void *userdata),
		   void *userdata)
{
	const struct visit v = { on_cgroup, userdata };

	return h->is_mounted ? walk_with_libcgroup(h, top, &v)
			     : walk_directories(h, top, &v);
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
