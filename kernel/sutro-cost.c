// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: what a request costs, in device time.
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
 * The next request of a group is estimated by the mean of its recent ones of the
 * same class (direction and size), with weight 1/16 for the newest.
 *
 * 2. Everything else: a table by class, kept to elapsed time
 *
 * A flash drive works on many requests at once.  Neither the latency of a
 * request nor the gap before its completion says what it took from the others:
 * with 4 KiB and 256 KiB requests in flight together, all wait equally long.
 * Here a request is charged what the table says for its class, and the table is
 * corrected by windows of completions during which the device was kept busy:
 *
 *  - a window of one class (97 % of requests and charges) measures that class:
 *    elapsed / completions; the entry moves half way there;
 *  - in a mixed window only the sum is known: all its classes are scaled so that
 *    the charges add up to the elapsed time, a quarter of the way.
 *
 * A class that was never seen is estimated from the nearest known size of the
 * same direction, else of the other, else at 20 us + bytes / (500 MB/s).
 *
 * So equal work is charged exactly, and the charges always add up; the ratio
 * between classes that never run alone keeps what was known of it before they
 * met.  How large the error is for mixed work is measured against the model
 * disk (tests/bench).
 *
 * Windows in which the elevator ran out of requests are thrown away: the device
 * may have waited for the submitters.  But not when requests took twice as long as
 * when few are there: then they queued within the device, and it was busy.
 *
 * No request costs more than it took: whatever a window says, an entry never
 * exceeds the mean latency of its class in that window.  Without this, a few
 * requests that trickle in while the device sleeps, and that no one noticed to be
 * few, would look like seconds of work.
 */
#include "sutro-cost.h"

#define SUTRO_NS16_SHIFT 4

/* A window is long enough with this many completions in this time ... */
#define SUTRO_WINDOW_NR 64
#define SUTRO_WINDOW_NS (5 * 1000 * 1000ULL)
/* ... or with this many when requests are slow. */
#define SUTRO_WINDOW_SLOW_NR 8
#define SUTRO_WINDOW_SLOW_NS (50 * 1000 * 1000ULL)

/*
 * A drive that recovers from an error, or spins up, may take half a minute; that
 * is nobody's fault and is not charged to whoever happened to wait.
 */
#define SUTRO_COST_MAX_NS (1000 * 1000 * 1000ULL)

/* Weight of the newest sample in a mean: 1 / 16. */
#define SUTRO_GAP_SHIFT 4
#define SUTRO_LATENCY_SHIFT 4

/*
 * Device time that may be in flight: at least this much, so that a late interrupt
 * or a slow CPU does not leave a fast device idle, and at most that much.
 */
#define SUTRO_DEPTH_MIN_NS (1000 * 1000ULL)
#define SUTRO_DEPTH_MAX_NS (32 * 1000 * 1000ULL)

/**
 * sutro_device_init - prepare what is known of a leaf
 * @device:	what to prepare, zeroed
 * @rotational:	one actuator does all the work
 */
void sutro_device_init(struct sutro_device *device, bool rotational)
{
	device->rotational = rotational;
}

/**
 * sutro_cost_class - the class of a request
 * @op:		what it does
 * @bytes:	its size
 *
 * Return: an index below SUTRO_CLASSES.
 */
unsigned int sutro_cost_class(enum sutro_op op, u32 bytes)
{
	unsigned int size = 0;

	if (op != SUTRO_OTHER && bytes > SUTRO_SIZE_MIN_BYTES)
		size = min(ilog2((bytes - 1) / SUTRO_SIZE_MIN_BYTES) + 1,
			   SUTRO_SIZES - 1);
	return op * SUTRO_SIZES + size;
}

static u64 sutro_prior_ns16(bool rotational, unsigned int class)
{
	u64 bytes = (u64)SUTRO_SIZE_MIN_BYTES << (class % SUTRO_SIZES);

	if (rotational) /* 4 ms + bytes / (125 MB/s) */
		return (4 * 1000 * 1000 + bytes * 8) << SUTRO_NS16_SHIFT;
	return (20 * 1000 + bytes * 2) << SUTRO_NS16_SHIFT;
}

