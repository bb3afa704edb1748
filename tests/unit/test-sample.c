/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Entitlement and share, on a tree whose numbers can be worked out by hand:
 *
 *	/ -- system.slice 100 -- db 300
 *	  |                  |-- web 100
 *	  |                  `-- backup 500 (idle)
 *	  `- user.slice 100 ---- box (no files of the io controller)
 */

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "fake.h"
#include "host/discover.h"
#include "host/sampler.h"
#include "policy/entitlement.h"
#include "policy/policy.h"

static struct roots roots;
static struct topology *topology;
static struct cgroup_tree *tree;

static void on_added(struct cgroup *c, void *userdata)
{
	static const struct {
		const char *name;
		uint64_t weight;
	} weights[] = { { "db", 300 }, { "web", 100 }, { "backup", 500 } };

	c->policy->weight = WEIGHT_DEFAULT;
	for (size_t i = 0; i < ARRAY_SIZE(weights); i++)
		if (streq(c->name, weights[i].name))
			c->policy->weight = weights[i].weight;
}

static void on_removed(struct cgroup *c, void *userdata)
{
	samples_drop(c);
}

static const struct cgroup_ops ops = { .policy_bytes = sizeof(struct policy),
				       .added = on_added,
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

static void take(struct sampler *s, uint64_t usec)
{
	check(sampler_take(s, cgroup_tree_root(tree), topology, usec) == 0);
}

/* Lines of io.sutro.active: "DEVNO CGROUP COUNTERS", the cgroup by its path. */
static void active(const char *const *lines, size_t n)
{
	_cleanup_(text_freep) struct text t = {};
	char file[PATH_MAX];

	for (size_t i = 0; i < n; i++) {
		char devno[16], path[64];
		int at = 0;

		check(sscanf(lines[i], "%15s %63s %n", devno, path, &at) == 2);
		check(text_add(&t, "%s %llu %s\n", devno,
			       (unsigned long long)find(path)->inode,
			       lines[i] + at) == 0);
	}
	/* GLib 2.74 keeps the end of a file whose new text is shorter. */
	snprintf(file, sizeof(file), "%s/io.sutro.active", roots.cgroup);
	unlink(file);
	fake_file(&roots, "/sys/fs/cgroup/io.sutro.active", "%s", t.p ?: "");
}

#define ACTIVE(...)                                  \
	active((const char *const[]){ __VA_ARGS__ }, \
	       sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *))

