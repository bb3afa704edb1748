// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the cost of a class of requests on a device that serves many at once.
 *
 * Fair queueing keeps the mix of requests constant, and from a constant mix nothing can be learned
 * about its parts: every division of the elapsed time among them explains it.  Nor do latency or
 * the gap before a completion show it (sutro-cost.c).  But when for some milliseconds all requests
 * at the device are of one class, and as many as it can make use of, then the class costs
 *
 *	elapsed / completions
 *
 * by definition: the reciprocal of the rate that such requests reach alone.  That is a probe.  The
 * device stays full meanwhile, and a group that is served in advance is charged for it, so a probe
 * costs neither throughput nor shares; the others wait a few milliseconds longer.  sutro-peer.c
 * selects the groups that give requests for it.
 *
 * A probe of class k with depth d:
 *
 *  1. Only requests of k are sent, up to d in flight, while those of other
 *     classes complete, and a few of groups that wait for each request (sutro-guest.c).
 *  2. When nothing else of any weight is in flight, and no more than d, 2d completions of k are
 *     let pass, d where one costs more than SUTRO_PROBE_EXPENSIVE_NS, and one of slow ones
 *     (sutro-meter.c): those that a bus or a queue had collected would look too fast.
 *  3. 256 completions are timed, fewer when they take 10 ms, from one completion
 *     to another: a multiple of d, for a device that works on d at once completes them
 *     together, and at least 8 unless they take 80 ms.
 *
 * The depth that saturates the device is found by a ramp: 4, 8, 16 ... until doubling it makes
 * requests no more than 3 % cheaper, and they wait in the device (sutro_meter_waits()): of a few
 * requests some meet in one channel by chance, and look no cheaper.  Where the latency that is
 * known is wrong, doubling twice without a gain shows the same.  Large requests need 2 to 8,
 * and 32 of 1 MiB would take 100 ms to fill: from 64 KiB on, and where they cost more than 4 ms, a
 * ramp starts with 2.  With these costs, the lower one of the last two depths is kept.  So it is
 * where there are not enough requests for the last depth, but about a quarter more than at the one
 * before.  Every fourth probe ramps again, from half the depth.
 *
 *	A bus of 33.75 MB/s, writes of 1 MiB: 31 ms each.  Two are let pass and four are
 *	timed, 186 ms; four and four, 248 ms, are no cheaper.  So the next probe takes
 *	186 ms, where eight and eight would take 500 ms.
 *
 * A large request that costs as much as one of the other direction, or, if it is slow, for its
 * bytes as another large one, is bound by a bus: the ramp ends at once.
 *
 *	A group of share 0.05 writes 1 MiB, 7.6 ms each, as its neighbours' reads do.  With 2 in
 *	flight and 4 counted the probe takes 60 ms, which the group pays back for 1.2 s.  With 4 and
 *	4 more, it would be 3 s.
 *
 *	4 KiB reads, 16 channels of 80 us, a bus of 540 MB/s, 32 requests at most
 *	(tests/sim): at 4: 23.9 us, at 8: 13.1, at 16: 9.1, at 32: 7.4, which the bus needs.  This
 *	first probe, beside large requests, takes 16 ms, the next one at 32 2.4 ms.
 *
 * A driver may take fewer requests than there are tags: a SCSI disk has a depth of its own, and
 * tags may be shared with other disks.  If SUTRO_PROBE_PATIENCE times the depth have completed,
 * with requests waiting and never as many in flight, the most that were are the depth.
 *
 *	Three disks share 32 tags.  At a depth of 16 there are 10 in flight, and 64 completions
 *	later the ramp ends with 10.
 *
 * A task that reads and writes at random soon has requests of one direction only.  When a probe
 * has no more requests, those that were counted are its result if they are enough, and it goes on
 * at once with the other direction, of which as many wait.  While these are served, the task sends
 * more of the first one: each turn has more requests, and each ramp goes on where it ended.
 *
 *	16 reads and 16 writes of 4 KiB are in flight, 8 channels of 0.54 ms.  After 18 writes at
 *	a depth of 4, 165 us each, none is left.  50 reads follow, 78 us.  Then there are 54
 *	writes at a depth of 8, 73 us, 44 reads, and 25 writes at 16, which are no cheaper.
 *
 * Where that fails twice, the next probe is of both directions, and so is the last turn if 8 were
 * in flight in both: requests of the mate are sent and counted with those of k (sutro-meter.c).
 * The result depends on the mix, which varies, so the pause is 4 s from the 2nd one on.  Each 4th
 * probe is of one direction again.  A class that was measured keeps its cost while there are few.
 *
 * sutro-due.c decides which class is probed, and when; sutro-result.c derives its cost from the
 * results.
 */
