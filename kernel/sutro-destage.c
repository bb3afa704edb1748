// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: data that a rotational drive has in its cache.
 *
 * A drive with a volatile cache completes a write when it has the data, and writes them
 * to the medium later.  This destage uses the actuator, but the gap between completions
 * (sutro-cost.c) does not contain it: it is a part of the next flush, or of the gap before
 * a completion of another group.
 *
 * 1. Charged in advance
 *
 * A write that takes less than a third of the time that the medium needs at least was
 * taken by the cache.  Its group is charged the time of the medium: that of its bytes, and
 * that of a seek if the group seeks or if it is its first write since the cache was empty.
 * Charged time that has not passed yet is the backlog of the cache.
 *
 * 2. Destaging
 *
 * The backlog falls while the drive has no request, and by the time that other requests take
 * longer than they usually do.  That time is not charged to their groups.
 *
 *	a writes 4 KiB here and there, which the cache takes at once, and is charged 10 ms for
 *	each.  b reads 4 KiB at a time, which takes 10 ms alone.  While b thinks of its next
 *	read, the drive begins to destage, so that this read takes 20 ms.  b is charged 10 of
 *	these, and the backlog falls by the others.
 *
 * How long requests of b take alone is learnt while nothing is in the cache, or so little that
 * the drive destages it only while it has no request.  Otherwise, half of those that no
 * destage precedes take longer than the mean, and half of them do not: the mean moves up or
 * down by that.  If more than one write for two of such requests comes, too few are not
 * preceded by one.  Then a request that seeks is expected to take as long as one that is
 * destaged.
 *
 * A cache that is full takes a write when it has room, so the write takes as long as destaging
 * others does.  The backlog falls by that time, and the group is charged for its own data.
 *
 * 3. The time of a seek, and of a byte
 *
 * Before anything is known, they are 4 ms and 8 ns.  While nothing is in the cache, reads
 * show how fast the device is: many disks of virtual machines look like rotational
 * ones.  Then a seek is expected to take as long as a request of a group that seeks, until
 * its time is learnt.  A byte is charged a quarter more than one of a stream takes, but no
 * more than 8 ns.
 *
 * The time of a seek is learnt in two ways:
 *
 *  - From one flush to another, and from one write that waited for room to another, the cache has
 *    destaged as much as it has taken.  The time that passed for that shows what a seek took.
 *  - Time of others that neither they nor the backlog explain shows that it takes longer, and the
 *    other way round.  If nothing shows in half a second that the drive destages for as long as
 *    is charged, the backlog and the time of a seek fall by 1/128.
 *
 * 4. Flushes
 *
 * A flush takes as long as destaging takes.  So the time of a flush minus the backlog is
 * charged to the group that flushes.  If the backlog was more than the flush took, each
 * group has its part of the difference as a credit, which pays for its next requests.  A
 * credit is SUTRO_DESTAGE_CREDIT_US at most: a group that writes one block again and again
 * earns no more.
 *
 *	a writes 16 MiB, which the cache takes in 30 ms, and is charged 138 ms.  b writes
 *	4 KiB, is charged 4 ms, and flushes, which takes 120 ms.  The 112 ms of the backlog
 *	pay for most of that.  b is charged the other 8 ms.
 *
 * 5. Readers wait for it
 *
 * A drive begins to destage in each pause of the host, however short, and then a stream that
 * is read by one request at a time has a seek before each of them.  So sutro-select.c lets the
 * drive destage before it serves such requests.
 */
#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "sutro-destage.h"

/* As the prior costs of a rotational device (sutro-estimate.c): 125 MB/s. */
#define SUTRO_DESTAGE_SEEK_NS (4 * 1000 * 1000ULL)
#define SUTRO_DESTAGE_BYTE_NS16 (8ULL << 4)
/* Requests of streams from this size on show what a byte takes. */
#define SUTRO_DESTAGE_STREAM_BYTES (64U * 1024)
/* The longest seek of a slow drive, and a revolution; and the shortest mean of sorted ones. */
#define SUTRO_DESTAGE_STROKE_NS (32 * 1000 * 1000ULL)
#define SUTRO_DESTAGE_LEAST_NS (100 * 1000ULL)
/*
 * The cache took a write if it was this many times faster than the medium.  Interfaces
 * transfer at least 540 MB/s, media at most 280 MB/s.
 */
