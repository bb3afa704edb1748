/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Switching schedulers and remembering what was there. */

#include <stdio.h>

#include "fake.h"
#include "leaf.h"

static struct roots roots;

static struct topology *look(void)
{
	struct topology *t;

	check(topology_new(&roots, &t) == 0);
	return t;
}

/* Use or release @name; @error: a part of the sentence, or NULL. */
static void change(const char *name, bool use, bool dry_run, bool changed,
		   const char *scheduler, const char *error)
{
	_cleanup_(topology_freep) struct topology *t = look();
	struct device *leaf = topology_by_name(t, name);
	struct leaf_result r;

	check((use ? leaf_use : leaf_release)(&roots, leaf, dry_run, &r) == 0);
	if (r.error)
		fprintf(stderr, "%s\n", r.error);
	check(r.changed == changed);
	check(streq(leaf->scheduler, scheduler));
	check(error ? r.error && strstr(r.error, error) : !r.error);
	leaf_result_done(&r);
}

static bool managed(const char *name)
{
	_cleanup_(topology_freep) struct topology *t = look();

	return leaf_is_managed(&roots, topology_by_name(t, name));
}

static void configure(char **use, bool dry_run)
{
	_cleanup_(topology_freep) struct topology *t = look();
	struct conf conf = { .use = use };

	check(leaves_configure(&roots, &conf, t, dry_run) == 0);
}

static bool has(const char *path, const char *text)
{
	_cleanup_free_ char *is = fake_read(&roots, path);

	return streq(is, text);
}

static void test_use_and_release(void)
{
	change("sda", false, false, false, "mq-deadline", NULL);
	change("sda", true, true, false, "mq-deadline", NULL);
	check(!managed("sda"));
	change("sda", true, false, true, "sutro", NULL);
	check(managed("sda") && !managed("sdb"));
	check(has("/run/sutro/leaves/sda", "mq-deadline 7 used"));
	/* Again, and after a restart: nothing to do, nothing forgotten. */
	change("sda", true, false, false, "sutro", NULL);
	check(has("/run/sutro/leaves/sda", "mq-deadline 7 used"));
	change("sda", false, true, false, "sutro", NULL);
	check(managed("sda"));
	change("sda", false, false, true, "mq-deadline", NULL);
	check(!managed("sda"));
	change("sda", false, false, false, "mq-deadline", NULL);
	change("sda", true, false, true, "sutro", NULL);
	change("sda", false, false, true, "mq-deadline", NULL);
}

static void test_not_offered(void)
{
	char *use[] = { "/dev/sdx", NULL };

	fake_disk(&roots, "sdx", "65:112", "none");
	fake_file(&roots, "/sys/class/block/sdx/queue/scheduler",
		  "[none] bfq\n");
	change("sdx", true, false, false, "none", "sutro-dkms");
	configure(use, false);
	check(!managed("sdx"));
	fake_file(&roots, "/sys/class/block/sdx/queue/scheduler",
		  "[none] bfq sutro\n");
	/* The module was installed: the next change of devices finds it. */
	configure(use, false);
	check(managed("sdx"));
}

static void test_faults(void)
{
	fake_file(&roots, "/faults", "sdb/queue/scheduler ignore\n");
	change("sdb", true, false, false, "none", "cannot switch");
	check(!managed("sdb"));
	fake_file(&roots, "/faults", "sdb/queue/scheduler fail\n");
	change("sdb", true, false, false, "none", "Input/output error");
	fake_file(&roots, "/faults", "%s", "");
}

/* Another disk under the same name has nothing to do with the one before. */
static void test_diskseq(void)
{
	change("sdb", true, false, true, "sutro", NULL);
	check(managed("sdb"));
	fake_file(&roots, "/sys/class/block/sdb/diskseq", "8\n");
	check(!managed("sdb"));
	change("sdb", false, false, false, "sutro", NULL);
	fake_file(&roots, "/sys/class/block/sdb/diskseq", "7\n");
	change("sdb", false, false, true, "none", NULL);
}

/* Made sutro by somebody else: not managed until asked; released to "none". */
static void test_found_sutro(void)
{
	fake_disk(&roots, "sdc", "8:32", "sutro");
	check(!managed("sdc"));
	change("sdc", true, false, false, "sutro", NULL);
	check(managed("sdc"));
	change("sdc", false, false, true, "none", NULL);
}

static void test_configuration(void)
{
	char *use[] = { "/dev/mapper/v*", "/dev/nothing", "/srv", NULL };

	fake_disk(&roots, "sdd", "8:48", "bfq");
	fake_disk(&roots, "sde", "8:64", "bfq");
	fake_disk(&roots, "sdf", "8:80", "bfq");
	fake_dm(&roots, "dm-0", "254:0", "sdd sde", "vol", "");
	fake_mount(&roots, "/srv", "8:80", "ext4", "/dev/sdf");
	fake_dir(&roots, "/srv");
	configure(use, true);
	check(!managed("sdd"));
	configure(use, false);
	check(managed("sdd") && managed("sde") && managed("sdf"));
	/* Given back by somebody: the configuration does not take it again. */
	change("sde", false, false, true, "bfq", NULL);
	configure(use, false);
	check(!managed("sde") && managed("sdd"));
	change("sde", true, false, true, "sutro", NULL);
	/* Switched by hand: left alone. */
	fake_file(&roots, "/sys/class/block/sdd/queue/scheduler",
		  "none [mq-deadline] bfq sutro\n");
	configure(use, false);
	check(!managed("sdd"));
}

int main(void)
{
	fake_new(&roots);
	fake_disk(&roots, "sda", "8:0", "mq-deadline");
	fake_disk(&roots, "sdb", "8:16", "none");
	test_use_and_release();
	test_not_offered();
	test_faults();
	test_diskseq();
	test_found_sutro();
	test_configuration();
	fake_remove(&roots);
	return 0;
}