#include "sutro-probe.h"

#define MS (1000 * 1000ULL)

/*
 * A probe counts this many completions in whole rounds.  After this time, as many as
 * sutro_probe_few() requires are enough.
 */
#define SUTRO_PROBE_NR 256U
#define SUTRO_PROBE_NS (10 * MS)
#define SUTRO_PROBE_FEW 8
/* This many completions are enough for the largest size, and for a probe that takes too long. */
#define SUTRO_PROBE_LEAST 4
/* At least this many latencies: requests that were sent together complete together. */
#define SUTRO_PROBE_LATENCIES 3
/* Of requests that cost more than this, fewer are let through and counted. */
#define SUTRO_PROBE_EXPENSIVE_NS (MS / 2)
/* A probe that takes longer than this is given up. */
#define SUTRO_PROBE_MAX_NS (1000 * MS)
#define SUTRO_PROBE_RAMP 4
/* Of requests that cost more than this, or of large ones, two are enough if four are no cheaper. */
#define SUTRO_PROBE_SLOW_NS (4 * MS)
#define SUTRO_PROBE_RAMP_LARGE 2
/* This many times the depth complete before it is taken for too large; see above. */
#define SUTRO_PROBE_PATIENCE 4
/* The longest probe while groups are protected. */
#define SUTRO_PROBE_RARE_MAX_NS (50 * MS)
/* A probe goes on with the other direction at most this many times. */
#define SUTRO_PROBE_TURNS 5
/* A ramp goes on where an earlier one ended, if that was this short a time ago. */
#define SUTRO_PROBE_RESUME_NS (1000 * MS)
#define SUTRO_PROBE_INTERVAL_MAX_NS (4000 * MS)
/* After a change, the pause is at most this part of the time since then. */
#define SUTRO_PROBE_CHANGED_PART 4
#define SUTRO_PROBE_MAX_FAILURES 6
/* The pause after a failure is this many times longer where the cost follows from the bytes. */
#define SUTRO_PROBE_RETRY_BY_BYTES 8

/**
 * sutro_probe_init - prepare
 * @probe:	the probes, zeroed
 * @limit:	requests that the device takes at once, 0 = one, which is not measured
 */
void sutro_probe_init(struct sutro_probe *probe, u32 limit)
{
	unsigned int i;

	probe->limit = limit;
	for (i = 0; i < SUTRO_CLASSES; i++)
		INIT_LIST_HEAD(&probe->peers[i]);
}

/* How many requests of the probe have completed, ever? */
static u32 sutro_probe_done(const struct sutro_probe *probe,
			    const struct sutro_device *device)
{
	u32 nr = device->done[probe->class];

	return probe->mixed ? nr + device->done[sutro_cost_mate(probe->class)]
			    : nr;
}

static void sutro_probe_set_depth(struct sutro_probe *probe,
				  const struct sutro_device *device, u32 depth)
{
	probe->depth = depth;
	probe->waits_from = sutro_probe_done(probe, device);
	probe->most = 0;
}

/* With fewer requests in flight than this, there are not enough of them. */
static u32 sutro_probe_least(const struct sutro_probe *probe)
{
	return max(probe->depth / 2, 1U);
}

/* ---- results ---- */

static void sutro_probe_end(struct sutro_probe *probe,
			    struct sutro_device *device, u64 now_ns)
{
	probe->active = false;
	probe->end_ns = now_ns;
	probe->lasted_ns = now_ns - probe->begin_ns;
	device->probing = false;
	device->meter = (struct sutro_meter){};
}

/* Was the cost of the mate measured, without requests of the class? */
static bool sutro_probe_knows_mate(const struct sutro_probe *probe,
				   const struct sutro_device *device)
{
	unsigned int mate = sutro_cost_mate(probe->class);
	const struct sutro_probe_class *of = &probe->of[mate];

	return (of->nr && !of->unsaturated && !of->paired) ||
	       sutro_cost_is_by_bytes(&device->costs, mate);
}

/*
 * The longest pause between two probes: shorter while the cost is in doubt.  A change that is long
 * ago is forgotten.
 */
