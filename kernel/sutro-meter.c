// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: completions of one class, timed for a probe.
 *
 * sutro-probe.c arms the meter when only requests of the class are at the device.  It lets
 * some completions pass, then counts until there are enough of them.  The cost of a few
 * requests of others in this time is subtracted.  A group that thinks may leave the device idle
 * in between: the requests cost no more than the sum of the times that they took.
 *
 * It ends after a multiple of the requests that are in flight, because a device that works on
 * all of them at once completes them together.
 *
 *	Eight writes take 6.4 ms.  In 12.8 ms 16 complete, 0.8 ms for each.  The ninth of
 *	them is the first one after 10 ms: the same time divided by 9 would be 1.4 ms.
 *
 *	Writes of 32 KiB take 0.4 ms, and one comes each 25 ms: a write costs 0.4 ms at most.
 *
 * Others wait while it counts, so requests that take long are counted for a bounded time: it ends
 * with the first multiple after SUTRO_METER_MOST_NS.  While there are SUTRO_METER_SLOW_NS from one
 * to the next, only the first one is let pass: a bus or a queue has collected none of them.
 *
 *	A bus of 12 MB/s, writes of 1 MiB: 87 ms each, two in flight.  One is let pass and two are
 *	counted, in 262 ms.
 *
 * In a probe of both directions, requests of the class and of its mate are counted.  If the
 * cost of the mate was measured alone, its charges are subtracted.  If not, both cost the same:
 * a guess, but a group with this mix of them is charged what it uses.
 *
 *	20 reads and 12 writes take 6.8 ms.  Writes cost 0.4 ms: a read costs 0.1 ms.  If
 *	that is not known, each of the 32 costs 0.21 ms.
 */
#include "sutro-cost.h"

#define MS (1000 * 1000ULL)

#define SUTRO_METER_MOST_NS (100 * MS)
/* Of requests that take at least this long, fewer are let pass. */
#define SUTRO_METER_SLOW_NS (60 * MS)

/* The time after which a multiple is enough: requests that were sent together complete together. */
static u64 sutro_meter_most_ns(const struct sutro_meter *meter)
{
	return min(SUTRO_METER_ROUNDS * meter->long_ns,
		   max(meter->long_ns, SUTRO_METER_MOST_NS));
}

/* Count from this completion on. */
static void sutro_meter_begin(struct sutro_meter *meter, u64 now_ns)
{
	meter->nr = 0;
	meter->units = 0;
	meter->mate_units = 0;
	meter->took_ns = 0;
	meter->least_ns = U64_MAX;
	meter->foreign_ns16 = 0;
	meter->start_ns = now_ns;
	meter->last_ns = now_ns;
}

/* Is a completion let pass? */
static bool sutro_meter_passes(struct sutro_meter *meter, u64 now_ns)
{
	s64 gap_ns = now_ns - meter->last_ns;
	bool slow = gap_ns >= (s64)SUTRO_METER_SLOW_NS;

	if (meter->spared && !slow) {
		meter->skip = meter->spared;
		meter->spared = 0;
	}
	if (!meter->skip)
		return false;
	meter->skip--;
	if (slow) {
		meter->spared = meter->skip;
		meter->skip = 0;
	}
	sutro_meter_begin(meter, now_ns);
	return true;
}

/**
 * sutro_meter_complete - count a completion
 * @meter:	the meter
 * @sample:	the request
 * @cost_ns16:	its cost
 */
void sutro_meter_complete(struct sutro_meter *meter,
			  const struct sutro_sample *sample, u64 cost_ns16)
{
	u64 took_ns = sample->now_ns - sample->start_ns;
	u64 elapsed_ns;
	bool is_mate;

	if (!meter->armed || meter->done)
		return;
	is_mate = meter->mixed &&
		  sample->class == sutro_cost_mate(meter->class);
	if (sample->class != meter->class && !is_mate) {
		if (!meter->skip)
			meter->foreign_ns16 += cost_ns16;
		return;
	}
	if (sutro_meter_passes(meter, sample->now_ns))
		return;
	meter->nr++;
	if (is_mate)
		meter->mate_units += sutro_units(sample->class, sample->bytes);
	else
		meter->units += sutro_units(sample->class, sample->bytes);
	meter->took_ns += took_ns;
	meter->least_ns = min(meter->least_ns, max(took_ns, 1ULL));
	meter->last_ns = sample->now_ns;
	elapsed_ns = meter->last_ns - meter->start_ns;
	meter->done =
		meter->nr >= meter->enough ||
		(meter->nr % meter->round == 0 &&
		 ((meter->nr >= meter->few && elapsed_ns >= meter->long_ns) ||
		  elapsed_ns >= sutro_meter_most_ns(meter)));
}

/**
 * sutro_meter_ns16 - measured cost of the class
 * @device:	the leaf, whose meter is done
 *
 * Return: device time in 1/16 ns, 0 if others took more than half of the time, or with the
 * mate more than seven eighths, or if less than a quarter of the requests were of the class.
 */
