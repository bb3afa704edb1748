// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: the cost of a request, in device time.
 *
 * Device time is the part of the leaf's work that a request used: requests of
 * 1 ms each mean that the leaf serves 1000 of them in a second, however many are
 * in flight at once.
 *
 * 1. Rotational: the gap between completions
 *
 * One actuator does one thing at a time, and starts with a request when it has
 * finished the one before.  So
 *
 *	cost = now - max(last completion, start)
 *
 * is exact for each request, in whatever order the drive serves them:
 *
 *	A and B are sent at 0 ms, B completes at 6 ms, A at 10 ms:
 *	B cost 6 - max(-, 0) = 6 ms, A 10 - max(6, 0) = 4 ms.
 *
 * A write that the drive's cache takes is charged what the medium will need for it
 * (sutro-destage.c).
 *
 * The next request of a group is estimated by the mean of its recent ones of the
 * same class (direction and size), with weight 1/16 for the newest.  A size that it
 * never had is put between those that it had: more bytes behind the same seek.
 *
 * 2. Everything else: a table by class, kept to elapsed time
 *
 * A flash drive works on many requests at once.  Neither the latency of a
 * request nor the gap before its completion shows its part of the device's work:
 * with 4 KiB and 256 KiB requests in flight together, all wait equally long.
 * Here a request is charged the entry of the table for its class, and the table is
 * filled by probes (sutro-probe.c): moments in which only one class is sent.
 *
 * A class that no probe has measured yet, because it never met another one, or
 * that had not enough requests for a probe to saturate the device, is kept in line
 * with elapsed time by windows of completions during which the device was busy:
 *
 *  - a window of one class (97 % of requests and charges) measures that class:
 *    elapsed / completions; the entry moves half way there;
 *  - in a mixed window only the sum is known: if most of it was charged to such
 *    classes, these are scaled so that the charges add up to the elapsed time, a
 *    quarter of the way.
 *
 * sutro-estimate.c estimates a class that was not measured, and windows may show that it
 * costs less.  A large request is a matter of bytes: where a class from 64 KiB on was measured,
 * those of its direction with too few requests follow from it.
 *
 *	32 channels of 140 us, a bus of 205 MB/s, 128 KiB reads cost 640 us.  Four reads
 *	of 256 KiB saturate the bus, but there are no eight to show that.  They took 5.1 ms
 *	each; divided by 8, 640 us.  By bytes: 1280 us, which is what the bus needs.
 *
 * Discards, write zeroes and the like are no class of a size.  Some drives work on them
 * for as long as for a write, some hardly at all, and probes would disturb more than they
 * measure.  Such a request is charged the time that it took, but no more than a write of
 * as many bytes costs, and is estimated by the mean of the charges of others.
 *
 *	A drive writes 500 MB/s.  Write zeroes of 1 MiB that take 8 ms cost 2 ms, those
 *	that take 0.1 ms cost 0.1 ms.
 *
 * Where the charges of classes that were measured explain too little of a busy window, writes
 * pay for the rest (sutro-amplification.c).  Where they explain another part of it than
 * before, the device has changed, and probes begin again (sutro-change.c).
 *
 * Windows in which the elevator ran out of requests, or held them back for another group, are
 * thrown away: the device may have waited for the submitters.  But not when requests took twice as
 * long as when few are there: then they queued within the device, and it was busy, unless nothing
 * at all was there for a time, as between bursts.  A write past the cache of the device always
 * takes that long, and does not count for this.
 *
 * No request costs more than it took: whatever a window shows, the entry of a class that
 * was not measured never exceeds its mean latency there.  Without this, a few requests that
 * trickle in while the device sleeps, and that were not counted as few, would look like
 * seconds of work.  In windows that are thrown away, this is all that can be learned:
 *
 *	A journal is mounted, and its first writes wait for 0.36 ms.  Then four tasks
 *	write 4 KiB and fsync(), again and again, in windows that are reserved for them.
 *	Their writes take 0.05 ms, which is what each of them costs from then on.
 *
 * In windows that are thrown away, the device could have worked on more requests.  Where reads
 * of the size are known, so is their number (sutro_cost_at_once16()), and a request costs no
 * more than its part of the time, but no less than such a read.  Of a drive with a cache, the
 * time of writes shows nothing.
 *
 *	128 channels of 70 us, a bus of 3.4 GB/s: 15.6 reads of 16 KiB at once.  A database
 *	keeps eight requests of 16 KiB in flight, reads or writes by chance: there are never
 *	eight writes for a probe.  These take 200 us, and cost 12.8 us.
 */