static u64 sutro_probe_most_ns(struct sutro_probe_class *of, u64 now_ns)
{
	u64 most_ns = (now_ns - of->changed_ns) / SUTRO_PROBE_CHANGED_PART;

	if (most_ns >= SUTRO_PROBE_INTERVAL_MAX_NS)
		of->changed_ns = 0;
	if (of->differs)
		return SUTRO_PROBE_INTERVAL_MIN_NS;
	return of->changed_ns ? max(most_ns, SUTRO_PROBE_INTERVAL_MIN_NS)
			      : SUTRO_PROBE_INTERVAL_MAX_NS;
}

/* @spare16: SUTRO_PROBE_SPARE_NONE, or more if there were too few requests. */
static void sutro_probe_result(struct sutro_probe *probe,
			       struct sutro_device *device, u64 ns16, u32 depth,
			       u32 spare16, bool unsaturated, u64 now_ns)
{
	struct sutro_probe_class *of = &probe->of[probe->class];
	u64 expected = of->unsaturated ? div_u64(of->took_ns16, depth)
				       : device->costs.ns16[probe->class];
	bool right = of->nr && ns16 * 100 > expected * 94 &&
		     ns16 * 100 < expected * 106;

	if (of->unsaturated && !unsaturated) {
		of->nr = 0;
		of->next = 0;
	}
	/* Charges by another cost cannot be compared with those that follow. */
	if (!of->nr)
		device->change = (struct sutro_change){};
	of->paired = probe->paired;
	of->unsaturated = unsaturated;
	of->depth = depth;
	of->result[of->next].ns16 = ns16;
	of->result[of->next].at_ns = now_ns;
	of->result[of->next].depth = depth;
	of->result[of->next].spare16 = spare16;
	of->next = (of->next + 1) % SUTRO_PROBE_RESULTS;
	of->nr = min_t(u32, of->nr + 1, SUTRO_PROBE_RESULTS);
	of->probes++;
	of->failures = 0;
	of->interval_ns = right ? of->interval_ns * 2 : of->interval_ns / 2;
	of->interval_ns = clamp(of->interval_ns, SUTRO_PROBE_INTERVAL_MIN_NS,
				SUTRO_PROBE_INTERVAL_MAX_NS);
	/* The mix changes by chance, and with it the result: two are enough for a time. */
	if (probe->mixed && of->nr > 1)
		of->interval_ns = SUTRO_PROBE_INTERVAL_MAX_NS;
	sutro_probe_learn(probe, device, now_ns);
	of->interval_ns = min(of->interval_ns, sutro_probe_most_ns(of, now_ns));
	of->due_ns = now_ns + of->interval_ns;
	sutro_probe_end(probe, device, now_ns);
}

/* Are there requests of the same size in the other direction? */
static bool sutro_probe_has_mate(const struct sutro_probe *probe)
{
	unsigned int mate = sutro_cost_mate(probe->class);

	return !list_empty(&probe->peers[mate]) ||
	       probe->sent[mate] - probe->mark[mate] >= SUTRO_PROBE_BUSY;
}

/* The pause after a probe without a result: longer where little depends on it. */
static u64 sutro_probe_retry_ns(const struct sutro_probe *probe)
{
	u64 ns = SUTRO_PROBE_INTERVAL_MIN_NS
		 << probe->of[probe->class].failures;

	return probe->by_bytes ? SUTRO_PROBE_RETRY_BY_BYTES * ns : ns;
}

/* There are not enough requests for going on. */
static void sutro_probe_give_up(struct sutro_probe *probe,
				struct sutro_device *device, u64 now_ns)
{
	struct sutro_probe_class *of = &probe->of[probe->class];

	/* There were enough requests before: a known class keeps its cost. */
	if ((of->nr || probe->rare) && of->probes && !of->unsaturated) {
		of->probes++;
		of->due_ns = now_ns + of->interval_ns;
		sutro_probe_end(probe, device, now_ns);
		return;
	}
	if (probe->half_ns16) {
		sutro_probe_result(probe, device, probe->half_ns16,
				   max(probe->depth / 2, 1U),
				   probe->half_spare16, true, now_ns);
		return;
	}
	of->mixed = !of->mixed && !of->nr && of->failures && !probe->by_bytes &&
		    sutro_probe_has_mate(probe);
	of->depth = probe->depth / 2;
	of->due_ns = now_ns + sutro_probe_retry_ns(probe);
	if (of->failures < SUTRO_PROBE_MAX_FAILURES)
		of->failures++;
	sutro_probe_end(probe, device, now_ns);
}

