/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A walk over the directories of cgroups, and their files.
 *
 * The walk of host/hierarchy.c needs /proc/cgroups, which the sandbox of the service does not have,
 * and looks at each file. A directory of cgroupfs has a link for each one below it, so most need no
 * list here: two calls for a cgroup instead of sixty.
 *
 * Two directories may have one shown path: names of delegated cgroups may have any bytes, and the
 * daemon shows "?" for those that D-Bus does not transport.
 */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "exporter/folders.h"

/* Links of a directory with no other one in it: its name, and ".". */
#define LINKS_ALONE 2U
/* More than the lines of a few leaves. */
#define FILE_BYTES 16384U

static struct folder *folder_free(struct folder *f)
{
	if (f) {
		free(f->path);
		free(f->altered);
	}
	free(f);
	return NULL;
}
DEFINE_CLEANUP(struct folder *, folder_free);

/* Relative to the directory of the hierarchy. */
static const char *relative(const char *path)
{
	return path[1] ? path + 1 : ".";
}

/* @path is taken; NULL: no memory. */
static int add(struct folders *l, char *path)
{
	_cleanup_(folder_freep) struct folder *f = calloc(1, sizeof(*f));
	_cleanup_(text_freep) struct text shown = {};
	struct folder **items;

	if (!f || !path) {
		free(path);
		return -ENOMEM;
	}
	f->path = path;
	f->first = f;
	if (!text_is_plain(path)) {
		if (text_add_plain(&shown, path, SIZE_MAX / 2) < 0)
			return -ENOMEM;
		f->altered = TAKE_PTR(shown.p);
	}
	/* The size is a power of two. */
	if ((l->n & (l->n - 1)) == 0) {
		items = reallocarray(l->items, l->n ? l->n * 2 : 1,
				     sizeof(*items));
		if (!items)
			return -ENOMEM;
		l->items = items;
	}
	l->items[l->n++] = TAKE_PTR(f);
	return 0;
}

static bool is_directory(int parent, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(parent, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

/* Add those in the directory of @path, which may have been removed. */
static int add_below(struct folders *l, int hierarchy, const char *path)
{
	const struct dirent *entry;
	struct stat st;
	int err = 0, fd;
	DIR *dir;

	if (fstatat(hierarchy, relative(path), &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_nlink == LINKS_ALONE)
		return 0;
	fd = openat(hierarchy, relative(path),
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return is_shortage(-errno) ? -errno : 0;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!err && (entry = readdir(dir)))
		if (!streq(entry->d_name, ".") && !streq(entry->d_name, "..") &&
		    is_directory(fd, entry))
			err = add(l,
				  asprintf_or_null("%s/%s", path[1] ? path : "",
						   entry->d_name));
	closedir(dir);
	return err;
}

static int by_path(const void *a, const void *b)
{
	const struct folder *const *f = a, *const *g = b;

	return strcmp((*f)->path, (*g)->path);
}

static int by_shown(const void *a, const void *b)
{
	const struct folder *const *f = a, *const *g = b;

	return strcmp(folder_shown(*f), folder_shown(*g)) ?: by_path(a, b);
}

/* Find those with one shown path. */
static int find_shared(struct folders *l)
{
	_cleanup_free_ struct folder **f =
		calloc(l->n, sizeof(struct folder *));

	if (!f)
		return -ENOMEM;
	memcpy(f, l->items, l->n * sizeof(*f));
	qsort(f, l->n, sizeof(*f), by_shown);
	for (size_t i = 1; i < l->n; i++)
		if (streq(folder_shown(f[i - 1]), folder_shown(f[i]))) {
			f[i]->first = f[i - 1]->first;
			l->are_shared = true;
		}
	return 0;
}

int folders_walk(int hierarchy, struct folders *ret)
{
	struct folders l = {};
	bool is_altered = false;
	int err = 0;

	if (hierarchy >= 0)
		err = add(&l, strdup("/"));
	/* The list is the queue of the walk. */
	for (size_t i = 0; i < l.n && !err; i++) {
		err = add_below(&l, hierarchy, l.items[i]->path);
		is_altered |= l.items[i]->altered != NULL;
	}
	if (!err && l.n)
		qsort(l.items, l.n, sizeof(*l.items), by_path);
	if (!err && is_altered)
		err = find_shared(&l);
	if (err)
		folders_done(&l);
	else
		*ret = l;
	return err;
}

void folders_done(struct folders *l)
{
	for (size_t i = 0; i < l->n; i++)
		folder_free(l->items[i]);
	free(l->items);
	*l = (struct folders){};
}

struct folder *folders_find(const struct folders *l, const char *path)
{
	struct folder key = { .path = (char *)path }, *f = &key, **found;

	found = bsearch(&f, l->items, l->n, sizeof(*l->items), by_path);
	return found ? *found : NULL;
}

void folders_filter(struct folders *l)
{
	size_t n = 0;

	/* The first one of several may come after others. */
	for (size_t i = 0; i < l->n; i++)
		l->items[i]->is_kept = l->items[i]->first->is_kept;
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i]->is_kept)
			l->items[n++] = l->items[i];
		else
			folder_free(l->items[i]);
	l->n = n;
}

static int grow(struct file_buffer *b)
{
	size_t size = b->size ? b->size * 2 : FILE_BYTES;
	char *p = realloc(b->p, size);

	if (!p)
		return -ENOMEM;
	b->p = p;
	b->size = size;
	return 0;
}

int folder_read(int hierarchy, const char *path, const char *file,
		struct file_buffer *b)
{
	_cleanup_close_ int fd = -1;
	size_t length = 0, room;
	char full[PATH_MAX];
	ssize_t n;

	n = snprintf(full, sizeof(full), "%s/%s", relative(path), file);
	if ((size_t)n >= sizeof(full))
		return -ENAMETOOLONG;
	fd = openat(hierarchy, full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* The kernel returns such a file at once, as far as there is room: no other call is due for
	 * the end.
	 */
	do {
		if (length + 1 >= b->size && grow(b) < 0)
			return -ENOMEM;
		room = b->size - length - 1;
		n = read(fd, b->p + length, room);
		if (n < 0)
			return -errno;
		length += n;
	} while ((size_t)n == room);
	b->p[length] = '\0';
	return 0;
}
