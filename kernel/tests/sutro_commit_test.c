// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of commits (sutro-commit.c), and of the cost of a flush (sutro-cost.c). */
#include "sutro_cost_test.h"

/* A commit of a group goes to the device, as a flush does. */
static void commit(struct sutro_test *t, struct sutro_group *group)
{
	arrive(t, group, 1);
	sutro_core_dispatch(&t->core, group, 0);
	sutro_core_commit(&t->core, group, t->now_ns);
}

static void commit_ends(struct sutro_test *t, struct sutro_group *group,
			u64 cost_ns)
{
	sutro_core_committed(&t->core, group, 1);
	finish(t, group, 0, cost_ns);
}

/* a has a stream, of which requests are at the device. */
static struct sutro_test *stream(struct kunit *test, bool rotational)
{
	struct sutro_test *t = sutro_test_new(test, rotational);

	arrive(t, &t->a, 100);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	KUNIT_EXPECT_PTR_EQ(test, send(t, 10 * MS), &t->a);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_SERVE);
	return t;
}

/* Nothing else is sent until the last commit has left the device. */
static void sutro_test_commit(struct kunit *test)
{
	struct sutro_test *t = stream(test, true);

	commit(t, &t->b);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	KUNIT_EXPECT_EQ(test, t->core.idle_until_ns, t->now_ns + SLICE_NS);
	commit(t, &t->e);
	finish(t, &t->a, 10 * MS, 10 * MS);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	commit_ends(t, &t->b, MS);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	commit_ends(t, &t->e, MS);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, 10 * MS), &t->a);
	KUNIT_EXPECT_EQ(test, t->b.stat.time_ns, MS);
	KUNIT_EXPECT_EQ(test, t->core.commits, 0);
}

/* A drive that does not come to an end with a flush serves others after a slice. */
static void sutro_test_commit_bound(struct kunit *test)
{
	struct sutro_test *t = stream(test, true);

	commit(t, &t->b);
	t->now_ns += SLICE_NS - 1;
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	t->now_ns++;
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_SERVE);
	commit_ends(t, &t->b, MS);
}

/* No group is held back for one that was served in advance. */
static void sutro_test_commit_in_advance(struct kunit *test)
{
	struct sutro_test *t = stream(test, true);

	commit(t, &t->b);
	commit_ends(t, &t->b, SLICE_NS / 2 + 20 * MS);
	commit(t, &t->b);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_SERVE);
	commit_ends(t, &t->b, MS);
	KUNIT_EXPECT_EQ(test, t->core.commits, 0);
	KUNIT_EXPECT_EQ(test, t->b.commits, 0);
}

/* A flush that waits for queued data of another group holds no group back. */
static void sutro_test_commit_waits(struct kunit *test)
{
	int in_service;

	for (in_service = 0; in_service < 2; in_service++) {
		struct sutro_test *t = sutro_test_new(test, true);

		sutro_group_set_weight(&t->b, 1000);
		arrive(t, &t->b, 1);
		KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->b);
		arrive(t, &t->a, 100);
		if (!in_service) {
			t->now_ns += IDLE_NS + 1;
			KUNIT_EXPECT_PTR_EQ(test, serve(t, SLICE_NS), &t->a);
		}
		commit(t, &t->b);
		t->now_ns += SLICE_NS;
		KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
		t->core.flush_data = 1;
		KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
		/* Not even at first. */
		commit(t, &t->b);
		KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
		t->core.flush_data = 0;
		KUNIT_EXPECT_NE(test, next_verdict(t), SUTRO_SERVE);
		commit_ends(t, &t->b, MS);
		commit_ends(t, &t->b, MS);
	}
}

/*
 * Others leave room for a group that will be back while requests are at the device.  A flush is not
 * there as long as it waits for their data.
 */
static void sutro_test_commit_leaves_room(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->a, 1);
	t->now_ns += SLICE_NS;
	commit(t, &t->b);
	t->now_ns += SLICE_NS;
	t->core.expected = &t->c;
	t->core.expected_protected = true;
	t->core.expected_until_ns = t->now_ns + SLICE_NS;
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
	t->core.flush_data = 1;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	commit_ends(t, &t->b, MS);
}

/*
 * A protected group that is ahead has few requests at the device, and others wait for these.  Not
 * for its flush as long as that waits for their data.
 */
static void sutro_test_commit_of_ahead(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);
	struct sutro_protect *protect = &t->core.protect;

	t->b.reserve = SUTRO_RESERVE_WHOLE / 4;
	arrive(t, &t->a, 1);
	commit(t, &t->b);
	KUNIT_ASSERT_NOT_NULL(test, t->b.protect);
	t->now_ns += SLICE_NS;
	next_verdict(t);
	/* In a shared window. */
	protect->shared_ns = t->now_ns + SLICE_NS;
	protect->gentle = true;
	sutro_others_lead(protect, t->b.protect, true);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
	t->core.flush_data = 1;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	commit_ends(t, &t->b, MS);
}