/* Do requests cost much, as the meter has counted them?  @ns16: those of the size of the class. */
static bool sutro_probe_is_slow(const struct sutro_device *device, u64 ns16)
{
	u64 cost_ns16 = ns16 * sutro_meter_units(device) >> SUTRO_UNIT_SHIFT;

	return cost_ns16 >> SUTRO_NS16_SHIFT > SUTRO_PROBE_SLOW_NS;
}

/*
 * Does a large request cost what one of the other direction does?  Then a bus is the limit.  Where
 * requests are slow, the ramp takes long, and any large one shows it.
 */
static bool sutro_probe_is_bus(const struct sutro_probe *probe,
			       const struct sutro_device *device, u64 ns16)
{
	u32 among = sutro_meter_is_slow(device)
			    ? U32_MAX
			    : BIT(sutro_cost_mate(probe->class));

	return !probe->mixed &&
	       sutro_cost_is_proportional(&device->costs, probe->class, among,
					  ns16);
}

/* The meter has counted enough: continue the ramp, or end the probe. */
static void sutro_probe_measured(struct sutro_probe *probe,
				 struct sutro_device *device, u64 now_ns)
{
	u64 least_ns = sutro_probe_stepped(probe, device);
	u32 depth = sutro_meter_depth(device);
	u64 ns16 = sutro_meter_ns16(device);
	bool few = probe->ramping && !sutro_meter_fills(device, probe->depth);
	/* About a quarter more in flight than at half of the depth, and no cheaper. */
	bool flat = sutro_meter_fills(device, probe->depth * 5 / 6) &&
		    probe->half_ns16 && ns16 * 100 > probe->half_ns16 * 97;
	bool saturated =
		!probe->ramping || sutro_probe_is_bus(probe, device, ns16) ||
		(flat && (probe->flat || device->amplification.has_cache ||
			  sutro_meter_waits(device, least_ns)));

	probe->of[probe->class].no_guests = !ns16;
	probe->of[probe->class].units = sutro_meter_units(device);
	if (!ns16 || (few && !saturated && probe->half_ns16 &&
		      probe->half_ns16 <= ns16)) {
		sutro_probe_give_up(probe, device, now_ns);
		return;
	}
	probe->paired = sutro_meter_is_pair(device);
	if (few && !saturated) {
		sutro_probe_result(probe, device, ns16, depth,
				   sutro_probe_spare16(probe, ns16, depth),
				   true, now_ns);
		return;
	}
	if (saturated || probe->depth >= probe->limit) {
		if (saturated && probe->ramping &&
		    (few || sutro_probe_is_slow(device, ns16)))
			probe->depth = max(probe->depth / 2, 1U);
		sutro_probe_result(probe, device, ns16, probe->depth,
				   SUTRO_PROBE_SPARE_NONE, false, now_ns);
		return;
	}
	device->meter = (struct sutro_meter){};
	probe->half_spare16 = sutro_probe_spare16(probe, ns16, depth);
	probe->half_ns16 = ns16;
	probe->flat = flat;
	sutro_probe_set_depth(probe, device,
			      min(2 * probe->depth, probe->limit));
}

/* With how many requests in flight does a probe begin? */
static u32 sutro_probe_first_depth(const struct sutro_probe *probe,
				   const struct sutro_device *device)
{
	const struct sutro_probe_class *of = &probe->of[probe->class];
	bool large = sutro_cost_class_ns(device, probe->class) >
			     SUTRO_PROBE_SLOW_NS ||
		     sutro_cost_class_bytes(probe->class) >= SUTRO_LINEAR_BYTES;
	u32 least = min(large ? SUTRO_PROBE_RAMP_LARGE : SUTRO_PROBE_RAMP,
			probe->limit);
	u32 depth = probe->ramping ? of->depth / 2 : of->depth;

	return clamp_t(u32, depth, least, probe->limit);
}

