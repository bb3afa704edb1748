// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: which class of requests is probed (sutro-probe.c), and when.
 *
 * A class that is due is probed while two classes are in use.  At a device with a long latency
 * (SUTRO_PROBE_FAR_NS), it is also probed while two groups of one weight have queued requests of
 * it, to find its depth.  A class is in use in each of these cases:
 *
 *  - The newest request that a group has queued is of the class.
 *  - In this quarter of a second, 64 requests of it were sent, or 8 if these are a 32nd of all:
 *    fewer are merged by chance.
 *  - In the last quarter of a second, 64 requests of it were sent, or a 32nd of the time was spent
 *    on them: requests in order wait as one large request, and none waits while that is at the
 *    device.
 *
 *	Two groups read 16 KiB at random, 7000 times in a quarter of a second.  If two are merged
 *	thirty times, a probe of each size would have nothing to compare.  Beside writes of 1 MiB,
 *	15 reads of 4 KiB in that time are a fifth of all requests: both are measured.
 *
 * Classes that were never measured come first, the cheapest of them first: its probe is short.
 * The pause between two probes of a class is doubled, up to 4 s, when the result was within 6 % of
 * the expectation, and halved, down to 125 ms, when it was not.  Between any two probes of known
 * classes at least 49 times the length of the last one passes, so that they take 2 % of the time;
 * 9 times when there is but one result yet, once when there is none, unless a probe of the class
 * has failed.  While groups are protected (sutro-protect.c), 256 times the length of the last
 * probe passes, for it disturbs them, and none takes longer than 50 ms.  A guess of a cost
 * disturbs more: before the first probe of a class, 32 times the length passes, unless time is
 * reserved (sutro-reserve.c).  A class that has not enough requests is given up for 125 ms, then
 * twice that, and so on.  For 16 s after the device has changed, and after a result that is far
 * from the cost (sutro-result.c), 9 times the length of the last probe passes: probes take up to
 * a tenth of the time then.
 *
 * Large requests take long to measure, and a group of little weight pays for some seconds for
 * those that it gives.  Once one large class of a direction is known, the cost of the others
 * follows from their bytes well enough (sutro-estimate.c): they wait for their turn as known
 * ones, and no group gives more for it than it is entitled to in half a second
 * (sutro-peer.c).  If that is too little, the class is given up for a second, then twice that, and
 * so on, up to a minute.
 *
 *	A drive of 100 MB/s, 4 groups.  64 KiB reads cost 0.63 ms.  A group of share 0.05 reads
 *	1 MiB, in 10 ms each: a probe takes 290 ms, which it would pay back for 6 s without any
 *	service.  4 * 0.63 ms are charged for 256 KiB, which is right within 2 %.
 *
 * When the device has changed (sutro-change.c), all classes are due, and each is taken for one with
 * a single result.  Its depth is looked for again.  Beside protected groups, the first probe of a
 * class does that after 9 times the length of the last one, too: wrong charges disturb these groups
 * more.  The next ones are as before, with the depth that is known, for a ramp takes too long.
 *
 * Until a class has a result after the change, for 16 s at most, its cost counts as a guess, as
 * before the first probe (sutro-trial.c, sutro-slices.c).
 *
 * All requests of a group that is charged too little may be at the device.  So after a change, a
 * class is also due while half as many of it are there as it needs.
 *
 *	a (weight 300) has 32 writes of 64 KiB in flight, b (100) as many reads.  The device becomes
 *	four times slower.  A probe shows that for reads, and a is charged a quarter of its time:
 *	none of its writes waits.  Without this, no probe measures them, and a has 0.92.
 *
 * The depth with which a class saturates the device is not only that of its probes: it is kept in
 * flight (sutro-select.c), if it is more than the latency of the device needs.  With a cache, it
 * shows nothing.  Unless the groups of the highest level weigh the same, a favoured group with few
 * requests would wait for the requests in flight.  So each request of such a group that finds none
 * of its own queued halves the part of the depth that exceeds the latency, and 4.3 s without one
 * restore it (sutro_core_wide()).  Groups with a backlog have all of it, and beside one with a
 * request at a time there is next to none.
 *
 * The depth counts requests as large as those of the probe: one of 1 MiB is four of the largest
 * class.  Where weights are unequal or the device is near, it counts as one, and the latency
 * decides.
 *
 *	Reads of 64 KiB, 64 channels of 20 ms: each waits for four of these, taken at random, and
 *	64 such reads keep 0.8 of them busy.  By the latency, 32 ms of device time would be in
 *	flight, which are 25 reads.  Two groups of one weight had 0.35 of the throughput without a
 *	scheduler, and 0.9 with the depth that the ramp ends with.
 *
 *	32 channels with reads of 0.55 ms and writes of 2.3 ms, weights 262 and 112, 200 requests
 *	each.  The latency is that of reads, and 1.5 ms of device time are in flight.  Writes need
 *	four times as much to keep the channels busy: both had 0.73 of the throughput without a
 *	scheduler, and have all of it now.
 */
