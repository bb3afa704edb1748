// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: tracepoints for scheduling decisions.
 *
 * Each decision goes to its tracepoint (sutro-trace.h).
 */
#include "sutro-report.h"

#define CREATE_TRACE_POINTS
#include "sutro-trace.h"

static void sutro_report_expiry(struct sutro_queue *sq)
{
	enum sutro_expiry why = sq->core.expiry;
	struct sutro_blkg *sblkg = sutro_blkg_of(sq->core.expired);

	sq->core.expiry = SUTRO_EXPIRY_NONE;
	trace_sutro_expire(sq->q->disk, sutro_cgroup_id(sblkg), why);
}

static void sutro_report_idle_end(struct sutro_queue *sq)
{
	enum sutro_idle_end why = sq->core.idle_end;
	struct sutro_blkg *sblkg = sutro_blkg_of(sq->core.idled_for);

	sq->core.idle_end = SUTRO_IDLE_END_NONE;
	trace_sutro_idle_end(sq->q->disk, sutro_cgroup_id(sblkg),
			     sq->core.idled_ns, why);
}

/**
 * sutro_report - report the decisions of the last selection
 * @sq:		the leaf
 *
 * Context: sutro_queue.lock is held.  To be called before the group concerned may
 * be freed.
 */
void sutro_report(struct sutro_queue *sq)
{
	if (sq->core.idle_end != SUTRO_IDLE_END_NONE)
		sutro_report_idle_end(sq);
	if (sq->core.expiry != SUTRO_EXPIRY_NONE)
		sutro_report_expiry(sq);
}

/**
 * sutro_report_idle - report that the leaf idles for a group
 * @sq:		the leaf
 * @wait_ns:	how long it will at most
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_report_idle(struct sutro_queue *sq, u64 wait_ns)
{
	struct sutro_group *group = sq->core.idle_for;
	bool owed = group != sq->core.in_service;

	if (!group || sq->core.idle_since_ns == sq->idle_reported_ns)
		return;
	sq->idle_reported_ns = sq->core.idle_since_ns;
	trace_sutro_idle(sq->q->disk, sutro_cgroup_id(sutro_blkg_of(group)),
			 wait_ns, owed);
}

/**
 * sutro_report_refused - report that a group's submitters get no more slots
 * @sq:		the leaf
 * @sblkg:	the group
 * @used:	slots that it holds
 * @limit:	slots that it may hold
 *
 * Context: any in which @sblkg is alive.
 */
void sutro_report_refused(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			  unsigned int used, unsigned int limit)
{
	atomic_inc(&sblkg->slots_refused);
	trace_sutro_slot_refused(sq->q->disk, sutro_cgroup_id(sblkg), used,
				 limit);
}

/**
 * sutro_report_costs - report changed costs
 * @sq:		the leaf
 * @sblkg:	the group of the measured requests
 * @old:	the former costs
 * @new:	the present costs
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_report_costs(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			const struct sutro_costs *old,
			const struct sutro_costs *new)
{
	unsigned int i;

	for (i = 0; i < SUTRO_CLASSES; i++) {
		if (old->ns16[i] != new->ns16[i])
			trace_sutro_cost(sq->q->disk, sutro_cgroup_id(sblkg), i,
					 old->ns16[i], new->ns16[i]);
	}
}
