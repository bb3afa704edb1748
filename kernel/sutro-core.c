// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the algorithm.  Requests arrive, go to the device and complete; groups
 * become active, leave, and change their settings.  sutro-select.c chooses the next group.
 *
 * 1. Charging
 *
 * A request is charged an estimate when it is dispatched, so that the next
 * choice includes it, and the difference to its measured device time
 * when it completes (sutro-cost.c).
 *
 * 2. A group that is alone
 *
 * On a device without slices, a group that alone is active and has nothing queued
 * needs no choice: its requests pass, unless room is to be left for a group that will soon
 * be back (sutro-select.c).  Their device time is summed up, and the group
 * stays active while it has no request, until another group comes or it is removed.  So
 * a request does not walk through the tree.  Then the account is settled: the group is
 * charged, the clocks of its classes are set to its vtime, and if it is empty it leaves
 * as it would have when it became empty.
 *
 *	a passes 1000 requests of 0.1 ms, b comes: a's vtime and the clock are 100 ms
 *	later, b starts there, and neither owes the other anything.
 *
 * 3. Mechanisms
 *
 * Each is here for a section of Documentation/results.md, or for a test.  Its price is paid while
 * it is at work.  The second line of a row has its files.  Other files bind them to the block
 * layer (iosched, dispatch) and to cgroups (active, cgroup, setting), and show what they do
 * (debugfs, stat, sysfs, trace).
 *
 *	mechanism		needed by		price
 *
 *	shares by weight	Fairness: 200:100, 16	a walk to the root for
 *	 tree, weight, order,	and 256 groups, nested	each request
 *	 share
 *	classes			sutro_class_test	a lower class gets 3 %
 *	 tree
 *	slices, idling, depth	Fairness: streams,	a seek in 24, idle time;
 *	 select			iodepth 1 against 64	the group is charged
 *	starved groups		sutro_core_test: 5 s	1 in 33 of the time
 *	 starved
 *	direct dispatch		Instructions: one	none
 *	 core (alone), pass	group
 *	direct mode		Instructions: one	costs are measured for
 *	 direct, lease, member	group, a disk with room	2 % of the time
 *	costs			Fairness: charged	a table, or one for
 *	 cost, estimate		against true time	each group
 *	caches of drives	fsync: equal weights;	reads wait for writes
 *	 destage		tests/sim hdd-cache-*	that were charged
 *	amplification		tests/sim: ssd-nearly	charges of writes follow
 *	 amplification		-full			within half a second
 *	devices that change	Fairness: slower writes	probes begin again
 *	 change
 *	costs from before	tests/sim test_prior:	one comparison for each
 *	 prior			first second		window
 *	probes			Fairness: 4 KiB and	2 % of the time one class
 *	 probe, due, meter,	256 KiB, reads and	of requests is sent
 *	 peer, guest, result	writes, write cache
 *	protection		Fairness: reader with	what others leave unused
 *	 favoured, protect,	think time; tests/sim	in reserved windows
 *	 protected, gap, fit,	test_protect.py,
 *	 think, trial, window,	test_neighbours.py
 *	 part, apart, section,
 *	 others
 *	equal weights		Tenants: equal weights	an eighth of the device
 *	 slices			tests/sim test_slices
 *	slices of these		tests/sim: ssd-slice-	none for groups of the
 *	 excess			of-protected		root
 *	reserved time		Bandwidth floors;	as protection
 *	 reserve		tests/sim reserve.toml
 *	groups that stay away	tests/sim		1 in 64 of the group's
 *	 away			test_away.py		time, with reserved
 *							time 1 in 16
 *	room beside a group	tests/sim		a group alone has 64 ms
 *	 alone			test_short_jobs.py	of work at the device
 *	volumes			tests/sim		a cache line of each
 *	 volume			test_volume.py		protected cgroup
 *	latency targets		Databases: last column;	as protection
 *	 latency		test_latency.py
 *	journals and flushes	fsync			others wait for a commit,
 *	 commit, flush					a slice at most
 *	polled requests		tests/sim: test-direct	one poll for a jiffy
 *	 polled						in which others wait
 *	request slots		Fairness: 256 groups	submitters sleep
 *	 slots, quota, turn,	with 64 slots
 *	 leave
 *	ioprio, submitters	tests/vm: test_elevator	rings of active groups
 *	 lanes, requests	_requests.py
 *	merging, stages, notes	Instructions; Scale	a stage for each CPU
 *	 merge, stage, notes
 *
 * Documentation/decisions/2026-11-22-mechanisms-without-results.rst and
 * 2026-11-30-mechanisms-removed.rst have the experiments in which mechanisms were switched off
 * one by one.
 */
#include "sutro-core.h"

