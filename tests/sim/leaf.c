// SPDX-License-Identifier: GPL-2.0-only
/*
 * A drive with a scheduler before it, in place of the block layer and sutro-iosched.c:
 * calls the algorithm in the same order as these.
 *
 *  insert	into the stage
 *  drain	from the stage to the groups, merging with requests queued there
 *  dispatch	the algorithm picks a group, the group a request (sutro-requests.c)
 *  complete	the cost is added to a note of the group; nothing is decided
 *  fold	at the next dispatch: notes go to the algorithm
 *
 * As in blk-mq, the queue is run when requests are inserted, when the idle timer
 * fires, at a completion if the algorithm requested that, and when a request that
 * was taken from the scheduler found the drive full and is sent now.  No other
 * wake-up comes: a request that the algorithm leaves behind hangs here.
 */
#include "leaf.h"

#include <assert.h>
#include <stdlib.h>

/* sutro-iosched.c */
#define ROT_SLICE_NS (100 * NSEC_PER_MSEC)
#define SLICE_NS (4 * NSEC_PER_MSEC)
#define ROT_IDLE_NS (8 * NSEC_PER_MSEC)
#define IDLE_NS (1 * NSEC_PER_MSEC)

#define SYNC_EXPIRE_NS (500 * NSEC_PER_MSEC)
#define ASYNC_EXPIRE_NS (5 * NSEC_PER_SEC)
#define PROBE_TRIES 8

static struct rq *rq_new(const struct leaf *leaf, struct leaf_group *group,
			 const struct piece *piece)
{
	struct rq *rq = calloc(1, sizeof(*rq));
	struct piece *copy = malloc(sizeof(*copy));

	assert(rq && copy);
	*copy = *piece;
	INIT_LIST_HEAD(&rq->cmd.ops);
	INIT_LIST_HEAD(&rq->pieces);
	list_add_tail(&copy->node, &rq->pieces);
	rq->group = group;
	rq->submitted_ns = piece->submitted_ns;
	rq->added_ns = leaf->clock->now_ns;
	return rq;
}

void leaf_insert(struct leaf *leaf, struct leaf_group *group, enum sutro_op op,
		 bool sync, u64 sector, const struct piece *piece)
{
	struct rq *rq = rq_new(leaf, group, piece);

	rq->sync = sync;
	rq->op = op;
	rq->sector = sector;
	rq->bytes = piece->bytes;
	if (rq_merge(&leaf->stage, rq)) {
		free(rq);
		return;
	}
	leaf_take_slot(leaf, group, sync);
	list_add_tail(&rq->node, &leaf->stage);
}

static void leaf_note(struct leaf *leaf, struct leaf_group *group)
{
	if (list_empty(&group->noted))
		list_add_tail(&group->noted, &leaf->notes);
}

static void leaf_fold(struct leaf *leaf)
{
	struct leaf_group *group, *next;

	sutro_probe_tunables(&leaf->probe, &leaf->device, &leaf->core.tunables);
	list_for_each_entry_safe(group, next, &leaf->notes, noted) {
		typeof(group->note) note = group->note;

		list_del_init(&group->noted);
		group->note = (typeof(note)){};
		if (note.weight)
			sutro_group_set_weight(&group->core, note.weight);
		if (note.is_reserve)
			group->core.reserve = note.reserve;
		if (note.weight || note.is_reserve)
			sutro_protect_changed(&leaf->core);
		sutro_protect_took(&leaf->core, &group->core,
				   note.nr - note.nr_untimed, note.took_us,
				   note.nr_slow, note.now_ns);
		sutro_core_committed(&leaf->core, &group->core,
				     note.nr_flushes);
		if (note.nr)
			sutro_core_complete(&leaf->core, &group->core, note.nr,
					    note.estimate_ns, note.cost_ns,
					    note.now_ns);
	}
}

