/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The plant of the control law: its nodes, leaves and floors, and costs that outlive them. */

#include "control/plant.h"
#include "fake-control.h"
#include "policy/policy.h"

#define DB "/app.slice/db"
#define WEB "/app.slice/web"
#define JOB "/batch.slice/job"
#define COST_S 1e-9

/** struct test - a machine with an empty plant */
struct test {
	struct fake_control f;
	struct plant plant;
};

static void setup(struct test *t)
{
	*t = (struct test){};
	fake_control_new(&t->f);
}

static void teardown(struct test *t)
{
	plant_free(&t->plant);
	fake_control_free(&t->f);
}

static void promise(struct test *t, const char *cgroup, enum promise_key key,
		    const char *text)
{
	fake_control_promise(&t->f, cgroup, key, text);
}

static void make(struct test *t)
{
	check(plant_make(&t->plant, &t->f.context, false) == 0);
}

static bool is_node(const struct test *t, const char *path)
{
	const struct cgroup *c = fake_control_cgroup(&t->f, path);

	return c->node < t->plant.n_nodes && t->plant.nodes[c->node] == c;
}

static unsigned int sampled(const struct test *t, const char *path)
{
	return fake_control_cgroup(&t->f, path)->sampled;
}

/* Nodes are the cgroups above a floor and their children; others are not divided. */
static void test_nodes(struct test *t)
{
	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	make(t);
	check(t->plant.n_nodes == 5);
	check(is_node(t, "/") && is_node(t, "/app.slice") && is_node(t, DB));
	check(is_node(t, WEB) && is_node(t, "/batch.slice"));
	check(!is_node(t, JOB));
}

static void test_sampled_counters(struct test *t)
{
	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	make(t);
	/* The scheduler sutro counts the bytes of its disk, too. */
	check(sampled(t, DB) == SAMPLE_TIME);
	check(sampled(t, WEB) == SAMPLE_TIME);
	/* No node, and its time is part of the time of its slice. */
	check(sampled(t, JOB) == SAMPLE_TIME);
	fake_control_scheduler(&t->f, "sda", "bfq");
	make(t);
	check(sampled(t, DB) == SAMPLE_RATE && sampled(t, WEB) == SAMPLE_RATE);
	check(sampled(t, JOB) == 0);
	fake_control_withdraw(&t->f, DB);
	make(t);
	check(sampled(t, DB) == 0 && sampled(t, WEB) == 0);
}

static void test_latencies_are_sampled_for_targets(struct test *t)
{
	promise(t, DB, PROMISE_LATENCY_TARGET, "/dev/sda 5ms");
	make(t);
	check(sampled(t, DB) & SAMPLE_LATENCY);
	check(!(sampled(t, WEB) & SAMPLE_LATENCY));
	check(t->plant.floors[0].target->goal_us == 5000);
}

/* A volume is extended to a second disk, and reduced to one again. */
static void test_bound_of_a_target_follows_the_leaves(struct test *t)
{
	struct device *stripe = fake_control_device(&t->f, "dm-0");
	const size_t both = stripe->n_leaves;
	const struct target *target;

	promise(t, DB, PROMISE_LATENCY_TARGET, "/dev/dm-0 5ms");
	stripe->n_leaves = 1;
	make(t);
	check(t->plant.floors[0].target->most == 0.9);
	t->plant.floors[0].target->wanted = 0.5;
	stripe->n_leaves = both;
	make(t);
	target = t->plant.floors[0].target;
	check(target->most == 1.8 && target->wanted == 0.5);
	t->plant.floors[0].target->wanted = 1.7;
	stripe->n_leaves = 1;
	make(t);
	target = t->plant.floors[0].target;
	check(target->most == 0.9 && target->wanted == 0.9);
	stripe->n_leaves = both;
}

static void test_leaves_of_floors_only(struct test *t)
{
	const struct device *sda = fake_control_device(&t->f, "sda");
	const struct device *sdb = fake_control_device(&t->f, "sdb");

	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sdb 10M");
	make(t);
	check(t->plant.n_leaves == 1);
	check(plant_leaf(&t->plant, sdb) == 0);
	check(plant_leaf(&t->plant, sda) == CONTROL_NONE);
	promise(t, WEB, PROMISE_WRITE_IOPS_MIN, "/dev/dm-0 100");
	make(t);
	check(t->plant.n_leaves == 2 && t->plant.n_floors == 2);
	check(plant_leaf(&t->plant, sda) != CONTROL_NONE);
}

