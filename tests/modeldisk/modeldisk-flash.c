// SPDX-License-Identifier: GPL-2.0-only
/*
 * modeldisk: channels and a shared bus
 *
 * A request is cut into flash pages of 16 KiB; a request for 4 KiB of a page costs
 * the channel a whole page and the bus 4 KiB. There are two kinds of stages; a
 * channel is a FIFO:
 *
 *	read	channel (read_us), then bus (bytes / bus_kbps)
 *	write	bus, then channel (write_us)
 *
 * The bus transfers one page at a time. bus_order sets which page is next:
 *
 *	fifo		the one that has waited longest
 *	round-robin	one page of each request that has pages waiting, in turn, as
 *			the data transfers of an NVMe drive alternate
 *
 * Example, an ssd with 540000 KiB/s (30 us per 16 KiB) on which a write of 1 MiB, 64
 * pages, has just arrived. A 4 KiB read leaves its channel 80 us later. With fifo
 * it waits for the rest of the write and is answered after 64 * 29.6 + 7.4 = 1904 us,
 * with round-robin it waits for the page in transfer: 88.9 + 7.4 = 96 us. The
 * write ends 7.4 us later. The order moves the end of a request and does not change
 * its device time.
 *
 * A read goes to the channel where its page lies, a hash of page number and
 * seed. A write goes to the channel that is free first, as a flash translation
 * layer does. The request is done with its last page.
 *
 * True device time is the reciprocal of the rate that a saturating stream of
 * such requests reaches alone:
 *
 *	max(pages * latency / channels, bytes / bus_kbps)
 *
 * by the numbers at its end, with the time of garbage collection (modeldisk-ftl.c) as
 * part of the latencies. Example, 16 channels, read 80 us, write 200 us,
 * bus 540000 KiB/s: a 4 KiB read max(80 / 16 =
 * 5.0, 7.4) = 7.4 us, a 4 KiB write max(12.5, 7.4) = 12.5 us, a 128 KiB read max(8 * 5.0, 237)
 * = 237 us. The defaults are such that the rate measured at full depth is within 2 % of this.
 * It need not be with other numbers: when the channels are the bottleneck of
 * reads, some stand idle while others have a queue (device-time of 8 channels
 * at depth 32: 88 %). Busy time is the time in which there was any work.
 *
 * noise_percent varies each page's latency evenly by +- its value, hiccup_us is
 * added to one page in 2048; both are drawn from the seed, in the order in
 * which pages reach channels. Latencies are fixed at that moment, so a number
 * written at run time holds for the pages that come after.
 *
 * A discard occupies the bus, the stage that all commands pass, for discard_us +
 * MiB * discard_us_per_mb: the firmware updates its map and starts no transfer
 * meanwhile. This is its device time. Each MiB is a unit of bus_order, the first one
 * with discard_us. Example, 100 us and 10 us per MiB: a discard of 32 MiB takes 420 us.
 * A 4 KiB read that arrives just after it is answered after 427 us with fifo and after
 * 117 us with round-robin. A discard does not touch the write cache: discarded
 * data are destaged.
 *
 * With over_provision_percent the drive has a translation layer (modeldisk-ftl.c). It
 * maps pages and frees discarded ones in the order in which commands reach the
 * medium. Channels are chosen as without it.
 *
 * With a write cache (modeldisk-cache.c) a page is in the cache when it has
 * crossed the bus. A channel without work takes the next page to destage; when
 * the cache is urgent, so does the channel that is free first, if it has at
 * most one write_us to go. A destage takes nothing from the bus. drain_kbps
 * limits the rate of a stream of writes, so it is part of their device time:
 * max(..., bytes / drain_kbps).
 */
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/time64.h>

#include "modeldisk-ftl.h"

/* One page in this many has a hiccup, as in the study of charging methods. */
#define HICCUP_PAGES 2048
/* How far the timer looks ahead in the bus queue: a request of 256 KiB. */
#define WAKE_SCAN 16

/**
 * struct mdisk_channel - pages wait for, or are in, one channel
 * @event: place in &mdisk_flash.events while there is one
 * @queue: the pages, with their finish_ns
 * @free_ns: finish_ns of the last one
 */
struct mdisk_channel {
	struct rb_node event;
	struct list_head queue;
	u64 free_ns;
};