#define SUTRO_DESTAGE_TAKEN 3
/* Without a backlog, the cache is taken to be empty this long after its last write. */
#define SUTRO_DESTAGE_EMPTY_NS (1000 * 1000 * 1000ULL)
/* With less than this since the last flush, a drive destages only while it has no request. */
#define SUTRO_DESTAGE_LITTLE_BYTES (1024 * 1024ULL)
#define SUTRO_DESTAGE_CREDIT_US (100 * 1000U)
#define SUTRO_DESTAGE_WHOLE_SHIFT 10
#define SUTRO_DESTAGE_NS_PER_US 1000U
/* The time of a seek is learnt from this many of them, and at these intervals. */
#define SUTRO_DESTAGE_SEEKS 8U
#define SUTRO_DESTAGE_LOOK_NS (500 * 1000 * 1000ULL)
/*
 * Weight of the newest sample of the time of a seek: 1/4.  The time falls by 1/128 in each half
 * second without a sign that the drive destages for as long as is charged.
 */
#define SUTRO_DESTAGE_LEARN_SHIFT 2
#define SUTRO_DESTAGE_FALL_SHIFT 7
/* Weight of the newest number of writes for each other request, 1 / 64, and its maximum. */
#define SUTRO_DESTAGE_MIX_SHIFT 6
#define SUTRO_DESTAGE_MIX_MOST 16U
#define SUTRO_DESTAGE_MIX_WHOLE_SHIFT 16
#define SUTRO_DESTAGE_MIX_WHOLE BIT(SUTRO_DESTAGE_MIX_WHOLE_SHIFT)

static u64 sutro_destage_seek_ns(const struct sutro_destage *destage)
{
	u64 seek_ns = destage->seek_ns ?: destage->other_seek_ns;

	return seek_ns ?: SUTRO_DESTAGE_SEEK_NS;
}

static u64 sutro_destage_bytes_ns(const struct sutro_destage *destage,
				  u64 bytes)
{
	u64 byte_ns16 = destage->byte_ns16 ?: SUTRO_DESTAGE_BYTE_NS16;

	/* The data of a group are in several places. */
	byte_ns16 = min(byte_ns16 * 5 / 4, SUTRO_DESTAGE_BYTE_NS16);
	return bytes * byte_ns16 >> 4;
}

static void sutro_destage_learn(struct sutro_destage *destage, s64 sample_ns)
{
	s64 seek_ns = sutro_destage_seek_ns(destage);

	sample_ns = clamp(sample_ns, seek_ns / 2, 2 * seek_ns);
	seek_ns += (sample_ns - seek_ns) >> SUTRO_DESTAGE_LEARN_SHIFT;
	destage->seek_ns = clamp(seek_ns, (s64)SUTRO_DESTAGE_LEAST_NS,
				 (s64)SUTRO_DESTAGE_STROKE_NS);
}

/* It is known how much is in the cache: as much as at the last mark of the same kind. */
static void sutro_destage_mark(struct sutro_destage *destage,
			       enum sutro_destage_mark mark)
{
	s64 bytes_ns = sutro_destage_bytes_ns(destage, destage->bytes);

	if (destage->mark == mark && destage->seeks < SUTRO_DESTAGE_SEEKS)
		return;
	/* Where much of it were transfers, their speed would be learnt. */
	if (destage->mark == mark && bytes_ns < (s64)destage->spent_ns / 2)
		sutro_destage_learn(destage,
				    div_s64((s64)destage->spent_ns - bytes_ns,
					    destage->seeks));
	destage->mark = mark;
	destage->spent_ns = 0;
	destage->bytes = 0;
	destage->seeks = 0;
}

