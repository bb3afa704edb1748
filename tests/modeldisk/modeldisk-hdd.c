// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: one actuator
 *
 * Geometry. The medium is one long spiral; a place on it is given as the time
 * the head needs from sector 0 to there at bandwidth_kbps (media time). One
 * revolution is a track: media time
 * / revolution is the track, media time mod revolution the angle. Tracks are skewed so that
 * going on to the next costs nothing: sequential access runs at bandwidth_kbps.
 *
 * A request is served in three parts:
 *
 *	seek	  0 on the same track, else
 *		  min + (max - min) * sqrt(tracks / all tracks)
 *	rotation  until the first sector is under the head, by the angle then
 *	transfer  bytes / bandwidth
 *
 * It starts when the actuator is free and the command has been decoded:
 * max(free, arrival + overhead). So the overhead of queued commands is hidden,
 * as in a real drive.
 *
 * Example, 7200 rpm (8.33 ms), seek 0.5 to 10.5 ms, 150000 KiB/s, a disk of 1
 * GiB = 839 tracks: a lone 4 KiB read a third of the disk away: 0.03 overhead +
 * 0.5 + 10 * sqrt(0.333) = 6.27 seek + 4.17 rotation on average + 0.03
 * transfer.
 *
 * Order. With sptf, the request whose first sector can be reached first is
 * next; one that has waited age_limit_ms goes before all others, the oldest
 * first. With fifo, the one that arrived first.
 *
 * Read-ahead. After a read the drive goes on reading into its buffer as long as
 * it has nothing else to do, at most readahead_kb. A read that continues there
 * (at the end of the last one, or further ahead within readahead_kb) is
 * answered when its data have passed the head and the command is decoded. So
 * one reader with queue depth 1 gets the media rate, if its pauses are shorter
 * than the read-ahead takes. There is one buffer segment: any other request
 * ends the read-ahead. A full buffer pauses the read-ahead; its resumption,
 * which costs a real drive up to a revolution that the full buffer hides, is
 * free. readahead_kb=0 turns all this off: then depth 1 misses a revolution per
 * request, as writes without a cache always do.
 *
 * True device time is the actuator's: from max(free, arrival) to the end of the
 * transfer. For a continued read, it is the media time from the end of the last
 * read to its own, whether it was read before or after it arrived: the head was
 * busy with this request's data then. Busy time is the sum of the device times.
 */
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "modeldisk-model.h"

/* Sectors of media time per second and per KiB/s: NSEC_PER_SEC * SECTOR_SIZE / 1024 */
#define SECTOR_NS_KBPS (NSEC_PER_SEC / 2)
/* How many operations SPTF looks at: several times what a drive can queue. */
#define SPTF_SCAN 256

/**
 * struct mdisk_hdd - the state of the mechanism
 * @queue: operations of the host, oldest first
 * @serving: the one the actuator works on, or NULL
 * @finish_ns: when it is done
 * @charge_ns: its device time
 * @free_ns: when the actuator became free
 * @head_sector: the end of the last transfer
 * @head_ns: when @head_sector was under the head
 * @reading_ahead: the last transfer was a read
 */
struct mdisk_hdd {
	struct list_head queue;
	struct mdisk_op *serving;
	u64 finish_ns;
	u64 charge_ns;
	u64 free_ns;
	u64 head_sector;
	u64 head_ns;
	bool reading_ahead;
};

/* The times of an operation if it were served now. */
struct mdisk_hdd_plan {
	u64 reach_ns; /* first sector under the head, or in the buffer */
	u64 media_ns; /* last sector has passed the head */
	u64 finish_ns;
	u64 charge_ns;
};

static u64 mdisk_op_end(struct mdisk_op *op)
{
	return op->sector + (op->bytes >> MDISK_SECTOR_SHIFT);
}

static u64 mdisk_media_ns(struct mdisk_drive *drive, u64 sector)
{
	return div_u64(sector * SECTOR_NS_KBPS, drive->num.bandwidth_kbps);
}

static u64 mdisk_revolution_ns(struct mdisk_drive *drive)
{
	return div_u64(60 * NSEC_PER_SEC, drive->num.rpm);
}

static u64 mdisk_seek_ns(struct mdisk_drive *drive, u64 from_sector,
			 u64 to_sector)
{
	u64 revolution_ns = mdisk_revolution_ns(drive);
	u64 from = div64_u64(mdisk_media_ns(drive, from_sector), revolution_ns);
	u64 to = div64_u64(mdisk_media_ns(drive, to_sector), revolution_ns);
	u64 capacity = (u64)drive->num.size_mb << (20 - MDISK_SECTOR_SHIFT);
	u64 tracks =
		div64_u64(mdisk_media_ns(drive, capacity), revolution_ns) + 1;
	u64 distance = from < to ? to - from : from - to;
	u64 range_ns = (drive->num.seek_max_us - drive->num.seek_min_us) *
		       NSEC_PER_USEC;

	if (!distance)
		return 0;
	/* the square root of a 32 bit fraction is a 16 bit fraction */
	return drive->num.seek_min_us * NSEC_PER_USEC +
	       ((range_ns * int_sqrt64(div64_u64(distance << 32, tracks))) >>
		16);
}