#include "sutro-probe.h"

#define MS (1000 * 1000ULL)

/* Pause between probes while groups are protected, in lengths of the last one. */
#define SUTRO_PROBE_RARE 256
/* The same before the first probe of a class, unless time is reserved. */
#define SUTRO_PROBE_RARE_FIRST 32
/*
 * How often the classes in use are determined: by their number, or by their part of the requests
 * or of the time.
 */
#define SUTRO_PROBE_MARK_NS (250 * MS)
#define SUTRO_PROBE_MANY 64
#define SUTRO_PROBE_MUCH 32
#define SUTRO_PROBE_CHECK_NS (10 * MS)
/* A device is far if it has no pause with more than this in flight: 0.73 ms of latency. */
#define SUTRO_PROBE_FAR_NS (2 * MS)
/* After a change, a class is expected to have a result within this time. */
#define SUTRO_PROBE_OLD_NS (16000 * MS)
/* As many requests are at the device in any case: SUTRO_DEPTH_MIN of sutro-core.h. */
#define SUTRO_PROBE_PAIR 2
/* The most device time that is kept in flight because of the depths of probes. */
#define SUTRO_PROBE_DEPTH_NS (128 * MS)

/*
 * Is the cost of a class a guess: not known from before (sutro-prior.c), nor by the bytes of a
 * measured one?
 */
static bool sutro_probe_is_guess(const struct sutro_probe *probe,
				 const struct sutro_device *device,
				 unsigned int class)
{
	const struct sutro_costs *costs = &device->costs;
	/* A probe of another class has shown that the costs from before are right. */
	bool known = costs->measured && costs->prior & BIT(class);

	return !probe->of[class].probes && !known &&
	       !sutro_cost_is_by_bytes(costs, class);
}

/**
 * sutro_probe_is_by_bytes - does the cost of a class follow from the bytes of a measured one?
 * @probe:	the leaf's probes
 * @device:	state of the leaf
 * @class:	the class
 *
 * Return: false if it was measured itself.
 */
bool sutro_probe_is_by_bytes(const struct sutro_probe *probe,
			     const struct sutro_device *device,
			     unsigned int class)
{
	return !probe->of[class].probes &&
	       sutro_cost_is_by_bytes(&device->costs, class);
}

/* Is it one that no probe has tried to measure? */
static bool sutro_probe_is_untried(const struct sutro_probe *probe,
				   const struct sutro_device *device,
				   unsigned int class)
{
	return sutro_probe_is_guess(probe, device, class) &&
	       !probe->of[class].failures;
}

/*
 * Is the cost of a class from before a change of the device?  A class that has no result for long
 * may never have one.
 */
static bool sutro_probe_is_old(const struct sutro_probe *probe,
			       unsigned int class, u64 now_ns)
{
	const struct sutro_probe_class *of = &probe->of[class];

	return of->changed_ns && !of->nr &&
	       now_ns - of->changed_ns < SUTRO_PROBE_OLD_NS;
}