/* Cost of the known class of the same kind that is nearest in size, or 0. */
static u64 sutro_nearest_ns16(const struct sutro_costs *costs, int op, int size)
{
	const u64 *ns16 = &costs->ns16[op * SUTRO_SIZES];
	int near;

	if (ns16[size])
		return ns16[size];
	for (near = 1; near < SUTRO_SIZES; near++) {
		/* Larger requests cost at most in proportion, smaller at least. */
		if (size >= near && ns16[size - near])
			return ns16[size - near] << near;
		if (size + near < SUTRO_SIZES && ns16[size + near])
			return max(ns16[size + near] >> near, 1ULL);
	}
	return 0;
}

/*
 * Cost of a class that may never have been seen: as the nearest of its kind; if
 * none was seen, as those of the other kind, for that tells how fast the device is.
 */
static u64 sutro_cost_ns16(const struct sutro_costs *costs, bool rotational,
			   unsigned int class)
{
	int op = class / SUTRO_SIZES, size = class % SUTRO_SIZES;
	u64 ns16;

	ns16 = sutro_nearest_ns16(costs, op, size);
	if (!ns16)
		ns16 = sutro_nearest_ns16(costs, SUTRO_READ, size);
	if (!ns16)
		ns16 = sutro_nearest_ns16(costs, SUTRO_WRITE, size);
	return ns16 ?: sutro_prior_ns16(rotational, class);
}

/**
 * sutro_cost_estimate - what will a request cost?
 * @device:	the leaf
 * @group:	what the group's requests cost so far
 * @class:	from sutro_cost_class()
 *
 * Return: device time in ns.
 */
u64 sutro_cost_estimate(const struct sutro_device *device,
			const struct sutro_costs *group, unsigned int class)
{
	const struct sutro_costs *costs = device->rotational ? group
							     : &device->costs;

	return sutro_cost_ns16(costs, device->rotational, class) >>
	       SUTRO_NS16_SHIFT;
}

static u64 sutro_gap_complete(struct sutro_device *device,
			      struct sutro_costs *group,
			      const struct sutro_sample *sample)
{
	u64 *mean = &group->ns16[sample->class];
	u64 start_ns = max(device->last_completion_ns, sample->start_ns);
	u64 cost_ns = sample->now_ns > start_ns ? sample->now_ns - start_ns : 0;
	s64 delta;

	cost_ns = min(cost_ns, SUTRO_COST_MAX_NS);

	device->last_completion_ns =
		max(device->last_completion_ns, sample->now_ns);
	if (*mean) {
		delta = (s64)(cost_ns << SUTRO_NS16_SHIFT) - (s64)*mean;
		*mean = max_t(s64, *mean + (delta >> SUTRO_GAP_SHIFT), 1);
	} else {
		*mean = max(cost_ns << SUTRO_NS16_SHIFT, 1ULL);
	}
	return cost_ns;
}

/* How long does a request take that hardly waits for others? */
static void sutro_latency_learn(struct sutro_device *device, u64 latency_ns)
{
	s64 delta = latency_ns - device->latency_ns;

	if (device->latency_ns)
		device->latency_ns += delta >> SUTRO_LATENCY_SHIFT;
	else
		device->latency_ns = latency_ns;
}

