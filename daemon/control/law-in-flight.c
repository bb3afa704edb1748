/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The control law: the share of a leaf by requests in flight, where traffic moves.
 *
 * A mirror sends a read to the disk with the fewest requests, which is the one that has just ended
 * one. So a unit's requests stay at a disk, or within 0.15 s all of them go to another. There they
 * wait, and the device time that the unit uses is small because its share is. The leaf shall
 * have the part of the floor that follows from the distribution of the requests:
 *
 *	share = floor * cost * (requests here / all requests - IN_FLIGHT_CHANCE)
 *
 *	A unit has 32 reads in flight on two disks, and a floor that takes 0.6 of a disk. If
 *	all of them wait on the second one, its share there is 0.9 * 0.6.
 *
 * It is a margin (law-share.c). Above IN_FLIGHT_UNTIL of the floor it gets smaller: a unit that is
 * limited by another leaf would get half more than its floor.
 */

#include <math.h>

#include "control/law-internal.h"

/* Requests in flight are this much more on one leaf by chance, as a part of all. */
#define IN_FLIGHT_CHANCE 0.1
/* Their distribution counts in full up to this part of the floor, and not at all from the other. */
#define IN_FLIGHT_UNTIL 1.1
#define IN_FLIGHT_NONE 1.3

double law_share_in_flight(const struct control *c, const struct promise *p,
			   const struct link *k)
{
	double cost = 0, all = 0, here, counts;

	if (!p->pub.wandering)
		return 0;
	for (uint32_t i = 0; i < p->n_links; i++) {
		cost += control_cost_bounded(p, &p->links[i]);
		all += cell_of(c, p->pub.node, p->links[i].leaf)->use.pending;
	}
	if (!(all > 0))
		return 0;
	here = cell_of(c, p->pub.node, k->leaf)->use.pending / all -
	       IN_FLIGHT_CHANCE;
	counts = (IN_FLIGHT_NONE - p->steady_rate / p->pub.floor) /
		 (IN_FLIGHT_NONE - IN_FLIGHT_UNTIL);
	return p->pub.floor * cost * fmax(here, 0) * clampd(counts, 0, 1);
}
