// SPDX-License-Identifier: GPL-2.0-only
/*
 * The closed loop.
 *
 * Clients send requests to leaves, which have the elevator's algorithm before them.
 * Each tick, the counters of io.sutro.stat and of the logical device's io.stat are read,
 * and the daemon's control law is called with the differences.  A little later its
 * weights are in force.  It has no other input.
 */
#include "loop.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "random.h"

/* Not 0, which the algorithm takes for "never". */
#define BEGIN_NS (100 * NSEC_PER_SEC)

struct loop *loop_new(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	assert(loop);
	loop->is_controlled = true;
	loop->tick_ns = 250 * NSEC_PER_MSEC;
	loop->lag_ns = 5 * NSEC_PER_MSEC;
	loop->run_ns = 10 * NSEC_PER_SEC;
	loop->seed = 1;
	loop->cgroups = 1;
	loop->cgroup[0].weight = SUTRO_WEIGHT_DFL;
	clock_init(&loop->clock, BEGIN_NS);
	return loop;
}

void loop_free(struct loop *loop)
{
	u32 i, leaf;

	for (i = 0; i < loop->cgroups; i++)
		for (leaf = 0; leaf < loop->leaves; leaf++)
			sutro_protect_exit(&loop->cgroup[i].on[leaf].core);
	control_free(loop->control);
	clock_exit(&loop->clock);
	free(loop->truth);
	free(loop->window);
	free(loop);
}

/* ---- beginning and end ---- */

static void loop_cgroups(struct loop *loop)
{
	u32 i, l;

	for (i = 1; i < loop->cgroups; i++)
		for (l = 0; l < loop->leaves; l++) {
			struct loop_cgroup *cgroup = &loop->cgroup[i];
			u32 parent = cgroup->parent;

			leaf_group_init(&cgroup->on[l],
					parent ? &loop->cgroup[parent].on[l]
					       : &loop->leaf[l].root,
					cgroup->weight);
			cgroup->on[l].leaves = &cgroup->leaves;
			sutro_group_set_class(&loop->leaf[l].core,
					      &cgroup->on[l].core,
					      cgroup->class);
			sutro_latency_set(&cgroup->on[l].core,
					  cgroup->latency_us);
		}
}

static struct leaf_group *loop_group(struct loop *loop, u32 cgroup, u32 leaf)
{
	return cgroup ? &loop->cgroup[cgroup].on[leaf] : &loop->leaf[leaf].root;
}

/* The number of a volume's leaf in the loop. */
static u32 loop_leaf(const struct loop *loop, const struct volume *volume,
		     u32 l)
{
	return volume->leaf[l] - loop->leaf;
}

static void client_place(struct loop *loop, struct loop_client *c)
{
	const struct volume *volume = &loop->volume[c->volume];
	u64 bytes = c->job.bytes;
	u64 first = c->first * volume_bytes(volume);
	u64 last = c->last * volume_bytes(volume);

	c->client.first_byte = first - first % bytes;
	c->client.region_bytes = last - c->client.first_byte;
	c->client.region_bytes -= c->client.region_bytes % bytes;
	c->client.next_byte = c->client.first_byte;
	assert(c->client.region_bytes);
}

static void loop_clients(struct loop *loop)
{
	u32 i, l;

	for (i = 0; i < loop->clients; i++) {
		struct loop_client *c = &loop->client[i];
		struct volume *volume = &loop->volume[c->volume];

		c->client.job = &c->job;
		c->client.volume = volume;
		c->client.clock = &loop->clock;
		c->client.all_bytes = &loop->all_bytes;
		c->client.random = loop->seed * 1000 + i;
		client_place(loop, c);
		for (l = 0; l < volume->nr; l++)
			c->client.group[l] = loop_group(
				loop, c->cgroup, loop_leaf(loop, volume, l));
		client_start(&c->client);
	}
}