#include "sutro-cost.h"

/* A window ends after this many completions, if it has this length. */
#define SUTRO_WINDOW_NR 64
#define SUTRO_WINDOW_NS (5 * 1000 * 1000ULL)
/* With slow requests, it ends after fewer completions in a longer time. */
#define SUTRO_WINDOW_SLOW_NR 8
#define SUTRO_WINDOW_SLOW_NS (50 * 1000 * 1000ULL)
/* So it does once more: some cards need a quarter of a second for a write of 1 MiB. */
#define SUTRO_WINDOW_SLOWEST_NR 2
#define SUTRO_WINDOW_SLOWEST_NS (400 * 1000 * 1000ULL)

/* Weight of the newest sample in a mean cost, 1 / 16, and in the mean latency, 1 / 64. */
#define SUTRO_LEARN_SHIFT 4
#define SUTRO_LATENCY_SHIFT 6

/**
 * sutro_device_init - prepare the state of a leaf
 * @device:	the state, zeroed
 * @rotational:	one actuator does all the work
 */
void sutro_device_init(struct sutro_device *device, bool rotational)
{
	device->rotational = rotational;
}

/* The cost of a class as a mean of samples. */
static void sutro_cost_learn(struct sutro_costs *costs, unsigned int class,
			     u64 sample_ns16)
{
	s64 mean = costs->ns16[class] ?: sample_ns16;
	s64 delta = (s64)sample_ns16 - mean;

	sutro_cost_set(costs, class,
		       max_t(s64, mean + (delta >> SUTRO_LEARN_SHIFT), 1));
}

/* The cost of a request that the drive's cache took, or that may have waited for the cache. */
static u64 sutro_gap_charge(struct sutro_device *device,
			    struct sutro_costs *group,
			    const struct sutro_sample *sample, u64 gap_ns)
{
	bool begins = device->flushes ||
		      sample->start_ns > device->last_completion_ns;
	struct sutro_destage *destage = &device->destage;
	struct sutro_advance none = {};
	struct sutro_advance *advance = group ? &group->advance : &none;
	u64 cost_ns = gap_ns, sample_ns = gap_ns, mean_ns = 0;

	if (group)
		mean_ns = group->ns16[sample->class] >> SUTRO_NS16_SHIFT;
	if (sample->caches) {
		cost_ns = sutro_destage_wrote(destage, advance, sample->bytes,
					      sample->seeks, gap_ns,
					      sample->now_ns);
		sample_ns = cost_ns;
	} else if (sutro_destage_rests(destage, begins, sample->now_ns)) {
		if (sutro_cost_op(sample->class) == SUTRO_READ)
			sutro_destage_read(destage, sample->bytes,
					   sample->seeks, gap_ns);
	} else {
		cost_ns = sutro_destage_waited(destage, mean_ns, sample->bytes,
					       sample->seeks, gap_ns,
					       sample->now_ns);
		sample_ns = sutro_destage_sample_ns(destage, mean_ns, gap_ns,
						    cost_ns);
	}
	if (group)
		sutro_cost_learn(group, sample->class,
				 sample_ns << SUTRO_NS16_SHIFT);
	return sutro_destage_credit(advance, cost_ns);
}

static u64 sutro_gap_complete(struct sutro_device *device,
			      struct sutro_costs *group,
			      const struct sutro_sample *sample)
{
	u64 last_ns = device->last_completion_ns;
	u64 start_ns = max(last_ns, sample->start_ns);
	u64 gap_ns = sample->now_ns > start_ns ? sample->now_ns - start_ns : 0;
	u64 cost_ns;

	if (start_ns > last_ns)
		sutro_destage_idled(&device->destage, start_ns - last_ns);
	cost_ns = sutro_gap_charge(device, group, sample,
				   min(gap_ns, SUTRO_COST_MAX_NS));
	device->last_completion_ns = max(last_ns, sample->now_ns);
	return cost_ns;
}

