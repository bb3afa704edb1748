/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_RANKING_H
#define SUTRO_EXPORTER_RANKING_H

#include "exporter/state.h"
#include "exporter/uses.h"

/* Cgroups with a series each, beyond which those that used the least are left out. */
#define RANKING_MOST 200U
/* The longest time between two rankings. */
#define RANKING_USEC (60 * 1000000ULL)

/**
 * struct ranking - the choice of cgroups for one scrape after the other
 * @most: of cgroups; SIZE_MAX: all
 * @n_omitted: cgroups with counters that were left out
 * @kept: those that were chosen, if some were left out
 * @has_others: of the uses then
 * @promised: of the promises then, the cgroups, in the order of the daemon
 * @until_usec: when the choice is made again
 */
struct ranking {
	size_t most;
	size_t n_omitted;
	struct folders kept;
	bool has_others;
	char **promised;
	size_t n_promised;
	uint64_t until_usec;
};

/**
 * ranking_read() - the counters of the chosen cgroups, with weights
 * @promises: cgroups with a promise come first, then those that used the most
 * @now_usec: of the monotonic clock
 *
 * To rank cgroups, the files of all are read: once in RANKING_USEC, when other ones than before
 * have a promise, and when a first leaf has another scheduler. In between only the files of those
 * that were chosen are read.
 */
int ranking_read(struct ranking *r, int hierarchy, struct leaves *leaves,
		 const struct state_promise *promises, size_t n_promises,
		 uint64_t now_usec, struct uses *ret);
void ranking_done(struct ranking *r);

#endif
