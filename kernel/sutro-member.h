/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: groups whose requests go past the elevator (sutro-member.c).
 */
#ifndef SUTRO_MEMBER_H
#define SUTRO_MEMBER_H

#include "sutro.h"

/**
 * struct sutro_sent - what a group has sent past the elevator, reads (0) and writes (1)
 * @ios:	bios that began a request
 * @bytes:	their size
 *
 * Only differences count, so it may wrap.
 */
struct sutro_sent {
	u64 ios[2];
	u64 bytes[2];
};

/**
 * struct sutro_member - a group that is, or was, a member of a lease
 * @node:	place in &sutro_queue.members
 * @sblkg:	the group
 * @lease:	&sutro_lease.number of the last lease that it was a member of
 * @sent:	its bios, by CPU; the bytes only with @counts_bytes
 * @counts_bytes: the block layer does not: for the root cgroup, and with cgroup v1
 * @ordered:	bytes of its requests that the elevator ordered during leases
 * @seen:	the sum of @sent at the last tick, without @ordered
 * @more:	the increase of that sum since the tick before
 * @recent:	that of the last tick in which a member has sent anything
 *
 * @lease and @sent are read and written without a lock, @ordered under sutro_queue.lock, and the
 * rest under sutro_queue.done_lock.
 */
struct sutro_member {
	struct list_head node;
	struct sutro_blkg *sblkg;
	u32 lease;
	bool counts_bytes;
	struct sutro_sent __percpu *sent;
	u64 ordered[2];
	struct sutro_sent seen;
	struct sutro_sent more;
	struct sutro_sent recent;
};

/**
 * sutro_member_of - is a group a member of a lease?
 * @sblkg:	the group
 * @lease:	the number of the lease
 *
 * Return: the member, or NULL.
 */
static inline struct sutro_member *sutro_member_of(struct sutro_blkg *sblkg,
						   u32 lease)
{
	/* Pair with smp_store_release() in sutro_busy() and sutro_member_join(). */
	struct sutro_busy *busy = READ_ONCE(sblkg->busy);
	struct sutro_member *member = busy ? READ_ONCE(busy->member) : NULL;

	return member && READ_ONCE(member->lease) == lease ? member : NULL;
}

/**
 * sutro_member_sends - a group sends a bio that may go past the elevator
 * @member:	the group
 * @bio:	a read or a write that begins a request
 */
static inline void sutro_member_sends(struct sutro_member *member,
				      struct bio *bio)
{
	bool write = op_is_write(bio_op(bio));

	this_cpu_inc(member->sent->ios[write]);
	if (member->counts_bytes)
		this_cpu_add(member->sent->bytes[write], bio->bi_iter.bi_size);
}

bool sutro_member_join(struct sutro_queue *sq, struct sutro_blkg *sblkg);
bool sutro_member_admit(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			struct bio *bio);
struct blkcg_gq *sutro_members_begin(struct sutro_queue *sq);
void sutro_members_account(struct sutro_queue *sq,
			   const struct sutro_tally *new,
			   void (*account)(struct sutro_queue *sq,
					   struct sutro_blkg *sblkg,
					   const struct sutro_tally *part));
void sutro_member_ordered(struct sutro_blkg *sblkg, bool write, s64 bytes);
void sutro_member_leave(struct sutro_blkg *sblkg);
void sutro_member_free(struct sutro_member *member);

#endif /* SUTRO_MEMBER_H */
