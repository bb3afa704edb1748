/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of KUnit as kernel/tests needs, in userspace, on the test framework of
 * GLib: each suite is a program that runs its cases and reports them as TAP.
 */
#ifndef SIM_KUNIT_TEST_H
#define SIM_KUNIT_TEST_H

#include <glib.h>
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

/* GLib has the state of the case that runs. */
struct kunit;

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
	g_test_queue_destroy(run, data);
	return 0;
}

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	void *memory = g_malloc0(size);

	g_test_queue_free(memory);
	return memory;
}

#define kunit_compare(a, op, b)                                             \
	do {                                                                \
		__typeof__(a) a_ = (a);                                     \
		__typeof__(b) b_ = (b);                                     \
                                                                            \
		if (!(a_ op b_))                                            \
			g_test_fail_printf(                                 \
				"%s:%d: not true: %s %s %s: %lld and %lld", \
				__FILE__, __LINE__, #a, #op, #b,            \
				(long long)a_, (long long)b_);              \
	} while (0)

#define KUNIT_EXPECT_EQ(test, a, b) kunit_compare(a, ==, b)
#define KUNIT_EXPECT_NE(test, a, b) kunit_compare(a, !=, b)
#define KUNIT_EXPECT_LT(test, a, b) kunit_compare(a, <, b)
#define KUNIT_EXPECT_LE(test, a, b) kunit_compare(a, <=, b)
#define KUNIT_EXPECT_GT(test, a, b) kunit_compare(a, >, b)
#define KUNIT_EXPECT_GE(test, a, b) kunit_compare(a, >=, b)
#define KUNIT_EXPECT_TRUE(test, a) kunit_compare(!!(a), ==, 1)
#define KUNIT_EXPECT_FALSE(test, a) kunit_compare(!!(a), ==, 0)
#define KUNIT_EXPECT_PTR_EQ(test, a, b) kunit_compare(a, ==, b)
#define KUNIT_EXPECT_PTR_NE(test, a, b) kunit_compare(a, !=, b)
#define KUNIT_EXPECT_NULL(test, a) \
	kunit_compare((const void *)(a), ==, (const void *)NULL)
/* A failed assertion ends the program, and with it the cases that follow. */
#define KUNIT_ASSERT_EQ(test, a, b) g_assert_cmpint(a, ==, b)
#define KUNIT_ASSERT_GT(test, a, b) g_assert_cmpint(a, >, b)
#define KUNIT_ASSERT_NOT_NULL(test, a) g_assert_nonnull(a)

static inline void kunit_run_case(const void *one)
{
	((const struct kunit_case *)one)->run(NULL);
}

static inline int kunit_run_suite(const struct kunit_suite *suite, int argc,
				  char **argv)
{
	const struct kunit_case *one;

	g_test_init(&argc, &argv, NULL);
	for (one = suite->test_cases; one->run; one++) {
		g_autofree char *path =
			g_strdup_printf("/%s/%s", suite->name, one->name);

		g_test_add_data_func(path, one, kunit_run_case);
	}
	return g_test_run();
}

#define kunit_test_suite(suite)                               \
	int main(int argc, char **argv)                       \
	{                                                     \
		return kunit_run_suite(&(suite), argc, argv); \
	}                                                     \
	_Static_assert(1, "")

#endif /* SIM_KUNIT_TEST_H */
