/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: slices on devices that serve many requests at once.
 * sutro-slices.c describes them.  struct sutro_core has this state.
 *
 * Pure C, like sutro-core.h.  The caller serializes all calls.
 */
#ifndef SUTRO_SLICES_H
#define SUTRO_SLICES_H

#include <linux/types.h>

struct sutro_core;
struct sutro_group;
struct sutro_group_protect;

/**
 * struct sutro_slices - have groups slices, and since when?
 * @since_ns:	when they began to have slices the last time
 * @until_ns:	they have slices until then
 * @from_ns:	they are not given slices before
 * @rest_ns:	for how long not after the last try, 0 = slices were worth their price
 * @poor:	in the last trial with slices, groups used less of the device than is allowed
 */
struct sutro_slices {
	u64 since_ns;
	u64 until_ns;
	u64 from_ns;
	u64 rest_ns;
	bool poor;
};

bool sutro_slices_may(struct sutro_core *core, const struct sutro_group *group);
void sutro_slices_prevent(struct sutro_core *core, u64 now_ns);
void sutro_slices_begin(struct sutro_core *core,
			struct sutro_group_protect *own, u64 now_ns);
bool sutro_slices_are_for(const struct sutro_core *core,
			  const struct sutro_group_protect *own);
bool sutro_slices_worth(struct sutro_core *core,
			const struct sutro_group_protect *own);
bool sutro_slices_judge(struct sutro_core *core,
			const struct sutro_group_protect *own, u64 now_ns);

#endif /* SUTRO_SLICES_H */
