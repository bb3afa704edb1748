/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is written into the files of each backend, and what is not.
 *
 *	sda sutro, sdb bfq, sdc iocost, sdd none; dm-0 stands on all four.
 */

#include <stdio.h>

#include "actuate.h"
#include "fake.h"

#define A "/sys/fs/cgroup/system.slice/a.service"
#define B "/sys/fs/cgroup/system.slice/b.service"

static struct roots roots;
static struct topology *topology;
static struct cgroup_tree *tree;
static struct actuator actuator;
static struct text signals;

static void on_added(struct cgroup *c, void *userdata)
{
	c->origin = CGROUP_UNIT;
	c->policy.source = POLICY_UNIT;
	c->policy.subject = strdup(c->name);
	c->policy.weight = WEIGHT_DEFAULT;
}

static void on_removed(struct cgroup *c, void *userdata)
{
}

static const struct cgroup_ops ops = { .added = on_added,
				       .removed = on_removed };

static void on_changed(const struct cgroup *c, const struct device *leaf,
		       uint64_t old, uint64_t new, const char *reason,
		       void *userdata)
{
	text_add(&signals, "%s %s %llu %llu %s\n", c->name,
		 leaf ? leaf->name : "-", (unsigned long long)old,
		 (unsigned long long)new, reason);
}

static struct cgroup *unit(const char *name)
{
	char path[256];
	struct cgroup *c;

	snprintf(path, sizeof(path), "/system.slice/%s", name);
	c = cgroup_find(tree, path);
	check(c);
	return c;
}

static void flush(void)
{
	struct cgroup *root = cgroup_tree_root(tree);

	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		c->dirty = true;
	for (struct cgroup *c = root; c; c = cgroup_next(root, c))
		check(actuate_children(&actuator, c) == 0);
}

static void says(const char *file, const char *text)
{
	_cleanup_free_ char *is = fake_read(&roots, file);

	if (!streq(is, text))
		fprintf(stderr, "%s:\n%s\nnot\n%s\n", file, is, text);
	check(streq(is, text));
}

static void signalled(const char *text)
{
	if (!streq(signals.p ?: "", text))
		fprintf(stderr, "%s\nnot\n%s\n", signals.p ?: "", text);
	check(streq(signals.p ?: "", text));
	free(signals.p);
	signals = (struct text){};
}

/* Nothing was written since the last call. */
static void quiet(void)
{
	says("/writes", "");
	signalled("");
}

static void forget(void)
{
	fake_file(&roots, "/writes", "%s", "");
	free(signals.p);
	signals = (struct text){};
}

static void weigh(const char *name, uint64_t weight)
{
	struct policy *p = &unit(name)->policy;

	p->weight = weight;
	p->weight_set = true;
	flush();
}

static void test_defaults(void)
{
	flush();
	quiet();
}

static void test_weight(void)
{
	/* What systemd does for IOWeight=200. */
	fake_file(&roots, A "/io.bfq.weight", "default 109\n");
	fake_file(&roots, A "/io.weight", "default 200\n");
	weigh("a.service", 200);
	says(A "/io.sutro.weight", "default 200");
	says(A "/io.bfq.weight", "default 109\n8:16 200");
	says(A "/io.weight", "default 200");
	signalled("a.service - 100 200 IOWeight=200 of a.service\n"
		  "a.service sdb 109 200 IOWeight=200 of a.service\n");
	forget();
	flush();
	quiet();
}

static void test_scaled(void)
{
	weigh("b.service", 1500);
	/* 1500 : 200 : 100 (init.scope is not beside them) is 15 : 2 */
	says(B "/io.bfq.weight", "default 100\n8:16 990");
	says(A "/io.bfq.weight", "default 109\n8:16 132");
	says(B "/io.sutro.weight", "default 1500");
	forget();
	flush();
	quiet();
	weigh("b.service", 100);
	says(B "/io.bfq.weight", "default 100");
	says(A "/io.bfq.weight", "default 109\n8:16 200");
	says(B "/io.sutro.weight", "default 100");
	forget();
}

static void test_statement(void)
{
	struct policy *p = &unit("a.service")->policy;

	check(policy_add(p, "/dev/mapper/all", 300) == 0);
	check(policy_add(p, "/dev/sdb", 50) == 0);
	policy_resolve(p, topology, &roots);
	flush();
	says(A "/io.sutro.weight", "default 200\n8:0 300");
	says(A "/io.bfq.weight", "default 109\n8:16 50");
	says(A "/io.weight", "default 200\n8:32 300");
	says("/run/sutro/iocost", "8:32 /system.slice/a.service\t");
	signalled(
		"a.service sda 200 300 IODeviceWeight=/dev/mapper/all 300 of "
		"a.service, which stands on this disk\n"
		"a.service sdb 200 50 IODeviceWeight=/dev/sdb 50 of a.service, "
		"which names this disk\n"
		"a.service sdc 200 300 IODeviceWeight=/dev/mapper/all 300 of "
		"a.service, which stands on this disk\n");
	forget();
	flush();
	quiet();
}

