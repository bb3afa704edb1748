/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: requests that are done: notes for the next dispatch, and flushes.
 */
#ifndef SUTRO_COMPLETION_H
#define SUTRO_COMPLETION_H

#include "sutro.h"

/* sutro-notes.c */
void sutro_note_setting(struct sutro_blkg *sblkg, enum sutro_setting setting);
void sutro_note_offline(struct sutro_blkg *sblkg);
void sutro_note_completed(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			  struct request *rq, u64 now_ns);
void sutro_note_counted(struct sutro_queue *sq, struct request *rq, u64 now_ns);
void sutro_note_requeued(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			 struct request *rq);
void sutro_note_flush(struct sutro_queue *sq, struct sutro_blkg *sblkg);
void sutro_note_flushed(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			u64 start_ns, u64 now_ns);
void sutro_note_unflushed(struct sutro_queue *sq, struct sutro_blkg *sblkg);
struct sutro_busy *sutro_busy(struct sutro_blkg *sblkg);
void sutro_fold(struct sutro_queue *sq);

/* Data that fsync() writes, or sync(). */
static inline bool sutro_op_syncs(blk_opf_t opf)
{
	return op_is_write(opf) && (opf & REQ_SYNC) &&
	       !(opf & (REQ_IDLE | REQ_META | REQ_SWAP));
}

/* sutro-flush.c */
void sutro_flush_sent(struct sutro_queue *sq, struct sutro_blkg *sblkg,
		      blk_opf_t opf, u64 now_ns);
void sutro_flush_saw(struct sutro_queue *sq, struct bio *bio);
void sutro_flush_forget(struct sutro_queue *sq, struct sutro_blkg *sblkg);
struct sutro_blkg *sutro_flush_owner(struct sutro_queue *sq,
				     struct request *rq);
void sutro_flush_begin(struct sutro_queue *sq, struct request *rq);
void sutro_flush_end(struct sutro_queue *sq, struct request *rq, u64 now_ns);
void sutro_flush_cancel(struct sutro_queue *sq, struct request *rq);
void sutro_flush_written(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			 struct request *rq);

#endif /* SUTRO_COMPLETION_H */
