/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Files of a fake machine that behave like the kernel's when they are written.
 *
 * A fake machine is a directory with sys/, dev/, proc/ and so on; its path is in
 * SUTRO_FAKE_ROOT. This file replaces write(2), in a test program by being linked
 * into it, in sutrod by LD_PRELOAD, and gives some files below that
 * directory the kernel's grammar:
 *
 *	io.weight, io.bfq.weight, io.sutro.weight
 *		"100" or "default 100", "8:16 300", "8:16 default"; ERANGE, EINVAL,
 *		ENODEV (no such device), EOPNOTSUPP (the leaf has another scheduler)
 *	io.max	"8:16 rbps=1000 wbps=max riops=max wiops=max", only what is given
 *		changes; a line that limits nothing goes; ENODEV
 *	io.sutro.class
 *		"default rt", "default be", "default idle"; EINVAL
 *	queue/scheduler
 *		"none [bfq] sutro": EINVAL for a name that is not in the list
 *
 * Each write is added to ROOT/writes ("FILE TEXT"). ROOT/faults injects faults: for
 * a write to a file whose path ends in the first word, the second word is what
 * happens, "ignore" (success, and nothing changes) or "fail" (EIO).
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINES_MAX 64
#define TEXT_MAX 4096

struct line {
	char devno[32];
	unsigned long long weight;
};

struct file {
	unsigned long long fallback;
	struct line lines[LINES_MAX];
	size_t n;
};

static bool ends_in(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && strcmp(s + n - m, suffix) == 0;
}

static void slurp(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buffer, size - 1);

	buffer[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
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

static const char *fault_of(const char *root, const char *path)
{
	static char text[TEXT_MAX];
	char file[PATH_MAX], *save = NULL;

	snprintf(file, sizeof(file), "%s/faults", root);
	slurp(file, text, sizeof(text));
	for (char *l = strtok_r(text, "\n", &save); l;
	     l = strtok_r(NULL, "\n", &save)) {
		char *blank = strchr(l, ' ');

		if (!blank)
			continue;
		*blank = '\0';
		if (ends_in(path, l))
			return blank + 1;
	}
	return "";
}

static void parse_file(const char *text, struct file *f)
{
	char copy[TEXT_MAX], *save = NULL;

	*f = (struct file){ .fallback = 100 };
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *l = strtok_r(copy, "\n", &save); l && f->n < LINES_MAX;
	     l = strtok_r(NULL, "\n", &save)) {
		struct line *line = &f->lines[f->n];

		if (sscanf(l, "default %llu", &f->fallback) == 1)
			continue;
		if (sscanf(l, "%31[0-9:] %llu", line->devno, &line->weight) ==
		    2)
			f->n++;
	}
}

static void print_file(const struct file *f, char *text, size_t size)
{
	int n = snprintf(text, size, "default %llu\n", f->fallback);

	for (size_t i = 0; i < f->n; i++)
		n += snprintf(text + n, size - n, "%s %llu\n",
			      f->lines[i].devno, f->lines[i].weight);
}

/* Does the elevator of the device take this file? io.weight belongs to blk-iocost,
 * which is on for devices with "enable=1" in io.cost.qos.
 */
static int device_takes(const char *root, const char *devno, const char *path)
{
	char file[PATH_MAX + 64], text[TEXT_MAX];

	snprintf(file, sizeof(file), "%s/sys/dev/block/%.31s", root, devno);
	if (access(file, F_OK) < 0)
		return -ENODEV;
	if (ends_in(path, "/io.weight")) {
		snprintf(file, sizeof(file), "%s/sys/fs/cgroup/io.cost.qos",
			 root);
		slurp(file, text, sizeof(text));
		return strstr(text, devno) ? 0 : -EOPNOTSUPP;
	}
	strncat(file, "/queue/scheduler", sizeof(file) - strlen(file) - 1);
	slurp(file, text, sizeof(text));
	if (ends_in(path, "/io.bfq.weight"))
		return strstr(text, "[bfq]") ? 0 : -EOPNOTSUPP;
	return strstr(text, "[sutro]") ? 0 : -EOPNOTSUPP;
}

static int parse_weight(const char *path, const char *s,
			unsigned long long *ret)
{
	unsigned long long max = ends_in(path, "/io.bfq.weight") ? 1000 : 10000;
	char *end;

	*ret = strtoull(s, &end, 10);
	if (end == s || *end || *s == '-')
		return -EINVAL;
	return *ret < 1 || *ret > max ? -ERANGE : 0;
}

static int set_line(struct file *f, const char *devno, unsigned long long w)
{
	size_t i = 0;

	while (i < f->n && strcmp(f->lines[i].devno, devno) != 0)
		i++;
	if (!w) {
		if (i < f->n)
			f->lines[i] = f->lines[--f->n];
		return 0;
	}
	if (i == LINES_MAX)
		return -ENOSPC;
	if (i == f->n)
		f->n++;
	snprintf(f->lines[i].devno, sizeof(f->lines[i].devno), "%.31s", devno);
	f->lines[i].weight = w;
	return 0;
}

static int write_weight(const char *root, const char *path, char *text)
{
	bool bfq = ends_in(path, "/io.bfq.weight");
	char old[TEXT_MAX], new[TEXT_MAX + 64], *value;
	unsigned long long weight = 0;
	struct file f;
	int err;

	slurp(path, old, sizeof(old));
	parse_file(old, &f);
	value = strchr(text, ' ');
	if (!value || strncmp(text, "default ", 8) == 0) {
		if (value && bfq)
			return -EINVAL; /* bfq wants the number alone */
		err = parse_weight(path, value ? value + 1 : text, &weight);
		if (err)
			return err;
		f.fallback = weight;
		if (bfq)
			f.n = 0; /* the default of bfq clears the lines */
	} else {
		*value++ = '\0';
		err = device_takes(root, text, path);
		if (!err && strcmp(value, "default") != 0)
			err = parse_weight(path, value, &weight);
		if (!err)
			err = set_line(&f, text, weight);
		if (err)
			return err;
	}
	print_file(&f, new, sizeof(new));
	spill(path, 0, new);
	return 0;
}

