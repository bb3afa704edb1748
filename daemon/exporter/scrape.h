/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_SCRAPE_H
#define SUTRO_EXPORTER_SCRAPE_H

#include "exporter/ranking.h"

/**
 * struct scrape - the input of the metrics
 * @state: of sutrod
 * @uses: counters of cgroups; their folders are those of the ranking
 * @n_omitted: cgroups that are not among @uses
 * @iocost: nodes of leaves on which io.cost of the kernel is enabled: these have weights, too
 */
struct scrape {
	struct state state;
	struct leaves leaves;
	struct uses uses;
	size_t n_omitted;
	char **iocost;
};

/**
 * scrape_take() - read the counters
 * @root: "" for this machine; the directory of a fake one
 * @state: is taken over, also with an error
 * @ranking: chooses the cgroups; it is in use until scrape_done()
 */
int scrape_take(const char *root, const struct state *state,
		struct ranking *ranking, struct scrape *ret);
void scrape_done(struct scrape *s);

#endif
