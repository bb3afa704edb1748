// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: groups whose requests go past the elevator, and their parts of it.
 *
 * The elevator has no hook where such a request completes, and the disk counts the requests of
 * all groups together (sutro-lease.c).  So each tick divides the completed requests among the
 * members of the lease, by those that they have sent since the last tick:
 *
 *  - requests, by the bios that began one: each is counted by its CPU, with the member;
 *  - bytes, by those of the cgroup's iostat, which the block layer counts by CPU, too, and of
 *    which some may have joined a request in a plug, less those of requests that the elevator
 *    ordered, as it does with writeback.  The root cgroup has no such count, nor has
 *    any with cgroup v1, so bios of these count with the member.
 *
 *	a sends 300 reads of 4 KiB in 10 ms, and b 100 of 64 KiB.  The disk has completed
 *	390 reads of 7,400 KiB: a has 292 of them with 1,168 KiB, b 98 with 6,232 KiB.
 *
 * Sums over all members are exact.  The part of one of them differs from the truth by requests at
 * the device at the first and the last tick, and by bios that were ordered after all.  The only
 * member has everything, and is not counted.
 *
 * A group stays in the list when the lease is over, and most likely is a member of the next one.
 * One that comes during a lease with several members is counted from then on.  Its counters are
 * freed with the group.
 *
 * A tick reads two cache lines for each member and CPU, with interrupts off.  With 64 CPUs, 32
 * groups may be members: at 20 ns for a line, a tick takes 80 us of 10 ms.
 */
#include <linux/percpu.h>
#include <linux/slab.h>

#include "sutro-completion.h"
#include "sutro-member.h"

/* Members times CPUs: a bound of the time with interrupts off. */
#define SUTRO_MEMBER_COUNTERS 2048

static struct sutro_member *sutro_member_new(struct sutro_blkg *sblkg)
{
	const gfp_t gfp = GFP_NOWAIT | __GFP_NOWARN;
	struct sutro_member *member = kzalloc(sizeof(*member), gfp);

	if (!member)
		return NULL;
	member->sent = alloc_percpu_gfp(struct sutro_sent, gfp);
	if (!member->sent) {
		kfree(member);
		return NULL;
	}
	INIT_LIST_HEAD(&member->node);
	member->sblkg = sblkg;
	member->counts_bytes = !sblkg->group.parent ||
			       !cgroup_subsys_on_dfl(io_cgrp_subsys);
	return member;
}

/* The group as a member, which it may never have been; NULL if there is no memory. */
static struct sutro_member *sutro_member_get(struct sutro_blkg *sblkg)
{
	struct sutro_busy *busy = sutro_busy(sblkg);
	struct sutro_member *member;

	if (!busy)
		return NULL;
	member = busy->member;
	if (!member) {
		member = sutro_member_new(sblkg);
		/* Pairs with READ_ONCE() in sutro_member_of(). */
		smp_store_release(&busy->member, member);
	}
	return member;
}

/* May there be one more member? */
static bool sutro_members_have_room(const struct sutro_queue *sq)
{
	return sq->lease.members * num_possible_cpus() < SUTRO_MEMBER_COUNTERS;
}

/* A group is no member of the lease any more. */
static void sutro_member_drop(struct sutro_queue *sq,
			      struct sutro_member *member)
{
	WRITE_ONCE(member->lease, 0);
	list_del_init(&member->node);
	sq->lease.members--;
}

/* Are weight and class of a member those of a group? */
static bool sutro_member_equals(const struct sutro_member *member,
				struct sutro_group *group)
{
	struct sutro_entity *mine, *its;

	sutro_tree_compare(group, &member->sblkg->group, &mine, &its);
	return its->weight == mine->weight && its->class == mine->class;
}