/* A time that falls by a request that ended while it was read is no reset; others are. */
static void test_times(struct sampler *g, const struct cgroup *db,
		       const struct device *sda)
{
	static const struct {
		const char *line;
		uint64_t busy_ns, backlog_ns;
	} steps[] = {
		{ "time_ns=70 rios=3 busy_ns=900 backlog_ns=800", 900, 800 },
		{ "time_ns=80 rios=4 busy_ns=890 backlog_ns=799", 0, 0 },
		{ "time_ns=90 rios=5 busy_ns=1000 backlog_ns=850", 100, 50 },
		{ "time_ns=5 rios=1 busy_ns=4 backlog_ns=3", 4, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		const struct usage *u;
		char line[128];

		snprintf(line, sizeof(line), "8:0 /system.slice/db %s",
			 steps[i].line);
		ACTIVE(line);
		take(g, 2500000 + i * 250000);
		u = sample_usage(g, db, sda);
		check(u->busy_ns == steps[i].busy_ns);
		check(u->backlog_ns == steps[i].backlog_ns);
	}
}

/* The governor's samples: cgroups without a line have no use, and numbers that have not
 * grown since the last pass are no evidence.
 */
static void test_active(const struct device *sda, const struct device *sdb)
{
	struct sampler g = { .slot = SAMPLER_GOVERNOR };
	struct cgroup *root = cgroup_tree_root(tree);
	struct cgroup *db = find("/system.slice/db");
	struct cgroup *web = find("/system.slice/web");
	const struct usage *u;
	struct latencies reads = {};

	db->sampled = SAMPLE_TIME | SAMPLE_RATE | SAMPLE_LATENCY;
	web->sampled = SAMPLE_TIME;
	ACTIVE("8:0 /system.slice/db time_ns=1000 rlat=0,5",
	       "8:0 /user.slice time_ns=7");
	take(&g, 1000000);
	check(!sample_usage(&g, db, sda)->active);
	ACTIVE("8:0 /system.slice/db time_ns=4000 rbytes=9 rlat=0,25,0,1",
	       "8:0 /system.slice/web time_ns=500 queued=2",
	       "8:16 /system.slice/web time_ns=500",
	       "8:0 /user.slice time_ns=99");
	take(&g, 1250000);
	close_to(sampler_interval_s(&g), 0.25);
	u = sample_usage(&g, db, sda);
	check(u->time_ns == 3000 && u->rbytes == 9);
	sample_add_latencies(&g, db, sda, &reads);
	check(reads.count[1] == 20 && reads.count[3] == 1);
	/* 20 of 21 took less than 1.5 * 2^14 ns, the last less than 1.5 * 2^15. */
	check(sample_latency_us(&reads, 0.95) == 24);
	check(sample_latency_us(&reads, 0.99) == 49);
	/* A new cgroup may have used the device long ago. Without a request there is no sample. */
	u = sample_usage(&g, web, sda);
	check(u->time_ns == 0 && u->queued == 2 && u->active);
	check(!sample_usage(&g, find("/user.slice"), sda)->active);
	check(!sample_usage(&g, web, sdb)->active);
	/* No line any more, then again. */
	active(NULL, 0);
	take(&g, 1500000);
	check(sample_usage(&g, db, sda)->time_ns == 0);
	ACTIVE("8:0 /system.slice/db time_ns=4100 rios=9 rlat=0,25,0,1");
	take(&g, 1750000);
	check(sample_usage(&g, db, sda)->time_ns == 100);
	reads = (struct latencies){};
	sample_add_latencies(&g, db, sda, &reads);
	check(sample_latency_us(&reads, 0.5) == 0);
	/* After two idle passes a cgroup has no usage of its own, as one that never had any. */
	check(sample_usage(&g, web, sda) == sample_usage(&g, web, sdb));
	/* The scheduler was switched there and back: counts begin again. */
	ACTIVE("8:0 /system.slice/db time_ns=50 rios=2 rlat=0,0,2");
	take(&g, 2000000);
	check(sample_usage(&g, db, sda)->time_ns == 50);
	sample_add_latencies(&g, db, sda, &reads);
	check(sample_latency_us(&reads, 0.5) == 0);
	/* A pass that gives a line twice. */
	ACTIVE("8:0 /system.slice/db time_ns=60 queued=3",
	       "8:0 /system.slice/db time_ns=65 queued=4");
	take(&g, 2250000);
	u = sample_usage(&g, db, sda);
	check(u->time_ns == 15 && u->queued == 3);
	check(sample_usage(&g, root, sda)->time_ns ==
	      0); /* no caller requested it */
	test_times(&g, db, sda);
	sampler_forget(&g, root);
}

/* ---- a sample in parts ---- */

/* Cgroups /many/0 and so on have used @ms each. */
static void count_many(unsigned int n, unsigned long long ms)
{
	for (unsigned int i = 0; i < n; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/many/%u", i);
		count(path, ms, ms, 0);
	}
}

static void drop(unsigned int number)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/many/%u/io.sutro.stat", roots.cgroup,
		 number);
	check(unlink(path) == 0);
	*strrchr(path, '/') = '\0';
	check(rmdir(path) == 0);
}

