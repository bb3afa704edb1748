/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The rules of policy.c, on stacks that overlap:
 *
 *	dm-0 "db"	sda1 + sdb	(two disks)
 *	dm-1 "backup"	sdb + sdc
 *	sda1, sda2	partitions of sda
 */

#include "fake.h"
#include "policy.h"

static struct topology *topology;
static struct roots roots;

static struct policy unit(bool set, uint64_t weight)
{
	return (struct policy){ .source = POLICY_UNIT,
				.subject = strdup("db.service"),
				.weight = set ? weight : WEIGHT_DEFAULT,
				.weight_set = set };
}

static void say(struct policy *p, const char *path, uint64_t weight)
{
	check(policy_add(p, path, weight) == 0);
	policy_resolve(p, topology, &roots);
}

static void expect(const struct policy *p, const char *leaf, uint64_t weight,
		   enum reason reason, const char *text)
{
	struct device *d = topology_by_name(topology, leaf);
	struct asked a = policy_weight(p, d);
	_cleanup_free_ char *why = policy_reason(p, &a);

	if (a.weight != weight || a.reason != reason || !streq(why, text))
		fprintf(stderr, "%s: %llu, %s\n", leaf,
			(unsigned long long)a.weight, why);
	check(a.weight == weight);
	check(a.reason == reason);
	check(streq(why, text));
}

static void test_default(void)
{
	struct policy p = unit(false, 0);

	expect(&p, "sda", 100, REASON_UNSET,
	       "IOWeight= of db.service is not set");
	policy_done(&p);
	p = unit(true, 200);
	expect(&p, "sda", 200, REASON_WEIGHT, "IOWeight=200 of db.service");
	/* A statement that leads nowhere says nothing. */
	say(&p, "/dev/mapper/nothing", 300);
	expect(&p, "sda", 200, REASON_WEIGHT, "IOWeight=200 of db.service");
	policy_done(&p);
}

static void test_stack(void)
{
	struct policy p = unit(true, 200);

	say(&p, "/dev/mapper/db", 300);
	expect(&p, "sda", 300, REASON_STACK,
	       "IODeviceWeight=/dev/mapper/db 300 of db.service, which stands "
	       "on this disk");
	expect(&p, "sdb", 300, REASON_STACK,
	       "IODeviceWeight=/dev/mapper/db 300 of db.service, which stands "
	       "on this disk");
	expect(&p, "sdc", 200, REASON_WEIGHT, "IOWeight=200 of db.service");
	policy_done(&p);
}

/* Two stacks on one disk: the larger, whatever the order; below IOWeight=, too. */
static void test_overlap(void)
{
	static const char *const paths[] = { "/dev/mapper/db", "/srv/backup" };
	static const uint64_t weights[] = { 30, 50 };

	for (int order = 0; order < 2; order++) {
		struct policy p = unit(true, 200);

		say(&p, paths[order], weights[order]);
		say(&p, paths[!order], weights[!order]);
		expect(&p, "sda", 30, REASON_STACK,
		       "IODeviceWeight=/dev/mapper/db 30 of db.service, which "
		       "stands on this disk");
		expect(&p, "sdb", 50, REASON_STACK,
		       "IODeviceWeight=/srv/backup 50 of db.service, which "
		       "stands on this disk");
		expect(&p, "sdc", 50, REASON_STACK,
		       "IODeviceWeight=/srv/backup 50 of db.service, which "
		       "stands on this disk");
		policy_done(&p);
	}
}

/* The leaf itself wins over larger stacks, before or after them. */
static void test_leaf_wins(void)
{
	static const char *const texts[] = {
		"/dev/sdb",
		"/dev/mapper/db",
		"/srv/backup",
	};
	static const uint64_t weights[] = { 10, 300, 500 };

	for (size_t first = 0; first < 3; first++) {
		struct policy p = unit(true, 200);

		for (size_t i = 0; i < 3; i++)
			say(&p, texts[(first + i) % 3],
			    weights[(first + i) % 3]);
		expect(&p, "sdb", 10, REASON_LEAF,
		       "IODeviceWeight=/dev/sdb 10 of db.service, which names "
		       "this disk");
		expect(&p, "sda", 300, REASON_STACK,
		       "IODeviceWeight=/dev/mapper/db 300 of db.service, which "
		       "stands on this disk");
		policy_done(&p);
	}
}

