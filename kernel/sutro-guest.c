// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: requests of other classes during a probe (sutro-probe.c).
 *
 * Those that were sent before it complete first.  Then only requests of the probed class are sent,
 * as many as its depth, and two of guests: of groups that have no more than 4 requests in all, of
 * a class that costs little.  These wait for each request, and their time is subtracted from
 * the result (sutro-meter.c).  If they took most of the time of a probe of the class, the next one
 * has no guests.
 *
 *	8 reads of 16 KiB are kept in flight, 80 us each.  A database reads 4 KiB, which costs
 *	20 us, and waits.  In 10 ms 840 reads of 16 KiB complete, and 80 of the database, which are
 *	1.6 ms.  The other 8.4 ms are 10 us for each.
 *
 * Large requests are guests only where their cost is known.
 *
 *	Reads of 1 MiB take 300 us each, and are thought to take 170.  Of two that are beside
 *	reads of 32 KiB, too little is subtracted: these seem to cost 32 us instead of 9.4.  The
 *	windows of completions (sutro-cost.c) agree, for the charges add up to the elapsed time.
 */
#include "sutro-probe.h"

#define MS (1000 * 1000ULL)

/* Requests of others that may be at the device during a probe. */
#define SUTRO_GUESTS 2
/* A group with no more requests than this is let through. */
#define SUTRO_GUEST_REQUESTS 4
/* Requests of others that cost no more than this do not spoil the result. */
#define SUTRO_GUEST_NS (3 * MS / 10)

/**
 * sutro_probe_in_flight - how many requests of the probe are at the device?
 * @probe:	the leaf's probes, one of which is active
 * @device:	state of the leaf
 */
u32 sutro_probe_in_flight(const struct sutro_probe *probe,
			  const struct sutro_device *device)
{
	unsigned int mate = sutro_cost_mate(probe->class);
	u32 nr = probe->sent[probe->class] - device->done[probe->class];

	return probe->mixed ? nr + probe->sent[mate] - device->done[mate] : nr;
}

/* Requests of other classes at the device, and their cost. */
static u32 sutro_guest_in_flight(const struct sutro_probe *probe,
				 const struct sutro_device *device, u64 *ret_ns)
{
	u32 all = 0, nr;
	unsigned int i;

	*ret_ns = 0;
	for (i = 0; i < SUTRO_CLASSES; i++) {
		nr = probe->sent[i] - device->done[i];
		if (!nr || sutro_probe_is_of(probe, i))
			continue;
		all += nr;
		*ret_ns += nr * sutro_cost_class_ns(device, i);
	}
	return all;
}

/**
 * sutro_probe_is_spoilt - are too many requests of other classes at the device?
 * @probe:	the leaf's probes, one of which is active
 * @device:	state of the leaf
 *
 * Return: true while completions cannot be counted.
 */
bool sutro_probe_is_spoilt(const struct sutro_probe *probe,
			   const struct sutro_device *device)
{
	u64 ns;

	sutro_guest_in_flight(probe, device, &ns);
	return ns > SUTRO_GUEST_NS;
}

/**
 * sutro_probe_has_room - may a request of the probed class be sent?
 * @probe:	the leaf's probes, one of which is active
 * @device:	state of the leaf
 */
bool sutro_probe_has_room(const struct sutro_probe *probe,
			  const struct sutro_device *device)
{
	u32 nr;
	u64 ns;

	/* Guests leave room for requests of the class. */
	nr = sutro_guest_in_flight(probe, device, &ns);
	return sutro_probe_in_flight(probe, device) + nr -
		       min_t(u32, nr, SUTRO_GUESTS) <
	       probe->depth;
}

/* Is a class large, and its cost unknown?  Then the time of its requests cannot be subtracted. */
static bool sutro_guest_is_unknown(const struct sutro_device *device,
				   unsigned int class)
{
	const struct sutro_costs *costs = &device->costs;

	return class < SUTRO_OTHER * SUTRO_SIZES &&
	       sutro_cost_class_bytes(class) >= SUTRO_LINEAR_BYTES &&
	       !(costs->measured & ~costs->bounded & BIT(class)) &&
	       !sutro_cost_is_by_bytes(costs, class);
}

/**
 * sutro_probe_admits - may a group be served in spite of the probe?
 * @probe:	the leaf's probes, one of which is active
 * @device:	state of the leaf
 * @peer:	the group
 * @requests:	requests that it has, queued and in flight
 */
bool sutro_probe_admits(const struct sutro_probe *probe,
			const struct sutro_device *device,
			const struct sutro_peer *peer, u32 requests)
{
	u64 ns;

	/* Requests of the probed class itself wait for room. */
	if (requests > SUTRO_GUEST_REQUESTS ||
	    probe->of[probe->class].no_guests ||
	    sutro_probe_is_of(probe, peer->class) ||
	    sutro_guest_is_unknown(device, peer->class) ||
	    sutro_guest_in_flight(probe, device, &ns) >= SUTRO_GUESTS)
		return false;
	return ns + sutro_cost_class_ns(device, peer->class) <= SUTRO_GUEST_NS;
}
