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
 * Of a drive without a cache, writes that become slower or faster have new results that agree.  If
 * the last two do, and are more than 1.5 times the cost or less than two thirds of it, older ones
 * no longer count.  After the first such result the next probe comes soon, and while a change is
 * recent, probes come after a quarter of the time since it at most: garbage collection begins and
 * ends.  Reads are left out: those of blocks that hold no data are cheap.
 *
 *	A write of 16 KiB costs 250 us while the drive collects garbage, for 2 s, and 119 us in the
 *	next 2 s, beside a reader of as many bytes.  The bus is the limit for both together, so no
 *	window shows it (sutro-change.c).  With the second largest result the writer had 0.32 of
 *	the device in each second half; with two results each time, 0.49 in all.
 *
 * Where there never were enough requests to saturate the device, only the results
 * with the most in flight count, and even they are too high: the device could have
 * worked on more.  The last step of the ramp shows by how much: after a doubling that halves the
 * cost, the next one may halve it again; after one that changes it little, the next one changes it
 * less.  Half of the last gain is subtracted.  If that is an eighth or less, the cost is known.
 * Where the last step added less than half as many, its gain is extrapolated to a doubling.
 *
 *	16 channels of 1 ms, where reads lie by chance.  4 KiB reads, 64 at most: at 16 in flight
 *	105 us, at 32 80 us, at 64 73 us.  The cost is 73 - (80 - 73) / 2 = 69 us; with any
 *	number of reads it would be 62 us.  By bytes it would be a sixteenth of the cost of 64 KiB,
 *	16 us, and their group had 0.43 of the device instead of 0.17.
 *
 *	4 KiB writes cost 156 us with four in flight.  The next step has five instead of eight:
 *	127 us.  Four more would gain four times as much: the device could work on 29 sixteenths.
 *
 * Otherwise the result is the most that such a request costs.  Where a larger class was measured
 * with enough requests, its bytes show the least (sutro-estimate.c), and that is charged: large
 * requests are bound by a bus in most devices, and then the small ones are.  Windows of
 * completions (sutro-cost.c) do not change it, for they would make it cheaper than its bytes are.
 *
 *	8 channels of 0.54 ms, a bus of 135 MB/s: writes of 16 KiB cost 119 us.  With four writes
 *	of 4 KiB in flight each takes 165 us.  The bytes would be a quarter of 119 us, a page half
 *	of it: 59 us.  A write costs 68 us.
 *
 * Where no larger one was measured, windows of completions find the number that the device works on
 * at once, because they keep the charges in line with elapsed time.  They begin with the cost that
 * the last step of the ramp makes likely, and never exceed the result.  Of a size the device works
 * on as many as of any larger one, or more:
 *
 *	a disk takes 128 requests, and 1 ms for each.  8 reads in flight: 125 us for
 *	each, so they took 1 ms.  But twenty complete in 1 ms, so they cost 50 us, more are
 *	sent, and so on until no more come, or the disk is full: 8 us.  Writes, probed
 *	then, took 2 ms: 16 us.
 *
 * A later probe with as few requests keeps what windows have found.
 *
 * Large requests cost their bytes, also with too few of them.  Where a class costs more by these
 * than by its own last step, and no more than its result, that is its cost.
 *
 *	A bus of 135 MB/s.  Two writes of 1 MiB take 15.4 ms, so each costs 7.7 ms at most.  Four
 *	reads of 16 KiB take 0.5 ms: 126 us each at most, and 63 us, if eight took no longer.  By
 *	the bytes of the writes, they cost 120 us.  Four of 4 KiB, 100 us at most, would cost
 *	30 us by them, which shows nothing.
 *
 * Where reads of the size are known, or larger ones, from which their cost follows, it is
 * at least the number of these that the device serves at once (sutro-estimate.c).  Of a drive
 * without a cache, a write costs no less than such a read.
 *
 *	256 KiB cost 426 us.  With four writes in flight they seemed to cost 376 us, and a probe
 *	with eight had mostly reads.  With half of that, writes of 1 MiB had twice their share.
 *
 * A probe bounds the latency of the device, which was measured with whatever came first: it is no
 * longer than the fastest request of the class took, less its cost.  Of large requests, the mean of
 * the first step counts, in which the fewest are in flight.  Other classes may have
 * SUTRO_PROBE_LATENCY times as much.
 *
 *	A bus of 135 MB/s.  A buffered scan of 1 MiB begins, two requests at once: they take 12 ms,
 *	half of which counts as latency.  So 16 ms of work may be in flight, and nothing waits.
 *	Eight reads of 8 KiB begin, and are probed: 0.48 ms at once, 0.06 ms each.  So the latency
 *	is 1.7 ms at most, requests of 1 MiB wait, and all groups have their shares.
 */
