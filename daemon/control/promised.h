/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PROMISED_H
#define SUTRO_PROMISED_H

#include "control/admission.h"
#include "policy/capacity.h"

/**
 * struct promised - the part of a declared capacity that floors take
 * @device: NULL while the path leads to none
 * @declared: by the key of the floor; 0 also where a later declaration is for the same device
 * @rate: by the key of the floor
 */
struct promised {
	const struct capacity *capacity;
	const struct device *device;
	uint64_t declared[CAPACITY_KEYS];
	uint64_t rate[CAPACITY_KEYS];
};

/**
 * struct proposed - a unit, and its promises as they would be
 * @hidden: of struct stated
 */
struct proposed {
	const char *unit;
	const struct promises *promises;
	const struct promises *hidden;
};

/**
 * promised_sum() - the floors of all units on devices with a declared capacity
 * @proposed, @n: units whose promises would be others; of a unit the first entry counts
 * @ret: one for each of @l, to be freed
 */
int promised_sum(const struct admission_base *base, const struct capacities *l,
		 const struct proposed *proposed, size_t n,
		 struct promised **ret);

/**
 * promised_warn() - log, once, declarations that do not hold
 *
 * A later one is for the same device.
 */
void promised_warn(const struct machine *m, struct capacities *l);

/**
 * promised_report() - log, once, devices whose floors exceed the capacity, and when they fit again
 *
 * The floors may come from any file. Return: 0 or -ENOMEM.
 */
int promised_report(const struct admission_base *base, struct capacities *l);

/** promised_judge() - judge the devices of @a by their declared capacities, too */
int promised_judge(struct admission *a, const struct capacities *l);

#endif
