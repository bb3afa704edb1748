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

#include <linux/blk-mq.h>
#include <linux/ioprio.h>
#include <linux/tracepoint.h>

#include "sutro-core.h"
#include "sutro-cost.h"

TRACE_EVENT(sutro_dispatch,
	    TP_PROTO(struct request *rq, u64 cgroup, u64 estimate_ns,
		     u64 wait_ns, bool prompt),
	    TP_ARGS(rq, cgroup, estimate_ns, wait_ns, prompt),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(u32, op)
			     __field(u32, ioprio)
			     __field(bool, sync)
			     __field(bool, prompt)
			     __field(sector_t, sector)
			     __field(u32, bytes)
			     __field(u64, estimate_ns)
			     __field(u64, wait_ns)),
	    TP_fast_assign(__entry->dev = disk_devt(rq->q->disk);
			   __entry->cgroup = cgroup;
			   __entry->op = (__force u32)req_op(rq);
			   __entry->ioprio = req_get_ioprio(rq);
			   __entry->sync = op_is_sync(rq->cmd_flags);
			   __entry->prompt = prompt;
			   __entry->sector = blk_rq_pos(rq);
			   __entry->bytes = blk_rq_bytes(rq);
			   __entry->estimate_ns = estimate_ns;
			   __entry->wait_ns = wait_ns;),
	    TP_printk("%d,%d cgroup=%llu op=%u ioprio=%u.%u sync=%d prompt=%d sector=%llu bytes=%u estimate_ns=%llu wait_ns=%llu",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      __entry->op, IOPRIO_PRIO_CLASS(__entry->ioprio),
		      IOPRIO_PRIO_LEVEL(__entry->ioprio), __entry->sync,
		      __entry->prompt,
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
	    TP_PROTO(struct gendisk *disk, u64 cgroup, u64 wait_ns, bool owed),
	    TP_ARGS(disk, cgroup, wait_ns, owed),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(u64, wait_ns)
			     __field(bool, owed)),
	    TP_fast_assign(__entry->dev = disk_devt(disk);
			   __entry->cgroup = cgroup;
			   __entry->wait_ns = wait_ns;
			   __entry->owed = owed;),
	    TP_printk("%d,%d cgroup=%llu wait_ns=%llu reason=%s",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      __entry->wait_ns, __entry->owed ? "owed" : "slice")
);

TRACE_EVENT(sutro_idle_end,
	    TP_PROTO(struct gendisk *disk, u64 cgroup, u64 idled_ns,
		     int reason),
	    TP_ARGS(disk, cgroup, idled_ns, reason),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(u64, idled_ns)
			     __field(int, reason)),
	    TP_fast_assign(__entry->dev = disk_devt(disk);
			   __entry->cgroup = cgroup;
			   __entry->idled_ns = idled_ns;
			   __entry->reason = reason;),
	    TP_printk("%d,%d cgroup=%llu idled_ns=%llu reason=%s",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      __entry->idled_ns,
		      __print_symbolic(__entry->reason,
				       { SUTRO_IDLE_END_ARRIVED, "arrived" },
				       { SUTRO_IDLE_END_LATE, "late" },
				       { SUTRO_IDLE_END_OTHER, "other" }))
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

TRACE_EVENT(sutro_slot_refused,
	    TP_PROTO(struct gendisk *disk, u64 cgroup, u32 used, u32 limit),
	    TP_ARGS(disk, cgroup, used, limit),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(u32, used)
			     __field(u32, limit)),
	    TP_fast_assign(__entry->dev = disk_devt(disk);
			   __entry->cgroup = cgroup;
			   __entry->used = used;
			   __entry->limit = limit;),
	    TP_printk("%d,%d cgroup=%llu used=%u limit=%u",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      __entry->used, __entry->limit)
);

TRACE_EVENT(sutro_cost,
	    TP_PROTO(struct gendisk *disk, u64 cgroup, unsigned int class,
		     u64 old_ns16, u64 new_ns16),
	    TP_ARGS(disk, cgroup, class, old_ns16, new_ns16),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(u64, cgroup)
			     __field(unsigned int, class)
			     __field(u64, old_ns)
			     __field(u64, new_ns)),
	    TP_fast_assign(__entry->dev = disk_devt(disk);
			   __entry->cgroup = cgroup;
			   __entry->class = class;
			   __entry->old_ns = old_ns16 / 16;
			   __entry->new_ns = new_ns16 / 16;),
	    TP_printk("%d,%d cgroup=%llu op=%s bytes<=%u old_ns=%llu new_ns=%llu",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		      __print_symbolic(__entry->class / SUTRO_SIZES,
				       { SUTRO_READ, "read" },
				       { SUTRO_WRITE, "write" },
				       { SUTRO_OTHER, "other" }),
		      SUTRO_SIZE_MIN_BYTES << (__entry->class % SUTRO_SIZES),
		      __entry->old_ns, __entry->new_ns)
);

#endif /* SUTRO_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#include <trace/define_trace.h>