static void sutro_destage_begin(struct sutro_destage *destage, u32 spare)
{
	destage->period++;
	destage->spare = spare;
	destage->paid_ns = 0;
	destage->backlog_ns = 0;
}

/* The drive had @time_ns to destage.  Returns the part of it that the backlog did not need. */
static u64 sutro_destage_drain(struct sutro_destage *destage, u64 time_ns)
{
	u64 used_ns = min(time_ns, destage->backlog_ns);

	destage->backlog_ns -= used_ns;
	destage->spent_ns += used_ns;
	if (!destage->backlog_ns && destage->paid_ns)
		sutro_destage_begin(destage, 0);
	return time_ns - used_ns;
}

/* Credit a group with its overcharge of the last period; older periods expire. */
static void sutro_destage_settle(const struct sutro_destage *destage,
				 struct sutro_advance *own)
{
	u64 spare_ns;

	if (own->period == destage->period)
		return;
	if (own->period + 1 == destage->period) {
		spare_ns = own->paid_ns * destage->spare >>
			   SUTRO_DESTAGE_WHOLE_SHIFT;
		own->credit_us += div_u64(spare_ns, SUTRO_DESTAGE_NS_PER_US);
		if (own->credit_us > SUTRO_DESTAGE_CREDIT_US)
			own->credit_us = SUTRO_DESTAGE_CREDIT_US;
	}
	own->period = destage->period;
	own->paid_ns = 0;
}

/**
 * sutro_destage_wrote - a write has completed: what is it charged?
 * @destage:	the leaf's
 * @own:	its group's
 * @bytes:	its size
 * @seeks:	the group seeks
 * @cost_ns:	time since the last completion
 * @now_ns:	the time
 *
 * Return: device time in ns, with that of its destage.
 */
u64 sutro_destage_wrote(struct sutro_destage *destage,
			struct sutro_advance *own, u32 bytes, bool seeks,
			u64 cost_ns, u64 now_ns)
{
	u64 medium_ns = sutro_destage_bytes_ns(destage, bytes), more_ns;
	bool taken;

	sutro_destage_settle(destage, own);
	destage->wrote_ns = now_ns;
	destage->bytes += bytes;
	destage->unflushed_bytes += bytes;
	destage->writes = min(destage->writes + 1, SUTRO_DESTAGE_MIX_MOST);
	if (seeks || !own->paid_ns) {
		medium_ns += sutro_destage_seek_ns(destage);
		destage->seeks++;
		destage->look_seeks++;
	}
	taken = cost_ns * SUTRO_DESTAGE_TAKEN < medium_ns;
	if (taken) {
		own->paid_ns += medium_ns - cost_ns;
		destage->paid_ns += medium_ns - cost_ns;
	}
	if (taken || cost_ns > medium_ns) {
		destage->backlog_ns += medium_ns;
		more_ns = sutro_destage_drain(destage, cost_ns);
		cost_ns = medium_ns + more_ns;
	} else {
		more_ns = cost_ns;
	}
	if (!taken) {
		destage->spent_ns += more_ns;
		sutro_destage_mark(destage, SUTRO_DESTAGE_FULL);
	}
	return cost_ns;
}

/**
 * sutro_destage_rests - did the drive destage nothing before another request?
 * @destage:	the leaf's
 * @begins:	it had no request before this one, or a flush waits for it
 * @now_ns:	the time
 *
 * Return: true if nothing is in the cache, as far as is known; or so little that the drive serves
 * requests first.
 */
bool sutro_destage_rests(const struct sutro_destage *destage, bool begins,
			 u64 now_ns)
{
	if (!begins && destage->unflushed_bytes < SUTRO_DESTAGE_LITTLE_BYTES)
		return true;
	return !destage->wrote_ns ||
	       (!destage->backlog_ns &&
		now_ns - destage->wrote_ns >= SUTRO_DESTAGE_EMPTY_NS);
}

