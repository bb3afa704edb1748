/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The governor: which setpoints follow from samples, four times a second.
 *
 * In each test db and web read without pause. db has a fifth of the time of sda, 4 MB/s.
 */

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "control/governor.h"
#include "fake-control.h"
#include "policy/policy.h"

#define DB "/app.slice/db"
#define WEB "/app.slice/web"
/* 4 MB/s need a fifth of sda, so these need three quarters. */
#define FLOOR "/dev/sda 15M"

/** struct test - a machine whose governor has begun; @n: ticks with load */
struct test {
	struct fake_control f;
	struct governor governor;
	uint64_t n;
};

static void setup(struct test *t)
{
	*t = (struct test){};
	fake_control_new(&t->f);
	check(governor_start(&t->governor, &t->f.context) >= 0);
	check(governor_begin(&t->governor) >= 0);
}

static void teardown(struct test *t)
{
	governor_stop(&t->governor);
	fake_control_free(&t->f);
}

/* db reads 1 MB in 50 ms of sda and web 4 MB in 200 ms, and @usec pass. */
static void load_for(struct test *t, uint64_t usec)
{
	const uint64_t n = ++t->n;

	fake_control_active(&t->f, "8:0", (uint64_t[]){ n * 50, n * 200, 0 },
			    (uint64_t[]){ n * 1000, n * 4000, 0 });
	fake_control_run(&t->f, usec);
}

static void load(struct test *t, unsigned int ticks)
{
	while (ticks--)
		load_for(t, TICK_USEC);
}

static void promise(struct test *t)
{
	fake_control_promise(&t->f, DB, PROMISE_READ_BANDWIDTH_MIN, FLOOR);
	governor_renew(&t->governor);
}

static bool is_ticking(const struct test *t)
{
	int enabled;

	check(sd_event_source_get_enabled(t->governor.timer, &enabled) >= 0);
	return enabled != SD_EVENT_OFF;
}

static const struct setpoint *setpoint(const struct test *t, const char *cgroup)
{
	const struct policy *p = fake_control_cgroup(&t->f, cgroup)->policy;

	return policy_weight(p, fake_control_device(&t->f, "sda")).setpoint;
}

static void set_weight(struct test *t, const char *cgroup, uint64_t weight)
{
	struct cgroup *c = fake_control_cgroup(&t->f, cgroup);

	c->policy->weight = weight;
	governor_look_at(&t->governor, c);
}

static void test_without_floors_it_does_not_sample(struct test *t)
{
	load(t, 8);
	check(!is_ticking(t));
	check(t->governor.sampler.n == 0);
	check(t->f.n_setpoints == 0 && t->f.n_states == 0);
}

static void test_ticks_begin_with_a_floor(struct test *t)
{
	load(t, 2);
	promise(t);
	load(t, 4);
	check(is_ticking(t));
	check(t->governor.sampler.n == 4);
	check(sampler_interval_s(&t->governor.sampler) == 0.25);
}

static void test_floor_raises_only_its_own_weight(struct test *t)
{
	const struct setpoint *p;

	promise(t);
	load(t, 4);
	p = setpoint(t, DB);
	/* 0.75 of sda, and some percent more, beside a weight of 100. */
	check(p && p->weight >= 300 && p->weight < 450);
	check(streq(p->why, "ReadBandwidthMin=/dev/sda 15M needs 75 % of "
			    "/dev/sda"));
	check(!setpoint(t, WEB));
	check(t->f.n_setpoints > 0);
}

static void test_higher_nominal_weight_is_kept(struct test *t)
{
	fake_control_promise(&t->f, DB, PROMISE_READ_BANDWIDTH_MIN, FLOOR);
	fake_control_cgroup(&t->f, DB)->policy->weight = 5000;
	governor_renew(&t->governor);
	load(t, 4);
	check(!setpoint(t, DB) && !setpoint(t, WEB));
}

static void test_setpoint_goes_when_the_nominal_weight_suffices(struct test *t)
{
	unsigned int before;

	promise(t);
	load(t, 4);
	check(setpoint(t, DB));
	before = t->f.n_setpoints;
	set_weight(t, DB, 5000);
	load(t, 4);
	check(!setpoint(t, DB));
	check(t->f.n_setpoints > before);
}