/* A group of which more than 1 in 8 requests is far from the last one seeks. */
#define SUTRO_SEEKY_BITS 4
/* Weight of the newest sample in the mean cost of a switch: 1 / 8. */
#define SUTRO_SWITCH_SHIFT 3
/* Weight of the newest sample in the mean think time: 1 / 8. */
#define SUTRO_THINK_SHIFT 3

/**
 * sutro_group_seeky - does the group jump about?
 * @group: the group
 *
 * Return: true if more than one in eight of its last 32 requests was far from
 * the one before.
 */
bool sutro_group_seeky(const struct sutro_group *group)
{
	return hweight32(READ_ONCE(group->seek_history)) > SUTRO_SEEKY_BITS;
}

/* Is @ahead half a slice or more ahead, by the entitlement of @behind? */
static bool sutro_owes(const struct sutro_core *core,
		       const struct sutro_entity *ahead,
		       const struct sutro_entity *behind)
{
	u64 slack = sutro_tree_vtime(behind, core->tunables.slice_ns / 2);

	return sutro_before(behind->vtime + slack, ahead->vtime);
}

/* Update the statistics of a group from its next request, which is @far from the last. */
static void sutro_learn_arrival(struct sutro_core *core,
				struct sutro_group *group, bool far, u64 now_ns)
{
	s64 think_ns;

	group->seek_history = (group->seek_history << 1) | far;

	if (group->queued || group->in_flight)
		return;
	group->busy_since_ns = now_ns;
	if (!group->empty_since_ns)
		return;
	think_ns = max_t(s64, now_ns - group->empty_since_ns, 0);
	sutro_gap_back(core, group, think_ns);
	sutro_protect_learn(group, think_ns);
	/* One long sleep must not look like a habit. */
	think_ns = min_t(s64, think_ns, 2 * sutro_return_ns(core));
	group->think_ns += (think_ns - (s64)group->think_ns) >>
			   SUTRO_THINK_SHIFT;
}

/* Do streams wait for a group (sutro-select.c)?  If so, count its requests. */
static void sutro_learn_sensitive(struct sutro_core *core,
				  struct sutro_group *group, bool wakes)
{
	const struct sutro_tunables *t = &core->tunables;

	if (!wakes && group == core->sensitive)
		core->sensitive = NULL;
	if (!wakes || !t->rotational || t->fairness || !t->protect ||
	    !sutro_group_favoured(group, SUTRO_PROTECT_SENSITIVE))
		return;
	if (group != core->sensitive) {
		core->sensitive = group;
		core->sensitive_nr = 0;
	}
	core->sensitive_nr++;
}

/**
 * sutro_core_queue - a request arrived
 * @core:	the leaf
 * @group:	its group
 * @far:	it is far from the group's last request
 * @now_ns:	the time
 */
void sutro_core_queue(struct sutro_core *core, struct sutro_group *group,
		      bool far, u64 now_ns)
{
	bool wakes = !group->queued && !group->in_flight;
	struct sutro_entity *woken, *served;

	/* Times of a group are in order, although CPUs take them before they have the lock. */
	if (wakes)
		now_ns = max3(now_ns, group->busy_since_ns,
			      group->empty_since_ns);
	sutro_core_time(core, now_ns);
	sutro_core_settle(core);
	sutro_learn_arrival(core, group, far, now_ns);
	core->queued++;
	if (group->queued++) {
		sutro_learn_sensitive(core, group, false);
		sutro_protect_arrived(core, group, now_ns);
		return;
	}

	sutro_starved_queued(core, group, now_ns);
	group->stat.backlog_ns -= now_ns;
	if (group == core->idle_for)
		sutro_stop_idling(core, SUTRO_IDLE_END_ARRIVED, now_ns);
	if (!group->self.active)
		core->nr_active++;
	sutro_tree_backlog(group, core->tunables.slice_ns / 2);
	sutro_protect_arrived(core, group, now_ns);
	sutro_learn_sensitive(core, group, wakes);

	if (wakes && core->in_service && group != core->in_service) {
		sutro_tree_compare(group, core->in_service, &woken, &served);
		if (woken->class < served->class ||
		    (woken->class == served->class &&
		     sutro_owes(core, served, woken) &&
		     !sutro_sensitive_waits(core, group)))
			core->preempt = true;
	}
}

/* A queued request is gone, which uses @ns of device time that is charged. */
static void sutro_unqueue(struct sutro_core *core, struct sutro_group *group,
			  s64 ns)
{
	core->queued--;
	group->queued--;
	if (sutro_group_protected(group))
		sutro_protect_unqueued(core, group);
	if (group->queued) {
		sutro_tree_charge(group, ns);
		return;
	}
	sutro_starved_unqueued(group);
	group->stat.backlog_ns = sutro_group_backlog_ns(group, core->now_ns);
	sutro_tree_unbacklog(group, core->tunables.slice_ns / 2, ns);
	if (!group->in_flight)
		sutro_leave_at_once(core, group);
}

