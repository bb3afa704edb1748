/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Discovery of block devices: from sysfs to a topology, with the leaves below each device.
 *
 *        /dev/vg/db        linear, striped, thin ...     dm-N/slaves/
 *            |
 *          dm-0            crypt                         dm-0/slaves/
 *            |
 *          md127           raid1                         md127/slaves/
 *          /    \
 *       sda2    sdb2       partition -> its disk         the parent directory
 *        |        |
 *       sda      sdb       leaf: a request queue, no slaves
 *
 * 1. Every entry of /sys/class/block becomes a device; empty loop devices and
 *    other devices without size do not.
 * 2. Edges: slaves/ for device-mapper, md and bcache, the disk for a partition,
 *    the device of the backing file for a loop device (3.). A request-based
 *    multipath device is a leaf, for the elevator works in its queue and not below.
 *    Of native NVMe multipath the head (nvme0n1) is bio-based and stands on its paths
 *    (nvme0c1n1), disks without node and number, whose queues have the elevators.
 *    A loop device is a leaf that stands on others: its queue has 128 slots, and
 *    without weights there it serves its slots first come, first served, whatever the disks below do.
 * 3. A path leads to a device by the number of its node, else by the device its
 *    file system is on. A file system with an anonymous device number (btrfs)
 *    names its device in mountinfo.
 * 4. The leaves of every device follow by a walk down. The kernel makes no cycles,
 *    but paths of backing files can lead elsewhere since, to a file system that was
 *    mounted later. An edge that would close a cycle is left out: every walk ends.
 */

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <systemd/sd-device.h>

#include "host/discover.h"
#include "host/kind.h"
#include "host/path.h"
#include "host/sysblock.h"

/* Reading all devices is tried again after an error. */
#define ATTEMPTS 3U

/* ---- reading one device ---- */

static int add_slave(struct device *d, struct device *slave)
{
	struct device **grown;

	if (!slave || device_is_above(slave, d))
		return 0;
	for (size_t i = 0; i < d->n_slaves; i++)
		if (d->slaves[i] == slave)
			return 0;
	grown = reallocarray(d->slaves, d->n_slaves + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	d->slaves = grown;
	grown[d->n_slaves++] = slave;
	return 0;
}

static int read_scheduler(struct sysblock *s, struct device *leaf)
{
	_cleanup_free_ char *text = NULL;
	char *open, *close, *name;
	uint64_t rotational;
	int err;

	err = sysblock_note(s, queue_read(s->roots, leaf, "scheduler", &text));
	if (err)
		return err;
	/* Find "mq-deadline" in "none [mq-deadline] bfq". A queue without a choice has "none". */
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close) {
		*close = '\0';
		name = strdup(open + 1);
	} else {
		name = strdup("none");
	}
	if (!name)
		return -ENOMEM;
	if (leaf->scheduler && !streq(leaf->scheduler, name))
		leaf->has_costs = false;
	free(leaf->scheduler);
	leaf->scheduler = name;
	err = sysblock_note(s, queue_number(s->roots, leaf, "rotational",
					    &rotational));
	if (err != -ETIMEDOUT)
		leaf->rotational = !err && rotational;
	return 0;
}

int device_read_scheduler(struct device *leaf, const struct roots *roots)
{
	struct sysblock s = { .roots = roots };

	return read_scheduler(&s, leaf);
}

/* A sysfs name has '!' where the node has '/' (cciss!c0d0). */
static char *node_of(const char *name)
{
	char *node = asprintf_or_null("/dev/%s", name);

	for (char *c = node; c && *c; c++)
		if (*c == '!')
			*c = '/';
	return node;
}

/* Attributes of a queue hold until the queue can be read again. */
static int carry_over(struct device *d, const struct topology *before)
{
	const struct device *was = before ? topology_by_name(before, d->name)
					  : NULL;

	if (!was || was->devno != d->devno ||
	    !device_is_same(d, was->diskseq, was->queue))
		return 0;
	d->kind = was->kind;
	d->rotational = was->rotational;
	d->is_switching = was->is_switching;
	d->is_hung = was->is_hung;
	d->has_costs = was->has_costs;
	d->scheduler = was->scheduler ? strdup(was->scheduler) : NULL;
	return was->scheduler && !d->scheduler ? -ENOMEM : 0;
}

