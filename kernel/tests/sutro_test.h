/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups whose requests are numbers, for the KUnit suites of the algorithm.
 *
 *	root --+-- a		all weights are 100 unless a test
 *	       |-- b --+-- c	sets others
 *	       |       \-- d
 *	       \-- e
 */
#ifndef SUTRO_TEST_H
#define SUTRO_TEST_H

#include <linux/math64.h>

#include "../sutro-core.h"
#include "sutro_suite.h"

#define MS 1000000ULL
#define SLICE_NS (100 * MS)
#define IDLE_NS (8 * MS)
#define DEPTH_NS (4 * MS)

#define EXPECT_NEAR(test, a, b, bound) \
	KUNIT_EXPECT_LE(test, abs((s64)(a) - (s64)(b)), (s64)(bound))

struct sutro_test {
	struct kunit *test;
	struct sutro_core core;
	struct sutro_group root, a, b, c, d, e;
	u64 now_ns;
};

static inline void sutro_test_exit(void *data)
{
	struct sutro_test *t = data;

	sutro_protect_exit(&t->a);
	sutro_protect_exit(&t->b);
	sutro_protect_exit(&t->c);
	sutro_protect_exit(&t->d);
	sutro_protect_exit(&t->e);
}

static inline struct sutro_test *sutro_test_new(struct kunit *test,
						bool rotational)
{
	struct sutro_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct sutro_tunables *tunables;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	t->now_ns = 1000 * MS;
	tunables = &t->core.tunables;
	tunables->rotational = rotational;
	tunables->slice_ns = rotational ? SLICE_NS : 4 * MS;
	tunables->group_idle_ns = rotational ? IDLE_NS : MS;
	tunables->depth_ns = DEPTH_NS;
	sutro_group_init(&t->root, NULL, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->a, &t->root, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->b, &t->root, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->c, &t->b, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->d, &t->b, SUTRO_WEIGHT_DFL);
	sutro_group_init(&t->e, &t->root, SUTRO_WEIGHT_DFL);
	sutro_core_init(&t->core, &t->root);
	KUNIT_ASSERT_EQ(test,
			kunit_add_action_or_reset(test, sutro_test_exit, t), 0);
	return t;
}

/* The same numbers in each run, from 0 to n - 1. */
static inline u32 random_below(u64 *state, u32 n)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return mul_u64_u32_shr(*state >> 32, n, 32);
}

/* Requests arrive, each behind the one before. */
static inline void arrive(struct sutro_test *t, struct sutro_group *group,
			  int nr)
{
	while (nr--)
		sutro_core_queue(&t->core, group, false, t->now_ns);
}

/* Requests arrive, each far from the one before. */
static inline void arrive_far(struct sutro_test *t, struct sutro_group *group,
			      int nr)
{
	while (nr--)
		sutro_core_queue(&t->core, group, true, t->now_ns);
}

static inline void forget(struct sutro_test *t)
{
	while (sutro_core_forget(&t->core, t->now_ns))
		;
}

static inline struct sutro_group *choose(struct sutro_test *t,
					 enum sutro_verdict *ret_verdict)
{
	forget(t);
	return sutro_core_select(&t->core, t->now_ns, ret_verdict);
}

static inline enum sutro_verdict next_verdict(struct sutro_test *t)
{
	enum sutro_verdict verdict;

	choose(t, &verdict);
	return verdict;
}

/* Send a request of the group that is next; NULL if none may be sent. */
static inline struct sutro_group *send(struct sutro_test *t, u64 estimate_ns)
{
	enum sutro_verdict verdict;
	struct sutro_group *group = choose(t, &verdict);

	KUNIT_EXPECT_EQ(t->test, verdict == SUTRO_SERVE, !!group);
	if (group) {
		KUNIT_ASSERT_GT(t->test, group->queued, 0);
		sutro_core_dispatch(&t->core, group, estimate_ns);
	}
	return group;
}

/* Send all that may be sent; returns the number of requests. */
static inline unsigned int send_all(struct sutro_test *t, u64 estimate_ns)
{
	unsigned int nr = 0;

	while (send(t, estimate_ns))
		nr++;
	return nr;
}

/* A request of the group completes; the device worked on it alone. */
static inline void finish(struct sutro_test *t, struct sutro_group *group,
			  u64 estimate_ns, u64 cost_ns)
{
	t->now_ns += cost_ns;
	sutro_core_complete(&t->core, group, 1, estimate_ns, cost_ns,
			    t->now_ns);
}

/* A request from the choice to its completion; returns its group. */
static inline struct sutro_group *serve(struct sutro_test *t, u64 cost_ns)
{
	struct sutro_group *group = send(t, cost_ns);

	KUNIT_ASSERT_NOT_NULL(t->test, group);
	finish(t, group, cost_ns, cost_ns);
	return group;
}

/* Serve @nr requests; returns the number of those of @of. */
static inline int serve_many(struct sutro_test *t, int nr, u64 cost_ns,
			     const struct sutro_group *of)
{
	int of_group = 0;

	while (nr--)
		of_group += serve(t, cost_ns) == of;
	return of_group;
}

/* A request arrives and is sent at once, if its group is alone. */
static inline bool pass(struct sutro_test *t, struct sutro_group *group,
			u64 estimate_ns)
{
	forget(t);
	if (!sutro_core_may_pass(&t->core, group, t->now_ns))
		return false;
	sutro_core_pass(&t->core, group, false, estimate_ns, t->now_ns);
	return true;
}

#endif /* SUTRO_TEST_H */
