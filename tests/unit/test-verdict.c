/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The state of a floor and its cause: the test sets what the law found, and the files of the
 * machine have the evidence.
 */

#include "control/verdict.h"
#include "fake-control.h"
#include "host/sampler.h"
#include "policy/policy.h"

#define DB "/app.slice/db"
#define CGROUPS "/sys/fs/cgroup"

/** struct test - a machine with a floor of db; @sampler: with samples of the last second */
struct test {
	struct fake_control f;
	struct plant plant;
	struct sampler sampler;
	unsigned int n_samples;
};

static void setup(struct test *t)
{
	*t = (struct test){ .sampler.slot = SAMPLER_GOVERNOR };
	fake_control_new(&t->f);
}

static void teardown(struct test *t)
{
	plant_free(&t->plant);
	fake_control_free(&t->f);
}

static void promise(struct test *t, enum promise_key key, const char *text)
{
	fake_control_promise(&t->f, DB, key, text);
	check(plant_make(&t->plant, &t->f.context, false) == 0);
}

/* A second in which db and web read @kb thousand bytes of sda, in reads of 4 kB. */
static void sample_both(struct test *t, uint64_t kb, uint64_t web_kb)
{
	struct cgroup *root = cgroup_tree_root(t->f.machine.tree);
	const uint64_t n = ++t->n_samples;

	fake_control_active(&t->f, "8:0",
			    (uint64_t[]){ n * 500, web_kb ? n * 500 : 0, 0 },
			    (uint64_t[]){ n * kb, n * web_kb, 0 });
	check(sampler_take(&t->sampler, root, t->f.machine.topology,
			   n * 1000000) == 0);
}

static void sample(struct test *t, uint64_t kb)
{
	sample_both(t, kb, 0);
}

/* A verdict after a tick for which the law found @state. */
static struct governed *report(struct test *t, enum control_state state)
{
	struct governed *f = &t->plant.floors[0];

	if (f->target)
		f->target->state = state;
	else
		control_promise(t->plant.control, f->number)->state = state;
	check(verdicts_report(&t->plant, &t->sampler, &t->f.context, 0.25) ==
	      0);
	return f;
}

static bool has(const struct governed *f, const char *part)
{
	bool found = f->cause && strstr(f->cause, part);

	if (!found)
		fprintf(stderr, "\"%s\" has no \"%s\"\n", f->cause ?: "", part);
	return found;
}

static void set_memory(struct test *t, const char *cgroup, const char *stat)
{
	_cleanup_free_ char *file =
		asprintf_or_null(CGROUPS "%s/memory.stat", cgroup);

	fake_file(&t->f.machine.roots, file, "%s\n", stat);
}

static void set_controllers(struct test *t, const char *names)
{
	fake_file(&t->f.machine.roots, CGROUPS DB "/cgroup.controllers", "%s\n",
		  names);
}

static void test_cgroup_without_the_io_controller(struct test *t)
{
	struct governed *f;

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	set_controllers(t, "cpu memory pids");
	f = report(t, CONTROL_IDLE);
	check(f->state == CONTROL_UNOBSERVED);
	check(has(f, "the io controller is not enabled for " DB));
	check(has(f, "write +io to cgroup.subtree_control"));
	report(t, CONTROL_IDLE);
	check(t->f.n_states == 1);
	set_controllers(t, "cpu io memory pids");
	check(streq(report(t, CONTROL_IDLE)->cause, ""));
	check(f->state == CONTROL_IDLE);
}

/* Between two looks at the file. */
static void test_io_controller_that_is_enabled_meanwhile(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	set_controllers(t, "cpu io memory pids");
	check(has(report(t, CONTROL_UNOBSERVED),
		  "the io controller is not enabled for " DB));
}

static void test_cgroup_that_is_gone_is_idle(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	check(report(t, CONTROL_IDLE)->state == CONTROL_IDLE);
}

