/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every kind of stack on a fake sysfs: what it is called, what it stands on. */

#include <stdio.h>

#include "fake.h"

#define LVM \
	"LVM-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void optimal(const struct roots *r, const char *name, int bytes)
{
	char path[256];

	snprintf(path, sizeof(path),
		 "/sys/class/block/%s/queue/optimal_io_size", name);
	fake_file(r, path, "%d\n", bytes);
}

static void build(const struct roots *r)
{
	fake_disk(r, "sda", "8:0", "bfq");
	fake_disk(r, "sdb", "8:16", "sutro");
	fake_disk(r, "sdc", "8:32", "none");
	fake_disk(r, "cciss!c0d0", "104:0", "none");
	fake_partition(r, "sda", "sda1", "8:1");
	fake_partition(r, "sda", "sda2", "8:2");
	fake_partition(r, "sdb", "sdb1", "8:17");
	fake_dm(r, "dm-0", "254:0", "sda1", "vg-lin", LVM);
	fake_dm(r, "dm-1", "254:1", "sda1 sdb1", "vg-st", LVM);
	optimal(r, "dm-1", 131072);
	fake_dm(r, "dm-2", "254:2", "sda1 sdb1", "vg-span", LVM);
	fake_md(r, "md127", "9:127", "sda2 sdb1", "raid1");
	fake_dm(r, "dm-3", "254:3", "md127", "luks", "CRYPT-LUKS2-x-luks");
	fake_md(r, "md5", "9:5", "sda sdb sdc", "raid5");
	fake_md(r, "md10", "9:10", "sda sdb", "raid10");
	fake_md(r, "md0", "9:0", "sda sdb", "raid0");
	fake_md(r, "md4", "9:4", "sda sdb", "raid4");
	fake_md(r, "md6", "9:6", "sda sdb", "raid6");
	fake_md(r, "md1", "9:1", "sda sdb", "linear");
	fake_dm(r, "dm-4", "254:4", "sda1", "vg-pool_tdata", LVM "-tdata");
	fake_dm(r, "dm-5", "254:5", "dm-4 sdb1", "vg-pool-tpool", LVM "-tpool");
	fake_dm(r, "dm-6", "254:6", "dm-5", "vg-thin", LVM);
	fake_dm(r, "dm-7", "254:7", "sda1", "vg-m_mimage_0", LVM);
	fake_dm(r, "dm-8", "254:8", "dm-7", "vg-m", LVM);
	fake_dm(r, "dm-9", "254:9", "sda1", "vg-c_corig", LVM "-real");
	fake_dm(r, "dm-10", "254:10", "dm-9 sdb1", "vg-c", LVM);
	fake_dm(r, "dm-11", "254:11", "sda1", "vg-snap-cow", LVM "-cow");
	fake_dm(r, "dm-12", "254:12", "dm-11 dm-0", "vg-snap", LVM);
	fake_dm(r, "dm-13", "254:13", "sda sdb", "mpatha", "mpath-3600");
	fake_dir(r, "/sys/class/block/dm-13/mq");
	fake_dm(r, "dm-14", "254:14", "", "zero", "");
	fake_dm(r, "dm-15", "254:15", "dm-4", "my--vg-my--lv-tpool", LVM);
	fake_dm(r, "dm-16", "254:16", "sda1", "my--vg-my--lv", LVM);
	fake_link(r, "/dev/my-vg/my-lv", "../dm-16");
	fake_stack(r, "bcache0", "251:0", "sda1 sdc");
	fake_file(r, "/sys/class/block/bcache0/bcache/x", "\n");
	fake_loop(r, "loop0", "7:0", "/srv/disk.img");
	fake_loop(r, "loop1", "7:1", "/run/ram.img");
	fake_loop(r, "loop2", "7:2", "/srv/gone.img (deleted)");
	fake_loop(r, "loop3", "7:3", "/dev/sdb1");
	fake_loop(r, "loop9", "7:9", "");
	fake_file(r, "/sys/class/block/loop9/size", "0\n");
	fake_file(r, "/srv/disk.img", "x");
	fake_file(r, "/run/ram.img", "x");
	fake_mount(r, "/", "8:2", "ext4", "/dev/sda2");
	fake_mount(r, "/run", "0:25", "tmpfs", "tmpfs");
	fake_mount(r, "/srv", "254:1", "ext4", "/dev/mapper/vg-st");
}

static void kind_is(const struct topology *t, const char *name,
		    enum device_kind kind, const char *leaves)
{
	struct device *d = topology_by_name(t, name);
	char text[256] = "";

