// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: events since the last dispatch.
 *
 * Completions come in interrupt context, settings are written and cgroups removed
 * under q->queue_lock: none of them may take sutro_queue.lock.  They leave a note
 * with the group it is about (struct sutro_note), under done_lock, and the next
 * dispatch folds all notes into the algorithm.  Several notes of one group add
 * up.  The algorithm counts a request as at the device until it reads of it, so that
 * its group is active, which holds the blkg; other notes hold it themselves.
 */
#include <linux/slab.h>

#include "sutro-arrival.h"
#include "sutro-cgroup.h"
#include "sutro-completion.h"
#include "sutro-report.h"
#include "sutro-service.h"
#include "sutro-trace.h"

/* Flushes of a group that are noted before the queue is run for them. */
#define SUTRO_NOTE_FLUSHES 64

/* Queue @sblkg for the next dispatch, which processes its notes. */
static inline void sutro_note(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	lockdep_assert_held(&sq->done_lock);
	if (sblkg->note.gone)
		WRITE_ONCE(sq->kick, true);
	if (list_empty(&sblkg->note_node) && !sq->exiting)
		list_add_tail(&sblkg->note_node, &sq->notes);
}

/* Queue a group that need not be active, with a reference. */
static void sutro_note_held(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	sutro_note(sq, sblkg);
	if (!sblkg->note.held && !list_empty(&sblkg->note_node)) {
		sblkg->note.held = true;
		blkg_get(sutro_to_blkg(sblkg));
	}
}

/* The leaf of a group, while its policy data exists. */
static struct sutro_queue *sutro_blkg_queue(struct sutro_blkg *sblkg)
{
	return sutro_to_blkg(sblkg)->q->elevator->elevator_data;
}

/**
 * sutro_note_setting - a group has another setting from the next dispatch on
 * @sblkg:	the group
 * @setting:	which of them; sutro_setting() returns its value
 */
void sutro_note_setting(struct sutro_blkg *sblkg, enum sutro_setting setting)
{
	struct sutro_queue *sq = sutro_blkg_queue(sblkg);
	unsigned long flags;

	spin_lock_irqsave(&sq->done_lock, flags);
	sblkg->note.settings |= BIT(setting);
	sutro_note_held(sq, sblkg);
	sutro_direct_end(sq);
	spin_unlock_irqrestore(&sq->done_lock, flags);
}

/* Drop the notes of @sblkg, which gets no further ones. */
static void sutro_note_drop(struct sutro_blkg *sblkg)
{
	list_del_init(&sblkg->note_node);
	if (sblkg->note.held)
		blkg_put(sutro_to_blkg(sblkg));
	sblkg->note = (struct sutro_note){};
}

/**
 * sutro_note_offline - a group's cgroup is gone: do not pin it
 * @sblkg:	the group
 *
 * A group that had its last request completed stays active until the next
 * dispatch, which may be long in coming.  Before the first request there is nothing to
 * let go of: the cgroup went while the elevator started, or the elevator could not start
 * for lack of memory, and sutro_start() is about to free the leaf.
 *
 * Context: q->queue_lock is held, under which a queue cannot be run: the timer
 * does that.
 */
void sutro_note_offline(struct sutro_blkg *sblkg)
{
	struct sutro_queue *sq = sutro_blkg_queue(sblkg);
	unsigned long flags;

	spin_lock_irqsave(&sq->done_lock, flags);
	sutro_direct_forget(sq, sblkg);
	if (!sq->core.root) {
		sutro_note_drop(sblkg);
		/* Bios of it may still wait for the elevator to start. */
		sblkg->note.gone = true;
	} else if (!sq->exiting) {
		sutro_flush_forget(sq, sblkg);
		sblkg->note.gone = true;
		sutro_note_held(sq, sblkg);
		hrtimer_start(&sq->timer, 0, HRTIMER_MODE_REL);
	}
	spin_unlock_irqrestore(&sq->done_lock, flags);
}