static void explained(const char *leaf, const char *backend, const char *file,
		      const char *written, const char *read_back)
{
	struct actuation e;

	check(actuate_explain(&actuator, unit("a.service"),
			      topology_by_name(topology, leaf), &e) == 0);
	check(streq(e.backend, backend));
	check(*file ? endswith(e.file, file) : streq(e.file, ""));
	if (!streq(e.written, written) || !streq(e.read_back, read_back))
		fprintf(stderr, "%s: %s, %s\n", leaf, e.written, e.read_back);
	check(streq(e.written, written) && streq(e.read_back, read_back));
	actuation_done(&e);
}

static void test_explain(void)
{
	explained("sda", "sutro", A "/io.sutro.weight", "8:0 300", "8:0 300");
	explained("sdb", "bfq", A "/io.bfq.weight", "8:16 50", "8:16 50");
	explained("sdc", "iocost", A "/io.weight", "8:32 300", "8:32 300");
	explained("sdd", "none", "", "", "");
}

/* Somebody writes over our lines; a comparison makes them right again. */
static void test_drift(void)
{
	fake_file(&roots, A "/io.sutro.weight", "default 7\n8:0 8\n");
	fake_file(&roots, A "/io.bfq.weight", "default 109\n");
	flush();
	says(A "/io.sutro.weight", "default 200\n8:0 300");
	says(A "/io.bfq.weight", "default 109\n8:16 50");
	/* Text and numbers that are no weights are replaced. */
	fake_file(&roots, A "/io.sutro.weight", "default 0\n8:0 10001\nx\n");
	flush();
	says(A "/io.sutro.weight", "default 200\n8:0 300");
	forget();
}

static void test_faults(void)
{
	struct cgroup *a = unit("a.service");

	fake_file(&roots, "/faults", A "/io.sutro.weight ignore\n");
	a->policy.weight = 400;
	flush();
	check(a->refused);
	says(A "/io.sutro.weight", "default 200\n8:0 300");
	check(!signals.p || !strstr(signals.p, "a.service -"));
	fake_file(&roots, "/faults", A "/io.sutro.weight fail\n");
	a->refused = false;
	flush();
	check(a->refused);
	fake_file(&roots, "/faults", "%s", "");
	flush();
	says(A "/io.sutro.weight", "default 400\n8:0 300");
	a->policy.weight = 200;
	flush();
	forget();
}

static void test_dry_run(void)
{
	actuator.dry_run = true;
	unit("a.service")->policy.weight = 999;
	flush();
	check(actuate_restore(&actuator, cgroup_tree_root(tree)) == 0);
	quiet();
	actuator.dry_run = false;
	unit("a.service")->policy.weight = 200;
	flush();
	quiet();
}

static void test_vanished(void)
{
	static const char *const files[] = { "io.weight", "io.bfq.weight",
					     "io.sutro.weight" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char path[512];

		snprintf(path, sizeof(path), "%s" B "/%s", roots.prefix,
			 files[i]);
		check(unlink(path) == 0);
	}
	weigh("b.service", 700);
	quiet();
}

/* A successor that knows only what is in files takes back everything. */
static void test_restore(void)
{
	actuator_done(&actuator);
	check(actuator_init(&actuator, &roots) == 0);
	actuator.topology = topology;
	actuator.changed = on_changed;
	check(actuator_survey(&actuator, cgroup_tree_root(tree)) == 0);
	/* A line that somebody else has in io.weight is not ours to take. */
	fake_file(&roots, A "/io.weight", "default 200\n8:32 300\n8:99 5\n");
	check(actuate_restore(&actuator, cgroup_tree_root(tree)) == 0);
	says(A "/io.sutro.weight", "default 100");
	says(A "/io.bfq.weight", "default 109");
	says(A "/io.weight", "default 200\n8:99 5");
	says("/run/sutro/iocost", "");
	forget();
	check(actuate_restore(&actuator, cgroup_tree_root(tree)) == 0);
	quiet();
}

int main(void)
{
	fake_new(&roots);
	fake_disk(&roots, "sda", "8:0", "sutro");
	fake_disk(&roots, "sdb", "8:16", "bfq");
	fake_disk(&roots, "sdc", "8:32", "mq-deadline");
	fake_disk(&roots, "sdd", "8:48", "none");
	fake_dm(&roots, "dm-0", "254:0", "sda sdb sdc sdd", "all", "");
	fake_cgroup(&roots, "/init.scope");
	fake_cgroup(&roots, "/system.slice");
	fake_cgroup(&roots, "/system.slice/a.service");
	fake_cgroup(&roots, "/system.slice/b.service");
	fake_file(&roots, "/sys/fs/cgroup/io.cost.qos",
		  "8:48 enable=0 ctrl=auto\n8:32 enable=1 ctrl=user rpct=0\n");
	check(topology_new(&roots, &topology) == 0);
	check(cgroup_tree_new(&roots, NULL, &ops, NULL, &tree) == 0);
	check(cgroup_tree_scan(tree) == 0);
	check(actuator_init(&actuator, &roots) == 0);
	actuator.topology = topology;
	actuator.changed = on_changed;
	check(actuator_survey(&actuator, cgroup_tree_root(tree)) == 0);
	forget();

	test_defaults();
	test_weight();
	test_scaled();
	test_statement();
	test_explain();
	test_drift();
	test_faults();
	test_dry_run();
	test_vanished();
	test_restore();

	actuator_done(&actuator);
	cgroup_tree_free(tree);
	topology_free(topology);
	fake_remove(&roots);
	return 0;
}