/* There was a result at half of the depth a moment ago: go on from there. */
static bool sutro_probe_resume(struct sutro_probe *probe,
			       const struct sutro_device *device, u64 now_ns)
{
	const struct sutro_probe_class *of = &probe->of[probe->class];
	u32 last = (of->next + SUTRO_PROBE_RESULTS - 1) % SUTRO_PROBE_RESULTS;

	if (!of->nr || !of->unsaturated || probe->mixed ||
	    now_ns - of->result[last].at_ns > SUTRO_PROBE_RESUME_NS ||
	    of->result[last].depth >= probe->limit)
		return false;
	probe->half_ns16 = of->result[last].ns16;
	probe->half_spare16 = of->result[last].spare16;
	sutro_probe_set_depth(probe, device,
			      min(2 * of->result[last].depth, probe->limit));
	return true;
}

static void sutro_probe_begin(struct sutro_probe *probe,
			      struct sutro_device *device, unsigned int class,
			      bool both, u64 now_ns)
{
	struct sutro_probe_class *of = &probe->of[class];

	/* The next requests may be of one direction. */
	if (of->probes % 4 == 3)
		of->mixed = false;
	probe->active = true;
	device->probing = true;
	probe->class = class;
	probe->mixed = of->mixed || both;
	probe->paired = false;
	probe->by_bytes = sutro_probe_is_by_bytes(probe, device, class);
	probe->half_ns16 = 0;
	probe->took_ns = 0;
	probe->flat = false;
	/* Each class ramps once after a change.  More of it would disturb protected groups. */
	probe->ramping = !of->probes || of->unsaturated ||
			 (!of->nr && !sutro_probe_is_rare(probe, class)) ||
			 of->probes % 4 == 3;
	if (!sutro_probe_resume(probe, device, now_ns))
		sutro_probe_set_depth(probe, device,
				      sutro_probe_first_depth(probe, device));
}

/* Begin a probe if a class is due. */
static void sutro_probe_choose(struct sutro_probe *probe,
			       struct sutro_device *device, u64 now_ns)
{
	int best = sutro_probe_due(probe, device, now_ns);

	if (best < 0)
		return;
	probe->begin_ns = now_ns;
	probe->turns = 0;
	sutro_probe_begin(probe, device, best, false, now_ns);
}

/* No request of this direction is left: go on with the other one, and more of this one come. */
static void sutro_probe_turn(struct sutro_probe *probe,
			     struct sutro_device *device, u64 now_ns)
{
	const struct sutro_probe_class *of = &probe->of[probe->class];
	unsigned int mate = sutro_cost_mate(probe->class);
	bool last;

	if (probe->mixed || (of->nr && !of->unsaturated) ||
	    probe->turns == SUTRO_PROBE_TURNS || !sutro_probe_has_mate(probe))
		return;
	probe->turns++;
	last = probe->turns == SUTRO_PROBE_TURNS &&
	       of->depth + probe->of[mate].depth >= 2 * SUTRO_PROBE_RAMP;
	sutro_probe_begin(probe, device, mate, last, now_ns);
}

/*
 * There are requests, but the driver takes no more at once than @most: other users of its tags may
 * have the rest.  So that is the depth, and the ramp ends with it.
 */
static void sutro_probe_is_limited(struct sutro_probe *probe,
				   struct sutro_device *device, u64 now_ns)
{
	u32 nr = sutro_probe_done(probe, device) - probe->waits_from;

	if (nr < SUTRO_PROBE_PATIENCE * probe->depth)
		return;
	if (!probe->most) {
		sutro_probe_give_up(probe, device, now_ns);
		return;
	}
	probe->limit = probe->most;
	sutro_probe_set_depth(probe, device, probe->most);
}

/* How many are counted at least?  Large requests take long, and vary little. */
static u32 sutro_probe_few(const struct sutro_probe *probe, bool expensive)
{
	if (probe->class % SUTRO_SIZES == SUTRO_SIZES - 1)
		return SUTRO_PROBE_LEAST;
	return probe->depth > 8 && !expensive ? 2 * SUTRO_PROBE_FEW
					      : SUTRO_PROBE_FEW;
}

/* It takes too long: the requests counted so far are the result, if they are enough. */
static void sutro_probe_is_long(struct sutro_probe *probe,
				struct sutro_device *device, u64 now_ns)
{
	if (sutro_meter_is_enough(device, SUTRO_PROBE_LEAST))
		sutro_probe_measured(probe, device, now_ns);
	if (probe->active)
		sutro_probe_give_up(probe, device, now_ns);
}

/* ---- for the dispatcher ---- */

/**
 * sutro_probe_step - begin, go on with or end a probe
 * @probe:	the leaf's probes
 * @device:	state of the leaf
 * @now_ns:	the time
 */
