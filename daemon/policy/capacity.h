/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CAPACITY_H
#define SUTRO_CAPACITY_H

#include "policy/promise.h"

/* Keys of floors, the first of enum promise_key. */
#define CAPACITY_KEYS (PROMISE_WRITE_IOPS_MIN + 1)

/**
 * struct capacity - the rates of a device that all units together can be promised
 * @path: a node, link or mount point, as declared
 * @rate: by the key of the floor, in its unit; 0: not declared
 * @warned: by the key; it was logged that a later line replaces the rate
 * @exceeded: by the key; it was logged that floors exceed the rate
 */
struct capacity {
	char *path;
	uint64_t rate[CAPACITY_KEYS];
	bool warned[CAPACITY_KEYS];
	bool exceeded[CAPACITY_KEYS];
};

/** struct capacities - a list; one for each path */
struct capacities {
	struct capacity *items;
	size_t n;
};

/**
 * capacities_parse() - "/dev/vg/db read=400M write=300M"; "" empties the list
 *
 * It takes the place of an earlier one with the same path.
 * Return: 0; -EINVAL, -ERANGE: nothing has changed; -ENOMEM.
 */
int capacities_parse(struct capacities *l, const char *text);
/** capacities_keep_state() - take over what was logged about the same paths in @before */
void capacities_keep_state(struct capacities *l,
			   const struct capacities *before);
void capacities_done(struct capacities *l);

#endif
