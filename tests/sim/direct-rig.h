/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk, its leaf and some groups, for test-direct.c: requests, flushes and commits take the steps
 * of the block layer and of a dispatch, one after the other.
 *
 * A group writes 4 KiB each 20 us, or tasks of several groups take turns on the CPUs, each of which
 * sends a request each 20 us.  The disk needs 60 us for each, and works on all at once.
 */
#ifndef SIM_DIRECT_RIG_H
#define SIM_DIRECT_RIG_H

#include <linux/slab.h>
#include <linux/string.h>

#include <kunit/test.h>

#include "random.h"

#include "sutro-cgroup.h"
#include "sutro-completion.h"
#include "sutro-member.h"
#include "sutro-report.h"
#include "sutro-service.h"

#define MS 1000000ULL
#define EACH_NS (MS / 50)
#define TAKES_NS (3 * EACH_NS)
#define FLUSH_TAKES_NS (10 * EACH_NS)
#define ESTIMATE_NS 2000
#define REQUESTS 64
/* The root cgroup and others. */
#define GROUPS 17
/* Of a task that shares its CPU with others. */
#define TURN_NS (3 * MS)
#define BYTES 4096
#define SECTORS (BYTES >> SECTOR_SHIFT)
#define TAGS 64

struct task_struct *current;
unsigned long jiffies;
unsigned int locks_held;

/* A request at the disk; @rq.ref is 0 if there is none. */
struct io {
	struct request rq;
	bool direct;
	u64 done_ns;
};

struct rig {
	struct sutro_queue sq;
	struct request_queue q;
	struct elevator_queue elevator;
	struct blk_mq_tag_set set;
	struct blk_mq_tags tags;
	struct request *tag[REQUESTS];
	struct block_device part;
	struct gendisk disk;
	struct blkcg blkcg;
	struct blkcg_gq blkg[GROUPS];
	struct blkg_iostat_set iostat[GROUPS];
	struct sutro_blkg of[GROUPS];
	struct sutro_blkg *root;
	struct sutro_blkg *group;
	struct io io[REQUESTS];
	u64 now_ns;
	u64 tick_ns;
	u64 flush_each_ns;
	u64 flush_ns;
	u64 flushed_ns;
	u64 commit_each_ns;
	u64 commit_ns;
	u64 direct_ns;
	u64 writes;
	u64 sent[GROUPS];
};

static struct rig *rig;

void preempt(void)
{
}

u64 ktime_get_ns(void)
{
	return rig->now_ns;
}

/* Functions of other files that the three call. */

struct sutro_blkg *sutro_bio_blkg(struct request_queue *q, struct bio *bio)
{
	return rig->of + (bio->bi_blkg - rig->blkg);
}

u32 sutro_setting(struct sutro_blkg *sblkg, enum sutro_setting setting)
{
	return 100;
}

void sutro_queue_one(struct sutro_queue *sq, struct sutro_blkg *sblkg, bool far,
		     u64 now_ns)
{
	if (sq->direct)
		sutro_direct_waits(sq, sblkg);
	sutro_core_queue(&sq->core, &sblkg->group, far, now_ns);
}

void sutro_report_costs(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			const struct sutro_costs *old,
			const struct sutro_costs *new)
{
}

void sutro_slot_freed(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
}

void sutro_active_enter(struct sutro_blkg *sblkg)
{
}

void sutro_slot_taken(struct sutro_blkg *sblkg)
{
}

struct sutro_blkg *sutro_current_blkg(struct request_queue *q)
{
	return rig->root;
}

static void rig_exit(void *data)
{
	struct rig *old = data;
	struct sutro_blkg *sblkg;

	for (sblkg = old->of; sblkg < old->of + GROUPS; sblkg++) {
		sutro_protect_exit(&sblkg->group);
		if (sblkg->busy)
			sutro_member_free(sblkg->busy->member);
		kfree(sblkg->busy);
	}
}

