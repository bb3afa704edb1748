// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of a group's part of the request slots, and of its turn for one (sutro-share.c). */
#include "sutro_test.h"

/* The example of sutro_group_slots(): many groups in a light subtree have its few slots. */
static void sutro_test_slots(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group *groups =
		kunit_kzalloc(test, 200 * sizeof(*groups), GFP_KERNEL);
	u32 slots[SUTRO_LEVELS + 1];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, groups);
	sutro_group_set_weight(&t->a, 1000);
	sutro_group_set_weight(&t->b, 1);
	for (i = 0; i < 200; i++) {
		sutro_group_init(&groups[i], &t->b, SUTRO_WEIGHT_DFL);
		arrive(t, &groups[i], 1);
	}
	/* Alone, the subtree has all. */
	KUNIT_EXPECT_EQ(test, sutro_group_slots(&groups[0], 64, 0, slots), 1);
	KUNIT_EXPECT_EQ(test, slots[1], 64);
	KUNIT_EXPECT_EQ(test, slots[2], 1);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_EQ(test, sutro_group_slots(&t->a, 64, 0, slots), 63);
	KUNIT_EXPECT_EQ(test, slots[1], 63);
	KUNIT_EXPECT_EQ(test, sutro_group_slots(&groups[0], 64, 0, slots), 1);
	KUNIT_EXPECT_EQ(test, slots[1], 16);
	/* Free slots are added to a part, not to the slots that are never refused. */
	sutro_group_slots(&groups[0], 64, 10, slots);
	KUNIT_EXPECT_EQ(test, slots[2], 10);
	KUNIT_EXPECT_EQ(test, slots[1], 16);
	/* A heavy one of them has most slots of the subtree. */
	sutro_group_set_weight(&groups[0], SUTRO_WEIGHT_MAX);
	KUNIT_EXPECT_EQ(test, sutro_group_slots(&groups[0], 64, 0, slots), 5);
	KUNIT_EXPECT_EQ(test, slots[1], 16);
}

/* Groups with a 32nd of the slots leave the last ones to those with fewer, which may use all. */
static void sutro_test_last_slots(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, sutro_leaves_last(8, 256, 8));
	KUNIT_EXPECT_FALSE(test, sutro_leaves_last(8, 256, 9));
	KUNIT_EXPECT_FALSE(test, sutro_leaves_last(7, 256, 1));
	KUNIT_EXPECT_TRUE(test, sutro_leaves_last(2, 64, 2));
	KUNIT_EXPECT_FALSE(test, sutro_leaves_last(1, 64, 2));
	/* With few slots, none is left. */
	KUNIT_EXPECT_FALSE(test, sutro_leaves_last(1, 2, 1));
	KUNIT_EXPECT_TRUE(test, sutro_leaves_last(1, 2, 0));
}

/* With nearly as many groups as slots there is a crowd; a heavy one has more than an even part. */
static void sutro_test_crowd(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group *groups =
		kunit_kzalloc(test, 48 * sizeof(*groups), GFP_KERNEL);
	u32 nr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, groups);
	for (i = 0; i < 48; i++) {
		sutro_group_init(&groups[i], &t->root, SUTRO_WEIGHT_DFL);
		arrive(t, &groups[i], 1);
	}
	KUNIT_EXPECT_FALSE(test, sutro_is_crowded(&t->core, 64));
	/* One with twice the weight has two parts of 50, not one of 49. */
	sutro_group_set_weight(&t->a, 200);
	arrive(t, &t->a, 1);
	KUNIT_EXPECT_TRUE(test, sutro_is_crowded(&t->core, 64));
	nr = t->core.nr_active;
	KUNIT_EXPECT_FALSE(test, sutro_group_heavy(&groups[0], nr));
	KUNIT_EXPECT_TRUE(test, sutro_group_heavy(&t->a, nr));
	/* One that is not active is judged as if it were. */
	KUNIT_EXPECT_FALSE(test, sutro_group_heavy(&t->b, nr));
	/* A higher class is heavier than all of a lower one. */
	sutro_tree_set_class(&t->b, SUTRO_CLASS_RT);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_TRUE(test, sutro_group_heavy(&t->b, nr + 1));
	KUNIT_EXPECT_FALSE(test, sutro_group_heavy(&t->a, nr + 1));
}

static bool is_before(struct sutro_test *t, struct sutro_group *a,
		      struct sutro_group *b)
{
	struct sutro_turn turn_a = sutro_turn_of(a, &t->root);
	struct sutro_turn turn_b = sutro_turn_of(b, &t->root);

	return sutro_turn_before(&turn_a, &turn_b);
}

/* A submitter of a group that is not active begins to wait. */
static void wait_slot(struct sutro_test *t, struct sutro_group *group)
{
	group->slot_waiters++;
	sutro_core_wait_slot(&t->core, group, t->now_ns);
}

/* The only slot goes to @group, whose submitter waits again at once. */
static void take_turn(struct sutro_test *t, struct sutro_group *group, u64 ns)
{
	arrive(t, group, 1);
	KUNIT_EXPECT_PTR_EQ(t->test, send(t, ns), group);
	t->now_ns += ns;
	sutro_core_complete(&t->core, group, 1, ns, ns, t->now_ns);
	forget(t);
}

