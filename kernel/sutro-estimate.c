// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the estimated cost of a request.
 *
 * A class that was measured (sutro-cost.c, sutro-probe.c) costs the value of its entry in
 * the table.  On a rotational device a size that a group never had is put between those
 * that it had: more bytes behind the same seek.
 *
 * So does one that was measured before (sutro-prior.c).
 *
 * A class that was never measured is estimated between the nearest sizes of the
 * same direction that were; one that was never seen, from any known size of the
 * same direction, else of the other, else at 20 us + bytes / (500 MB/s).
 *
 * In proportion to a smaller size, that is the most which it costs.  Where windows of completions
 * have shown less, that counts, until a probe changes the costs behind it (sutro-result.c).
 *
 *	4 channels of 2.8 ms, a bus of 50 MB/s.  A write of 4 KiB costs 0.7 ms, 64 of them
 *	44 ms.  Writes of 256 KiB come one at a time and complete after 14 ms, while the
 *	others have too little of the time.  Windows show 5.2 ms, which the bus needs.
 *
 * A class of which there never were enough requests is charged by its bytes, where
 * a larger one of its kind, or of writes, was measured.  A higher cost does not follow
 * from their latency, for the device could have worked on more of them.
 *
 *	128 channels of 70 us, a bus of 3.4 GB/s, 16 KiB reads cost 4.8 us.  Eight 4 KiB
 *	reads in flight took 75 us each; divided by 16, 4.7 us.  By bytes: 1.2 us, which
 *	is what the bus needs for them.
 *
 * Flash writes pages of 16 KiB.  A smaller write costs a whole page where channels are the limit,
 * and its bytes where that is the bus.  In between, half of the bytes cost the root of a half.
 *
 *	8 channels of 0.54 ms, a bus of 135 MB/s: 16 KiB cost 119 us, 4 KiB half of that, 59 us,
 *	instead of 68.  By bytes, 30 us, a group with 4 KiB would have twice its share.
 */
#include <linux/bitops.h>

#include "sutro-cost.h"

/* Flash is written in pages of 16 KiB. */
#define SUTRO_PAGE_SIZE_CLASS 2U

static u64 sutro_prior_ns16(bool rotational, unsigned int class)
{
	u64 bytes = sutro_cost_class_bytes(class);

	if (rotational) /* 4 ms + bytes / (125 MB/s) */
		return (4 * 1000 * 1000 + bytes * 8) << SUTRO_NS16_SHIFT;
	return (20 * 1000 + bytes * 2) << SUTRO_NS16_SHIFT;
}

/*
 * Cost of a larger request than one of a known cost.  It is more bytes behind the
 * same seek on a rotational device, and in proportion at most elsewhere.
 */
static u64 sutro_larger_ns16(bool rotational, u64 ns16, int from, int to)
{
	if (!rotational)
		return ns16 << (to - from);
	return ns16 + sutro_prior_ns16(true, to) - sutro_prior_ns16(true, from);
}

/*
 * Cost of a class from those of the same kind in @known that are nearest in size,
 * or 0.  A smaller request costs no more.
 */
static u64 sutro_nearest_ns16(const struct sutro_costs *costs, bool rotational,
			      u32 known, int op, int size)
{
	const u64 *ns16 = &costs->ns16[op * SUTRO_SIZES];
	u32 of_kind = known >> (op * SUTRO_SIZES);
	u32 below = of_kind & GENMASK(size, 0);
	u32 above = of_kind & GENMASK(SUTRO_SIZES - 1, size);
	u64 below_ns16 = 0, above_ns16;

	if (below)
		below_ns16 = sutro_larger_ns16(rotational, ns16[__fls(below)],
					       __fls(below), size);
	if (!above)
		return below_ns16;
	above_ns16 = ns16[__ffs(above)];
	if (below)
		return min(below_ns16, above_ns16);
	return rotational ? above_ns16
			  : max(above_ns16 >> (__ffs(above) - size), 1ULL);
}

/* The part of a larger request's cost that a smaller one has, by their sizes. */
static u64 sutro_part_ns16(u64 ns16, bool write, unsigned int smaller,
			   unsigned int larger)
{
	unsigned int page = min(larger, SUTRO_PAGE_SIZE_CLASS);
	unsigned int steps = write && smaller < page ? page - smaller : 0;

	ns16 >>= larger - smaller - steps;
	/* Half of a page takes the root of a half of its time. */
	if (steps % 2)
		ns16 = ns16 * 181 >> 8;
	return ns16 >> (steps / 2);
}

