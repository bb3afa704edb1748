/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CONF_H
#define SUTRO_CONF_H

#include <stdint.h>

#include "host/roots.h"
#include "host/util.h"
#include "policy/capacity.h"
#include "policy/policies.h"

/**
 * struct conf - sutrod.conf and its drop-ins
 * @use: [Leaves] Use=, paths and globs of the devices whose leaves are switched
 * @max_sectors_kb: [Leaves] MaxSectorsKB=, the largest request of flash leaves; 0: as they are
 * @nr_requests: [Leaves] NrRequests=, request slots of a leaf at least; 0: as they are
 * @resync: [Daemon] ResyncWeight=, weights of resync.slice; none: it is not used
 * @capacities: [Capacity] Device=, the rates that devices can promise
 * @refuse: [Capacity] Admission=refuse, SetPolicy fails beyond that
 * @reconcile_usec: [Daemon] ReconcileSec=, time between two full comparisons
 */
struct conf {
	char **use;
	unsigned int max_sectors_kb;
	unsigned int nr_requests;
	struct promises resync;
	struct capacities capacities;
	bool refuse;
	uint64_t reconcile_usec;
};

/**
 * conf_load() - read the main file, then the drop-ins in order of their names
 * @errors: one sentence per mistake is added: file, line, text, allowed values. The assignment
 *	is ignored.
 *
 * Return: 0, or -errno: then @ret is untouched.
 */
int conf_load(const struct roots *roots, struct conf **ret, char ***errors);
struct conf *conf_free(struct conf *c);

/**
 * conf_check() - read one file, the main one or a drop-in, for its mistakes only
 *
 * Return: 0; -ENOENT: it is not there; -ENOMEM.
 */
int conf_check(const char *path, char ***errors);

/** conf_add_resync() - add ResyncWeight= to the settings of RESYNC_UNIT, below those of policies */
int conf_add_resync(const struct conf *c, const char *unit, struct stated *l);

DEFINE_CLEANUP(struct conf *, conf_free);

#endif
