// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the bytes of a volume are.
 *
 * On a stripe a request is one piece for each leaf that it touches: its chunks lie
 * side by side there, and would be merged.
 */
#include "volume.h"

#include <assert.h>

#include <linux/minmax.h>

u64 volume_bytes(const struct volume *volume)
{
	return volume->kind == VOLUME_MIRROR ? volume->leaf_bytes
					     : volume->leaf_bytes * volume->nr;
}

/* On how many leaves is each byte of a request? */
u32 volume_copies(const struct volume *volume, enum sutro_op op)
{
	return volume->kind == VOLUME_MIRROR && op == SUTRO_WRITE ? volume->nr
								  : 1;
}

/* The bytes of a leaf that lie before @last. */
static u64 stripe_bytes_before(const struct volume *volume, u32 leaf, u64 last)
{
	u64 chunk = volume->chunk_bytes, row = chunk * volume->nr;
	u64 rest = last % row;

	if (volume->nr == 1)
		return last;
	return last / row * chunk + min(rest - min(rest, leaf * chunk), chunk);
}

static struct extent stripe_extent(const struct volume *volume, u64 first,
				   u64 last, u32 i)
{
	u32 leaf = (first / volume->chunk_bytes + i) % volume->nr;
	u64 byte = stripe_bytes_before(volume, leaf, first);

	return (struct extent){
		.leaf = leaf,
		.byte = byte,
		.bytes = stripe_bytes_before(volume, leaf, last) - byte,
	};
}

static u32 mirror_least_busy(const struct volume *volume)
{
	u32 i, least = 0;

	for (i = 1; i < volume->nr; i++)
		if (volume->leaf[i]->slots_used <
		    volume->leaf[least]->slots_used)
			least = i;
	return least;
}

/**
 * volume_extent - a piece of a request
 * @volume:	where
 * @op:		SUTRO_READ, SUTRO_WRITE, or SUTRO_OTHER: discards
 * @first:	where it begins
 * @last:	and ends
 * @i:		which piece, from 0
 * @ret:	where that is
 *
 * Return: false if there are no more.
 */
bool volume_extent(const struct volume *volume, enum sutro_op op, u64 first,
		   u64 last, u32 i, struct extent *ret)
{
	if (i >= volume->nr)
		return false;
	switch (volume->kind) {
	case VOLUME_STRIPE:
		*ret = stripe_extent(volume, first, last, i);
		break;
	case VOLUME_LINEAR:
		/* Requests do not go across. */
		assert(first / volume->leaf_bytes ==
		       (last - 1) / volume->leaf_bytes);
		*ret = (struct extent){
			.leaf = first / volume->leaf_bytes,
			.byte = first % volume->leaf_bytes,
			.bytes = i ? 0 : last - first,
		};
		break;
	default:
		*ret = (struct extent){ i, first, last - first };
		if (op == SUTRO_READ) {
			ret->leaf = mirror_least_busy(volume);
			ret->bytes = i ? 0 : ret->bytes;
		}
		break;
	}
	ret->byte += volume->first_byte[ret->leaf];
	return ret->bytes;
}