static void leaf_drain(struct leaf *leaf)
{
	u64 now_ns = leaf->clock->now_ns;
	struct rq *rq;

	while ((rq = rq_first(&leaf->stage))) {
		struct leaf_group *group = rq->group;
		struct list_head *list = &group->list[rq->sync];
		bool far = group_far(group, rq);

		list_del(&rq->node);
		if (rq_merge(list, rq)) {
			leaf_free_slot(leaf, group, rq->sync);
			free(rq);
			continue;
		}
		rq->expire_ns =
			now_ns + (rq->sync ? SYNC_EXPIRE_NS : ASYNC_EXPIRE_NS);
		list_add_tail(&rq->node, list);
		sutro_core_queue(&leaf->core, &group->core, far, now_ns);
		if (!leaf->core.tunables.rotational)
			sutro_probe_join(&leaf->probe, &group->peer,
					 sutro_cost_class(rq->op, rq->bytes));
	}
}

static void leaf_forget(struct leaf *leaf, u64 now_ns)
{
	while (sutro_core_forget(&leaf->core, now_ns))
		;
}

static void leaf_timer(void *context, u64 now_ns)
{
	struct leaf *leaf = context;

	if (leaf->timer_ns == now_ns)
		leaf_run(leaf);
}

/* During a probe: @group is whose turn it would be. */
static struct rq *leaf_probe_next(struct leaf *leaf, struct leaf_group *group,
				  bool *ret_over)
{
	struct sutro_probe *probe = &leaf->probe;
	bool room = sutro_probe_has_room(probe, &leaf->device);
	u64 now_ns = leaf->clock->now_ns;
	struct sutro_peer *peer;
	struct leaf_group *of;
	struct rq *rq;
	u32 i;

	*ret_over = false;
	if (room) {
		rq = group_next_of(group, probe);
		if (rq)
			return rq;
	}
	if (sutro_probe_admits(probe, &leaf->device, &group->peer,
			       group->core.queued + group->core.in_flight))
		return group_next(group, false, now_ns);
	for (i = 0; room && i < PROBE_TRIES; i++) {
		peer = sutro_probe_pick(probe, now_ns);
		if (!peer)
			break;
		of = container_of(peer, struct leaf_group, peer);
		rq = group_next_of(of, probe);
		if (rq)
			rq->class = sutro_cost_class(rq->op, rq->bytes);
		sutro_probe_gave(
			probe, peer, rq ? leaf_estimate_ns(leaf, of, rq) : 0,
			sutro_group_share(&of->core, SUTRO_PROBE_WHOLE),
			now_ns);
		if (rq)
			return rq;
	}
	*ret_over = room && sutro_probe_starved(probe, &leaf->device, now_ns);
	return NULL;
}

/* No request is sent now. */
static struct rq *leaf_idle(struct leaf *leaf, enum sutro_verdict verdict)
{
	leaf->device.unsaturated |= verdict == SUTRO_EMPTY ||
				    sutro_holds_back(&leaf->core, verdict);
	switch (verdict) {
	case SUTRO_SERVE:
	case SUTRO_EMPTY:
		break;
	case SUTRO_IDLE:
		leaf->timer_ns = leaf->core.idle_until_ns;
		clock_at(leaf->clock, leaf->timer_ns, leaf_timer, leaf);
		leaf->waiting = true;
		break;
	case SUTRO_WAIT:
		leaf->waiting = true;
		break;
	}
	return NULL;
}

/* May the cache of the drive take it? */
static bool leaf_caches(const struct leaf *leaf, const struct rq *rq)
{
	return leaf->disk.drive.num.cache_kb && rq->op == SUTRO_WRITE;
}

/* As sutro_driver_depth(): nothing is known of others that use the same tags. */
static u32 leaf_limit(const struct leaf *leaf)
{
	u32 depth = min(leaf->disk.drive.num.queue_depth, 128U);

	if (leaf->tags)
		return min(leaf->tags, 128U);
	return leaf->has_budget ? depth - 1 : depth;
}

