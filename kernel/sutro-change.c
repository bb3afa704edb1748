// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a device that becomes slower or faster.
 *
 * A class that is well known is probed every four seconds or less often (sutro-probe.c), and
 * its cost is the mean of many results.  A drive whose cost of a write rises within a moment,
 * because its fast flash is full, would charge too little for as long.  But the sum of
 * charges shows at once that something has changed: the elapsed time of busy windows, divided
 * by their charges, depends on the drive, the mix of requests and the table of costs.  It
 * need not be 1, because parts of a drive work at the same time.
 *
 * So this quotient of the last 8 windows is compared with that of the last 128, both of sums
 * that decay.  If one is more than 4/3 of the other, all classes are probed again, as at
 * the beginning, and results from before no longer count.  Then 32 windows pass before the
 * next comparison, as after the first result of a class, which changes the table.  When only
 * the mix or another cost of the table has changed, probes are of no use, and a class that has
 * too few requests by now loses its result.
 *
 *	A reader and a writer of 16 KiB share a drive, and a second holds charges of
 *	1000 ms.  Then a write takes five times as long, and a second holds charges of
 *	400 ms.  The quotient rises from 1.0 to 2.5.  After five new windows, 0.51 of the
 *	decaying sum is from before, so that of the last ones is 1 / (0.51 + 0.49 * 0.4) =
 *	1.42.
 *
 * A drive with a write cache changes all the time, and writes pay for the time that no charge
 * explains (sutro-amplification.c): nothing is done there.
 */
#include <linux/bits.h>

#include "sutro-cost.h"

/* Sums are of about this many windows, as powers of two. */
#define SUTRO_RECENT_SHIFT 3
#define SUTRO_BEFORE_SHIFT 7
/* Windows before a comparison. */
#define SUTRO_CHANGE_LEAST 32

static void sutro_change_add(struct sutro_change_sums *sums, u64 elapsed_us,
			     u64 cost_us, unsigned int shift)
{
	sums->elapsed_us += elapsed_us - (sums->elapsed_us >> shift);
	sums->cost_us += cost_us - (sums->cost_us >> shift);
}

/* Is the quotient of @a more than 4/3 of that of @b? */
static bool sutro_change_exceeds(const struct sutro_change_sums *a,
				 const struct sutro_change_sums *b)
{
	return 3 * a->elapsed_us * b->cost_us > 4 * b->elapsed_us * a->cost_us;
}

/**
 * sutro_change_learn - a window in which the device was busy is over
 * @device:	the leaf, not rotational; its window is complete
 * @elapsed_us:	how long the window was
 */
void sutro_change_learn(struct sutro_device *device, u64 elapsed_us)
{
	struct sutro_change *change = &device->change;
	u64 cost_us =
		div_u64(device->window.cost_ns16 >> SUTRO_NS16_SHIFT, 1000);

	sutro_change_add(&change->recent, elapsed_us, cost_us,
			 SUTRO_RECENT_SHIFT);
	sutro_change_add(&change->before, elapsed_us, cost_us,
			 SUTRO_BEFORE_SHIFT);
	if (++change->nr < SUTRO_CHANGE_LEAST ||
	    device->amplification.has_cache)
		return;
	if (!sutro_change_exceeds(&change->recent, &change->before) &&
	    !sutro_change_exceeds(&change->before, &change->recent))
		return;
	*change = (struct sutro_change){ .seen = true };
}