static void loop_control(struct loop *loop)
{
	u32 i, l;
	int r;

	r = control_new(loop->leaves, &loop->control);
	assert(!r);
	for (l = 0; l < loop->leaves; l++)
		control_set_reserves(loop->control, l, true);
	for (i = 1; i < loop->cgroups; i++) {
		r = control_add_node(loop->control, loop->cgroup[i].parent,
				     NULL);
		assert(!r);
		for (l = 0; l < loop->leaves; l++)
			control_set_nominal(loop->control, i, l,
					    loop->cgroup[i].weight);
	}
	for (i = 0; i < loop->promises; i++) {
		const struct loop_promise *p = &loop->promise[i];
		const struct volume *volume = &loop->volume[p->volume];
		struct control_promise said = {
			.node = p->cgroup,
			.floor = p->floor,
			.part = p->part,
			.importance = p->importance,
			.wandering =
				volume->kind == VOLUME_LINEAR ||
				(volume->kind == VOLUME_MIRROR && !p->writes),
			.traffic = p->volume * 4 + p->reads * 2 + p->writes,
		};
		u32 leaves[MAX_LEAVES];

		for (l = 0; l < volume->nr; l++)
			leaves[l] = loop_leaf(loop, volume, l);
		r = control_add_promise(loop->control, &said, leaves,
					volume->nr, NULL);
		assert(!r);
	}
}

/* ---- changes ---- */

void loop_change_disk(struct loop *loop, const struct loop_event *event)
{
	struct disk *disk = &loop->leaf[event->leaf].disk;
	struct mdisk_numbers num = disk->drive.num;
	u32 i;

	for (i = 0; i < LOOP_NUMBERS && event->number[i]; i++)
		*mdisk_number_of(&num, event->number[i]) = event->value[i];
	disk_change(disk, &num);
}

void loop_change_weight(struct loop *loop, const struct loop_event *event)
{
	u32 l;

	for (l = 0; l < loop->leaves; l++) {
		control_set_nominal(loop->control, event->cgroup, l,
				    event->weight);
		leaf_weight(&loop->leaf[l], loop_group(loop, event->cgroup, l),
			    event->weight);
	}
}

void loop_move_client(struct loop *loop, const struct loop_event *event)
{
	struct loop_client *c = &loop->client[event->client];

	c->first = event->first;
	c->last = event->last;
	client_place(loop, c);
}

/* As prior.c: a unit begins with the costs of a similar one. */
void loop_recall(struct loop *loop, const struct loop_event *event)
{
	u32 l;

	for (l = 0; l < loop->leaves; l++)
		control_learnt(loop->control, event->promise, l,
			       control_cost(loop->control, event->like, l));
}

static void loop_happen(void *context, u64 now_ns)
{
	struct loop_event *event = context;

	event->happen(event->loop, event);
}

static void loop_warm(void *context, u64 now_ns)
{
	struct loop *loop = context;
	u32 i;

	for (i = 0; i < loop->clients; i++)
		loop->client[i].client.latency = (struct histogram){};
}

/* Let what is on its way come to an end; nothing may be left then. */
static void loop_end(struct loop *loop)
{
	u32 i;

	for (i = 0; i < loop->clients; i++)
		loop->client[i].job.iodepth = 0;
	clock_run(&loop->clock, loop->clock.now_ns + 200 * NSEC_PER_SEC);
	for (i = 0; i < loop->clients; i++)
		assert(!loop->client[i].client.outstanding);
	for (i = 0; i < loop->leaves; i++) {
		bool clean = leaf_exit(&loop->leaf[i]);

		assert(clean);
	}
}

/* ---- a tick ---- */

/* Wrong by a part that is even within 1.7 sigma. */
static double loop_noise(struct loop *loop, double x)
{
	double even = random_below(&loop->random, 1 << 20) / (double)(1 << 19);

	return x * (1 + loop->noise * 1.7 * (even - 1));
}

/* As sutro_show_stat(). */
static u64 loop_busy_ns(const struct loop *loop, const struct leaf_group *group)
{
	const struct sutro_group *core = &group->core;
	u64 busy_ns = core->stat.busy_ns;

	if (core->queued || core->in_flight > group->note.nr)
		busy_ns += loop->clock.now_ns - core->busy_since_ns;
	else if (core->in_flight)
		busy_ns += group->note.now_ns - core->busy_since_ns;
	return busy_ns;
}

