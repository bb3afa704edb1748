// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: files in debugfs.
 *
 * In /sys/kernel/debug/block/<disk>/sched/, all read-only:
 *
 *	state	the leaf: requests queued and at the device, the group that is served
 *	groups	a line for each cgroup that uses the leaf, parents before children
 *	costs	measured costs of requests, and how many times that writes are charged
 *	probes	the measurements of these costs
 *	group_costs	the same for each cgroup, where that differs (rotational)
 *
 * A line holds what was true for a moment, not two lines the same moment: only
 * state and probes are printed with sutro_queue.lock held.  Lists of cgroups are
 * walked under RCU, a page of text at a time, so that 10,000 of them delay nothing else.
 *
 * For debugging; no program should depend on it.
 */
#include <linux/cgroup.h>
#include <linux/seq_file.h>

#include "sutro-arrival.h"
#include "sutro-report.h"

#ifdef CONFIG_BLK_DEBUG_FS

/* A path that is longer is cut at its end. */
#define SUTRO_PATH_BYTES 256

/* Called with sutro_hold_elevator().  Returns NULL if the elevator was removed before its files. */
static struct sutro_queue *sutro_debugfs_queue(struct request_queue *q)
{
	struct elevator_queue *eq = q->elevator;

	if (!eq || eq->type->elevator_attrs != sutro_attrs)
		return NULL;
	return eq->elevator_data;
}

static void sutro_show_path(struct seq_file *sf, struct sutro_blkg *sblkg)
{
	char path[SUTRO_PATH_BYTES];

	if (cgroup_path(sutro_to_blkg(sblkg)->blkcg->css.cgroup, path,
			sizeof(path)) < 0)
		strscpy(path, "?");
	seq_escape(sf, path, " \t\n\\");
}

static void sutro_show_name(struct seq_file *sf, const char *name,
			    struct sutro_group *group)
{
	seq_printf(sf, "%s ", name);
	if (group)
		sutro_show_path(sf, sutro_blkg_of(group));
	else
		seq_puts(sf, "-");
	seq_putc(sf, '\n');
}

static void sutro_show_state(struct seq_file *sf, struct sutro_queue *sq)
{
	const struct sutro_core *core = &sq->core;

	spin_lock(&sq->lock);
	seq_printf(sf, "rotational %d\n", core->tunables.rotational);
	seq_printf(sf, "staged %d\nwaiting %d\n", sutro_staged(sq),
		   sq->waiting);
	seq_printf(sf, "queued %u\nprompt %zu\n", core->queued,
		   list_count_nodes(&sq->prompt));
	seq_printf(sf, "in_flight %u\nin_flight_ns %llu\n", core->in_flight,
		   core->in_flight_ns);
	seq_printf(sf, "depth_ns %llu\nbusy_ns %llu\n", core->tunables.depth_ns,
		   core->tunables.busy_ns);
	seq_printf(sf, "active %u\n", core->nr_active);
	seq_printf(sf, "direct %d\n", !!READ_ONCE(sq->direct_lease));
	seq_printf(sf, "direct_members %u\ndirect_pause_ns %llu\n",
		   sq->lease.members, sq->lease.pause_ns);
	sutro_show_name(sf, "in_service", core->in_service);
	seq_printf(sf, "slices_for_all %d\n",
		   sutro_is_fair_at(core, ktime_get_ns()));
	seq_printf(sf, "slice_used_ns %llu\n", core->slice_used_ns);
	sutro_show_name(sf, "idle_for", core->idle_for);
	seq_printf(sf, "protected %zu\n",
		   list_count_nodes(&sq->core.protect.groups));
	seq_printf(sf, "protect_cycle_ns %llu\nprotect_shared_part %u/%u\n",
		   core->protect.cycle_ns, core->protect.part,
		   SUTRO_PROTECT_WHOLE);
	seq_printf(sf, "lanes_idle %zu\n", list_count_nodes(&sq->pool.idle));
	spin_unlock(&sq->lock);
}

/* The first group at or behind @css in a walk of the tree from the root. */
static struct sutro_blkg *sutro_debugfs_group(struct request_queue *q,
					      struct cgroup_subsys_state *css)
{
	while (css) {
		struct blkcg_gq *blkg = blkg_lookup(css_to_blkcg(css), q);
		struct sutro_blkg *sblkg = blkg ? sutro_from_blkg(blkg) : NULL;

		/* For a blkg without our data, sutro_from_blkg() returns that of an ancestor. */
		if (sblkg && sutro_to_blkg(sblkg) == blkg)
			return sblkg;
		css = css_next_descendant_pre(css, &blkcg_root.css);
	}
	return NULL;
}

