/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: what a request costs.  sutro-cost.c says how it is known.
 *
 * Pure C, like sutro-core.h.  The caller serializes all calls.
 */
#ifndef SUTRO_COST_H
#define SUTRO_COST_H

#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

enum sutro_op {
	SUTRO_READ,
	SUTRO_WRITE,
	SUTRO_OTHER, /* discard, write zeroes ... */
	SUTRO_OPS,
};

/* Sizes by powers of two from up to 4 KiB to 2 MiB and more. */
#define SUTRO_SIZES 10
#define SUTRO_SIZE_MIN_BYTES 4096
#define SUTRO_CLASSES (SUTRO_OPS * SUTRO_SIZES)

/**
 * struct sutro_costs - cost of a request by class
 * @ns16: in 1/16 ns, 0 = not known yet
 */
struct sutro_costs {
	u64 ns16[SUTRO_CLASSES];
};

/**
 * struct sutro_device - what is known of a leaf
 * @rotational:	one actuator does all the work
 * @last_completion_ns: time of the last completion
 * @costs:	cost by class, where it is a property of the device (not rotational)
 * @latency_ns:	latency of a request on a device with little to do
 * @unsaturated: set by the caller when it had nothing to send
 * @window:	completions since @window.start_ns
 */
struct sutro_device {
	bool rotational;
	u64 last_completion_ns;
	struct sutro_costs costs;
	u64 latency_ns;
	bool unsaturated;
	struct {
		u64 start_ns;
		u64 cost_ns16;
		u64 latency_of_ns[SUTRO_CLASSES];
		u32 nr;
		u32 nr_of[SUTRO_CLASSES];
	} window;
};

/**
 * struct sutro_sample - one completed request
 * @class:	from sutro_cost_class()
 * @start_ns:	when the driver got it
 * @now_ns:	when it completed
 * @shallow:	few others were at the device when it was sent
 */
struct sutro_sample {
	unsigned int class;
	u64 start_ns;
	u64 now_ns;
	bool shallow;
};

void sutro_device_init(struct sutro_device *device, bool rotational);
unsigned int sutro_cost_class(enum sutro_op op, u32 bytes);
u64 sutro_cost_estimate(const struct sutro_device *device,
			const struct sutro_costs *group, unsigned int class);
u64 sutro_cost_complete(struct sutro_device *device, struct sutro_costs *group,
			const struct sutro_sample *sample);
u64 sutro_cost_busy_ns(const struct sutro_device *device);
u64 sutro_cost_depth_ns(const struct sutro_device *device);

#endif /* SUTRO_COST_H */
