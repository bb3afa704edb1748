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

/**
 * struct sutro_destage - charges for the data in the cache of a leaf
 * @period:	number of the period, which begins with a flush
 * @spare:	part of the charges of the last period that its flush did not need, of
 *		1024
 * @begin_ns:	when the period began
 * @paid_ns:	device time that was charged in it for destaging
 */
struct sutro_destage {
	u32 period;
	u32 spare;
	u64 begin_ns;
	u64 paid_ns;
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
u64 sutro_destage_waited(const struct sutro_destage *destage, u32 bytes,
			 u64 cost_ns);
u64 sutro_destage_credit(struct sutro_advance *own, u64 cost_ns);
u64 sutro_destage_flushed(struct sutro_destage *destage, u64 cost_ns,
			  u64 now_ns);

#endif /* SUTRO_DESTAGE_H */