static void test_each_change_is_reported_once(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	check(report(t, CONTROL_HELD)->state == CONTROL_HELD);
	check(t->f.n_states == 1);
	report(t, CONTROL_HELD);
	check(t->f.n_states == 1);
	check(streq(report(t, CONTROL_IDLE)->cause, ""));
	check(t->f.n_states == 2);
}

static void test_complaint_ends_when_it_holds(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	check(!report(t, CONTROL_HELD)->complained);
	check(report(t, CONTROL_CROWDED)->complained);
	check(report(t, CONTROL_SETTLING)->complained);
	check(report(t, CONTROL_IDLE)->complained);
	check(!report(t, CONTROL_HELD)->complained);
	check(!report(t, CONTROL_SETTLING)->complained);
}

static void test_overload_names_leaf_and_shares(struct test *t)
{
	struct control_promise *p;
	struct governed *f;

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	p = control_promise(t->plant.control, 0);
	p->bottleneck = 0;
	p->phi = 0.8;
	f = report(t, CONTROL_INFEASIBLE);
	check(has(f, "of the time of /dev/sda"));
	check(has(f, "so this one is granted less than its value"));
	check(!strstr(f->cause, "bytes at the leaves"));
}

/* One stream serves both floors of db, and app.slice needs no more than the units in it. */
static void test_overload_counts_traffic_once(struct test *t)
{
	fake_control_promise(&t->f, DB, PROMISE_READ_BANDWIDTH_MIN,
			     "/dev/sda 60%");
	fake_control_promise(&t->f, DB, PROMISE_READ_BANDWIDTH_MIN,
			     "/dev/sda 50%");
	fake_control_promise(&t->f, "/app.slice", PROMISE_READ_BANDWIDTH_MIN,
			     "/dev/sda 40%");
	promise(t, PROMISE_WRITE_BANDWIDTH_MIN, "/dev/sda 70%");
	control_admit(t->plant.control);
	control_promise(t->plant.control, 0)->bottleneck = 0;
	check(has(report(t, CONTROL_INFEASIBLE),
		  "the floors need 130 % of the time of /dev/sda"));
}

/* The state is found again some seconds later than the grants. */
static void test_overload_that_is_over(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	check(has(report(t, CONTROL_INFEASIBLE), "now they fit"));
}

static void test_copies_of_a_mirror_are_named(struct test *t)
{
	struct governed *f;

	promise(t, PROMISE_WRITE_BANDWIDTH_MIN, "/dev/dm-0 10M");
	fake_control_device(&t->f, "dm-0")->kind = DEVICE_RAID1;
	t->plant.floors[0].copies = 2;
	control_promise(t->plant.control, 0)->bottleneck = 0;
	f = report(t, CONTROL_INFEASIBLE);
	check(has(f, "Each byte written becomes 2.0 bytes at the leaves "
		     "(copies of the mirror)"));
	report(t, CONTROL_HELD);
	t->plant.floors[0].copies = 1.1;
	check(!strstr(report(t, CONTROL_INFEASIBLE)->cause, "Each byte"));
}

static void test_limit_above_is_the_cause(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	sample(t, 1000);
	sample(t, 1000);
	/* Throttled by 1 MB/s at the slice, which the rate of db has reached. */
	fake_file(&t->f.machine.roots, CGROUPS "/app.slice/io.max",
		  "8:16 rbps=5 wbps=max riops=max wiops=max\n"
		  "8:0 rbps=1000000 wbps=5 riops=max wiops=max\n");
	check(streq(report(t, CONTROL_LIMITED)->cause,
		    "io.max of /app.slice has rbps=1000000 for /dev/sda, "
		    "which throttles it; raise that limit"));
	check(t->plant.floors[0].got == 0);
	report(t, CONTROL_HELD);
	/* Far from the limit. */
	sample(t, 250);
	check(!strstr(report(t, CONTROL_LIMITED)->cause, "io.max"));
}