static struct rq *leaf_select(struct leaf *leaf)
{
	u64 now_ns = leaf->clock->now_ns;
	enum sutro_verdict verdict;
	struct sutro_group *core;
	struct leaf_group *group;
	struct rq *rq;

	leaf->waiting = false;
	leaf->probe.rare = sutro_protects(&leaf->core.protect);
	if (!leaf->probe.active)
		leaf->probe.limit = leaf_limit(leaf);
	leaf->probe.equal = sutro_level_is_equal(&leaf->core.root->level);
	leaf->probe.wide = sutro_core_wide(&leaf->core, now_ns);
	leaf->probe.reserved = leaf->core.protect.reserve;
	if (!leaf->core.tunables.rotational && !leaf->oracle &&
	    (leaf->probe.active || !leaf->core.protect.reserved) &&
	    sutro_probe_look(&leaf->probe, now_ns))
		sutro_probe_step(&leaf->probe, &leaf->device, now_ns);
	leaf_fold(leaf);
	leaf_forget(leaf, now_ns);
	core = sutro_core_select(&leaf->core, now_ns, &verdict);

	if (verdict != SUTRO_SERVE)
		return leaf_idle(leaf, verdict);
	group = leaf_group_of(core);
	rq = NULL;
	while (leaf->probe.active && !rq) {
		bool over;

		rq = leaf_probe_next(leaf, group, &over);
		if (!rq && !over) {
			leaf->waiting = true;
			return NULL;
		}
	}
	if (!rq)
		rq = group_next(group, leaf->core.tunables.rotational, now_ns);
	group = rq->group;
	core = &group->core;
	leaf_price(leaf, rq);
	if (!sutro_core_fits(&leaf->core, rq->estimate_ns, true, now_ns)) {
		if (now_ns - rq->added_ns > SUTRO_GAP_PATIENCE_NS)
			sutro_gap_missed(&leaf->core, rq->estimate_ns);
		list_add(&rq->node, &group->list[rq->sync]);
		rq = leaf_fitting(leaf, group);
		if (!rq)
			return leaf_idle(leaf,
					 sutro_core_wait(&leaf->core, now_ns));
		group = rq->group;
		core = &group->core;
	}
	rq_prepare(leaf, rq);
	sutro_probe_sent(&leaf->probe, rq->class);
	rq->shallow = leaf->core.in_flight < SUTRO_DEPTH_MIN &&
		      leaf->core.in_flight_ns <= rq->estimate_ns;
	if (!leaf->core.in_flight)
		leaf->device.idle = true;
	group->wait_ns += now_ns - rq->added_ns;
	group->wait_max_ns = max(group->wait_max_ns, now_ns - rq->added_ns);
	core->caches = leaf_caches(leaf, rq);
	leaf->core.async = !rq->sync;
	sutro_core_dispatch(&leaf->core, core, rq->estimate_ns);
	if (!core->queued)
		sutro_probe_leave(&group->peer);
	if (!leaf->core.queued)
		leaf->probe.dry = true;
	return rq;
}

static struct rq *leaf_dispatch(struct leaf *leaf)
{
	struct rq *rq;

	if (!leaf->fifo) {
		leaf_drain(leaf);
		return leaf_select(leaf);
	}
	rq = rq_first(&leaf->stage);
	return rq ? rq_take(rq) : NULL;
}

static void leaf_send(struct leaf *leaf, struct rq *rq)
{
	if (leaf->fifo)
		rq_prepare(leaf, rq);
	disk_submit(&leaf->disk, &rq->cmd);
}

static bool leaf_has_room(const struct leaf *leaf)
{
	return leaf->disk.nr < leaf->disk.drive.num.queue_depth;
}