/**
 * struct mdisk_flash - the state of the drive
 * @events: channels that have work, by the end of their first page
 * @writes: pages to write that wait for, or are in, any channel
 * @turns: turns with pages for the bus; the first page of the first is on the bus
 * @fifo: the one turn of all pages with bus_order fifo
 * @now_ns: time of the last event
 * @busy_since_ns: when @ops left zero
 * @ops: operations in the drive
 * @drawn: random numbers used
 * @ftl: translation layer, or NULL
 * @channels: all there may be; the first mdisk_numbers.channels get new work
 */
struct mdisk_flash {
	struct rb_root_cached events;
	u32 writes;
	struct list_head turns;
	struct mdisk_turn fifo;
	u64 now_ns;
	u64 busy_since_ns;
	u64 ops;
	u64 drawn;
	struct mdisk_ftl *ftl;
	struct mdisk_channel channels[MDISK_MAX_CHANNELS];
};

/* The finalizer of splitmix64: every input bit moves every output bit. */
static u64 mdisk_mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* ---- busy time ---- */

static void mdisk_flash_enter(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_flash *flash = drive->state;

	if (!flash->ops++)
		flash->busy_since_ns = now_ns;
}

/* Brings the busy time up to now. */
static void mdisk_flash_busy(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_flash *flash = drive->state;

	flash->now_ns = now_ns;
	if (flash->ops) {
		drive->truth.busy_ns += now_ns - flash->busy_since_ns;
		flash->busy_since_ns = now_ns;
	}
}

static void mdisk_flash_leave(struct mdisk_drive *drive, struct mdisk_op *op,
			      u64 now_ns)
{
	struct mdisk_flash *flash = drive->state;

	flash->ops--;
	if (op->cmd) {
		mdisk_op_done(drive, op, now_ns);
		mdisk_op_free(op);
	} else {
		mdisk_cache_cleaned(drive, op, now_ns);
	}
}

/* ---- channels ---- */

static u64 mdisk_page_ns(struct mdisk_drive *drive, bool write)
{
	struct mdisk_flash *flash = drive->state;
	u64 latency_ns = (write ? drive->num.write_us : drive->num.read_us) *
			 NSEC_PER_USEC;
	u64 page_ns = latency_ns;
	u64 random, noise_ns;

	if (!drive->num.noise_percent && !drive->num.hiccup_us)
		return page_ns;
	random = mdisk_mix(drive->num.seed ^ mdisk_mix(flash->drawn++));
	/* lower half: even in [-noise, +noise] of the latency; upper half: the hiccup */
	noise_ns = latency_ns * drive->num.noise_percent;
	page_ns += mul_u64_u32_shr(div_u64(noise_ns, 50), (u32)random, 32);
	page_ns -= div_u64(noise_ns, 100);
	if ((random >> 32) % HICCUP_PAGES == 0)
		page_ns += drive->num.hiccup_us * NSEC_PER_USEC;
	return page_ns;
}

static struct mdisk_op *mdisk_channel_op(const struct mdisk_channel *channel)
{
	return list_first_entry(&channel->queue, struct mdisk_op, node);
}

static bool mdisk_channel_less(struct rb_node *a, const struct rb_node *b)
{
	const struct mdisk_channel *x, *y;

	x = rb_entry(a, struct mdisk_channel, event);
	y = rb_entry(b, struct mdisk_channel, event);
	return mdisk_channel_op(x)->finish_ns < mdisk_channel_op(y)->finish_ns;
}

/* The first page to leave any channel, or NULL. */
static struct mdisk_op *mdisk_channels_first(struct mdisk_flash *flash)
{
	struct rb_node *event = rb_first_cached(&flash->events);

	if (!event)
		return NULL;
	return mdisk_channel_op(rb_entry(event, struct mdisk_channel, event));
}

static void mdisk_channel_add(struct mdisk_drive *drive,
			      struct mdisk_channel *channel,
			      struct mdisk_op *op, u64 now_ns)
{
	struct mdisk_flash *flash = drive->state;

	op->finish_ns = max(channel->free_ns, now_ns) +
			mdisk_page_ns(drive, op->write) + op->reclaim_ns;
	channel->free_ns = op->finish_ns;
	flash->writes += op->write;
	list_add_tail(&op->node, &channel->queue);
	if (list_is_singular(&channel->queue))
		rb_add_cached(&channel->event, &flash->events,
			      mdisk_channel_less);
}

