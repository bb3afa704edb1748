// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of direct mode and completions, with kernel/sutro-direct.c, sutro-flush.c,
 * sutro-member.c, sutro-notes.c and sutro-polled.c themselves: the time in which a disk that takes
 * all requests is in direct mode, its counts, and requests that wait for those at the disk.
 */
#include "direct-rig.h"

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
	KUNIT_EXPECT_EQ(test, rig->group->stat.ios[1], rig->writes);
	KUNIT_EXPECT_EQ(test, rig->group->stat.bytes[1], BYTES * rig->writes);
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
	sutro_note_requeued(sq, rig->group, &rig->io[0].rq);
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
		u64 root_bytes = rig->root->stat.bytes[i];
		u64 own_bytes = rig->group->stat.bytes[i];
		u64 root_ios = rig->root->stat.ios[i];
		u64 own_ios = rig->group->stat.ios[i];

		KUNIT_EXPECT_EQ(test, root_ios + own_ios,
				ios[0][i] + ios[1][i]);
		KUNIT_EXPECT_EQ(test, root_bytes + own_bytes,
				bytes[0][i] + bytes[1][i]);
		KUNIT_EXPECT_LE(test, abs((s64)(own_bytes - bytes[1][i])),
				(s64)bytes[1][i] / 50);
	}
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
		rig_saw(&data);
	}
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	KUNIT_EXPECT_PTR_EQ(test, sutro_flush_owner(&rig->sq, &rq), rig->group);
	/* An O_DIRECT write is no data of an fsync(). */
	data.bi_opf |= REQ_IDLE;
	rig_run(300 * MS, true);
	rig_saw(&data);
	KUNIT_EXPECT_PTR_EQ(test, sutro_flush_owner(&rig->sq, &rq), rig->root);
}