/**
 * sutro_core_unqueue - a queued request is gone, e.g. merged into another
 * @core:	the leaf
 * @group:	its group
 */
void sutro_core_unqueue(struct sutro_core *core, struct sutro_group *group)
{
	sutro_unqueue(core, group, 0);
}

/**
 * sutro_core_interrupt - a request is dispatched without being chosen
 * @core:	the leaf
 * @now_ns:	the time
 *
 * To be called before its sutro_core_dispatch().
 */
void sutro_core_interrupt(struct sutro_core *core, u64 now_ns)
{
	now_ns = sutro_core_time(core, now_ns);
	core->starved = NULL;
	core->gap = false;
	sutro_stop_idling(core, SUTRO_IDLE_END_OTHER, now_ns);
}

/* Is the estimate of a request charged to its group? */
static bool sutro_is_charged(const struct sutro_core *core,
			     const struct sutro_group *group)
{
	/* Others have no use for the time (sutro-gap.c), or wait (sutro-part.c). */
	if (core->beside &&
	    (core->gap || core->protect.part < SUTRO_PROTECT_MOST_PART))
		return false;
	return core->gap || sutro_protect_charged(core, group);
}

/**
 * sutro_core_dispatch - a request goes to the device
 * @core:	the leaf
 * @group:	its group
 * @estimate_ns: device time that it will probably use
 */
void sutro_core_dispatch(struct sutro_core *core, struct sutro_group *group,
			 u64 estimate_ns)
{
	bool charged = sutro_is_charged(core, group);
	u64 charge_ns = charged ? estimate_ns : 0;

	if (sutro_group_protected(group) && (charged || !core->beside))
		sutro_excess_charge(group, estimate_ns, charged);
	core->beside = false;
	if (sutro_protects(&core->protect)) {
		sutro_tree_charge(group, charge_ns);
		charge_ns = 0;
		sutro_protect_sent(core, group, estimate_ns);
	}
	core->async = false;
	group->in_flight++;
	sutro_starved_sent(core, group, estimate_ns);
	sutro_unqueue(core, group, charge_ns);
	core->in_flight++;
	core->in_flight_ns += estimate_ns;
	core->last_served = group;
	if (group == core->in_service)
		core->slice_used_ns += estimate_ns;
}

/* Learn the cost of a switch: the first request of a slice exceeds its estimate by @more_ns. */
static void sutro_learn_switch(struct sutro_core *core, s64 more_ns)
{
	core->fresh = false;
	if (more_ns <= 0)
		return;
	more_ns = min_t(s64, more_ns, core->tunables.slice_ns);
	if (core->switch_ns)
		core->switch_ns += (more_ns - (s64)core->switch_ns) >>
				   SUTRO_SWITCH_SHIFT;
	else
		core->switch_ns = more_ns;
}

/**
 * sutro_core_complete - requests of a group left the device
 * @core:	the leaf
 * @group:	the group
 * @nr:		how many
 * @estimate_ns: sum of the estimates that were charged at dispatch
 * @cost_ns:	sum of the device time that they used, 0 if they never ran
 * @now_ns:	the time of the last one
 */
void sutro_core_complete(struct sutro_core *core, struct sutro_group *group,
			 u32 nr, u64 estimate_ns, u64 cost_ns, u64 now_ns)
{
	s64 delta_ns = cost_ns - estimate_ns;
	bool charged;

	group->in_flight -= nr;
	core->in_flight -= nr;
	sutro_protect_completed(core, group, nr, cost_ns, now_ns);
	core->in_flight_ns -= estimate_ns;
	sutro_alone_completed(core, estimate_ns, now_ns);
	group->stat.time_ns += cost_ns;
	if (!group->queued && !group->in_flight)
		group->stat.busy_ns +=
			max_t(s64, now_ns - group->busy_since_ns, 0);
	if (group == core->alone) {
		core->alone_ns += delta_ns;
		if (!group->in_flight)
			group->empty_since_ns = now_ns;
		return;
	}
	charged = sutro_protect_charged(core, group);
	if (charged)
		sutro_tree_charge(group, delta_ns);
	if (sutro_group_protected(group))
		sutro_excess_charge(group, delta_ns, charged);
	if (group == core->in_service) {
		core->slice_used_ns =
			max_t(s64, 0, core->slice_used_ns + delta_ns);
		if (core->fresh)
			sutro_learn_switch(core, delta_ns);
	}
	if (!group->queued && !group->in_flight)
		sutro_leave(core, group, now_ns);
}

/* ---- the only active group ---- */

