/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The cgroup hierarchy, kept up to date. hierarchy.c walks its directories, cgroup-cursor.c the tree,
 * cgroup-watch.c watches the directories, and cgroup-file.c has the files.
 *
 * systemd makes the cgroup of a unit first, and gives it to the user of the unit (User= with
 * Delegate=) afterwards. So each event and each scan looks at the owner of a cgroup that was
 * systemd's. The user's own first write is such an event. IN_ATTRIB would report the change of the
 * owner, but also each chmod() of a directory to the watch of its parent, at any rate.
 */

#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "host/cgroup.h"
#include "host/hierarchy.h"

/**
 * struct cgroup_tree - see cgroup.h
 * @cursors: walks over it that go on
 * @found, @left: the scan under way first looks for directories, then at the cgroups it has not found
 */
struct cgroup_tree {
	struct hierarchy hierarchy;
	int fd;
	const struct cgroup_ops *ops;
	void *userdata;
	struct cgroup *root;
	void *index;
	void *inodes;
	struct cgroup_cursors cursors;
	struct hierarchy_walk *found;
	struct cgroup_cursor left;
	unsigned int generation;
	uid_t owner;
	struct cgroup_watches watches;
};

/* ---- the tree ---- */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct cgroup *)a)->path,
		      ((const struct cgroup *)b)->path);
}

struct cgroup *cgroup_find(const struct cgroup_tree *t, const char *path)
{
	struct cgroup key = { .path = (char *)path }, **found;

	found = tfind(&key, &t->index, by_path);
	return found ? *found : NULL;
}

static int by_inode(const void *a, const void *b)
{
	const struct cgroup *c = a, *d = b;

	return c->inode < d->inode ? -1 : c->inode > d->inode;
}

struct cgroup *cgroup_by_inode(const struct cgroup_tree *t, uint64_t inode)
{
	struct cgroup key = { .inode = inode }, **found;

	found = tfind(&key, &t->inodes, by_inode);
	return found ? *found : NULL;
}

/* systemd makes no cgroup below that of a service or scope. */
static bool is_delegated(const struct cgroup *c, uid_t owner, uid_t root)
{
	const struct cgroup *p = c->parent;

	return p && (p->is_delegated || endswith(p->name, ".service") ||
		     endswith(p->name, ".scope") || owner != root);
}

static int stat_directory(const struct cgroup *c, struct stat *ret)
{
	const char *relative = c->path + strspn(c->path, "/");

	return fstatat(c->tree->fd, *relative ? relative : ".", ret,
		       AT_SYMLINK_NOFOLLOW);
}

/* A cgroup without a readable directory is being removed. */
static int add_inode(struct cgroup *c)
{
	struct cgroup **there;
	struct stat st;

	if (stat_directory(c, &st) < 0)
		return 0;
	c->inode = st.st_ino;
	if (!c->parent)
		c->tree->owner = st.st_uid;
	c->is_delegated = is_delegated(c, st.st_uid, c->tree->owner);
	there = tsearch(c, &c->tree->inodes, by_inode);
	if (!there)
		return -ENOMEM;
	/* The number of a removed cgroup whose event has not been handled yet. */
	if (*there != c) {
		(*there)->inode = 0;
		*there = c;
	}
	return 0;
}

static bool is_same(const struct cgroup *c)
{
	struct stat st;

	return !c->inode || stat_directory(c, &st) < 0 || st.st_ino == c->inode;
}

/* Was the cgroup systemd's until now? */
static bool is_newly_delegated(struct cgroup *c)
{
	struct stat st;

	if (c->is_delegated || stat_directory(c, &st) < 0)
		return false;
	c->is_delegated = is_delegated(c, st.st_uid, c->tree->owner);
	return c->is_delegated;
}