static void test_partitions(void)
{
	struct policy p = unit(false, 0);

	say(&p, "/dev/mapper/db", 900);
	say(&p, "/dev/sda2", 40);
	expect(&p, "sda", 40, REASON_LEAF,
	       "IODeviceWeight=/dev/sda2 40 of db.service, which names this "
	       "disk");
	/* Of several that name the disk the largest. */
	say(&p, "/dev/sda1", 60);
	say(&p, "/dev/sda", 50);
	expect(&p, "sda", 60, REASON_LEAF,
	       "IODeviceWeight=/dev/sda1 60 of db.service, which names this "
	       "disk");
	policy_done(&p);
}

/* A file system on a partition names the disk as well. */
static void test_mount_point(void)
{
	struct policy p = unit(false, 0);

	say(&p, "/home/user/file", 70);
	expect(&p, "sda", 70, REASON_LEAF,
	       "IODeviceWeight=/home/user/file 70 of db.service, which names "
	       "this disk");
	policy_done(&p);
}

static void test_foreign(void)
{
	struct policy p = { .source = POLICY_FILE,
			    .subject = strdup("/machine.slice/x/box"),
			    .weight = 700,
			    .weight_set = true };

	expect(&p, "sdc", 700, REASON_WEIGHT,
	       "io.weight 700 of /machine.slice/x/box");
	say(&p, "/dev/sdc", 5);
	expect(&p, "sdc", 5, REASON_LEAF,
	       "io.weight /dev/sdc 5 of /machine.slice/x/box, which names this "
	       "disk");
	policy_done(&p);
}

/* A new topology: the same words lead elsewhere. */
static void test_change(void)
{
	struct policy p = unit(false, 0);

	say(&p, "/dev/mapper/new", 300);
	expect(&p, "sdc", 100, REASON_UNSET,
	       "IOWeight= of db.service is not set");
	fake_dm(&roots, "dm-9", "254:9", "sdc", "new", "");
	topology_free(topology);
	check(topology_new(&roots, &topology) == 0);
	policy_resolve(&p, topology, &roots);
	expect(&p, "sdc", 300, REASON_STACK,
	       "IODeviceWeight=/dev/mapper/new 300 of db.service, which stands "
	       "on this disk");
	policy_done(&p);
}

int main(void)
{
	fake_new(&roots);
	fake_disk(&roots, "sda", "8:0", "sutro");
	fake_partition(&roots, "sda", "sda1", "8:1");
	fake_partition(&roots, "sda", "sda2", "8:2");
	fake_disk(&roots, "sdb", "8:16", "sutro");
	fake_disk(&roots, "sdc", "8:32", "sutro");
	fake_dm(&roots, "dm-0", "254:0", "sda1 sdb", "db", "");
	fake_dm(&roots, "dm-1", "254:1", "sdb sdc", "backup", "");
	fake_mount(&roots, "/", "8:1", "ext4", "/dev/sda1");
	fake_mount(&roots, "/home", "8:2", "ext4", "/dev/sda2");
	fake_mount(&roots, "/srv/backup", "254:1", "xfs", "/dev/dm-1");
	fake_dir(&roots, "/srv/backup");
	fake_file(&roots, "/home/user/file", "x");
	check(topology_new(&roots, &topology) == 0);

	test_default();
	test_stack();
	test_overlap();
	test_leaf_wins();
	test_partitions();
	test_mount_point();
	test_foreign();
	test_change();

	topology_free(topology);
	fake_remove(&roots);
	return 0;
}
