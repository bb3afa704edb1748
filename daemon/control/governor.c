/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The governor keeps floors. It connects the cgroups and devices of this machine with the
 * control law (law-tick.c), which has only numbers.
 *
 * Four times a second, while there is a floor:
 *
 *	io.sutro.stat, io.stat -> use of each leaf, rate at the logical device
 *	control_tick()         -> a weight per (cgroup, leaf), a verdict per floor
 *	weights                -> setpoints of the policies; actuate.c writes them
 *	verdicts               -> bus, journal, history (verdict.c)
 *
 * The plant has only the relevant cgroups: the promised ones, those above them, and the
 * children of those above them, each of which represents all below it. In
 *
 *	/ --- system.slice --- db (floor)
 *	  |                `-- web
 *	  `-- user.slice --- ... a hundred cgroups
 *
 * these are five nodes. plant.c makes the plant, again whenever cgroups, policies or devices
 * change, and takes over measured costs.
 */

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "control/governor.h"
#include "control/meter.h"
#include "control/traffic.h"
#include "control/verdict.h"
#include "host/event.h"
#include "host/sampler.h"
#include "policy/policy.h"

/* The control law averages noise over seconds. A tick delays its reaction by this at most. */
#define TICK_USEC 250000U

/* The default accuracy of the event loop would be as long as a tick. */
#define TICK_ACCURACY_USEC 5000U

/* Samples over a longer time do not measure the present. */
#define TICK_MAX_S 5.0

/* Ticks between two saves of costs for a restart; costs change slowly. */
#define SAVE_TICKS 20U

/* On leaves whose scheduler counts no waiting, units of a leaf this busy have waiting requests. */
#define BUSY_BACKLOGGED 0.9

/* ---- samples ---- */

/* The tenth number of queue statistics is the time, in ms, in which requests were in flight. */
static uint64_t read_busy_ms(const struct governor *g,
			     const struct device *leaf)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	unsigned long long busy;

	path = asprintf_or_null("%s/class/block/%s/stat",
				g->context.machine->roots.sysfs, leaf->name);
	if (!path || read_file_at(AT_FDCWD, path, &text) < 0 ||
	    sscanf(text, "%*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", &busy) !=
		    1)
		return 0;
	return busy;
}

static bool measures_time(const struct device *leaf)
{
	return leaf->scheduler && streq(leaf->scheduler, "sutro");
}

/* The use of a leaf by the device time that its scheduler counted. */
static struct control_use measured_use(const struct usage *u, double dt_s)
{
	double waiting = u->wait_ns / 1e9 / dt_s;
	double pending = u->pending_ns / 1e9 / dt_s;
	double busy = u->busy_ns / 1e9 / dt_s;
	double queued = u->backlog_ns / 1e9 / dt_s;

	/* Both times are counted when a request completes: a unit without completions waited. */
	if (!u->rios && !u->wios) {
		pending = u->queued || u->in_flight;
		waiting = u->queued ? 1 : waiting;
	}
	return (struct control_use){
		.time = u->time_ns / 1e9 / dt_s,
		.backlog = waiting < 1 ? waiting : 1,
		.ios = u->rios + u->wios,
		.pending = pending,
		.busy = busy < 1 ? busy : 1,
		.queued = queued < 1 ? queued : 1,
	};
}

/* The use of a leaf whose scheduler counts no time: its busy time, divided by bytes. */
static struct control_use guessed_use(const struct usage *u,
				      const struct usage *all, double busy)
{
	uint64_t bytes = u->rbytes + u->wbytes;
	uint64_t sum = all->rbytes + all->wbytes;

	return (struct control_use){
		.time = sum ? busy * bytes / sum : 0,
		.backlog = busy > BUSY_BACKLOGGED && bytes ? 1 : 0,
		.queued = busy > BUSY_BACKLOGGED && bytes ? 1 : 0,
		.ios = u->rios + u->wios,
	};
}

/**
 * struct leaf_now - a leaf in this tick
 * @d: NULL: it is gone
 * @measured: its scheduler counts time
 * @busy: part of the tick in which it worked, if not
 * @all: the use of all cgroups
 */
struct leaf_now {
	const struct device *d;
	bool measured;
	double busy;
	const struct usage *all;
};

static double busy_part(struct governor *g, uint32_t leaf,
			const struct device *d, double dt_s)
{
	uint64_t before = g->plant.busy_ms[leaf], now = read_busy_ms(g, d);
	double busy = before && now > before ? (now - before) / 1e3 / dt_s : 0;

	g->plant.busy_ms[leaf] = now;
	return busy < 1 ? busy : 1;
}