/* A setting of a group has changed. */
static void sutro_fold_setting(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			       enum sutro_setting setting)
{
	struct sutro_group *group = &sblkg->group;
	u32 value = sutro_setting(sblkg, setting);

	sutro_protect_changed(&sq->core);
	switch (setting) {
	case SUTRO_SETTING_WEIGHT:
		sutro_group_set_weight(group, value);
		break;
	case SUTRO_SETTING_CLASS:
		sutro_group_set_class(&sq->core, group,
				      sutro_setting_class(value));
		break;
	case SUTRO_SETTING_RESERVE:
		group->reserve = sutro_setting_reserve(value);
		break;
	case SUTRO_SETTING_LATENCY:
		sutro_latency_set(group, sutro_setting_latency(value));
		break;
	case SUTRO_SETTINGS:
		break;
	}
}

/* Apply the new settings of a group, or the removal of its cgroup. */
static void sutro_fold_change(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			      const struct sutro_note *note)
{
	unsigned int setting;

	sutro_core_settle(&sq->core);
	sutro_lease_restart(&sq->lease);
	if (note->gone)
		sutro_group_set_gone(&sq->core, &sblkg->group);
	for (setting = 0; setting < SUTRO_SETTINGS; setting++)
		if (note->settings & BIT(setting))
			sutro_fold_setting(sq, sblkg, setting);
}

/* Count flushes that have begun as requests at the device. */
static void sutro_fold_flushes(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			       u32 nr)
{
	u64 now_ns = ktime_get_ns();

	while (nr--) {
		sutro_queue_one(sq, sblkg, false, now_ns);
		sutro_core_dispatch(&sq->core, &sblkg->group, 0);
		sutro_core_commit(&sq->core, &sblkg->group, now_ns);
	}
}

/**
 * sutro_fold - take the notes
 * @sq:		the leaf
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_fold(struct sutro_queue *sq)
{
	lockdep_assert_held(&sq->lock);

	while (!list_empty_careful(&sq->notes)) {
		struct sutro_blkg *sblkg;
		struct sutro_note note;

		spin_lock_irq(&sq->done_lock);
		WRITE_ONCE(sq->kick, false);
		sblkg = list_first_entry(&sq->notes, struct sutro_blkg,
					 note_node);
		list_del_init(&sblkg->note_node);
		note = sblkg->note;
		sblkg->note = (struct sutro_note){ .gone = note.gone };
		spin_unlock_irq(&sq->done_lock);

		/* A flush changes no group, and is ordered beside direct mode. */
		if (note.settings || note.gone)
			sutro_fold_change(sq, sblkg, &note);
		if (note.nr_flushes)
			sutro_fold_flushes(sq, sblkg, note.nr_flushes);
		sutro_protect_took(&sq->core, &sblkg->group,
				   note.nr - note.nr_untimed, note.took_us,
				   note.nr_slow, note.now_ns);
		if (note.nr_commits)
			sutro_core_committed(&sq->core, &sblkg->group,
					     note.nr_commits);
		if (note.nr)
			sutro_core_complete(&sq->core, &sblkg->group, note.nr,
					    note.estimate_ns, note.cost_ns,
					    note.now_ns);
		if (note.held)
			blkg_put(sutro_to_blkg(sblkg));
	}
}

/* As sutro_cost_complete(), and report a changed cost. */
static noinline u64 sutro_note_cost(struct sutro_queue *sq,
				    struct sutro_blkg *sblkg,
				    struct sutro_sample *sample)
{
	struct sutro_costs *own = sutro_blkg_costs(sblkg);
	struct sutro_costs *costs = own ?: &sq->device.costs;
	struct sutro_costs old = *costs;
	u64 cost_ns;

	cost_ns = sutro_cost_complete(&sq->device, own, sample);
	sutro_report_costs(sq, sblkg, &old, costs);
	return cost_ns;
}

static struct sutro_busy *sutro_busy_new(const struct sutro_blkg *sblkg)
{
	const gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN;
	struct sutro_busy *busy = kzalloc(sizeof(*busy), gfp);
	unsigned int i;

	for (i = 0; busy && i < SUTRO_FEW_READS; i++)
		if (sblkg->few[i])
			busy->rlat[sblkg->few[i] - 1]++;
	return busy;
}

/**
 * sutro_busy - the part of a group that only busy ones have
 * @sblkg:	the group
 *
 * Return: it, NULL if there is no memory for it.
 *
 * Context: sutro_queue.done_lock is held.
 */
