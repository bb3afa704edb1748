// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels and a shared bus, as tests/modeldisk has them.
 *
 * A request is cut into pages of 16 KiB, at most that much of each.  A read goes
 * through the channel where its page lies, then over the bus; a write over the
 * bus, then to the channel that is free first.  Each is a FIFO.
 *
 * True device time is the reciprocal of the rate that a saturating stream of
 * such requests reaches alone: max(pages * latency / channels, bytes / bus).
 */
#include "disk.h"

#include <assert.h>
#include <stdlib.h>

#include <linux/minmax.h>

#include "random.h"

#define PAGE_BYTES 16384U

const struct flash_model ssd_default = {
	.size_bytes = 2ULL << 30,
	.channels = 16,
	.read_ns = 80 * NSEC_PER_USEC,
	.write_ns = 200 * NSEC_PER_USEC,
	.bus_kbps = 540000,
	.depth = 32,
};

const struct flash_model nvme_default = {
	.size_bytes = 2ULL << 30,
	.channels = 32,
	.read_ns = 70 * NSEC_PER_USEC,
	.write_ns = 200 * NSEC_PER_USEC,
	.bus_kbps = 3400000,
	.depth = 512,
};

/* A page on its way. */
struct page {
	struct disk *disk;
	struct io *io;
	u32 bytes;
};

u64 flash_true_ns(const struct flash_model *model, enum sutro_op op, u32 bytes)
{
	u64 latency_ns = op == SUTRO_READ ? model->read_ns : model->write_ns;
	u64 pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;

	return max(pages * latency_ns / model->channels,
		   (u64)bytes * NSEC_PER_SEC / 1024 / model->bus_kbps);
}

static void flash_page_done(struct page *page)
{
	struct disk *disk = page->disk;
	struct io *io = page->io;

	free(page);
	if (--io->pages)
		return;
	disk->nr--;
	disk->done(disk->context, io,
		   flash_true_ns(&disk->flash.model, io->op, io->bytes));
}

static void flash_left_bus(void *context, u64 now_ns);

/* The last stage of a read, the first of a write. */
static void flash_to_bus(void *context, u64 now_ns)
{
	struct page *page = context;
	struct flash *flash = &page->disk->flash;

	flash->bus_free_ns =
		max(flash->bus_free_ns, now_ns) +
		(u64)page->bytes * NSEC_PER_SEC / 1024 / flash->model.bus_kbps;
	clock_at(page->disk->clock, flash->bus_free_ns, flash_left_bus, page);
}

static void flash_to_channel(struct page *page, u32 channel, u64 latency_ns,
			     event_fn *then)
{
	struct flash *flash = &page->disk->flash;
	struct clock *clock = page->disk->clock;
	u64 *free_ns = &flash->channel_free_ns[channel];

	*free_ns = max(*free_ns, clock->now_ns) + latency_ns;
	clock_at(clock, *free_ns, then, page);
}

static void flash_written(void *context, u64 now_ns)
{
	flash_page_done(context);
}

static void flash_left_bus(void *context, u64 now_ns)
{
	struct page *page = context;
	struct flash *flash = &page->disk->flash;
	u32 i, first = 0;

	if (page->io->op == SUTRO_READ) {
		flash_page_done(page);
		return;
	}
	for (i = 1; i < flash->model.channels; i++)
		if (flash->channel_free_ns[i] < flash->channel_free_ns[first])
			first = i;
	flash_to_channel(page, first, flash->model.write_ns, flash_written);
}

void flash_submit(struct disk *disk, struct io *io)
{
	const struct flash_model *model = &disk->flash.model;
	u32 i;

	assert(disk->nr < disk->depth);
	disk->nr++;
	io->arrival_ns = disk->clock->now_ns;
	io->pages = (io->bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	for (i = 0; i < io->pages; i++) {
		u64 place = (io->sector << SECTOR_SHIFT) / PAGE_BYTES + i;
		struct page *page = malloc(sizeof(*page));

		assert(page);
		*page = (struct page){
			disk, io, min(PAGE_BYTES, io->bytes - i * PAGE_BYTES)
		};
		if (io->op == SUTRO_READ)
			flash_to_channel(page,
					 random_u64(&place) % model->channels,
					 model->read_ns, flash_to_bus);
		else
			flash_to_bus(page, disk->clock->now_ns);
	}
}

void flash_init(struct disk *disk, struct clock *clock,
		const struct flash_model *model, disk_done_fn *done,
		void *context)
{
	assert(model->channels <= DISK_MAX_CHANNELS);
	*disk = (struct disk){
		.clock = clock,
		.done = done,
		.context = context,
		.size_bytes = model->size_bytes,
		.depth = model->depth,
		.flash = { .model = *model },
	};
}
