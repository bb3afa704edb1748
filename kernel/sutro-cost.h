/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: the cost of a request; sutro-cost.c describes its measurement.
 *
 * Pure C, like sutro-core.h.  The caller serializes all calls.
 */
#ifndef SUTRO_COST_H
#define SUTRO_COST_H

#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "sutro-destage.h"

enum sutro_op {
	SUTRO_READ,
	SUTRO_WRITE,
	SUTRO_OTHER, /* discard, write zeroes ... */
};

/* Costs are kept in 1/16 ns: a 4 KiB read of a fast drive is some 1000 ns. */
#define SUTRO_NS16_SHIFT 4

/*
 * Sizes by powers of two from up to 4 KiB to 256 KiB and more: merged streams
 * have requests of any size, and must not fall into many classes.
 */
#define SUTRO_SIZES 7
#define SUTRO_SIZE_MIN_BYTES 4096
/* SUTRO_OTHER has one class: its cost does not depend on the size. */
#define SUTRO_READ_WRITE_CLASSES (SUTRO_OTHER * SUTRO_SIZES)
#define SUTRO_CLASSES (SUTRO_READ_WRITE_CLASSES + 1)

/*
 * A drive that recovers from an error, or spins up, may take half a minute; that
 * is not charged to the groups whose requests wait meanwhile.
 */
#define SUTRO_COST_MAX_NS (1000 * 1000 * 1000ULL)

/*
 * Device time that may be in flight: at least this much, so that a late interrupt
 * or a slow CPU does not leave a fast device idle, and at most that much.
 */
#define SUTRO_DEPTH_MIN_NS (1000 * 1000ULL)
#define SUTRO_DEPTH_MAX_NS (32 * 1000 * 1000ULL)

/* From this size on, the cost of a class grows with bytes. */
#define SUTRO_LINEAR_BYTES 65536

/* One unit: a request of exactly the size that its class stands for. */
#define SUTRO_UNIT_SHIFT 8
#define SUTRO_UNIT ((u32)BIT(SUTRO_UNIT_SHIFT))

/**
 * struct sutro_costs - cost of a request by class
 * @ns16:	in 1/16 ns, 0 = not known yet; that of SUTRO_OTHER is a mean over all sizes
 * @known:	a bit for each class whose cost is not 0
 * @measured:	a bit for each class that a probe has measured
 * @bounded:	of these, those that did not saturate the device and do not follow from the bytes of
 *		others: windows scale them
 * @prior:	a bit for each class that has the cost that an earlier elevator measured
 *		(sutro-prior.c), and no other yet: windows do not change it
 * @advance:	charges of a group in advance, where the device is rotational
 */
struct sutro_costs {
	u64 ns16[SUTRO_CLASSES];
	u32 known;
	u32 measured;
	u32 bounded;
	u32 prior;
	struct sutro_advance advance;
};

#define SUTRO_METER_ROUNDS 8

/**
 * struct sutro_meter - completions of one class, timed for a probe (sutro-probe.c)
 * @armed:	it counts
 * @done:	it has counted enough
 * @class:	the class that is counted
 * @mixed:	so are requests of its mate
 * @mate_is_known: the cost of the mate was measured without others
 * @skip:	completions to be let pass first
 * @spared:	they would have been let pass, were they not slow
 * @enough:	it is done with this many completions, a multiple of @round
 * @few:	or with this many, if @long_ns has passed
 * @round:	or with a multiple of this, if SUTRO_METER_ROUNDS times @long_ns or
 *		SUTRO_METER_MOST_NS has passed: this many are in flight, and may complete together
 * @long_ns:	see @few
 * @nr:		counted
 * @units:	sizes of those of the class, in 1/SUTRO_UNIT of a request of its size
 * @mate_units:	the same of its mate
 * @took_ns:	sum of the time that each was at the device
 * @least_ns:	the least of these times
 * @start_ns:	time of the completion before the first one counted
 * @last_ns:	when it was armed; then the time of the last one counted, or let pass
 * @foreign_ns16: cost of requests of other classes that completed in between
 */