/* Are all members siblings of a group, with its weight and class?  Settings may change. */
static bool sutro_members_are_like(const struct sutro_lease *lease,
				   const struct sutro_group *group)
{
	return lease->members && !lease->renewed && group->parent &&
	       lease->parent == group->parent &&
	       lease->weight == group->entity.weight &&
	       lease->class == group->entity.class;
}

/*
 * Take out those members of another weight or class than a new one.  They may have sent nothing for
 * long: whether they need protection is found when they send again.  They are compared one by one
 * only if they differ in some way from the new one.
 */
static void sutro_members_equal(struct sutro_queue *sq,
				struct sutro_group *group)
{
	struct sutro_lease *lease = &sq->lease;
	struct sutro_member *member, *next;

	if (sutro_members_are_like(lease, group))
		return;
	list_for_each_entry_safe(member, next, &sq->members, node) {
		/* Of a former lease. */
		if (member->lease != sq->lease.number)
			list_del_init(&member->node);
		else if (!sutro_member_equals(member, group))
			sutro_member_drop(sq, member);
	}
	lease->parent = lease->members ? NULL : group->parent;
	lease->weight = group->entity.weight;
	lease->class = group->entity.class;
}

/* May a group become a member?  Returns it, not in use yet; NULL if not. */
static struct sutro_member *sutro_member_may(struct sutro_queue *sq,
					     struct sutro_blkg *sblkg)
{
	if (sblkg->note.gone || sq->exiting || !sutro_members_have_room(sq))
		return NULL;
	return sutro_member_get(sblkg);
}

static void sutro_member_add(struct sutro_queue *sq,
			     struct sutro_member *member)
{
	if (list_empty(&member->node))
		list_add_tail(&member->node, &sq->members);
	WRITE_ONCE(member->lease, sq->lease.number);
	sq->lease.members++;
}

/**
 * sutro_member_join - a group becomes a member of the next lease
 * @sq:		the leaf
 * @sblkg:	the group
 *
 * Return: false if its cgroup has been removed, if there are too many members, or if there was no
 * memory.
 *
 * Context: sutro_queue.lock is held.
 */
bool sutro_member_join(struct sutro_queue *sq, struct sutro_blkg *sblkg)
{
	struct sutro_member *member;

	lockdep_assert_held(&sq->lock);

	if (sutro_member_of(sblkg, sq->lease.number))
		return true;
	spin_lock_irq(&sq->done_lock);
	member = sutro_member_may(sq, sblkg);
	if (member) {
		sutro_members_equal(sq, &sblkg->group);
		sutro_member_add(sq, member);
	}
	spin_unlock_irq(&sq->done_lock);
	return member;
}

/* Read how much a member has sent past the elevator, ever.  With sutro_queue.lock held. */
static void sutro_member_read(const struct sutro_member *member,
			      struct sutro_sent *ret_sent)
{
	struct blkcg_gq *blkg = sutro_to_blkg(member->sblkg);
	int cpu, op;

	*ret_sent = (struct sutro_sent){};
	for_each_possible_cpu(cpu) {
		const struct sutro_sent *sent = per_cpu_ptr(member->sent, cpu);
		struct blkg_iostat_set *set =
			per_cpu_ptr(blkg->iostat_cpu, cpu);
		u64 bytes[2];
		unsigned int seq;

		do {
			seq = u64_stats_fetch_begin(&set->sync);
			bytes[0] = set->cur.bytes[BLKG_IOSTAT_READ];
			bytes[1] = set->cur.bytes[BLKG_IOSTAT_WRITE];
		} while (u64_stats_fetch_retry(&set->sync, seq));
		for (op = 0; op < 2; op++) {
			ret_sent->ios[op] += READ_ONCE(sent->ios[op]);
			ret_sent->bytes[op] +=
				bytes[op] + READ_ONCE(sent->bytes[op]);
		}
	}
	for (op = 0; op < 2; op++)
		ret_sent->bytes[op] -= member->ordered[op];
}