static int device_new(struct sysblock *s, const char *name, struct device **ret)
{
	_cleanup_(device_freep) struct device *d = calloc(1, sizeof(*d));
	_cleanup_free_ char *text = NULL;
	int err;

	if (!d)
		return -ENOMEM;
	err = sysblock_read(s, name, "dev", &text);
	if (!err)
		err = parse_devno(text, &d->devno);
	/* A hidden disk has no number for user space: its number is 0. */
	if (err == -ENOENT && sysblock_number(s, name, "hidden"))
		err = 0;
	if (err)
		return err;
	d->name = strdup(name);
	d->node = node_of(name);
	if (!d->name || !d->node)
		return -ENOMEM;
	d->size_bytes = sysblock_number(s, name, "size") * 512;
	d->diskseq = sysblock_number(s, name, "diskseq");
	d->queue = queue_inode(s->roots, name);
	if (sysblock_read(s, name, "dm/name", &d->label) == -ENOMEM)
		return -ENOMEM;
	*ret = TAKE_PTR(d);
	return 0;
}

/* ---- edges ---- */

static int link_slaves(const struct topology *t, struct sysblock *s,
		       struct device *d)
{
	_cleanup_free_ struct dirent **l = NULL;
	_cleanup_free_ char *path = NULL;
	int n, err = 0;

	path = asprintf_or_null("%s/class/block/%s/slaves", s->roots->sysfs,
				d->name);
	if (!path)
		return -ENOMEM;
	n = scandir(path, &l, NULL, versionsort);
	sysblock_note(s, n < 0 ? -errno : 0);
	for (int i = 0; i < n; i++) {
		if (!err && l[i]->d_name[0] != '.')
			err = add_slave(d, topology_by_name(t, l[i]->d_name));
		free(l[i]);
	}
	return err;
}

static int link_partition(const struct topology *t, struct sysblock *s,
			  struct device *d)
{
	_cleanup_free_ char *path = NULL, *real = NULL;
	char *slash;

	path = asprintf_or_null("%s/class/block/%s", s->roots->sysfs, d->name);
	if (!path)
		return -ENOMEM;
	real = realpath(path, NULL);
	sysblock_note(s, real ? 0 : -errno);
	slash = real ? strrchr(real, '/') : NULL;
	if (!slash)
		return 0;
	*slash = '\0';
	slash = strrchr(real, '/');
	return slash ? add_slave(d, topology_by_name(t, slash + 1)) : 0;
}

/* A path of native NVMe multipath: subsystem, controller and namespace in its name. */
static int link_nvme_path(const struct topology *t, struct device *d)
{
	unsigned int subsystem, controller, namespace;
	_cleanup_free_ char *name = NULL;
	struct device *head;

	if (d->devno || sscanf(d->name, "nvme%uc%un%u", &subsystem, &controller,
			       &namespace) != 3)
		return 0;
	name = asprintf_or_null("nvme%un%u", subsystem, namespace);
	if (!name)
		return -ENOMEM;
	head = topology_by_name(t, name);
	return head ? add_slave(head, d) : 0;
}

static bool is_nvme_head(const struct device *d)
{
	return d->n_slaves && !d->slaves[0]->devno;
}

static int link_loop(const struct topology *t, struct sysblock *s,
		     struct device *d)
{
	_cleanup_free_ char *file = NULL;
	struct device *slave;
	int err;

	err = sysblock_read(s, d->name, "loop/backing_file", &file);
	if (err)
		return err == -ENOMEM ? err : 0;
	/* The kernel has followed all links; of a deleted file the mount point is still right. */
	err = topology_resolve_literal(t, s->roots, file, &slave);
	if (err) {
		log_debug_errno(err, "%s: backing file %s: %m, ignoring.",
				d->node, file);
		return err == -ENOMEM ? err : 0;
	}
	return add_slave(d, slave);
}

/* ---- kinds and names ---- */

/* Return: could it be read? */
static bool stripe_width(struct sysblock *s, const struct device *d,
			 uint64_t *ret)
{
	int err;

	*ret = 0;
	err = queue_number(s->roots, d, "optimal_io_size", ret);
	return sysblock_note(s, err) != -ETIMEDOUT;
}

/* dm-stripe announces its stripe width; dm-linear passes on the limits of its slaves. */
static bool has_stripe_limits(struct sysblock *s, const struct device *d)
{
	uint64_t width, of_slave;
	bool is_known = stripe_width(s, d, &width), has = d->n_slaves > 0;

	for (size_t i = 0; i < d->n_slaves; i++) {
		is_known &= stripe_width(s, d->slaves[i], &of_slave);
		has &= of_slave < width;
	}
	return is_known ? has : d->kind == DEVICE_STRIPED;
}

/*
 * Another node of the device, if there is one: inner volumes of LVM have none. The kernel takes any
 * bytes in a name; one that the bus cannot carry is left out.
 */
static int add_alias(struct sysblock *s, struct device *d, const char *alias)
{
	_cleanup_free_ char *full = NULL;
	struct stat st;

	if (!text_is_plain(alias))
		return 0;
	full = asprintf_or_null("%s%s", s->roots->prefix, alias);
	if (!full)
		return -ENOMEM;
	/* DevicePolicy=closed refuses access() to a node, also with F_OK. */
	if (sysblock_note(s, stat(full, &st) < 0 ? -errno : 0) < 0)
		return 0;
	if (streq(alias, d->node) || strv_contains(d->aliases, alias))
		return 0;
	return strv_add(&d->aliases, alias);
}