static u64 mdisk_page_of(struct mdisk_op *op)
{
	return op->sector / (MDISK_FLASH_PAGE_BYTES >> MDISK_SECTOR_SHIFT);
}

static struct mdisk_channel *mdisk_channel_of_page(struct mdisk_drive *drive,
						   struct mdisk_op *op)
{
	struct mdisk_flash *flash = drive->state;
	u32 random = mdisk_mix(mdisk_page_of(op) ^ mdisk_mix(drive->num.seed));

	return &flash->channels[((u64)random * drive->num.channels) >> 32];
}

static struct mdisk_channel *mdisk_channel_free_first(struct mdisk_drive *drive)
{
	struct mdisk_flash *flash = drive->state;
	struct mdisk_channel *best = &flash->channels[0];
	u32 i;

	for (i = 1; i < drive->num.channels; i++) {
		if (flash->channels[i].free_ns < best->free_ns)
			best = &flash->channels[i];
	}
	return best;
}

/* ---- bus ---- */

/* The page on the bus, or NULL. */
static struct mdisk_op *mdisk_bus_op(struct mdisk_flash *flash)
{
	struct list_head *turns = &flash->turns;
	struct mdisk_turn *turn =
		list_first_entry_or_null(turns, struct mdisk_turn, node);

	return turn ? list_first_entry(&turn->ops, struct mdisk_op, node)
		    : NULL;
}

static void mdisk_bus_begin(struct mdisk_flash *flash, u64 now_ns)
{
	struct mdisk_op *op = mdisk_bus_op(flash);

	if (op)
		op->finish_ns = now_ns + op->transfer_ns;
}

static void mdisk_bus_add(struct mdisk_drive *drive, struct mdisk_op *op,
			  u64 transfer_ns, u64 now_ns)
{
	struct mdisk_flash *flash = drive->state;
	struct mdisk_turn *turn = drive->num.bus_order == MDISK_BUS_FIFO
					  ? &flash->fifo
					  : &op->cmd->turn;
	bool idle = list_empty(&flash->turns);

	op->transfer_ns = transfer_ns;
	if (list_empty(&turn->ops))
		list_add_tail(&turn->node, &flash->turns);
	list_add_tail(&op->node, &turn->ops);
	if (idle)
		mdisk_bus_begin(flash, now_ns);
}

static void mdisk_bus_add_page(struct mdisk_drive *drive, struct mdisk_op *op,
			       u64 now_ns)
{
	mdisk_bus_add(drive, op,
		      mdisk_transfer_ns(op->bytes, drive->num.bus_kbps),
		      now_ns);
}

/* @bytes: below 2^32 */
static u64 mdisk_discard_ns(struct mdisk_drive *drive, u64 bytes)
{
	return (bytes * drive->num.discard_us_per_mb * NSEC_PER_USEC) >> 20;
}

/* ---- destage ---- */

/* The channel that may take a page to destage, or NULL. */
static struct mdisk_channel *mdisk_destage_channel(struct mdisk_drive *drive)
{
	struct mdisk_flash *flash = drive->state;
	struct mdisk_channel *channel = mdisk_channel_free_first(drive);
	u64 limit_ns = flash->now_ns;

	if (mdisk_cache_urgent(drive))
		limit_ns += drive->num.write_us * NSEC_PER_USEC;
	return channel->free_ns <= limit_ns ? channel : NULL;
}

static u64 mdisk_destage_next_ns(struct mdisk_drive *drive)
{
	struct mdisk_flash *flash = drive->state;
	u64 next_ns = mdisk_cache_next_ns(drive);

	if (next_ns == MDISK_NEVER_NS || !mdisk_destage_channel(drive))
		return MDISK_NEVER_NS;
	return max(next_ns, flash->now_ns);
}

static void mdisk_destage_step(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_op *op =
		list_first_entry(&drive->cache.destage, struct mdisk_op, node);

	mdisk_cache_take(drive, op, now_ns);
	mdisk_channel_add(drive, mdisk_destage_channel(drive), op, now_ns);
}

/* ---- the model ---- */