void sutro_probe_step(struct sutro_probe *probe, struct sutro_device *device,
		      u64 now_ns)
{
	u32 in_flight;
	bool expensive;

	if (!probe->active) {
		sutro_probe_choose(probe, device, now_ns);
		return;
	}
	if (device->meter.done) {
		sutro_probe_measured(probe, device, now_ns);
		return;
	}
	if (now_ns - probe->begin_ns >
	    (probe->rare ? SUTRO_PROBE_RARE_MAX_NS : SUTRO_PROBE_MAX_NS)) {
		sutro_probe_is_long(probe, device, now_ns);
		return;
	}
	if (device->meter.armed)
		return;
	in_flight = sutro_probe_in_flight(probe, device);
	/* More are there from before, or none waited: from now on the driver decides how many. */
	if (in_flight > probe->depth || probe->dry)
		sutro_probe_set_depth(probe, device, probe->depth);
	else
		probe->most = max(probe->most, in_flight);
	probe->dry = false;
	if (sutro_probe_is_spoilt(probe, device) || in_flight > probe->depth)
		return;
	if (in_flight < sutro_probe_least(probe)) {
		sutro_probe_is_limited(probe, device, now_ns);
		return;
	}
	expensive = sutro_cost_class_ns(device, probe->class) >
		    SUTRO_PROBE_EXPENSIVE_NS;
	device->meter = (struct sutro_meter){
		.armed = true,
		.mixed = probe->mixed,
		.mate_is_known = sutro_probe_knows_mate(probe, device),
		.class = probe->class,
		.last_ns = now_ns,
		.skip = expensive || probe->turns ? probe->depth
						  : 2 * probe->depth,
		.enough = max(SUTRO_PROBE_NR / probe->depth, 2U) * probe->depth,
		.few = sutro_probe_few(probe, expensive),
		.round = probe->depth,
		.long_ns = max(SUTRO_PROBE_NS,
			       SUTRO_PROBE_LATENCIES *
				       sutro_cost_latency_ns(device)),
	};
}

/* How much may be in flight besides @depth_ns? */
static u64 sutro_probe_wide_ns(const struct sutro_probe *probe, u64 depth_ns)
{
	u64 ns = probe->depth_ns - min(depth_ns, probe->depth_ns);

	if (probe->rare)
		return 0;
	return probe->depth_equal ? ns : ns * probe->wide / SUTRO_WIDE_WHOLE;
}

/**
 * sutro_probe_tunables - how much may be at the device?
 * @probe:	the leaf's probes
 * @device:	state of the leaf
 * @tunables:	the settings; those that describe the device are set
 *
 * During a probe its depth decides, and no group is held back for another one.
 */
void sutro_probe_tunables(const struct sutro_probe *probe,
			  const struct sutro_device *device,
			  struct sutro_tunables *tunables)
{
	tunables->probing = probe->active;
	tunables->guessing = probe->guessing;
	tunables->latency_ns = sutro_cost_latency_ns(device);
	tunables->busy_ns = probe->active ? 0 : sutro_cost_busy_ns(device);
	tunables->depth_ns = sutro_cost_depth_ns(device);
	tunables->done_bytes = READ_ONCE(device->done_bytes);
	if (device->rotational) {
		tunables->cached_ns = device->destage.backlog_ns;
		tunables->destaged_ns =
			device->last_completion_ns + tunables->cached_ns;
	}
	tunables->depth_ns += sutro_probe_wide_ns(probe, tunables->depth_ns);
	if (probe->active)
		tunables->depth_ns = U64_MAX;
}

/**
 * sutro_probe_starved - there is room, but no request of the probed class
 * @probe:	the leaf's probes
 * @device:	state of the leaf
 * @now_ns:	the time
 *
 * Return: true if the probe is over, or goes on with requests of another class or depth.
 */
bool sutro_probe_starved(struct sutro_probe *probe, struct sutro_device *device,
			 u64 now_ns)
{
	u32 in_flight = sutro_probe_in_flight(probe, device);

	probe->dry = true;
	if (in_flight >= sutro_probe_least(probe))
		return false;
	if (sutro_meter_is_enough(device, device->meter.few) &&
	    (probe->ramping || sutro_meter_fills(device, probe->depth)))
		sutro_probe_measured(probe, device, now_ns);
	else
		sutro_probe_give_up(probe, device, now_ns);
	if (!probe->active)
		sutro_probe_turn(probe, device, now_ns);
	return true;
}