struct sutro_meter {
	bool armed;
	bool done;
	bool mixed;
	bool mate_is_known;
	unsigned int class;
	u32 skip;
	u32 spared;
	u32 enough;
	u32 few;
	u32 round;
	u64 long_ns;
	u32 nr;
	u64 units;
	u64 mate_units;
	u64 took_ns;
	u64 least_ns;
	u64 start_ns;
	u64 last_ns;
	u64 foreign_ns16;
};

/**
 * struct sutro_amplification - work of writes that the table of costs does not have
 *				(sutro-amplification.c)
 * @elapsed_ns16: time of busy windows, decaying, in 1/16 ns
 * @others_ns16: charges of all but writes in them
 * @writes_ns16: charges of writes by the table
 * @times:	charge of a write in 1/SUTRO_UNIT of its entry of the table, 0 if it is its entry
 * @has_cache:	the drive has completed a write that its cache may have taken
 */
struct sutro_amplification {
	u64 elapsed_ns16;
	u64 others_ns16;
	u64 writes_ns16;
	u32 times;
	bool has_cache;
};

/**
 * struct sutro_change - does the device still work as fast as it did? (sutro-change.c)
 * @recent:	sums over the last busy windows, decaying
 * @before:	the same over more windows
 * @elapsed_us:	their time
 * @cost_us:	their charges
 * @nr:		windows since the device changed last, or a class had its first result
 * @seen:	it has changed, and probes have not begun to measure it again
 */
struct sutro_change {
	struct sutro_change_sums {
		u64 elapsed_us;
		u64 cost_us;
	} recent, before;
	u32 nr;
	bool seen;
};

/**
 * struct sutro_device - measured costs and state of a leaf
 * @rotational:	one actuator does all the work
 * @last_completion_ns: time of the last completion
 * @last_flush_ns: time when the last flush was over
 * @flushes:	requests that wait for a flush
 * @flush_ns:	cost of flushes that is left for them
 * @destage:	charges for data in the cache of a rotational device
 * @costs:	cost by class, where it is a property of the device (not rotational)
 * @most_ns16:	the most that a class in @costs.bounded costs
 * @prior:	costs from before, in 1/16 ns; @prior.waits has those that are not charged yet
 * @amplification: work of writes that @costs does not have
 * @change:	does it still work as fast as it did?
 * @latency_ns:	latency of a request on a device with little to do, less its cost, but not of
 *		a write that the cache of the device takes
 * @cache_latency_ns: the same of such a write
 * @unsaturated: set by the caller when it had nothing to send
 * @idle:	set by the caller when nothing was at the device
 * @window:	completions since @window.start_ns
 * @probing:	a probe is going on: windows are not evaluated
 * @unseen:	requests complete that are not counted here: neither are they
 * @meter:	its meter
 * @done:	requests of each class that left the device, ever
 * @done_bytes:	bytes of all reads and writes that it has completed
 */
struct sutro_device {
	bool rotational;
	u64 last_completion_ns;
	u64 last_flush_ns;
	u32 flushes;
	u64 flush_ns;
	struct sutro_destage destage;
	struct sutro_costs costs;
	u64 most_ns16[SUTRO_CLASSES];
	struct {
		u64 ns16[SUTRO_READ_WRITE_CLASSES];
		u32 waits;
	} prior;
	struct sutro_amplification amplification;
	struct sutro_change change;
	u64 latency_ns;
	u64 cache_latency_ns;
	bool unsaturated;
	bool idle;
	struct {
		u64 start_ns;
		u64 cost_ns16;
		u64 latency_of_ns[SUTRO_CLASSES];
		u32 nr;
		u32 nr_of[SUTRO_CLASSES];
		u64 units_of[SUTRO_CLASSES];
	} window;
	bool probing;
	bool unseen;
	struct sutro_meter meter;
	u32 done[SUTRO_CLASSES];
	u64 done_bytes;
};

/**
 * struct sutro_sample - one completed request
 * @class:	from sutro_cost_class()
 * @bytes:	its size
 * @start_ns:	when the driver began with it, 0 if it did not
 * @now_ns:	when it completed
 * @shallow:	no more work than its own was at the device when it was sent
 * @caches:	a write that the cache of the device may take
 * @through:	a write that has to wait for the medium although there is a cache
 * @seeks:	its group seeks
 */