/* Does a window consist of requests of one class, so that it measures that class? */
static bool sutro_window_is_of(const struct sutro_device *device,
			       unsigned int class, u64 ns16)
{
	u64 cost_ns16 = device->window.units_of[class] * ns16 >>
			SUTRO_UNIT_SHIFT;

	return device->window.nr_of[class] * 100ULL >=
		       device->window.nr * 97ULL &&
	       cost_ns16 * 100 >= device->window.cost_ns16 * 97;
}

/* May windows change the cost of a class? */
static bool sutro_cost_class_is_open(const struct sutro_device *device,
				     unsigned int class)
{
	const struct sutro_costs *costs = &device->costs;
	u32 closed = (costs->measured & ~costs->bounded) | costs->prior;

	return class < SUTRO_OTHER * SUTRO_SIZES && !(closed & BIT(class));
}

/*
 * Learn the latency of the device: the time that a request takes beyond its cost while few
 * others are there.  The shortest sample counts, because delays only add to it.  An
 * unmeasured cost may be too high, so at least half of the time of such a request counts as
 * latency.
 *
 * While others are there, a request of a known cost takes that, the latency and more: it shows that
 * the latency is no longer.  An eighth of its cost is allowed for the error of that.
 *
 *	A drive of 50 MB/s, 8 channels of 0.35 ms.  Before any cost is known, a write of 512 KiB
 *	takes 45 ms, and the latency is taken for 22.  Then 60 ms of work are in flight, so that
 *	no request meets few others again.  Reads of 32 KiB cost 0.64 ms.  One that takes 15 ms
 *	shows that the latency is less, so less is in flight, and others take a shorter time.
 *
 * A write that a cache takes has a latency of its own, which shows nothing of the channels behind
 * the cache.  While only that is known, a large request adds nothing: most of its time is a
 * transfer.
 */
static void sutro_latency_learn(struct sutro_device *device,
				const struct sutro_sample *sample, u64 cost_ns,
				u64 took_ns)
{
	u64 *mean_ns = sample->caches ? &device->cache_latency_ns
				      : &device->latency_ns;
	bool known = device->costs.measured & BIT(sample->class) &&
		     !sutro_cost_class_is_open(device, sample->class);
	u64 latency_ns = took_ns - min(cost_ns, known ? took_ns : took_ns / 2);
	s64 delta;

	if (!*mean_ns && device->cache_latency_ns &&
	    sample->bytes >= SUTRO_LINEAR_BYTES)
		return;
	if (!sample->shallow) {
		if (!known || !*mean_ns)
			return;
		latency_ns += cost_ns / 8;
	}
	latency_ns = max(latency_ns, 1ULL);
	delta = latency_ns - *mean_ns;
	if (!*mean_ns || delta < 0)
		*mean_ns = latency_ns;
	else if (sample->shallow)
		*mean_ns += delta >> SUTRO_LATENCY_SHIFT;
}

/* Charges of the classes whose costs windows may change. */
static u64 sutro_window_open_ns16(const struct sutro_device *device)
{
	u64 sum = 0;
	unsigned int i;

	for (i = 0; i < SUTRO_CLASSES; i++)
		if (device->window.units_of[i] &&
		    sutro_cost_class_is_open(device, i))
			sum += device->window.units_of[i] *
			       sutro_cost_ns16(&device->costs, false, i);
	return sum >> SUTRO_UNIT_SHIFT;
}

/* The mean time that the requests of a class took in a window, by their units. */
static u64 sutro_window_took_ns16(const struct sutro_device *device,
				  unsigned int class)
{
	return div64_u64(device->window.latency_of_ns[class]
				 << (SUTRO_UNIT_SHIFT + SUTRO_NS16_SHIFT),
			 device->window.units_of[class]);
}

/*
 * The most that a request of a class costs where the device was not busy: the time that it
 * took, divided by the number of requests that the device serves at once.
 */