/* Set the clock of each class on the way from the only active group to its vtime. */
static void sutro_catch_up(struct sutro_group *group)
{
	struct sutro_level *level = &group->level;
	struct sutro_entity *entity = &group->self;

	for (;;) {
		struct sutro_rank *rank = sutro_rank_of(level, entity);

		if (sutro_before(rank->vtime, entity->vtime))
			rank->vtime = entity->vtime;
		level = sutro_level_of(group);
		if (!level)
			break;
		entity = &group->entity;
		group = group->parent;
	}
}

/**
 * sutro_core_settle - charge the requests that have passed
 * @core:	the leaf
 *
 * To be called before anything of a group is changed by others.
 */
void sutro_core_settle(struct sutro_core *core)
{
	struct sutro_group *group = core->alone;

	if (!group)
		return;
	core->alone = NULL;
	sutro_tree_charge(group, core->alone_ns);
	sutro_catch_up(group);
	core->alone_ns = 0;
	if (!group->queued && !group->in_flight)
		sutro_leave(core, group, group->empty_since_ns);
}

/**
 * sutro_core_alone_until - the only group had requests until now that were not counted
 * @core:	the leaf
 * @now_ns:	the time
 *
 * If the group is empty, it became empty now.
 */
void sutro_core_alone_until(struct sutro_core *core, u64 now_ns)
{
	struct sutro_group *group = core->alone;

	if (group && !group->queued && !group->in_flight)
		group->empty_since_ns = now_ns;
}

/**
 * sutro_core_may_pass - is a group alone, with nothing to be decided?
 * @core:	the leaf
 * @group:	the group
 * @now_ns:	the time
 *
 * Return: true if the next request may be given to sutro_core_pass().
 */
bool sutro_core_may_pass(const struct sutro_core *core,
			 struct sutro_group *group, u64 now_ns)
{
	if (core->alone != group && core->nr_active != group->self.active)
		return false;
	/* One that is gone is to leave, which one that passes does not. */
	return !group->gone && !core->queued && !sutro_waits(core) &&
	       !sutro_protects(&core->protect) &&
	       !sutro_leaves_room(core, group, now_ns) &&
	       !(sutro_is_shallow(core, now_ns) && sutro_core_is_full(core)) &&
	       !sutro_alone_is_full(core) &&
	       !sutro_is_limited(core, group, now_ns);
}

/**
 * sutro_core_pass - a request arrived and goes to the device at once
 * @core:	the leaf
 * @group:	its group, of which sutro_core_may_pass() is true
 * @far:	it is far from the group's last request
 * @estimate_ns: device time that it will probably use
 * @now_ns:	the time
 */
void sutro_core_pass(struct sutro_core *core, struct sutro_group *group,
		     bool far, u64 estimate_ns, u64 now_ns)
{
	if (core->alone != group) {
		sutro_core_queue(core, group, far, now_ns);
		sutro_core_dispatch(core, group, estimate_ns);
		core->alone = group;
		return;
	}
	if (group->in_flight)
		group->seek_history = (group->seek_history << 1) | far;
	else
		sutro_learn_arrival(core, group, far, now_ns);
	group->in_flight++;
	core->in_flight++;
	core->in_flight_ns += estimate_ns;
	core->alone_ns += estimate_ns;
}

/* ---- groups ---- */

/**
 * sutro_core_init - prepare the state of a leaf
 * @core:	the state, zeroed
 * @root:	the group of the root cgroup
 */
void sutro_core_init(struct sutro_core *core, struct sutro_group *root)
{
	core->root = root;
	INIT_LIST_HEAD(&core->leaving);
	INIT_LIST_HEAD(&core->slotless);
	INIT_LIST_HEAD(&core->waiting);
	sutro_protect_init(&core->protect);
}

/**
 * sutro_group_set_gone - a group's cgroup has been removed
 * @core:	the leaf
 * @group:	the group, which may still have requests
 */
void sutro_group_set_gone(struct sutro_core *core, struct sutro_group *group)
{
	group->gone = true;
	if (group->queued || list_empty(&group->node))
		return;
	sutro_leave_at_once(core, group);
}

/**
 * sutro_group_set_class - change a group's class
 * @core:	the leaf
 * @group:	the group
 * @class:	its new class
 *
 * The slice in service ends if @group comes before its owner now, and did not before.
 * Classes below the level at which the two compete change nothing: a user must not end
 * the slices of others by writing to the cgroups of a delegated subtree.
 */
void sutro_group_set_class(struct sutro_core *core, struct sutro_group *group,
			   enum sutro_class class)
{
	struct sutro_entity *changed, *served;

	if (group->entity.class == class)
		return;
	sutro_tree_set_class(group, class);
	if (!core->in_service || !group->entity.active)
		return;
	sutro_tree_compare(group, core->in_service, &changed, &served);
	if (changed == &group->entity && changed->class < served->class)
		core->preempt = true;
}