#include "sutro-probe.h"

#define MS (1000 * 1000ULL)

/* Nearly enough requests: the cost is right within an eighth. */
#define SUTRO_PROBE_SPARE_FEW 18

/* Requests of other classes have at most this many times the latency: writes, for example. */
#define SUTRO_PROBE_LATENCY 4

/* Older results no longer count. */
#define SUTRO_PROBE_RESULT_NS (20000 * MS)

/**
 * sutro_probe_spare16 - of how many requests could the device work at once, for each one in flight?
 * @probe:	the probe, of a class with too few requests
 * @ns16:	their cost
 * @depth:	how many there were
 *
 * Return: in 1/16: at most two, if twice as many as half of the depth halve the cost, and one if
 * they do not change it.
 */
u32 sutro_probe_spare16(const struct sutro_probe *probe, u64 ns16, u32 depth)
{
	u64 gain_ns16 = probe->half_ns16 - min(probe->half_ns16, ns16);
	u32 half = probe->depth / 2, more = depth - min(depth, half);

	if (!probe->half_ns16 || !more)
		return SUTRO_PROBE_SPARE_MOST;
	if (2 * more < half)
		gain_ns16 = div_u64(gain_ns16 * half, more);
	return clamp_t(u64,
		       div64_u64(16 * ns16, ns16 - min(gain_ns16, ns16) / 2),
		       SUTRO_PROBE_SPARE_NONE, SUTRO_PROBE_SPARE_MOST);
}

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
 * known number that the device serves at once, at least as many as there were.
 */