static u64 sutro_window_most_ns16(const struct sutro_device *device,
				  unsigned int class)
{
	u64 took_ns16 = sutro_window_took_ns16(device, class);
	u64 read_ns16 =
		sutro_by_bytes_ns16(&device->costs, class % SUTRO_SIZES);

	if (device->amplification.has_cache || took_ns16 < read_ns16)
		return took_ns16;
	return max(read_ns16, div64_u64(took_ns16 << 4,
					sutro_cost_at_once16(device, class)));
}

/*
 * Does a window show the cost of a class?  With @few, others have most of its charges.  A cost that
 * another class of its direction limits (sutro-estimate.c) is corrected all the same, up to that
 * limit; but not with a cache, where writes go on after their windows.
 */
static bool sutro_window_shows(const struct sutro_device *device,
			       unsigned int class, bool few)
{
	u32 measured = device->costs.measured;

	if (!device->window.units_of[class] ||
	    !sutro_cost_class_is_open(device, class))
		return false;
	if (!(measured & BIT(class)) && measured & sutro_cost_direction(class))
		return !device->amplification.has_cache;
	return !few;
}

/* The device was not busy for the whole window: no request costs more than it took. */
static void sutro_window_limit(struct sutro_device *device)
{
	unsigned int i;

	for (i = 0; i < SUTRO_OTHER * SUTRO_SIZES; i++) {
		u64 most_ns16, ns16 = sutro_cost_ns16(&device->costs, false, i);

		if (!sutro_window_shows(device, i, false))
			continue;
		most_ns16 = sutro_window_most_ns16(device, i);
		if (most_ns16 < ns16)
			sutro_cost_set(&device->costs, i, most_ns16);
	}
}

/* Bring the table in line with the time that a busy window took. */
static void sutro_window_learn(struct sutro_device *device, u64 elapsed_ns)
{
	u64 elapsed_ns16 = elapsed_ns << SUTRO_NS16_SHIFT;
	u64 open = sutro_window_open_ns16(device);
	u64 closed =
		device->window.cost_ns16 - min(device->window.cost_ns16, open);
	bool few = open <= closed;
	unsigned int i;

	/* The open classes used too little of the window to derive their cost from it. */
	if (few) {
		sutro_change_learn(device, div_u64(elapsed_ns, 1000));
		sutro_amplification_learn(device, elapsed_ns16);
	}
	if (elapsed_ns16 <= (few ? open + closed : closed))
		return;
	for (i = 0; i < SUTRO_CLASSES; i++) {
		u64 units = device->window.units_of[i];
		u64 ns16 = sutro_cost_ns16(&device->costs, false, i), new;

		if (!sutro_window_shows(device, i, few))
			continue;
		if (sutro_window_is_of(device, i, ns16)) {
			new = div64_u64(elapsed_ns16 << SUTRO_UNIT_SHIFT,
					units);
			new = (ns16 + new) / 2;
		} else {
			/* ns16 * rest / open, in us so that it fits */
			new = div64_u64(ns16 * ((elapsed_ns16 - closed) >> 10),
					max(open >> 10, 1ULL));
			new = (3 * ns16 + new) / 4;
		}
		new = min(new, sutro_window_took_ns16(device, i));
		if (device->costs.bounded & BIT(i))
			new = min(new, device->most_ns16[i]);
		sutro_cost_set(&device->costs, i, new);
	}
}

/* Does a window end: with enough completions, or with few in a long time? */
static bool sutro_window_ends(const struct sutro_device *device, u64 elapsed_ns)
{
	u32 nr = device->window.nr;

	return (nr >= SUTRO_WINDOW_NR && elapsed_ns >= SUTRO_WINDOW_NS) ||
	       (nr >= SUTRO_WINDOW_SLOW_NR &&
		elapsed_ns >= SUTRO_WINDOW_SLOW_NS) ||
	       (nr >= SUTRO_WINDOW_SLOWEST_NR &&
		elapsed_ns >= SUTRO_WINDOW_SLOWEST_NS);
}

static void sutro_window_restart(struct sutro_device *device, u64 now_ns)
{
	memset(&device->window, 0, sizeof(device->window));
	device->window.start_ns = now_ns;
	WRITE_ONCE(device->unsaturated, false);
	WRITE_ONCE(device->idle, false);
}

