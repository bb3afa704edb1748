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
 * taken by the cache.  Its group is charged the time of the medium: 8 ns for a byte, and
 * 4 ms for a seek if the group seeks or if it is its first write since the last flush.  A
 * cache that is full takes a write when it has room: then the gap is the time of a
 * destage, and nothing is charged in advance.
 *
 * 2. Flushes
 *
 * A flush takes as long as destaging takes.  So the time of a flush minus what was charged
 * in advance since the last one is charged to the group that flushes.  If more was charged
 * than the flush took, each group has its part of the difference as a credit, which pays for
 * its next requests.  A credit is SUTRO_DESTAGE_CREDIT_US at most: a group that writes one
 * block again and again earns no more.
 *
 *	a writes 16 MiB, which the cache takes in 30 ms, and is charged 138 ms.  b writes
 *	4 KiB, is charged 4 ms, and flushes, which takes 120 ms.  The 112 ms that both were
 *	charged in advance pay for most of that.  b is charged the other 8 ms.
 *
 * A flush is no measure of data that were destaged long ago.  So a period without a flush
 * ends after SUTRO_DESTAGE_PERIOD_NS, without credits.
 *
 * 3. Other requests
 *
 * A drive whose cache is full may destage for seconds before it reads.  A read, or a write
 * past the cache, is not charged for that: while data may be in the cache, it is charged
 * 8 ns for a byte and a full stroke at most.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "sutro-destage.h"

/* As the prior costs of a rotational device (sutro-estimate.c): 125 MB/s. */
#define SUTRO_DESTAGE_SEEK_NS (4 * 1000 * 1000ULL)
#define SUTRO_DESTAGE_BYTE_NS 8ULL
/* The longest seek of a slow drive, and a revolution. */
#define SUTRO_DESTAGE_STROKE_NS (32 * 1000 * 1000ULL)
/*
 * The cache took a write if it was this many times faster than the medium.  Interfaces
 * transfer at least 540 MB/s, media at most 280 MB/s.
 */
#define SUTRO_DESTAGE_TAKEN 3
#define SUTRO_DESTAGE_PERIOD_NS (1000 * 1000 * 1000ULL)
#define SUTRO_DESTAGE_CREDIT_US (100 * 1000U)
#define SUTRO_DESTAGE_WHOLE_SHIFT 10
#define SUTRO_DESTAGE_NS_PER_US 1000U

static void sutro_destage_begin(struct sutro_destage *destage, u32 spare,
				u64 now_ns)
{
	destage->period++;
	destage->spare = spare;
	destage->begin_ns = now_ns;
	destage->paid_ns = 0;
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
 * @cost_ns:	its cost until now
 * @now_ns:	the time
 *
 * Return: device time in ns, with that of its destage.
 */
u64 sutro_destage_wrote(struct sutro_destage *destage,
			struct sutro_advance *own, u32 bytes, bool seeks,
			u64 cost_ns, u64 now_ns)
{
	u64 medium_ns = SUTRO_DESTAGE_BYTE_NS * bytes;

	if (now_ns - destage->begin_ns >= SUTRO_DESTAGE_PERIOD_NS)
		sutro_destage_begin(destage, 0, now_ns);
	sutro_destage_settle(destage, own);
	if (seeks || !own->paid_ns)
		medium_ns += SUTRO_DESTAGE_SEEK_NS;
	if (cost_ns * SUTRO_DESTAGE_TAKEN >= medium_ns)
		return cost_ns;
	own->paid_ns += medium_ns - cost_ns;
	destage->paid_ns += medium_ns - cost_ns;
	return medium_ns;
}

/**
 * sutro_destage_waited - another request has completed: what is it charged?
 * @destage:	the leaf's
 * @bytes:	its size
 * @cost_ns:	time since the last completion
 *
 * Return: device time in ns, without that of a long destage.
 */
u64 sutro_destage_waited(const struct sutro_destage *destage, u32 bytes,
			 u64 cost_ns)
{
	if (!destage->paid_ns)
		return cost_ns;
	return min(cost_ns,
		   SUTRO_DESTAGE_STROKE_NS + SUTRO_DESTAGE_BYTE_NS * bytes);
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
 * @now_ns:	the time
 *
 * Return: the part of @cost_ns that was not charged in advance.
 */
u64 sutro_destage_flushed(struct sutro_destage *destage, u64 cost_ns,
			  u64 now_ns)
{
	u64 paid_ns = destage->paid_ns, spare_ns;

	/* Another request that shared the flush has settled it. */
	if (!paid_ns)
		return cost_ns;
	spare_ns = paid_ns - min(paid_ns, cost_ns);
	sutro_destage_begin(destage,
			    div64_u64(spare_ns << SUTRO_DESTAGE_WHOLE_SHIFT,
				      paid_ns),
			    now_ns);
	return cost_ns - min(paid_ns, cost_ns);
}
