/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Files of a fake machine that behave like the kernel's when they are written.
 *
 * A fake machine is a directory with sys/, dev/, proc/ and so on; its path is in
 * SUTRO_FAKE_ROOT. This file replaces write(2), in sutrod by LD_PRELOAD, in the
 * sanitized sutrod by being linked into it, and gives some files below that
 * directory the kernel's grammar:
 *
 *	io.weight, io.bfq.weight, io.sutro.weight
 *		"100" or "default 100", "8:16 300", "8:16 default"; ERANGE, EINVAL,
 *		ENODEV (no such device), EOPNOTSUPP (the leaf has another scheduler)
 *	io.sutro.weight
 *		"default default": 100, or io.weight of the cgroup if ROOT/weight-series
 *		exists, as in a kernel with the series "weight"
 *	io.max	"8:16 rbps=1000 wbps=max riops=max wiops=max", only what is given
 *		changes; a line that limits nothing goes; ENODEV
 *	io.sutro.class
 *		"default rt", "default be", "default idle"; EINVAL
 *	queue/iosched/costs
 *		"version 1" and lines "read 4096 29629"; EINVAL
 *	queue/scheduler
 *		"none [bfq] sutro": EINVAL for a name that is not in the list; another one than sutro
 *		ends the elevator with its costs
 *
 * Each write is added to ROOT/writes ("FILE TEXT"). ROOT/faults injects faults: for
 * a write to a file whose path ends in the first word, the second word is what
 * happens, "ignore" (success, and nothing changes), "fail" (EIO),
 * "unsupported" (EOPNOTSUPP) or "hang" (it returns after the
 * fault was removed, as on a disk that does not answer). realpath(3) of a path with the fault "hang" and fsync(2) of such a
 * file never return, too. With "unwatched", another program switches the scheduler to sutro just before
 * inotify_add_watch(2) of queue/scheduler. With "unwatchable", inotify_add_watch(2) fails (ENOSPC).
 *
 * ROOT/owners has the user of paths below sys/fs/cgroup whose owner is not that of the others, as
 * "PATH UID": a test without privilege cannot change it. fstatat(2) reads it.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults.h"

#define TEXT_MAX 4096

static char *slurp(const char *path)
{
	char *text = NULL;

	g_file_get_contents(path, &text, NULL, NULL);
	return text ?: g_strdup("");
}

/* Without O_TRUNC before the new text: a reader must not see an empty file. */
static void spill(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);

	if (fd < 0)
		return;
	syscall(SYS_write, fd, text, strlen(text));
	if (!(flags & O_APPEND) && ftruncate(fd, strlen(text)) < 0)
		abort();
	close(fd);
}

/* The text behind the key, if the line has it. */
static const char *behind(const char *line, const char *key)
{
	size_t n = strlen(key);

	if (g_str_has_prefix(line, key) && line[n] == ' ')
		return line + n + 1;
	return NULL;
}

/* A line "KEY VALUE" in the place of the one that has the key; NULL: none. Lines without a
 * value go.
 */
static void set_line(const char *path, const char *key, const char *value)
{
	g_autofree char *old = slurp(path);
	g_auto(GStrv) lines = g_strsplit(old, "\n", -1);
	g_autoptr(GString) new = g_string_new(NULL);

	for (char **l = lines; *l; l++) {
		bool is_old = behind(*l, key) != NULL;

		if (is_old && value)
			g_string_append_printf(new, "%s %s\n", key, value);
		else if (!is_old && strchr(*l, ' '))
			g_string_append_printf(new, "%s\n", *l);
		if (is_old)
			value = NULL;
	}
	if (value)
		g_string_append_printf(new, "%s %s\n", key, value);
	spill(path, 0, new->str);
}

static bool device_exists(const char *root, const char *devno)
{
	g_autofree char *path =
		g_strdup_printf("%s/sys/dev/block/%s", root, devno);

	return access(path, F_OK) == 0;
}

/* Does the elevator of the device take this file? io.weight belongs to blk-iocost,
 * which is on for devices with "enable=1" in io.cost.qos.
 */
