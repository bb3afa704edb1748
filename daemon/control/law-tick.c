/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law.
 *
 * A promise is a minimum of bytes per second of a unit on a logical device. The settings
 * that the kernel has are others: for each cgroup and each leaf a weight, by which
 * siblings divide the leaf's time.
 *
 * 1. The need of a promise (law-promise.c)
 *
 * Between a byte at the logical device and the time it takes on a leaf are stripes,
 * mirrors, parity, hot spots, seeks. There is no model of these. Both ends are measured,
 * and their quotient is the cost, on each leaf by itself:
 *
 *	cost = device time used per second / units per second	(smoothed, 0.6 s)
 *	share = floor * cost
 *
 * Demand, the part of a leaf that a unit would use if it could, limits the need
 * (law-demand.c).
 *
 * 2. The grant (law-share.c)
 *
 * By falling importance, promises of equal importance together: as long as the shares
 * fit on the leaves they are granted. Where they do not fit, all are cut to the same
 * part. A promise that is cut on one leaf is cut on all its leaves alike: on a stripe the
 * slowest leaf decides, and other units can use the rest of its other leaves. A unit
 * without demand gets no grant, and its share stays with the others.
 *
 * 3. From shares to weights (law-weights.c)
 *
 * Level by level from the root. On each, lambda is what a weight of 1 is worth:
 *
 *	sigma_i = min(demand_i, max(granted_i, lambda * nominal_i)),  sum sigma_i = X
 *
 * where X is the share of the cgroup above. A cgroup without a promise keeps exactly its
 * nominal weight. A promised one has the weight granted / lambda, if that is more than
 * nominal. A promised unit that is idle takes no part, but keeps a weight that stands by:
 * with it the unit would get its share if its demand returned at this moment.
 *
 * 4. Correction
 *
 * Feed-forward does the work. A gain for each promise, 1 to 1.6, corrects what
 * remains between a share that was set and one that was received. It grows only while
 * the unit has more demand than it receives, uses its entitlement, and is granted its
 * floor. So the correction does not wind up.
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
 *	1.0 in all. 0.98 can be granted. Each is granted 0.98 of its floor, and phi,
 *	which the bus reports for db, is 0.98.
 */

#include <math.h>

#include "control/law-internal.h"

/* A longer tick means that the caller was suspended. */
#define TICK_MAX_S 5.0
static const char *const states[_CONTROL_STATE_MAX] = {
	[CONTROL_UNKNOWN] = "unknown",
	[CONTROL_IDLE] = "idle",
	[CONTROL_HELD] = "held",
	[CONTROL_SETTLING] = "settling",
	[CONTROL_INFEASIBLE] = "infeasible",
	[CONTROL_LIMITED] = "limited",
	[CONTROL_CROWDED] = "crowded",
	[CONTROL_UNATTRIBUTED] = "unattributed",
	[CONTROL_UNWEIGHTED] = "unweighted",
	[CONTROL_UNOBSERVED] = "unobserved",
	[CONTROL_UNMEASURED] = "unknown-capacity",
};

const char *control_state_to_string(enum control_state s)
{
	return s < _CONTROL_STATE_MAX ? states[s] : "unknown";
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
