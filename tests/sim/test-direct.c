// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of direct mode and completions, with kernel/sutro-direct.c, sutro-flush.c, sutro-
 * member.c, sutro-notes.c and sutro-polled.c themselves: the time in which a disk that takes all
 * requests is in direct mode, its counts, and requests that wait for those at the disk.
 *
 * A group writes 4 KiB each 20 us.  The disk needs 60 us for each, and works on all at once.
 */
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
#define REQUESTS 16
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
	struct blkcg_gq blkg[2];
	struct blkg_iostat_set iostat[2];
	struct sutro_blkg root;
	struct sutro_blkg group;
	struct io io[REQUESTS];
	u64 now_ns;
	u64 tick_ns;
	u64 flush_each_ns;
	u64 flush_ns;
	u64 flushed_ns;
	u64 direct_ns;
	u64 writes;
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
	return bio->bi_blkg == &rig->blkg[1] ? &rig->group : &rig->root;
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
	return &rig->root;
}

static void rig_exit(void *data)
{
	struct rig *old = data;
	struct sutro_blkg *of[] = { &old->root, &old->group };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(of); i++) {
		sutro_protect_exit(&of[i]->group);
		if (of[i]->busy)
			sutro_member_free(of[i]->busy->member);
		kfree(of[i]->busy);
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
	for (i = 0; i < 2; i++)
		rig->blkg[i] = (struct blkcg_gq){
			.q = &rig->q,
			.blkcg = &rig->blkcg,
			.iostat_cpu = &rig->iostat[i],
		};
	sq->q = &rig->q;
	sq->direct_allowed = true;
	INIT_LIST_HEAD(&sq->notes);
	INIT_LIST_HEAD(&sq->prompt);
	INIT_LIST_HEAD(&sq->passing);
	INIT_LIST_HEAD(&sq->members);
	sutro_lease_init(&sq->lease);
	sutro_device_init(&sq->device, false);
	sutro_probe_init(&sq->probe, TAGS);
	sq->core.tunables.slice_ns = 4 * MS;
	sq->core.tunables.group_idle_ns = MS;
	sutro_probe_tunables(&sq->probe, &sq->device, &sq->core.tunables);
	sutro_group_init(&rig->root.group, NULL, 100);
	sutro_group_init(&rig->group.group, &rig->root.group, 100);
	rig->root.pd.blkg = &rig->blkg[0];
	rig->group.pd.blkg = &rig->blkg[1];
	INIT_LIST_HEAD(&rig->root.note_node);
	INIT_LIST_HEAD(&rig->group.note_node);
	sutro_core_init(&sq->core, &rig->root.group);
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
	if (sutro_rq_op(rq) != SUTRO_OTHER)
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
	/* The block layer counts neither the root cgroup nor, with these, discards. */
	if (nr && !op_is_discard(opf))
		rig->iostat[nr].cur.bytes[op_is_write(opf)] += (u64)sectors
							       << SECTOR_SHIFT;
	io->rq.bio = &bio;
	if (!io->direct)
		rig_dispatch(nr ? &rig->group : &rig->root, &io->rq);
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
		sutro_note_flushed(sq, &rig->group,
				   rig->now_ns - FLUSH_TAKES_NS, rig->now_ns);
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
	sutro_note_flush(sq, &rig->group);
	spin_unlock(&sq->done_lock);
	rig->flushed_ns = rig->now_ns + FLUSH_TAKES_NS;
	rig->flush_ns = rig->now_ns + rig->flush_each_ns;
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

/* For @ns, a write each EACH_NS if the group @writes. */
static void rig_run(u64 ns, bool writes)
{
	u64 end_ns = rig->now_ns + ns;
	unsigned int i;

	for (; rig->now_ns < end_ns; rig->now_ns += EACH_NS) {
		for (i = 0; i < REQUESTS; i++) {
			struct io *io = &rig->io[i];

			if (io->rq.ref.counter && rig->now_ns >= io->done_ns)
				rig_complete(io);
		}
		rig_flush();
		rig_tick();
		if (writes)
			rig_send(REQ_OP_WRITE, SECTORS);
		rig->direct_ns += rig->sq.direct_lease ? EACH_NS : 0;
		rig->part.io_ticks = rig->now_ns / (NSEC_PER_SEC / HZ);
	}
}

/* In how many thousandths of 5 s is the disk in direct mode, with a flush each so often? */
static u64 direct_part(struct kunit *test, u64 flush_each_ns)
{
	rig_new(test);
	rig->flush_each_ns = flush_each_ns;
	rig_run(5000 * MS, true);
	return rig->direct_ns / (5 * MS);
}

/* Flushes of a member are ordered, and do not keep its writes from direct mode. */
static void flushes_of_a_member(struct kunit *test)
{
	u64 most = direct_part(test, 0);

	KUNIT_EXPECT_GE(test, most, 950ULL);
	KUNIT_EXPECT_GE(test, direct_part(test, 100 * MS) + 10, most);
	KUNIT_EXPECT_GE(test, direct_part(test, 2 * MS) + 10, most);
	KUNIT_EXPECT_GE(test, direct_part(test, MS / 2) + 10, most);
}

/*
 * A request that zeroes 2 GiB, which the block layer counts with the sectors of writes, adds none
 * to those of the writes that went past the elevator.
 */
static void zeroes_are_not_direct(struct kunit *test)
{
	rig_new(test);
	rig_run(100 * MS, true);
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	rig_send(REQ_OP_WRITE_ZEROES, 1 << 22);
	rig_run(100 * MS, true);
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	rig_run(50 * MS, false);
	KUNIT_EXPECT_EQ(test, rig->sq.lease.state, SUTRO_LEASE_OFF);
	KUNIT_EXPECT_EQ(test, rig->group.stat.ios[1], rig->writes);
	KUNIT_EXPECT_EQ(test, rig->group.stat.bytes[1], BYTES * rig->writes);
}

/*
 * The driver returns the only request at the device, for which another one waits, and it is to be
 * inserted again a second later: the other one is sent meanwhile.
 */
static void returned_with_a_delay(struct kunit *test)
{
	struct sutro_queue *sq;

	rig_new(test);
	sq = &rig->sq;
	rig_send(REQ_OP_WRITE, SECTORS);
	/* A dispatcher waits for its completion. */
	sq->waiting = true;
	sutro_note_requeued(sq, &rig->group, &rig->io[0].rq);
	KUNIT_EXPECT_EQ(test, rig->q.runs, 1U);
	spin_lock(&sq->lock);
	rig_look();
	spin_unlock(&sq->lock);
	KUNIT_EXPECT_EQ(test, sq->core.in_flight, 0U);
}

/*
 * Two groups, one of them the root cgroup, send requests of all kinds, in direct mode and not.
 * Sums over both are the reads and writes that they sent, and each has its own.
 */
static void counts_of_two_groups(struct kunit *test)
{
	const blk_opf_t kinds[] = {
		REQ_OP_READ,
		REQ_OP_WRITE | REQ_SYNC,
		REQ_OP_WRITE,
		REQ_OP_DISCARD | REQ_SYNC,
		REQ_OP_WRITE_ZEROES | REQ_SYNC,
	};
	/* By group, reads (0) and writes (1). */
	u64 ios[2][2] = {}, bytes[2][2] = {}, seed = 1;
	unsigned int i, nr, kind, sectors;

	rig_new(test);
	for (i = 0; i < 200000; i++) {
		rig_run(EACH_NS, false);
		kind = random_below(&seed, 100);
		kind = kind < 50 ? 0 : kind < 90 ? 1 : kind - 90;
		if (kind >= ARRAY_SIZE(kinds))
			continue;
		/* Direct mode ends. */
		if (!random_below(&seed, 20000))
			rig_run(100 * MS, false);
		sectors = SECTORS << random_below(&seed, 6);
		if (kind == 4)
			sectors = 1 << 22;
		nr = random_below(&seed, 2);
		rig_send_of(nr, kinds[kind], sectors);
		if (kind > 2)
			continue;
		ios[nr][op_is_write(kinds[kind])]++;
		bytes[nr][op_is_write(kinds[kind])] += (u64)sectors
						       << SECTOR_SHIFT;
	}
	rig_run(2000 * MS, false);
	KUNIT_EXPECT_GT(test, rig->direct_ns, 3000 * MS);
	for (i = 0; i < 2; i++) {
		u64 root_bytes = rig->root.stat.bytes[i];
		u64 own_bytes = rig->group.stat.bytes[i];

		KUNIT_EXPECT_EQ(test,
				rig->root.stat.ios[i] + rig->group.stat.ios[i],
				ios[0][i] + ios[1][i]);
		KUNIT_EXPECT_EQ(test, root_bytes + own_bytes,
				bytes[0][i] + bytes[1][i]);
		KUNIT_EXPECT_LE(test, abs((s64)(own_bytes - bytes[1][i])),
				(s64)bytes[1][i] / 50);
	}
}

/* As bio_merge. */
static void saw(struct bio *bio)
{
	if (rig->sq.direct_lease && sutro_op_syncs(bio->bi_opf))
		sutro_flush_saw(&rig->sq, bio);
}

/*
 * In direct mode, a group writes data of an fsync() now and then.  A commit of the root cgroup's
 * journal that follows belongs to it, after half a second, too.
 */
static void commit_in_direct_mode(struct kunit *test)
{
	struct bio data = { .bi_opf = REQ_OP_WRITE | REQ_SYNC };
	struct bio commit = { .bi_opf = REQ_OP_WRITE | REQ_SYNC | REQ_META };
	struct request rq = { .cmd_flags = commit.bi_opf, .bio = &commit };
	int i;

	rig_new(test);
	data.bi_blkg = &rig->blkg[1];
	commit.bi_blkg = &rig->blkg[0];
	for (i = 0; i < 5; i++) {
		rig_run(100 * MS, true);
		saw(&data);
	}
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	KUNIT_EXPECT_PTR_EQ(test, sutro_flush_owner(&rig->sq, &rq),
			    &rig->group);
	/* An O_DIRECT write is no data of an fsync(). */
	data.bi_opf |= REQ_IDLE;
	rig_run(300 * MS, true);
	saw(&data);
	KUNIT_EXPECT_PTR_EQ(test, sutro_flush_owner(&rig->sq, &rq), &rig->root);
}

static int rig_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	int nr = 0;
	unsigned int i;

	for (i = 0; i < REQUESTS; i++) {
		struct io *io = &rig->io[i];

		if (!io->rq.ref.counter || rig->now_ns < io->done_ns)
			continue;
		rig_complete(io);
		nr++;
	}
	return nr;
}

