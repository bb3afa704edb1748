// SPDX-License-Identifier: GPL-2.0-only
/*
 * One actuator, as tests/modeldisk has it.
 *
 * A place is told as media time: what the head needs from sector 0 to there.
 * Media time / revolution is the track, media time mod revolution the angle.
 * A request is served in three parts: the seek, min + (max - min) * sqrt(part of
 * the disk); the rotation to its first sector; the transfer.  True device time
 * is the actuator's.
 *
 * After a read the drive reads on while it has nothing else to do.  A read that
 * continues there is answered when its data have passed the head, and its device
 * time is the media time from the end of the last one to its own.
 */
#include "disk.h"

#include <assert.h>
#include <math.h>

#include <linux/minmax.h>
#include <linux/string.h>

const struct hdd_model hdd_default = {
	.size_bytes = 2ULL << 30,
	.rpm = 7200,
	.seek_min_ns = 500 * NSEC_PER_USEC,
	.seek_max_ns = 10500 * NSEC_PER_USEC,
	.bandwidth_kbps = 150000,
	.overhead_ns = 30 * NSEC_PER_USEC,
	.sptf = true,
	.age_limit_ns = 1000 * NSEC_PER_MSEC,
	.readahead_bytes = 2 << 20,
	.depth = 32,
};

/* What serving a request would mean. */
struct plan {
	u64 reach_ns; /* first sector passes the head */
	u64 media_ns; /* last sector has passed it */
	u64 finish_ns;
	u64 true_ns;
};

static u64 hdd_end(const struct io *io)
{
	return io->sector + (io->bytes >> SECTOR_SHIFT);
}

static u64 hdd_media_ns(const struct hdd *hdd, u64 sector)
{
	/* 512 bytes / (1024 bytes * kbps / s) */
	return sector * (NSEC_PER_SEC / 2) / hdd->model.bandwidth_kbps;
}

static u64 hdd_revolution_ns(const struct hdd *hdd)
{
	return 60 * NSEC_PER_SEC / hdd->model.rpm;
}

static u64 hdd_seek_ns(const struct hdd *hdd, u64 to_sector)
{
	const struct hdd_model *model = &hdd->model;
	u64 revolution_ns = hdd_revolution_ns(hdd);
	s64 from = hdd_media_ns(hdd, hdd->head_sector) / revolution_ns;
	s64 to = hdd_media_ns(hdd, to_sector) / revolution_ns;
	u64 tracks = hdd_media_ns(hdd, model->size_bytes >> SECTOR_SHIFT) /
			     revolution_ns +
		     1;
	double part = fabs((double)(to - from)) / tracks;

	if (from == to)
		return 0;
	return model->seek_min_ns +
	       (model->seek_max_ns - model->seek_min_ns) * sqrt(part);
}

/* From a time on: until a sector is under the head, on the right track. */
static u64 hdd_rotation_ns(const struct hdd *hdd, u64 sector, u64 from_ns)
{
	u64 revolution_ns = hdd_revolution_ns(hdd);
	u64 target_ns = hdd_media_ns(hdd, sector) % revolution_ns;
	u64 last_ns = hdd_media_ns(hdd, hdd->head_sector) % revolution_ns;
	u64 turned_ns = (from_ns - hdd->head_ns) % revolution_ns;

	return (target_ns + 2 * revolution_ns - last_ns - turned_ns) %
	       revolution_ns;
}

/* The read-ahead reaches the first sector; a full buffer held the head back. */
static bool hdd_plan_ahead(const struct hdd *hdd, const struct io *io,
			   u64 now_ns, u64 start_ns, struct plan *plan)
{
	u64 window = hdd->model.readahead_bytes >> SECTOR_SHIFT;
	u64 last_ns = hdd_media_ns(hdd, hdd->head_sector);
	u64 read_ns, head_ns;

	if (!hdd->reading_ahead || io->op != SUTRO_READ || !window ||
	    io->sector < hdd->head_sector ||
	    io->sector > hdd->head_sector + window)
		return false;

	read_ns = hdd_media_ns(hdd, hdd_end(io)) - last_ns;
	head_ns = max(hdd->head_ns, now_ns - hdd_media_ns(hdd, window));
	plan->reach_ns = max(start_ns,
			     head_ns + hdd_media_ns(hdd, io->sector) - last_ns);
	plan->media_ns = head_ns + read_ns;
	plan->finish_ns = max(start_ns, plan->media_ns);
	plan->true_ns = read_ns;
	return true;
}