/* 250 reads in a second, of which the floor in bytes has no limit. */
static void test_limit_of_another_kind_is_the_cause(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	sample(t, 1000);
	sample(t, 1000);
	fake_file(&t->f.machine.roots, CGROUPS DB "/io.max",
		  "8:0 rbps=max wbps=5 riops=251 wiops=1\n");
	check(has(report(t, CONTROL_LIMITED),
		  "io.max of " DB " has riops=251 for /dev/sda"));
}

/* The limit of app.slice is used up by db and web together. */
static void test_limit_that_siblings_use_up_is_the_cause(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	sample_both(t, 1000, 3000);
	sample_both(t, 1000, 3000);
	fake_file(&t->f.machine.roots, CGROUPS "/app.slice/io.max",
		  "8:0 rbps=4100000 wbps=max riops=max wiops=max\n");
	check(has(report(t, CONTROL_LIMITED),
		  "io.max of /app.slice has rbps=4100000 for /dev/sda"));
	report(t, CONTROL_HELD);
	/* A limit of db itself is compared with the rate of db. */
	fake_file(&t->f.machine.roots, CGROUPS "/app.slice/io.max", "%s", "");
	fake_file(&t->f.machine.roots, CGROUPS DB "/io.max",
		  "8:0 rbps=4100000 wbps=max riops=max wiops=max\n");
	check(!strstr(report(t, CONTROL_LIMITED)->cause, "io.max"));
}

/* With two digits, rounded down: the value of a floor that is held with the present requests. */
static void test_limited_names_the_rate_that_can_be_held(struct test *t)
{
	static const struct {
		double rate;
		const char *text;
	} rates[] = {
		{ 0, "several threads read and write" },
		{ 7, "ReadBandwidthMin=/dev/sda 7 can be held" },
		{ 999, "ReadBandwidthMin=/dev/sda 990 can be held" },
		{ 3459999, "ReadBandwidthMin=/dev/sda 3.4M can be held" },
		/* It varies. */
		{ 12e6, "several threads read and write" },
	};

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct governed *f = report(t, CONTROL_HELD);

		f->rate = f->got = rates[i].rate;
		report(t, CONTROL_LIMITED);
		check(endswith(f->cause, rates[i].text));
	}
}

static void test_cause_follows_the_evidence(struct test *t)
{
	struct governed *f;
	unsigned int n;

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	t->plant.floors[0].rate = t->plant.floors[0].got = 2e6;
	t->sampler.now_usec = 1000000;
	f = report(t, CONTROL_LIMITED);
	check(has(f, "too few requests") && has(f, "/dev/sda 2M can be held"));
	n = t->f.n_states;
	set_memory(t, DB, "file_dirty 1048576");
	set_memory(t, "", "file_dirty 50331648");
	f->rate = f->got = 5e6;
	t->sampler.now_usec += 4999999;
	check(has(report(t, CONTROL_LIMITED), "too few requests"));
	t->sampler.now_usec += 1;
	report(t, CONTROL_LIMITED);
	check(has(f, "others have 47 MiB of pages"));
	check(has(f, "/dev/sda 5M can be held"));
	/* The state is the same. */
	check(t->f.n_states == n);
}

static void test_dirty_pages_are_the_cause(struct test *t)
{
	promise(t, PROMISE_WRITE_BANDWIDTH_MIN, "/dev/sda 10M");
	check(has(report(t, CONTROL_LIMITED), "too few requests in flight"));
	report(t, CONTROL_HELD);
	set_memory(t, DB, "anon 7\nfile_dirty 4194304\nfile_writeback 1048576");
	check(has(report(t, CONTROL_LIMITED),
		  "5 MiB are dirty or in writeback"));
}

