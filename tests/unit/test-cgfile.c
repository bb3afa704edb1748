/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The writer of cgroup files, on the cgroup /a and the disks sda (8:0, sutro) and sdb (8:16, bfq),
 * with files that behave like the kernel's (kernelfiles.c).
 */

#include <stdio.h>
#include <sys/sysmacros.h>

#include "fake.h"

#define A "/sys/fs/cgroup/a/"

static const char *const names[] = { "io.weight",	"io.bfq.weight",
				     "io.sutro.weight", "io.max",
				     "io.sutro.class",	"io.sutro.reserve",
				     "io.sutro.latency" };

/** struct test - a machine without settings, and a writer */
struct test {
	struct roots roots;
	struct cgroup_tree *tree;
	struct cgroup *a;
	struct cgfiles files;
	dev_t sda;
	dev_t sdb;
};

static void setup(struct test *t)
{
	*t = (struct test){ .sda = makedev(8, 0), .sdb = makedev(8, 16) };
	fake_new(&t->roots);
	fake_disk(&t->roots, "sda", "8:0", "sutro");
	fake_disk(&t->roots, "sdb", "8:16", "bfq");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *path = asprintf_or_null(A "%s", names[i]);

		fake_file(&t->roots, path, "%s",
			  streq(names[i], "io.max")	      ? ""
			  : streq(names[i], "io.sutro.class") ? "default be\n"
			  : streq(names[i], "io.sutro.latency")
				  ? "default max\n"
			  : streq(names[i], "io.sutro.reserve")
				  ? "default 0\n"
				  : "default 100\n");
	}
	t->a = fake_writer(&t->roots, &t->files, &t->tree);
}

static void teardown(struct test *t)
{
	fake_writer_remove(&t->roots, &t->files, t->tree);
}

/* The next daemon has what is in /run/sutro. */
static void restart(struct test *t)
{
	cgfiles_done(&t->files);
	cgfile_retry(t->a);
	check(cgfiles_init(&t->files, &t->roots, false) == 0);
}

static struct cgvalue parse(enum cgfile file, const char *text)
{
	struct cgvalue v;

	check(cgvalue_parse(file, text, &v) == 0);
	return v;
}

/* Make one line, or none, all lines of the daemon in a file. */
static int set(struct test *t, enum cgfile file, dev_t devno, const char *text)
{
	struct cgchange ch = { .devno = devno };

	if (!text)
		return cgfile_set(&t->files, t->a, file, NULL, 0);
	ch.value = parse(file, text);
	check(cgfile_set(&t->files, t->a, file, &ch, 1) == 0);
	return ch.error;
}

/* The number of warnings that this logs. */
static unsigned int warnings_of_set(struct test *t, enum cgfile file,
				    dev_t devno, const char *text)
{
	_cleanup_free_ char *log = NULL;
	int before = fake_log_begin(&t->roots);
	unsigned int n = 0;

	log_set_max_level(LOG_WARNING);
	set(t, file, devno, text);
	log_set_max_level(LOG_INFO);
	log = fake_log_end(&t->roots, before);
	for (const char *s = log; *s; s++)
		n += *s == '\n';
	return n;
}

