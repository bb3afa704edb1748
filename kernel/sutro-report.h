/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: traces, and files in sysfs and debugfs (sutro-trace.c, sutro-sysfs.c,
 * sutro-debugfs.c).
 */
#ifndef SUTRO_REPORT_H
#define SUTRO_REPORT_H

#include "sutro.h"

/* sutro-trace.c */
void sutro_report(struct sutro_queue *sq);
void sutro_report_idle(struct sutro_queue *sq, u64 wait_ns);
void sutro_report_refused(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			  unsigned int used, unsigned int limit);
void sutro_report_costs(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			const struct sutro_costs *old,
			const struct sutro_costs *new);

/* sutro-debugfs.c */
#ifdef CONFIG_BLK_DEBUG_FS
extern const struct blk_mq_debugfs_attr sutro_debugfs_attrs[];
#endif

/* sutro-sysfs.c */
extern struct elv_fs_entry sutro_attrs[];
#define SUTRO_MAX_IDLE_NS (1 * NSEC_PER_SEC)

#endif /* SUTRO_REPORT_H */
