/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PLANT_H
#define SUTRO_PLANT_H

#include "control/context.h"
#include "control/governed.h"
#include "control/law.h"
#include "control/prior.h"

/**
 * struct plant - the cgroups, leaves and floors that the control law works on
 * @control: their counterparts in the law
 * @nodes: cgroup of each node; NULL when it is gone
 * @leaves: numbers of the leaves
 * @leaf_seqs: their diskseq
 * @busy_ms: of each leaf, when it was read last
 * @priors: costs of floors that were in this plant, or in that of a predecessor
 */
struct plant {
	struct control *control;
	struct cgroup **nodes;
	size_t n_nodes;
	dev_t *leaves;
	uint64_t *leaf_seqs;
	uint64_t *busy_ms;
	size_t n_leaves;
	struct governed *floors;
	size_t n_floors;
	struct priors priors;
};

/**
 * plant_make() - make the plant again for the present cgroups, policies and devices
 * @keep_lines: leave the lines of a predecessor alone
 *
 * Costs and the state of the loops are taken from the former plant.
 */
int plant_make(struct plant *plant, const struct control_context *context,
	       bool keep_lines);
void plant_free(struct plant *plant);

/* In /run/sutro; it has what a unit of each floor costs. */
#define PLANT_FILE "learnt"

/** plant_load() - read the costs that a predecessor measured from /run/sutro */
int plant_load(struct plant *plant, const struct machine *machine);

/**
 * plant_remember() - take over measured costs into the priors
 * @c: of its floors; NULL: of all
 */
int plant_remember(struct plant *plant, const struct machine *machine,
		   const struct cgroup *c);

/** plant_save() - remember the costs of all floors, write the priors to /run/sutro */
int plant_save(struct plant *plant, const struct machine *machine);

/** plant_find() - the floor of @c for this key and path, NULL: there is none */
const struct governed *plant_find(const struct plant *plant,
				  const struct cgroup *c,
				  const struct promise *p);

/**
 * plant_find_like() - a floor with known costs, as an estimate for another floor
 *
 * For @key of @c on @d: its own; else, among other cgroups, the one with the highest
 * cost. NULL: there is none.
 */
const struct governed *plant_find_like(const struct plant *plant,
				       const struct cgroup *c,
				       enum promise_key key,
				       const struct device *d);

/** plant_leaf() - number of @leaf in the plant, CONTROL_NONE: it is not in it */
uint32_t plant_leaf(const struct plant *plant, const struct device *leaf);

/**
 * plant_traffic() - number of the traffic that a floor is about
 *
 * Floors about the same bytes have the same number: bandwidth and IOPS of the reads of
 * one device are kept with one share.
 */
uint32_t plant_traffic(const struct topology *t, const struct device *d,
		       enum promise_key key);

#endif
