/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: measuring the cost of a class of requests on a device that
 * serves many at once (sutro-probe.c).
 *
 * Pure C, like sutro-core.h.  Context: the dispatcher; functions that take a
 * struct sutro_device also need the lock of that, or, where it is const, may see it
 * as it was a completion ago.
 */
#ifndef SUTRO_PROBE_H
#define SUTRO_PROBE_H

#include <linux/list.h>

#include "sutro-core.h"
#include "sutro-cost.h"

/* Results of a class that are remembered. */
#define SUTRO_PROBE_RESULTS 8
/* See &sutro_probe_class.result: of a class with enough requests, and of one with too few. */
#define SUTRO_PROBE_SPARE_NONE 16U
#define SUTRO_PROBE_SPARE_MOST 32U
/* The shortest pause between two probes of a class. */
#define SUTRO_PROBE_INTERVAL_MIN_NS (125 * 1000 * 1000ULL)
/* A class with this many requests may be in use, even if none of them waits. */
#define SUTRO_PROBE_BUSY 8
/* The whole device, of which a peer has its share. */
#define SUTRO_PROBE_WHOLE 0x100000U

/**
 * struct sutro_peer - a group among those whose requests are of one class
 * @node:	place in &sutro_probe.peers, empty while nothing is queued
 * @class:	of the request that it queued last
 * @classes:	a bit for each class of which it has queued requests since it had none
 * @repaid_ns:	when it will have been entitled to the device time that it has given for probes
 */
struct sutro_peer {
	struct list_head node;
	u16 class;
	u16 classes;
	u64 repaid_ns;
};

/**
 * struct sutro_probe_class - measurements of a class
 * @due_ns:	when it should be measured again
 * @interval_ns: pause between two probes
 * @depth:	requests in flight with which it saturates the device, 0 if not known
 * @units:	their mean size in 1/SUTRO_UNIT of a request of the class
 * @probes:	how many ended with a result, or were given up beside protected groups while
 *		the cost was known; those from before a change of the device count as one
 * @failures:	how many in a row ended without
 * @mixed:	the next probe is of both directions
 * @paired:	the last result is that of the mate, too
 * @unsaturated: there never were enough requests
 * @no_guests:	those of other groups took most of the time of its last probe
 * @bounded:	nor nearly enough: its cost is estimated (sutro-result.c)
 * @differs:	the last result is far from the cost that the ones before led to
 * @changed_ns:	when results from before were last dropped, 0 if never
 * @took_ns16:	how long each request took by its results
 * @least_ns:	time of the fastest one in recent probes, 0 if not known
 * @most_ns16:	the most that it costs: @took_ns16 / @most_depth
 * @likely_ns16: less, if the last step of the ramp shows that the device could work on more
 * @most_depth:	with this many in flight
 * @nr:		valid results
 * @next:	place of the next one
 * @result:	cost in 1/16 ns, with how many in flight and when it was found; @spare16: the device
 *		could work on this many sixteenths of those in flight (sutro_probe_spare16())
 */
struct sutro_probe_class {
	u64 due_ns;
	u64 interval_ns;
	u32 depth;
	u32 units;
	u32 probes;
	u32 failures;
	bool mixed;
	bool paired;
	bool unsaturated;
	bool no_guests;
	bool bounded;
	bool differs;
	u64 changed_ns;
	u64 took_ns16;
	u64 least_ns;
	u64 most_ns16;
	u64 likely_ns16;
	u32 most_depth;
	u32 nr;
	u32 next;
	struct {
		u64 ns16;
		u64 at_ns;
		u32 depth;
		u32 spare16;
	} result[SUTRO_PROBE_RESULTS];
};

/**
 * struct sutro_probe - which class is measured, and when the next one
 * @limit:	requests that the device takes; the caller may change it. 0: no probes
 * @active:	a probe is going on
 * @guessing:	costs of requests that wait were never measured, nor was that tried, or they are
 *		from before a change of the device
 * @class:	of this class
 * @depth:	requests that are kept in flight
 * @mixed:	requests of its mate (sutro_cost_mate()) are sent, too
 * @paired:	the last step measured the mate as well
 * @by_bytes:	it is the first one of its class, the cost of which follows from its bytes
 * @ramping:	its depth is being looked for
 * @rare:	set by the caller: a probe disturbs groups that are protected
 * @equal:	set by the caller: all groups that compete at the highest level weigh the same
 * @wide:	set by the caller: the part of @depth_ns beyond the latency that may be in flight,
 *		of SUTRO_WIDE_WHOLE
 * @reserved:	set by the caller: a probe may take time that is reserved
 * @dry:	set by the caller: nothing waited, so the device had room for more
 * @turns:	times that it went on with the other direction
 * @waits_from:	@done of the probed requests when its depth was set
 * @most:	of them, in flight since then
 * @half_ns16:	cost that was measured at half of @depth, 0 if none
 * @took_ns:	how long its requests took in the first step, 0 if none has ended
 * @depth_ns:	device time in flight that the classes in use need, 0 if not known
 * @depth_equal: weights were @equal when that was set
 * @half_spare16: and for how much more that had room, as &sutro_probe_class.result
 * @flat:	requests were no cheaper at half of @depth than at a quarter
 * @begin_ns:	when it began
 * @check_ns:	when to look for a class that is due
 * @end_ns:	when the last probe ended
 * @lasted_ns:	how long it took
 * @sent:	requests of each class that were dispatched, ever
 * @mark:	@sent at @mark_ns
 * @mark_ns:	when it was last looked which classes are used
 * @used:	a bit for each of these
 * @peers:	backlogged groups by class
 * @of:		by class
 */