static void rig_new(struct kunit *test)
{
	struct sutro_queue *sq;
	unsigned int i;

	rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);
	sq = &rig->sq;
	rig->now_ns = 10000 * MS;
	for (i = 0; i < REQUESTS; i++) {
		rig->tag[i] = &rig->io[i].rq;
		rig->io[i].rq.q = &rig->q;
	}
	rig->tags.nr_tags = REQUESTS;
	rig->tags.static_rqs = rig->tag;
	rig->disk.part0 = &rig->part;
	rig->elevator.elevator_data = sq;
	rig->q.elevator = &rig->elevator;
	rig->q.disk = &rig->disk;
	rig->q.tag_set = &rig->set;
	rig->q.nr_requests = TAGS;
	rig->q.nr_hw_queues = 1;
	rig->q.hctx.queue = &rig->q;
	rig->q.hctx.tags = &rig->tags;
	rig->q.hctx.sched_tags = &rig->tags;
	rig->root = &rig->of[0];
	rig->group = &rig->of[1];
	sq->q = &rig->q;
	sq->direct_allowed = true;
	INIT_LIST_HEAD(&sq->notes);
	INIT_LIST_HEAD(&sq->prompt);
	INIT_LIST_HEAD(&sq->passing);
	INIT_LIST_HEAD(&sq->members);
	sutro_lease_init(&sq->lease);
	sutro_device_init(&sq->device, false);
	sq->device.latency_ns = 80 * 1000;
	sutro_probe_init(&sq->probe, TAGS);
	sq->core.tunables.slice_ns = 4 * MS;
	sq->core.tunables.group_idle_ns = MS;
	sutro_probe_tunables(&sq->probe, &sq->device, &sq->core.tunables);
	for (i = 0; i < GROUPS; i++) {
		rig->blkg[i] = (struct blkcg_gq){
			.q = &rig->q,
			.blkcg = &rig->blkcg,
			.iostat_cpu = &rig->iostat[i],
		};
		sutro_group_init(&rig->of[i].group,
				 i ? &rig->root->group : NULL, 100);
		rig->of[i].pd.blkg = &rig->blkg[i];
		INIT_LIST_HEAD(&rig->of[i].note_node);
	}
	sutro_core_init(&sq->core, &rig->root->group);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rig_exit, rig),
			0);
}

/* The first steps of a dispatch, before it chooses. */
static void rig_look(void)
{
	sutro_direct_look(&rig->sq, rig->now_ns);
	sutro_fold(&rig->sq);
}

/* The request waits for nothing, and is sent. */
static void rig_dispatch(struct sutro_blkg *sblkg, struct request *rq)
{
	struct sutro_queue *sq = &rig->sq;

	spin_lock(&sq->lock);
	rig_look();
	sutro_rq_set(rq, sblkg, SUTRO_RQ_QUEUED);
	sutro_queue_one(sq, sblkg, false, rig->now_ns);
	sutro_rq_pack(rq, ESTIMATE_NS, sutro_request_class(rq), false);
	sutro_rq_keep_sectors(rq);
	/* As sutro_price(). */
	if (sutro_rq_is_polled(rq))
		atomic_inc(&rig->sq.polled);
	sutro_direct_sends(sq, rq, blk_rq_bytes(rq));
	sutro_core_dispatch(&sq->core, &sblkg->group, ESTIMATE_NS);
	if (sutro_rq_op(rq) != SUTRO_OTHER &&
	    !sutro_op_is_prompt(rq->cmd_flags))
		sutro_direct_sent(sq, sblkg, rig->now_ns);
	spin_unlock(&sq->lock);
}

/* As bio_merge, limit_depth and, for a request of the elevator, a dispatch. */
static void rig_send_of(unsigned int nr, blk_opf_t opf, unsigned int sectors)
{
	struct sutro_queue *sq = &rig->sq;
	struct bio bio = {
		.bi_blkg = &rig->blkg[nr],
		.bi_opf = opf,
		.bi_iter.bi_size = sectors << SECTOR_SHIFT,
	};
	u32 lease = sq->direct_lease;
	struct io *io = rig->io;

	/* The block layer counts neither the root cgroup nor, with these, discards. */
	if (nr && !op_is_discard(opf))
		rig->iostat[nr].cur.bytes[op_is_write(opf)] += (u64)sectors
							       << SECTOR_SHIFT;
	if (lease && sq->direct_only != bio.bi_blkg)
		sutro_direct_bio(sq, lease, &bio);
	while (io->rq.ref.counter)
		io++;
	io->direct = sq->direct_lease &&
		     sutro_direct_takes(sq, bio.bi_opf, &rig->q.hctx);
	io->done_ns = rig->now_ns + TAKES_NS;
	io->rq = (struct request){
		.q = &rig->q,
		.cmd_flags = bio.bi_opf,
		.rq_flags = io->direct ? 0 : RQF_USE_SCHED,
		.ref.counter = 1,
		.start_time_ns = rig->now_ns,
		.io_start_time_ns = rig->now_ns,
		.sectors = sectors,
		.stats_sectors = sectors,
	};
	rig->sent[nr]++;
	io->rq.bio = &bio;
	if (!io->direct)
		rig_dispatch(sutro_flush_owner(sq, &io->rq), &io->rq);
	io->rq.bio = NULL;
}

static void rig_send(blk_opf_t op, unsigned int sectors)
{
	rig_send_of(1, op | REQ_SYNC | REQ_IDLE, sectors);
}

