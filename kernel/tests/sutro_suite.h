/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of a file of KUnit tests: its suite, a module of its own.
 *
 *	sutro_suite(sutro_apart, "protected groups beside each other");
 *
 * is the suite of the cases in the array sutro_apart_cases.
 */
#ifndef SUTRO_SUITE_H
#define SUTRO_SUITE_H

#include <kunit/test.h>
#include <linux/module.h>

#define sutro_suite(suite, text)                    \
	static struct kunit_suite suite##_suite = { \
		.name = #suite,                     \
		.test_cases = suite##_cases,        \
	};                                          \
	kunit_test_suite(suite##_suite);            \
	MODULE_DESCRIPTION("KUnit tests of " text); \
	MODULE_LICENSE("GPL")

#endif /* SUTRO_SUITE_H */