/* Was the device busy during the whole window? */
static bool sutro_window_busy(const struct sutro_device *device)
{
	u64 base_ns = sutro_cost_latency_ns(device);
	u64 latency_ns = 0, cost_ns;
	unsigned int i;

	for (i = 0; i < SUTRO_CLASSES; i++)
		latency_ns += device->window.latency_of_ns[i];
	latency_ns = div_u64(latency_ns, device->window.nr);
	cost_ns = div_u64(device->window.cost_ns16 >> SUTRO_NS16_SHIFT,
			  device->window.nr);

	return !READ_ONCE(device->unsaturated) ||
	       (!READ_ONCE(device->idle) && base_ns &&
		latency_ns >= 2 * (base_ns + cost_ns));
}

/**
 * sutro_cost_measured - a probe has measured the cost of a class
 * @device:	the leaf
 * @class:	from sutro_cost_class()
 * @ns16:	device time of such a request in 1/16 ns
 * @most_ns16:	windows may change it, up to this; 0 if they may not
 */
void sutro_cost_measured(struct sutro_device *device, unsigned int class,
			 u64 ns16, u64 most_ns16)
{
	struct sutro_costs *costs = &device->costs;

	ns16 = min(ns16, SUTRO_COST_MAX_NS << SUTRO_NS16_SHIFT);
	sutro_prior_judge(device, class, ns16, most_ns16);
	costs->measured |= BIT(class);
	costs->bounded &= ~BIT(class);
	if (most_ns16)
		costs->bounded |= BIT(class);
	device->most_ns16[class] = most_ns16;
	sutro_cost_set(costs, class, ns16);
}

/* Cost of a request that is neither a read nor a write. */
static u64 sutro_other_ns16(struct sutro_device *device,
			    const struct sutro_sample *sample)
{
	unsigned int write = sutro_cost_class(SUTRO_WRITE, sample->bytes);
	u64 took_ns = sample->now_ns - sample->start_ns;
	u64 cost_ns16 = min(took_ns, SUTRO_COST_MAX_NS) << SUTRO_NS16_SHIFT;

	cost_ns16 = min(cost_ns16,
			sutro_request_ns16(device, write, sample->bytes));
	sutro_cost_learn(&device->costs, sample->class, cost_ns16);
	return cost_ns16;
}

static u64 sutro_window_complete(struct sutro_device *device,
				 const struct sutro_sample *sample)
{
	u64 cost_ns16 = sutro_cost_op(sample->class) == SUTRO_OTHER
				? sutro_other_ns16(device, sample)
				: sutro_request_ns16(device, sample->class,
						     sample->bytes);
	u64 elapsed_ns = sample->now_ns - device->window.start_ns;
	u64 latency_ns = sample->now_ns - sample->start_ns;

	/* Most of an amplified cost comes after the write has completed. */
	if (!(device->amplification.times &&
	      sutro_cost_op(sample->class) == SUTRO_WRITE))
		sutro_latency_learn(device, sample,
				    cost_ns16 >> SUTRO_NS16_SHIFT, latency_ns);
	/* A write past the cache takes long without any others. */
	if (sample->through)
		latency_ns = min(latency_ns,
				 sutro_cost_latency_ns(device) +
					 (cost_ns16 >> SUTRO_NS16_SHIFT));

	if (sample->caches)
		device->amplification.has_cache = true;
	sutro_meter_complete(&device->meter, sample, cost_ns16);
	if (device->probing || READ_ONCE(device->unseen) ||
	    !device->window.start_ns) {
		sutro_window_restart(device, sample->now_ns);
		return cost_ns16 >> SUTRO_NS16_SHIFT;
	}

	device->window.nr++;
	device->window.nr_of[sample->class]++;
	device->window.units_of[sample->class] +=
		sutro_units(sample->class, sample->bytes);
	device->window.cost_ns16 += cost_ns16;
	device->window.latency_of_ns[sample->class] += latency_ns;

	if (sutro_window_ends(device, elapsed_ns)) {
		bool busy = sutro_window_busy(device);

		sutro_prior_check(device, elapsed_ns, busy);
		if (!busy)
			sutro_window_limit(device);
		else if (elapsed_ns < SUTRO_COST_MAX_NS)
			sutro_window_learn(device, elapsed_ns);
		sutro_window_restart(device, sample->now_ns);
	}
	return cost_ns16 >> SUTRO_NS16_SHIFT;
}