static void test_only_differences_are_written(struct test *t)
{
	check(set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300") == 0);
	check(fake_has(&t->roots, A "io.sutro.weight",
		       "default 100\n8:0 300\n"));
	check(fake_writes(&t->roots) == 1);
	check(set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300") == 0);
	check(fake_writes(&t->roots) == 0);
}

static void test_set_withdraws_other_lines(struct test *t)
{
	fake_disk(&t->roots, "sdc", "8:32", "sutro");
	set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300");
	set(t, CGFILE_SUTRO_WEIGHT, makedev(8, 32), "200");
	check(fake_has(&t->roots, A "io.sutro.weight",
		       "default 100\n8:32 200\n"));
}

static void test_former_limits_come_back(struct test *t)
{
	const char *theirs = "8:0 rbps=max wbps=9 riops=max wiops=max\n";

	fake_file(&t->roots, A "io.max", "%s", theirs);
	set(t, CGFILE_MAX, t->sda, "rbps=5");
	set(t, CGFILE_MAX, t->sda, "rbps=6");
	restart(t);
	set(t, CGFILE_MAX, 0, NULL);
	check(fake_has(&t->roots, A "io.max", theirs));
	check(fake_has(&t->roots, "/run/sutro/ceilings", ""));
	/* A restored line is written no more. */
	fake_file(&t->roots, A "io.max", "%s", "");
	set(t, CGFILE_MAX, 0, NULL);
	check(fake_has(&t->roots, A "io.max", ""));
}

/* A record of a version that did not record the written value. */
static void test_record_without_the_written_value(struct test *t)
{
	fake_file(&t->roots, A "io.sutro.class", "default idle\n");
	fake_file(&t->roots, "/run/sutro/classes", "/a\trt\n");
	restart(t);
	set(t, CGFILE_SUTRO_CLASS, CGFILE_DEFAULT, "be");
	check(fake_has(&t->roots, "/run/sutro/classes",
		       "/a\trt\n/a\trt / be / idle\n"));
	set(t, CGFILE_SUTRO_CLASS, 0, NULL);
	check(fake_has(&t->roots, A "io.sutro.class", "default rt\n"));
	check(fake_has(&t->roots, "/run/sutro/classes", ""));
}

static struct cgvalue of_others(struct test *t, enum cgfile file, dev_t devno)
{
	struct cglines present;
	struct cgvalue v;

	check(cgfile_read(t->a, file, &present) == 0);
	v = cgfile_of_others(&t->files, t->a, &present, devno);
	cglines_done(&present);
	return v;
}

/* The daemon is killed after it has recorded a value, and before it has written it. */
static void test_killed_before_the_write(struct test *t)
{
	struct cgvalue next = parse(CGFILE_BFQ_WEIGHT, "400");
	_cleanup_free_ char *was = NULL;
	struct cglines before;

	fake_file(&t->roots, A "io.bfq.weight", "default 100\n8:16 200\n");
	set(t, CGFILE_BFQ_WEIGHT, t->sdb, "300");
	check(cgfile_read(t->a, CGFILE_BFQ_WEIGHT, &before) == 0);
	check(cgrecord_save(&t->files.records, t->a, &before, t->sdb, &next,
			    &was) == 0);
	cglines_done(&before);
	restart(t);
	check(of_others(t, CGFILE_BFQ_WEIGHT, t->sdb).number[0] == 200);
	/* The value before is the right one again. */
	set(t, CGFILE_BFQ_WEIGHT, t->sdb, "300");
	check(of_others(t, CGFILE_BFQ_WEIGHT, t->sdb).number[0] == 200);
	set(t, CGFILE_BFQ_WEIGHT, 0, NULL);
	check(fake_has(&t->roots, A "io.bfq.weight",
		       "default 100\n8:16 200\n"));
	check(fake_has(&t->roots, "/run/sutro/bfq", ""));
}

/* Once a line was written, its value before is no longer that of the daemon. */
static void test_others_set_the_value_before(struct test *t)
{
	const char *theirs = "8:0 rbps=5 wbps=max riops=max wiops=max\n";

	for (unsigned int restarted = 0; restarted < 2; restarted++) {
		set(t, CGFILE_MAX, t->sda, "rbps=5");
		set(t, CGFILE_MAX, t->sda, "rbps=6");
		if (restarted)
			restart(t);
		set(t, CGFILE_MAX, t->sda, "rbps=6");
		fake_file(&t->roots, A "io.max", "%s", theirs);
		check(of_others(t, CGFILE_MAX, t->sda).number[0] == 5);
		set(t, CGFILE_MAX, 0, NULL);
		check(fake_has(&t->roots, A "io.max", theirs));
		fake_file(&t->roots, A "io.max", "%s", "");
	}
}

static void test_restore(struct test *t)
{
	fake_file(&t->roots, A "io.sutro.class", "default rt\n");
	fake_file(&t->roots, A "io.bfq.weight", "default 109\n");
	fake_file(&t->roots, A "io.weight", "default 200\n8:16 7\n");
	set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300");
	set(t, CGFILE_SUTRO_WEIGHT, CGFILE_DEFAULT, "400");
	set(t, CGFILE_BFQ_WEIGHT, t->sdb, "200");
	set(t, CGFILE_SUTRO_CLASS, CGFILE_DEFAULT, "idle");
	check(fake_has(&t->roots, A "io.sutro.class", "default idle\n"));
	restart(t);
	check(cgfiles_restore(&t->files, cgroup_tree_root(t->tree)) == 0);
	check(fake_has(&t->roots, A "io.sutro.weight", "default 100\n"));
	check(fake_has(&t->roots, A "io.bfq.weight", "default 109\n"));
	check(fake_has(&t->roots, A "io.sutro.class", "default rt\n"));
	check(fake_has(&t->roots, A "io.weight", "default 200\n8:16 7\n"));
}

static void test_lines_of_others_in_io_weight(struct test *t)
{
	fake_file(&t->roots, "/sys/fs/cgroup/io.cost.qos",
		  "8:0 enable=1\n8:16 enable=1\n");
	fake_file(&t->roots, A "io.weight", "default 200\n8:16 7\n");
	set(t, CGFILE_WEIGHT, t->sda, "300");
	check(cgfile_take_echo(t->a));
	set(t, CGFILE_WEIGHT, t->sdb, "400");
	check(fake_has(&t->roots, A "io.weight", "default 200\n8:16 400\n"));
	check(cgfile_take_echo(t->a));
	/* The same content, written again. */
	check(!cgfile_take_echo(t->a));
	fake_file(&t->roots, A "io.weight", "default 50\n8:16 400\n");
	check(!cgfile_take_echo(t->a));
	check(cgfiles_restore(&t->files, cgroup_tree_root(t->tree)) == 0);
	check(fake_has(&t->roots, A "io.weight", "default 50\n8:16 7\n"));
}

/* Between our reading and our write, another program sets a limit of the same line. */
static void test_limit_of_others_at_the_same_moment(struct test *t)
{
	struct cgchange ch = { .devno = t->sda,
			       .value = parse(CGFILE_MAX, "rbps=5 riops=7") };
	struct cglines before;

	fake_file(&t->roots, A "io.max",
		  "8:0 rbps=9 wbps=max riops=max wiops=max\n");
	check(cgfile_read(t->a, CGFILE_MAX, &before) == 0);
	fake_file(&t->roots, A "io.max",
		  "8:0 rbps=9 wbps=3 riops=max wiops=max\n");
	check(cgfile_write(&t->files, t->a, &before, &ch, 1) == 0);
	cglines_done(&before);
	check(!ch.error && !cgfile_refusal(t->a, CGFILE_MAX, t->sda));
	check(fake_has(&t->roots, A "io.max",
		       "8:0 rbps=5 wbps=3 riops=7 wiops=max\n"));
	check(cgfiles_restore(&t->files, cgroup_tree_root(t->tree)) == 0);
	check(fake_has(&t->roots, A "io.max",
		       "8:0 rbps=9 wbps=3 riops=max wiops=max\n"));
}

static void test_removed_cgroup_is_forgotten(struct test *t)
{
	set(t, CGFILE_SUTRO_CLASS, CGFILE_DEFAULT, "rt");
	set(t, CGFILE_MAX, t->sda, "rbps=5");
	cgfiles_cgroup_gone(&t->files, t->a);
	check(fake_has(&t->roots, "/run/sutro/ceilings", ""));
	check(fake_has(&t->roots, "/run/sutro/classes", ""));
}

static void test_removed_device_is_forgotten(struct test *t)
{
	fake_file(&t->roots, "/sys/fs/cgroup/io.cost.qos",
		  "8:0 enable=1\n8:16 enable=1\n");
	fake_file(&t->roots, A "io.weight", "default 200\n8:16 7\n");
	set(t, CGFILE_WEIGHT, t->sdb, "300");
	set(t, CGFILE_MAX, t->sda, "rbps=5");
	cgfiles_device_gone(&t->files, t->sdb, false);
	check(fake_has(&t->roots, "/run/sutro/iocost", ""));
	cgfiles_device_gone(&t->files, t->sda, false);
	check(fake_has(&t->roots, "/run/sutro/ceilings", ""));
}

/* Lines that were written for the new device are restored; the weight of the former one is not. */
static void test_records_of_an_exchanged_device(struct test *t)
{
	fake_file(&t->roots, "/sys/fs/cgroup/io.cost.qos", "8:16 enable=1\n");
	fake_file(&t->roots, A "io.weight", "default 200\n8:16 7\n");
	set(t, CGFILE_WEIGHT, t->sdb, "default");
	set(t, CGFILE_MAX, t->sdb, "rbps=5");
	cgfiles_device_gone(&t->files, t->sdb, true);
	check(fake_has(&t->roots, "/run/sutro/iocost", ""));
	check(cgfiles_restore(&t->files, cgroup_tree_root(t->tree)) == 0);
	check(fake_has(&t->roots, A "io.weight", "default 200\n"));
	check(fake_has(&t->roots, A "io.max", ""));
	check(fake_has(&t->roots, "/run/sutro/ceilings", ""));
}

/* A tenant may have a tab in the name of a cgroup, which ends the key of a record. */
static void test_names_with_tabs_and_backslashes(struct test *t)
{
	static const char *const paths[] = { "/b\tc", "/b\\tc", "/b\\\tc",
					     "/d\\x2de" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_free_ char *file =
			asprintf_or_null("/sys/fs/cgroup%s/io.max", paths[i]);

		fake_file(&t->roots, file, "%s", "");
		check(cgroup_tree_scan(t->tree) == 0);
		t->a = cgroup_find(t->tree, paths[i]);
		set(t, CGFILE_MAX, t->sda, "rbps=5");
		check(!t->a->refusals);
		check(fake_has(&t->roots, file,
			       "8:0 rbps=5 wbps=max riops=max wiops=max\n"));
		set(t, CGFILE_MAX, t->sda, "rbps=6");
	}
	/* The path of systemd has the form that former daemons wrote. */
	restart(t);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_free_ char *file =
			asprintf_or_null("/sys/fs/cgroup%s/io.max", paths[i]);

		t->a = cgroup_find(t->tree, paths[i]);
		cgfiles_prune(&t->files, t->tree);
		set(t, CGFILE_MAX, 0, NULL);
		check(fake_has(&t->roots, file, ""));
	}
	check(fake_has(&t->roots, "/run/sutro/ceilings", ""));
}

static void test_records_of_a_former_daemon(struct test *t)
{
	fake_file(&t->roots, "/sys/fs/cgroup/d\\x2de/io.max",
		  "8:0 rbps=5 wbps=max riops=max wiops=max\n");
	check(cgroup_tree_scan(t->tree) == 0);
	fake_file(
		&t->roots, "/run/sutro/ceilings",
		"8:0 /d\\x2de\trbps=9 / rbps=5\n8:0 /gone\trbps=9 / rbps=5\n");
	restart(t);
	cgfiles_prune(&t->files, t->tree);
	t->a = cgroup_find(t->tree, "/d\\x2de");
	set(t, CGFILE_MAX, 0, NULL);
	check(fake_has(&t->roots, "/sys/fs/cgroup/d\\x2de/io.max",
		       "8:0 rbps=9 wbps=max riops=max wiops=max\n"));
	check(fake_has(&t->roots, "/run/sutro/ceilings", ""));
}

/* Its error is none of the kernel, which might take no line for the device. */
static void test_line_without_a_record_is_not_written(struct test *t)
{
	_cleanup_free_ char *text = NULL;
	struct cgchange ch = { .devno = t->sda,
			       .value = parse(CGFILE_MAX, "rbps=5"),
			       .is_attempt = true };

	fake_dir(&t->roots, "/run/sutro/ceilings");
	check(cgfile_set(&t->files, t->a, CGFILE_MAX, &ch, 1) == 0);
	check(fake_writes(&t->roots) == 0);
	check(ch.error && !ch.written && !cgchange_is_untaken(&ch));
	text = cgrefusal_text(cgfile_refusal(t->a, CGFILE_MAX, t->sda));
	check(strstr(text, "cannot be recorded in /run/sutro"));
	/* Known, and not tried again. */
	check(cgfile_set(&t->files, t->a, CGFILE_MAX, &ch, 1) == 0);
	check(ch.error && !cgchange_is_untaken(&ch));
}

static void test_refusal_is_of_one_line(struct test *t)
{
	fake_fault(&t->roots,
		   "io.max fail io.sutro.class fail io.sutro.weight fail");
	check(warnings_of_set(t, CGFILE_MAX, t->sda, "rbps=5") == 1);
	check(cgfile_refusal(t->a, CGFILE_MAX, t->sda)->error == -EIO);
	/* Nothing was written, so there is nothing to restore. */
	check(fake_has(&t->roots, "/run/sutro/ceilings", ""));
	/* The failure of another file is reported, too. */
	check(!cgfile_refusal(t->a, CGFILE_SUTRO_WEIGHT, t->sda));
	check(warnings_of_set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300") == 1);
	check(warnings_of_set(t, CGFILE_SUTRO_CLASS, CGFILE_DEFAULT, "rt") ==
	      1);
	/* Other lines and files are written. */
	fake_fault(&t->roots, "");
	check(set(t, CGFILE_SUTRO_WEIGHT, CGFILE_DEFAULT, "200") == 0);
	check(set(t, CGFILE_MAX, t->sdb, "rbps=5") == 0);
	check(fake_has(&t->roots, A "io.max",
		       "8:16 rbps=5 wbps=max riops=max wiops=max\n"));
}

static void test_refused_line_is_written_once(struct test *t)
{
	fake_fault(&t->roots, "io.sutro.weight ignore");
	check(warnings_of_set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300") == 1);
	check(set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300") == -EIO);
	check(fake_writes(&t->roots) == 1);
	/* Another value is tried, without another warning. */
	check(warnings_of_set(t, CGFILE_SUTRO_WEIGHT, t->sda, "400") == 0);
	check(fake_writes(&t->roots) == 1);
	cgfile_retry(t->a);
	check(warnings_of_set(t, CGFILE_SUTRO_WEIGHT, t->sda, "400") == 1);
	check(fake_writes(&t->roots) == 1);
	/* A write that succeeds ends the refusal. */
	fake_fault(&t->roots, "");
	check(set(t, CGFILE_SUTRO_WEIGHT, t->sda, "500") == 0);
	check(!cgfile_refusal(t->a, CGFILE_SUTRO_WEIGHT, t->sda));
}

static void test_refused_line_is_restored_at_the_end(struct test *t)
{
	set(t, CGFILE_MAX, t->sda, "rbps=5");
	fake_fault(&t->roots, "io.max fail");
	set(t, CGFILE_MAX, 0, NULL);
	check(cgfile_refusal(t->a, CGFILE_MAX, t->sda));
	fake_fault(&t->roots, "");
	check(cgfiles_restore(&t->files, cgroup_tree_root(t->tree)) == 0);
	check(fake_has(&t->roots, A "io.max", ""));
}

static void test_refusal_as_text(struct test *t)
{
	_cleanup_free_ char *text = NULL, *ignored = NULL;

	fake_fault(&t->roots, "io.sutro.weight ignore");
	set(t, CGFILE_SUTRO_WEIGHT, t->sda, "200");
	ignored = cgrefusal_text(
		cgfile_refusal(t->a, CGFILE_SUTRO_WEIGHT, t->sda));
	check(streq(ignored,
		    "the kernel ignored \"8:0 200\" for io.sutro.weight"));
	fake_fault(&t->roots, "io.sutro.weight fail");
	set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300");
	text = cgrefusal_text(
		cgfile_refusal(t->a, CGFILE_SUTRO_WEIGHT, t->sda));
	check(streq(text, "the kernel refused \"8:0 300\" for "
			  "io.sutro.weight: Input/output error"));
}

/* The caller handles a failed attempt for a device that the kernel does not have. */
static void test_attempt(struct test *t)
{
	struct cglines present;
	struct cgchange ch = { .devno = makedev(8, 99),
			       .value = parse(CGFILE_MAX, "rbps=5"),
			       .is_attempt = true };

	check(cgfile_read(t->a, CGFILE_MAX, &present) == 0);
	check(cgfile_write(&t->files, t->a, &present, &ch, 1) == 0);
	check(cgchange_is_untaken(&ch) && !t->a->refusals);
	fake_fault(&t->roots, "io.max fail");
	check(cgfile_write(&t->files, t->a, &present, &ch, 1) == 0);
	check(!cgchange_is_untaken(&ch) && t->a->refusals);
	cglines_done(&present);
}

static void test_dry_run_writes_nothing(struct test *t)
{
	cgfiles_done(&t->files);
	fake_file(&t->roots, "/run/sutro/classes", "/a\trt\n");
	check(cgfiles_init(&t->files, &t->roots, true) == 0);
	check(set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300") == 0);
	check(set(t, CGFILE_SUTRO_CLASS, 0, NULL) == 0);
	check(cgfiles_restore(&t->files, cgroup_tree_root(t->tree)) == 0);
	cgfiles_cgroup_gone(&t->files, t->a);
	check(fake_writes(&t->roots) == 0);
	check(fake_has(&t->roots, "/run/sutro/classes", "/a\trt\n"));
}

static void on_changed(const struct cgroup *c, const struct cgchange *ch,
		       const struct cglines *before,
		       const struct cglines *after, void *userdata)
{
	unsigned int *n = userdata;

	check(before->file == CGFILE_SUTRO_WEIGHT);
	check(cglines_get(before, ch->devno).number[0] == 0);
	check(cglines_get(after, ch->devno).number[0] == 300);
	(*n)++;
}

static void test_changes_are_reported(struct test *t)
{
	unsigned int n = 0;

	t->files.changed = on_changed;
	t->files.userdata = &n;
	set(t, CGFILE_SUTRO_WEIGHT, t->sda, "300");
	fake_fault(&t->roots, "io.sutro.weight ignore");
	set(t, CGFILE_SUTRO_WEIGHT, t->sda, "400");
	check(n == 1);
}

static void test_without_a_file(struct test *t)
{
	_cleanup_free_ char *path =
		asprintf_or_null("%s" A "io.sutro.class", t->roots.prefix);

	check(unlink(path) == 0);
	check(warnings_of_set(t, CGFILE_SUTRO_CLASS, CGFILE_DEFAULT, "rt") ==
	      0);
	check(fake_writes(&t->roots) == 0);
}

int main(void)
{
	run_tests(
		test_only_differences_are_written,
		test_set_withdraws_other_lines, test_former_limits_come_back,
		test_record_without_the_written_value,
		test_killed_before_the_write, test_others_set_the_value_before,
		test_restore, test_limit_of_others_at_the_same_moment,
		test_lines_of_others_in_io_weight,
		test_removed_cgroup_is_forgotten,
		test_removed_device_is_forgotten,
		test_records_of_an_exchanged_device,
		test_names_with_tabs_and_backslashes,
		test_records_of_a_former_daemon,
		test_line_without_a_record_is_not_written,
		test_refusal_is_of_one_line, test_refused_line_is_written_once,
		test_refused_line_is_restored_at_the_end, test_refusal_as_text,
		test_attempt, test_dry_run_writes_nothing,
		test_changes_are_reported, test_without_a_file);
	return 0;
}