/* Send what waits for the drive, flushes first. */
static void leaf_refill(struct leaf *leaf)
{
	struct rq *rq;

	while (leaf_has_room(leaf) && (rq = rq_first(&leaf->flushes))) {
		list_del(&rq->node);
		disk_submit(&leaf->disk, &rq->cmd);
	}
	if (leaf->held && leaf_has_room(leaf)) {
		rq = leaf->held;
		leaf->held = NULL;
		leaf_send(leaf, rq);
	}
}

/* Send what may be sent. */
void leaf_run(struct leaf *leaf)
{
	while (!leaf->held && (!leaf->has_budget || leaf_has_room(leaf))) {
		struct rq *rq = leaf_dispatch(leaf);

		if (!rq)
			break;
		leaf->held = rq;
		leaf_refill(leaf);
	}
}

/* ---- sutro-flush.c ---- */

/* A flush begins: a request of the group that is at the drive. */
void leaf_flush(struct leaf *leaf, struct leaf_group *group,
		const struct piece *piece)
{
	struct rq *rq = rq_new(leaf, group, piece);
	u64 now_ns = leaf->clock->now_ns;

	rq->flush = true;
	rq_prepare(leaf, rq);
	if (!leaf->fifo) {
		leaf_fold(leaf);
		sutro_cost_flush_begin(&leaf->device);
		sutro_core_queue(&leaf->core, &group->core, false, now_ns);
		sutro_core_dispatch(&leaf->core, &group->core, 0);
		sutro_core_commit(&leaf->core, &group->core, now_ns);
	}
	list_add_tail(&rq->node, &leaf->flushes);
	leaf_refill(leaf);
}

static void leaf_flushed(struct leaf *leaf, const struct rq *rq)
{
	struct leaf_group *group = rq->group;
	u64 now_ns = leaf->clock->now_ns;

	if (leaf->fifo)
		return;
	group->note.cost_ns +=
		sutro_cost_flush(&leaf->device, rq->cmd.arrival_ns, now_ns);
	group->note.nr++;
	group->note.nr_untimed++;
	group->note.nr_flushes++;
	group->note.now_ns = now_ns;
	leaf_note(leaf, group);
}

static void leaf_completed(struct leaf *leaf, struct rq *rq)
{
	struct leaf_group *group = rq->group;
	struct sutro_sample sample = {
		.class = rq->class,
		.bytes = rq->bytes,
		.start_ns = rq->cmd.arrival_ns,
		.now_ns = leaf->clock->now_ns,
		.shallow = rq->shallow,
		.caches = leaf_caches(leaf, rq),
		.seeks = sutro_group_seeky(&group->core),
	};
	u64 took_ns = leaf->clock->now_ns - rq->submitted_ns;
	u64 slow_ns;

	group->pending_ns += leaf->clock->now_ns - rq->added_ns;
	if (leaf->fifo)
		return;
	group->note.cost_ns += leaf_cost_ns(leaf, rq, &sample);
	group->note.nr++;
	if (rq->op == SUTRO_READ || !sutro_latency_late_ns(&group->core)) {
		group->note.took_us += took_ns / NSEC_PER_USEC;
		slow_ns = sutro_protect_slow_ns(&group->core);
		group->note.nr_slow += slow_ns && took_ns > slow_ns;
	} else {
		group->note.nr_untimed++;
	}
	group->note.estimate_ns += rq->estimate_ns;
	group->note.now_ns = sample.now_ns;
	leaf_note(leaf, group);
}

/* A request that protected groups may have to wait for: sutro-window.c. */
static void leaf_late(struct leaf *leaf, const struct rq *rq)
{
	const struct sutro_protect *protect = &leaf->core.protect;
	u64 now_ns = leaf->clock->now_ns;

	if (sutro_protects(protect) && !protect->clear &&
	    now_ns > protect->shared_ns &&
	    !sutro_group_protected(&rq->group->core))
		leaf->late_ns = max(leaf->late_ns, now_ns - protect->shared_ns);
}