/* Others fill the page cache, for which the unit waits as well, also before it reads again. */
static void test_pages_of_others_are_the_cause(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	set_memory(t, "", "file_dirty 50331648\nfile_writeback 4194304");
	/* It has no dirty pages itself. */
	check(has(report(t, CONTROL_LIMITED), "too few requests in flight"));
	report(t, CONTROL_HELD);
	set_memory(t, DB, "file_dirty 1048576");
	check(has(report(t, CONTROL_LIMITED),
		  "others have 51 MiB of pages that are dirty"));
	check(has(report(t, CONTROL_LIMITED), "set MemoryHigh="));
	report(t, CONTROL_HELD);
	set_memory(t, DB, "file_dirty 20971520");
	check(has(report(t, CONTROL_LIMITED), "too few requests in flight"));
}

/* The pages of others wait in the queue of dm-crypt, too. */
static void test_queue_of_dm_crypt(struct test *t)
{
	struct governed *f;

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/dm-0 10M");
	set_memory(t, "", "file_dirty 50331648");
	set_memory(t, DB, "file_dirty 1048576");
	f = report(t, CONTROL_LIMITED);
	check(has(f, "set MemoryHigh=") && !strstr(f->cause, "dm-crypt"));
	report(t, CONTROL_HELD);
	fake_control_device(&t->f, "dm-0")->kind = DEVICE_CRYPT;
	f = report(t, CONTROL_LIMITED);
	check(has(f, "the queue of dm-crypt at /dev/dm-0"));
	check(has(f, "--perf-no_write_workqueue fast\""));
}

/* io.stat of a cgroup: bytes written to dm-0, and to the first of the disks below it. */
static void set_written(struct test *t, const char *cgroup, unsigned int above,
			unsigned int below)
{
	_cleanup_free_ char *file =
		asprintf_or_null(CGROUPS "%s/io.stat", cgroup);

	fake_file(&t->f.machine.roots, file,
		  "254:0 rbytes=9 wbytes=%u rios=1 wios=1\n"
		  "8:0 rbytes=9 wbytes=%u rios=1 wios=1 dbytes=7\n",
		  above, below);
}

/* A floor of db on dm-crypt, whose writes wait in there, and those of others were sent below. */
static void set_crypt(struct test *t, enum promise_key key)
{
	promise(t, key, "/dev/dm-0 10M");
	fake_control_device(&t->f, "dm-0")->kind = DEVICE_CRYPT;
	set_written(t, DB, 5 << 20, 3 << 20);
	set_written(t, "/app.slice", 32 << 20, 3 << 20);
	set_written(t, "/batch.slice", 32 << 20, 1 << 20);
}

static void check_becomes(struct test *t, enum control_state state,
			  enum control_state becomes)
{
	for (int i = 0; i < 7; i++)
		check(report(t, state)->state == state);
	check(report(t, state)->state == becomes);
}

/* Requests that wait above the leaves are no demand that the law can see. */
static void test_writes_that_wait_in_dm_crypt(struct test *t)
{
	static const enum control_state states[] = {
		CONTROL_IDLE,
		CONTROL_HELD,
		CONTROL_SETTLING,
		/* It has few requests at the leaves. */
		CONTROL_LIMITED,
		/* Nothing was charged below yet. */
		CONTROL_UNATTRIBUTED,
	};
	struct governed *f;

	set_crypt(t, PROMISE_WRITE_BANDWIDTH_MIN);
	f = &t->plant.floors[0];
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		set_written(t, DB, 5 << 20, 3 << 20);
		check_becomes(t, states[i], CONTROL_UNWEIGHTED);
		check(has(f, "2048 KiB of its writes wait above the disks, in "
			     "dm-crypt at /dev/dm-0, whose queue has no "
			     "weights. Limit the units"));
		check(has(f, "--perf-no_write_workqueue fast\""));
		set_written(t, DB, 5 << 20, 5 << 20);
		check(report(t, states[i])->state == states[i]);
		check(!strstr(f->cause, "dm-crypt"));
	}
	set_written(t, DB, 5 << 20, 3 << 20);
	f->rate = f->got = 10e6;
	for (int i = 0; i < 10; i++)
		check(report(t, CONTROL_HELD)->state == CONTROL_HELD);
}