/* Bring the table in line with the time that a busy window took. */
static void sutro_window_learn(struct sutro_device *device, u64 elapsed_ns)
{
	u64 elapsed_ns16 = elapsed_ns << SUTRO_NS16_SHIFT;
	unsigned int i;

	for (i = 0; i < SUTRO_CLASSES; i++) {
		u64 nr = device->window.nr_of[i];
		u64 old = sutro_cost_ns16(&device->costs, false, i);
		u64 measured, most;

		if (!nr)
			continue;
		most = div64_u64(device->window.latency_of_ns[i]
					 << SUTRO_NS16_SHIFT,
				 nr);
		if (nr * 100 >= device->window.nr * 97ULL &&
		    nr * old * 100 >= device->window.cost_ns16 * 97) {
			measured = div64_u64(elapsed_ns16, nr);
			measured = min((old + measured) / 2, most);
			device->costs.ns16[i] = max(measured, 1ULL);
			continue;
		}
		/* old * elapsed / charged, in us so that it fits */
		measured = div64_u64(old * (elapsed_ns16 >> 10),
				     max(device->window.cost_ns16 >> 10, 1ULL));
		measured = min((3 * old + measured) / 4, most);
		device->costs.ns16[i] = max(measured, 1ULL);
	}
}

static void sutro_window_restart(struct sutro_device *device, u64 now_ns)
{
	memset(&device->window, 0, sizeof(device->window));
	device->window.start_ns = now_ns;
	device->unsaturated = false;
}

/* Had the device something to do all the time? */
static bool sutro_window_busy(const struct sutro_device *device)
{
	u64 latency_ns = 0;
	unsigned int i;

	for (i = 0; i < SUTRO_CLASSES; i++)
		latency_ns += device->window.latency_of_ns[i];
	latency_ns = div_u64(latency_ns, device->window.nr);

	return !device->unsaturated ||
	       (device->latency_ns && latency_ns >= 2 * device->latency_ns);
}

static u64 sutro_window_complete(struct sutro_device *device,
				 const struct sutro_sample *sample)
{
	u64 cost_ns16 = sutro_cost_ns16(&device->costs, false, sample->class);
	u64 elapsed_ns = sample->now_ns - device->window.start_ns;

	if (sample->shallow)
		sutro_latency_learn(device, sample->now_ns - sample->start_ns);

	if (!device->window.start_ns) {
		sutro_window_restart(device, sample->now_ns);
		return cost_ns16 >> SUTRO_NS16_SHIFT;
	}

	device->window.nr++;
	device->window.nr_of[sample->class]++;
	device->window.cost_ns16 += cost_ns16;
	device->window.latency_of_ns[sample->class] +=
		sample->now_ns - sample->start_ns;

	if ((device->window.nr >= SUTRO_WINDOW_NR &&
	     elapsed_ns >= SUTRO_WINDOW_NS) ||
	    (device->window.nr >= SUTRO_WINDOW_SLOW_NR &&
	     elapsed_ns >= SUTRO_WINDOW_SLOW_NS)) {
		if (sutro_window_busy(device) && elapsed_ns < SUTRO_COST_MAX_NS)
			sutro_window_learn(device, elapsed_ns);
		sutro_window_restart(device, sample->now_ns);
	}
	return cost_ns16 >> SUTRO_NS16_SHIFT;
}

/**
 * sutro_cost_complete - a request left the device: what did it cost?
 * @device:	the leaf
 * @group:	what the group's requests cost so far
 * @sample:	the request
 *
 * Return: device time in ns.
 */
u64 sutro_cost_complete(struct sutro_device *device, struct sutro_costs *group,
			const struct sutro_sample *sample)
{
	if (device->rotational)
		return sutro_gap_complete(device, group, sample);
	return sutro_window_complete(device, sample);
}

/**
 * sutro_cost_busy_ns - device time in flight with which the device has no pause
 * @device:	the leaf
 *
 * A saturated device completes in a latency's time as much work as it has in
 * flight (Little's law): twice the latency that requests have when few are there.
 *
 * Return: device time in ns, 0 if not known yet.
 */
u64 sutro_cost_busy_ns(const struct sutro_device *device)
{
	return 2 * device->latency_ns;
}

/**
 * sutro_cost_depth_ns - device time in flight beyond which requests wait here
 * @device:	the leaf
 *
 * Return: device time in ns.
 */
u64 sutro_cost_depth_ns(const struct sutro_device *device)
{
	return clamp(sutro_cost_busy_ns(device), SUTRO_DEPTH_MIN_NS,
		     SUTRO_DEPTH_MAX_NS);
}