/* A journal's writes, which the root cgroup sends for a member, do not end direct mode. */
static void commits_of_a_member(struct kunit *test)
{
	u64 most = direct_part(test, 0);

	rig_new(test);
	rig->commit_each_ns = 8 * MS;
	rig_run(5000 * MS, true);
	KUNIT_EXPECT_GE(test, rig->direct_ns / (5 * MS) + 10, most);
	/* Without data of an fsync() they are the root's, which is no member. */
	rig->commit_each_ns = 0;
	rig_run(500 * MS, true);
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	rig_send_of(0, REQ_OP_WRITE | REQ_SYNC | REQ_META, SECTORS);
	KUNIT_EXPECT_EQ(test, rig->sq.direct_lease, 0U);
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
	sutro_queue_one(sq, rig->root, false, rig->now_ns);
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

/* In how many thousandths of a second is the disk in direct mode, 100 ms after @groups began? */
static u64 direct_part_of_turns(struct kunit *test, unsigned int groups,
				unsigned int cpus)
{
	rig_new(test);
	rig_take_turns(100 * MS, groups, cpus);
	rig->direct_ns = 0;
	rig_take_turns(1000 * MS, groups, cpus);
	return rig->direct_ns / MS;
}

/* Groups of one weight take turns on fewer CPUs, so that some have no request for a while. */
static void groups_that_take_turns(struct kunit *test)
{
	KUNIT_EXPECT_GE(test, direct_part_of_turns(test, 2, 1), 950ULL);
	KUNIT_EXPECT_GE(test, direct_part_of_turns(test, 16, 1), 950ULL);
	KUNIT_EXPECT_GE(test, direct_part_of_turns(test, 16, 2), 950ULL);
	KUNIT_EXPECT_GE(test, direct_part_of_turns(test, 16, 8), 950ULL);
}

/* Groups that come while others are in direct mode have their own requests, and all have all. */
static void counts_of_groups_that_come(struct kunit *test)
{
	u64 ios = 0, bytes = 0, sent = 0, each;
	unsigned int i;

	rig_new(test);
	rig_take_turns(100 * MS, 2, 2);
	KUNIT_EXPECT_EQ(test, rig->sq.lease.members, 2U);
	rig_take_turns(500 * MS, 16, 2);
	KUNIT_EXPECT_EQ(test, rig->sq.lease.members, 16U);
	rig_run(1000 * MS, false);
	for (i = 1; i < GROUPS; i++) {
		each = rig->of[i].stat.ios[0];
		KUNIT_EXPECT_LE(test, abs((s64)(each - rig->sent[i])),
				(s64)rig->sent[i] / 50);
		ios += each;
		bytes += rig->of[i].stat.bytes[0];
		sent += rig->sent[i];
	}
	KUNIT_EXPECT_EQ(test, ios, sent);
	KUNIT_EXPECT_EQ(test, bytes, BYTES * sent);
}

/* The first request of a group that comes has its bytes. */
static void large_request_of_a_group_that_comes(struct kunit *test)
{
	unsigned int sectors = 64 * SECTORS;

	rig_new(test);
	rig_take_turns(100 * MS, 2, 2);
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	rig_send_of(3, REQ_OP_READ, sectors);
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	rig_take_turns(100 * MS, 2, 2);
	rig_run(1000 * MS, false);
	KUNIT_EXPECT_GE(test, rig->of[3].stat.ios[0], 1ULL);
	KUNIT_EXPECT_GE(test, rig->of[3].stat.bytes[0] + BYTES,
			(u64)sectors << SECTOR_SHIFT);
}

/* One of another weight is ordered, and so are the others from then on. */
static void heavier_group_comes(struct kunit *test)
{
	rig_new(test);
	sutro_group_set_weight(&rig->of[3].group, 200);
	rig_take_turns(100 * MS, 2, 2);
	KUNIT_EXPECT_EQ(test, rig->sq.lease.members, 2U);
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	rig_send_of(3, REQ_OP_READ, SECTORS);
	KUNIT_EXPECT_EQ(test, rig->sq.direct_lease, 0U);
}

/* So is one that comes with writeback, which is ordered in any case. */
static void writeback_comes(struct kunit *test)
{
	rig_new(test);
	rig_take_turns(100 * MS, 2, 2);
	KUNIT_EXPECT_NE(test, rig->sq.direct_lease, 0U);
	rig_send_of(3, REQ_OP_WRITE, SECTORS);
	KUNIT_EXPECT_EQ(test, rig->sq.direct_lease, 0U);
}

/* One in a slice of their weight becomes a member; others are compared with each from then on. */
static void group_of_a_slice_comes(struct kunit *test)
{
	rig_new(test);
	sutro_group_init(&rig->of[4].group, &rig->of[3].group, 500);
	sutro_group_set_weight(&rig->of[6].group, 500);
	rig_take_turns(100 * MS, 2, 2);
	KUNIT_EXPECT_PTR_EQ(test, rig->sq.lease.parent, &rig->root->group);
	rig_send_of(4, REQ_OP_READ, SECTORS);
	rig_send_of(5, REQ_OP_READ, SECTORS);
	KUNIT_EXPECT_EQ(test, rig->sq.lease.members, 4U);
	KUNIT_EXPECT_TRUE(test, !rig->sq.lease.parent);
	rig_send_of(6, REQ_OP_READ, SECTORS);
	KUNIT_EXPECT_EQ(test, rig->sq.direct_lease, 0U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(flushes_of_a_member),
	KUNIT_CASE(zeroes_are_not_direct),
	KUNIT_CASE(counts_of_two_groups),
	KUNIT_CASE(commit_in_direct_mode),
	KUNIT_CASE(commits_of_a_member),
	KUNIT_CASE(groups_that_take_turns),
	KUNIT_CASE(counts_of_groups_that_come),
	KUNIT_CASE(large_request_of_a_group_that_comes),
	KUNIT_CASE(heavier_group_comes),
	KUNIT_CASE(writeback_comes),
	KUNIT_CASE(group_of_a_slice_comes),
	KUNIT_CASE(returned_with_a_delay),
	KUNIT_CASE(polled_requests_of_a_stopped_task),
	{},
};

static struct kunit_suite suite = {
	.name = "direct",
	.test_cases = cases,
};
kunit_test_suite(suite);
