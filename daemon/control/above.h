/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ABOVE_H
#define SUTRO_ABOVE_H

#include "control/evidence.h"

/**
 * struct above - a queue above the leaves that has no weights
 * @at: the device that has it; NULL: there is none
 * @bytes: of the unit in a queue of dm-crypt
 * @lost_bytes: that it wrote to dm-crypt before, and that do not wait
 * @passed_bytes: counters of the unit above and below dm-crypt; their sum grows while writes pass
 */
struct above {
	const struct device *at;
	uint64_t bytes;
	uint64_t lost_bytes;
	uint64_t passed_bytes;
};

/** above_find() - the queue at or below @d in which requests of the unit of @f wait */
struct above above_find(const struct evidence *e, const struct governed *f,
			const struct device *d);

/** above_follow() - bytes that have waited for too long count as lost from now on
 * @above: as found in this tick; empty if its bytes are lost
 */
void above_follow(const struct evidence *e, struct governed *f,
		  struct above *above);

/**
 * above_is_sure() - is what above_find() has found evidence?
 *
 * It is not where owners are lost below dm-crypt. This reads a file of each cgroup at the top.
 */
bool above_is_sure(const struct evidence *e, const struct above *above);

/** above_crypt() - a device of dm-crypt at or below @d, NULL: there is none */
const struct device *above_crypt(const struct device *d);

#endif