u64 sutro_meter_ns16(const struct sutro_device *device)
{
	const struct sutro_meter *meter = &device->meter;
	unsigned int mate = sutro_cost_mate(meter->class);
	u64 elapsed_ns = meter->last_ns - meter->start_ns;
	/* Time in which no such request was at the device is no part of their cost. */
	u64 elapsed_ns16 = min(elapsed_ns, meter->took_ns) << SUTRO_NS16_SHIFT;
	u64 known_ns16 = meter->foreign_ns16, units = meter->units;

	if (known_ns16 > elapsed_ns16 / 2 || units < meter->mate_units / 3)
		return 0;
	if (meter->mate_is_known)
		known_ns16 +=
			meter->mate_units *
				sutro_cost_ns16(&device->costs, false, mate) >>
			SUTRO_UNIT_SHIFT;
	else
		units += meter->mate_units;
	if (known_ns16 > elapsed_ns16 / 8 * 7)
		return 0;
	return div64_u64((elapsed_ns16 - known_ns16) * SUTRO_UNIT, units);
}

/**
 * sutro_meter_is_pair - is the measured cost that of the mate, too?
 * @device:	the leaf, whose meter is done
 *
 * Return: true if its cost is not known, and at least a quarter of the requests were its.
 */
bool sutro_meter_is_pair(const struct sutro_device *device)
{
	const struct sutro_meter *meter = &device->meter;

	return meter->mixed && !meter->mate_is_known &&
	       meter->mate_units >= meter->units / 3;
}

/**
 * sutro_meter_depth - how many of the class were at the device?
 * @device:	the leaf, whose meter is done
 *
 * Return: their mean number (Little's law), at least 1.
 */
u32 sutro_meter_depth(const struct sutro_device *device)
{
	const struct sutro_meter *meter = &device->meter;
	u64 elapsed_ns = meter->last_ns - meter->start_ns;

	return max(div64_u64(meter->took_ns, max(elapsed_ns, 1ULL)), 1ULL);
}

/**
 * sutro_meter_units - how large were the requests?
 * @device:	the leaf, whose meter is done
 *
 * Return: their mean size in 1/SUTRO_UNIT of a request of the class.
 */
u32 sutro_meter_units(const struct sutro_device *device)
{
	const struct sutro_meter *meter = &device->meter;

	return div_u64(meter->units + meter->mate_units, max(meter->nr, 1U));
}

/**
 * sutro_meter_took_ns - how long did requests take?
 * @device:	the leaf, whose meter is done
 *
 * Return: the mean of those that were counted, in ns.
 */
u64 sutro_meter_took_ns(const struct sutro_device *device)
{
	const struct sutro_meter *meter = &device->meter;

	return div_u64(meter->took_ns, max(meter->nr, 1U));
}

/**
 * sutro_meter_waits - did requests wait within the device?
 * @device:	the leaf, whose meter is done
 * @least_ns:	time of the fastest request of the class in probes, 0 = not compared
 *
 * Return: true if their mean is at least twice the latency of the device, and 5/4 of @least_ns:
 * where requests are served one after another, five take 5/4 of the time of four.
 */
bool sutro_meter_waits(const struct sutro_device *device, u64 least_ns)
{
	const struct sutro_meter *meter = &device->meter;
	u64 latency_ns = sutro_cost_latency_ns(device);

	return meter->took_ns >=
	       max(2 * latency_ns, least_ns + least_ns / 4) * meter->nr;
}

/**
 * sutro_meter_fills - were there three quarters of a number of requests at the device?
 * @device:	the leaf, whose meter is done
 * @depth:	the number
 *
 * Return: true if their mean number was that, without rounding: of two, 1.9 are enough.
 */
bool sutro_meter_fills(const struct sutro_device *device, u32 depth)
{
	const struct sutro_meter *meter = &device->meter;
	u64 elapsed_ns = meter->last_ns - meter->start_ns;

	return meter->took_ns * 4 >= elapsed_ns * depth * 3;
}

/**
 * sutro_meter_is_slow - were others held back for long by each request?
 * @device:	the leaf, whose meter is done
 *
 * Return: true if one has completed each SUTRO_METER_SLOW_NS, or less often.
 */
bool sutro_meter_is_slow(const struct sutro_device *device)
{
	const struct sutro_meter *meter = &device->meter;

	return meter->last_ns - meter->start_ns >=
	       SUTRO_METER_SLOW_NS * meter->nr;
}

/**
 * sutro_meter_is_enough - have enough been counted, although not as many as were wanted?
 * @device:	the leaf
 * @least:	how many are enough, if that is a whole round
 *
 * Return: true if the meter counts, and has counted that many.
 */
bool sutro_meter_is_enough(const struct sutro_device *device, u32 least)
{
	const struct sutro_meter *meter = &device->meter;

	return meter->armed && meter->nr >= max(least, meter->round);
}