/* Count what a member sends from now on. */
static void sutro_member_begin(struct sutro_member *member)
{
	sutro_member_read(member, &member->seen);
	member->recent = (struct sutro_sent){};
}

/* The next member of the lease behind @member, or the first one; NULL if there is none. */
static struct sutro_member *sutro_member_next(struct sutro_queue *sq,
					      struct sutro_member *member)
{
	member = list_prepare_entry(member, &sq->members, node);
	do
		member = list_next_entry(member, node);
	while (!list_entry_is_head(member, &sq->members, node) &&
	       member->lease != sq->lease.number);
	return list_entry_is_head(member, &sq->members, node) ? NULL : member;
}

/* Are weight and class of all members those of a group, which becomes one? */
static bool sutro_members_have_weight_of(struct sutro_queue *sq,
					 struct sutro_group *group)
{
	struct sutro_member *member = NULL;

	if (sutro_members_are_like(&sq->lease, group))
		return true;
	while ((member = sutro_member_next(sq, member)))
		if (!sutro_member_equals(member, group))
			return false;
	/* It may be no sibling. */
	sq->lease.parent = NULL;
	return true;
}

/**
 * sutro_member_admit - a group becomes a member of the lease that is on
 * @sq:		the leaf, in direct mode
 * @sblkg:	the group
 * @bio:	the bio that it sends, which the cgroup's iostat has already
 *
 * Return: false as sutro_member_join(), and if the lease has a single member, or one of another
 * weight or class.
 *
 * Context: sutro_queue.lock is held.
 */
bool sutro_member_admit(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			struct bio *bio)
{
	struct sutro_member *member;
	bool joins = false;

	lockdep_assert_held(&sq->lock);

	if (sutro_member_of(sblkg, sq->lease.number))
		return true;
	spin_lock_irq(&sq->done_lock);
	/* The only member is not counted. */
	member = sq->direct_only ? NULL : sutro_member_may(sq, sblkg);
	if (member && sutro_members_have_weight_of(sq, &sblkg->group)) {
		list_del_init(&member->node);
		sutro_member_begin(member);
		if (!member->counts_bytes)
			member->seen.bytes[op_is_write(bio_op(bio))] -=
				bio->bi_iter.bi_size;
		sutro_member_add(sq, member);
		joins = true;
	}
	spin_unlock_irq(&sq->done_lock);
	return joins;
}

/*
 * The increase of a sum.  One of bytes decreases when a request is sent that waited in the
 * elevator, or in a plug, at the last tick; then it waits until the sum has its old value.
 */
static u64 sutro_member_increase(u64 now, u64 *seen)
{
	s64 delta = now - *seen;

	if (delta <= 0)
		return 0;
	*seen = now;
	return delta;
}

/* Update how much a member has sent since the last tick. */
static void sutro_member_look(struct sutro_member *member)
{
	struct sutro_sent *seen = &member->seen, now;
	int op;

	sutro_member_read(member, &now);
	for (op = 0; op < 2; op++) {
		member->more.ios[op] =
			sutro_member_increase(now.ios[op], &seen->ios[op]);
		member->more.bytes[op] =
			sutro_member_increase(now.bytes[op], &seen->bytes[op]);
	}
}

/* Sum up how much the members have sent in the last tick in which any of them has. */
static void sutro_members_look(struct sutro_queue *sq,
			       struct sutro_sent *ret_all)
{
	struct sutro_member *member = NULL;
	struct sutro_sent more = {};
	int op;

	*ret_all = (struct sutro_sent){};
	while ((member = sutro_member_next(sq, member))) {
		sutro_member_look(member);
		for (op = 0; op < 2; op++)
			more.ios[op] += member->more.ios[op];
	}
	while ((member = sutro_member_next(sq, member))) {
		for (op = 0; op < 2; op++) {
			if (more.ios[op]) {
				member->recent.ios[op] = member->more.ios[op];
				member->recent.bytes[op] =
					member->more.bytes[op];
			}
			ret_all->ios[op] += member->recent.ios[op];
			ret_all->bytes[op] += member->recent.bytes[op];
		}
	}
}

