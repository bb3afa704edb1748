// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the groups that are entitled to more than others (sutro-favoured.c). */
#include "sutro_test.h"

static bool favoured(struct sutro_group *group)
{
	return sutro_group_favoured_inside(group);
}

/* By weight or class at some level with others, and at no level less. */
static void sutro_test_favoured(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	arrive(t, &t->a, 1);
	KUNIT_EXPECT_FALSE(test, favoured(&t->a));
	arrive(t, &t->c, 1);
	arrive(t, &t->d, 1);
	KUNIT_EXPECT_FALSE(test, favoured(&t->a));
	/* Within b, that weighs as much as a. */
	sutro_group_set_weight(&t->c, 200);
	KUNIT_EXPECT_TRUE(test, favoured(&t->c));
	KUNIT_EXPECT_FALSE(test, sutro_group_favoured(&t->c, 1));
	KUNIT_EXPECT_FALSE(test, favoured(&t->a));
	KUNIT_EXPECT_FALSE(test, favoured(&t->d));
	sutro_group_set_weight(&t->b, 200);
	KUNIT_EXPECT_TRUE(test, favoured(&t->c));
	KUNIT_EXPECT_FALSE(test, favoured(&t->d));
	sutro_group_set_weight(&t->b, 100);
	sutro_group_set_weight(&t->a, 200);
	KUNIT_EXPECT_TRUE(test, favoured(&t->a));
	KUNIT_EXPECT_FALSE(test, favoured(&t->c));
	/* Only the highest level with others counts for more than that. */
	sutro_group_set_weight(&t->a, 100);
	sutro_group_set_weight(&t->c, 10000);
	KUNIT_EXPECT_FALSE(test, sutro_group_favoured(&t->c, 9));
	sutro_group_set_weight(&t->c, 200);
	sutro_group_set_weight(&t->a, 900);
	KUNIT_EXPECT_FALSE(test, sutro_group_favoured(&t->a, 9));
	sutro_group_set_weight(&t->a, 1000);
	KUNIT_EXPECT_TRUE(test, sutro_group_favoured(&t->a, 9));
	sutro_group_set_weight(&t->a, 100);
	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_RT);
	KUNIT_EXPECT_TRUE(test, favoured(&t->c));
	KUNIT_EXPECT_FALSE(test, favoured(&t->a));
}

/* The lightest of a level has its part of the weight, or class, at higher levels. */
static void sutro_test_favoured_lightest(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	/* b has c and d; a is beside it. */
	arrive(t, &t->a, 1);
	arrive(t, &t->c, 1);
	arrive(t, &t->d, 1);
	sutro_group_set_weight(&t->c, 200);
	sutro_group_set_weight(&t->b, 300);
	KUNIT_EXPECT_TRUE(test, favoured(&t->c));
	KUNIT_EXPECT_FALSE(test, favoured(&t->d));
	sutro_group_set_weight(&t->b, 301);
	KUNIT_EXPECT_TRUE(test, favoured(&t->d));
	KUNIT_EXPECT_FALSE(test, favoured(&t->a));
	/* On a rotational device it is not. */
	KUNIT_EXPECT_FALSE(test, sutro_group_favoured(&t->d, 1));
	/* Nine times the weight of a is 900. */
	sutro_group_set_weight(&t->b, 2699);
	KUNIT_EXPECT_FALSE(test, sutro_group_favoured(&t->d, 9));
	sutro_group_set_weight(&t->b, 2701);
	KUNIT_EXPECT_TRUE(test, sutro_group_favoured(&t->d, 9));
	/* Its part of a class is more than one in 32. */
	sutro_group_set_weight(&t->b, 1);
	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_RT);
	KUNIT_EXPECT_TRUE(test, favoured(&t->d));
	sutro_group_set_weight(&t->c, 3200);
	KUNIT_EXPECT_FALSE(test, favoured(&t->d));
	sutro_group_set_class(&t->core, &t->b, SUTRO_CLASS_BE);
	sutro_group_set_weight(&t->b, 10000);
	sutro_group_set_class(&t->core, &t->c, SUTRO_CLASS_RT);
	KUNIT_EXPECT_FALSE(test, favoured(&t->d));
}