static int device_takes(const char *root, const char *devno, const char *path)
{
	bool is_iocost = g_str_has_suffix(path, "/io.weight");
	g_autofree char *qos =
		g_build_filename(root, "sys/fs/cgroup/io.cost.qos", NULL);
	g_autofree char *scheduler = g_build_filename(
		root, "sys/dev/block", devno, "queue/scheduler", NULL);
	g_autofree char *text = slurp(is_iocost ? qos : scheduler);
	const char *wanted = "[sutro]";

	if (is_iocost)
		wanted = devno;
	else if (g_str_has_suffix(path, "/io.bfq.weight"))
		wanted = "[bfq]";
	if (!device_exists(root, devno))
		return -ENODEV;
	return strstr(text, wanted) ? 0 : -EOPNOTSUPP;
}

static int check_weight(const char *path, const char *text)
{
	bool is_reserve = g_str_has_suffix(path, "/io.sutro.reserve");
	bool is_latency = g_str_has_suffix(path, "/io.sutro.latency");
	guint64 max = g_str_has_suffix(path, "/io.bfq.weight") || is_reserve
			      ? 1000
			      : 10000;
	g_autoptr(GError) error = NULL;

	if (is_latency && !strcmp(text, "max"))
		return 0;
	g_ascii_string_to_unsigned(text, 10, !is_reserve && !is_latency,
				   is_latency ? 10000000 : max, NULL, &error);
	if (!error)
		return 0;
	if (error->code == G_NUMBER_PARSER_ERROR_OUT_OF_BOUNDS)
		return -ERANGE;
	return -EINVAL;
}

/* A cgroup without io.sutro.weight. */
static void clear_weight(const char *root, const char *path)
{
	g_autofree char *series = g_build_filename(root, "weight-series", NULL);
	g_autofree char *folder = g_path_get_dirname(path);
	g_autofree char *other = g_build_filename(folder, "io.weight", NULL);
	g_autofree char *text = slurp(other);
	const char *weight = behind(text, "default");

	if (access(series, F_OK) == 0 && weight)
		set_line(path, "default", g_strchomp((char *)weight));
	else
		set_line(path, "default", "100");
}

static int write_weight(const char *root, const char *path, const char *text)
{
	bool is_bfq = g_str_has_suffix(path, "/io.bfq.weight");
	const char *value = strchr(text, ' ');
	g_autofree char *devno = NULL, *line = NULL;
	int r;

	if (!value || behind(text, "default")) {
		if (value && is_bfq)
			return -EINVAL; /* bfq needs the number alone */
		value = value ? value + 1 : text;
		if (g_str_has_suffix(path, "/io.sutro.weight") &&
		    g_str_equal(value, "default")) {
			clear_weight(root, path);
			return 0;
		}
		r = check_weight(path, value);
		if (r)
			return r;
		line = g_strdup_printf("default %s\n", value);
		if (is_bfq)
			spill(path, 0, line); /* the lines go */
		else
			set_line(path, "default", value);
		return 0;
	}
	devno = g_strndup(text, value++ - text);
	r = device_takes(root, devno, path);
	if (g_str_equal(value, "default"))
		value = NULL;
	else if (!r)
		r = check_weight(path, value);
	if (!r)
		set_line(path, devno, value);
	return r;
}

static int write_max(const char *root, const char *path, const char *text)
{
	static const char *const keys[] = { "rbps=", "wbps=", "riops=",
					    "wiops=" };
	g_autofree char *devno = g_strndup(text, strcspn(text, " "));
	g_autofree char *old = slurp(path), *all = NULL;
	g_auto(GStrv) lines = g_strsplit(old, "\n", -1), words = NULL;
	g_autoptr(GString) new = g_string_new(NULL);
	bool is_limited = false;
	const char *was = "";

	if (!strchr(text, ' '))
		return -EINVAL;
	if (!device_exists(root, devno))
		return -ENODEV;
	for (char **l = lines; *l; l++)
		if (behind(*l, devno))
			was = *l;
	/* Of two words with a key the last one counts. */
	all = g_strconcat(was, " ", text, NULL);
	words = g_strsplit(all, " ", -1);
	for (size_t k = 0; k < G_N_ELEMENTS(keys); k++) {
		const char *value = "max";

		for (char **w = words; *w; w++)
			if (g_str_has_prefix(*w, keys[k]))
				value = *w + strlen(keys[k]);
		/* IOPS have 32 bits. */
		if (k >= 2 && strtoull(value, NULL, 10) >= 0xffffffff)
			value = "max";
		is_limited |= !g_str_equal(value, "max");
		g_string_append_printf(new, "%s%s%s", k ? " " : "", keys[k],
				       value);
	}
	set_line(path, devno, is_limited ? new->str : NULL);
	return 0;
}