struct sutro_busy *sutro_busy(struct sutro_blkg *sblkg)
{
	struct sutro_busy *busy = sblkg->busy;

	if (unlikely(!busy)) {
		busy = sutro_busy_new(sblkg);
		/* Pairs with READ_ONCE() in sutro_show_rlat() and sutro_member_of(). */
		smp_store_release(&sblkg->busy, busy);
	}
	return busy;
}

/*
 * Count a read in the histogram of latencies, which a group with a few reads does not need.
 * Without memory for it, reads are not counted there.
 */
static void sutro_note_read(struct sutro_blkg *sblkg, unsigned int bucket)
{
	struct sutro_busy *busy;
	unsigned int i;

	for (i = 0; !sblkg->busy && i < SUTRO_FEW_READS; i++) {
		if (!sblkg->few[i]) {
			WRITE_ONCE(sblkg->few[i], bucket + 1);
			return;
		}
	}
	busy = sutro_busy(sblkg);
	if (busy)
		busy->rlat[bucket]++;
}

/* A request has left the device. */
static void sutro_note_left(struct sutro_queue *sq, struct request *rq)
{
	if (unlikely(sutro_rq_is_polled(rq)))
		atomic_dec(&sq->polled);
}

/* A latency target is for reads. */
static bool sutro_op_is_timed(struct sutro_blkg *sblkg, enum sutro_op op)
{
	return op == SUTRO_READ || !sutro_latency_late_ns(&sblkg->group);
}

/**
 * sutro_note_completed - a request left the device
 * @sq:		the leaf
 * @sblkg:	the request's group, which may be gone afterwards if the request does
 *		not hold it
 * @rq:		the request
 * @now_ns:	the time
 */
void sutro_note_completed(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			  struct request *rq, u64 now_ns)
{
	struct sutro_sample sample = {
		.class = sutro_rq_class(rq),
		.bytes = sutro_rq_sent_bytes(rq),
		.start_ns = rq->io_start_time_ns,
		.now_ns = now_ns,
		.shallow = sutro_rq_shallow(rq),
		.caches = sutro_rq_caches(rq),
		.through = sutro_rq_through(rq),
		.seeks = sblkg->rotational && sutro_group_seeky(&sblkg->group),
	};
	u64 slow_ns = sutro_protect_slow_ns(&sblkg->group);
	u64 took_ns = sutro_rq_waited_ns(rq, now_ns);
	u64 estimate_ns = sutro_rq_estimate_ns(rq), cost_ns;
	enum sutro_op op = sutro_rq_op(rq);
	u32 sectors = sutro_rq_sent_sectors(rq);
	unsigned long flags;

	sutro_note_left(sq, rq);
	spin_lock_irqsave(&sq->done_lock, flags);
	if (trace_sutro_cost_enabled())
		cost_ns = sutro_note_cost(sq, sblkg, &sample);
	else
		cost_ns = sutro_cost_complete(&sq->device,
					      sutro_blkg_costs(sblkg), &sample);
	trace_sutro_complete(rq, sutro_cgroup_id(sblkg), estimate_ns, cost_ns);
	sblkg->note.nr++;
	sblkg->note.nr_commits += sutro_rq_commits(rq);
	if (sutro_op_is_timed(sblkg, op)) {
		sblkg->note.nr_slow += slow_ns && took_ns > slow_ns;
		sblkg->note.took_us += div_u64(took_ns, NSEC_PER_USEC);
	} else {
		sblkg->note.nr_untimed++;
	}
	sblkg->note.estimate_ns += estimate_ns;
	sblkg->note.cost_ns += cost_ns;
	sblkg->note.now_ns = now_ns;
	sblkg->stat.time_ns += cost_ns;
	WRITE_ONCE(sblkg->stat.used_ticks, sutro_ticks(now_ns));
	if (op != SUTRO_OTHER) {
		sblkg->stat.ios[op]++;
		sblkg->stat.bytes[op] += (u64)sectors << SECTOR_SHIFT;
	}
	sblkg->stat.pending_ns += took_ns;
	if (op == SUTRO_READ)
		sutro_note_read(sblkg, sutro_latency_bucket(took_ns));
	if (sutro_rq_state(rq) == SUTRO_RQ_PASSED) {
		/* From when the note is read on, the request may not hold the group. */
		sutro_rq_set_blkg(rq, NULL);
		sutro_slot_freed(sq, sblkg);
	}
	if (sq->device.unseen)
		sutro_direct_ordered(sq, rq, sectors, now_ns);
	sutro_note(sq, sblkg);
	spin_unlock_irqrestore(&sq->done_lock, flags);
}