/* Without slices, requests of several submitters do not wait for two such flushes either. */
static void sutro_test_commit_without_slices(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	t->core.tunables.slice_ns = 0;
	arrive(t, &t->a, 1);
	t->a.mixed = true;
	commit(t, &t->b);
	commit(t, &t->b);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
	t->core.flush_data = 1;
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
	commit_ends(t, &t->b, MS);
	commit_ends(t, &t->b, MS);
}

/* Requests that are served side by side do not wait for a commit. */
static void sutro_test_commit_elsewhere(struct kunit *test)
{
	struct sutro_test *t = stream(test, false);

	t->core.tunables.depth_ns = 100 * MS;
	commit(t, &t->b);
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_SERVE);
	commit_ends(t, &t->b, MS);
}

/* While a flush is at the device its group has not run empty: it keeps its slice. */
static void sutro_test_commit_keeps_slice(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->b);
	arrive(t, &t->a, 100);
	commit(t, &t->b);
	t->now_ns += SLICE_NS;
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_WAIT);
	commit_ends(t, &t->b, SLICE_NS);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_PTR_EQ(test, serve(t, MS), &t->a);
}

/* A request waits for a flush from @start_ns to @now_ns. */
static u64 flush(struct sutro_device *device, u64 start_ns, u64 now_ns)
{
	sutro_cost_flush_begin(device);
	return sutro_cost_flush(device, start_ns, now_ns);
}

/* One actuator did nothing else since the last completion. */
static void sutro_test_flush_rotational(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	struct sutro_costs costs = {};
	struct sutro_sample sample = {
		.class = sutro_cost_class(SUTRO_WRITE, 4096),
		.bytes = 4096,
		.start_ns = 100 * MS,
		.now_ns = 110 * MS,
	};

	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, &costs, &sample),
			10 * MS);
	/* Requested while the write was served. */
	KUNIT_EXPECT_EQ(test, flush(device, 105 * MS, 125 * MS), 15 * MS);
	/* The device had nothing to do. */
	KUNIT_EXPECT_EQ(test, flush(device, 205 * MS, 210 * MS), 5 * MS);
	/* A request that waited for it pays for its own time only. */
	sample.start_ns = 206 * MS;
	sample.now_ns = 213 * MS;
	KUNIT_EXPECT_EQ(test, sutro_cost_complete(device, &costs, &sample),
			3 * MS);
}

/* Requests that share a flush share its cost; the rest is for the next one. */
static void sutro_test_flush_shared(struct kunit *test)
{
	struct sutro_device *device = device_new(test, true);
	int i;

	for (i = 0; i < 3; i++)
		sutro_cost_flush_begin(device);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test,
				sutro_cost_flush(device, 100 * MS, 112 * MS),
				4 * MS);

	/* Another one waits for the next flush. */
	sutro_cost_flush_begin(device);
	sutro_cost_flush_begin(device);
	KUNIT_EXPECT_EQ(test, sutro_cost_flush(device, 112 * MS, 120 * MS),
			4 * MS);
	KUNIT_EXPECT_EQ(test, sutro_cost_flush(device, 112 * MS, 126 * MS),
			10 * MS);

	/* Or does not need it. */
	sutro_cost_flush_begin(device);
	sutro_cost_flush_begin(device);
	KUNIT_EXPECT_EQ(test, sutro_cost_flush(device, 130 * MS, 140 * MS),
			5 * MS);
	sutro_cost_flush_cancel(device);
	KUNIT_EXPECT_EQ(test, flush(device, 150 * MS, 151 * MS), MS);
}

/* A write of a page at most, once for each flush. */
static void sutro_test_flush_flash(struct kunit *test)
{
	struct sutro_device *device = device_new(test, false);

	sutro_cost_measured(device, sutro_cost_class(SUTRO_WRITE, 4096),
			    50000 << SUTRO_NS16_SHIFT, 0);
	KUNIT_EXPECT_EQ(test, flush(device, 100 * MS, 101 * MS), 50000);
	KUNIT_EXPECT_EQ(test, flush(device, 100 * MS, 101 * MS + 10), 10);
	KUNIT_EXPECT_EQ(test, flush(device, 100 * MS, 102 * MS), 50000);
	KUNIT_EXPECT_EQ(test, device->last_completion_ns, 0);
}

static struct kunit_case sutro_commit_cases[] = {
	KUNIT_CASE(sutro_test_commit),
	KUNIT_CASE(sutro_test_commit_bound),
	KUNIT_CASE(sutro_test_commit_in_advance),
	KUNIT_CASE(sutro_test_commit_waits),
	KUNIT_CASE(sutro_test_commit_leaves_room),
	KUNIT_CASE(sutro_test_commit_of_ahead),
	KUNIT_CASE(sutro_test_commit_without_slices),
	KUNIT_CASE(sutro_test_commit_elsewhere),
	KUNIT_CASE(sutro_test_commit_keeps_slice),
	KUNIT_CASE(sutro_test_flush_rotational),
	KUNIT_CASE(sutro_test_flush_shared),
	KUNIT_CASE(sutro_test_flush_flash),
	{}
};

sutro_suite(sutro_commit, "commits and flushes");