static void test_ceilings_and_weights_are_no_floors(struct test *t)
{
	promise(t, DB, PROMISE_READ_BANDWIDTH_MAX, "/dev/sda 10M");
	promise(t, DB, PROMISE_WEIGHT, "/dev/sda 300");
	make(t);
	check(t->plant.n_floors == 0 && t->plant.n_nodes == 0);
	check(!t->plant.control);
}

static void test_costs_go_on(struct test *t)
{
	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	make(t);
	control_learnt(t->plant.control, t->plant.floors[0].number, 0, COST_S);
	/* Another floor of the same key and path. */
	fake_control_withdraw(&t->f, DB);
	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 20M");
	promise(t, WEB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 1M");
	make(t);
	for (size_t i = 0; i < t->plant.n_floors; i++)
		check(control_cost(t->plant.control, t->plant.floors[i].number,
				   0) == COST_S);
	/* Requests of another direction have costs of their own. */
	fake_control_withdraw(&t->f, DB);
	promise(t, DB, PROMISE_WRITE_BANDWIDTH_MIN, "/dev/sda 20M");
	make(t);
	for (size_t i = 0; i < t->plant.n_floors; i++)
		if (t->plant.floors[i].key == PROMISE_WRITE_BANDWIDTH_MIN)
			check(!control_is_measured(t->plant.control,
						   t->plant.floors[i].number));
}

static double cost_after_restart(struct test *t)
{
	check(plant_save(&t->plant, &t->f.machine) == 0);
	plant_free(&t->plant);
	check(plant_load(&t->plant, &t->f.machine) == 0);
	make(t);
	return control_cost(t->plant.control, t->plant.floors[0].number, 0);
}

static void learn(struct test *t)
{
	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	make(t);
	control_learnt(t->plant.control, t->plant.floors[0].number, 0, COST_S);
}

static void test_costs_outlive_the_daemon(struct test *t)
{
	learn(t);
	check(cost_after_restart(t) == COST_S);
}

static void test_costs_are_of_one_disk(struct test *t)
{
	learn(t);
	check(plant_save(&t->plant, &t->f.machine) == 0);
	/* Another disk has the number of the first one. */
	fake_control_device(&t->f, "sda")->diskseq++;
	plant_free(&t->plant);
	check(plant_load(&t->plant, &t->f.machine) == 0);
	make(t);
	check(!control_is_measured(t->plant.control,
				   t->plant.floors[0].number));
}

static void test_dry_run_saves_nothing(struct test *t)
{
	learn(t);
	t->f.machine.dry_run = true;
	check(plant_save(&t->plant, &t->f.machine) == 0);
	check(fake_has(&t->f.machine.roots, "/run/sutro/learnt", ""));
}

static void test_lines_of_a_predecessor_are_kept(struct test *t)
{
	dev_t sda = fake_control_device(&t->f, "sda")->devno;
	dev_t sdb = fake_control_device(&t->f, "sdb")->devno;
	const struct policy *web = fake_control_cgroup(&t->f, WEB)->policy;

	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	check(plant_make(&t->plant, &t->f.context, true) == 0);
	check(policy_keeps(web, sda) && !policy_keeps(web, sdb));
	check(!policy_keeps(fake_control_cgroup(&t->f, JOB)->policy, sda));
}

static void test_setpoints_outside_of_the_plant_are_cleared(struct test *t)
{
	const struct device *sda = fake_control_device(&t->f, "sda");
	const struct device *sdb = fake_control_device(&t->f, "sdb");
	struct policy *web = fake_control_cgroup(&t->f, WEB)->policy;

	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/sda 10M");
	check(policy_set_point(web, sda->devno, 7, strdup("a floor")) == 1);
	check(policy_set_point(web, sdb->devno, 8, strdup("a floor")) == 1);
	make(t);
	/* A node keeps its setpoint on a leaf of the plant. */
	check(policy_weight(web, sda).weight == 7);
	check(policy_weight(web, sdb).weight == WEIGHT_DEFAULT);
	check(t->f.n_setpoints == 1);
	fake_control_withdraw(&t->f, DB);
	make(t);
	check(policy_weight(web, sda).weight == WEIGHT_DEFAULT);
	check(t->f.n_setpoints == 2);
}

/* Reads of a mirror may come from any disk; its writes, and bytes of a stripe, stay where they are. */
static void test_reads_of_a_mirror_move(struct test *t)
{
	static const enum device_kind mirrors[] = { DEVICE_RAID1, DEVICE_RAID10,
						    DEVICE_MIRROR };
	struct device *volume = fake_control_device(&t->f, "dm-0");

	promise(t, DB, PROMISE_READ_BANDWIDTH_MIN, "/dev/dm-0 10M");
	promise(t, WEB, PROMISE_WRITE_IOPS_MIN, "/dev/dm-0 100");
	make(t);
	for (size_t i = 0; i < t->plant.n_floors; i++)
		check(!control_promise(t->plant.control,
				       t->plant.floors[i].number)
			       ->wandering);
	for (size_t m = 0; m < ARRAY_SIZE(mirrors); m++) {
		volume->kind = mirrors[m];
		make(t);
		check(t->plant.n_floors == 2);
		for (size_t i = 0; i < t->plant.n_floors; i++) {
			const struct governed *f = &t->plant.floors[i];

			check(control_promise(t->plant.control, f->number)
				      ->wandering ==
			      (f->key == PROMISE_READ_BANDWIDTH_MIN));
		}
	}
}

static void test_find_like(struct test *t)
{
	const struct device *sda = fake_control_device(&t->f, "sda");
	const struct device *sdb = fake_control_device(&t->f, "sdb");
	const struct cgroup *db = fake_control_cgroup(&t->f, DB);
	const enum promise_key key = PROMISE_READ_BANDWIDTH_MIN;
	const struct governed *f;

	promise(t, DB, key, "/dev/sda 10M");
	promise(t, WEB, key, "/dev/sda 10M");
	promise(t, JOB, key, "/dev/sda 10M");
	make(t);
	check(!plant_find_like(&t->plant, db, key, sda));
	for (size_t i = 0; i < t->plant.n_floors; i++) {
		f = &t->plant.floors[i];
		control_learnt(t->plant.control, f->number, 0,
			       streq(f->cgroup->name, "web") ? 3 * COST_S
							     : COST_S);
	}
	/* Its own, else the most expensive one. */
	check(plant_find_like(&t->plant, db, key, sda)->cgroup == db);
	f = plant_find_like(&t->plant, NULL, key, sda);
	check(streq(f->cgroup->name, "web"));
	check(!plant_find_like(&t->plant, db, key, sdb));
	check(!plant_find_like(&t->plant, db, PROMISE_READ_IOPS_MIN, sda));
}

static void test_traffic_is_a_device_and_a_direction(struct test *t)
{
	const struct topology *all = t->f.machine.topology;
	const struct device *sda = fake_control_device(&t->f, "sda");
	const struct device *sdb = fake_control_device(&t->f, "sdb");
	uint32_t reads = plant_traffic(all, sda, PROMISE_READ_BANDWIDTH_MIN);

	check(plant_traffic(all, sda, PROMISE_READ_IOPS_MIN) == reads);
	check(plant_traffic(all, sda, PROMISE_WRITE_IOPS_MIN) != reads);
	check(plant_traffic(all, sdb, PROMISE_READ_IOPS_MIN) != reads);
}

int main(void)
{
	run_tests(test_nodes, test_sampled_counters,
		  test_latencies_are_sampled_for_targets,
		  test_bound_of_a_target_follows_the_leaves,
		  test_leaves_of_floors_only,
		  test_ceilings_and_weights_are_no_floors, test_costs_go_on,
		  test_costs_outlive_the_daemon, test_costs_are_of_one_disk,
		  test_dry_run_saves_nothing,
		  test_lines_of_a_predecessor_are_kept,
		  test_setpoints_outside_of_the_plant_are_cleared,
		  test_reads_of_a_mirror_move, test_find_like,
		  test_traffic_is_a_device_and_a_direction);
	return 0;
}