/* The others have their sums, whichever cgroups come and go between two parts. */
static void test_parts(struct device *sda)
{
	const unsigned int n = 2 * CGROUP_BATCH;
	struct sampler s = {};
	unsigned int left = 0;

	count("/many", 0, 0, 0);
	count_many(n, 10);
	check(cgroup_tree_scan(tree) == 0);
	take(&s, 1000000);
	count_many(n, 13);
	take(&s, 2000000);
	check(sampler_is_fresh(&s, 2000000));
	check(sample_usage(&s, find("/many"), sda)->time_ns == n * 3000000ULL);

	count_many(n, 20);
	sampler_begin(&s, cgroup_tree_root(tree));
	check(!sampler_is_fresh(&s, 2000000));
	check(sampler_next(&s, topology, 3000000) == 1);
	check(!sampler_is_fresh(&s, 3000000));
	/* Every second one that the first part has read, or not read. */
	for (unsigned int i = 0; i < n; i += 2)
		drop(i);
	count("/many/new", 20, 20, 0);
	check(cgroup_tree_scan(tree) == 0);
	while (sampler_next(&s, topology, 3000000) > 0)
		check(!sampler_is_fresh(&s, 3000000));
	check(sampler_is_fresh(&s, 3000000));
	for (unsigned int i = 1; i < n; i += 2) {
		char path[64];

		snprintf(path, sizeof(path), "/many/%u", i);
		check(sample_usage(&s, find(path), sda)->time_ns == 7000000);
		left++;
	}
	/* Those that were read before they were removed have had their time. */
	check(sample_usage(&s, find("/many"), sda)->time_ns >= left * 7000000);
	check(sample_usage(&s, find("/many"), sda)->time_ns <= n * 7000000ULL);
	/* A new one counts from the sample on that follows its first one. */
	check(sample_usage(&s, find("/many/new"), sda)->time_ns == 0);
	sampler_forget(&s, cgroup_tree_root(tree));
}

/* ---- cgroups that do not change ---- */

/** struct twin - the governor's sampler on a tree of its own */
struct twin {
	struct cgroup_tree *tree;
	struct sampler s;
};

static struct twin twin(void)
{
	struct twin t = { .s = { .slot = SAMPLER_GOVERNOR } };
	struct cgroup *c;

	check(cgroup_tree_new(&roots, NULL, &ops, NULL, &t.tree) == 0);
	check(cgroup_tree_scan(t.tree) == 0);
	c = cgroup_tree_root(t.tree);
	for (; c; c = cgroup_next(cgroup_tree_root(t.tree), c))
		c->sampled = SAMPLE_TIME;
	return t;
}

static void twin_take(struct twin *t, uint64_t usec)
{
	check(sampler_take(&t->s, cgroup_tree_root(t->tree), topology, usec) ==
	      0);
}

/* The differences are the same in both, and the first one lists its active cgroups. */
static void check_same(const struct twin *a, const struct twin *b,
		       const struct device *leaf)
{
	struct cgroup *root = cgroup_tree_root(a->tree), *active = NULL;
	unsigned int n = 0, n_listed = 0;

	for (struct cgroup *c = root; c; c = cgroup_next(root, c)) {
		const struct cgroup *d = cgroup_find(b->tree, c->path);
		const struct usage *u = sample_usage(&a->s, c, leaf);
		const struct usage *v = sample_usage(&b->s, d, leaf);

		check(u->time_ns == v->time_ns && u->rbytes == v->rbytes);
		check(u->queued == v->queued && u->active == v->active);
		check(sample_is_active(&a->s, c) == sample_is_active(&b->s, d));
		n += sample_is_active(&a->s, c);
	}
	while ((active = sampler_next_active(&a->s, active)))
		n_listed += sample_is_active(&a->s, active);
	check(n == n_listed);
}

/* A sampler that looks at busy cgroups only has what one has that looks at all of them each time. */
static void test_quiet_cgroups(const struct device *sda)
{
	static const char *const names[] = { "/system.slice/db",
					     "/system.slice/web", "/user.slice",
					     "/many/1", "/many/3" };
	struct twin a = twin(), b = twin();
	unsigned int counts[ARRAY_SIZE(names)] = {}, random = 1;
	bool was_quiet = false;

	for (unsigned int round = 1; round < 600; round++) {
		char text[ARRAY_SIZE(names)][128];
		const char *lines[ARRAY_SIZE(names)];
		size_t n = 0;

		random = random * 1103515245 + 12345;
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			unsigned int bits = random >> (8 + 4 * i) & 15;

			/* Rounds without any line, and lines that stand still. */
			if (round % 50 < 5 || bits > 9)
				continue;
			counts[i] += bits > 3 ? bits : 0;
			snprintf(
				text[n], sizeof(text[n]),
				"8:0 %s time_ns=%u rbytes=%u rios=%u queued=%u",
				names[i], counts[i] * 7, counts[i] * 512,
				counts[i], bits == 1);
			lines[n] = text[n];
			n++;
		}
		active(lines, n);
		if (round == 300)
			sampler_renew(&a.s);
		sampler_renew(&b.s);
		twin_take(&a, round * 250000ULL);
		twin_take(&b, round * 250000ULL);
		check_same(&a, &b, sda);
		was_quiet |= a.s.n_settled > 1;
	}
	check(was_quiet);
	cgroup_tree_free(a.tree);
	cgroup_tree_free(b.tree);
}

