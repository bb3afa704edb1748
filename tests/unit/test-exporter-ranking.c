/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which cgroups have series, and for how long that choice is kept. */

#include <fcntl.h>
#include <sys/resource.h>

#include "exporter/ranking.h"
#include "fake.h"

#define MOST 3U
#define PROMISES_MAX 8U

/**
 * struct test - a machine
 * @chosen: the cgroups of the last reading, sorted, with a blank behind each
 * @times: the sum of their device time
 */
struct test {
	struct roots roots;
	struct ranking ranking;
	uint64_t now_usec;
	const char *promised[PROMISES_MAX];
	size_t n_promised;
	struct text chosen;
	uint64_t time_ns;
};

static void setup(struct test *t)
{
	*t = (struct test){ .ranking.most = MOST, .now_usec = 1000 };
	fake_new(&t->roots);
}

static void teardown(struct test *t)
{
	ranking_done(&t->ranking);
	text_freep(&t->chosen);
	fake_remove(&t->roots);
}

static void use(struct test *t, unsigned int number, uint64_t time_ns)
{
	_cleanup_free_ char *path = asprintf_or_null(
		"/sys/fs/cgroup/a%u.service/io.sutro.stat", number);

	fake_file(&t->roots, path, "259:0 time_ns=%llu rlat=\n",
		  (unsigned long long)time_ns);
}

static void use_bytes(struct test *t, const char *cgroup, unsigned int bytes)
{
	_cleanup_free_ char *path =
		asprintf_or_null("/sys/fs/cgroup/%s/io.stat", cgroup);

	fake_file(&t->roots, path, "8:0 rbytes=%u wbytes=0 rios=1 wios=0\n",
		  bytes);
}

static int by_cgroup(const void *a, const void *b)
{
	return strcmp(folder_shown(((const struct use *)a)->folder),
		      folder_shown(((const struct use *)b)->folder));
}

static void take(struct test *t)
{
	_cleanup_close_ int sysfs = open(t->roots.sysfs, O_PATH | O_DIRECTORY);
	_cleanup_close_ int hierarchy =
		open(t->roots.cgroup, O_PATH | O_DIRECTORY);
	struct state_promise promises[PROMISES_MAX] = {};
	struct leaves leaves = { .sysfs = sysfs };
	struct uses uses;

	for (size_t i = 0; i < t->n_promised; i++)
		promises[i].cgroup = t->promised[i];
	check(ranking_read(&t->ranking, hierarchy, &leaves, promises,
			   t->n_promised, t->now_usec, &uses) == 0);
	if (uses.n)
		qsort(uses.items, uses.n, sizeof(*uses.items), by_cgroup);
	text_freep(&t->chosen);
	t->chosen = (struct text){};
	t->time_ns = 0;
	check(text_add(&t->chosen, "%s", "") == 0);
	for (size_t i = 0; i < uses.n; i++) {
		check(text_add(&t->chosen, "%s ",
			       folder_shown(uses.items[i].folder)) == 0);
		t->time_ns += uses.items[i].counts[COUNTER_TIME_NS];
	}
	uses_done(&uses);
	leaves_done(&leaves);
}

static bool chooses(struct test *t, const char *cgroups)
{
	take(t);
	return streq(t->chosen.p, cgroups);
}

static void test_most_used_come_first(struct test *t)
{
	for (unsigned int i = 0; i < 5; i++)
		use(t, i, i + 1);
	check(chooses(t, "/a2.service /a3.service /a4.service "));
	check(t->ranking.n_omitted == 2 && t->time_ns == 3 + 4 + 5);
}

static void test_all(struct test *t)
{
	t->ranking.most = SIZE_MAX;
	for (unsigned int i = 0; i < 4; i++)
		use(t, i, i + 1);
	check(chooses(t, "/a0.service /a1.service /a2.service /a3.service "));
	check(t->ranking.n_omitted == 0);
	/* Without a choice, a new cgroup is there at once. */
	use(t, 9, 1);
	check(chooses(t, "/a0.service /a1.service /a2.service /a3.service "
			 "/a9.service "));
}

static void test_bytes_count_without_the_module(struct test *t)
{
	fake_disk(&t->roots, "sda", "8:0", "none");
	use_bytes(t, "few.service", 7);
	use_bytes(t, "more.service", 9);
	use_bytes(t, "most.service", 10);
	use_bytes(t, "other.service", 8);
	check(chooses(t, "/more.service /most.service /other.service "));
	check(t->ranking.n_omitted == 1);
}

static void test_promised_come_before_others(struct test *t)
{
	for (unsigned int i = 0; i < 5; i++)
		use(t, i, i + 1);
	t->promised[0] = "/a0.service";
	t->promised[1] = "/gone.service";
	t->n_promised = 2;
	check(chooses(t, "/a0.service /a3.service /a4.service "));
	/* More promises than there is room for. */
	t->promised[1] = "/a2.service";
	t->promised[2] = "/a1.service";
	t->promised[3] = "/a3.service";
	t->n_promised = 4;
	check(chooses(t, "/a1.service /a2.service /a3.service "));
}