static void find_leaves(struct governor *g)
{
	for (uint32_t l = 0; l < g->plant.n_leaves; l++)
		g->leaves[l].d = topology_by_devno(g->context.machine->topology,
						   g->plant.leaves[l]);
}

static void look_at_leaves(struct governor *g, double dt_s)
{
	find_leaves(g);
	for (uint32_t l = 0; l < g->plant.n_leaves; l++) {
		struct leaf_now *leaf = &g->leaves[l];

		if (!leaf->d)
			continue;
		leaf->measured = measures_time(leaf->d);
		leaf->all =
			sample_usage(&g->sampler, g->plant.nodes[0], leaf->d);
		leaf->busy = leaf->measured ? 0
					    : busy_part(g, l, leaf->d, dt_s);
	}
}

/* After find_leaves(). Not in each tick: of a dormant cgroup, that sets nothing. */
static void set_nominals(struct governor *g, uint32_t n)
{
	const struct policy *p = g->plant.nodes[n]->policy;

	for (uint32_t l = 0; l < g->plant.n_leaves; l++)
		if (g->leaves[l].d)
			control_set_nominal(
				g->plant.control, n, l,
				policy_nominal(p, g->leaves[l].d).weight);
}

static bool is_node(const struct governor *g, const struct cgroup *c)
{
	return c->node < g->plant.n_nodes && g->plant.nodes[c->node] == c;
}

static int sample_node(struct governor *g, uint32_t n, double dt_s)
{
	const struct cgroup *c = g->plant.nodes[n];

	for (uint32_t l = 0; c && l < g->plant.n_leaves; l++) {
		const struct leaf_now *leaf = &g->leaves[l];
		struct control_use *use;
		const struct usage *u;

		if (!leaf->d)
			continue;
		u = sample_usage(&g->sampler, c, leaf->d);
		use = control_use(g->plant.control, n, l);
		if (!use)
			return -ENOMEM;
		*use = leaf->measured ? measured_use(u, dt_s)
				      : guessed_use(u, leaf->all, leaf->busy);
	}
	return 0;
}

static void sample_floor(struct governor *g, struct governed *f, double dt_s)
{
	const struct machine *machine = g->context.machine;
	const struct device *d = topology_by_devno(machine->topology, f->devno);

	if (!d || !f->cgroup)
		return;
	if (f->target)
		meter_sample(&g->plant, f, d, &g->sampler, machine->latency,
			     dt_s);
	else
		traffic_sample(&g->plant, f, d, &g->sampler, machine, dt_s);
}

static int sample_plant(struct governor *g, double dt_s)
{
	const struct cgroup *c = NULL;
	int err = 0;

	for (uint32_t n = 0; n < g->plant.n_nodes && !err; n++)
		if (!control_is_dormant(g->plant.control, n))
			err = sample_node(g, n, dt_s);
	/* Most cgroups of a large machine are dormant. */
	while (!err && (c = sampler_next_active(&g->sampler, c)))
		if (is_node(g, c) &&
		    control_is_dormant(g->plant.control, c->node))
			err = sample_node(g, c->node, dt_s);
	for (size_t i = 0; i < g->plant.n_floors && !err; i++)
		sample_floor(g, &g->plant.floors[i], dt_s);
	return err;
}

/* ---- setpoints ---- */

/* Of several floors of the cgroup, the one with the largest need of the leaf counts. */
static char *explain_weight(const struct governor *g, uint32_t node,
			    uint32_t leaf, const struct device *d)
{
	const struct governed *best = NULL;
	size_t below = 0;
	double most = 0;

	for (size_t i = 0; i < g->plant.n_floors; i++) {
		const struct governed *f = &g->plant.floors[i];
		const struct cgroup *c = f->cgroup;
		double need = control_need(g->plant.control, f->number, leaf);

		while (c && c != g->plant.nodes[node])
			c = c->parent;
		if (!c)
			continue;
		if (f->cgroup != g->plant.nodes[node]) {
			below++;
		} else if (need >= most) {
			most = need;
			best = f;
		}
	}
	if (best) {
		_cleanup_free_ char *value =
			promise_format_value(best->key, best->floor, best->part,
					     governed_percentile(best));
		_cleanup_free_ char *need = format_percent(most);

		return need ? asprintf_or_null("%s=%s %s needs %s of %s",
					       promise_info(best->key)->name,
					       best->path, value ?: "", need,
					       d->node)
			    : NULL;
	}
	if (below)
		return asprintf_or_null("holds %zu floor(s) below it", below);
	return strdup(
		"scaled down with its siblings, because a floor among them "
		"needs a weight above 10000 beside them");
}