int main(void)
{
	struct sampler s = {};
	struct device *sda, *sdb;
	const struct usage *u;

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
	check(topology_new(&roots, NULL, &topology) == 0);
	check(cgroup_tree_new(&roots, NULL, &ops, NULL, &tree) == 0);
	check(cgroup_tree_scan(tree) == 0);
	sda = topology_by_name(topology, "sda");
	sdb = topology_by_name(topology, "sdb");

	check(!sampler_is_fresh(&s, 1000000));
	take(&s, 1000000);
	check(!sampler_is_fresh(&s, 1000000));
	close_to(sample_got(&s, find("/system.slice/db"), sda), 0);

	count("/system.slice/db", 1300, 20, 0);
	count("/system.slice/web", 600, 10, 0);
	count("/user.slice", 400, 8, 0);
	count_bfq("/", 400);
	count_bfq("/system.slice", 300);
	count_bfq("/system.slice/db", 100);
	count_bfq("/user.slice", 100);
	take(&s, 2000000);
	check(sampler_is_fresh(&s, 2100000));
	check(!sampler_is_fresh(&s, 9000000));
	s.before_usec = 0;
	check(!sampler_is_fresh(&s, 2100000));
	s.before_usec = 1600000;
	check(!sampler_is_fresh(&s, 2100000));
	s.before_usec = 1000000;

	/* 300 + 100 + 400 ms of 800 */
	close_to(sample_got(&s, find("/system.slice/db"), sda), 300. / 800);
	close_to(sample_got(&s, find("/system.slice"), sda), 400. / 800);
	close_to(sample_got(&s, find("/system.slice/backup"), sda), 0);
	close_to(sample_got(&s, find("/system.slice/db"), sdb), 100. / 400);
	close_to(sample_got(&s, find("/system.slice"), sdb), 300. / 400);
	u = sample_usage(&s, find("/system.slice/db"), sda);
	check(u->time_ns == 300000000 && u->rbytes == 10240 && u->active);
	check(!sample_usage(&s, find("/system.slice/backup"), sda)->active);

	/* 300/(300+100) of 100/(100+100); the query makes backup count. */
	close_to(entitlement(&s, find("/system.slice/db"), sda), 0.375);
	close_to(entitlement(&s, find("/system.slice/web"), sda), 0.125);
	close_to(entitlement(&s, find("/system.slice/backup"), sda),
		 500. / 900 / 2);
	close_to(entitlement(&s, find("/user.slice"), sda), 0.5);
	close_to(entitlement(&s, find("/user.slice/box"), sda), 0.5);
	close_to(entitlement(&s, find("/system.slice/db"), sdb), 0.5);

	/* Waiting without being served is active, and so is a reset counter. */
	count("/system.slice/backup", 4000, 10, 3);
	count("/system.slice/db", 5, 1, 0);
	take(&s, 3000000);
	check(sample_usage(&s, find("/system.slice/backup"), sda)->active);
	u = sample_usage(&s, find("/system.slice/db"), sda);
	check(u->time_ns == 5000000 && u->rbytes == 1024);
	close_to(entitlement(&s, find("/system.slice/db"), sda), 300. / 800);

	test_active(sda, sdb);
	sampler_forget(&s, cgroup_tree_root(tree));
	test_parts(sda);
	test_quiet_cgroups(sda);

	cgroup_tree_free(tree);
	topology_free(topology);
	fake_remove(&roots);
	return 0;
}
