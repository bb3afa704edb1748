// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: the data
 *
 * A sparse array of pages, indexed by byte offset / PAGE_SIZE. A page that was
 * never written, or was discarded, is absent and reads as zeros; writing zeros
 * there makes none. Example: a 4 KiB write at sector 12 (bytes
 * 6144..10239) makes pages 1 and 2; a discard of sectors 8..23 removes both; a discard of
 * sectors 8..16 removes page 1 and zeroes the first sector of page 2.
 *
 * Copies run without a lock, under RCU: two requests in flight for the same
 * bytes race, as they do on a disk, and a discarded page is freed after a grace
 * period.
 */
#include <linux/bio.h>
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "modeldisk.h"

/* At most 4 MiB are taken between two looks. */
#define MEMORY_CHECK_PAGES 1024
/* 1/16 of the memory is left to others. */
#define MEMORY_RESERVE_SHARE 16

static void mdisk_page_free_rcu(struct rcu_head *head)
{
	__free_page(container_of(head, struct page, rcu_head));
}

/*
 * A disk may be larger than memory, and must not take all of it. The check runs once
 * in MEMORY_CHECK_PAGES pages, because it is not cheap.
 */
static bool mdisk_memory_low(struct mdisk *disk)
{
	if (atomic_inc_return(&disk->pages_made) % MEMORY_CHECK_PAGES == 0 ||
	    disk->memory_low)
		disk->memory_low =
			si_mem_available() <
			(long)totalram_pages() / MEMORY_RESERVE_SHARE;
	return disk->memory_low;
}

/* Makes a zeroed page. Context: RCU read side. */
static struct page *mdisk_page_make(struct mdisk *disk, unsigned long index)
{
	const gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN;
	struct page *page, *other;

	if (mdisk_memory_low(disk))
		return NULL;
	page = alloc_page(gfp | __GFP_ZERO);
	if (!page)
		return NULL;
	other = xa_cmpxchg(&disk->pages, index, NULL, page, gfp);
	if (!other)
		return page;
	__free_page(page);
	return xa_is_err(other) ? NULL : other;
}

/* Within one page. Zeros need none. Context: RCU read side. */
static int mdisk_page_write(struct mdisk *disk, u64 offset, void *from, u32 len)
{
	unsigned long index = offset >> PAGE_SHIFT;
	struct page *page = xa_load(&disk->pages, index);

	if (!page) {
		if (!memchr_inv(from, 0, len))
			return 0;
		page = mdisk_page_make(disk, index);
		if (!page)
			return -ENOMEM;
	}
	memcpy_to_page(page, offset_in_page(offset), from, len);
	return 0;
}

static int mdisk_store_write(struct mdisk *disk, u64 offset, struct bio_vec *bv)
{
	void *from = bvec_kmap_local(bv);
	u32 done = 0;
	int ret = 0;

	while (done < bv->bv_len && !ret) {
		u32 len = min_t(u32, bv->bv_len - done,
				PAGE_SIZE - offset_in_page(offset));

		ret = mdisk_page_write(disk, offset, from + done, len);
		offset += len;
		done += len;
	}
	kunmap_local(from);
	return ret;
}

static void mdisk_store_read(struct mdisk *disk, u64 offset, struct bio_vec *bv)
{
	void *to = bvec_kmap_local(bv);
	u32 done = 0;

	while (done < bv->bv_len) {
		u32 at = offset_in_page(offset);
		u32 len = min_t(u32, bv->bv_len - done, PAGE_SIZE - at);
		struct page *page = xa_load(&disk->pages, offset >> PAGE_SHIFT);

		if (page)
			memcpy_from_page(to + done, page, at, len);
		else
			memset(to + done, 0, len);
		offset += len;
		done += len;
	}
	flush_dcache_page(bv->bv_page);
	kunmap_local(to);
}

static void mdisk_store_clear(struct mdisk *disk, u64 offset, u64 bytes)
{
	u64 end = offset + bytes;

	while (offset < end) {
		u32 at = offset_in_page(offset);
		u32 len = min_t(u64, end - offset, PAGE_SIZE - at);
		unsigned long index = offset >> PAGE_SHIFT;
		struct page *page;

		if (len == PAGE_SIZE) {
			/* over holes in one step: a discard may cover the whole disk */
			page = xa_find(&disk->pages, &index,
				       (end >> PAGE_SHIFT) - 1, XA_PRESENT);
			if (page) {
				xa_erase(&disk->pages, index);
				call_rcu(&page->rcu_head, mdisk_page_free_rcu);
				offset = ((u64)index + 1) << PAGE_SHIFT;
			} else {
				offset = round_down(end, PAGE_SIZE);
			}
			continue;
		}
		page = xa_load(&disk->pages, index);
		if (page)
			memzero_page(page, at, len);
		offset += len;
	}
}

/**
 * mdisk_store_request - move the data of a request
 * @disk: the disk
 * @rq: any request
 *
 * Return: 0, or -ENOMEM when a part of a write could not be stored; it may be repeated
 */
int mdisk_store_request(struct mdisk *disk, struct request *rq)
{
	u64 offset = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	struct req_iterator iter;
	struct bio_vec bv;
	struct bio *bio;
	int ret = 0;

	switch (req_op(rq)) {
	case REQ_OP_READ:
		rcu_read_lock();
		rq_for_each_segment(bv, rq, iter) {
			mdisk_store_read(disk, offset, &bv);
			offset += bv.bv_len;
		}
		rcu_read_unlock();
		break;
	case REQ_OP_WRITE:
		rcu_read_lock();
		rq_for_each_segment(bv, rq, iter) {
			ret = mdisk_store_write(disk, offset, &bv);
			if (ret)
				break;
			offset += bv.bv_len;
		}
		rcu_read_unlock();
		break;
	case REQ_OP_DISCARD:
		/* Ranges of a request may be in any order, with gaps. */
		__rq_for_each_bio(bio, rq) {
			offset = bio->bi_iter.bi_sector << SECTOR_SHIFT;
			mdisk_store_clear(disk, offset, bio->bi_iter.bi_size);
		}
		break;
	case REQ_OP_WRITE_ZEROES:
		mdisk_store_clear(disk, offset, blk_rq_bytes(rq));
		break;
	default:
		break;
	}
	return ret;
}

/**
 * mdisk_store_init - an empty disk
 * @disk: the disk
 */
void mdisk_store_init(struct mdisk *disk)
{
	/* allocation and erasure happen in any context but interrupts */
	xa_init(&disk->pages);
}

/**
 * mdisk_store_free - drop all data
 * @disk: a disk that is offline
 */
void mdisk_store_free(struct mdisk *disk)
{
	struct page *page;
	unsigned long index;

	xa_for_each(&disk->pages, index, page) {
		__free_page(page);
		if (!(index & 1023))
			cond_resched();
	}
	xa_destroy(&disk->pages);
}
