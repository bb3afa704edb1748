/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Names and schedulers of the devices that have counters, from /sys/dev/block/MAJOR:MINOR: a link whose
 * last word is the name. A device may go between two calls; then it counts as a leaf without the
 * elevator, because its last counters are still there.
 */

#include <dirent.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "exporter/leaves.h"

#define LINK_BYTES 4096U

static int by_devno(const void *a, const void *b)
{
	dev_t one = ((const struct leaf *)a)->devno;
	dev_t other = ((const struct leaf *)b)->devno;

	return one < other ? -1 : one > other;
}

static char *read_node(int sysfs, const char *folder, const char *devno)
{
	char target[LINK_BYTES], *name, *node;
	ssize_t length = readlinkat(sysfs, folder, target, sizeof(target) - 1);

	target[length < 0 ? 0 : length] = '\0';
	name = strrchr(target, '/');
	node = asprintf_or_null("/dev/%s", name ? name + 1 : devno);
	/* sysfs has "cciss!c0d0" for cciss/c0d0. */
	for (char *c = node; c && *c; c++)
		*c = *c == '!' ? '/' : *c;
	return node;
}

static bool stands_on_others(int sysfs, const char *folder)
{
	_cleanup_free_ char *path = asprintf_or_null("%s/slaves", folder);
	int fd = path ? openat(sysfs, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
		      : -1;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (!dir) {
		closep(&fd);
		return false;
	}
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.';
	closedir(dir);
	return found;
}

static bool has_elevator(int sysfs, const char *folder)
{
	_cleanup_free_ char *path =
		asprintf_or_null("%s/queue/scheduler", folder);
	_cleanup_free_ char *text = NULL;

	return path && read_file_at(sysfs, path, &text) >= 0 &&
	       strstr(text, "[sutro]");
}

static struct leaf *leaf_new(int sysfs, dev_t devno)
{
	struct leaf *leaf = calloc(1, sizeof(*leaf));
	char number[32], folder[64];

	snprintf(number, sizeof(number), "%u:%u", major(devno), minor(devno));
	snprintf(folder, sizeof(folder), "dev/block/%s", number);
	if (!leaf)
		return NULL;
	leaf->devno = devno;
	leaf->node = read_node(sysfs, folder, number);
	leaf->is_leaf = !stands_on_others(sysfs, folder);
	leaf->has_elevator = has_elevator(sysfs, folder);
	if (leaf->node)
		return leaf;
	free(leaf);
	return NULL;
}

static void leaf_free(void *p)
{
	struct leaf *leaf = p;

	if (leaf)
		free(leaf->node);
	free(leaf);
}

struct leaf *leaves_get(struct leaves *l, dev_t devno)
{
	struct leaf key = { .devno = devno }, **found, *leaf;

	found = tfind(&key, &l->index, by_devno);
	if (found)
		return *found;
	leaf = leaf_new(l->sysfs, devno);
	if (leaf && tsearch(leaf, &l->index, by_devno))
		return leaf;
	leaf_free(leaf);
	return NULL;
}

void leaves_done(struct leaves *l)
{
	tdestroy(l->index, leaf_free);
	l->index = NULL;
}