/* If owners are lost below dm-crypt, nothing shows that writes still wait. */
static void test_writes_without_an_owner_below_dm_crypt(struct test *t)
{
	set_crypt(t, PROMISE_WRITE_BANDWIDTH_MIN);
	set_written(t, DB, 5 << 20, 0);
	set_written(t, "/app.slice", 32 << 20, 1 << 20);
	set_written(t, "/batch.slice", 32 << 20, 2 << 20);
	check_becomes(t, CONTROL_IDLE, CONTROL_IDLE);
	/* Of 64 MiB, 4 have an owner. */
	set_written(t, "/app.slice", 32 << 20, 2 << 20);
	check_becomes(t, CONTROL_IDLE, CONTROL_UNWEIGHTED);
}

/* While the unit reads, its demand for reads is known. */
static void test_reads_beside_writes_that_wait_in_dm_crypt(struct test *t)
{
	set_crypt(t, PROMISE_READ_BANDWIDTH_MIN);
	check_becomes(t, CONTROL_HELD, CONTROL_HELD);
	check_becomes(t, CONTROL_IDLE, CONTROL_UNWEIGHTED);
}

/*
 * Nothing passes for a minute: these bytes do not wait. Such a difference stays after errors, or when
 * the table of dm-crypt was replaced, for example by "cryptsetup reencrypt".
 */
static void test_writes_that_were_lost_in_dm_crypt(struct test *t)
{
	struct governed *f;

	set_crypt(t, PROMISE_WRITE_BANDWIDTH_MIN);
	f = &t->plant.floors[0];
	check_becomes(t, CONTROL_IDLE, CONTROL_UNWEIGHTED);
	t->sampler.now_usec += 59000000;
	check(report(t, CONTROL_IDLE)->state == CONTROL_UNWEIGHTED);
	t->sampler.now_usec += 1000000;
	check_becomes(t, CONTROL_IDLE, CONTROL_IDLE);
	/* They stay lost when others pass, and those that wait now count alone. */
	set_written(t, DB, 6 << 20, 4 << 20);
	check_becomes(t, CONTROL_IDLE, CONTROL_IDLE);
	set_written(t, DB, 7 << 20, 4 << 20);
	check_becomes(t, CONTROL_IDLE, CONTROL_UNWEIGHTED);
	check(has(f, "1024 KiB of its writes wait above the disks"));
	/* They were not lost. */
	set_written(t, DB, 7 << 20, 7 << 20);
	check(report(t, CONTROL_IDLE)->state == CONTROL_IDLE);
	set_written(t, DB, 9 << 20, 7 << 20);
	check_becomes(t, CONTROL_IDLE, CONTROL_UNWEIGHTED);
	check(has(f, "2048 KiB of its writes wait above the disks"));
}

static void test_pages_are_no_cause_for_reads(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	set_memory(t, DB, "file_dirty 4194304");
	check(has(report(t, CONTROL_LIMITED), "too few requests in flight"));
}

static void test_leaf_without_weights_is_named(struct test *t)
{
	struct governed *f;

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/dm-0 10M");
	fake_control_scheduler(&t->f, "sdb", "mq-deadline");
	f = report(t, CONTROL_UNWEIGHTED);
	check(has(f, "the scheduler of /dev/sdb (mq-deadline) has no weights"));
	check(has(f, "run \"sutroctl use /dev/dm-0\""));
}