/**
 * sutro_members_begin - a lease begins: take others than its members out of the list
 * @sq:		the leaf
 *
 * Context: sutro_queue.done_lock is held.
 *
 * Return: the blkg of the only member, NULL if there are several.
 */
struct blkcg_gq *sutro_members_begin(struct sutro_queue *sq)
{
	struct sutro_member *member, *next;

	lockdep_assert_held(&sq->done_lock);

	list_for_each_entry_safe(member, next, &sq->members, node) {
		if (member->lease != sq->lease.number) {
			list_del_init(&member->node);
			continue;
		}
		sutro_member_begin(member);
	}
	if (!list_is_singular(&sq->members))
		return NULL;
	member = list_first_entry(&sq->members, struct sutro_member, node);
	return sutro_to_blkg(member->sblkg);
}

/**
 * sutro_member_ordered - a request of a group was ordered, and is sent
 * @sblkg:	the group
 * @write:	it is a write
 * @bytes:	its size, negative if it was sent before and comes back
 *
 * It counts now, not when it completes: the cgroup's iostat has its bios already.
 *
 * Context: sutro_queue.lock is held.
 */
void sutro_member_ordered(struct sutro_blkg *sblkg, bool write, s64 bytes)
{
	/* As in sutro_member_of(). */
	struct sutro_busy *busy = READ_ONCE(sblkg->busy);
	struct sutro_member *member = busy ? READ_ONCE(busy->member) : NULL;

	if (member && !member->counts_bytes)
		member->ordered[write] += bytes;
}

/**
 * sutro_members_account - divide completed requests among the members
 * @sq:		the leaf, with a lease
 * @new:	requests that went past the elevator, and completed since the last tick
 * @account:	is called for each member with its part
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_members_account(struct sutro_queue *sq,
			   const struct sutro_tally *new,
			   void (*account)(struct sutro_queue *sq,
					   struct sutro_blkg *sblkg,
					   const struct sutro_tally *part))
{
	struct sutro_member *member = NULL;
	u64 ios[2], sectors[2];
	struct sutro_sent all;
	int op;

	lockdep_assert_held(&sq->done_lock);

	sutro_members_look(sq, &all);
	for (op = 0; op < 2; op++) {
		ios[op] = new->ios[op];
		sectors[op] = new->sectors[op];
	}
	while ((member = sutro_member_next(sq, member))) {
		const struct sutro_sent *mine = &member->recent;
		struct sutro_tally part = {};

		for (op = 0; op < 2; op++) {
			u64 part_ios = sutro_lease_part(&ios[op], mine->ios[op],
							&all.ios[op]);
			u64 bytes = mine->bytes[op], *left = &sectors[op];

			part.ios[op] = part_ios;
			part.sectors[op] =
				sutro_lease_part(left, bytes, &all.bytes[op]);
			if (new->ios[op])
				part.took_ns[op] =
					part_ios * div64_u64(new->took_ns[op],
							     new->ios[op]);
		}
		account(sq, member->sblkg, &part);
	}
}

/**
 * sutro_member_leave - the cgroup or the leaf of a group is removed
 * @sblkg:	the group
 *
 * Context: sutro_queue.done_lock is held.
 */
void sutro_member_leave(struct sutro_blkg *sblkg)
{
	struct sutro_member *member = sblkg->busy ? sblkg->busy->member : NULL;

	if (!member)
		return;
	WRITE_ONCE(member->lease, 0);
	list_del_init(&member->node);
}

/**
 * sutro_member_free - free a member
 * @member:	the member, in no list, or NULL
 */
void sutro_member_free(struct sutro_member *member)
{
	if (!member)
		return;
	free_percpu(member->sent);
	kfree(member);
}