/* The least time after the last probe, as a multiple of its length. */
static u64 sutro_probe_pause_ns(const struct sutro_probe *probe,
				const struct sutro_device *device,
				unsigned int class)
{
	const struct sutro_probe_class *of = &probe->of[class];
	bool first = sutro_probe_is_untried(probe, device, class);

	if (sutro_probe_is_rare(probe, class))
		return probe->lasted_ns * (first && !probe->reserved
						   ? SUTRO_PROBE_RARE_FIRST
						   : SUTRO_PROBE_RARE);
	/* The first probe of a class comes soon, unless one has failed. */
	if (first)
		return probe->lasted_ns;
	return probe->lasted_ns *
	       (of->probes == 1 || of->differs || of->changed_ns ? 9 : 49);
}

/* Are there requests of the class?  After a change of the device, those in flight count, too. */
static bool sutro_probe_has_requests(const struct sutro_probe *probe,
				     const struct sutro_device *device,
				     unsigned int class)
{
	const struct sutro_probe_class *of = &probe->of[class];

	return !list_empty(&probe->peers[class]) ||
	       (of->changed_ns &&
		2 * (probe->sent[class] - device->done[class]) >= of->depth);
}

static bool sutro_probe_is_due(const struct sutro_probe *probe,
			       const struct sutro_device *device,
			       unsigned int class, u64 now_ns)
{
	const struct sutro_probe_class *of = &probe->of[class];

	return sutro_probe_has_requests(probe, device, class) &&
	       !sutro_before(now_ns, of->due_ns) &&
	       now_ns - probe->end_ns >=
		       sutro_probe_pause_ns(probe, device, class);
}

/* Is class @a to be probed before class @b? */
static bool sutro_probe_precedes(const struct sutro_probe *probe,
				 const struct sutro_device *device,
				 unsigned int a, unsigned int b)
{
	bool is_guess = sutro_probe_is_guess(probe, device, a);

	if (is_guess != sutro_probe_is_guess(probe, device, b))
		return is_guess;
	if (is_guess)
		return sutro_cost_class_ns(device, a) <
		       sutro_cost_class_ns(device, b);
	return sutro_before(probe->of[a].due_ns, probe->of[b].due_ns);
}

/*
 * Is the depth of a class needed, though its cost need not be compared?  It is where several groups
 * of equal weight have queued requests of it, and the device is far.
 */
static bool sutro_probe_needs_depth(const struct sutro_probe *probe,
				    const struct sutro_device *device,
				    unsigned int class)
{
	return probe->equal && !probe->rare &&
	       sutro_cost_busy_ns(device) > SUTRO_PROBE_FAR_NS &&
	       !list_empty(&probe->peers[class]) &&
	       !list_is_singular(&probe->peers[class]);
}

/*
 * Does the device need several requests of a class at once, however large they are?  Elsewhere two
 * of 1 MiB keep it busy, and small requests of other groups would wait for more of them.
 */
static bool sutro_probe_is_wide(const struct sutro_probe *probe,
				const struct sutro_device *device,
				unsigned int class)
{
	return probe->equal && probe->of[class].depth > SUTRO_PROBE_PAIR &&
	       sutro_cost_busy_ns(device) > SUTRO_PROBE_FAR_NS;
}

/* From time to time, determine the classes in use. */
static void sutro_probe_mark(struct sutro_probe *probe,
			     const struct sutro_device *device, u64 now_ns)
{
	u64 elapsed_ns = now_ns - probe->mark_ns;
	unsigned int i;

	if (elapsed_ns < SUTRO_PROBE_MARK_NS)
		return;
	probe->mark_ns = now_ns;
	probe->used = 0;
	for (i = 0; i < SUTRO_OTHER * SUTRO_SIZES; i++) {
		u32 nr = probe->sent[i] - probe->mark[i];
		u64 cost_ns = nr * sutro_cost_class_ns(device, i);

		probe->mark[i] = probe->sent[i];
		if (nr >= SUTRO_PROBE_MANY ||
		    cost_ns * SUTRO_PROBE_MUCH >= elapsed_ns)
			probe->used |= BIT(i);
	}
}

