// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: writes that cost more than a probe shows.
 *
 * A flash drive with a write cache completes a write before the flash has it, and one that
 * is nearly full moves older data for it (garbage collection, write amplification).  A
 * probe takes a few milliseconds and sees neither, for its writes go to the cache.  But
 * others see it: they wait, and in windows in which the device was busy the charges no
 * longer add up to the elapsed time.  A read leaves no work behind.  So what is missing
 * is the work of writes, and each is charged
 *
 *	(elapsed - charges of all but writes) / charges of writes by the table
 *
 * times its entry of the table.  The three are sums over the busy windows of the last half
 * second: a drive works on writes long after they have completed, in windows that have
 * none.  Where the table explains half of the time or more, nothing is added: the work of
 * bus and flash overlaps, and a table is never exact.  Nor is anything added where the drive
 * has no cache: its slow writes occupy a few channels, for which reads queue while other
 * channels idle.  That time is lost to all, and no charge of writes would explain it.
 *
 *	A drive reads 34 MB/s, 1.9 ms for 64 KiB, and is nearly full.  Its cache takes a
 *	write of 4 KiB in 0.12 ms, and the flash needs 3 ms for it, most of them for
 *	other data.  A reader and a writer of equal weights: with 0.12 ms, the reader has
 *	3 MB/s.  In half a second, 25 reads and 150 writes complete, charges of 48 and
 *	18 ms.  So a write costs (500 - 48) / 18 = 25 times 0.12 ms, and the reader has
 *	16 MB/s.
 */
#include "sutro-cost.h"

/* Sums decay to 1/e in this time. */
#define SUTRO_AMPLIFICATION_NS (500ULL * 1000 * 1000)
#define SUTRO_AMPLIFICATION_MAX 64

/* Add to a sum that decays. */
static void sutro_amplification_add(u64 *sum_ns16, u64 ns16, u64 elapsed_ns16)
{
	u64 elapsed_ns = elapsed_ns16 >> SUTRO_NS16_SHIFT;
	u64 left_ns = SUTRO_AMPLIFICATION_NS -
		      min(elapsed_ns, SUTRO_AMPLIFICATION_NS);
	u64 kept_ns = div64_u64((*sum_ns16 >> SUTRO_NS16_SHIFT) * left_ns,
				SUTRO_AMPLIFICATION_NS);

	*sum_ns16 = (kept_ns << SUTRO_NS16_SHIFT) + ns16;
}

/**
 * sutro_amplification_learn - a window in which the device was busy is over
 * @device:	the leaf, not rotational; its window is complete
 * @elapsed_ns16: how long the window was, in 1/16 ns
 */
void sutro_amplification_learn(struct sutro_device *device, u64 elapsed_ns16)
{
	struct sutro_amplification *sums = &device->amplification;
	u64 cost_ns16 = device->window.cost_ns16;
	u64 writes_ns16 = 0, missing_ns16;
	unsigned int i;

	if (!sums->has_cache)
		return;
	for (i = SUTRO_WRITE * SUTRO_SIZES; i < SUTRO_OTHER * SUTRO_SIZES; i++)
		writes_ns16 += device->window.units_of[i] *
			       sutro_cost_ns16(&device->costs, false, i);
	writes_ns16 >>= SUTRO_UNIT_SHIFT;
	cost_ns16 -= min(cost_ns16, sutro_amplified_ns16(sums, writes_ns16));

	sutro_amplification_add(&sums->elapsed_ns16, elapsed_ns16,
				elapsed_ns16);
	sutro_amplification_add(&sums->others_ns16, cost_ns16, elapsed_ns16);
	sutro_amplification_add(&sums->writes_ns16, writes_ns16, elapsed_ns16);

	missing_ns16 =
		sums->elapsed_ns16 - min(sums->elapsed_ns16, sums->others_ns16);
	if (sums->writes_ns16 * 2 >= missing_ns16)
		sums->times = 0;
	/* With hardly any writes, the quotient means nothing. */
	else if (sums->writes_ns16 * 1000 >= sums->elapsed_ns16)
		sums->times = min_t(u64, SUTRO_AMPLIFICATION_MAX * SUTRO_UNIT,
				    div64_u64(missing_ns16 << SUTRO_UNIT_SHIFT,
					      sums->writes_ns16));
}