/* dm/name of a logical volume is VG-LV with every '-' inside a name doubled. */
static char *lvm_alias(const char *label)
{
	char *alias = asprintf_or_null("/dev/%s", label), *to;
	bool in_lv = false;

	if (!alias)
		return NULL;
	to = alias + strlen("/dev/");
	for (const char *c = label; *c; c++) {
		if (*c != '-') {
			*to++ = *c;
		} else if (c[1] == '-') {
			*to++ = '-';
			c++;
		} else if (!in_lv) {
			*to++ = '/';
			in_lv = true;
		} else {
			*to++ = '-'; /* a layer of an LV, as in "-tpool" */
		}
	}
	*to = '\0';
	return alias;
}

/* Read udev's properties: links for people only, and the words of the table. */
static int read_udev(struct sysblock *s, struct device *d, char **ret_table)
{
	static const char *const families[] = { "/dev/mapper/", "/dev/md/" };
	sd_device *dev = NULL;
	const char *value;
	int err = 0;

	if (sd_device_new_from_devnum(&dev, 'b', d->devno) < 0)
		return 0;
	for (const char *link = sd_device_get_devlink_first(dev); link && !err;
	     link = sd_device_get_devlink_next(dev)) {
		bool wanted = d->label && !startswith(link, "/dev/disk/") &&
			      !startswith(link, "/dev/block/");

		for (size_t i = 0; i < ARRAY_SIZE(families); i++)
			if (startswith(link, families[i]))
				wanted = true;
		if (wanted)
			err = add_alias(s, d, link);
	}
	if (!err &&
	    sd_device_get_property_value(dev, "SUTRO_DM_TABLE", &value) >= 0) {
		*ret_table = strdup(value);
		if (!*ret_table)
			err = -ENOMEM;
	}
	sd_device_unref(dev);
	return err;
}

static int name_and_kind(struct sysblock *s, struct device *d)
{
	_cleanup_free_ char *uuid = NULL, *level = NULL, *table = NULL;
	_cleanup_free_ char *mapper = NULL, *lvm = NULL;
	int err = 0;

	if (roots_are_real(s->roots))
		err = read_udev(s, d, &table);
	if (!err && d->label) {
		sysblock_read(s, d->name, "dm/uuid", &uuid);
		d->kind = dm_kind(table, uuid ?: "", d->slaves, d->n_slaves,
				  has_stripe_limits(s, d));
		mapper = asprintf_or_null("/dev/mapper/%s", d->label);
		if (!mapper)
			return -ENOMEM;
		err = add_alias(s, d, mapper);
		/* "LVM-" and two ids of 32 characters: not an internal volume. */
		if (!err && uuid && startswith(uuid, "LVM-") &&
		    strlen(uuid) == 68) {
			lvm = lvm_alias(d->label);
			if (!lvm)
				return -ENOMEM;
			err = add_alias(s, d, lvm);
		}
	} else if (sysblock_has(s, d->name, "partition")) {
		d->kind = DEVICE_PARTITION;
	} else if (sysblock_read(s, d->name, "md/level", &level) == 0) {
		d->kind = raid_kind(level);
	} else if (sysblock_has(s, d->name, "loop/backing_file")) {
		d->kind = DEVICE_LOOP;
	} else if (sysblock_has(s, d->name, "bcache")) {
		d->kind = d->n_slaves ? DEVICE_BCACHE : DEVICE_DISK;
	} else if (is_nvme_head(d)) {
		d->kind = DEVICE_MULTIPATH;
	} else if (d->n_slaves) {
		d->kind = DEVICE_UNKNOWN;
	} else {
		d->kind = DEVICE_DISK;
	}
	return err;
}

/* ---- leaves ---- */