/* Is a class in use, of which so many of all requests were sent in this quarter of a second? */
static bool sutro_probe_is_much(u32 sent, u32 all)
{
	return sent >= SUTRO_PROBE_MANY ||
	       (sent >= SUTRO_PROBE_BUSY && sent * SUTRO_PROBE_MUCH >= all);
}

/*
 * Look which classes are in use, and set the device time that has to be in flight for them: the
 * depth that a ramp ended with.
 *
 * Return: false if there is nothing to measure: requests are of one class, and no depth is needed.
 */
static bool sutro_probe_count(struct sutro_probe *probe,
			      const struct sutro_device *device)
{
	bool needs_depth = false;
	unsigned int nr = 0, i;
	u64 needs_ns;
	u32 all = 0;

	for (i = 0; i < SUTRO_OTHER * SUTRO_SIZES; i++)
		all += probe->sent[i] - probe->mark[i];
	probe->depth_ns = 0;
	probe->depth_equal = probe->equal;
	for (i = 0; i < SUTRO_OTHER * SUTRO_SIZES; i++) {
		const struct sutro_probe_class *of = &probe->of[i];
		bool used = !list_empty(&probe->peers[i]) ||
			    probe->used & BIT(i) ||
			    sutro_probe_is_much(probe->sent[i] - probe->mark[i],
						all);

		if (!used)
			continue;
		nr++;
		needs_depth |= sutro_probe_needs_depth(probe, device, i);
		/* A cache takes any number of writes, which shows nothing. */
		if (!of->nr || device->amplification.has_cache)
			continue;
		needs_ns = of->depth * sutro_cost_class_ns(device, i);
		if (sutro_probe_is_wide(probe, device, i))
			needs_ns = needs_ns * of->units >> SUTRO_UNIT_SHIFT;
		probe->depth_ns = max(probe->depth_ns, needs_ns);
	}
	probe->depth_ns = min(probe->depth_ns, SUTRO_PROBE_DEPTH_NS);
	return needs_depth || nr > 1;
}

/* The device has changed: all classes are measured again, soon. */
static void sutro_probe_renew(struct sutro_probe *probe,
			      struct sutro_device *device, u64 now_ns)
{
	unsigned int i;

	device->change.seen = false;
	for (i = 0; i < SUTRO_OTHER * SUTRO_SIZES; i++) {
		struct sutro_probe_class *of = &probe->of[i];

		of->least_ns = 0;
		if (!of->nr)
			continue;
		of->nr = 0;
		of->next = 0;
		of->probes = 1;
		of->interval_ns = SUTRO_PROBE_INTERVAL_MIN_NS;
		of->changed_ns = now_ns;
		of->due_ns = now_ns;
	}
}

/**
 * sutro_probe_due - which class is to be probed now?
 * @probe:	the leaf's probes, none of which is active
 * @device:	state of the leaf
 * @now_ns:	the time
 *
 * Sets when to call this again, whether costs are guesses, and the time that has to be in flight.
 *
 * Return: the class, -1 if it is not time for any.
 */
int sutro_probe_due(struct sutro_probe *probe, struct sutro_device *device,
		    u64 now_ns)
{
	int best = -1, i;

	probe->check_ns = now_ns + SUTRO_PROBE_CHECK_NS;
	probe->guessing = false;
	if (device->change.seen)
		sutro_probe_renew(probe, device, now_ns);
	sutro_probe_mark(probe, device, now_ns);
	if (!sutro_probe_count(probe, device) || !probe->limit)
		return -1;
	for (i = 0; i < SUTRO_OTHER * SUTRO_SIZES; i++) {
		probe->guessing |= !list_empty(&probe->peers[i]) &&
				   (sutro_probe_is_untried(probe, device, i) ||
				    sutro_probe_is_old(probe, i, now_ns));
		if (sutro_probe_is_due(probe, device, i, now_ns) &&
		    (best < 0 || sutro_probe_precedes(probe, device, i, best)))
			best = i;
	}
	return best;
}