/* From the counters of one cgroup on one leaf; the sums are made below. */
static void loop_sample_group(struct loop *loop, u32 cgroup, u32 l)
{
	struct loop_cgroup *g = &loop->cgroup[cgroup];
	const struct leaf_group *group = loop_group(loop, cgroup, l);
	struct control_use *use = control_use(loop->control, cgroup, l);
	u64 time_ns = group->core.stat.time_ns - g->last[l].time_ns;
	u64 wait_ns = group->wait_ns - g->last[l].wait_ns;
	u64 pending_ns = group->pending_ns - g->last[l].pending_ns;
	u64 busy_ns = loop_busy_ns(loop, group);
	u64 backlog_ns =
		sutro_group_backlog_ns(&group->core, loop->clock.now_ns);
	const u64 *by_direction = group->owner.counts.ios;
	u64 ios = by_direction[MDISK_READ] + by_direction[MDISK_WRITE];

	use->ios = ios - g->last[l].ios;
	/* The charge of an estimate may be taken back: then it goes down. */
	use->time = (s64)time_ns / (double)loop->tick_ns;
	use->backlog = wait_ns / (double)loop->tick_ns;
	use->queued =
		(backlog_ns - g->last[l].backlog_ns) / (double)loop->tick_ns;
	use->pending = pending_ns / (double)loop->tick_ns;
	use->busy = (busy_ns - g->last[l].busy_ns) / (double)loop->tick_ns;
	/* Requests that have not ended were not counted. */
	if (group->core.queued && !use->ios)
		use->backlog = 1;
	if (!use->ios)
		use->pending = group->core.queued || group->core.in_flight;
	g->last[l].time_ns = group->core.stat.time_ns;
	g->last[l].wait_ns = group->wait_ns;
	g->last[l].pending_ns = group->pending_ns;
	g->last[l].busy_ns = busy_ns;
	g->last[l].backlog_ns = backlog_ns;
	g->last[l].ios = ios;
}

static void loop_sample_groups(struct loop *loop)
{
	u32 i, l;

	for (i = 0; i < loop->cgroups; i++)
		for (l = 0; l < loop->leaves; l++)
			loop_sample_group(loop, i, l);
	for (i = loop->cgroups; i-- > 0;)
		for (l = 0; l < loop->leaves; l++) {
			struct control_use *use =
				control_use(loop->control, i, l);
			struct control_use *above;

			if (i) {
				above = control_use(loop->control,
						    loop->cgroup[i].parent, l);
				above->time += use->time;
				above->backlog += use->backlog;
				above->ios += use->ios;
				above->pending += use->pending;
				above->busy += use->busy;
				above->queued += use->queued;
			}
			use->time = loop_noise(loop, use->time);
			use->backlog = fmin(use->backlog, 1);
			use->busy = fmin(use->busy, 1);
			use->queued = fmin(use->queued, 1);
		}
}

/* Is a cgroup another one, or below it? */
static bool loop_within(const struct loop *loop, u32 cgroup, u32 other)
{
	while (cgroup != other && cgroup)
		cgroup = loop->cgroup[cgroup].parent;
	return cgroup == other;
}

static void loop_sample_promise(struct loop *loop, u32 number)
{
	struct loop_promise *p = &loop->promise[number];
	struct control_promise *said = control_promise(loop->control, number);
	double all = 0, its = 0, ios = 0;
	u32 i;

	for (i = 0; i < loop->clients; i++) {
		const struct loop_client *c = &loop->client[i];
		bool read = c->job.op == SUTRO_READ;

		if (!loop_within(loop, c->cgroup, p->cgroup))
			continue;
		all += c->tick_bytes;
		if (c->volume != p->volume || !(read ? p->reads : p->writes))
			continue;
		its += c->tick_bytes;
		ios += c->tick_ios;
	}
	said->fraction = all > 0 ? its / all : 1;
	said->rate = (p->ios ? ios : its) * NSEC_PER_SEC / loop->tick_ns;
	p->ticks[loop->ticks].rate = said->rate;
}

static void loop_weights(void *context, u64 now_ns)
{
	struct loop *loop = context;
	u32 i, l;

	for (i = 1; i < loop->cgroups; i++)
		for (l = 0; l < loop->leaves; l++) {
			struct leaf_group *group = loop_group(loop, i, l);
			u32 weight = control_weight(loop->control, i, l);
			u32 reserve = control_reserve(loop->control, i, l);

			if (group->core.entity.weight != weight) {
				leaf_weight(&loop->leaf[l], group, weight);
				loop->writes++;
			}
			if (group->core.reserve != reserve) {
				leaf_reserve(&loop->leaf[l], group, reserve);
				loop->writes++;
			}
		}
}

