/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts and sections of reserved windows (sutro-section.c). */
#ifndef SUTRO_SECTION_H
#define SUTRO_SECTION_H

#include "sutro-core.h"

u64 sutro_window_round_ns(const struct sutro_protect *protect, u32 depth);
u64 sutro_apart_shares(const struct sutro_protect *protect);
u64 sutro_apart_share(const struct sutro_group_protect *own, u64 shares,
		      u64 whole);
void sutro_section_begin(struct sutro_protect *protect);
bool sutro_section_ends(struct sutro_protect *protect);
u64 sutro_section_end_ns(const struct sutro_protect *protect);

#endif /* SUTRO_SECTION_H */
