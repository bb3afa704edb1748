/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Ceilings of the cgroup /a as lines of io.max, on two disks and the devices on them:
 *
 *	sda 8:0 -- sda1 8:1 (partition)
 *	  |  `-- dm-0 254:0 (stripe)  --- sdb 8:16
 *	  `----- md0 9:0 (mirror) ------- sdb
 *		  `-- md0p1 259:1 (partition)
 *
 * and on nvme0n1 259:2 with the partition nvme0n1p1 259:3, which stands on the hidden disk nvme0c0n1.
 */

#include <sys/sysmacros.h>

#include "control/ceiling.h"
#include "fake.h"
#include "policy/policy.h"

#define MAX "/sys/fs/cgroup/a/io.max"
#define LIMITS(rbps, wbps, riops, wiops) \
	" rbps=" rbps " wbps=" wbps " riops=" riops " wiops=" wiops "\n"
#define RBPS(n) LIMITS(n, "max", "max", "max")

enum {
	SDA,
	SDB,
	NVME0C0N1,
	SDA1,
	DM0,
	MD0,
	MD0P1,
	NVME0N1,
	NVME0N1P1,
	DEVICES,
	DISKS = SDA1,
};

/** struct test - the machine, without ceilings */
struct test {
	struct roots roots;
	struct cgroup_tree *tree;
	struct cgroup *a;
	struct cgfiles files;
	struct device devices[DEVICES];
	struct device *all[DEVICES];
	struct topology topology;
};

static void add_device(struct test *t, size_t i, const char *name,
		       unsigned int maj, unsigned int min,
		       enum device_kind kind, size_t n_leaves)
{
	t->devices[i] = (struct device){
		.name = (char *)name,
		.devno = makedev(maj, min),
		.kind = kind,
		.leaf = i < DISKS,
		.leaves = &t->all[i < DISKS ? i : SDA],
		.n_leaves = n_leaves,
	};
	t->all[i] = &t->devices[i];
}

static void add_partition(struct test *t, size_t i, const char *name,
			  unsigned int maj, unsigned int min, size_t disk)
{
	add_device(t, i, name, maj, min, DEVICE_PARTITION,
		   t->devices[disk].n_leaves);
	t->devices[i].leaves = t->devices[disk].leaves;
	t->devices[i].slaves = &t->all[disk];
	t->devices[i].n_slaves = 1;
}

static void setup(struct test *t)
{
	*t = (struct test){};
	fake_new(&t->roots);
	fake_disk(&t->roots, "sda", "8:0", "sutro");
	fake_disk(&t->roots, "sdb", "8:16", "sutro");
	/* The kernel takes lines for whole devices. */
	fake_file(&t->roots, "/sys/dev/block/254:0/dev", "254:0\n");
	fake_file(&t->roots, "/sys/dev/block/9:0/dev", "9:0\n");
	fake_file(&t->roots, "/sys/dev/block/259:2/dev", "259:2\n");
	fake_file(&t->roots, MAX, "%s", "");
	add_device(t, SDA, "sda", 8, 0, DEVICE_DISK, 1);
	add_device(t, SDB, "sdb", 8, 16, DEVICE_DISK, 1);
	add_device(t, NVME0C0N1, "nvme0c0n1", 0, 0, DEVICE_DISK, 1);
	add_partition(t, SDA1, "sda1", 8, 1, SDA);
	add_device(t, DM0, "dm-0", 254, 0, DEVICE_STRIPED, 2);
	add_device(t, MD0, "md0", 9, 0, DEVICE_RAID1, 2);
	add_partition(t, MD0P1, "md0p1", 259, 1, MD0);
	add_device(t, NVME0N1, "nvme0n1", 259, 2, DEVICE_MULTIPATH, 1);
	t->devices[NVME0N1].leaves = &t->all[NVME0C0N1];
	add_partition(t, NVME0N1P1, "nvme0n1p1", 259, 3, NVME0N1);
	t->topology = (struct topology){ t->all, DEVICES };
	t->a = fake_writer(&t->roots, &t->files, &t->tree);
}

static void teardown(struct test *t)
{
	fake_writer_remove(&t->roots, &t->files, t->tree);
}

/* The kernel takes no line for a device any more. */
static void lose(struct test *t, const char *devno)
{
	_cleanup_free_ char *dir =
		asprintf_or_null("%s/sys/dev/block/%s", t->roots.prefix, devno);
	_cleanup_free_ char *file = asprintf_or_null("%s/dev", dir);

	check(unlink(file) == 0 && rmdir(dir) == 0);
}

static void promise(struct test *t, enum promise_key key, size_t device,
		    uint64_t value)
{
	struct promise p = { .key = key,
			     .path = (char *)"/dev/x",
			     .value = value,
			     .device = &t->devices[device] };

	check(promises_add(&t->a->policy->promises, &p) == 0);
}

static bool has(struct test *t, const char *text)
{
	check(ceilings_apply(&t->files, &t->topology, t->a) == 0);
	return fake_has(&t->roots, MAX, text);
}

static void test_each_key_has_its_limit(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MAX, DM0, 5);
	promise(t, PROMISE_WRITE_BANDWIDTH_MAX, DM0, 6);
	promise(t, PROMISE_READ_IOPS_MAX, DM0, 7);
	promise(t, PROMISE_WRITE_IOPS_MAX, DM0, 8);
	check(has(t, "254:0" LIMITS("5", "6", "7", "8")));
}

static void test_lower_of_two_holds(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA, 5);
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA1, 4);
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA, 6);
	check(has(t, "8:0" RBPS("4")));
}

/* Not that of a leaf: the array and the head of NVMe multipath have several, or a hidden one. */
static void test_ceiling_of_a_partition_is_that_of_its_disk(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MAX, MD0P1, 10);
	check(has(t, "9:0" RBPS("10")));
	promise(t, PROMISE_READ_BANDWIDTH_MAX, NVME0N1P1, 4);
	check(has(t, "9:0" RBPS("10") "259:2" RBPS("4")));
	promises_done(&t->a->policy->promises);
	check(has(t, ""));
	/* Where the kernel takes no line for the array, as for a ceiling on the array. */
	lose(t, "9:0");
	promise(t, PROMISE_WRITE_BANDWIDTH_MAX, MD0P1, 10);
	check(has(t, "8:0" LIMITS("max", "10", "max", "max") "8:16" LIMITS(
			     "max", "10", "max", "max")));
}

static void test_iops_of_more_than_32_bits_are_no_limit(struct test *t)
{
	promise(t, PROMISE_READ_IOPS_MAX, SDA, UINT32_MAX);
	check(has(t, ""));
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA, UINT32_MAX);
	check(has(t, "8:0" RBPS("4294967295")));
}

static void test_leaves_of_a_stripe_get_equal_parts(struct test *t)
{
	lose(t, "254:0");
	promise(t, PROMISE_READ_BANDWIDTH_MAX, DM0, 9);
	promise(t, PROMISE_WRITE_BANDWIDTH_MAX, DM0, 10);
	check(has(t, "8:0" LIMITS("5", "5", "max", "max") "8:16" LIMITS(
			     "5", "5", "max", "max")));
}

static void test_leaves_of_a_mirror_carry_all_writes(struct test *t)
{
	lose(t, "9:0");
	promise(t, PROMISE_READ_BANDWIDTH_MAX, MD0, 10);
	promise(t, PROMISE_WRITE_BANDWIDTH_MAX, MD0, 10);
	check(has(t, "8:0" LIMITS("5", "10", "max", "max") "8:16" LIMITS(
			     "5", "10", "max", "max")));
}

/* A ceiling of the leaf itself and the part of another one: neither is written in turn. */
static void test_lower_of_a_leaf_and_a_part_holds(struct test *t)
{
	lose(t, "254:0");
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA, 7);
	promise(t, PROMISE_READ_BANDWIDTH_MAX, DM0, 10);
	check(has(t, "8:0" RBPS("5") "8:16" RBPS("5")));
	fake_writes(&t->roots);
	check(has(t, "8:0" RBPS("5") "8:16" RBPS("5")));
	/* The attempt for dm-0 alone is made again. */
	check(fake_writes(&t->roots) == 1);
}

static void test_withdrawn_with_its_promise(struct test *t)
{
	lose(t, "254:0");
	fake_file(&t->roots, MAX, "%s", "8:16" RBPS("3"));
	promise(t, PROMISE_READ_BANDWIDTH_MAX, DM0, 10);
	promise(t, PROMISE_READ_BANDWIDTH_MAX, MD0, 10);
	check(has(t, "8:16" RBPS("3") "9:0" RBPS("10") "8:0" RBPS("5")));
	promises_done(&t->a->policy->promises);
	promise(t, PROMISE_READ_BANDWIDTH_MAX, MD0, 10);
	check(has(t, "8:16" RBPS("3") "9:0" RBPS("10")));
	promises_done(&t->a->policy->promises);
	check(has(t, "8:16" RBPS("3")));
}

static void test_lower_limits_of_others_hold(struct test *t)
{
	fake_file(&t->roots, MAX, "%s", "8:0" LIMITS("3", "9", "max", "200"));
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA, 5);
	promise(t, PROMISE_WRITE_BANDWIDTH_MAX, SDA, 5);
	check(has(t, "8:0" LIMITS("3", "5", "max", "200")));
	promises_done(&t->a->policy->promises);
	check(has(t, "8:0" LIMITS("3", "9", "max", "200")));
}

static void test_changes_by_others_are_followed(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA, 5);
	check(has(t, "8:0" RBPS("5")));
	/* systemd writes all four limits of a line. */
	fake_file(&t->roots, MAX, "%s", "8:0" LIMITS("9", "7", "max", "max"));
	check(has(t, "8:0" LIMITS("5", "7", "max", "max")));
	fake_file(&t->roots, MAX, "%s", "8:0" LIMITS("2", "7", "max", "max"));
	check(has(t, "8:0" LIMITS("2", "7", "max", "max")));
	fake_file(&t->roots, MAX, "%s", "8:0" LIMITS("8", "7", "max", "max"));
	check(has(t, "8:0" LIMITS("5", "7", "max", "max")));
	/* The next daemon reads the record. */
	cgfiles_done(&t->files);
	check(cgfiles_init(&t->files, &t->roots, false) == 0);
	fake_file(&t->roots, MAX, "%s", "8:0" LIMITS("5", "6", "max", "max"));
	promises_done(&t->a->policy->promises);
	check(has(t, "8:0" LIMITS("8", "6", "max", "max")));
	check(fake_has(&t->roots, "/run/sutro/ceilings", ""));
}

static void test_failed_write_leaves_the_record(struct test *t)
{
	fake_file(&t->roots, MAX, "%s", "8:0" RBPS("9"));
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA, 5);
	check(has(t, "8:0" RBPS("5")));
	promises_done(&t->a->policy->promises);
	promise(t, PROMISE_READ_BANDWIDTH_MAX, SDA, 4);
	fake_fault(&t->roots, "io.max fail");
	check(has(t, "8:0" RBPS("5")));
	fake_fault(&t->roots, "");
	promises_done(&t->a->policy->promises);
	check(has(t, "8:0" RBPS("9")));
}

static void test_refusal_is_known(struct test *t)
{
	const struct promises *l = &t->a->policy->promises;

	lose(t, "254:0");
	promise(t, PROMISE_READ_BANDWIDTH_MAX, DM0, 10);
	promise(t, PROMISE_READ_BANDWIDTH_MAX, MD0, 10);
	check(has(t, "9:0" RBPS("10") "8:0" RBPS("5") "8:16" RBPS("5")));
	check(!ceiling_refusal(t->a, &l->items[0]));
	fake_file(&t->roots, MAX, "%s", "9:0" RBPS("10"));
	fake_fault(&t->roots, "io.max fail");
	cgfile_retry(t->a);
	check(has(t, "9:0" RBPS("10")));
	/* io.max took the line of md0, but none for dm-0. */
	check(ceiling_refusal(t->a, &l->items[0])->devno == makedev(254, 0));
}

static void test_refusal_for_a_partition_is_known(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MAX, NVME0N1P1, 10);
	fake_fault(&t->roots, "io.max fail");
	check(has(t, ""));
	check(ceiling_refusal(t->a, &t->a->policy->promises.items[0]));
}

int main(void)
{
	run_tests(test_each_key_has_its_limit, test_lower_of_two_holds,
		  test_ceiling_of_a_partition_is_that_of_its_disk,
		  test_iops_of_more_than_32_bits_are_no_limit,
		  test_leaves_of_a_stripe_get_equal_parts,
		  test_leaves_of_a_mirror_carry_all_writes,
		  test_lower_of_a_leaf_and_a_part_holds,
		  test_withdrawn_with_its_promise,
		  test_lower_limits_of_others_hold,
		  test_changes_by_others_are_followed,
		  test_failed_write_leaves_the_record, test_refusal_is_known,
		  test_refusal_for_a_partition_is_known);
	return 0;
}
