/* SPDX-License-Identifier: GPL-2.0-only */
/* modeldisk: flash translation layer; modeldisk-ftl.c describes it. */
#ifndef MODELDISK_FTL_H
#define MODELDISK_FTL_H

#include "modeldisk-model.h"

#define MDISK_FLASH_PAGE_BYTES SZ_16K
#define MDISK_BLOCK_PAGES 128
/* In the maps: not there. */
#define MDISK_NO_PAGE U32_MAX

/**
 * struct mdisk_block - pages that are erased together
 * @node: in &mdisk_ftl.free or &mdisk_ftl.closed; the open block is in none
 * @valid: pages that hold data
 */
struct mdisk_block {
	struct list_head node;
	u32 valid;
};

/**
 * struct mdisk_ftl - where the pages of a drive are
 * @nr_pages: logical pages
 * @nr_blocks: physical blocks
 * @free: erased blocks
 * @nr_free: their number
 * @closed: blocks without an erased page, by their valid pages
 * @open: the block that is being written
 * @next: its next erased page
 * @uncharged_ns: the part of the last reclaim that no write is charged with yet
 * @block: all blocks
 * @physical: physical page of each logical page
 * @logical: logical page of each physical page
 */
struct mdisk_ftl {
	u32 nr_pages;
	u32 nr_blocks;
	struct list_head free;
	u32 nr_free;
	struct list_head closed[MDISK_BLOCK_PAGES + 1];
	u32 open;
	u32 next;
	u64 uncharged_ns;
	struct mdisk_block *block;
	u32 *physical;
	u32 *logical;
};

size_t mdisk_ftl_bytes(const struct mdisk_numbers *num);
void mdisk_ftl_init(struct mdisk_drive *drive, struct mdisk_ftl *ftl);
u64 mdisk_ftl_write(struct mdisk_drive *drive, struct mdisk_ftl *ftl, u32 page);
void mdisk_ftl_discard(struct mdisk_ftl *ftl, u64 start, u64 end);

#endif /* MODELDISK_FTL_H */
