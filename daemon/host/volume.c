/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The volumes that a cgroup uses: devices that it has read or written since it was made, and
 * on which no other device stands that it has used, too.
 *
 *	io.stat		254:0 rbytes=4096 ...	/dev/vg/db, on sda and sdb
 *			8:0 rbytes=2048 ...	sda
 *			8:16 rbytes=2048 ...	sdb
 *			8:32 rbytes=0 ...	sdc
 *
 * That cgroup uses /dev/vg/db. Counters since the beginning do not come and go with
 * the requests, as those of the last second do. A partition has no counters: the
 * volume is its disk. A device without a request queue (zram, brd) is a volume, too.
 */

#include "host/volume.h"

/** struct finder - what has been found: for each device of @t, is it used? */
struct finder {
	const struct topology *t;
	bool *used;
};

/* Does a line report transferred bytes? "8:16 rbytes=1 wbytes=0 ..."; io.sutro.stat has other keys
 * before these.
 */
static bool has_bytes(const char *line)
{
	static const char *const keys[] = { " rbytes=", " wbytes=" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *value = strstr(line, keys[i]);

		if (value && value[strlen(keys[i])] != '0')
			return true;
	}
	return false;
}

static int on_line(char *line, void *userdata)
{
	struct finder *f = userdata;
	const char *rest = line;
	dev_t devno;

	if (!skip_devno(&rest, &devno) || !has_bytes(rest))
		return 0;
	for (size_t i = 0; i < f->t->n_devices; i++)
		if (f->t->devices[i]->devno == devno)
			f->used[i] = true;
	return 0;
}

static bool is_used_above(const struct finder *f, const struct device *d)
{
	for (size_t i = 0; i < f->t->n_devices; i++)
		if (f->used[i] && f->t->devices[i] != d &&
		    device_is_above(f->t->devices[i], d))
			return true;
	return false;
}

int volumes_used(const struct cgroup *c, const struct topology *t,
		 const struct device ***ret, size_t *ret_n)
{
	static const char *const files[] = { "io.stat", "io.sutro.stat" };
	_cleanup_free_ const struct device **found = NULL;
	_cleanup_free_ bool *used = NULL;
	struct finder f = { .t = t };
	size_t n = 0;

	f.used = used = calloc(t->n_devices + 1, sizeof(*used));
	found = calloc(t->n_devices + 1, sizeof(struct device *));
	if (!used || !found)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (cgroup_read_lines(c, files[i], on_line, &f) == -ENOMEM)
			return -ENOMEM;
	for (size_t i = 0; i < t->n_devices; i++)
		if (used[i] && !is_used_above(&f, t->devices[i]))
			found[n++] = t->devices[i];
	*ret = TAKE_PTR(found);
	*ret_n = n;
	return 0;
}