/* From from_ns on: the time until @sector is under the head, if the head is on its track. */
static u64 mdisk_rotation_ns(struct mdisk_drive *drive, u64 sector, u64 from_ns)
{
	struct mdisk_hdd *hdd = drive->state;
	u64 revolution_ns = mdisk_revolution_ns(drive);
	u64 angle_ns, target_ns, turned_ns, last_ns;

	div64_u64_rem(mdisk_media_ns(drive, sector), revolution_ns, &target_ns);
	div64_u64_rem(mdisk_media_ns(drive, hdd->head_sector), revolution_ns,
		      &last_ns);
	div64_u64_rem(from_ns - hdd->head_ns, revolution_ns, &turned_ns);
	div64_u64_rem(target_ns + 2 * revolution_ns - last_ns - turned_ns,
		      revolution_ns, &angle_ns);
	return angle_ns;
}

/*
 * The read-ahead reaches the first sector; with a full buffer as if the head
 * had been held back until now.
 */
static bool mdisk_hdd_plan_ahead(struct mdisk_drive *drive, struct mdisk_op *op,
				 u64 now_ns, u64 start_ns,
				 struct mdisk_hdd_plan *plan)
{
	struct mdisk_hdd *hdd = drive->state;
	u64 window = (u64)drive->num.readahead_kb * 2;
	u64 last_ns, buffer_ns, skip_ns, read_ns, head_ns;

	if (!hdd->reading_ahead || op->write || !window ||
	    op->sector < hdd->head_sector ||
	    op->sector > hdd->head_sector + window)
		return false;

	last_ns = mdisk_media_ns(drive, hdd->head_sector);
	skip_ns = mdisk_media_ns(drive, op->sector) - last_ns;
	read_ns = mdisk_media_ns(drive, mdisk_op_end(op)) - last_ns;
	buffer_ns = mdisk_media_ns(drive, window);
	head_ns = max(hdd->head_ns, now_ns - min(now_ns, buffer_ns));

	plan->reach_ns = max(start_ns, head_ns + skip_ns);
	plan->media_ns = head_ns + read_ns;
	plan->finish_ns = max(start_ns, plan->media_ns);
	plan->charge_ns = read_ns;
	return true;
}

static void mdisk_hdd_plan(struct mdisk_drive *drive, struct mdisk_op *op,
			   u64 now_ns, struct mdisk_hdd_plan *plan)
{
	struct mdisk_hdd *hdd = drive->state;
	u64 start_ns = max(now_ns, op->arrival_ns + drive->num.overhead_us *
							    NSEC_PER_USEC);
	bool ahead = mdisk_hdd_plan_ahead(drive, op, now_ns, start_ns, plan);
	u64 reach_ns;

	if (ahead && plan->reach_ns <= start_ns)
		return;
	reach_ns =
		start_ns + mdisk_seek_ns(drive, hdd->head_sector, op->sector);
	reach_ns += mdisk_rotation_ns(drive, op->sector, reach_ns);
	if (ahead && plan->reach_ns <= reach_ns)
		return;

	plan->reach_ns = reach_ns;
	plan->media_ns = reach_ns + mdisk_media_ns(drive, mdisk_op_end(op)) -
			 mdisk_media_ns(drive, op->sector);
	plan->finish_ns = plan->media_ns;
	plan->charge_ns = plan->finish_ns - now_ns;
}

/* ---- what is next ---- */

/* Both lists are by arrival; @best is replaced by an operation that is reached earlier. */
static struct mdisk_op *mdisk_nearest(struct mdisk_drive *drive,
				      struct list_head *ops, u64 now_ns,
				      u64 *best_ns, struct mdisk_op *best)
{
	struct mdisk_hdd_plan plan;
	struct mdisk_op *op;
	u32 seen = 0;

	list_for_each_entry(op, ops, node) {
		/* nothing is reached earlier than now */
		if (op->arrival_ns > now_ns || *best_ns <= now_ns ||
		    seen++ == SPTF_SCAN)
			break;
		mdisk_hdd_plan(drive, op, now_ns, &plan);
		if (plan.reach_ns < *best_ns) {
			*best_ns = plan.reach_ns;
			best = op;
		}
	}
	return best;
}