static int write_class(const char *path, const char *text)
{
	static const char *const names[] = { "rt", "be", "idle", NULL };
	const char *name = behind(text, "default");

	if (!name || !g_strv_contains(names, name))
		return -EINVAL;
	set_line(path, "default", name);
	return 0;
}

/* A new scheduler has twice as many request slots as the disk takes: it takes 32, as one of SATA. */
static void give_slots(const char *folder)
{
	g_autofree char *slots = g_build_filename(folder, "nr_requests", NULL);

	if (g_file_test(slots, G_FILE_TEST_EXISTS))
		spill(slots, O_TRUNC, "64\n");
}

static int write_scheduler(const char *path, const char *name)
{
	g_autofree char *folder = g_path_get_dirname(path);
	g_autofree char *current = g_strdup_printf("[%s]", name);
	g_autofree char *old = slurp(path);
	g_auto(GStrv) words = g_strsplit_set(old, " []\n", -1);
	g_autoptr(GString) new = g_string_new(NULL);

	if (!g_strv_contains((const char *const *)words, name))
		return -EINVAL;
	for (char **w = words; *w; w++)
		if (**w)
			g_string_append_printf(
				new, g_str_equal(*w, name) ? "[%s] " : "%s ",
				*w);
	g_string_append_c(new, '\n');
	spill(path, 0, new->str);
	if (!strstr(old, current))
		give_slots(folder);
	if (!g_str_equal(name, "sutro")) {
		g_autofree char *costs =
			g_build_filename(folder, "iosched/costs", NULL);

		unlink(costs);
	}
	return 0;
}

static int write_costs(const char *path, const char *text)
{
	if (!g_regex_match_simple(
		    "^version 1\n((read|write) \\d+ [1-9]\\d*\n)*$", text, 0,
		    0))
		return -EINVAL;
	spill(path, O_TRUNC, text);
	return 0;
}

/* The fault of a write: the word behind the suffix of the path. */
static char *fault_of(const char *root, const char *path)
{
	g_autofree char *file = g_strdup_printf("%s/faults", root);
	g_autofree char *text = NULL;
	g_auto(GStrv) words = NULL;

	faults_pause();
	text = slurp(file);
	faults_resume();
	words = g_strsplit_set(text, " \n", -1);
	for (char **w = words; w[0] && w[1]; w += 2)
		if (g_str_has_suffix(path, w[0]))
			return g_strdup(w[1]);
	return g_strdup("");
}

static void hang(const char *root, const char *path)
{
	for (;;) {
		g_autofree char *fault = fault_of(root, path);

		if (!g_str_equal(fault, "hang"))
			return;
		g_usleep(10000);
	}
}

/* The change of a file is one step for those that lock it, Machine.write() of fakemachine.py. */
static int write_kernel_file(const char *root, const char *path,
			     const char *text, int fd)
{
	g_autofree char *log = g_strdup_printf("%s/writes", root);
	g_autofree char *line =
		g_strdup_printf("%s %s\n", path + strlen(root), text);
	g_autofree char *fault = fault_of(root, path);

	spill(log, O_CREAT | O_APPEND, line);
	if (g_str_equal(fault, "ignore"))
		return 0;
	if (g_str_equal(fault, "fail"))
		return -EIO;
	if (g_str_equal(fault, "unsupported"))
		return -EOPNOTSUPP;
	hang(root, path);
	if (flock(fd, LOCK_EX) < 0)
		abort();
	if (g_str_has_suffix(path, "/scheduler"))
		return write_scheduler(path, text);
	if (g_str_has_suffix(path, "/iosched/costs"))
		return write_costs(path, text);
	if (g_str_has_suffix(path, "/max_sectors_kb") ||
	    g_str_has_suffix(path, "/nr_requests"))
		return spill(path, O_TRUNC, text), 0;
	if (g_str_has_suffix(path, "/io.max"))
		return write_max(root, path, text);
	if (g_str_has_suffix(path, "/io.sutro.class"))
		return write_class(path, text);
	return write_weight(root, path, text);
}

