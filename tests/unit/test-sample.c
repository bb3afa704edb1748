/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Entitlement and share, on a tree whose numbers can be worked out by hand:
 *
 *	/ -- system.slice 100 -- db 300
 *	  |                  |-- web 100
 *	  |                  `-- backup 500 (idle)
 *	  `- user.slice 100 ---- box (no files of the io controller)
 */

#include <math.h>
#include <stdio.h>

#include "fake.h"
#include "sample.h"

static struct roots roots;
static struct topology *topology;
static struct cgroup_tree *tree;

static void on_added(struct cgroup *c, void *userdata)
{
	static const struct {
		const char *name;
		uint64_t weight;
	} weights[] = { { "db", 300 }, { "web", 100 }, { "backup", 500 } };

	c->policy.weight = WEIGHT_DEFAULT;
	for (size_t i = 0; i < ARRAY_SIZE(weights); i++)
		if (streq(c->name, weights[i].name))
			c->policy.weight = weights[i].weight;
}

static void on_removed(struct cgroup *c, void *userdata)
{
}

static const struct cgroup_ops ops = { .added = on_added,
				       .removed = on_removed };

/* Counters of sda (sutro) and sdb (bfq; io.stat includes what is below). */
static void count(const char *cgroup, unsigned long long ms,
		  unsigned long long kib, int queued)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/io.sutro.stat", cgroup);
	fake_file(&roots, path,
		  "8:0 time_ns=%llu rbytes=%llu wbytes=0 rios=1 wios=1 "
		  "wait_ns=5 idle_ns=6 queued=%d dequeue=7 lag_ns=-8\n",
		  ms * 1000000, kib * 1024, queued);
}

static void count_bfq(const char *cgroup, unsigned long long kib)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/io.stat", cgroup);
	fake_file(&roots, path,
		  "8:16 rbytes=%llu wbytes=%llu rios=1 wios=1 dbytes=0 dios=0\n"
		  "8:0 rbytes=77 wbytes=77 rios=1 wios=1 dbytes=0 dios=0\n",
		  kib * 512, kib * 512);
}

static struct cgroup *find(const char *path)
{
	struct cgroup *c = cgroup_find(tree, path);

	check(c);
	return c;
}

static void close_to(double is, double want)
{
	if (fabs(is - want) > 1e-9)
		fprintf(stderr, "%f, not %f\n", is, want);
	check(fabs(is - want) <= 1e-9);
}

int main(void)
{
	struct sampler s = {};
	struct device *sda, *sdb;
	struct usage u;

	fake_new(&roots);
	fake_disk(&roots, "sda", "8:0", "sutro");
	fake_disk(&roots, "sdb", "8:16", "bfq");
	fake_dir(&roots, "/sys/fs/cgroup/user.slice/box");
	count("/system.slice", 0, 0, 0);
	count("/system.slice/db", 1000, 10, 0);
	count("/system.slice/web", 500, 10, 0);
	count("/system.slice/backup", 4000, 10, 0);
	count("/user.slice", 0, 0, 0);
	count_bfq("/", 0);
	count_bfq("/system.slice", 0);
	count_bfq("/system.slice/db", 0);
	count_bfq("/user.slice", 0);
	check(topology_new(&roots, &topology) == 0);
	check(cgroup_tree_new(&roots, NULL, &ops, NULL, &tree) == 0);
	check(cgroup_tree_scan(tree) == 0);
	sda = topology_by_name(topology, "sda");
	sdb = topology_by_name(topology, "sdb");

	check(!sampler_is_fresh(&s, 1000000));
	check(sampler_take(&s, cgroup_tree_root(tree), topology, 1000000) == 0);
	check(!sampler_is_fresh(&s, 1000000));
	close_to(sample_got(&s, find("/system.slice/db"), sda), 0);

	count("/system.slice/db", 1300, 20, 0);
	count("/system.slice/web", 600, 10, 0);
	count("/user.slice", 400, 8, 0);
	count_bfq("/", 400);
	count_bfq("/system.slice", 300);
	count_bfq("/system.slice/db", 100);
	count_bfq("/user.slice", 100);
	check(sampler_take(&s, cgroup_tree_root(tree), topology, 2000000) == 0);
	check(sampler_is_fresh(&s, 2100000));
	check(!sampler_is_fresh(&s, 9000000));

	/* 300 + 100 + 400 ms of 800 */
	close_to(sample_got(&s, find("/system.slice/db"), sda), 300. / 800);
	close_to(sample_got(&s, find("/system.slice"), sda), 400. / 800);
	close_to(sample_got(&s, find("/system.slice/backup"), sda), 0);
	close_to(sample_got(&s, find("/system.slice/db"), sdb), 100. / 400);
	close_to(sample_got(&s, find("/system.slice"), sdb), 300. / 400);
	u = sample_usage(&s, find("/system.slice/db"), sda);
	check(u.time_ns == 300000000 && u.rbytes == 10240 && u.active);
	check(!sample_usage(&s, find("/system.slice/backup"), sda).active);

	/* 300/(300+100) of 100/(100+100); asking makes backup count. */
	close_to(sample_hweight(&s, find("/system.slice/db"), sda), 0.375);
	close_to(sample_hweight(&s, find("/system.slice/web"), sda), 0.125);
	close_to(sample_hweight(&s, find("/system.slice/backup"), sda),
		 500. / 900 / 2);
	close_to(sample_hweight(&s, find("/user.slice"), sda), 0.5);
	close_to(sample_hweight(&s, find("/user.slice/box"), sda), 0.5);
	close_to(sample_hweight(&s, find("/system.slice/db"), sdb), 0.5);

	/* Waiting without being served is active, and so is a reset counter. */
	count("/system.slice/backup", 4000, 10, 3);
	count("/system.slice/db", 5, 1, 0);
	check(sampler_take(&s, cgroup_tree_root(tree), topology, 3000000) == 0);
	check(sample_usage(&s, find("/system.slice/backup"), sda).active);
	u = sample_usage(&s, find("/system.slice/db"), sda);
	check(u.time_ns == 5000000 && u.rbytes == 1024);
	close_to(sample_hweight(&s, find("/system.slice/db"), sda), 300. / 800);

	cgroup_tree_free(tree);
	topology_free(topology);
	fake_remove(&roots);
	return 0;
}
