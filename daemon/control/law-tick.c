/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law.
 *
 * A promise says: this unit gets at least so many bytes per second from that logical
 * device. What can be set is something else: for each cgroup and each leaf a weight,
 * by which siblings divide the leaf's time.
 *
 * 1. What a promise needs (law-promise.c)
 *
 * Between a byte at the logical device and the time it takes on a leaf are stripes,
 * mirrors, parity, hot spots, seeks. None of it is modelled. Both ends are measured,
 * and their quotient is the cost, on each leaf by itself:
 *
 *	cost = device time used per second / units per second	(smoothed, 0.6 s)
 *	share = floor * cost
 *
 * 2. What it is granted (law-share.c)
 *
 * By falling importance, promises of equal importance together: as long as the shares
 * fit on the leaves they are granted. Where they do not, all are cut to the same
 * part; one that is cut on a leaf is cut on all its leaves alike, for on a stripe the
 * slowest leaf decides, and what the others would have is free for somebody else.
 * Who does not ask for his share does not get it: it stays with the others.
 *
 * 3. From shares to weights (law-weights.c)
 *
 * Level by level from the root. On each, lambda is what a weight of 1 is worth:
 *
 *	sigma_i = min(demand_i, max(granted_i, lambda * nominal_i)),  sum sigma_i = X
 *
 * where X is the share of the cgroup above. Who has no promise keeps its nominal
 * weight, to the unit; who has one is given granted / lambda, if that is more than
 * nominal. A promised unit that is idle takes no part, but has a weight standing by
 * with which it would get its share if it came back this moment.
 *
 * 4. Correction
 *
 * Feed-forward does the work. A gain for each promise, 1 to 1.6, corrects what
 * remains between a share that was set and one that was received. It grows only while
 * the unit asks for more than it gets, uses what it is entitled to, and is granted
 * its floor, so that nothing winds up.
 *
 * Example. A stripe over two disks, each 150 MB/s. db (weight 100) has a floor of
 * 180 MB/s on it; four others of weight 1000 read without end.
 *
 *	In the first tick db gets 1/41 of the disks: 7.3 MB/s, for 0.0244 s/s of
 *	device time on each. So a byte costs 3.33 ns on each disk (half of it is there,
 *	at 6.67 ns), and 180 MB/s are a share of 0.6.
 *	It is granted 0.6, and 4 % more against errors: 0.624. The others divide
 *	1 - 0.624 = 0.376 by 4000, so lambda is 0.000094,
 *	and db's weight is 0.624 / 0.000094 = 6638. The others keep their 1000.
 *	6638 / (6638 + 4000) is 0.624. 250 ms later db gets 187 MB/s.
 *
 *	db stops. Nothing of it is granted: the others have the disks. Its weight
 *	stands by at 0.624 / (1 - 0.624) * 4000 = 6638, as before.
 *
 *	A second unit, as important, has a floor of 120 MB/s on the same stripe: 0.4,
 *	1.0 in all. 0.98 is there to be granted. Each is granted 0.98 of its floor,
 *	which db is told: phi is 0.98.
 */

#include <math.h>

#include "control/law-internal.h"

/* A tick longer than this was a pause of the caller. */
#define TICK_MAX_S 5.0
static const struct {
	const char *word;
	const char *cause;
} states[_CONTROL_STATE_MAX] = {
	[CONTROL_UNKNOWN] = { "unknown", "" },
	[CONTROL_IDLE] = { "idle", "" },
	[CONTROL_HELD] = { "held", "" },
	[CONTROL_SETTLING] = { "settling",
			       "It is short of its floor since a moment ago." },
	[CONTROL_INFEASIBLE] = { "infeasible",
				 "The floors on a disk add up to more than it "
				 "can do." },
	[CONTROL_LIMITED] = { "limited",
			      "It has too few requests on their way to use the "
			      "share that it has." },
	[CONTROL_CROWDED] = { "crowded",
			      "The unit's other traffic on the same disks "
			      "takes its share." },
	[CONTROL_UNATTRIBUTED] = { "unattributed",
				   "Its requests are served, but a layer "
				   "between charges their device time to "
				   "somebody else." },
	[CONTROL_UNWEIGHTED] = { "unweighted",
				 "The scheduler of a disk has no weights." },
	[CONTROL_UNOBSERVED] = { "unobserved",
				 "Nothing measures the latencies of its "
				 "requests." },
	[CONTROL_UNMEASURED] = { "unknown-capacity",
				 "The capacity of the device for its requests "
				 "is unknown until it uses the device." },
};

const char *control_state_to_string(enum control_state s)
{
	return s < _CONTROL_STATE_MAX ? states[s].word : "unknown";
}

const char *control_state_cause(enum control_state s)
{
	return s < _CONTROL_STATE_MAX ? states[s].cause : "";
}

void control_tick(struct control *c, double dt_s)
{
	if (!(dt_s > 0))
		return;
	dt_s = fmin(dt_s, TICK_MAX_S);
	control_observe(c, dt_s);
	control_measure(c, dt_s);
	control_allot(c);
	control_judge(c, dt_s);
	control_reserve_all(c, dt_s);
	control_weigh(c, dt_s);
}