static void *sutro_debugfs_next(struct seq_file *sf, void *v, loff_t *pos)
{
	struct sutro_blkg *sblkg = v;
	struct cgroup_subsys_state *css = &sutro_to_blkg(sblkg)->blkcg->css;

	++*pos;
	css = css_next_descendant_pre(css, &blkcg_root.css);
	return sutro_debugfs_group(sf->private, css);
}

static void *sutro_debugfs_start(struct seq_file *sf, loff_t *pos)
	__acquires(RCU)
{
	struct sutro_blkg *sblkg;
	loff_t at = 0;

	sutro_hold_elevator(sf->private);
	rcu_read_lock();
	if (!sutro_debugfs_queue(sf->private))
		return ERR_PTR(-ENODEV);
	sblkg = sutro_debugfs_group(sf->private, &blkcg_root.css);
	while (sblkg && at < *pos)
		sblkg = sutro_debugfs_next(sf, sblkg, &at);
	return sblkg;
}

static void sutro_debugfs_stop(struct seq_file *sf, void *v) __releases(RCU)
{
	rcu_read_unlock();
	sutro_release_elevator(sf->private);
}

/* Rings are not freed while the elevator is there. */
static void sutro_show_prio(struct seq_file *sf, struct sutro_blkg *sblkg,
			    const char *name, enum sutro_prio prio)
{
	struct sutro_rings *rings = READ_ONCE(sblkg->requests.rings);

	seq_printf(sf, " %s=%u+%u", name,
		   rings ? READ_ONCE(rings->of[1][prio].nr) : 0,
		   rings ? READ_ONCE(rings->of[0][prio].nr) : 0);
}

static int sutro_groups_show(struct seq_file *sf, void *v)
{
	struct sutro_blkg *sblkg = v;
	struct sutro_group *group = &sblkg->group;
	int i;

	sutro_show_path(sf, sblkg);
	seq_printf(sf, " id=%llu class=%s weight=%u share_permyriad=%llu",
		   sutro_cgroup_id(sblkg),
		   sutro_class_names[READ_ONCE(group->entity.class)],
		   READ_ONCE(group->entity.weight),
		   sutro_group_share(group, 10000));
	seq_printf(sf, " active=%d queued=%u in_flight=%u",
		   READ_ONCE(group->self.active), READ_ONCE(group->queued),
		   READ_ONCE(group->in_flight));
	sutro_show_prio(sf, sblkg, "queued_rt", SUTRO_PRIO_RT);
	sutro_show_prio(sf, sblkg, "queued_be", SUTRO_PRIO_BE);
	sutro_show_prio(sf, sblkg, "queued_idle", SUTRO_PRIO_IDLE);
	seq_printf(sf, " slots=%d slots_refused=%u",
		   atomic_read(&sblkg->nr_requests),
		   atomic_read(&sblkg->slots_refused));
	seq_printf(sf, " seeky=%d think_ns=%llu", sutro_group_seeky(group),
		   READ_ONCE(group->think_ns));
	seq_printf(sf, " lag_ns=%lld time_ns=%llu idle_ns=%llu dequeue=%llu",
		   sutro_group_lag_ns(group), READ_ONCE(sblkg->stat.time_ns),
		   READ_ONCE(group->stat.idle_ns),
		   READ_ONCE(group->stat.dequeue));
	for (i = 0; i < SUTRO_CLASS_NR; i++)
		seq_printf(sf, " %s_children=%u %s_children_weight=%u",
			   sutro_class_names[i],
			   READ_ONCE(group->level.rank[i].nr_active),
			   sutro_class_names[i],
			   READ_ONCE(group->level.rank[i].weight_sum));
	seq_putc(sf, '\n');
	return 0;
}

static const char *const sutro_op_names[] = {
	[SUTRO_READ] = "read",
	[SUTRO_WRITE] = "write",
	[SUTRO_OTHER] = "other",
};