/**
 * sutro_by_bytes_of_ns16 - the cost of a class by the bytes of another one
 * @costs:	the table
 * @class:	from sutro_cost_class()
 * @among:	a bit for each class of which the other one may be
 *
 * Return: the part of its bytes in the cost of the nearest larger class, in 1/16 ns, 0 if there is
 * none.  A read costs no more than a write.
 */
u64 sutro_by_bytes_of_ns16(const struct sutro_costs *costs, unsigned int class,
			   u32 among)
{
	unsigned int op, size = class % SUTRO_SIZES, larger;
	bool write = sutro_cost_op(class) == SUTRO_WRITE;
	u32 found;

	for (op = class / SUTRO_SIZES; op <= SUTRO_WRITE; op++) {
		found = among >> (op * SUTRO_SIZES) &
			GENMASK(SUTRO_SIZES - 1, size);
		if (!found)
			continue;
		larger = __ffs(found);
		return sutro_part_ns16(costs->ns16[op * SUTRO_SIZES + larger],
				       write, size, larger);
	}
	return 0;
}

/**
 * sutro_by_bytes_ns16 - the charge of a class with too few requests
 * @costs:	the table
 * @class:	from sutro_cost_class()
 *
 * Return: the part of its bytes in the cost of the nearest larger class that was measured with
 * enough requests, in 1/16 ns, 0 if there is none.
 */
u64 sutro_by_bytes_ns16(const struct sutro_costs *costs, unsigned int class)
{
	return sutro_by_bytes_of_ns16(costs, class,
				      costs->measured & ~costs->bounded);
}

/**
 * sutro_cost_is_by_bytes - does the cost of a class follow from another one's?
 * @costs:	the table
 * @class:	from sutro_cost_class()
 *
 * Return: true if both are large, of one direction, and the other one was measured with enough
 * requests.
 */
bool sutro_cost_is_by_bytes(const struct sutro_costs *costs, unsigned int class)
{
	unsigned int linear = ilog2(SUTRO_LINEAR_BYTES / SUTRO_SIZE_MIN_BYTES);
	u32 closed = costs->measured & ~costs->bounded & ~BIT(class);
	u32 large = (BIT(SUTRO_SIZES) - BIT(linear))
		    << (class - class % SUTRO_SIZES);

	return class % SUTRO_SIZES >= linear && closed & large;
}

/**
 * sutro_cost_is_proportional - does a large request cost as much for its bytes as another one?
 * @costs:	the table
 * @class:	from sutro_cost_class()
 * @among:	a bit for each class with which it is compared
 * @ns16:	its cost, in 1/16 ns
 *
 * Return: true if that is within 3 % of the cost of a class of at least SUTRO_LINEAR_BYTES, in
 * either direction, that was measured with enough requests: then a bus is the limit of both.
 */
bool sutro_cost_is_proportional(const struct sutro_costs *costs,
				unsigned int class, u32 among, u64 ns16)
{
	u32 closed = costs->measured & ~costs->bounded & among & ~BIT(class);
	u64 bytes = sutro_cost_class_bytes(class), other, other_ns16;
	unsigned int i;

	for (i = 0; i < SUTRO_OTHER * SUTRO_SIZES; i++) {
		other = sutro_cost_class_bytes(i);
		if (!(closed & BIT(i)) ||
		    min(bytes, other) < SUTRO_LINEAR_BYTES)
			continue;
		other_ns16 = costs->ns16[i];
		if (ns16 * other * 100 > other_ns16 * bytes * 97 &&
		    ns16 * other * 97 < other_ns16 * bytes * 100)
			return true;
	}
	return false;
}

/**
 * sutro_cost_at_once16 - how many requests of a class's size the device serves at once
 * @device:	the leaf
 * @class:	from sutro_cost_class(), not of SUTRO_OTHER
 *
 * It is the number of reads that fit in the time that one takes, by their cost and the latency
 * of the device (Little's law).
 *
 *	128 channels of 70 us, a bus of 3.4 GB/s: 64 KiB reads cost 19.2 us, so 16 KiB ones
 *	4.8 us, and 15.6 of these fit in 70 + 4.8 us.
 *
 * Return: in 1/16, at least 16; 16 if such reads, and larger ones, were not measured.
 */