/**
 * sutro_note_counted - a request completed of which there is nothing else to note
 * @sq:		the leaf
 * @rq:		the request
 * @now_ns:	the time
 */
void sutro_note_counted(struct sutro_queue *sq, struct request *rq, u64 now_ns)
{
	unsigned long flags;

	if (!READ_ONCE(sq->device.unseen))
		return;
	spin_lock_irqsave(&sq->done_lock, flags);
	/* The elevator did not send it, so the size may only be here. */
	sutro_direct_ordered(sq, rq, rq->stats_sectors, now_ns);
	spin_unlock_irqrestore(&sq->done_lock, flags);
}

/**
 * sutro_note_requeued - a request left the device unserved
 * @sq:		the leaf
 * @sblkg:	the request's group
 * @rq:		the request
 *
 * The driver may let it be inserted again a second later, so others that wait for its end do not
 * wait for that.
 */
void sutro_note_requeued(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			 struct request *rq)
{
	unsigned long flags;

	sutro_note_left(sq, rq);
	spin_lock_irqsave(&sq->done_lock, flags);
	sblkg->note.nr++;
	sblkg->note.nr_untimed++;
	sblkg->note.nr_commits += sutro_rq_commits(rq);
	sblkg->note.estimate_ns += sutro_rq_estimate_ns(rq);
	sblkg->note.now_ns = ktime_get_ns();
	sutro_cost_requeue(&sq->device, sutro_rq_class(rq));
	if (sutro_rq_state(rq) == SUTRO_RQ_PASSED) {
		blkg_get(sutro_to_blkg(sblkg));
		sutro_rq_set_lane(rq, NULL);
	}
	sutro_note(sq, sblkg);
	spin_unlock_irqrestore(&sq->done_lock, flags);
	sutro_wake_dispatcher(sq);
}

/**
 * sutro_note_flush - a flush begins
 * @sq:		the leaf
 * @sblkg:	its group
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_note_flush(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	sutro_cost_flush_begin(&sq->device);
	/* With nothing but flushes there is no dispatch. */
	if (++sblkg->note.nr_flushes >= SUTRO_NOTE_FLUSHES)
		WRITE_ONCE(sq->kick, true);
	sutro_note_held(sq, sblkg);
}

static void sutro_note_flush_end(struct sutro_queue *sq,
				 struct sutro_blkg *sblkg, u64 now_ns)
{
	sblkg->note.nr++;
	sblkg->note.nr_untimed++;
	sblkg->note.nr_commits++;
	sblkg->note.now_ns = now_ns;
	sutro_note(sq, sblkg);
}

/**
 * sutro_note_flushed - a flush is over
 * @sq:		the leaf
 * @sblkg:	its group
 * @start_ns:	when it was requested
 * @now_ns:	the time
 */
void sutro_note_flushed(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			u64 start_ns, u64 now_ns)
{
	unsigned long flags;
	u64 cost_ns;

	spin_lock_irqsave(&sq->done_lock, flags);
	cost_ns = sutro_cost_flush(&sq->device, start_ns, now_ns);
	sblkg->note.cost_ns += cost_ns;
	sblkg->stat.time_ns += cost_ns;
	WRITE_ONCE(sblkg->stat.used_ticks, sutro_ticks(now_ns));
	sutro_note_flush_end(sq, sblkg, now_ns);
	spin_unlock_irqrestore(&sq->done_lock, flags);
}

/**
 * sutro_note_unflushed - a flush that began does not take place
 * @sq:		the leaf
 * @sblkg:	its group
 */
void sutro_note_unflushed(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	unsigned long flags;

	spin_lock_irqsave(&sq->done_lock, flags);
	sutro_cost_flush_cancel(&sq->device);
	sutro_note_flush_end(sq, sblkg, ktime_get_ns());
	spin_unlock_irqrestore(&sq->done_lock, flags);
}