/* web has not used sda yet, and its counters do not move. */
static void test_weight_of_an_idle_cgroup_counts_when_it_begins(struct test *t)
{
	const struct setpoint *p;

	promise(t);
	for (unsigned int tick = 0; tick < 2; tick++) {
		t->n++;
		fake_control_active(&t->f, "8:0",
				    (uint64_t[]){ t->n * 50, 0, 0 },
				    (uint64_t[]){ t->n * 1000, 0, 0 });
		fake_control_run(&t->f, TICK_USEC);
	}
	set_weight(t, WEB, 1000);
	load(t, 4);
	p = setpoint(t, DB);
	check(p && p->weight >= 3000 && p->weight < 4500);
	check(!setpoint(t, WEB));
}

static void test_withdrawn_floor_clears_its_setpoint(struct test *t)
{
	unsigned int before;

	promise(t);
	load(t, 4);
	before = t->f.n_setpoints;
	fake_control_withdraw(&t->f, DB);
	governor_renew(&t->governor);
	load(t, 2);
	check(!setpoint(t, DB));
	check(t->f.n_setpoints > before);
	check(!is_ticking(t));
}

/* The first samples after a pause, as of a suspended machine, are about another time. */
static void test_samples_of_a_pause_are_ignored(struct test *t)
{
	promise(t);
	load(t, 1);
	load_for(t, 6000000);
	check(!control_is_measured(t->governor.plant.control, 0));
	load(t, 2);
	check(control_is_measured(t->governor.plant.control, 0));
}

/* A request each 0.8 s. Each change of a state is a signal on the bus. */
static void test_few_requests_do_not_change_the_state(struct test *t)
{
	promise(t);
	for (uint64_t n = 1; n <= 120; n++) {
		uint64_t ios = n * 5 / 16;

		if (n == 40)
			t->f.n_states = 0;
		fake_file(&t->f.machine.roots, "/sys/fs/cgroup/io.sutro.active",
			  "8:0 %" PRIu64 " time_ns=%" PRIu64 " rbytes=%" PRIu64
			  " rios=%" PRIu64 " pending_ns=%" PRIu64
			  " busy_ns=%" PRIu64 "\n",
			  fake_control_cgroup(&t->f, DB)->inode, ios * 1000000,
			  ios * 4096, ios, ios * 1000000, ios * 1000000);
		fake_control_run(&t->f, TICK_USEC);
	}
	check(t->f.n_states <= 1);
}

static void test_removed_cgroup_has_no_floor(struct test *t)
{
	const char *dir = "/sys/fs/cgroup" DB;
	_cleanup_free_ char *full = NULL;

	promise(t);
	load(t, 4);
	governor_cgroup_gone(&t->governor, fake_control_cgroup(&t->f, DB));
	check(t->governor.plant.n_floors == 1);
	check(!t->governor.plant.floors[0].cgroup);
	full = asprintf_or_null("%s%s", t->f.machine.roots.prefix, dir);
	check(rmdir(full) == 0);
	check(cgroup_tree_scan(t->f.machine.tree) == 0);
	fake_control_run(&t->f, TICK_USEC);
	check(t->governor.plant.n_floors == 0);
}

static void test_costs_are_kept_over_a_restart(struct test *t)
{
	double cost_s;

	promise(t);
	load(t, 4);
	cost_s = control_cost(t->governor.plant.control, 0, 0);
	check(fabs(cost_s * 4e6 - 0.2) < 0.01);
	check(governor_save(&t->governor) == 0);
	governor_stop(&t->governor);
	check(governor_start(&t->governor, &t->f.context) >= 0);
	check(governor_begin(&t->governor) >= 0);
	fake_control_run(&t->f, TICK_USEC);
	check(control_cost(t->governor.plant.control, 0, 0) == cost_s);
}