	check(d);
	for (size_t i = 0; i < d->n_leaves; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%s", i ? " " : "", d->leaves[i]->name);
	if (d->kind != kind || !streq(text, leaves))
		fprintf(stderr, "%s: %s on \"%s\", not %s on \"%s\"\n", name,
			device_kind_name(d->kind), text, device_kind_name(kind),
			leaves);
	check(d->kind == kind);
	check(streq(text, leaves));
}

static void test_kinds(const struct topology *t)
{
	kind_is(t, "sda", DEVICE_DISK, "sda");
	kind_is(t, "sda1", DEVICE_PARTITION, "sda");
	kind_is(t, "dm-0", DEVICE_LINEAR, "sda");
	kind_is(t, "dm-1", DEVICE_STRIPED, "sda sdb");
	kind_is(t, "dm-2", DEVICE_LINEAR, "sda sdb");
	kind_is(t, "md127", DEVICE_RAID1, "sda sdb");
	kind_is(t, "dm-3", DEVICE_CRYPT, "sda sdb");
	kind_is(t, "md5", DEVICE_RAID5, "sda sdb sdc");
	kind_is(t, "md10", DEVICE_RAID10, "sda sdb");
	kind_is(t, "md0", DEVICE_RAID0, "sda sdb");
	kind_is(t, "md4", DEVICE_RAID4, "sda sdb");
	kind_is(t, "md6", DEVICE_RAID6, "sda sdb");
	kind_is(t, "md1", DEVICE_LINEAR, "sda sdb");
	kind_is(t, "dm-5", DEVICE_THIN_POOL, "sda sdb");
	kind_is(t, "dm-6", DEVICE_THIN, "sda sdb");
	kind_is(t, "dm-8", DEVICE_MIRROR, "sda");
	kind_is(t, "dm-10", DEVICE_CACHE, "sda sdb");
	kind_is(t, "dm-12", DEVICE_SNAPSHOT, "sda");
	kind_is(t, "dm-13", DEVICE_MULTIPATH, "dm-13");
	kind_is(t, "dm-14", DEVICE_UNKNOWN, "");
	kind_is(t, "bcache0", DEVICE_BCACHE, "sda sdc");
	kind_is(t, "loop0", DEVICE_LOOP, "loop0 sda sdb");
	kind_is(t, "loop1", DEVICE_LOOP, "loop1");
	kind_is(t, "loop2", DEVICE_LOOP, "loop2 sda sdb");
	kind_is(t, "loop3", DEVICE_LOOP, "loop3 sdb");
	check(!topology_by_name(t, "loop9"));
}

static void test_relations(const struct topology *t)
{
	struct device *sda = topology_by_name(t, "sda");
	struct device *sdb = topology_by_name(t, "sdb");
	struct device *sda1 = topology_by_name(t, "sda1");
	struct device *lin = topology_by_name(t, "dm-0");

	check(device_is_part_of(sda, sda));
	check(device_is_part_of(sda1, sda));
	check(!device_is_part_of(sda1, sdb));
	check(!device_is_part_of(lin, sda));
	check(device_stands_on(lin, sda) && !device_stands_on(lin, sdb));
	check(streq(sda->scheduler, "bfq") && streq(sdb->scheduler, "sutro"));
	check(sda->leaf && !sda1->leaf && !lin->leaf);
	check(sda->size_bytes == 1024 * 1024 * 1024);
	check(sda->diskseq == 7);
	check(topology_by_devno(t, lin->devno) == lin);
}

static void test_aliases(const struct topology *t)
{
	struct device *d = topology_by_name(t, "dm-16");

	check(strv_contains(d->aliases, "/dev/mapper/my--vg-my--lv"));
	check(strv_contains(d->aliases, "/dev/my-vg/my-lv"));
	check(streq(topology_by_name(t, "cciss!c0d0")->node,
		    "/dev/cciss/c0d0"));
	/* A layer inside a volume has no /dev/VG/LV. */
	check(strv_length(topology_by_name(t, "dm-5")->aliases) == 1);
}

static void leads_to(const struct topology *t, const struct roots *r,
		     const char *path, const char *name)
{
	struct device *d = NULL;
	int err = topology_resolve(t, r, path, &d);

	if (err || !streq(d->name, name))
		fprintf(stderr, "%s leads to %s (%s), not %s\n", path,
			d ? d->name : "nothing", strerror(-err), name);
	check(err == 0);
	check(streq(d->name, name));
}

static void test_paths(const struct topology *t, struct roots *r)
{
	struct device *d = NULL;

	leads_to(t, r, "/dev/sda", "sda");
	leads_to(t, r, "/dev/mapper/vg-st", "dm-1");
	fake_link(r, "/dev/vg/st", "../dm-1");
	leads_to(t, r, "/dev/vg/st", "dm-1");
	leads_to(t, r, "/dev//vg/../sda1", "sda1");
	leads_to(t, r, "/srv", "dm-1");
	leads_to(t, r, "/srv/", "dm-1");
	fake_file(r, "/srv/www/index.html", "x");
	leads_to(t, r, "/srv/www/index.html", "dm-1");
	fake_dir(r, "/srvother");
	leads_to(t, r, "/srvother", "sda2");
	leads_to(t, r, "/", "sda2");

	/* btrfs: an anonymous number, the source names the device. */
	fake_dir(r, "/data/sub vol");
	fake_mount(r, "/data/sub\\040vol", "0:45", "btrfs", "/dev/mapper/luks");
	leads_to(t, r, "/data/sub vol", "dm-3");
	leads_to(t, r, "/data", "sda2");

	/* The last mount on a point hides the ones before. */
	fake_mount(r, "/srv", "8:32", "ext4", "/dev/sdc");
	leads_to(t, r, "/srv/www", "sdc");

	check(topology_resolve(t, r, "/run/ram.img", &d) == -ENODEV);
	check(topology_resolve(t, r, "/nowhere", &d) == -ENOENT);
	check(topology_resolve(t, r, "/dev/sda/x", &d) == -ENOTDIR);
	check(topology_resolve(t, r, "dev/sda", &d) == -EINVAL);
	check(topology_resolve(t, r, "", &d) == -EINVAL);
	fake_dir(r, "/net");
	fake_mount(r, "/net", "0:50", "nfs", "server:/export");
	check(topology_resolve(t, r, "/net", &d) == -ENODEV);
	fake_dir(r, "/broken");
	fake_mount(r, "/broken", "0:51", "btrfs", "/dev/away");
	check(topology_resolve(t, r, "/broken", &d) == -ENODEV);
	fake_link(r, "/a", "b");
	fake_link(r, "/b", "a");
	check(topology_resolve(t, r, "/a", &d) == -ELOOP);
	/* Nothing outside of the machine. */
	fake_link(r, "/out", "/etc");
	check(topology_resolve(t, r, "/out", &d) == -ENOENT);
	check(!d);
}

static void test_tables(void)
{
	static const struct {
		const char *table;
		enum device_kind kind;
	} tables[] = {
		{ "linear 8:16", DEVICE_LINEAR },
		{ "striped 2", DEVICE_STRIPED },
		{ "crypt aes-xts-plain64", DEVICE_CRYPT },
		{ "raid raid1", DEVICE_RAID1 },
		{ "raid raid10", DEVICE_RAID10 },
		{ "raid raid5_ls", DEVICE_RAID5 },
		{ "raid raid6_zr", DEVICE_RAID6 },
		{ "raid raid4", DEVICE_RAID4 },
		{ "raid raid0_meta", DEVICE_RAID0 },
		{ "mirror core", DEVICE_MIRROR },
		{ "thin 254:3", DEVICE_THIN },
		{ "thin-pool 254:1", DEVICE_THIN_POOL },
		{ "cache 254:1", DEVICE_CACHE },
		{ "writecache s", DEVICE_CACHE },
		{ "snapshot 254:1", DEVICE_SNAPSHOT },
		{ "snapshot-origin 254:1", DEVICE_SNAPSHOT },
		{ "multipath 0", DEVICE_MULTIPATH },
		{ "zero", DEVICE_UNKNOWN },
		{ "linear", DEVICE_LINEAR },
		{ "lin", DEVICE_UNKNOWN },
		{ "raid", DEVICE_UNKNOWN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		check(dm_kind(tables[i].table, "CRYPT-x", NULL, 0, false) ==
		      tables[i].kind);
	check(dm_kind("", "CRYPT-x", NULL, 0, false) == DEVICE_CRYPT);
}

/* loop0's file lies on loop1 and loop1's on loop0: impossible, and no reason to
 * hang.
 */
static void test_cycle(void)
{
	struct topology *t;
	struct roots r;

	fake_new(&r);
	fake_loop(&r, "loop0", "7:0", "/dev/loop1");
	fake_loop(&r, "loop1", "7:1", "/dev/loop0");
	check(topology_new(&r, &t) == 0);
	kind_is(t, "loop0", DEVICE_LOOP, "loop0 loop1");
	topology_free(t);
	fake_remove(&r);
}

static void test_vanishing(void)
{
	struct topology *t;
	struct roots r;

	fake_new(&r);
	fake_disk(&r, "sda", "8:0", "none");
	fake_dm(&r, "dm-0", "254:0", "sda sdz", "x", "");
	fake_link(&r, "/sys/class/block/sdq", "../../devices/gone");
	fake_file(&r, "/sys/class/block/bad/dev", "garbage\n");
	check(topology_new(&r, &t) == 0);
	kind_is(t, "dm-0", DEVICE_LINEAR, "sda");
	check(t->n_devices == 2);
	topology_free(t);
	fake_remove(&r);
}

int main(void)
{
	struct topology *t;
	struct roots r;

	fake_new(&r);
	build(&r);
	check(topology_new(&r, &t) == 0);
	test_kinds(t);
	test_relations(t);
	test_aliases(t);
	test_paths(t, &r);
	topology_free(t);
	fake_remove(&r);
	test_tables();
	test_cycle();
	test_vanishing();
	return 0;
}
