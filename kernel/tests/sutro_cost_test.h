/* SPDX-License-Identifier: GPL-2.0-only */
/* Devices and tables of costs, for the KUnit suites of the cost and its estimates. */
#ifndef SUTRO_COST_TEST_H
#define SUTRO_COST_TEST_H

#include "../sutro-cost.h"
#include "sutro_test.h"

#define US 1000ULL

/* The largest size of a class. */
static inline u32 class_bytes(unsigned int class)
{
	return SUTRO_SIZE_MIN_BYTES << class % SUTRO_SIZES;
}

static inline struct sutro_device *device_new(struct kunit *test,
					      bool rotational)
{
	struct sutro_device *device =
		kunit_kzalloc(test, sizeof(*device), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, device);
	sutro_device_init(device, rotational);
	return device;
}

static inline struct sutro_costs *costs_new(struct kunit *test)
{
	struct sutro_costs *costs =
		kunit_kzalloc(test, sizeof(*costs), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, costs);
	return costs;
}

#endif