/* Update the mean of samples, which begins with @prior; weight 1 / 16 for the newest. */
static void sutro_destage_average(u64 *mean, u64 prior, u64 sample)
{
	if (!*mean)
		*mean = prior;
	*mean += (s64)(sample - *mean) >> 4;
}

/**
 * sutro_destage_read - a read has completed, before which nothing was destaged
 * @destage:	the leaf's
 * @bytes:	its size
 * @seeks:	its group seeks
 * @cost_ns:	time since the last completion
 */
void sutro_destage_read(struct sutro_destage *destage, u32 bytes, bool seeks,
			u64 cost_ns)
{
	u64 byte_ns16;

	if (seeks) {
		sutro_destage_average(&destage->other_seek_ns,
				      SUTRO_DESTAGE_SEEK_NS, cost_ns);
	} else if (bytes >= SUTRO_DESTAGE_STREAM_BYTES) {
		byte_ns16 = clamp_t(u64, div_u64(cost_ns << 4, bytes), 1,
				    SUTRO_DESTAGE_BYTE_NS16);
		sutro_destage_average(&destage->byte_ns16,
				      SUTRO_DESTAGE_BYTE_NS16, byte_ns16);
	}
}

/* Learn the time of a seek from the time that the backlog does not explain. */
static void sutro_destage_look(struct sutro_destage *destage, u64 now_ns)
{
	s64 seek_ns = sutro_destage_seek_ns(destage);
	s64 more_ns = destage->look_more_ns;

	if (now_ns - destage->look_ns < SUTRO_DESTAGE_LOOK_NS ||
	    destage->look_seeks < SUTRO_DESTAGE_SEEKS)
		return;
	if (destage->drained) {
		more_ns -= (s64)destage->backlog_ns;
		sutro_destage_learn(destage,
				    seek_ns + div_s64(more_ns,
						      destage->look_seeks));
	} else {
		seek_ns -= seek_ns >> SUTRO_DESTAGE_FALL_SHIFT;
		destage->seek_ns = max_t(u64, seek_ns, SUTRO_DESTAGE_LEAST_NS);
		destage->backlog_ns -= destage->backlog_ns >>
				       SUTRO_DESTAGE_FALL_SHIFT;
	}
	destage->look_ns = now_ns;
	destage->look_more_ns = destage->backlog_ns;
	destage->look_seeks = 0;
	destage->drained = false;
}

/* Are there so many writes that most other requests wait for a destage? */
static bool sutro_destage_is_mixed(const struct sutro_destage *destage)
{
	return destage->mix >= SUTRO_DESTAGE_MIX_WHOLE / 2;
}

/*
 * How much longer than expected did a request take, apart from destaging?  While there is a
 * backlog, one that took less makes up for a later one.
 */
static s64 sutro_destage_more(struct sutro_destage *destage, u64 own_ns,
			      u64 cost_ns)
{
	s64 more_ns = (s64)cost_ns - (s64)own_ns - (s64)destage->early_ns;

	destage->early_ns = 0;
	if (more_ns > 0) {
		more_ns = sutro_destage_drain(destage, more_ns);
		destage->drained |= !destage->backlog_ns;
		return more_ns;
	}
	if (!destage->backlog_ns || -more_ns > (s64)own_ns)
		return more_ns;
	destage->early_ns = -more_ns;
	return 0;
}

/**
 * sutro_destage_waited - another request has completed: what is it charged?
 * @destage:	the leaf's, which does not rest
 * @mean_ns:	mean cost of such requests of its group, 0 = not known
 * @bytes:	its size
 * @seeks:	its group seeks
 * @cost_ns:	time since the last completion
 * @now_ns:	the time
 *
 * Return: device time in ns, without that of destaging.
 */
