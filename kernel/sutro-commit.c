// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: a device with one actuator, and a commit that waits for it.
 *
 * A commit is a flush of the write cache or a write of a journal.  Tasks wait for it
 * with nothing else to do, so it is a single request.  A drive that serves the nearest
 * request first leaves such a request waiting behind a stream for as long as requests
 * of the stream keep coming: up to a second on many drives, for each step of an fsync().
 * The same holds for the writes that a flush makes the drive do.
 *
 * So while a commit is at a rotational device, no other request is sent, for slice_ns
 * from the last commit on at most.  The drive then has what it was sent before, at most
 * half a slice's worth, and the commit.  This applies to commits of groups that were
 * served no more than half a slice in advance, as for other prompt requests
 * (sutro-requests.c).  A group that is further in advance has its commits served when
 * the drive chooses to.
 *
 *	b reads a stream and has requests for 50 ms at the drive.  a commits: the drive
 *	is done with both after 60 ms.  If b went on, the drive would serve b only, until
 *	the commit is a second old.
 *
 * On other devices requests are served side by side, and others are held back only
 * while their group is owed device time (sutro-select.c).
 *
 * A flush may wait for requests that are queued here: the block layer begins none while
 * the data of another flush sequence are on their way (block/blk-flush.c).  While such
 * data are queued, no request is held back for a group that has a commit at the device.
 *
 *	a waits for a flush, and is owed half a slice.  b has written data with REQ_FUA to
 *	a drive without FUA, and they are queued.  If b were held back for a, neither would
 *	ever be served.
 */
#include "sutro-core.h"

/**
 * sutro_core_commit - a commit goes to the device
 * @core:	the leaf
 * @group:	its group, after sutro_core_dispatch()
 * @now_ns:	the time
 */
void sutro_core_commit(struct sutro_core *core, struct sutro_group *group,
		       u64 now_ns)
{
	const struct sutro_tunables *t = &core->tunables;

	group->commits++;
	core->commits++;
	/* A write and its flush count as one request of the latency-sensitive group. */
	if (group == core->sensitive && core->sensitive_nr)
		core->sensitive_nr--;
	if (t->rotational && sutro_tree_may_borrow(group, t->slice_ns / 2))
		core->commit_until_ns = now_ns + t->slice_ns;
}

/**
 * sutro_core_committed - commits of a group have left the device
 * @core:	the leaf
 * @group:	the group
 * @nr:		how many
 */
void sutro_core_committed(struct sutro_core *core, struct sutro_group *group,
			  u32 nr)
{
	group->commits -= nr;
	core->commits -= nr;
	if (!core->commits)
		core->commit_until_ns = 0;
}