bool cgroup_is_gone(const struct cgroup_tree *t, const char *path)
{
	struct stat st;

	path += strspn(path, "/");
	return *path && fstatat(t->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

static void remove_inode(struct cgroup *c)
{
	if (c->inode)
		tdelete(c, &c->tree->inodes, by_inode);
}

struct cgroup *cgroup_tree_root(const struct cgroup_tree *t)
{
	return t->root;
}

const char *cgroup_tree_mount(const struct cgroup_tree *t)
{
	return t->hierarchy.mount;
}

int cgroup_tree_fd(const struct cgroup_tree *t)
{
	return t->fd;
}

struct cgroup_watches *cgroup_tree_watches(struct cgroup_tree *t)
{
	return &t->watches;
}

struct cgroup_cursors *cgroup_tree_cursors(struct cgroup_tree *t)
{
	return &t->cursors;
}

static void free_paths(struct cgroup *c)
{
	if (c->shown != c->path)
		free(c->shown);
	free(c->path);
}

static void remove_cgroup(struct cgroup *c)
{
	struct cgroup_tree *t = c->tree;
	struct cgroup *child;

	while ((child = TAILQ_FIRST(&c->children)))
		remove_cgroup(child);
	cgroup_cursors_pass(&t->cursors, c);
	t->ops->removed(c, t->userdata);
	tdelete(c, &t->index, by_path);
	remove_inode(c);
	if (c->parent)
		TAILQ_REMOVE(&c->parent->children, c, siblings);
	else
		t->root = NULL;
	cgroup_unwatch(c);
	free(c->policy);
	free_paths(c);
	free(c);
}

static int scan_below(struct cgroup_tree *t, const char *path);

/* When a unit's weight goes, and no unit beside it has one, systemd turns the io
 * controller off for all of them. Then it writes no io.weight, and the files are
 * gone without an event; subtree_control of the slice shows it.
 */
static void on_file_modified(struct cgroup *c, const char *name)
{
	struct cgroup_tree *t = c->tree;
	struct cgroup *child;

	if (streq(name, "cgroup.subtree_control"))
		TAILQ_FOREACH(child, &c->children, siblings)
			t->ops->modified(child, "io.weight", t->userdata);
	else if ((startswith(name, "io.") && endswith(name, "weight")) ||
		 streq(name, "io.max"))
		t->ops->modified(c, name, t->userdata);
}

/* Events about these may have been lost. */
static void look_at_files(struct cgroup *c)
{
	static const char *const files[] = { "io.weight", "io.bfq.weight",
					     "io.max",
					     "cgroup.subtree_control" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		on_file_modified(c, files[i]);
}

/* The priority of a watch is fixed. Events that wait for the old one are lost with it, so all that
 * they can be about is looked at.
 */
static int watch_as_delegated(struct cgroup *c)
{
	struct cgroup *child, *next;
	int err;

	log_debug(
		"%s: another user owns it now, its events have less priority.",
		c->shown);
	cgroup_unwatch(c);
	err = cgroup_watch(c);
	if (err)
		return err;
	for (child = TAILQ_FIRST(&c->children); child; child = next) {
		next = TAILQ_NEXT(child, siblings);
		if (cgroup_is_gone(c->tree, child->path))
			remove_cgroup(child);
	}
	look_at_files(c);
	return scan_below(c->tree, c->path);
}

static int on_inotify(sd_event_source *s, const struct inotify_event *event,
		      void *userdata)
{
	struct cgroup *c = userdata, *child;
	struct cgroup_tree *t = c->tree;
	_cleanup_free_ char *path = NULL;

	if (event->mask & IN_Q_OVERFLOW) {
		t->ops->lost(t->userdata);
		return 0;
	}
	if (event->len == 0)
		return 0;
	if (is_newly_delegated(c))
		return watch_as_delegated(c);
	if (!cgroup_count_event(c, event->name))
		return 0;
	if (!(event->mask & IN_ISDIR)) {
		if (event->mask & IN_MODIFY)
			on_file_modified(c, event->name);
		return 0;
	}
	path = asprintf_or_null("%s/%s", c->parent ? c->path : "", event->name);
	if (!path)
		return -ENOMEM;
	if (event->mask & IN_CREATE)
		return scan_below(t, path);
	/* A cgroup that was made again since is another directory without a watch, and its
	 * IN_CREATE follows.
	 */
	child = cgroup_find(t, path);
	if (child && (event->mask & IN_DELETE))
		remove_cgroup(child);
	return 0;
}

/* Of a cgroup with its path. Users can make many with long paths, so there is no copy of most. */
static int set_shown_path(struct cgroup *c)
{
	_cleanup_(text_freep) struct text t = {};
	int err;

	if (text_is_plain(c->path) && strlen(c->path) <= PATH_MAX) {
		c->shown = c->path;
		return 0;
	}
	err = text_add_plain(&t, c->path, PATH_MAX);
	if (!err)
		c->shown = strdup(t.p);
	return err ?: c->shown ? 0 : -ENOMEM;
}

static int add_cgroup(const char *path, struct cgroup_tree *t)
{
	struct cgroup *c = cgroup_find(t, path), *parent = NULL;
	_cleanup_free_ char *up = NULL;
	char *slash;
	int err;

	/* The cgroup was removed and made again while events were lost. */
	if (c && c->parent && !is_same(c)) {
		remove_cgroup(c);
		c = NULL;
	}
	if (c) {
		c->generation = t->generation;
		if (!c->inode)
			return add_inode(c);
		if (!is_newly_delegated(c))
			return 0;
		/* The walk goes on below it, and all files are compared. */
		cgroup_unwatch(c);
		return cgroup_watch(c);
	}
	if (!streq(path, "/")) {
		up = strdup(path);
		if (!up)
			return -ENOMEM;
		slash = strrchr(up, '/');
		slash[slash == up ? 1 : 0] = '\0';
		parent = cgroup_find(t, up);
		if (!parent)
			return 0; /* removed during the walk */
	}
	/* A walk lists the names in a directory before it reaches them. */
	if (cgroup_is_gone(t, path))
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->path = strdup(path);
	c->policy = calloc(1, t->ops->policy_bytes);
	if (!c->path || set_shown_path(c) < 0 || !c->policy ||
	    !tsearch(c, &t->index, by_path)) {
		free(c->policy);
		free_paths(c);
		free(c);
		return -ENOMEM;
	}
	c->name = strrchr(c->path, '/') + 1;
	c->tree = t;
	c->generation = t->generation;
	c->parent = parent;
	TAILQ_INIT(&c->children);
	if (parent)
		TAILQ_INSERT_TAIL(&parent->children, c, siblings);
	else
		t->root = c;
	/* Watch the directory before it is read, so that nothing is missed in between. */
	err = add_inode(c) ?: cgroup_watch(c);
	if (err)
		return err;
	t->ops->added(c, t->userdata);
	return 0;
}

/* ---- scanning ---- */

/* Return: 1; 0: the walk is over; -errno. */
static int add_next(struct cgroup_tree *t, struct hierarchy_walk *w)
{
	_cleanup_free_ char *path = NULL;
	int r = hierarchy_walk_next(w, &path);

	return r <= 0 ? r : add_cgroup(path, t) ?: 1;
}

/* Of a large subtree, the next scan finds the rest. */
static int scan_below(struct cgroup_tree *t, const char *path)
{
	struct hierarchy_walk *w;
	int r = hierarchy_walk_new(&t->hierarchy, path, &w);

	if (r < 0)
		return r;
	r = 1;
	for (unsigned int i = 0; i < CGROUP_BATCH && r > 0; i++)
		r = add_next(t, w);
	hierarchy_walk_free(w);
	if (r > 0)
		t->ops->lost(t->userdata);
	return r < 0 ? r : 0;
}

/* Look at one that is in the tree, found or not. */
static int look_at(struct cgroup *c)
{
	struct cgroup_tree *t = c->tree;

	/* An error of the walk is no evidence that the cgroup was removed. */
	if (c->generation != t->generation && cgroup_is_gone(t, c->path)) {
		remove_cgroup(c);
		return 0;
	}
	c->n_events = 0;
	if (c->watch || !t->watches.event)
		return 0;
	if (cgroup_watch(c) == -ENOMEM)
		return -ENOMEM;
	/* The comparison reads the files of others by itself. */
	if (c->watch || c->origin != CGROUP_FOREIGN)
		look_at_files(c);
	return 0;
}

int cgroup_scan_begin(struct cgroup_tree *t)
{
	t->generation++;
	t->watches.is_unwatched = false;
	t->found = hierarchy_walk_free(t->found);
	return hierarchy_walk_new(&t->hierarchy, "/", &t->found);
}

bool cgroup_scan_goes_on(const struct cgroup_tree *t)
{
	return t->found || cgroup_cursor_goes_on(&t->left);
}

int cgroup_scan_next(struct cgroup_tree *t)
{
	int r = 1;

	for (unsigned int i = 0; t->found && i < CGROUP_BATCH && r > 0; i++)
		r = add_next(t, t->found);
	if (r > 0 && t->found)
		return r;
	if (t->found) {
		t->found = hierarchy_walk_free(t->found);
		if (r < 0 || !t->root)
			return r ?: -ENOENT;
		cgroup_cursor_begin(&t->left, t->root);
		return 1;
	}
	r = 0;
	for (unsigned int i = 0; i < CGROUP_BATCH && !r; i++) {
		struct cgroup *c = cgroup_cursor_next(&t->left);

		if (!c)
			break;
		r = look_at(c);
	}
	if (r < 0 || cgroup_cursor_goes_on(&t->left))
		return r ?: 1;
	t->watches.is_reported &= t->watches.is_unwatched;
	return t->root ? 0 : -ENOENT;
}

int cgroup_tree_scan(struct cgroup_tree *t)
{
	int r = cgroup_scan_begin(t) ?: 1;

	while (r > 0)
		r = cgroup_scan_next(t);
	return r;
}

/* ---- opening ---- */

int cgroup_tree_new(const struct roots *roots, sd_event *event,
		    const struct cgroup_ops *ops, void *userdata,
		    struct cgroup_tree **ret)
{
	_cleanup_(cgroup_tree_freep) struct cgroup_tree *t = NULL;
	int err;

	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->fd = -1;
	t->ops = ops;
	t->userdata = userdata;
	t->watches.event = sd_event_ref(event);
	t->watches.on_event = on_inotify;
	err = hierarchy_find(roots, &t->hierarchy);
	if (err)
		return err;
	t->fd = open(t->hierarchy.mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t->fd < 0)
		return log_error_errno(errno, "Cannot open %s: %m",
				       t->hierarchy.mount);
	*ret = TAKE_PTR(t);
	return 0;
}

struct cgroup_tree *cgroup_tree_free(struct cgroup_tree *t)
{
	if (!t)
		return NULL;
	hierarchy_walk_free(t->found);
	if (t->root)
		remove_cgroup(t->root);
	closep(&t->fd);
	sd_event_unref(t->watches.event);
	hierarchy_done(&t->hierarchy);
	free(t);
	return NULL;
}
