/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ABOVE_H
#define SUTRO_ABOVE_H

#include "control/evidence.h"

/**
 * struct above - a queue above the leaves that has no weights
 * @at: the device that has it; NULL: there is none
 * @bytes: of the unit in a queue of dm-crypt
 */
struct above {
	const struct device *at;
	uint64_t bytes;
};

/** above_find() - the queue at or below @d in which requests of the unit of @f wait */
struct above above_find(const struct evidence *e, const struct governed *f,
			const struct device *d);

/**
 * above_is_sure() - is what above_find() has found evidence?
 *
 * It is not where owners are lost below dm-crypt. This reads a file of each cgroup at the top.
 */
bool above_is_sure(const struct evidence *e, const struct above *above);

/** above_crypt() - a device of dm-crypt at or below @d, NULL: there is none */
const struct device *above_crypt(const struct device *d);

#endif
