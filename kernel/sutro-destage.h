/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: data that a drive has in its cache.
 * sutro-destage.c describes how they are charged.
 *
 * Pure C, like sutro-core.h.  The caller serializes all calls.
 */
#ifndef SUTRO_DESTAGE_H
#define SUTRO_DESTAGE_H

#include <linux/types.h>

/* When was it known how much is in the cache? */
enum sutro_destage_mark {
	SUTRO_DESTAGE_UNKNOWN,
	SUTRO_DESTAGE_EMPTIED, /* a flush was over */
	SUTRO_DESTAGE_FULL, /* a write waited for room */
};

/**
 * struct sutro_destage - charges for the data in the cache of a leaf
 * @period:	number of the period, which begins when the cache is empty
 * @spare:	part of the charges of the last period that its flush did not need, of
 *		1024
 * @paid_ns:	device time that was charged in it for destaging
 * @backlog_ns:	device time that the data in the cache still need
 * @early_ns:	time by which other requests took less than expected, which later ones may use
 * @wrote_ns:	when the cache took the last write, 0 = never
 * @unflushed_bytes: taken since the last flush
 * @writes:	since the last other request
 * @mix:	mean of that, in 1/65536
 * @seek_ns:	device time of a seek, 0 = not known
 * @other_seek_ns: the same of other requests, while nothing was in the cache
 * @byte_ns16:	device time of a byte of a stream, in 1/16 ns, 0 = not known
 * @mark:	of the following
 * @spent_ns:	time that passed with destaging since then
 * @bytes:	data that the cache has taken since then
 * @seeks:	and seeks that it takes to destage that
 * @look_ns:	when the time of a seek was looked at last
 * @look_more_ns: time of other requests since then that nothing explains, less the time by which
 *		they took less than expected
 * @look_seeks:	seeks since then by which it would be explained
 * @drained:	the backlog was gone since then
 */
struct sutro_destage {
	u32 period;
	u32 spare;
	u64 paid_ns;
	u64 backlog_ns;
	u64 early_ns;
	u64 wrote_ns;
	u64 unflushed_bytes;
	u32 writes;
	u32 mix;
	u64 seek_ns;
	u64 other_seek_ns;
	u64 byte_ns16;
	enum sutro_destage_mark mark;
	u64 spent_ns;
	u64 bytes;
	u32 seeks;
	u64 look_ns;
	s64 look_more_ns;
	u32 look_seeks;
	bool drained;
};

/**
 * struct sutro_advance - charges of a group for data in the cache of a leaf
 * @period:	&sutro_destage.period of @paid_ns
 * @credit_us:	its overcharge
 * @paid_ns:	device time that it was charged for destaging
 */
struct sutro_advance {
	u32 period;
	u32 credit_us;
	u64 paid_ns;
};

u64 sutro_destage_wrote(struct sutro_destage *destage,
			struct sutro_advance *own, u32 bytes, bool seeks,
			u64 cost_ns, u64 now_ns);
bool sutro_destage_rests(const struct sutro_destage *destage, bool begins,
			 u64 now_ns);
void sutro_destage_read(struct sutro_destage *destage, u32 bytes, bool seeks,
			u64 cost_ns);
u64 sutro_destage_waited(struct sutro_destage *destage, u64 mean_ns, u32 bytes,
			 bool seeks, u64 cost_ns, u64 now_ns);
u64 sutro_destage_sample_ns(const struct sutro_destage *destage, u64 mean_ns,
			    u64 cost_ns, u64 charged_ns);
void sutro_destage_idled(struct sutro_destage *destage, u64 idle_ns);
u64 sutro_destage_credit(struct sutro_advance *own, u64 cost_ns);
u64 sutro_destage_flushed(struct sutro_destage *destage, u64 cost_ns);

#endif /* SUTRO_DESTAGE_H */