static int give_setpoint(struct governor *g, uint32_t node, uint32_t leaf,
			 const struct device *d)
{
	struct cgroup *c = g->plant.nodes[node];
	uint32_t weight = control_weight(g->plant.control, node, leaf);
	struct leaf_weight before;
	char *why;
	int r;

	if (weight == control_nominal(g->plant.control, node, leaf)) {
		if (policy_clear_point(c->policy, d->devno))
			g->context.setpoint_changed(c, g->context.userdata);
		return 0;
	}
	before = policy_weight(c->policy, d);
	if (before.setpoint && before.weight == weight)
		return 0;
	why = explain_weight(g, node, leaf, d);
	if (!why)
		return -ENOMEM;
	r = policy_set_point(c->policy, d->devno, weight, why);
	if (r > 0)
		g->context.setpoint_changed(c, g->context.userdata);
	return r < 0 ? r : 0;
}

/* The root has no weight. */
static int give_setpoints(struct governor *g)
{
	int r = 0;

	for (uint32_t n = 1; n < g->plant.n_nodes; n++) {
		const struct cgroup *c = g->plant.nodes[n];

		/* Cgroups are far apart in memory, and most have no setpoint. */
		if (!c || (!control_is_moved(g->plant.control, n) &&
			   !g->has_setpoints[n]))
			continue;
		for (uint32_t l = 0; l < g->plant.n_leaves && r >= 0; l++)
			if (g->leaves[l].d)
				r = give_setpoint(g, n, l, g->leaves[l].d);
		g->has_setpoints[n] = c->policy->n_setpoints;
	}
	return r;
}

static void give_reserves(struct governor *g)
{
	for (size_t i = 0; i < g->plant.n_floors; i++) {
		struct governed *f = &g->plant.floors[i];
		double reserve =
			control_promise(g->plant.control, f->number)->reserve;

		if (!f->cgroup || f->reserve == reserve)
			continue;
		f->reserve = reserve;
		g->context.setpoint_changed(f->cgroup, g->context.userdata);
	}
}

/* Set the rates that floors in percent have at the present costs. */
static void follow_parts(struct governor *g)
{
	for (size_t i = 0; i < g->plant.n_floors; i++) {
		struct governed *f = &g->plant.floors[i];

		if (f->part)
			f->floor =
				control_is_measured(g->plant.control, f->number)
					? control_promise(g->plant.control,
							  f->number)
						  ->floor
					: 0;
	}
}

/* Make a new plant, and measure the latencies that its targets need. */
static int renew_plant(struct governor *g)
{
	int err = plant_make(&g->plant, &g->context, g->ticks < 2);

	if (err)
		return err;
	free(g->leaves);
	g->leaves = calloc(g->plant.n_leaves ?: 1, sizeof(*g->leaves));
	free(g->has_setpoints);
	g->has_setpoints =
		calloc(g->plant.n_nodes + 1, sizeof(*g->has_setpoints));
	if (!g->leaves || !g->has_setpoints)
		return -ENOMEM;
	find_leaves(g);
	for (uint32_t n = 0; n < g->plant.n_nodes; n++) {
		set_nominals(g, n);
		g->has_setpoints[n] = g->plant.nodes[n]->policy->n_setpoints;
	}
	sampler_renew(&g->sampler);
	err = meters_watch(&g->plant, g->context.machine->latency);
	if (err == -ENOMEM)
		return err;
	if (err && !g->latency_complained)
		log_event(EVENT_LATENCY_AT_LEAVES, LOG_WARNING, NULL,
			  "Latency targets are measured at the leaves of their "
			  "devices, and for reads only: BPF is not available: "
			  "%s",
			  strerror(-err));
	g->latency_complained |= err;
	g->stale = false;
	return 0;
}

static int tick(struct governor *g)
{
	double dt_s;
	int err = g->stale ? renew_plant(g) : 0;

	if (err || !g->plant.n_floors)
		return err;
	err = sampler_take(&g->sampler,
			   cgroup_tree_root(g->context.machine->tree),
			   g->context.machine->topology,
			   machine_now_usec(g->context.machine));
	if (!err && latency_sample(g->context.machine->latency) < 0)
		log_debug("Latencies of a target could not be read.");
	dt_s = sampler_interval_s(&g->sampler);
	/* The first sample is only the base of the next one. */
	if (err || g->ticks++ == 0 || dt_s <= 0 || dt_s > TICK_MAX_S)
		return err;
	look_at_leaves(g, dt_s);
	err = sample_plant(g, dt_s);
	if (err)
		return err;
	control_tick(g->plant.control, dt_s);
	follow_parts(g);
	err = give_setpoints(g);
	give_reserves(g);
	if (!err)
		err = verdicts_report(&g->plant, &g->sampler, &g->context,
				      dt_s);
	if (!err && g->ticks % SAVE_TICKS == 0)
		governor_save(g);
	return err;
}