static const char *const max_keys[] = { "rbps=", "wbps=", "riops=", "wiops=" };

static void parse_max(char *line, char values[4][24])
{
	char *save = NULL;

	for (char *w = strtok_r(line, " ", &save); w;
	     w = strtok_r(NULL, " ", &save))
		for (size_t k = 0; k < 4; k++)
			if (strncmp(w, max_keys[k], strlen(max_keys[k])) == 0)
				snprintf(values[k], sizeof(values[k]), "%.23s",
					 w + strlen(max_keys[k]));
}

static int write_max(const char *root, const char *path, char *text)
{
	char old[TEXT_MAX], new[TEXT_MAX] = "", file[PATH_MAX + 64];
	char values[4][24] = { "max", "max", "max", "max" };
	char *blank = strchr(text, ' '), *save = NULL;
	bool limited = false;
	size_t n;

	if (!blank)
		return -EINVAL;
	*blank = '\0';
	n = strlen(text);
	snprintf(file, sizeof(file), "%s/sys/dev/block/%.31s", root, text);
	if (access(file, F_OK) < 0)
		return -ENODEV;
	slurp(path, old, sizeof(old));
	for (char *l = strtok_r(old, "\n", &save); l;
	     l = strtok_r(NULL, "\n", &save)) {
		if (strncmp(l, text, n) == 0 && l[n] == ' ') {
			parse_max(l + n + 1, values);
			continue;
		}
		strncat(new, l, sizeof(new) - strlen(new) - 2);
		strcat(new, "\n");
	}
	parse_max(blank + 1, values);
	/* IOPS have 32 bits. */
	for (size_t k = 2; k < 4; k++)
		if (strtoull(values[k], NULL, 10) >= 0xffffffff)
			strcpy(values[k], "max");
	for (size_t k = 0; k < 4; k++)
		limited |= strcmp(values[k], "max") != 0;
	if (limited)
		snprintf(new + strlen(new), sizeof(new) - strlen(new),
			 "%s rbps=%s wbps=%s riops=%s wiops=%s\n", text,
			 values[0], values[1], values[2], values[3]);
	spill(path, 0, new);
	return 0;
}

static int write_class(const char *path, const char *text)
{
	char new[TEXT_MAX + 2];

	if (strcmp(text, "default rt") != 0 &&
	    strcmp(text, "default be") != 0 &&
	    strcmp(text, "default idle") != 0)
		return -EINVAL;
	snprintf(new, sizeof(new), "%s\n", text);
	spill(path, 0, new);
	return 0;
}

static int write_scheduler(const char *path, const char *name)
{
	char old[TEXT_MAX], new[TEXT_MAX] = "", *save = NULL;
	bool found = false;

	slurp(path, old, sizeof(old));
	for (char *w = strtok_r(old, " []\n", &save); w;
	     w = strtok_r(NULL, " []\n", &save)) {
		bool is = strcmp(w, name) == 0;

		found |= is;
		snprintf(new + strlen(new), sizeof(new) - strlen(new),
			 is ? "[%s] " : "%s ", w);
	}
	if (!found)
		return -EINVAL;
	strcat(new, "\n");
	spill(path, 0, new);
	return 0;
}

static int write_kernel_file(const char *root, const char *path, char *text)
{
	char log[PATH_MAX], line[PATH_MAX + TEXT_MAX + 2];
	const char *fault = fault_of(root, path);

	text[strcspn(text, "\n")] = '\0';
	snprintf(log, sizeof(log), "%s/writes", root);
	snprintf(line, sizeof(line), "%s %s\n", path + strlen(root), text);
	spill(log, O_CREAT | O_APPEND, line);
	if (strcmp(fault, "ignore") == 0)
		return 0;
	if (strcmp(fault, "fail") == 0)
		return -EIO;
	if (ends_in(path, "/scheduler"))
		return write_scheduler(path, text);
	if (ends_in(path, "/io.max"))
		return write_max(root, path, text);
	if (ends_in(path, "/io.sutro.class"))
		return write_class(path, text);
	return write_weight(root, path, text);
}

ssize_t write(int fd, const void *buffer, size_t n)
{
	const char *root = getenv("SUTRO_FAKE_ROOT");
	char link[64], path[PATH_MAX], text[TEXT_MAX];
	ssize_t length;
	int err;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = root ? readlink(link, path, sizeof(path) - 1) : -1;
	if (length < 0 || n >= sizeof(text))
		return syscall(SYS_write, fd, buffer, n);
	path[length] = '\0';
	if (strncmp(path, root, strlen(root)) != 0 ||
	    !(ends_in(path, "/io.max") || ends_in(path, "/io.sutro.class") ||
	      ends_in(path, "/io.weight") || ends_in(path, "/io.bfq.weight") ||
	      ends_in(path, "/io.sutro.weight") ||
	      ends_in(path, "/queue/scheduler")))
		return syscall(SYS_write, fd, buffer, n);
	memcpy(text, buffer, n);
	text[n] = '\0';
	err = write_kernel_file(root, path, text);
	if (err) {
		errno = -err;
		return -1;
	}
	return n;
}
