/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: a tracepoint for each decision.
 *
 * Kbuild gives this file's name to <trace/define_trace.h> (TRACE_INCLUDE_FILE).
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM sutro

#if !defined(SUTRO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SUTRO_TRACE_H

#include <linux/blkdev.h>
#include <linux/tracepoint.h>

TRACE_EVENT(sutro_dispatch,
	    TP_PROTO(struct request *rq, u64 cgroup, u64 estimate_ns,
		     u64 wait_ns),
	    TP_ARGS(rq, cgroup, estimate_ns, wait_ns),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(sector_t, sector)
			     __field(u32, bytes)
			     __field(u64, estimate_ns)
			     __field(u64, wait_ns)),
	    TP_fast_assign(__entry->dev = disk_devt(rq->q->disk);
			   __entry->cgroup = cgroup;
			   __entry->sector = blk_rq_pos(rq);
			   __entry->bytes = blk_rq_bytes(rq);
			   __entry->estimate_ns = estimate_ns;
			   __entry->wait_ns = wait_ns;),
	    TP_printk("%d,%d cgroup=%llu sector=%llu bytes=%u estimate_ns=%llu wait_ns=%llu",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      (unsigned long long)__entry->sector, __entry->bytes,
		      __entry->estimate_ns, __entry->wait_ns)
);

TRACE_EVENT(sutro_complete,
	    TP_PROTO(struct request *rq, u64 cgroup, u64 estimate_ns,
		     u64 cost_ns),
	    TP_ARGS(rq, cgroup, estimate_ns, cost_ns),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(u64, estimate_ns)
			     __field(u64, cost_ns)),
	    TP_fast_assign(__entry->dev = disk_devt(rq->q->disk);
			   __entry->cgroup = cgroup;
			   __entry->estimate_ns = estimate_ns;
			   __entry->cost_ns = cost_ns;),
	    TP_printk("%d,%d cgroup=%llu estimate_ns=%llu cost_ns=%llu",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      __entry->estimate_ns, __entry->cost_ns)
);

TRACE_EVENT(sutro_idle,
	    TP_PROTO(struct gendisk *disk, u64 cgroup, u64 wait_ns),
	    TP_ARGS(disk, cgroup, wait_ns),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(u64, wait_ns)),
	    TP_fast_assign(__entry->dev = disk_devt(disk);
			   __entry->cgroup = cgroup;
			   __entry->wait_ns = wait_ns;),
	    TP_printk("%d,%d cgroup=%llu wait_ns=%llu",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      __entry->wait_ns)
);

TRACE_EVENT(sutro_expire,
	    TP_PROTO(struct gendisk *disk, u64 cgroup, int reason),
	    TP_ARGS(disk, cgroup, reason),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(int, reason)),
	    TP_fast_assign(__entry->dev = disk_devt(disk);
			   __entry->cgroup = cgroup;
			   __entry->reason = reason;),
	    TP_printk("%d,%d cgroup=%llu reason=%s",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      __print_symbolic(__entry->reason,
				       { SUTRO_EXPIRY_USED, "used" },
				       { SUTRO_EXPIRY_EMPTY, "empty" },
				       { SUTRO_EXPIRY_PREEMPTED, "preempted" }))
);

#endif /* SUTRO_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#include <trace/define_trace.h>