u64 sutro_destage_waited(struct sutro_destage *destage, u64 mean_ns, u32 bytes,
			 bool seeks, u64 cost_ns, u64 now_ns)
{
	u64 seek_ns = sutro_destage_seek_ns(destage);
	u64 bytes_ns = sutro_destage_bytes_ns(destage, bytes);
	u64 most_ns = SUTRO_DESTAGE_STROKE_NS + bytes_ns;
	u64 own_ns = mean_ns;
	s64 more_ns;

	destage->mix += (s32)(destage->writes * SUTRO_DESTAGE_MIX_WHOLE -
			      destage->mix) >>
			SUTRO_DESTAGE_MIX_SHIFT;
	destage->writes = 0;
	if (!mean_ns || sutro_destage_is_mixed(destage)) {
		own_ns = bytes_ns + (seeks ? seek_ns : 0);
		destage->look_seeks += seeks;
	}
	/* A stream seeks after a destage. */
	if (!seeks && cost_ns > own_ns + seek_ns / 2)
		own_ns = min(cost_ns, own_ns + seek_ns);
	own_ns = min(own_ns, most_ns);

	more_ns = sutro_destage_more(destage, own_ns, cost_ns);
	destage->look_more_ns += more_ns;
	sutro_destage_look(destage, now_ns);
	return clamp_t(s64, (s64)own_ns + more_ns, 0, most_ns);
}

/**
 * sutro_destage_sample_ns - a sample for the mean cost of such requests
 * @destage:	the leaf's, after sutro_destage_waited()
 * @mean_ns:	as for that
 * @cost_ns:	as for that
 * @charged_ns:	result of that
 *
 * Return: the sample, in ns.
 */
u64 sutro_destage_sample_ns(const struct sutro_destage *destage, u64 mean_ns,
			    u64 cost_ns, u64 charged_ns)
{
	u64 half_ns = mean_ns / 2;
	u64 part_ns = half_ns * destage->mix >> SUTRO_DESTAGE_MIX_WHOLE_SHIFT;

	if (!mean_ns)
		return charged_ns;
	if (sutro_destage_is_mixed(destage))
		return mean_ns;
	if (cost_ns > mean_ns)
		return mean_ns + half_ns - part_ns;
	return mean_ns - half_ns - part_ns;
}

/**
 * sutro_destage_idled - the drive had no request
 * @destage:	the leaf's
 * @idle_ns:	for how long
 */
void sutro_destage_idled(struct sutro_destage *destage, u64 idle_ns)
{
	sutro_destage_drain(destage, idle_ns);
}

/**
 * sutro_destage_credit - what is left of a charge?
 * @own:	the group's
 * @cost_ns:	the charge
 *
 * Return: the part of @cost_ns that the group's credit does not pay.
 */
u64 sutro_destage_credit(struct sutro_advance *own, u64 cost_ns)
{
	u32 used_us;

	if (!own->credit_us)
		return cost_ns;
	used_us = min_t(u64, own->credit_us,
			div_u64(cost_ns, SUTRO_DESTAGE_NS_PER_US));
	own->credit_us -= used_us;
	return cost_ns - (u64)used_us * SUTRO_DESTAGE_NS_PER_US;
}

/**
 * sutro_destage_flushed - a flush is over
 * @destage:	the leaf's
 * @cost_ns:	device time that it took
 *
 * Return: the part of @cost_ns that was not charged in advance.
 */
u64 sutro_destage_flushed(struct sutro_destage *destage, u64 cost_ns)
{
	u64 backlog_ns = destage->backlog_ns,
	    used_ns = min(backlog_ns, cost_ns);
	u64 spare_ns = min(backlog_ns - used_ns, destage->paid_ns);
	u32 spare = 0;

	destage->spent_ns += cost_ns;
	sutro_destage_mark(destage, SUTRO_DESTAGE_EMPTIED);
	destage->unflushed_bytes = 0;
	/* Another request that shared the flush has settled it. */
	if (!backlog_ns)
		return cost_ns;
	if (spare_ns)
		spare = div64_u64(spare_ns << SUTRO_DESTAGE_WHOLE_SHIFT,
				  destage->paid_ns);
	sutro_destage_begin(destage, spare);
	return cost_ns - used_ns;
}