struct sutro_probe {
	u32 limit;
	bool active;
	bool guessing;
	unsigned int class;
	u32 depth;
	bool mixed;
	bool paired;
	bool by_bytes;
	bool ramping;
	bool rare;
	bool equal;
	u32 wide;
	bool reserved;
	bool dry;
	u32 turns;
	u32 waits_from;
	u32 most;
	u64 half_ns16;
	u64 took_ns;
	u64 depth_ns;
	bool depth_equal;
	u32 half_spare16;
	bool flat;
	u64 begin_ns;
	u64 check_ns;
	u64 end_ns;
	u64 lasted_ns;
	u32 sent[SUTRO_CLASSES];
	u32 mark[SUTRO_CLASSES];
	u64 mark_ns;
	u32 used;
	struct list_head peers[SUTRO_CLASSES];
	struct sutro_probe_class of[SUTRO_CLASSES];
};

void sutro_probe_init(struct sutro_probe *probe, u32 limit);
void sutro_probe_step(struct sutro_probe *probe, struct sutro_device *device,
		      u64 now_ns);
void sutro_probe_tunables(const struct sutro_probe *probe,
			  const struct sutro_device *device,
			  struct sutro_tunables *tunables);
bool sutro_probe_starved(struct sutro_probe *probe, struct sutro_device *device,
			 u64 now_ns);

/* sutro-guest.c */
u32 sutro_probe_in_flight(const struct sutro_probe *probe,
			  const struct sutro_device *device);
bool sutro_probe_is_spoilt(const struct sutro_probe *probe,
			   const struct sutro_device *device);
bool sutro_probe_has_room(const struct sutro_probe *probe,
			  const struct sutro_device *device);
bool sutro_probe_admits(const struct sutro_probe *probe,
			const struct sutro_device *device,
			const struct sutro_peer *peer, u32 requests);

/* Are probes of a class rare, for protected groups?  Not before its first result after a change. */
static inline bool sutro_probe_is_rare(const struct sutro_probe *probe,
				       unsigned int class)
{
	const struct sutro_probe_class *of = &probe->of[class];

	return probe->rare && !(of->probes == 1 && !of->nr);
}

/* sutro-due.c */
bool sutro_probe_is_by_bytes(const struct sutro_probe *probe,
			     const struct sutro_device *device,
			     unsigned int class);
int sutro_probe_due(struct sutro_probe *probe, struct sutro_device *device,
		    u64 now_ns);

/* sutro-result.c */
u32 sutro_probe_spare16(const struct sutro_probe *probe, u64 ns16, u32 depth);
u64 sutro_probe_stepped(struct sutro_probe *probe,
			const struct sutro_device *device);
void sutro_probe_learn(struct sutro_probe *probe, struct sutro_device *device,
		       u64 now_ns);

/* sutro-peer.c */
void sutro_peer_init(struct sutro_peer *peer);
void sutro_probe_join(struct sutro_probe *probe, struct sutro_peer *peer,
		      unsigned int class);
void sutro_probe_leave(struct sutro_peer *peer);
struct sutro_peer *sutro_probe_pick(struct sutro_probe *probe, u64 now_ns);
void sutro_probe_gave(struct sutro_probe *probe, struct sutro_peer *peer,
		      u64 cost_ns, u64 share, u64 now_ns);

/* Are requests of a class counted in the probe? */
static inline bool sutro_probe_is_of(const struct sutro_probe *probe,
				     unsigned int class)
{
	return class == probe->class ||
	       (probe->mixed && class == sutro_cost_mate(probe->class));
}

/**
 * sutro_probe_look - is it time for sutro_probe_step()?
 * @probe:	the leaf's probes
 * @now_ns:	the time
 *
 * Return: true during a probe, and every 10 ms otherwise.
 */
static inline bool sutro_probe_look(const struct sutro_probe *probe, u64 now_ns)
{
	return probe->active || (s64)(now_ns - probe->check_ns) >= 0;
}

static inline void sutro_probe_sent(struct sutro_probe *probe,
				    unsigned int class)
{
	probe->sent[class]++;
}

#endif /* SUTRO_PROBE_H */
