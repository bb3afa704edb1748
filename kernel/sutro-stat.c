// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a line of io.sutro.stat, of one group on one leaf.
 *
 * See Documentation/ABI/testing/cgroup-io-sutro.  Other lines than those of one cgroup have
 * the same values: io.sutro.active, of the groups in use (sutro-active.c).
 */
#include "sutro-cgroup.h"
#include "sutro-completion.h"

static void sutro_show_rlat(struct seq_file *sf, const struct sutro_blkg *sblkg)
{
	/* Pairs with smp_store_release() in sutro_busy(). */
	const struct sutro_busy *busy = READ_ONCE(sblkg->busy);
	unsigned int i, j;

	seq_puts(sf, " rlat=");
	for (i = 0; i < SUTRO_LATENCY_BUCKETS; i++) {
		u32 nr = busy ? READ_ONCE(busy->rlat[i]) : 0;

		for (j = 0; !busy && j < SUTRO_FEW_READS; j++)
			nr += READ_ONCE(sblkg->few[j]) == i + 1;
		seq_put_decimal_ull(sf, i ? "," : "", nr);
	}
}

static const char *const sutro_latency_names[SUTRO_LATENCY_STATES] = {
	[SUTRO_LATENCY_UNKNOWN] = "unknown",
	[SUTRO_LATENCY_MET] = "met",
	[SUTRO_LATENCY_MISSED] = "missed",
	[SUTRO_LATENCY_UNREACHABLE] = "unreachable",
};

/* Show the latency target that holds for a group, if there is one. */
static void sutro_show_target(struct seq_file *sf, struct sutro_group *group)
{
	const struct sutro_latency *latency = sutro_latency_of(group);
	u8 state = latency ? READ_ONCE(latency->state) : SUTRO_LATENCY_UNKNOWN;

	if (sutro_latency_late_ns(group))
		seq_printf(sf, " latency=%s", sutro_latency_names[state]);
}

/* Requests in flight, without completed ones whose notes are not processed yet. */
static u32 sutro_in_flight(struct sutro_blkg *sblkg)
{
	u32 in_flight = READ_ONCE(sblkg->group.in_flight);

	return in_flight - min(in_flight, READ_ONCE(sblkg->note.nr));
}

/* Time up to now in which the group had a request queued or at the disk. */
static u64 sutro_busy_ns(struct sutro_blkg *sblkg)
{
	const struct sutro_group *group = &sblkg->group;
	u64 busy_ns = READ_ONCE(group->stat.busy_ns);
	u64 since_ns = READ_ONCE(group->busy_since_ns), until_ns;

	if (READ_ONCE(group->queued) || sutro_in_flight(sblkg))
		until_ns = ktime_get_ns();
	else if (READ_ONCE(group->in_flight))
		until_ns = READ_ONCE(sblkg->note.now_ns);
	else
		return busy_ns;
	return busy_ns + max_t(s64, until_ns - since_ns, 0);
}

/**
 * sutro_show_stat - the rest of a line of io.sutro.stat, behind the leaf
 * @sf:		where
 * @sblkg:	of which group
 *
 * Counters are read without the locks under which they are written: values may be a request
 * apart.
 *
 * Context: RCU read side; older kernels hold q->queue_lock, too.
 */
void sutro_show_stat(struct seq_file *sf, struct sutro_blkg *sblkg)
{
	struct sutro_group *group = &sblkg->group;
	const u64 *bytes = sblkg->stat.bytes, *ios = sblkg->stat.ios;
	u64 backlog_ns = sutro_group_backlog_ns(group, ktime_get_ns());

	seq_put_decimal_ull(sf, " time_ns=", READ_ONCE(sblkg->stat.time_ns));
	seq_put_decimal_ull(sf, " rbytes=", READ_ONCE(bytes[SUTRO_READ]));
	seq_put_decimal_ull(sf, " wbytes=", READ_ONCE(bytes[SUTRO_WRITE]));
	seq_put_decimal_ull(sf, " rios=", READ_ONCE(ios[SUTRO_READ]));
	seq_put_decimal_ull(sf, " wios=", READ_ONCE(ios[SUTRO_WRITE]));
	seq_put_decimal_ull(sf, " wait_ns=", READ_ONCE(sblkg->stat.wait_ns));
	seq_put_decimal_ull(sf,
			    " pending_ns=", READ_ONCE(sblkg->stat.pending_ns));
	seq_put_decimal_ull(sf, " busy_ns=", sutro_busy_ns(sblkg));
	seq_put_decimal_ull(sf, " backlog_ns=",
			    sutro_rising_ns(&sblkg->stat.backlog_seen_ns,
					    backlog_ns));
	seq_put_decimal_ull(sf, " idle_ns=", READ_ONCE(group->stat.idle_ns));
	seq_put_decimal_ull(sf, " queued=", READ_ONCE(group->queued));
	seq_put_decimal_ull(sf, " in_flight=", sutro_in_flight(sblkg));
	seq_put_decimal_ull(sf, " dequeue=", READ_ONCE(group->stat.dequeue));
	seq_put_decimal_ll(sf, " lag_ns=", sutro_group_lag_ns(group));
	sutro_show_target(sf, group);
	sutro_show_rlat(sf, sblkg);
	seq_putc(sf, '\n');
}