static void mdisk_bus_step(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_flash *flash = drive->state;
	struct mdisk_turn *turn =
		list_first_entry(&flash->turns, struct mdisk_turn, node);
	struct mdisk_op *op = mdisk_bus_op(flash);

	list_del(&op->node);
	if (list_empty(&turn->ops))
		list_del(&turn->node);
	else
		list_move_tail(&turn->node, &flash->turns);
	mdisk_bus_begin(flash, now_ns);
	if (!op->write)
		mdisk_flash_leave(drive, op, now_ns);
	else if (op->cmd->cached)
		mdisk_cache_stored(drive, op, now_ns);
	else
		mdisk_channel_add(drive, mdisk_channel_free_first(drive), op,
				  now_ns);
}

static void mdisk_channel_step(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_flash *flash = drive->state;
	struct rb_node *event = rb_first_cached(&flash->events);
	struct mdisk_channel *channel =
		rb_entry(event, struct mdisk_channel, event);
	struct mdisk_op *op = mdisk_channel_op(channel);

	rb_erase_cached(event, &flash->events);
	list_del(&op->node);
	flash->writes -= op->write;
	if (!list_empty(&channel->queue))
		rb_add_cached(event, &flash->events, mdisk_channel_less);
	if (op->write)
		mdisk_flash_leave(drive, op, now_ns);
	else
		mdisk_bus_add_page(drive, op, now_ns);
}

static u64 mdisk_bus_next_ns(struct mdisk_flash *flash)
{
	struct mdisk_op *op = mdisk_bus_op(flash);

	return op ? op->finish_ns : MDISK_NEVER_NS;
}

static u64 mdisk_channel_next_ns(struct mdisk_flash *flash)
{
	struct mdisk_op *op = mdisk_channels_first(flash);

	return op ? op->finish_ns : MDISK_NEVER_NS;
}

static u64 mdisk_flash_next_ns(struct mdisk_drive *drive)
{
	struct mdisk_flash *flash = drive->state;

	return min3(mdisk_bus_next_ns(flash), mdisk_channel_next_ns(flash),
		    mdisk_destage_next_ns(drive));
}

/*
 * When the bus may finish a command at the earliest. The n-th page to cross it
 * can be the last of its command only if the command waits for n at most. With
 * several turns only the first page of each is looked at.
 */
static u64 mdisk_bus_wake_ns(struct mdisk_drive *drive)
{
	struct mdisk_flash *flash = drive->state;
	u64 wake_ns = mdisk_bus_next_ns(flash);
	struct mdisk_turn *turn;
	struct mdisk_op *op;
	u32 n = 0;

	list_for_each_entry(turn, &flash->turns, node) {
		list_for_each_entry(op, &turn->ops, node) {
			wake_ns += n ? op->transfer_ns : 0;
			if (op->cmd->ops_left <= ++n || n == WAKE_SCAN)
				return wake_ns;
			if (!list_is_singular(&flash->turns))
				break;
		}
	}
	return wake_ns;
}

/* Do pages cross the bus in the order in which they reach it? */
static bool mdisk_bus_is_fifo(struct mdisk_drive *drive)
{
	struct mdisk_flash *flash = drive->state;
	struct mdisk_turn *turn;

	/* Turns of single commands are left for a while after a change of bus_order. */
	list_for_each_entry(turn, &flash->turns, node)
		if (turn != &flash->fifo)
			return false;
	return drive->num.bus_order == MDISK_BUS_FIFO;
}

/*
 * When the channels may. A read has yet to cross the bus; a write behind it that ends
 * in another channel meanwhile has not. With round robin, a short page of another command
 * may cross the bus before it, too.
 */
static u64 mdisk_channel_wake_ns(struct mdisk_drive *drive)
{
	struct mdisk_flash *flash = drive->state;
	struct mdisk_op *op = mdisk_channels_first(flash);

	if (!op)
		return MDISK_NEVER_NS;
	if (flash->writes || !mdisk_bus_is_fifo(drive))
		return op->finish_ns;
	return op->finish_ns +
	       mdisk_transfer_ns(op->bytes, drive->num.bus_kbps);
}

static u64 mdisk_flash_wake_ns(struct mdisk_drive *drive)
{
	return min3(mdisk_bus_wake_ns(drive), mdisk_channel_wake_ns(drive),
		    mdisk_destage_next_ns(drive));
}