static struct mdisk_op *mdisk_oldest(struct list_head *ops, u64 now_ns,
				     struct mdisk_op *other)
{
	struct mdisk_op *op =
		list_first_entry_or_null(ops, struct mdisk_op, node);

	if (!op || op->arrival_ns > now_ns)
		return other;
	return other && other->arrival_ns <= op->arrival_ns ? other : op;
}

static struct mdisk_op *mdisk_hdd_choose(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_hdd *hdd = drive->state;
	struct mdisk_op *oldest = mdisk_oldest(&hdd->queue, now_ns, NULL);
	bool destage = mdisk_cache_next_ns(drive) <= now_ns &&
		       (!oldest || mdisk_cache_urgent(drive));
	struct mdisk_op *best;
	u64 best_ns = U64_MAX;

	if (destage)
		oldest = mdisk_oldest(&drive->cache.destage, now_ns, oldest);
	if (drive->num.order == MDISK_FIFO ||
	    now_ns - oldest->arrival_ns >
		    drive->num.age_limit_ms * (u64)NSEC_PER_MSEC)
		return oldest;

	best = mdisk_nearest(drive, &hdd->queue, now_ns, &best_ns, NULL);
	if (destage)
		best = mdisk_nearest(drive, &drive->cache.destage, now_ns,
				     &best_ns, best);
	return best;
}

/* When the actuator can begin something, given that it is idle. */
static u64 mdisk_hdd_begin_ns(struct mdisk_drive *drive)
{
	struct mdisk_hdd *hdd = drive->state;
	struct mdisk_op *op =
		list_first_entry_or_null(&hdd->queue, struct mdisk_op, node);
	u64 begin_ns = min(op ? op->arrival_ns : MDISK_NEVER_NS,
			   mdisk_cache_next_ns(drive));

	return max(begin_ns, hdd->free_ns);
}

/* ---- the model ---- */

static void mdisk_hdd_begin(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_hdd *hdd = drive->state;
	struct mdisk_op *op = mdisk_hdd_choose(drive, now_ns);
	struct mdisk_hdd_plan plan;

	mdisk_hdd_plan(drive, op, now_ns, &plan);
	if (op->cmd)
		list_del(&op->node);
	else
		mdisk_cache_take(drive, op, now_ns);

	hdd->serving = op;
	hdd->finish_ns = plan.finish_ns;
	hdd->charge_ns = plan.charge_ns;
	hdd->head_sector = mdisk_op_end(op);
	hdd->head_ns = plan.media_ns;
	hdd->reading_ahead = !op->write;
}

static void mdisk_hdd_finish(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_hdd *hdd = drive->state;
	struct mdisk_op *op = hdd->serving;

	hdd->serving = NULL;
	hdd->free_ns = now_ns;
	mdisk_charge_time(drive, op->owner, hdd->charge_ns);
	drive->truth.busy_ns += hdd->charge_ns;
	if (op->cmd) {
		mdisk_op_done(drive, op, now_ns);
		mdisk_op_free(op);
	} else {
		mdisk_cache_cleaned(drive, op, now_ns);
	}
}

static u64 mdisk_hdd_next_ns(struct mdisk_drive *drive)
{
	struct mdisk_hdd *hdd = drive->state;

	return hdd->serving ? hdd->finish_ns : mdisk_hdd_begin_ns(drive);
}

static void mdisk_hdd_step(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_hdd *hdd = drive->state;

	if (hdd->serving)
		mdisk_hdd_finish(drive, now_ns);
	else
		mdisk_hdd_begin(drive, now_ns);
}

static void mdisk_hdd_submit(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
			     u64 now_ns)
{
	struct mdisk_hdd *hdd = drive->state;

	if (cmd->cached)
		mdisk_link_add(drive, cmd, cmd->bytes, now_ns);
	else
		list_splice_tail_init(&cmd->ops, &hdd->queue);
}

static size_t mdisk_hdd_state_bytes(const struct mdisk_drive *drive)
{
	return sizeof(struct mdisk_hdd);
}

static void mdisk_hdd_init(struct mdisk_drive *drive)
{
	struct mdisk_hdd *hdd = drive->state;

	INIT_LIST_HEAD(&hdd->queue);
	/* the angle at the start comes from the seed */
	hdd->head_ns = drive->num.seed % mdisk_revolution_ns(drive);
}

const struct mdisk_model mdisk_hdd_model = {
	.state_bytes = mdisk_hdd_state_bytes,
	.init = mdisk_hdd_init,
	.submit = mdisk_hdd_submit,
	.next_ns = mdisk_hdd_next_ns,
	.step = mdisk_hdd_step,
};