char *realpath(const char *path, char *resolved)
{
	char *(*next)(const char *, char *) = dlsym(RTLD_NEXT, "realpath");
	const char *root = getenv("SUTRO_FAKE_ROOT");
	g_autofree char *fault = root ? fault_of(root, path) : g_strdup("");

	while (g_str_equal(fault, "hang"))
		pause();
	return next(path, resolved);
}

static bool path_of(int fd, char path[static PATH_MAX])
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	faults_pause();
	length = readlink(link, path, PATH_MAX - 1);
	faults_resume();
	path[MAX(length, 0)] = '\0';
	return length >= 0;
}

int fsync(int fd)
{
	const char *root = getenv("SUTRO_FAKE_ROOT");
	g_autofree char *fault = NULL;
	char path[PATH_MAX];

	fault = root && path_of(fd, path) ? fault_of(root, path) : NULL;
	while (fault && g_str_equal(fault, "hang"))
		pause();
	if (fault && g_str_equal(fault, "full")) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_fsync, fd);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	const char *root = getenv("SUTRO_FAKE_ROOT");
	g_autofree char *fault = NULL;
	char real[PATH_MAX];
	int file;

	/* sd-event names the file by its descriptor. */
	if (root && sscanf(path, "/proc/self/fd/%d", &file) == 1 &&
	    path_of(file, real))
		fault = fault_of(root, real);
	if (fault && g_str_equal(fault, "unwatched")) {
		faults_pause();
		write_scheduler(real, "sutro");
		faults_resume();
	}
	if (fault && g_str_equal(fault, "unwatchable")) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_inotify_add_watch, fd, path, mask);
}

static void set_owner(const char *root, const char *path, struct stat *st)
{
	g_autofree char *file = g_strdup_printf("%s/owners", root);
	g_autofree char *text = slurp(file);
	g_auto(GStrv) words = g_strsplit_set(text, " \n", -1);

	for (char **w = words; w[0] && w[1]; w += 2)
		if (g_str_equal(path, w[0]))
			st->st_uid = strtoul(w[1], NULL, 10);
}

/* In the C library its name depends on the size of off_t. */
#if defined(_FILE_OFFSET_BITS) && _FILE_OFFSET_BITS == 64
#define FSTATAT "fstatat64"
#else
#define FSTATAT "fstatat"
#endif

int fstatat(int fd, const char *restrict path, struct stat *restrict st,
	    int flags)
{
	int (*next)(int fd, const char *path, struct stat *st, int flags) =
		dlsym(RTLD_NEXT, FSTATAT);
	const char *root = getenv("SUTRO_FAKE_ROOT");
	int r = next(fd, path, st, flags);

	if (r < 0 || !root)
		return r;
	faults_pause();
	set_owner(root, path, st);
	faults_resume();
	return r;
}

static bool is_kernel_file(const char *root, const char *path)
{
	static const char *const names[] = {
		"io.max",	    "io.sutro.class", "io.sutro.reserve",
		"io.sutro.latency", "io.weight",      "io.bfq.weight",
		"io.sutro.weight",  "scheduler",      "max_sectors_kb",
		"nr_requests",	    "costs",	      NULL
	};
	g_autofree char *name = g_path_get_basename(path);

	return g_str_has_prefix(path, root) && g_strv_contains(names, name);
}

ssize_t write(int fd, const void *buffer, size_t n)
{
	const char *root = getenv("SUTRO_FAKE_ROOT");
	g_autofree char *text = NULL;
	char path[PATH_MAX];
	int err;

	if (!root || n >= TEXT_MAX || !path_of(fd, path) ||
	    !is_kernel_file(root, path))
		return syscall(SYS_write, fd, buffer, n);
	text = g_strndup(buffer, n);
	if (!g_str_has_suffix(path, "/iosched/costs"))
		text[strcspn(text, "\n")] = '\0';
	/* The system call that may fail. */
	if (syscall(SYS_write, fd, "", 0) < 0)
		return -1;
	faults_pause();
	err = write_kernel_file(root, path, text, fd);
	flock(fd, LOCK_UN);
	faults_resume();
	if (err) {
		errno = -err;
		return -1;
	}
	return n;
}
