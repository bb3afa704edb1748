// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the cost of a class by the results of its probes (sutro-probe.c).
 *
 * The cost is the mean of the last 8 results of 20 s, if they agree within 25 %.
 * If not, the device has a write cache, or collects garbage: then writes cost as much as
 * the second largest result, because the cache is fast only until it is full, and reads
 * the median, because reads after writes pay for them: a group that is the only one with
 * such requests cannot make them cheap by a few probes with blocks that hold no data.
 *
 * Where there never were enough requests to saturate the device, only the results
 * with the most in flight count, and even they are too high: the device could have
 * worked on more.  The last step of the ramp shows by how much: after a doubling that halves the
 * cost, the next one may halve it again; after one that changes it little, the next one changes it
 * less.  Half of the last gain is subtracted.  If that is an eighth or less, the cost is known.
 *
 *	16 channels of 1 ms, where reads lie by chance.  4 KiB reads, 64 at most: at 16 in flight
 *	105 us, at 32 80 us, at 64 73 us.  The cost is 73 - (80 - 73) / 2 = 69 us; with any
 *	number of reads it would be 62 us.  By bytes it would be a sixteenth of the cost of 64 KiB,
 *	16 us, and their group had 0.43 of the device instead of 0.17.
 *
 * Otherwise, of a size the device works on as many as of any larger one, or more, and windows
 * of completions (sutro-cost.c) find the number, because they keep the charges in
 * line with elapsed time.  A probe then only shows how long a request took:
 *
 *	a disk takes 128 requests, and 1 ms for each.  8 reads in flight: 125 us for
 *	each, so they took 1 ms.  Charged so, twenty at a time would seem to be all
 *	that the disk can do.  But twenty complete in 1 ms, so they cost 50 us, more are
 *	sent, and so on until no more come, or the disk is full: 8 us.  Writes, probed
 *	then, took 2 ms: 16 us.
 *
 * Where reads of the size are known, or larger ones, from which their cost follows, it is
 * at least the number of these that the device serves at once (sutro-estimate.c).  Of a drive
 * without a cache, a write costs no less than such a read.
 *
 *	256 KiB cost 426 us.  With four writes in flight they seemed to cost 376 us, and a probe
 *	with eight had mostly reads.  With half of that, writes of 1 MiB had twice their share.
 */
#include "sutro-probe.h"

#define MS (1000 * 1000ULL)

/* Nearly enough requests: the cost is right within an eighth. */
#define SUTRO_PROBE_SPARE_FEW 18

/* Older results no longer count. */
#define SUTRO_PROBE_RESULT_NS (20000 * MS)

/* Number of requests in flight with which the valid results were measured. */
static u32 sutro_probe_depth(const struct sutro_probe_class *of, u64 now_ns)
{
	u32 depth = 0, i;

	for (i = 0; i < of->nr && of->unsaturated; i++)
		if (now_ns - of->result[i].at_ns <= SUTRO_PROBE_RESULT_NS)
			depth = max(depth, of->result[i].depth);
	return depth;
}

/* How many more could the device have worked on, by the results with the most in flight? */
static u32 sutro_probe_spare_least16(const struct sutro_probe_class *of,
				     u32 depth, u64 now_ns)
{
	u32 spare16 = SUTRO_PROBE_SPARE_MOST, i;

	for (i = 0; i < of->nr; i++)
		if (of->result[i].depth >= depth &&
		    now_ns - of->result[i].at_ns <= SUTRO_PROBE_RESULT_NS)
			spare16 = min(spare16, of->result[i].spare16);
	return spare16;
}