static void test_choice_is_kept_for_a_minute(struct test *t)
{
	_cleanup_free_ char *folder = asprintf_or_null(
		"%s/sys/fs/cgroup/a4.service", t->roots.prefix);

	for (unsigned int i = 0; i < 5; i++)
		use(t, i, i + 1);
	check(chooses(t, "/a2.service /a3.service /a4.service "));
	use(t, 0, 99);
	use(t, 4, 100);
	t->now_usec += RANKING_USEC - 1;
	check(chooses(t, "/a2.service /a3.service /a4.service "));
	check(t->ranking.n_omitted == 2);
	/* The counters are those of now. */
	check(t->time_ns == 3 + 4 + 100);
	/* Another promise is a reason for a new choice. */
	t->promised[0] = "/a1.service";
	t->n_promised = 1;
	check(chooses(t, "/a0.service /a1.service /a4.service "));
	use(t, 2, 1000);
	t->now_usec += RANKING_USEC - 1;
	check(chooses(t, "/a0.service /a1.service /a4.service "));
	t->now_usec += 1;
	check(chooses(t, "/a1.service /a2.service /a4.service "));
	/* One that is removed has no counters; nothing takes its place until then. */
	fake_remove_dir(folder);
	check(chooses(t, "/a1.service /a2.service "));
}

/* A cgroup with one below it, and three others. */
static void use_above_others(struct test *t)
{
	use_bytes(t, "top.slice", 1000);
	use_bytes(t, "top.slice/below.service", 1);
	fake_file(&t->roots, "/sys/fs/cgroup/top.slice/io.sutro.stat",
		  "259:0 time_ns=5000 rlat=\n");
	for (unsigned int i = 0; i < 3; i++)
		use(t, i, 100);
}

/* io.stat of a cgroup counts those below it, whether these are chosen or not. */
static void test_cgroup_above_others_that_are_not_chosen(struct test *t)
{
	fake_disk(&t->roots, "sda", "8:0", "none");
	use_above_others(t);
	check(chooses(t, "/a0.service /a1.service /top.slice "));
	check(t->ranking.n_omitted == 2);
	check(chooses(t, "/a0.service /a1.service /top.slice "));
}

/* Nor are they counted twice when a leaf gets another scheduler after the choice. */
static void test_cgroup_above_others_and_another_scheduler(struct test *t)
{
	fake_disk(&t->roots, "sda", "8:0", "sutro");
	use_bytes(t, ".", 1001);
	use_above_others(t);
	check(chooses(t, "/a0.service /a1.service /top.slice "));
	check(t->ranking.n_omitted == 1);
	fake_file(&t->roots, "/sys/devices/virtual/block/sda/queue/scheduler",
		  "[none] sutro\n");
	check(chooses(t, "/a0.service /a1.service /top.slice "));
	check(t->ranking.n_omitted == 2);
}

/* Too many open files are no reason to leave out cgroups: the next choice would last a minute. */
static void test_no_choice_without_files(struct test *t)
{
	_cleanup_close_ int hierarchy =
		open(t->roots.cgroup, O_PATH | O_DIRECTORY);
	struct leaves leaves = { .sysfs = -1 };
	struct rlimit limit, none;
	struct uses uses = {};
	int err;

	use(t, 1, 1);
	check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = (struct rlimit){ hierarchy + 1, limit.rlim_max };
	check(setrlimit(RLIMIT_NOFILE, &none) == 0);
	err = ranking_read(&t->ranking, hierarchy, &leaves, NULL, 0,
			   t->now_usec, &uses);
	check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	check(err == -EMFILE);
	check(chooses(t, "/a1.service "));
}

static uint64_t random_use(unsigned int *seed)
{
	return rand_r(seed) % 4;
}

/* No cgroup that is left out comes before one that is chosen. */
static void test_random_choices(struct test *t)
{
	static const char *const names[] = { "/a0.service", "/a1.service",
					     "/a2.service", "/a3.service",
					     "/a4.service", "/a5.service" };
	unsigned int seed = 3;

	for (unsigned int n = 0; n < cases(2000); n++) {
		uint64_t used[ARRAY_SIZE(names)];
		unsigned int n_chosen = 0;
		bool promised[ARRAY_SIZE(names)] = {};

		t->ranking.most = rand_r(&seed) % 7;
		t->now_usec += RANKING_USEC;
		t->n_promised = 0;
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			use(t, i, used[i] = random_use(&seed));
			promised[i] = rand_r(&seed) % 3 == 0;
			if (promised[i])
				t->promised[t->n_promised++] = names[i];
		}
		take(t);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			n_chosen += strstr(t->chosen.p, names[i]) != NULL;
		check(n_chosen == (t->ranking.most < ARRAY_SIZE(names)
					   ? t->ranking.most
					   : ARRAY_SIZE(names)));
		check(t->ranking.n_omitted == ARRAY_SIZE(names) - n_chosen);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			for (size_t j = 0; j < ARRAY_SIZE(names); j++)
				if (strstr(t->chosen.p, names[i]) &&
				    !strstr(t->chosen.p, names[j]))
					check(promised[i] > promised[j] ||
					      (promised[i] == promised[j] &&
					       used[i] >= used[j]));
	}
}

int main(void)
{
	run_tests(test_most_used_come_first, test_all,
		  test_bytes_count_without_the_module,
		  test_promised_come_before_others,
		  test_choice_is_kept_for_a_minute,
		  test_cgroup_above_others_that_are_not_chosen,
		  test_cgroup_above_others_and_another_scheduler,
		  test_no_choice_without_files, test_random_choices);
	return 0;
}