/* Turns for a slot divide device time by weight, at each level, whatever a request costs. */
static void sutro_test_turns(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group *groups[] = { &t->a, &t->c, &t->d };
	u64 used_ns[3] = {};
	int i, k;

	sutro_group_set_weight(&t->a, 300);
	sutro_group_set_weight(&t->d, 400);
	for (k = 0; k < 3; k++)
		wait_slot(t, groups[k]);
	KUNIT_EXPECT_EQ(test, t->core.nr_active, 3);
	for (i = 0; i < 4000; i++) {
		int next = 0;

		for (k = 1; k < 3; k++)
			if (is_before(t, groups[k], groups[next]))
				next = k;
		take_turn(t, groups[next], next == 2 ? MS / 4 : MS / 16);
		used_ns[next] += next == 2 ? MS / 4 : MS / 16;
	}
	EXPECT_NEAR(test, used_ns[0], 3 * (used_ns[1] + used_ns[2]), 4 * MS);
	EXPECT_NEAR(test, used_ns[2], 4 * used_ns[1], 4 * MS);
	/* A higher class is first. */
	sutro_tree_set_class(&t->b, SUTRO_CLASS_RT);
	KUNIT_EXPECT_TRUE(test, is_before(t, &t->c, &t->a));
}

/* The example of sutro_turn_of(). */
static void sutro_test_turn_inside(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_turn c, d, inside;

	wait_slot(t, &t->c);
	wait_slot(t, &t->d);
	wait_slot(t, &t->a);
	sutro_tree_charge(&t->c, 26 * MS);
	sutro_tree_charge(&t->d, 24 * MS);
	t->b.level.rank[SUTRO_CLASS_BE].vtime = t->d.entity.vtime;
	c = sutro_turn_of(&t->c, &t->root);
	d = sutro_turn_of(&t->d, &t->root);
	KUNIT_EXPECT_EQ(test, d.vtime, 50 * MS << SUTRO_VTIME_SHIFT);
	KUNIT_EXPECT_EQ(test, c.vtime, 54 * MS << SUTRO_VTIME_SHIFT);
	/* Where only these two compete, the rest of the tree does not matter. */
	inside = sutro_turn_of(&t->c, &t->b);
	KUNIT_EXPECT_EQ(test, inside.vtime, t->c.entity.vtime);
}

/* Groups that wait for slots are active, and others do not wait for them. */
static void sutro_test_waiting_for_slots(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	sutro_group_set_weight(&t->a, 1000);
	wait_slot(t, &t->a);
	wait_slot(t, &t->c);
	arrive(t, &t->d, 2);
	KUNIT_EXPECT_EQ(test, sutro_group_share(&t->d, 2200), 100);
	/* a is owed more than any slice, and d is served nevertheless. */
	sutro_tree_charge(&t->d, 1000 * MS);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->d);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->d);
	sutro_core_complete(&t->core, &t->d, 2, 2 * MS, 2 * MS, t->now_ns);
	/* d leaves.  Those that wait do not, however long they do. */
	t->now_ns += 1000 * MS;
	forget(t);
	KUNIT_EXPECT_EQ(test, t->core.nr_active, 2);
	arrive(t, &t->e, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->e);
	/* One that has got its slot, but sends no request, leaves. */
	t->a.slot_waiters--;
	t->now_ns += 1000 * MS;
	forget(t);
	KUNIT_EXPECT_FALSE(test, t->a.self.active);
	KUNIT_EXPECT_TRUE(test, t->c.self.active);
}

/* A group that is waited for, and whose next request has no slot, is not waited for any longer. */
static void sutro_test_no_slot_in_time(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	arrive(t, &t->c, 1);
	arrive(t, &t->e, 1);
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->c);
	sutro_core_complete(&t->core, &t->c, 1, MS, MS, t->now_ns);
	t->c.slot_waiters++;
	KUNIT_EXPECT_EQ(test, next_verdict(t), SUTRO_IDLE);
	t->now_ns += IDLE_NS;
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->e);
	KUNIT_EXPECT_TRUE(test, t->c.self.active);
	KUNIT_EXPECT_EQ(test, t->c.stat.dequeue, 0);
	/* Its request comes at last. */
	t->c.slot_waiters--;
	arrive(t, &t->c, 1);
	finish(t, &t->e, MS, MS);
	t->now_ns += IDLE_NS;
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->c);
}

static struct kunit_case sutro_share_cases[] = {
	KUNIT_CASE(sutro_test_slots),
	KUNIT_CASE(sutro_test_last_slots),
	KUNIT_CASE(sutro_test_crowd),
	KUNIT_CASE(sutro_test_turns),
	KUNIT_CASE(sutro_test_turn_inside),
	KUNIT_CASE(sutro_test_waiting_for_slots),
	KUNIT_CASE(sutro_test_no_slot_in_time),
	{},
};

sutro_suite(sutro_share, "Sutro's parts of request slots");