static void mdisk_flash_step(struct mdisk_drive *drive, u64 now_ns)
{
	struct mdisk_flash *flash = drive->state;

	mdisk_flash_busy(drive, now_ns);
	if (mdisk_bus_next_ns(flash) <= now_ns)
		mdisk_bus_step(drive, now_ns);
	else if (mdisk_channel_next_ns(flash) <= now_ns)
		mdisk_channel_step(drive, now_ns);
	else
		mdisk_destage_step(drive, now_ns);
}

/* Updates the map of the translation layer for a write or discard. */
static void mdisk_flash_map(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
			    struct mdisk_op *op)
{
	struct mdisk_flash *flash = drive->state;
	u64 byte = op->sector << MDISK_SECTOR_SHIFT;

	if (!flash->ftl)
		return;
	if (cmd->action == MDISK_DISCARD) {
		mdisk_ftl_discard(flash->ftl, byte, byte + op->bytes);
	} else if (cmd->action == MDISK_WRITE) {
		op->reclaim_ns =
			mdisk_ftl_write(drive, flash->ftl, mdisk_page_of(op));
		cmd->reclaim_ns += op->reclaim_ns;
	}
}

static void mdisk_flash_submit(struct mdisk_drive *drive, struct mdisk_cmd *cmd,
			       u64 now_ns)
{
	u64 first_ns = drive->num.discard_us * NSEC_PER_USEC;
	struct mdisk_op *op, *next;

	mdisk_flash_busy(drive, now_ns);
	list_for_each_entry_safe(op, next, &cmd->ops, node) {
		list_del(&op->node);
		mdisk_flash_enter(drive, now_ns);
		mdisk_flash_map(drive, cmd, op);
		if (cmd->action == MDISK_DISCARD) {
			mdisk_bus_add(drive, op,
				      first_ns + mdisk_discard_ns(drive,
								  op->bytes),
				      now_ns);
			first_ns = 0;
		} else if (op->write) {
			mdisk_bus_add_page(drive, op, now_ns);
		} else {
			mdisk_channel_add(drive,
					  mdisk_channel_of_page(drive, op), op,
					  now_ns);
		}
	}
}

static u64 mdisk_flash_charge_ns(struct mdisk_drive *drive,
				 struct mdisk_cmd *cmd)
{
	bool write = cmd->action == MDISK_WRITE;
	u64 bytes = cmd->bytes;
	struct mdisk_numbers *num = &drive->num;
	u64 latency_ns = (write ? num->write_us : num->read_us) * NSEC_PER_USEC;
	u64 pages_ns = cmd->ops_total * latency_ns + cmd->reclaim_ns;
	u64 charge_ns = max(div_u64(pages_ns, num->channels),
			    mdisk_transfer_ns(bytes, num->bus_kbps));

	if (cmd->action == MDISK_DISCARD)
		return num->discard_us * NSEC_PER_USEC +
		       mdisk_discard_ns(drive, bytes);
	if (write && num->cache_kb && num->drain_kbps)
		charge_ns = max(charge_ns,
				mdisk_transfer_ns(bytes, num->drain_kbps));
	return charge_ns;
}

static size_t mdisk_flash_state_bytes(const struct mdisk_drive *drive)
{
	return sizeof(struct mdisk_flash) + mdisk_ftl_bytes(&drive->num);
}

static void mdisk_flash_init(struct mdisk_drive *drive)
{
	struct mdisk_flash *flash = drive->state;
	u32 i;

	flash->events = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&flash->turns);
	INIT_LIST_HEAD(&flash->fifo.ops);
	for (i = 0; i < MDISK_MAX_CHANNELS; i++)
		INIT_LIST_HEAD(&flash->channels[i].queue);
	if (drive->num.over_provision_percent) {
		flash->ftl = (void *)(flash + 1);
		mdisk_ftl_init(drive, flash->ftl);
	}
}

const struct mdisk_model mdisk_flash_model = {
	.state_bytes = mdisk_flash_state_bytes,
	.op_bytes = MDISK_FLASH_PAGE_BYTES,
	.init = mdisk_flash_init,
	.submit = mdisk_flash_submit,
	.next_ns = mdisk_flash_next_ns,
	.wake_ns = mdisk_flash_wake_ns,
	.step = mdisk_flash_step,
	.charge_ns = mdisk_flash_charge_ns,
};