/* As the block layer: sectors are counted first, then the elevator learns of it. */
static void rig_complete(struct io *io)
{
	struct request *rq = &io->rq;
	bool is_write = op_is_write(rq->cmd_flags);
	bool counts = !op_is_discard(rq->cmd_flags);

	rig->part.sectors[is_write] += counts ? rq->sectors : 0;
	if (!io->direct)
		sutro_note_completed(&rig->sq, sutro_rq_blkg(rq), rq,
				     rig->now_ns);
	rig->part.ios[is_write] += counts;
	rig->part.nsecs[is_write] += counts ? rig->now_ns - rq->start_time_ns
					    : 0;
	rig->writes += req_op(rq) == REQ_OP_WRITE;
	rq->ref.counter = 0;
	/* As sutro_completed_request(). */
	if (rig->sq.waiting)
		blk_mq_run_hw_queues(&rig->q, true);
}

static void rig_flush(void)
{
	struct sutro_queue *sq = &rig->sq;

	if (rig->flushed_ns == rig->now_ns) {
		sutro_note_flushed(sq, rig->group, rig->now_ns - FLUSH_TAKES_NS,
				   rig->now_ns);
		/* As sutro_wake_dispatcher(). */
		if (sq->waiting || sq->kick) {
			spin_lock(&sq->lock);
			rig_look();
			spin_unlock(&sq->lock);
		}
	}
	if (!rig->flush_each_ns || rig->now_ns < rig->flush_ns)
		return;
	spin_lock(&sq->done_lock);
	sutro_note_flush(sq, rig->group);
	spin_unlock(&sq->done_lock);
	rig->flushed_ns = rig->now_ns + FLUSH_TAKES_NS;
	rig->flush_ns = rig->now_ns + rig->flush_each_ns;
}

/* As bio_merge. */
static void rig_saw(struct bio *bio)
{
	if (rig->sq.direct_lease && sutro_op_syncs(bio->bi_opf))
		sutro_flush_saw(&rig->sq, bio);
}

/* An fsync() of the group: its data, of which nothing else counts here, and a commit. */
static void rig_commit(void)
{
	struct bio data = {
		.bi_blkg = &rig->blkg[1],
		.bi_opf = REQ_OP_WRITE | REQ_SYNC,
	};

	if (!rig->commit_each_ns || rig->now_ns < rig->commit_ns)
		return;
	rig->commit_ns = rig->now_ns + rig->commit_each_ns;
	rig_saw(&data);
	if (!rig->sq.direct_lease)
		sutro_flush_sent(&rig->sq, rig->group, data.bi_opf,
				 rig->now_ns);
	rig_send_of(0, REQ_OP_WRITE | REQ_SYNC | REQ_META, SECTORS);
}

static void rig_tick(void)
{
	struct work_struct *work = &rig->sq.direct_work.work;

	if (!work->pending) {
		rig->tick_ns = rig->now_ns + SUTRO_LEASE_TICK_NS;
	} else if (rig->now_ns >= rig->tick_ns) {
		work->pending = false;
		rig->tick_ns = rig->now_ns + SUTRO_LEASE_TICK_NS;
		sutro_direct_tick(work);
	}
}

/* The next EACH_NS begin. */
static void rig_step(void)
{
	unsigned int i;

	for (i = 0; i < REQUESTS; i++) {
		struct io *io = &rig->io[i];

		if (io->rq.ref.counter && rig->now_ns >= io->done_ns)
			rig_complete(io);
	}
	rig_flush();
	rig_tick();
	rig_commit();
}

static void rig_step_ends(void)
{
	rig->direct_ns += rig->sq.direct_lease ? EACH_NS : 0;
	rig->part.io_ticks = rig->now_ns / (NSEC_PER_SEC / HZ);
	rig->now_ns += EACH_NS;
}

/* For @ns, a write each EACH_NS if the group @writes. */
static void rig_run(u64 ns, bool writes)
{
	u64 end_ns = rig->now_ns + ns;

	while (rig->now_ns < end_ns) {
		rig_step();
		if (writes)
			rig_send(REQ_OP_WRITE, SECTORS);
		rig_step_ends();
	}
}

/* For @ns, tasks of groups from the second one on, one each, take turns on @cpus CPUs. */
static void rig_take_turns(u64 ns, unsigned int groups, unsigned int cpus)
{
	u64 end_ns = rig->now_ns + ns;
	unsigned int cpu, turn;

	while (rig->now_ns < end_ns) {
		rig_step();
		turn = rig->now_ns / TURN_NS;
		for (cpu = 0; cpu < cpus; cpu++)
			rig_send_of(1 + (turn * cpus + cpu) % groups,
				    REQ_OP_READ, SECTORS);
		rig_step_ends();
	}
}

#endif /* SIM_DIRECT_RIG_H */