/* While a loop device without weights is full, waiting requests are seen on no leaf. */
static void test_full_loop_device(struct test *t)
{
	const char *stat = "/sys/class/block/dm-0/inflight";

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/dm-0 10M");
	fake_control_device(&t->f, "dm-0")->kind = DEVICE_LOOP;
	fake_file(&t->f.machine.roots,
		  "/sys/class/block/dm-0/queue/nr_requests", "128\n");
	fake_file(&t->f.machine.roots, stat, "60 68\n");
	for (int i = 0; i < 7; i++)
		check(report(t, CONTROL_HELD)->state == CONTROL_HELD);
	check(report(t, CONTROL_HELD)->state == CONTROL_UNWEIGHTED);
	check(has(&t->plant.floors[0], "/dev/dm-0 (unknown) has no weights"));
	fake_file(&t->f.machine.roots, stat, "60 50\n");
	check(report(t, CONTROL_HELD)->state == CONTROL_HELD);
}

static void test_lost_owner_is_found(struct test *t)
{
	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/dm-0 10M");
	check(has(report(t, CONTROL_UNATTRIBUTED),
		  "below /dev/dm-0 its requests are charged to another"));
}

static void test_missed_target(struct test *t)
{
	struct target *target;
	struct governed *f;

	promise(t, PROMISE_LATENCY_TARGET, "/dev/sda 5ms P99");
	target = t->plant.floors[0].target;
	target->latency_us = 7250;
	target->is_enforced = true;
	f = report(t, CONTROL_INFEASIBLE);
	check(has(f, "the P99 of its reads at /dev/sda is 7.2 ms, although the "
		     "disks hold others back"));
	report(t, CONTROL_HELD);
	target->is_unreachable = true;
	f = report(t, CONTROL_INFEASIBLE);
	check(has(f, "a disk misses it although it serves nothing else"));
}

/* A rate is a mean of about a second. */
static void test_rate_is_smoothed(struct test *t)
{
	struct governed *f;

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	t->plant.floors[0].rate = 9e6;
	f = report(t, CONTROL_HELD);
	check(f->got > 2e6 && f->got < 4e6);
	for (int i = 0; i < 40; i++)
		report(t, CONTROL_HELD);
	check(f->got > 8.9e6);
}

static void test_history_has_a_row_each_second(struct test *t)
{
	const struct history *h;

	promise(t, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	h = t->plant.floors[0].history;
	for (unsigned int tick = 0; tick < 4 * (HISTORY_ROWS + 2); tick++) {
		t->sampler.now_usec = 1000000 + tick * TICK_USEC;
		report(t, CONTROL_HELD);
		if (tick == 8)
			check(h->n == 3 && h->row[2].usec == 3000000);
	}
	check(h->n == HISTORY_ROWS && h->next == 2);
	check(h->row[1].promised == 10e6);
	check(h->row[1].usec == (HISTORY_ROWS + 2) * 1000000ULL);
	check(h->row[2].usec == 3000000);
}

int main(void)
{
	run_tests(test_cgroup_without_the_io_controller,
		  test_io_controller_that_is_enabled_meanwhile,
		  test_cgroup_that_is_gone_is_idle,
		  test_each_change_is_reported_once,
		  test_complaint_ends_when_it_holds,
		  test_overload_names_leaf_and_shares,
		  test_overload_counts_traffic_once, test_overload_that_is_over,
		  test_copies_of_a_mirror_are_named,
		  test_limit_above_is_the_cause,
		  test_limit_of_another_kind_is_the_cause,
		  test_limit_that_siblings_use_up_is_the_cause,
		  test_limited_names_the_rate_that_can_be_held,
		  test_cause_follows_the_evidence,
		  test_dirty_pages_are_the_cause,
		  test_pages_of_others_are_the_cause, test_queue_of_dm_crypt,
		  test_writes_that_wait_in_dm_crypt,
		  test_writes_without_an_owner_below_dm_crypt,
		  test_writes_that_were_lost_in_dm_crypt,
		  test_reads_beside_writes_that_wait_in_dm_crypt,
		  test_pages_are_no_cause_for_reads,
		  test_leaf_without_weights_is_named, test_full_loop_device,
		  test_lost_owner_is_found, test_missed_target,
		  test_rate_is_smoothed, test_history_has_a_row_each_second);
	return 0;
}