struct sutro_sample {
	unsigned int class;
	u32 bytes;
	u64 start_ns;
	u64 now_ns;
	bool shallow;
	bool caches;
	bool through;
	bool seeks;
};

static inline enum sutro_op sutro_cost_op(unsigned int class)
{
	return class / SUTRO_SIZES;
}

/* The size that a class stands for. */
static inline u32 sutro_cost_class_bytes(unsigned int class)
{
	return SUTRO_SIZE_MIN_BYTES << (class % SUTRO_SIZES);
}

/* The class of the same size in the other direction; @class is not of SUTRO_OTHER. */
static inline unsigned int sutro_cost_mate(unsigned int class)
{
	return (class + SUTRO_SIZES) % (SUTRO_OTHER * SUTRO_SIZES);
}

/*
 * The size of a request in units of its class.  The cost of large requests follows their
 * bytes.  A small one costs a page or two of flash, however little of them it uses.
 */
static inline u32 sutro_units(unsigned int class, u32 bytes)
{
	u32 nominal_bytes = sutro_cost_class_bytes(class);

	if (nominal_bytes < SUTRO_LINEAR_BYTES)
		return SUTRO_UNIT;
	return max(bytes / (nominal_bytes >> SUTRO_UNIT_SHIFT), 1U);
}

void sutro_device_init(struct sutro_device *device, bool rotational);
u64 sutro_cost_complete(struct sutro_device *device, struct sutro_costs *group,
			struct sutro_sample *sample);
void sutro_cost_flush_begin(struct sutro_device *device);
void sutro_cost_flush_cancel(struct sutro_device *device);
u64 sutro_cost_flush(struct sutro_device *device, u64 start_ns, u64 now_ns);
void sutro_cost_requeue(struct sutro_device *device, unsigned int class);

/**
 * sutro_cost_set - set the cost of a class
 * @costs:	the table
 * @class:	from sutro_cost_class()
 * @ns16:	in 1/16 ns
 */
static inline void sutro_cost_set(struct sutro_costs *costs, unsigned int class,
				  u64 ns16)
{
	costs->ns16[class] = max(ns16, 1ULL);
	costs->known |= BIT(class);
}

/**
 * sutro_cost_direction - the classes of a class's direction
 * @class:	from sutro_cost_class()
 *
 * Return: a bit for each of them.
 */
static inline u32 sutro_cost_direction(unsigned int class)
{
	return GENMASK(SUTRO_SIZES - 1, 0) << (class - class % SUTRO_SIZES);
}

/**
 * sutro_cost_clear - drop the costs of some classes
 * @costs:	the table
 * @classes:	a bit for each of them; others than reads and writes are kept
 */
static inline void sutro_cost_clear(struct sutro_costs *costs, u32 classes)
{
	unsigned int i;

	for (i = 0; i < SUTRO_READ_WRITE_CLASSES; i++) {
		if (!(classes & BIT(i)))
			continue;
		costs->ns16[i] = 0;
		costs->known &= ~BIT(i);
	}
}

bool sutro_cost_is_by_bytes(const struct sutro_costs *costs,
			    unsigned int class);
void sutro_cost_measured(struct sutro_device *device, unsigned int class,
			 u64 ns16, u64 most_ns16);

/* sutro-prior.c */
void sutro_prior_judge(struct sutro_device *device, unsigned int class,
		       u64 ns16, u64 most_ns16);
void sutro_prior_check(struct sutro_device *device, u64 elapsed_ns, bool busy);

/* sutro-estimate.c */
u64 sutro_by_bytes_of_ns16(const struct sutro_costs *costs, unsigned int class,
			   u32 among);
u64 sutro_by_bytes_ns16(const struct sutro_costs *costs, unsigned int class);
u64 sutro_cost_ns16(const struct sutro_costs *costs, bool rotational,
		    unsigned int class);
bool sutro_cost_is_proportional(const struct sutro_costs *costs,
				unsigned int class, u32 among, u64 ns16);