static struct plan hdd_plan(const struct hdd *hdd, const struct io *io,
			    u64 now_ns)
{
	u64 start_ns = max(now_ns, io->arrival_ns + hdd->model.overhead_ns);
	struct plan plan;
	bool ahead = hdd_plan_ahead(hdd, io, now_ns, start_ns, &plan);
	u64 reach_ns;

	if (ahead && plan.reach_ns <= start_ns)
		return plan;
	reach_ns = start_ns + hdd_seek_ns(hdd, io->sector);
	reach_ns += hdd_rotation_ns(hdd, io->sector, reach_ns);
	if (ahead && plan.reach_ns <= reach_ns)
		return plan;

	plan.reach_ns = reach_ns;
	plan.media_ns = reach_ns + hdd_media_ns(hdd, hdd_end(io)) -
			hdd_media_ns(hdd, io->sector);
	plan.finish_ns = plan.media_ns;
	plan.true_ns = plan.finish_ns - now_ns;
	return plan;
}

static u32 hdd_choose(const struct disk *disk, u64 now_ns)
{
	const struct hdd *hdd = &disk->hdd;
	u64 best_ns = U64_MAX;
	u32 i, best = 0;

	if (!hdd->model.sptf ||
	    now_ns - hdd->queue[0]->arrival_ns > hdd->model.age_limit_ns)
		return 0;
	for (i = 0; i < disk->nr; i++) {
		struct plan plan = hdd_plan(hdd, hdd->queue[i], now_ns);

		if (plan.reach_ns < best_ns) {
			best_ns = plan.reach_ns;
			best = i;
		}
	}
	return best;
}

static void hdd_finish(void *context, u64 now_ns);

static void hdd_begin(void *context, u64 now_ns)
{
	struct disk *disk = context;
	struct hdd *hdd = &disk->hdd;
	struct plan plan;
	u32 i;

	if (hdd->serving || !disk->nr)
		return;
	i = hdd_choose(disk, now_ns);
	hdd->serving = hdd->queue[i];
	memmove(&hdd->queue[i], &hdd->queue[i + 1],
		(disk->nr - i - 1) * sizeof(hdd->queue[0]));

	plan = hdd_plan(hdd, hdd->serving, now_ns);
	hdd->true_ns = plan.true_ns;
	hdd->head_sector = hdd_end(hdd->serving);
	hdd->head_ns = plan.media_ns;
	hdd->reading_ahead = hdd->serving->op == SUTRO_READ;
	clock_at(disk->clock, plan.finish_ns, hdd_finish, disk);
}

static void hdd_finish(void *context, u64 now_ns)
{
	struct disk *disk = context;
	struct hdd *hdd = &disk->hdd;
	struct io *io = hdd->serving;
	u64 true_ns = hdd->true_ns;

	hdd->serving = NULL;
	disk->nr--;
	hdd_begin(disk, now_ns);
	disk->done(disk->context, io, true_ns);
}

void hdd_submit(struct disk *disk, struct io *io)
{
	struct hdd *hdd = &disk->hdd;

	assert(disk->nr < disk->depth);
	io->arrival_ns = disk->clock->now_ns;
	hdd->queue[disk->nr - !!hdd->serving] = io;
	disk->nr++;
	/* After what is submitted at the same time. */
	if (!hdd->serving)
		clock_at(disk->clock, disk->clock->now_ns, hdd_begin, disk);
}

void hdd_init(struct disk *disk, struct clock *clock,
	      const struct hdd_model *model, disk_done_fn *done, void *context)
{
	*disk = (struct disk){
		.clock = clock,
		.done = done,
		.context = context,
		.rotational = true,
		.size_bytes = model->size_bytes,
		.depth = model->depth,
		.hdd = { .model = *model, .head_ns = clock->now_ns },
	};
}