/* More than the lightest sibling is enough, and it is found anew after it has left. */
static void sutro_test_favoured_of_three(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	int i;

	sutro_group_set_weight(&t->a, 1000);
	sutro_group_set_weight(&t->b, 300);
	arrive(t, &t->a, 1);
	arrive(t, &t->c, 1);
	KUNIT_EXPECT_TRUE(test, favoured(&t->a));
	KUNIT_EXPECT_FALSE(test, favoured(&t->c));
	arrive(t, &t->e, 1);
	KUNIT_EXPECT_TRUE(test, favoured(&t->a));
	KUNIT_EXPECT_TRUE(test, favoured(&t->c));
	KUNIT_EXPECT_FALSE(test, favoured(&t->e));
	while (t->e.queued)
		finish(t, send(t, MS), MS, MS);
	t->now_ns += 1000 * MS;
	forget(t);
	arrive(t, &t->a, 1);
	arrive(t, &t->c, 1);
	for (i = 0; i < 2; i++)
		favoured(&t->c);
	KUNIT_EXPECT_FALSE(test, favoured(&t->c));
	KUNIT_EXPECT_TRUE(test, favoured(&t->a));
}

/* Those that are entitled to as much where their ways to the root meet keep up. */
static void sutro_test_keeps_up(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	/* b has c and d; a and e are beside it. */
	sutro_group_set_weight(&t->c, 1000);
	sutro_group_set_weight(&t->e, 99);
	sutro_group_mark(&t->c);
	KUNIT_EXPECT_TRUE(test, sutro_group_keeps_up(&t->c));
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->d));
	/* a weighs less than c, but as much as b. */
	KUNIT_EXPECT_TRUE(test, sutro_group_keeps_up(&t->a));
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->e));
	/* The least of those that are protected decides. */
	sutro_group_mark(&t->e);
	KUNIT_EXPECT_TRUE(test, sutro_group_keeps_up(&t->e));
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->d));
	/* After a change, all are marked anew. */
	sutro_group_unmark(&t->c);
	sutro_group_unmark(&t->e);
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->c));
	sutro_group_mark(&t->d);
	KUNIT_EXPECT_TRUE(test, sutro_group_keeps_up(&t->d));
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->e));
}

/* A class comes before all weights. */
static void sutro_test_keeps_up_by_class(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);

	sutro_group_set_class(&t->core, &t->a, SUTRO_CLASS_RT);
	sutro_group_set_weight(&t->a, 1);
	sutro_group_set_weight(&t->b, 10000);
	sutro_group_mark(&t->a);
	KUNIT_EXPECT_TRUE(test, sutro_group_keeps_up(&t->a));
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->b));
	KUNIT_EXPECT_FALSE(test, sutro_group_keeps_up(&t->c));
	sutro_group_mark(&t->e);
	KUNIT_EXPECT_TRUE(test, sutro_group_keeps_up(&t->c));
}

/* How much vtime is @entity ahead of the one that was last served beside it? */
static u64 lead(struct sutro_level *level, const struct sutro_entity *entity)
{
	return entity->vtime - sutro_rank_of(level, entity)->vtime;
}

/* A group that was served in advance waits for a time, unless it is as heavy as a protected one. */
static void sutro_test_limit_lead(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	u64 before;

	/* b has c and d; a is beside it. */
	arrive(t, &t->a, 1);
	arrive(t, &t->c, 1);
	arrive(t, &t->d, 1);
	sutro_tree_charge(&t->a, 9000 * MS);
	sutro_tree_charge(&t->d, 3000 * MS);
	before = t->a.entity.vtime;
	sutro_group_mark(&t->a);
	sutro_group_limit_lead(&t->c, 1000 * MS);
	KUNIT_EXPECT_EQ(test, t->a.entity.vtime, before);
	/* Half of the time of b is that of d. */
	KUNIT_EXPECT_EQ(test, lead(&t->b.level, &t->d.entity),
			sutro_tree_vtime(&t->d.entity, 250 * MS));
	sutro_group_unmark(&t->a);
	sutro_group_limit_lead(&t->c, 1000 * MS);
	KUNIT_EXPECT_EQ(test, lead(&t->root.level, &t->a.entity),
			sutro_tree_vtime(&t->a.entity, 500 * MS));
	/* A shorter lead stays, and the places in the tree are right. */
	sutro_group_limit_lead(&t->c, 8000 * MS);
	KUNIT_EXPECT_EQ(test, lead(&t->root.level, &t->a.entity),
			sutro_tree_vtime(&t->a.entity, 500 * MS));
	KUNIT_EXPECT_PTR_EQ(test, send(t, MS), &t->a);
}

static struct kunit_case sutro_favoured_cases[] = {
	KUNIT_CASE(sutro_test_favoured),
	KUNIT_CASE(sutro_test_favoured_lightest),
	KUNIT_CASE(sutro_test_favoured_of_three),
	KUNIT_CASE(sutro_test_keeps_up),
	KUNIT_CASE(sutro_test_keeps_up_by_class),
	KUNIT_CASE(sutro_test_limit_lead),
	{}
};

sutro_suite(sutro_favoured, "favoured groups");