/**
 * sutro_cost_complete - cost of a request that left the device
 * @device:	the leaf
 * @group:	measured costs of the group's requests where the leaf is rotational, NULL if
 *		there is no memory for them
 * @sample:	the request
 *
 * Two CPUs may report completions in another order than that of their times: each takes the time
 * before it has the lock of the device.  So the time of @sample is set to that with which a window
 * began, or on a rotational device to that of the last completion, if it is earlier.  A clock that
 * was read on another CPU, or once for several requests, may give it a start after its completion:
 * then it took no time.
 *
 * Return: device time in ns; none for a request that failed before the driver began with
 * it.
 */
u64 sutro_cost_complete(struct sutro_device *device, struct sutro_costs *group,
			struct sutro_sample *sample)
{
	u64 least_ns = device->rotational ? device->last_completion_ns
					  : device->window.start_ns;

	device->done[sample->class]++;
	if (!sample->start_ns)
		return 0;
	/* The bytes of a discard are no transfer. */
	if (sutro_cost_op(sample->class) != SUTRO_OTHER)
		WRITE_ONCE(device->done_bytes,
			   device->done_bytes + sample->bytes);
	sample->now_ns = max(sample->now_ns, least_ns);
	sample->start_ns = min(sample->start_ns, sample->now_ns);
	if (device->rotational)
		return sutro_gap_complete(device, group, sample);
	return sutro_window_complete(device, sample);
}

/**
 * sutro_cost_flush_begin - a request waits for a flush of the device's cache
 * @device:	the leaf
 */
void sutro_cost_flush_begin(struct sutro_device *device)
{
	device->flushes++;
}

/**
 * sutro_cost_flush_cancel - a request no longer waits for a flush
 * @device:	the leaf
 */
void sutro_cost_flush_cancel(struct sutro_device *device)
{
	if (!--device->flushes)
		device->flush_ns = 0;
}

/**
 * sutro_cost_flush - cost of a flush that a request waited for, and that is over
 * @device:	the leaf
 * @start_ns:	when it was requested
 * @now_ns:	when it was over
 *
 * One actuator did nothing else since the last completion.  The charge in advance for
 * the data in the cache pays for it first (sutro-destage.c).  Where much is done at
 * once, the time means little: the content of the cache was charged when it was written, and
 * a flush makes the device write a page that it could have filled otherwise.
 *
 * Requests that share a flush share its cost, too: each pays its part among those that
 * wait, and leaves the rest to the others.
 *
 *	Three requests wait for a flush of 12 ms.  They complete together, and each
 *	is charged 4 ms.
 *
 * Return: device time in ns.
 */
u64 sutro_cost_flush(struct sutro_device *device, u64 start_ns, u64 now_ns)
{
	unsigned int page = sutro_cost_class(SUTRO_WRITE, SUTRO_SIZE_MIN_BYTES);
	u64 most_ns = device->rotational ? SUTRO_COST_MAX_NS
					 : sutro_cost_class_ns(device, page);
	u64 *last_ns = device->rotational ? &device->last_completion_ns
					  : &device->last_flush_ns;
	u64 from_ns = max(*last_ns, start_ns);
	u64 cost_ns = now_ns > from_ns ? now_ns - from_ns : 0;

	*last_ns = max(*last_ns, now_ns);
	cost_ns = min(cost_ns, most_ns);
	if (device->rotational)
		cost_ns = sutro_destage_flushed(&device->destage, cost_ns);
	device->flush_ns += cost_ns;
	cost_ns = div_u64(device->flush_ns, device->flushes--);
	device->flush_ns -= cost_ns;
	return cost_ns;
}

/**
 * sutro_cost_requeue - a request left the device unserved
 * @device:	the leaf
 * @class:	its class
 */
void sutro_cost_requeue(struct sutro_device *device, unsigned int class)
{
	device->done[class]++;
}