/* A step that fails may do so four times a second. */
static void report_step(struct governor *g, int err)
{
	bool has_failed = err != 0;

	if (has_failed && !g->has_failed)
		log_event(EVENT_CONTROL_FAILED, LOG_WARNING, NULL,
			  "A step of control failed, the weights stay: %s",
			  strerror(-err));
	else if (!has_failed && g->has_failed)
		log_event(
			EVENT_CONTROL_RESUMED, LOG_INFO, NULL,
			"Control goes on: floors and targets are kept again.");
	g->has_failed = has_failed;
}

static int on_tick(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct governor *g = userdata;
	uint64_t began = cpu_usec();
	int err = tick(g);

	g->step_usec = g->plant.n_floors ? cpu_usec() - began : 0;
	if (err == -ENOMEM)
		return err;
	report_step(g, err);
	if (!g->plant.n_floors)
		return 0;
	sd_event_source_set_time_relative(s, TICK_USEC);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* ---- life ---- */

void governor_renew(struct governor *g)
{
	g->stale = true;
	/* With floors, the governor ticks already. */
	if (!g->has_begun || g->plant.n_floors)
		return;
	sd_event_source_set_time(g->timer, 0);
	sd_event_source_set_enabled(g->timer, SD_EVENT_ONESHOT);
}

void governor_cgroup_added(struct governor *g, struct cgroup *c)
{
	if (c->parent->on_way)
		governor_renew(g);
	else
		c->sampled = c->parent->sampled &
			     (SAMPLE_TIME | SAMPLE_LATENCY);
	if (c->sampled)
		sampler_renew(&g->sampler);
}

void governor_look_at(struct governor *g, const struct cgroup *c)
{
	if (!is_node(g, c))
		return;
	find_leaves(g);
	set_nominals(g, c->node);
}

void governor_cgroup_gone(struct governor *g, const struct cgroup *c)
{
	if (plant_remember(&g->plant, g->context.machine, c) < 0)
		log_debug("%s: cannot keep the measured costs of its floors.",
			  c->shown);
	for (size_t i = 0; i < g->plant.n_floors; i++)
		if (g->plant.floors[i].cgroup == c)
			g->plant.floors[i].cgroup = NULL;
	for (size_t n = 0; n < g->plant.n_nodes; n++)
		if (g->plant.nodes[n] == c) {
			g->plant.nodes[n] = NULL;
			governor_renew(g);
		}
}

int governor_save(struct governor *g)
{
	const char *run = g->context.machine->roots.run;
	_cleanup_free_ char *path = asprintf_or_null("%s/" PLANT_FILE, run);
	int err = plant_save(&g->plant, g->context.machine);

	if (err && !g->is_unsaved)
		log_event(
			EVENT_COSTS_NOT_SAVED, LOG_WARNING,
			EVENT_FIELDS({ "SUTRO_FILE", path ?: run }),
			"Cannot save the costs of floors in %s: %s. A restart of sutrod measures them again.",
			path ?: run, strerror(-err));
	g->is_unsaved = err != 0;
	return err;
}

int governor_start(struct governor *g, const struct control_context *context)
{
	int r;

	*g = (struct governor){ .context = *context,
				.sampler.slot = SAMPLER_GOVERNOR };
	r = plant_load(&g->plant, context->machine);
	if (r >= 0)
		r = sd_event_add_time(context->machine->event, &g->timer,
				      CLOCK_MONOTONIC, 0, TICK_ACCURACY_USEC,
				      on_tick, g);
	if (r >= 0)
		r = sd_event_source_set_enabled(g->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(g->timer,
						 MACHINE_PRIORITY_SETPOINTS);
	if (r >= 0)
		r = sd_event_source_set_exit_on_failure(g->timer, true);
	return r;
}

int governor_begin(struct governor *g)
{
	int err;

	if (g->has_begun)
		return 0;
	err = renew_plant(g);
	if (err)
		return err;
	g->has_begun = true;
	return sd_event_source_set_enabled(g->timer, SD_EVENT_ONESHOT);
}

void governor_stop(struct governor *g)
{
	sd_event_source_disable_unref(g->timer);
	plant_free(&g->plant);
	free(g->leaves);
	free(g->has_setpoints);
	*g = (struct governor){};
}