static void sutro_show_costs(struct seq_file *sf,
			     const struct sutro_costs *costs)
{
	unsigned int i;

	for (i = 0; i < SUTRO_CLASSES; i++) {
		u64 ns16 = READ_ONCE(costs->ns16[i]);

		if (ns16)
			seq_printf(sf, "%s %u %llu\n",
				   sutro_op_names[sutro_cost_op(i)],
				   SUTRO_SIZE_MIN_BYTES << (i % SUTRO_SIZES),
				   ns16 / 16);
	}
}

static void sutro_show_probes(struct seq_file *sf, struct sutro_queue *sq)
{
	unsigned int i;

	seq_puts(sf, "# op bytes<= ns depth probes failures interval_ns\n");
	spin_lock(&sq->lock);
	for (i = 0; i < SUTRO_CLASSES; i++) {
		const struct sutro_probe_class *of = &sq->probe.of[i];
		u64 cost_ns;

		if (!of->probes && !of->failures)
			continue;
		/* Read without done_lock: the cost may lack the latest completion. */
		cost_ns = data_race(sutro_cost_class_ns(&sq->device, i));
		seq_printf(sf, "%s %u %llu %u %u %u %llu\n",
			   sutro_op_names[sutro_cost_op(i)],
			   SUTRO_SIZE_MIN_BYTES << (i % SUTRO_SIZES), cost_ns,
			   of->depth, of->probes, of->failures,
			   of->interval_ns);
	}
	spin_unlock(&sq->lock);
}

/* How many times their cost writes are charged, in hundredths. */
static u64 sutro_write_percent(const struct sutro_amplification *amplification)
{
	/* Read without done_lock: another completion may change it. */
	u64 times = data_race(amplification->times);

	return times ? 100 * times >> SUTRO_UNIT_SHIFT : 100;
}

static void sutro_show_device(struct seq_file *sf, struct sutro_queue *sq)
{
	u64 percent;

	if (sq->device.rotational) {
		seq_puts(sf,
			 "# the gap between completions; see group_costs\n");
		sutro_show_costs(sf, &sq->device.costs);
		return;
	}
	percent = sutro_write_percent(&sq->device.amplification);
	seq_puts(sf, "# op bytes<= ns\n");
	sutro_show_costs(sf, &sq->device.costs);
	seq_printf(sf, "write_times %u.%02u\n", (u32)percent / 100,
		   (u32)percent % 100);
}

static int sutro_debugfs_show(struct request_queue *q, struct seq_file *sf,
			      void (*show)(struct seq_file *sf,
					   struct sutro_queue *sq))
{
	struct sutro_queue *sq;

	sutro_hold_elevator(q);
	sq = sutro_debugfs_queue(q);
	if (sq)
		show(sf, sq);
	sutro_release_elevator(q);
	return sq ? 0 : -ENODEV;
}

static int sutro_state_show(void *data, struct seq_file *sf)
{
	return sutro_debugfs_show(data, sf, sutro_show_state);
}

static int sutro_costs_show(void *data, struct seq_file *sf)
{
	return sutro_debugfs_show(data, sf, sutro_show_device);
}

static int sutro_probes_show(void *data, struct seq_file *sf)
{
	return sutro_debugfs_show(data, sf, sutro_show_probes);
}

static int sutro_group_costs_show(struct seq_file *sf, void *v)
{
	struct sutro_blkg *sblkg = v;
	const struct sutro_costs *costs;

	seq_puts(sf, "# ");
	sutro_show_path(sf, sblkg);
	seq_putc(sf, '\n');
	costs = sutro_blkg_costs(sblkg);
	if (costs)
		sutro_show_costs(sf, costs);
	return 0;
}

static const struct seq_operations sutro_groups_ops = {
	.start = sutro_debugfs_start,
	.next = sutro_debugfs_next,
	.stop = sutro_debugfs_stop,
	.show = sutro_groups_show,
};

static const struct seq_operations sutro_group_costs_ops = {
	.start = sutro_debugfs_start,
	.next = sutro_debugfs_next,
	.stop = sutro_debugfs_stop,
	.show = sutro_group_costs_show,
};

const struct blk_mq_debugfs_attr sutro_debugfs_attrs[] = {
	{ "state", 0400, sutro_state_show },
	{ "groups", 0400, .seq_ops = &sutro_groups_ops },
	{ "costs", 0400, sutro_costs_show },
	{ "probes", 0400, sutro_probes_show },
	{ "group_costs", 0400, .seq_ops = &sutro_group_costs_ops },
	{},
};

#endif /* CONFIG_BLK_DEBUG_FS */