u64 sutro_cost_at_once16(const struct sutro_device *device, unsigned int class);
u64 sutro_request_ns16(const struct sutro_device *device, unsigned int class,
		       u32 bytes);
u64 sutro_cost_class_ns(const struct sutro_device *device, unsigned int class);
u64 sutro_cost_estimate(const struct sutro_device *device,
			const struct sutro_costs *group, unsigned int class,
			u32 bytes);

/* sutro-change.c */
void sutro_change_learn(struct sutro_device *device, u64 elapsed_us);

/* sutro-amplification.c */
void sutro_amplification_learn(struct sutro_device *device, u64 elapsed_ns16);

static inline u64
sutro_amplified_ns16(const struct sutro_amplification *amplification,
		     u64 writes_ns16)
{
	return amplification->times
		       ? writes_ns16 * amplification->times >> SUTRO_UNIT_SHIFT
		       : writes_ns16;
}

/* sutro-meter.c */
void sutro_meter_complete(struct sutro_meter *meter,
			  const struct sutro_sample *sample, u64 cost_ns16);
u64 sutro_meter_ns16(const struct sutro_device *device);
bool sutro_meter_is_pair(const struct sutro_device *device);
u32 sutro_meter_depth(const struct sutro_device *device);
u32 sutro_meter_units(const struct sutro_device *device);
bool sutro_meter_is_enough(const struct sutro_device *device, u32 least);
bool sutro_meter_is_slow(const struct sutro_device *device);
u64 sutro_meter_took_ns(const struct sutro_device *device);
bool sutro_meter_waits(const struct sutro_device *device, u64 least_ns);
bool sutro_meter_fills(const struct sutro_device *device, u32 depth);

/**
 * sutro_cost_class - the class of a request
 * @op:		its operation
 * @bytes:	its size
 *
 * Return: an index below SUTRO_CLASSES.
 */
static inline unsigned int sutro_cost_class(enum sutro_op op, u32 bytes)
{
	unsigned int size = 0;

	if (op != SUTRO_OTHER && bytes > SUTRO_SIZE_MIN_BYTES)
		size = min(ilog2((bytes - 1) / SUTRO_SIZE_MIN_BYTES) + 1,
			   SUTRO_SIZES - 1);
	return op * SUTRO_SIZES + size;
}

/**
 * sutro_cost_latency_ns - latency of a request on a device with little to do, less its cost
 * @device:	the leaf
 *
 * Return: of requests that its cache does not take, else of writes that it takes, in ns; 0 if
 * not known yet.
 */
static inline u64 sutro_cost_latency_ns(const struct sutro_device *device)
{
	return READ_ONCE(device->latency_ns)
		       ?: READ_ONCE(device->cache_latency_ns);
}

/**
 * sutro_cost_busy_ns - device time in flight that keeps the device busy without a pause
 * @device:	the leaf
 *
 * A saturated device completes in a latency's time as much work as it has in
 * flight (Little's law).  The time that counts is that in which a request uses no
 * resource that others could: its latency when few are there, less its cost.  Almost
 * three times that, because some parts of the device are always without work.
 *
 * Return: device time in ns, 0 if not known yet.
 */
static inline u64 sutro_cost_busy_ns(const struct sutro_device *device)
{
	return sutro_cost_latency_ns(device) * 11 / 4;
}

/**
 * sutro_cost_depth_ns - device time in flight beyond which requests wait here
 * @device:	the leaf
 *
 * The first requests are sent two at a time (SUTRO_DEPTH_MIN), to learn the latency.  With
 * more, each would meet others, and show how long it waits for them.
 *
 * Return: device time in ns, 0 until the latency is known.
 */
static inline u64 sutro_cost_depth_ns(const struct sutro_device *device)
{
	u64 busy_ns = sutro_cost_busy_ns(device);

	if (!busy_ns && !device->rotational)
		return 0;
	return clamp(busy_ns, SUTRO_DEPTH_MIN_NS, SUTRO_DEPTH_MAX_NS);
}

#endif /* SUTRO_COST_H */