static enum sutro_verdict rig_select(void)
{
	enum sutro_verdict verdict;

	spin_lock(&rig->sq.lock);
	rig_look();
	sutro_core_select(&rig->sq.core, rig->now_ns, &verdict);
	spin_unlock(&rig->sq.lock);
	return verdict;
}

/*
 * A task that has sent polled requests is stopped.  Another group waits for these, and is served
 * after a jiffy.
 */
static void polled_requests_of_a_stopped_task(struct kunit *test)
{
	static const struct blk_mq_ops ops = { .poll = rig_poll };
	struct work_struct *work;
	struct sutro_queue *sq;
	unsigned int i;

	rig_new(test);
	sq = &rig->sq;
	work = &sq->polled_work.work;
	rig->q.mq_ops = &ops;
	rig->q.hctx.type = HCTX_TYPE_POLL;
	sq->core.tunables.depth_ns = 4 * ESTIMATE_NS;
	for (i = 0; i < 4; i++)
		rig_send(REQ_OP_WRITE | REQ_POLLED, SECTORS);
	KUNIT_EXPECT_EQ(test, atomic_read(&sq->polled), 4);
	sutro_queue_one(sq, &rig->root, false, rig->now_ns);
	KUNIT_EXPECT_EQ(test, (int)rig_select(), (int)SUTRO_WAIT);
	/* As a dispatcher that goes away. */
	sq->waiting = true;
	sutro_polled_waits(sq);
	KUNIT_EXPECT_TRUE(test, work->pending);

	/* They are not done yet: it looks again. */
	work->pending = false;
	sutro_polled_look(work);
	KUNIT_EXPECT_EQ(test, rig->q.runs, 0U);
	KUNIT_EXPECT_TRUE(test, work->pending);

	/* Without the worker, the other group waits for as long as the task is stopped. */
	rig->now_ns += 3600 * 1000 * MS;
	KUNIT_EXPECT_EQ(test, (int)rig_select(), (int)SUTRO_WAIT);
	work->pending = false;
	sutro_polled_look(work);
	KUNIT_EXPECT_EQ(test, atomic_read(&sq->polled), 0);
	KUNIT_EXPECT_GT(test, rig->q.runs, 0U);
	KUNIT_EXPECT_FALSE(test, work->pending);
	KUNIT_EXPECT_EQ(test, (int)rig_select(), (int)SUTRO_SERVE);
	KUNIT_EXPECT_EQ(test, rig->q.q_usage_counter, 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(flushes_of_a_member),
	KUNIT_CASE(zeroes_are_not_direct),
	KUNIT_CASE(counts_of_two_groups),
	KUNIT_CASE(commit_in_direct_mode),
	KUNIT_CASE(returned_with_a_delay),
	KUNIT_CASE(polled_requests_of_a_stopped_task),
	{},
};

static struct kunit_suite suite = {
	.name = "direct",
	.test_cases = cases,
};
kunit_test_suite(suite);