static int add_leaf(struct device *d, struct device *leaf)
{
	struct device **grown;

	if (device_stands_on(d, leaf))
		return 0;
	grown = reallocarray(d->leaves, d->n_leaves + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	d->leaves = grown;
	grown[d->n_leaves++] = leaf;
	return 0;
}

static int collect_leaves(struct device *top, struct device *d, uint64_t walk)
{
	int err = 0;

	if (!device_enter(d, walk))
		return 0;
	if (d->leaf)
		err = add_leaf(top, d);
	if (device_is_lowest(d))
		return err;
	for (size_t i = 0; i < d->n_slaves && !err; i++)
		err = collect_leaves(top, d->slaves[i], walk);
	return err;
}

static int find_leaf(struct sysblock *s, struct device *d)
{
	bool queue = sysblock_has(s, d->name, "queue/scheduler");

	/* Only a request-based device-mapper device has hardware queues. */
	if (d->label && sysblock_has(s, d->name, "mq"))
		d->leaf = queue;
	else
		d->leaf = queue &&
			  (d->n_slaves == 0 || d->kind == DEVICE_LOOP) &&
			  !d->label && !sysblock_has(s, d->name, "md");
	return d->leaf ? read_scheduler(s, d) : 0;
}

/* ---- the snapshot ---- */

static int read_devices(struct topology *t, struct sysblock *s,
			const struct topology *before)
{
	_cleanup_free_ char *path = NULL;
	struct dirent *e;
	int err = 0;
	DIR *dir;

	path = asprintf_or_null("%s/class/block", s->roots->sysfs);
	if (!path)
		return -ENOMEM;
	dir = opendir(path);
	if (!dir)
		return -errno;
	for (errno = 0; !err && (e = readdir(dir)); errno = 0) {
		struct device **grown, *d;

		if (e->d_name[0] == '.')
			continue;
		err = device_new(s, e->d_name, &d);
		if (err) {
			log_debug_errno(err, "%s: %m, ignoring.", e->d_name);
			err = err == -ENOMEM ? err : 0;
			continue;
		}
		if (d->size_bytes == 0) {
			device_free(d);
			continue;
		}
		grown = reallocarray(t->devices, t->n_devices + 1,
				     sizeof(*grown));
		if (!grown) {
			device_free(d);
			err = -ENOMEM;
			continue;
		}
		t->devices = grown;
		grown[t->n_devices++] = d;
		err = carry_over(d, before);
	}
	if (!err)
		sysblock_note(s, -errno);
	closedir(dir);
	return err;
}

static int by_device_name(const void *a, const void *b)
{
	const struct device *const *x = a, *const *y = b;

	return strverscmp((*x)->name, (*y)->name);
}

static int read_topology(struct sysblock *s, const struct topology *before,
			 struct topology **ret)
{
	_cleanup_(topology_freep) struct topology *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	err = read_devices(t, s, before);
	if (err)
		return err;
	if (t->n_devices)
		qsort(t->devices, t->n_devices, sizeof(*t->devices),
		      by_device_name);
	for (size_t i = 0; i < t->n_devices && !err; i++) {
		struct device *d = t->devices[i];

		err = link_slaves(t, s, d);
		if (!err && sysblock_has(s, d->name, "partition"))
			err = link_partition(t, s, d);
		if (!err)
			err = link_nvme_path(t, d);
		if (!err)
			err = link_loop(t, s, d);
	}
	for (size_t i = 0; i < t->n_devices && !err; i++) {
		err = name_and_kind(s, t->devices[i]);
		if (!err && find_leaf(s, t->devices[i]) == -ENOMEM)
			err = -ENOMEM;
	}
	for (size_t i = 0; i < t->n_devices && !err; i++)
		err = collect_leaves(t->devices[i], t->devices[i],
				     device_walk());
	if (err)
		return err;
	*ret = TAKE_PTR(t);
	return 0;
}

int topology_new(const struct roots *roots, const struct topology *before,
		 struct topology **ret)
{
	_cleanup_(topology_freep) struct topology *t = NULL;
	struct sysblock s = {};
	int err = 0;

	/* With an incomplete topology disks look like others, and lines to restore are lost. So
	 * a temporary error is tried again, and a permanent one concerns one device only.
	 */
	for (unsigned int i = 0; i < ATTEMPTS && !err; i++) {
		topology_free(t);
		t = NULL;
		s = (struct sysblock){ .roots = roots };
		err = read_topology(&s, before, &t);
		if (!s.error)
			break;
	}
	if (!err && (s.error == -EMFILE || s.error == -ENFILE))
		err = s.error;
	if (err)
		return err;
	if (s.error)
		log_warning_errno(s.error,
				  "Cannot read all of the devices in "
				  "%s, going on: %m",
				  roots->sysfs);
	*ret = TAKE_PTR(t);
	return 0;
}

bool device_is_readable(const char *name, const struct roots *roots)
{
	struct sysblock s = { .roots = roots };
	struct device *d;

	if (device_new(&s, name, &d) < 0)
		return false;
	device_free(d);
	return true;
}

bool device_is_current(const struct device *d, const struct roots *roots)
{
	struct sysblock s = { .roots = roots };
	_cleanup_free_ char *text = NULL;
	dev_t devno = 0;

	if (d->devno && (sysblock_read(&s, d->name, "dev", &text) < 0 ||
			 parse_devno(text, &devno) < 0))
		return false;
	return devno == d->devno &&
	       sysblock_number(&s, d->name, "diskseq") == d->diskseq;
}
