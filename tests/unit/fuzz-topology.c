/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Usage: fuzz-topology [libFuzzer's arguments, FILES]
 *
 * A libFuzzer target: the input is a machine, one line for each file below /sys/class/block,
 * below /sys/devices, or in /dev:
 *
 *	class/block/sda/dev=8:0			a file and its content
 *	class/block/dm-0/slaves/sda=
 *	class/block/sda1>../../devices/sda/sda1	a link, which stays on the machine
 *	%36 35 8:1 / /srv rw - ext4 /dev/sda1	a line of mountinfo
 *	?/srv/file				a path to resolve
 *
 * The topology has no cycle, the leaves of each device are those that a search finds, each has a
 * scheduler if its file can be read, and a path leads to a device of it or to an error.
 */

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "host/discover.h"
#include "host/path.h"

#define PATHS_MAX 16U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the machine ---- */

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	return remove(path);
}

/* Open the folder of @path, and make it; links are not followed, and ".." is no folder. */
static int open_folder(const char *root, char *path, const char **ret_name)
{
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *save = NULL, *name = strtok_r(path, "/", &save), *next;

	while (fd >= 0 && name && (next = strtok_r(NULL, "/", &save))) {
		int up = fd;

		if (streq(name, "..") || strlen(name) > 200)
			fd = -1;
		else if (mkdirat(up, name, 0755) < 0 && errno != EEXIST)
			fd = -1;
		else
			fd = openat(up, name,
				    O_PATH | O_DIRECTORY | O_NOFOLLOW |
					    O_CLOEXEC);
		close(up);
		name = next;
	}
	*ret_name = name;
	return fd;
}

/* A link may lead as far up as it lies deep. */
static bool stays(const char *path, const char *target)
{
	unsigned int depth = 0, up = 0;

	for (const char *c = path; *c; c++)
		depth += *c == '/' && c[1] != '/' && c[1];
	for (const char *c = target; (c = strstr(c, "..")); c += 2)
		up++;
	return *target && *target != '/' && up <= depth;
}

static void make_file(const char *root, const char *line)
{
	size_t n = strcspn(line, "=>");
	_cleanup_free_ char *path = strndup(line, n);
	_cleanup_close_ int folder = -1, fd = -1;
	const char *name;
	bool is_inside;

	check(path);
	if (!startswith(path, "class/") && !startswith(path, "devices/"))
		return;
	is_inside = line[n] != '>' || stays(path, line + n + 1);
	folder = open_folder(root, path, &name);
	if (folder < 0 || !is_inside || !name || streq(name, "..") ||
	    streq(name, "."))
		return;
	if (line[n] == '>') {
		check(symlinkat(line + n + 1, folder, name) == 0 || errno);
	} else if (line[n] == '=') {
		fd = openat(folder, name,
			    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW |
				    O_CLOEXEC,
			    0644);
		check(fd < 0 ||
		      write_all(fd, line + n + 1, strlen(line + n + 1)) == 0);
	}
}

static void make_machine(const struct roots *r, char *text, char **paths,
			 size_t *n_paths)
{
	_cleanup_(text_freep) struct text mounts = {};
	_cleanup_close_ int fd = -1;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (*line == '?' && *n_paths < PATHS_MAX)
			paths[(*n_paths)++] = line + 1;
		else if (*line == '%')
			check(text_add(&mounts, "%s\n", line + 1) == 0);
		else
			make_file(r->sysfs, line);
	fd = open(r->mountinfo, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	check(fd >= 0);
	check(!mounts.p || write_all(fd, mounts.p, mounts.length) == 0);
}

/* ---- checks ---- */

/** struct search - devices that stand below one, each once */
struct search {
	const struct device **found;
	size_t n;
};

static bool is_found(const struct search *s, const struct device *d)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->found[i] == d)
			return true;
	return false;
}

/* Can a process read queue/scheduler? It may be a directory, and a disk that hangs has no answer. */
static bool can_read_scheduler(const struct roots *r, const struct device *leaf)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	char c;

	path = asprintf_or_null("%s/class/block/%s/queue/scheduler", r->sysfs,
				leaf->name);
	check(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, &c, 1) >= 0;
}

static void check_device(const struct topology *t, const struct roots *r,
			 const struct device *top, const struct device **found)
{
	struct search s = { .found = found };
	size_t n_leaves = 0;

	s.found[s.n++] = top;
	for (size_t at = 0; at < s.n; at++) {
		const struct device *d = s.found[at];

		check(topology_by_name(t, d->name) == d);
		check(at == 0 || !device_is_above(d, top));
		check(device_is_above(top, d));
		n_leaves += d->leaf;
		check(!d->leaf || device_stands_on(top, d));
		check(!d->leaf || !can_read_scheduler(r, d) == !d->scheduler);
		for (size_t i = 0; !device_is_lowest(d) && i < d->n_slaves; i++)
			if (!is_found(&s, d->slaves[i]))
				s.found[s.n++] = d->slaves[i];
	}
	check(top->n_leaves == n_leaves);
}

static void check_path(const struct topology *t, const struct roots *r,
		       const char *path)
{
	struct device *d = NULL;
	int err = topology_resolve_literal(t, r, path, &d);

	check(err <= 0 && (err == 0) == (d != NULL));
	check(!d || topology_by_name(t, d->name) == d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char root[] = "/tmp/fuzz-topology-XXXXXX";
	char *text = strndup((const char *)data, size), *paths[PATHS_MAX];
	_cleanup_(topology_freep) struct topology *t = NULL;
	_cleanup_free_ const struct device **found = NULL;
	_cleanup_free_ char *proc = NULL, *class = NULL;
	size_t n_paths = 0;
	struct roots r;

	check(text && mkdtemp(root) && roots_init(&r, root) == 0);
	proc = asprintf_or_null("%s/proc", root);
	check(proc && mkdir(proc, 0755) == 0);
	free(proc);
	proc = asprintf_or_null("%s/proc/1", root);
	class = asprintf_or_null("%s/class", r.sysfs);
	check(proc && mkdir(proc, 0755) == 0 && mkdir(r.sysfs, 0755) == 0);
	check(class && mkdir(class, 0755) == 0);
	make_machine(&r, text, paths, &n_paths);
	log_set_max_level(LOG_EMERG);
	if (topology_new(&r, NULL, &t) == 0) {
		found = calloc(t->n_devices + 1, sizeof(*found));
		check(found);
		for (size_t i = 0; i < t->n_devices; i++)
			check_device(t, &r, t->devices[i], found);
		for (size_t i = 0; i < n_paths; i++)
			check_path(t, &r, paths[i]);
	}
	free(text);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	roots_done(&r);
	return 0;
}