/* The cost by the results that had @depth or more requests in flight. */
static u64 sutro_probe_cost(const struct sutro_probe_class *of, bool write,
			    u32 depth, u64 now_ns)
{
	u64 sorted[SUTRO_PROBE_RESULTS], middle, sum = 0;
	unsigned int nr = 0, agree = 0, i, j;

	for (i = 0; i < of->nr; i++) {
		u64 ns16 = of->result[i].ns16;

		if (now_ns - of->result[i].at_ns > SUTRO_PROBE_RESULT_NS ||
		    of->result[i].depth < depth)
			continue;
		for (j = nr++; j && sorted[j - 1] > ns16; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = ns16;
	}
	/* At least one result counts: the newest one. */
	middle = write ? sorted[nr - min(nr, 2U)] : sorted[nr / 2];
	for (i = 0; i < nr; i++) {
		bool same = sorted[nr - 1] * 4 <= sorted[0] * 5;

		if (!same &&
		    (sorted[i] * 8 < middle * 7 || sorted[i] * 8 > middle * 9))
			continue;
		sum += sorted[i];
		agree++;
	}
	return div_u64(sum, agree);
}

/*
 * The cost of a class with too few requests: the time that each took, divided by the
 * known number that the device serves at once.  At least twice as many as there were:
 * had these been enough, the ramp would have found no gain in the last step.
 */
static u64 sutro_probe_part(const struct sutro_probe *probe,
			    const struct sutro_device *device, u64 took_ns16,
			    u32 depth, u32 spare16)
{
	const struct sutro_costs *costs = &device->costs;
	u64 parallel16 = max(sutro_cost_at_once16(device, probe->class),
			     (u64)spare16 * depth);
	unsigned int i;

	/* Of a larger size, the device serves no more at once. */
	for (i = 0; i < SUTRO_CLASSES; i++)
		if (costs->bounded & BIT(i) &&
		    i % SUTRO_SIZES >= probe->class % SUTRO_SIZES)
			parallel16 = max(parallel16,
					 div64_u64(probe->of[i].took_ns16 << 4,
						   costs->ns16[i]));
	return div64_u64(took_ns16 << 4, parallel16);
}

/*
 * The least that a request of a class costs: a write as much as a read of its size, where that
 * was measured and the drive has no cache; else 0.
 */
static u64 sutro_probe_least_ns16(const struct sutro_device *device,
				  unsigned int class)
{
	const struct sutro_costs *costs = &device->costs;
	unsigned int read = class % SUTRO_SIZES;

	if (sutro_cost_op(class) != SUTRO_WRITE ||
	    device->amplification.has_cache ||
	    !(costs->measured & ~costs->bounded & BIT(read)))
		return 0;
	return costs->ns16[read];
}

/**
 * sutro_probe_learn - a probe has a result: the cost of its class
 * @probe:	the probe, with the result among those of the class
 * @device:	state of the leaf
 * @now_ns:	the time
 */
void sutro_probe_learn(struct sutro_probe *probe, struct sutro_device *device,
		       u64 now_ns)
{
	bool is_write = sutro_cost_op(probe->class) == SUTRO_WRITE;
	struct sutro_probe_class *of = &probe->of[probe->class];
	u32 depth = sutro_probe_depth(of, now_ns);
	u64 ns16 = sutro_probe_cost(of, is_write, depth, now_ns);
	u32 spare16 = sutro_probe_spare_least16(of, depth, now_ns);
	bool bounded = of->unsaturated && spare16 > SUTRO_PROBE_SPARE_FEW;
	u64 most_ns16 = ns16;

	if (of->unsaturated)
		of->took_ns16 = ns16 * depth;
	if (of->unsaturated && !bounded)
		ns16 = div_u64(ns16 * SUTRO_PROBE_SPARE_NONE, spare16);
	if (bounded) {
		ns16 = sutro_probe_part(probe, device, of->took_ns16, depth,
					spare16);
		ns16 = max(ns16, sutro_probe_least_ns16(device, probe->class));
		ns16 = min(ns16, most_ns16);
	}
	sutro_cost_measured(device, probe->class, ns16, bounded);
	if (of->paired)
		sutro_cost_measured(device, sutro_cost_mate(probe->class), ns16,
				    bounded);
}
