/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of KUnit as kernel/tests needs, in userspace: each suite is a program
 * that runs its cases in order and reports them, and each failed expectation, as TAP.
 */
#ifndef SIM_KUNIT_TEST_H
#define SIM_KUNIT_TEST_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/kernel.h>
#include <linux/types.h>

/* The kernel's, of any type. */
#define abs(x)                          \
	({                              \
		__typeof__(x) x_ = (x); \
		x_ < 0 ? -x_ : x_;      \
	})

#define KUNIT_MAX_ACTIONS 256

/**
 * struct kunit - a case that is being run
 * @failed:	some expectation was not met
 * @abort:	where a failed assertion leaves the case
 * @actions:	what is to be done at its end, the last one first
 * @nr_actions:	how many
 */
struct kunit {
	bool failed;
	jmp_buf abort;
	struct {
		void (*run)(void *data);
		void *data;
	} actions[KUNIT_MAX_ACTIONS];
	unsigned int nr_actions;
};

struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(fn) { .run = fn, .name = #fn }

#define GFP_KERNEL 0

static inline int kunit_add_action_or_reset(struct kunit *test,
					    void (*run)(void *data), void *data)
{
	if (test->nr_actions == KUNIT_MAX_ACTIONS)
		abort();
	test->actions[test->nr_actions].run = run;
	test->actions[test->nr_actions++].data = data;
	return 0;
}

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	void *memory = calloc(1, size);

	if (!memory)
		abort();
	kunit_add_action_or_reset(test, free, memory);
	return memory;
}

#define kunit_compare(test, leave, a, op, b)                                   \
	do {                                                                   \
		__typeof__(a) a_ = (a);                                        \
		__typeof__(b) b_ = (b);                                        \
                                                                               \
		if (a_ op b_)                                                  \
			break;                                                 \
		printf("# %s:%d: not so: %s %s %s\n", __FILE__, __LINE__, #a,  \
		       #op, #b);                                               \
		printf("#     %lld and %lld\n", (long long)a_, (long long)b_); \
		(test)->failed = true;                                         \
		if (leave)                                                     \
			longjmp((test)->abort, 1);                             \
	} while (0)

#define KUNIT_EXPECT_EQ(test, a, b) kunit_compare(test, false, a, ==, b)
#define KUNIT_EXPECT_NE(test, a, b) kunit_compare(test, false, a, !=, b)
#define KUNIT_EXPECT_LT(test, a, b) kunit_compare(test, false, a, <, b)
#define KUNIT_EXPECT_LE(test, a, b) kunit_compare(test, false, a, <=, b)
#define KUNIT_EXPECT_GT(test, a, b) kunit_compare(test, false, a, >, b)
#define KUNIT_EXPECT_GE(test, a, b) kunit_compare(test, false, a, >=, b)
#define KUNIT_EXPECT_TRUE(test, a) kunit_compare(test, false, !!(a), ==, 1)
#define KUNIT_EXPECT_FALSE(test, a) kunit_compare(test, false, !!(a), ==, 0)
#define KUNIT_EXPECT_PTR_EQ(test, a, b) kunit_compare(test, false, a, ==, b)
#define KUNIT_EXPECT_PTR_NE(test, a, b) kunit_compare(test, false, a, !=, b)
#define KUNIT_EXPECT_NULL(test, a) \
	kunit_compare(test, false, (const void *)(a), ==, (const void *)NULL)
#define KUNIT_ASSERT_EQ(test, a, b) kunit_compare(test, true, a, ==, b)
#define KUNIT_ASSERT_GT(test, a, b) kunit_compare(test, true, a, >, b)
#define KUNIT_ASSERT_NOT_NULL(test, a) \
	kunit_compare(test, true, (const void *)(a), !=, (const void *)NULL)

static inline bool kunit_run_case(const struct kunit_case *one, int number)
{
	struct kunit test = {};

	if (!setjmp(test.abort))
		one->run(&test);
	while (test.nr_actions--)
		test.actions[test.nr_actions].run(
			test.actions[test.nr_actions].data);
	printf("%s %d %s\n", test.failed ? "not ok" : "ok", number, one->name);
	return !test.failed;
}

static inline int kunit_run_suite(const struct kunit_suite *suite)
{
	const struct kunit_case *one;
	bool ok = true;
	int nr = 0;

	for (one = suite->test_cases; one->run; one++)
		nr++;
	printf("TAP version 13\n1..%d\n", nr);
	for (one = suite->test_cases, nr = 0; one->run; one++)
		ok &= kunit_run_case(one, ++nr);
	return !ok;
}

#define kunit_test_suite(suite)                   \
	int main(void)                            \
	{                                         \
		return kunit_run_suite(&(suite)); \
	}                                         \
	_Static_assert(1, "")

#endif /* SIM_KUNIT_TEST_H */
