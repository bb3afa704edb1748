// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of protected groups beside each other (sutro-apart.c). */
#include <linux/module.h>

#include "sutro_load_test.h"

/* a has one small request at a time and b many large ones, both with ten times the weight of e. */
static struct load *load_of_two(struct kunit *test)
{
	struct load *load = load_new(test, SMALL_NS);

	arrive_far(load->t, load->equal, DEEP);
	sutro_group_set_weight(load->few, 1000);
	sutro_group_set_weight(load->equal, 1000);
	load_run(load, 4 * SECOND_NS);
	return load;
}

/* Each receives nearly half of its rate alone. */
static void sutro_test_apart(struct kunit *test)
{
	struct load *load = load_of_two(test);
	int alone = SECOND_NS / (2 * SMALL_NS);

	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone * 45 / 100);
	KUNIT_EXPECT_GE(test, load->equal_nr * LARGE_NS,
			10 * SECOND_NS * 45 / 100);
	KUNIT_EXPECT_GE(test, load->many_nr, 1);
}

/* By their shares: b has one and a half times the weight. */
static void sutro_test_apart_shares(struct kunit *test)
{
	struct load *load = load_of_two(test);
	int alone = SECOND_NS / (2 * SMALL_NS);

	sutro_group_set_weight(load->equal, 1500);
	sutro_protect_changed(&load->t->core);
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
	KUNIT_EXPECT_GE(test, load->few_nr, 10 * alone * 36 / 100);
	KUNIT_EXPECT_GE(test, load->equal_nr * LARGE_NS,
			10 * SECOND_NS * 55 / 100);
}

/* The rates of a group, in requests of as many ns as one phase of each kind has. */
static void set_rates(struct sutro_protect *protect, struct sutro_group *group,
		      u32 beside, u32 alone)
{
	struct sutro_phase_sum *phases = group->protect->phases;
	u32 i;

	for (i = 0; i < SUTRO_PHASES; i++)
		phases[i].ns = protect->phase_ns[i] - protect->cycle_ns;
	phases[SUTRO_PHASE_BESIDE].nr = beside;
	phases[SUTRO_PHASE_ALONE].nr = alone;
}

/* No group waits if none has less beside others than half of its rate alone. */
static void sutro_test_apart_if_needed(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	/* Not one of the cycles in which rates are measured. */
	u64 now_ns = protect->cycle_ns;

	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->few));
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(load->equal));
	set_rates(protect, load->few, 60, 100);
	set_rates(protect, load->equal, 20, 30);
	sutro_apart_begin(core, now_ns);
	KUNIT_EXPECT_FALSE(test, protect->apart);
	KUNIT_EXPECT_FALSE(test, protect->harmed);
	load->equal->protect->window_ns = protect->cycle_ns;
	KUNIT_EXPECT_FALSE(test,
			   sutro_apart_waits(protect, load->equal->protect));

	set_rates(protect, load->few, 40, 100);
	sutro_apart_begin(core, now_ns);
	KUNIT_EXPECT_TRUE(test, protect->apart);
	KUNIT_EXPECT_TRUE(test, protect->harmed);
	/* No more is shared than others have in any case, or than the shares leave. */
	KUNIT_EXPECT_LE(test, sutro_part_shared(core, protect->share),
			SUTRO_PROTECT_WHOLE / 8);
	load->equal->protect->window_ns = protect->cycle_ns;
	KUNIT_EXPECT_TRUE(test,
			  sutro_apart_waits(protect, load->equal->protect));
	KUNIT_EXPECT_FALSE(test,
			   sutro_apart_waits(protect, load->few->protect));

	core->tunables.rotational = true;
	sutro_apart_begin(core, now_ns);
	KUNIT_EXPECT_FALSE(test, protect->apart);
	core->tunables.rotational = false;
	protect->reserve = SUTRO_PROTECT_WHOLE / 4;
	sutro_apart_begin(core, now_ns);
	KUNIT_EXPECT_FALSE(test, protect->apart);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, NULL);
}

/* A group of which the rate alone is not known has its part first, and others wait. */
static void sutro_test_apart_first(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_core *core = &load->t->core;
	struct sutro_protect *protect = &core->protect;
	struct sutro_group_protect *few = load->few->protect;

	set_rates(protect, load->few, 60, 0);
	few->phases[SUTRO_PHASE_ALONE].ns =
		protect->phase_ns[SUTRO_PHASE_ALONE];
	set_rates(protect, load->equal, 20, 30);
	sutro_apart_begin(core, protect->cycle_ns);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, few);
	KUNIT_EXPECT_TRUE(test,
			  sutro_apart_waits(protect, load->equal->protect));
	KUNIT_EXPECT_FALSE(test, sutro_apart_waits(protect, few));

	protect->reserved = true;
	sutro_apart_sent(protect, few, protect->cycle_ns);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, NULL);
	protect->apart = true;
	KUNIT_EXPECT_FALSE(test,
			   sutro_apart_waits(protect, load->equal->protect));
	KUNIT_EXPECT_TRUE(test, sutro_apart_waits(protect, few));

	/* The time beyond its part counts in the next window. */
	sutro_apart_begin(core, protect->cycle_ns);
	KUNIT_EXPECT_GT(test, few->window_ns, 0ULL);
	KUNIT_EXPECT_LT(test, few->window_ns, protect->cycle_ns);

	/* When it is no longer protected, no group waits for it. */
	protect->first = few;
	sutro_protect_drop(core, load->few);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, NULL);
}

/* Time in which another group is alone does not count for one that waits. */
static void sutro_test_apart_rate(struct kunit *test)
{
	struct load *load = load_of_two(test);
	struct sutro_protect *protect = &load->t->core.protect;
	struct sutro_group_protect *few = load->few->protect;
	u64 ns;

	set_rates(protect, load->few, 40, 100);
	set_rates(protect, load->equal, 20, 30);
	protect->reserved = true;
	protect->clear = true;
	protect->apart = false;
	protect->waited = true;
	protect->first = load->equal->protect;
	protect->alone_ns = protect->phase_ns[SUTRO_PHASE_ALONE];
	ns = protect->phase_ns[SUTRO_PHASE_ALONE] -
	     few->phases[SUTRO_PHASE_ALONE].ns;
	sutro_apart_passed(protect, 10 * MS);
	sutro_apart_sent(protect, load->equal->protect, MS);
	KUNIT_EXPECT_PTR_EQ(test, protect->first, NULL);
	KUNIT_EXPECT_FALSE(test, protect->waited);
	KUNIT_EXPECT_EQ(test,
			protect->phase_ns[SUTRO_PHASE_ALONE] -
				few->phases[SUTRO_PHASE_ALONE].ns,
			ns);
}

static struct kunit_case sutro_apart_test_cases[] = {
	KUNIT_CASE(sutro_test_apart),
	KUNIT_CASE(sutro_test_apart_shares),
	KUNIT_CASE(sutro_test_apart_if_needed),
	KUNIT_CASE(sutro_test_apart_first),
	KUNIT_CASE(sutro_test_apart_rate),
	{}
};

static struct kunit_suite sutro_apart_test_suite = {
	.name = "sutro_apart",
	.test_cases = sutro_apart_test_cases,
};

kunit_test_suite(sutro_apart_test_suite);

MODULE_DESCRIPTION("KUnit tests of protected groups beside each other");
MODULE_LICENSE("GPL");
