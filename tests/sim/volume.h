/* SPDX-License-Identifier: GPL-2.0-only */
/* The device that clients use: leaves, and the map from its bytes to theirs. */
#ifndef SIM_VOLUME_H
#define SIM_VOLUME_H

#include "leaf.h"

/* Leaves of a volume. */
#define MAX_LEAVES 8

/**
 * enum volume_kind - how bytes lie on leaves
 * @VOLUME_STRIPE: chunks in turn; with one leaf, that leaf
 * @VOLUME_LINEAR: one leaf behind the other
 * @VOLUME_MIRROR: all of it on each: writes go to all, a read to the one with the
 *	fewest requests
 */
enum volume_kind {
	VOLUME_STRIPE,
	VOLUME_LINEAR,
	VOLUME_MIRROR,
	VOLUME_KINDS,
};

/**
 * struct volume - one leaf, or some
 * @chunk_bytes: stripe size
 * @leaf_bytes: how much of each leaf it has
 * @first_byte: from where on; on each leaf
 */
struct volume {
	enum volume_kind kind;
	struct leaf *leaf[MAX_LEAVES];
	u32 nr;
	u32 chunk_bytes;
	u64 leaf_bytes;
	u64 first_byte[MAX_LEAVES];
};

/**
 * struct extent - what a request is on one leaf
 * @leaf:	number in the volume
 */
struct extent {
	u32 leaf;
	u64 byte;
	u64 bytes;
};

u64 volume_bytes(const struct volume *volume);
u32 volume_copies(const struct volume *volume, enum sutro_op op);
bool volume_extent(const struct volume *volume, enum sutro_op op, u64 first,
		   u64 last, u32 i, struct extent *ret);

#endif /* SIM_VOLUME_H */