static void leaf_done(void *context, struct mdisk_cmd *cmd)
{
	struct leaf *leaf = context;
	struct rq *rq = container_of(cmd, struct rq, cmd);
	struct piece *piece, *next;
	bool held = leaf->held;

	leaf_late(leaf, rq);
	if (rq->flush)
		leaf_flushed(leaf, rq);
	else
		leaf_completed(leaf, rq);
	list_for_each_entry_safe(piece, next, &rq->pieces, node) {
		leaf->done(piece->client, piece->whole, piece->bytes);
		free(piece);
	}
	leaf_refill(leaf);
	if (!rq->flush)
		leaf_free_slot(leaf, rq->group, rq->sync);
	free(rq);
	if (held || leaf->waiting || leaf->has_budget)
		leaf_run(leaf);
}

static struct sutro_leaves *leaf_leaves_of(struct sutro_group *group)
{
	return leaf_group_of(group)->leaves;
}

/* A leaf whose disk, slots and tunables may be changed. */
void leaf_init(struct leaf *leaf, struct clock *clock, enum mdisk_kind kind,
	       leaf_done_fn *done)
{
	struct sutro_tunables *tunables = &leaf->core.tunables;
	bool rotational = kind == MDISK_HDD;

	*leaf = (struct leaf){ .clock = clock, .done = done };
	INIT_LIST_HEAD(&leaf->stage);
	INIT_LIST_HEAD(&leaf->notes);
	INIT_LIST_HEAD(&leaf->flushes);
	disk_init(&leaf->disk, clock, kind, leaf_done, leaf);
	sutro_device_init(&leaf->device, rotational);
	leaf_group_init(&leaf->root, NULL, SUTRO_WEIGHT_DFL);
	sutro_core_init(&leaf->core, &leaf->root.core);
	leaf->core.leaves_of = leaf_leaves_of;
	tunables->rotational = rotational;
	tunables->slice_ns = rotational ? ROT_SLICE_NS : SLICE_NS;
	tunables->group_idle_ns = rotational ? ROT_IDLE_NS : IDLE_NS;
	tunables->depth_ns = sutro_cost_depth_ns(&leaf->device);
}

/* The leaf is ready for requests. */
void leaf_start(struct leaf *leaf)
{
	u32 depth = min(leaf->disk.drive.num.queue_depth, 128U);

	if (!leaf->slots)
		leaf->slots = 2 * depth;
	sutro_probe_init(&leaf->probe, leaf_limit(leaf));
	disk_start(&leaf->disk);
}

void leaf_group_init(struct leaf_group *group, struct leaf_group *parent,
		     u32 weight)
{
	*group = (struct leaf_group){};
	INIT_LIST_HEAD(&group->list[0]);
	INIT_LIST_HEAD(&group->list[1]);
	INIT_LIST_HEAD(&group->noted);
	sutro_peer_init(&group->peer);
	sutro_group_init(&group->core, parent ? &parent->core : NULL, weight);
}

/* As a write to io.sutro.weight: from the next dispatch on. */
void leaf_weight(struct leaf *leaf, struct leaf_group *group, u32 weight)
{
	group->note.weight = weight;
	leaf_note(leaf, group);
}

/* As a write to io.sutro.reserve. */
void leaf_reserve(struct leaf *leaf, struct leaf_group *group, u32 reserve)
{
	group->note.is_reserve = true;
	group->note.reserve = reserve;
	leaf_note(leaf, group);
}

/* As sutro_exit_sched(); true if nothing is left behind. */
bool leaf_exit(struct leaf *leaf)
{
	disk_exit(&leaf->disk);
	leaf_fold(leaf);
	leaf_forget(leaf, leaf->clock->now_ns + NSEC_PER_SEC);
	return !leaf->core.queued && !leaf->core.in_flight &&
	       !leaf->core.in_flight_ns && !leaf->core.nr_active &&
	       !leaf->slots_used && !leaf->held && !leaf->disk.nr;
}