u64 sutro_cost_at_once16(const struct sutro_device *device, unsigned int class)
{
	u64 read_ns16 =
		sutro_by_bytes_ns16(&device->costs, class % SUTRO_SIZES);
	u64 latency_ns16 = sutro_cost_latency_ns(device) << SUTRO_NS16_SHIFT;

	if (!read_ns16)
		return 16;
	return 16 + div64_u64(latency_ns16 << 4, read_ns16);
}

/*
 * Estimate the cost of a class: from measured classes of the same kind, or from its own table
 * entry if that is less; else from any entry of the same kind; else of the other kind, which
 * reflects the speed of the device.
 */
static u64 sutro_guess_ns16(const struct sutro_costs *costs, bool rotational,
			    unsigned int class)
{
	int op = class / SUTRO_SIZES, size = class % SUTRO_SIZES;
	int first = op == SUTRO_OTHER ? SUTRO_WRITE : SUTRO_READ;
	u32 known = costs->known;
	u64 ns16 = costs->ns16[class], limit_ns16 = 0;

	/* Nothing is known while all requests are of one class. */
	if (!known)
		return sutro_prior_ns16(rotational, class);
	if (costs->measured)
		limit_ns16 = sutro_nearest_ns16(costs, rotational,
						costs->measured, op, size);
	if (limit_ns16 && (!ns16 || ns16 > limit_ns16))
		ns16 = limit_ns16;
	limit_ns16 = rotational ? 0 : sutro_by_bytes_ns16(costs, class);
	if (limit_ns16 && (!ns16 || ns16 > limit_ns16))
		ns16 = limit_ns16;
	if (ns16)
		return ns16;
	ns16 = sutro_nearest_ns16(costs, rotational, known, op, size);
	if (!ns16)
		ns16 = sutro_nearest_ns16(costs, rotational, known, first,
					  size);
	if (!ns16)
		ns16 = sutro_nearest_ns16(costs, rotational, known,
					  SUTRO_WRITE - first, size);
	return ns16 ?: sutro_prior_ns16(rotational, class);
}

/**
 * sutro_cost_ns16 - cost of a request of a class's size
 * @costs:	the table
 * @rotational:	it is that of a group on a rotational device
 * @class:	from sutro_cost_class()
 *
 * Return: device time in 1/16 ns.
 */
u64 sutro_cost_ns16(const struct sutro_costs *costs, bool rotational,
		    unsigned int class)
{
	u64 ns16 = costs->ns16[class];

	if (ns16 &&
	    (!costs->measured || (costs->measured | costs->prior) & BIT(class)))
		return ns16;
	return sutro_guess_ns16(costs, rotational, class);
}

/**
 * sutro_request_ns16 - cost of a request where the table is the device's
 * @device:	the leaf, not rotational
 * @class:	from sutro_cost_class()
 * @bytes:	its size
 *
 * Return: device time in 1/16 ns.
 */
u64 sutro_request_ns16(const struct sutro_device *device, unsigned int class,
		       u32 bytes)
{
	u64 ns16 = sutro_cost_ns16(&device->costs, false, class);

	if (sutro_cost_op(class) == SUTRO_WRITE)
		ns16 = sutro_amplified_ns16(&device->amplification, ns16);
	ns16 = min(ns16, SUTRO_COST_MAX_NS << SUTRO_NS16_SHIFT);
	return ns16 * sutro_units(class, bytes) >> SUTRO_UNIT_SHIFT;
}

/**
 * sutro_cost_class_ns - cost of a request of a class's size
 * @device:	the leaf, not rotational
 * @class:	from sutro_cost_class()
 *
 * Return: device time in ns.
 */
u64 sutro_cost_class_ns(const struct sutro_device *device, unsigned int class)
{
	return sutro_cost_ns16(&device->costs, false, class) >>
	       SUTRO_NS16_SHIFT;
}

/**
 * sutro_cost_estimate - estimated cost of a request
 * @device:	the leaf
 * @group:	measured costs of the group's requests where the leaf is rotational, NULL if
 *		there are none
 * @class:	from sutro_cost_class()
 * @bytes:	its size
 *
 * Return: device time in ns.
 */
u64 sutro_cost_estimate(const struct sutro_device *device,
			const struct sutro_costs *group, unsigned int class,
			u32 bytes)
{
	u64 ns16;

	if (!device->rotational)
		ns16 = sutro_request_ns16(device, class, bytes);
	else if (group)
		ns16 = sutro_cost_ns16(group, true, class);
	else
		ns16 = sutro_prior_ns16(true, class);
	return ns16 >> SUTRO_NS16_SHIFT;
}
