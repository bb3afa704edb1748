// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of a group's part of the request slots, and of its turn for one (sutro-share.c). */
#include <linux/module.h>

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

/* The group used @ns, and its next request gets a slot. */
static void take_turn(struct sutro_test *t, struct sutro_group *group, u64 ns)
{
	struct sutro_turn turn =
		sutro_turn_of(&t->core, group, group->entity.class);

	group->stat.time_ns += ns;
	sutro_turn_came(&t->core, group, &turn);
}

static bool is_before(struct sutro_test *t, struct sutro_group *a,
		      struct sutro_group *b)
{
	struct sutro_turn turn_a = sutro_turn_of(&t->core, a, a->entity.class);
	struct sutro_turn turn_b = sutro_turn_of(&t->core, b, b->entity.class);

	return sutro_turn_before(&turn_a, &turn_b);
}

/* Turns for slots divide device time by weight, whatever it costs to serve a request. */
static void sutro_test_turns(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u64 used_ns[2] = {};
	int i;

	sutro_group_set_weight(&t->a, 300);
	arrive(t, &t->a, 1);
	arrive(t, &t->b, 1);
	KUNIT_EXPECT_FALSE(test, is_before(t, &t->a, &t->b));
	KUNIT_EXPECT_FALSE(test, is_before(t, &t->b, &t->a));
	for (i = 0; i < 4000; i++) {
		bool a = is_before(t, &t->a, &t->b);

		take_turn(t, a ? &t->a : &t->b, a ? MS : 5 * MS);
		used_ns[a] += a ? MS : 5 * MS;
	}
	EXPECT_NEAR(test, used_ns[1], 3 * used_ns[0], 20 * MS);
	/* One that comes back is owed 16 slices of its own time, and no more. */
	t->core.turn_vtime += 1U << 28;
	for (i = 0; is_before(t, &t->a, &t->c); i++)
		take_turn(t, &t->a, t->core.tunables.slice_ns);
	KUNIT_EXPECT_LE(test, i, 17);
	/* A higher class is first. */
	sutro_tree_set_class(&t->b, SUTRO_CLASS_RT);
	KUNIT_EXPECT_TRUE(test, is_before(t, &t->b, &t->a));
}

static struct kunit_case sutro_share_cases[] = {
	KUNIT_CASE(sutro_test_slots),
	KUNIT_CASE(sutro_test_crowd),
	KUNIT_CASE(sutro_test_turns),
	{},
};

static struct kunit_suite sutro_share_suite = {
	.name = "sutro_share",
	.test_cases = sutro_share_cases,
};

kunit_test_suite(sutro_share_suite);

MODULE_DESCRIPTION("KUnit tests of Sutro's parts of request slots");
MODULE_LICENSE("GPL");