/* The first plant has the floors of all units, so the lines that any of them needs are kept. */
static void test_no_plant_before_all_units_are_known(struct test *t)
{
	const struct governor *g = &t->governor;
	dev_t sda = fake_control_device(&t->f, "sda")->devno;

	governor_stop(&t->governor);
	check(governor_start(&t->governor, &t->f.context) >= 0);
	promise(t);
	load(t, 4);
	check(!is_ticking(t) && g->plant.n_floors == 0);
	check(governor_begin(&t->governor) >= 0);
	check(is_ticking(t) && g->plant.n_floors == 1);
	check(policy_keeps(fake_control_cgroup(&t->f, WEB)->policy, sda));
	load(t, 2);
	check(setpoint(t, DB) && !setpoint(t, WEB));
}

/* bfq counts no time: the busy time of the disk is divided by the bytes of each cgroup. */
static void test_bytes_stand_for_time(struct test *t)
{
	static const unsigned int part[] = { 4, 1, 3 };
	static const char *const cgroups[] = { "", DB, WEB };
	double cost_s;

	fake_control_scheduler(&t->f, "sda", "bfq");
	promise(t);
	for (unsigned int n = 1; n <= 40; n++) {
		for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++) {
			_cleanup_free_ char *file = asprintf_or_null(
				"/sys/fs/cgroup%s/io.stat", cgroups[i]);

			fake_file(&t->f.machine.roots, file,
				  "8:0 rbytes=%u wbytes=0 rios=%u wios=0\n",
				  n * part[i] * 1000000, n * part[i]);
		}
		fake_file(&t->f.machine.roots,
			  "/sys/devices/virtual/block/sda/stat",
			  "0 0 0 0 0 0 0 0 0 %u 0\n", n * 200);
		fake_control_run(&t->f, TICK_USEC);
	}
	/* 200 of 250 ms busy, a quarter of the bytes: 0.2 for 4 MB/s. */
	cost_s = control_cost(t->governor.plant.control, 0, 0);
	check(fabs(cost_s * 4e6 - 0.2) < 0.01);
}

/* The log of four ticks with a plant that is made anew. */
static char *log_of_renewal(struct test *t)
{
	int before = fake_log_begin(&t->f.machine.roots);

	governor_renew(&t->governor);
	load(t, 4);
	return fake_log_end(&t->f.machine.roots, before);
}

/* A rate of zero is in no policy, and the control law takes none. */
static void test_failure_is_logged_once_and_so_is_its_end(struct test *t)
{
	_cleanup_free_ char *first = NULL, *second = NULL, *end = NULL;
	_cleanup_free_ char *later = NULL, *again = NULL;
	struct promise *p;
	const char *line;
	uint64_t value;

	promise(t);
	load(t, 4);
	p = &fake_control_cgroup(&t->f, DB)->policy->promises.items[0];
	value = p->value;
	p->value = 0;
	first = log_of_renewal(t);
	line = strstr(first, "A step of control failed");
	check(line && strstr(line, strerror(EINVAL)));
	check(!strstr(line + 1, "A step of control failed"));
	second = log_of_renewal(t);
	check(streq(second, ""));
	p->value = value;
	end = log_of_renewal(t);
	check(strstr(end, "Control goes on"));
	check(!strstr(end, "failed"));
	later = log_of_renewal(t);
	check(streq(later, ""));
	p->value = 0;
	again = log_of_renewal(t);
	check(strstr(again, "A step of control failed"));
}

int main(void)
{
	run_tests(test_without_floors_it_does_not_sample,
		  test_ticks_begin_with_a_floor,
		  test_floor_raises_only_its_own_weight,
		  test_higher_nominal_weight_is_kept,
		  test_setpoint_goes_when_the_nominal_weight_suffices,
		  test_weight_of_an_idle_cgroup_counts_when_it_begins,
		  test_withdrawn_floor_clears_its_setpoint,
		  test_samples_of_a_pause_are_ignored,
		  test_removed_cgroup_has_no_floor,
		  test_few_requests_do_not_change_the_state,
		  test_costs_are_kept_over_a_restart,
		  test_no_plant_before_all_units_are_known,
		  test_failure_is_logged_once_and_so_is_its_end,
		  test_bytes_stand_for_time);
	return 0;
}