static u64 sutro_probe_part(const struct sutro_probe *probe,
			    const struct sutro_device *device,
			    unsigned int class, u64 took_ns16, u32 depth)
{
	const struct sutro_costs *costs = &device->costs;
	u64 parallel16 =
		max(sutro_cost_at_once16(device, class), 16ULL * depth);
	unsigned int i;

	/* The device serves at least as many requests of this size at once as of a larger one. */
	for (i = 0; i < SUTRO_CLASSES; i++)
		if (costs->bounded & BIT(i) &&
		    i % SUTRO_SIZES >= class % SUTRO_SIZES)
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

/*
 * The cost of a class by the bytes of a large one that had too few requests, too, and so may cost
 * less: 0 if that is more than the class costs at most.
 */
static u64 sutro_probe_bytes_ns16(const struct sutro_probe_class *of,
				  const struct sutro_costs *costs,
				  unsigned int class)
{
	unsigned int linear = ilog2(SUTRO_LINEAR_BYTES / SUTRO_SIZE_MIN_BYTES);
	u32 large = GENMASK(SUTRO_SIZES - 1, linear);
	u32 among = costs->bounded & (large | large << SUTRO_SIZES);
	u64 ns16 = sutro_by_bytes_of_ns16(costs, class, among & ~BIT(class));

	return ns16 <= of->most_ns16 ? ns16 : 0;
}

/* Estimate the cost of a class of which there never were enough requests. */
static void sutro_probe_bound(struct sutro_probe *probe,
			      struct sutro_device *device, unsigned int class)
{
	const struct sutro_probe_class *of = &probe->of[class];
	struct sutro_costs *costs = &device->costs;
	bool again = costs->bounded & BIT(class);
	u64 ns16;

	sutro_prior_judge(device, class, of->most_ns16, of->most_ns16);
	costs->measured &= ~BIT(class);
	costs->bounded &= ~BIT(class);
	if (sutro_cost_is_by_bytes(costs, class)) {
		sutro_cost_clear(costs, BIT(class));
		return;
	}
	ns16 = sutro_by_bytes_ns16(costs, class);
	if (ns16) {
		sutro_cost_measured(device, class, min(ns16, of->most_ns16), 0);
		return;
	}
	ns16 = sutro_probe_part(probe, device, class, of->took_ns16,
				of->most_depth);
	ns16 = min(ns16, of->likely_ns16);
	/* Windows have found the number since the last probe. */
	if (again)
		ns16 = max(ns16, costs->ns16[class]);
	ns16 = max(ns16, sutro_probe_bytes_ns16(of, costs, class));
	ns16 = max(ns16, sutro_probe_least_ns16(device, class));
	sutro_cost_measured(device, class, min(ns16, of->most_ns16),
			    of->most_ns16);
}

/* A class was measured: the cost of others may follow from its bytes. */
static void sutro_probe_bound_others(struct sutro_probe *probe,
				     struct sutro_device *device)
{
	unsigned int i;

	for (i = 0; i < SUTRO_OTHER * SUTRO_SIZES; i++)
		if (i != probe->class && probe->of[i].bounded &&
		    (sutro_cost_is_by_bytes(&device->costs, i) ||
		     sutro_by_bytes_ns16(&device->costs, i)))
			sutro_probe_bound(probe, device, i);
}

/* Is a result, or a cost, more than 1.5 times the other? */
static bool sutro_result_differs(u64 a_ns16, u64 b_ns16)
{
	return 2 * a_ns16 > 3 * b_ns16 || 2 * b_ns16 > 3 * a_ns16;
}

/*
 * @ns16: its cost if there were enough requests, or nearly.  Results of windows for other classes
 * of its direction rest on the costs that were measured: they are dropped when one of these
 * changes.
 */
static void sutro_probe_set(struct sutro_probe *probe,
			    struct sutro_device *device, unsigned int class,
			    u64 ns16)
{
	struct sutro_costs *costs = &device->costs;
	u64 before_ns16 = sutro_cost_ns16(costs, false, class);
	bool is_first = !(costs->measured & BIT(class));

	if (probe->of[class].bounded)
		sutro_probe_bound(probe, device, class);
	else
		sutro_cost_measured(device, class, ns16, 0);
	if (is_first ||
	    sutro_result_differs(before_ns16,
				 sutro_cost_ns16(costs, false, class)))
		sutro_cost_clear(costs,
				 sutro_cost_direction(class) &
					 ~(costs->measured | costs->prior));
}

/* If the last two results agree, and are far from the cost, the others are of the past. */
static void sutro_result_renew(struct sutro_probe_class *of, u64 cost_ns16,
			       u64 now_ns)
{
	u32 last = (of->next + SUTRO_PROBE_RESULTS - 1) % SUTRO_PROBE_RESULTS;
	u32 before = (of->next + SUTRO_PROBE_RESULTS - 2) % SUTRO_PROBE_RESULTS;
	bool differs = sutro_result_differs(of->result[last].ns16, cost_ns16);

	if (of->nr > 2 && differs && of->differs &&
	    !sutro_result_differs(of->result[last].ns16,
				  of->result[before].ns16)) {
		of->result[0] = of->result[before];
		of->result[1] = of->result[last];
		of->nr = 2;
		of->next = 2;
		of->changed_ns = now_ns;
		differs = false;
	}
	of->differs = differs && of->nr > 1;
}

/**
 * sutro_probe_stepped - note the times of a step that has ended
 * @probe:	the probe
 * @device:	the leaf, whose meter is done
 *
 * One fast request, such as a hit in the cache of a drive, counts for some probes only: the time
 * that is noted grows by an eighth with each.
 *
 * Return: time of the fastest request of the class in probes, in ns.  Large requests occupy all
 * channels, so these do not meet in one of them by chance: 0.
 */
u64 sutro_probe_stepped(struct sutro_probe *probe,
			const struct sutro_device *device)
{
	struct sutro_probe_class *of = &probe->of[probe->class];

	if (!probe->took_ns) {
		probe->took_ns = sutro_meter_took_ns(device);
		of->least_ns += of->least_ns / 8;
	}
	if (sutro_cost_class_bytes(probe->class) >= SUTRO_LINEAR_BYTES)
		return 0;
	if (!probe->mixed && device->meter.nr)
		of->least_ns =
			min(of->least_ns ?: U64_MAX, device->meter.least_ns);
	return of->least_ns;
}

/*
 * Bound the latency of the device, see above.  The cache of a device hides it.  Where it is not
 * known, small requests set it to the bound: the first read may wait for writes in a cache.
 *
 *	8 processes beside writes of 1 MiB that a cache takes.  A read of 8 KiB takes 0.38 ms in
 *	the first probe, and 3.9 ms later, when two requests are in flight.  With a latency of
 *	3.9 ms, all requests may be in flight, and the processes had 0.06 of the device.
 */
static void sutro_probe_bound_latency(const struct sutro_probe *probe,
				      struct sutro_device *device)
{
	const struct sutro_probe_class *of = &probe->of[probe->class];
	u64 cost_ns = sutro_cost_class_ns(device, probe->class) * of->units >>
		      SUTRO_UNIT_SHIFT;
	u64 less_ns = of->unsaturated ? 0 : cost_ns - cost_ns / 8;
	u64 took_ns = of->least_ns ?: probe->took_ns;
	u64 most_ns = SUTRO_PROBE_LATENCY * (took_ns - min(less_ns, took_ns));

	if (sutro_cost_op(probe->class) == SUTRO_WRITE &&
	    device->amplification.has_cache)
		return;
	if (most_ns &&
	    (device->latency_ns ? most_ns < device->latency_ns : of->least_ns))
		WRITE_ONCE(device->latency_ns, most_ns);
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
	unsigned int mate = sutro_cost_mate(probe->class);
	struct sutro_probe_class *of = &probe->of[probe->class];
	u32 depth, spare16;
	u64 ns16;

	if (is_write && !probe->mixed && !of->unsaturated &&
	    !device->amplification.has_cache)
		sutro_result_renew(of, device->costs.ns16[probe->class],
				   now_ns);
	depth = sutro_probe_depth(of, now_ns);
	ns16 = sutro_probe_cost(of, is_write, depth, now_ns);
	spare16 = sutro_probe_spare_least16(of, depth, now_ns);
	of->bounded = of->unsaturated && spare16 > SUTRO_PROBE_SPARE_FEW;
	of->took_ns16 = ns16 * depth;
	of->most_depth = depth;
	of->most_ns16 = ns16;
	if (of->unsaturated &&
	    (!of->bounded ||
	     sutro_cost_class_bytes(probe->class) < SUTRO_LINEAR_BYTES))
		ns16 = div_u64(ns16 * SUTRO_PROBE_SPARE_NONE, spare16);
	of->likely_ns16 = ns16;
	sutro_probe_set(probe, device, probe->class, ns16);
	if (of->paired) {
		probe->of[mate].bounded = of->bounded;
		probe->of[mate].took_ns16 = of->took_ns16;
		probe->of[mate].most_depth = of->most_depth;
		probe->of[mate].most_ns16 = of->most_ns16;
		probe->of[mate].likely_ns16 = of->likely_ns16;
		sutro_probe_set(probe, device, mate, ns16);
	}
	sutro_probe_bound_others(probe, device);
	sutro_probe_bound_latency(probe, device);
}