static void loop_record_truth(struct loop *loop)
{
	struct loop_truth *row = loop->truth;
	u32 i, l;

	row += (size_t)loop->ticks * loop->leaves * loop->cgroups;
	for (l = 0; l < loop->leaves; l++)
		for (i = 0; i < loop->cgroups; i++) {
			struct leaf_group *group = loop_group(loop, i, l);

			row->counts = group->owner.counts;
			row->charged_ns = group->core.stat.time_ns;
			row++;
		}
}

static void loop_record_windows(struct loop *loop)
{
	u32 l;

	for (l = 0; l < loop->leaves; l++) {
		const struct leaf *leaf = &loop->leaf[l];
		const struct sutro_protect *protect = &leaf->core.protect;

		loop->window[(size_t)loop->ticks * loop->leaves + l] =
			(struct loop_window){
				.part = sutro_protects(protect)
						? protect->part
						: SUTRO_PROTECT_WHOLE,
				.cycle_ns = protect->cycle_ns,
				.late_ns = leaf->late_ns,
			};
	}
}

static void loop_record(struct loop *loop)
{
	u32 i, l;

	if (loop->truth)
		loop_record_truth(loop);
	if (loop->window)
		loop_record_windows(loop);

	for (i = 0; i < loop->promises; i++) {
		struct loop_promise *p = &loop->promise[i];
		const struct control_promise *said =
			control_promise(loop->control, i);

		p->floor = said->floor;
		p->ticks[loop->ticks].state = said->state;
		p->ticks[loop->ticks].phi = said->phi;
		p->ticks[loop->ticks].gain = said->gain;
		p->ticks[loop->ticks].reserve = said->reserve;
		for (l = 0; l < loop->leaves; l++)
			p->ticks[loop->ticks].weight[l] =
				control_weight(loop->control, p->cgroup, l);
	}
	for (i = 0; i < loop->clients; i++)
		loop->client[i].ticks_bytes[loop->ticks] =
			loop->client[i].tick_bytes;
	loop->ticks++;
}

static void loop_tick(void *context, u64 now_ns)
{
	struct loop *loop = context;
	u32 i;

	if (now_ns > loop->begin_ns + loop->run_ns || loop->ticks == LOOP_TICKS)
		return;
	for (i = 0; i < loop->clients; i++) {
		struct loop_client *c = &loop->client[i];

		c->tick_bytes = c->client.done_bytes - c->last_bytes;
		c->tick_ios = c->client.done_ios - c->last_ios;
		c->last_bytes = c->client.done_bytes;
		c->last_ios = c->client.done_ios;
		c->ticks_late[loop->ticks] =
			(c->client.done_late - c->last_late) /
			fmax(c->tick_ios, 1);
		c->last_late = c->client.done_late;
	}
	loop_sample_groups(loop);
	for (i = 0; i < loop->promises; i++)
		loop_sample_promise(loop, i);
	control_tick(loop->control, loop->tick_ns / (double)NSEC_PER_SEC);
	loop_record(loop);
	if (loop->is_controlled)
		clock_at(&loop->clock, now_ns + loop->lag_ns, loop_weights,
			 loop);
	clock_at(&loop->clock, now_ns + loop->tick_ns, loop_tick, loop);
}

void loop_run(struct loop *loop)
{
	u32 i;

	loop->begin_ns = loop->clock.now_ns;
	loop->random = loop->seed;
	for (i = 0; i < loop->leaves; i++)
		leaf_start(&loop->leaf[i]);
	loop_cgroups(loop);
	loop_clients(loop);
	loop_control(loop);
	for (i = 0; i < loop->events; i++) {
		loop->event[i].loop = loop;
		clock_at(&loop->clock, loop->begin_ns + loop->event[i].at_ns,
			 loop_happen, &loop->event[i]);
	}
	clock_at(&loop->clock, loop->begin_ns + loop->warmup_ns, loop_warm,
		 loop);
	clock_at(&loop->clock, loop->begin_ns + loop->tick_ns, loop_tick, loop);
	clock_run(&loop->clock, loop->begin_ns + loop->run_ns);
	loop_end(loop);
}
