// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: which groups are in use.
 *
 * A machine may have thousands of cgroups, and few of them use a disk.  The file
 * io.sutro.active of the root cgroup has the values of io.sutro.stat for each of these,
 * so that a reader of all groups reads one file, whose cost grows with groups in use.
 *
 * 1. In and out
 *
 * Groups in use on all leaves form one tree.  A group enters it when it gets a
 * request and is not there, with a ticket: a number larger than all before.  It leaves
 * when a reader finds that it has no request and had none for five seconds; or when its
 * cgroup or its leaf is removed.  So a busy group enters once, and its requests only
 * test @entered.  Without a reader no group leaves, and the tree still holds no more
 * entries than there are groups.
 *
 * An arriving request is counted first (nr_requests), then tests @entered.  The reader
 * clears @entered of a group first, then tests its requests.  With a full barrier
 * between the two steps of each, either the group does not leave, or its request
 * finds that it has left: no group is in use and not in the tree.
 *
 * 2. Reading
 *
 * The position in the file is the ticket of the next group.  It is all that a reader
 * needs to go on after a page of text, whatever happened meanwhile:
 *
 *	In the tree are a (1), b (2) and c (3), and the page is full with a: the next
 *	position is 2.  b leaves, d enters as 4: the next page has c and d.
 *
 * A group in the tree holds its blkg.  A page is read under RCU, which keeps groups
 * that leave meanwhile from being freed; sutro_active_lock is held for each step in
 * the tree, not for showing what is there.  Elevators may be switched, and cgroups and
 * disks removed: none of these waits for a reader.
 */
#include <linux/seq_file.h>

#include "sutro-cgroup.h"

/* Long enough that a program that reads once a second sees a group's last request. */
#define SUTRO_ACTIVE_NS (5ULL * NSEC_PER_SEC)

/* The time of a reader may be older than the last completion, but by no more. */
#define SUTRO_ACTIVE_SLACK_NS (1ULL * NSEC_PER_SEC)

/* Protects the tree, by ticket; taken under q->queue_lock and sutro_queue.lock. */
static DEFINE_SPINLOCK(sutro_active_lock);
static struct rb_root sutro_active_tree = RB_ROOT;
static u64 sutro_active_ticket;

static struct sutro_blkg *sutro_active_entry(const struct rb_node *node)
{
	return rb_entry(node, struct sutro_blkg, active.node);
}

static bool sutro_active_before(struct rb_node *a, const struct rb_node *b)
{
	return sutro_active_entry(a)->active.ticket <
	       sutro_active_entry(b)->active.ticket;
}

/**
 * sutro_active_enter - a group has got a request
 * @sblkg:	the group, right after the request was counted in its nr_requests
 */
void sutro_active_enter(struct sutro_blkg *sblkg)
{
	unsigned long flags;

	/* Pairs with the barrier in sutro_active_leave(). */
	smp_mb__after_atomic();
	if (READ_ONCE(sblkg->entered))
		return;

	spin_lock_irqsave(&sutro_active_lock, flags);
	if (!sblkg->entered) {
		WRITE_ONCE(sblkg->entered, true);
		sblkg->active.ticket = ++sutro_active_ticket;
		blkg_get(sutro_to_blkg(sblkg));
		rb_add(&sblkg->active.node, &sutro_active_tree,
		       sutro_active_before);
	}
	spin_unlock_irqrestore(&sutro_active_lock, flags);
}

/* With sutro_active_lock held. */
static void sutro_active_erase(struct sutro_blkg *sblkg)
{
	rb_erase(&sblkg->active.node, &sutro_active_tree);
	RB_CLEAR_NODE(&sblkg->active.node);
	blkg_put(sutro_to_blkg(sblkg));
}

/**
 * sutro_active_offline - the cgroup or leaf of a group is removed
 * @sblkg:	the group, which may still have requests
 */
void sutro_active_offline(struct sutro_blkg *sblkg)
{
	unsigned long flags;

	spin_lock_irqsave(&sutro_active_lock, flags);
	/* Marked as entered, so that the group never enters the tree again. */
	WRITE_ONCE(sblkg->entered, true);
	if (!RB_EMPTY_NODE(&sblkg->active.node))
		sutro_active_erase(sblkg);
	spin_unlock_irqrestore(&sutro_active_lock, flags);
}

static bool sutro_active_in_use(struct sutro_blkg *sblkg, u64 now_ns)
{
	/*
	 * A reader that sees that the last request is done also sees the time of its
	 * completion.
	 */
	return atomic_read_acquire(&sblkg->nr_requests) ||
	       sutro_ticks(now_ns + SUTRO_ACTIVE_SLACK_NS) -
			       READ_ONCE(sblkg->stat.used_ticks) <
		       sutro_ticks(SUTRO_ACTIVE_NS + SUTRO_ACTIVE_SLACK_NS);
}

/* With sutro_active_lock held: @sblkg leaves, unless it is in use. */
static bool sutro_active_leave(struct sutro_blkg *sblkg, u64 now_ns)
{
	if (sutro_active_in_use(sblkg, now_ns))
		return false;

	WRITE_ONCE(sblkg->entered, false);
	/* Pairs with the barrier in sutro_active_enter(). */
	smp_mb();
	if (sutro_active_in_use(sblkg, now_ns)) {
		WRITE_ONCE(sblkg->entered, true);
		return false;
	}
	sutro_active_erase(sblkg);
	return true;
}

/* With sutro_active_lock held: the first group with @ticket or a later one. */
static struct sutro_blkg *sutro_active_find(u64 ticket)
{
	struct rb_node *node = sutro_active_tree.rb_node;
	struct sutro_blkg *best = NULL;

	while (node) {
		struct sutro_blkg *sblkg = sutro_active_entry(node);

		if (sblkg->active.ticket >= ticket) {
			best = sblkg;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best;
}

/* The group at @pos or the next one that is in use; moves @pos there. */
static struct sutro_blkg *sutro_active_from(loff_t *pos)
{
	u64 now_ns = ktime_get_ns();
	struct sutro_blkg *sblkg;
	bool left;

	do {
		spin_lock_irq(&sutro_active_lock);
		sblkg = sutro_active_find(*pos);
		left = sblkg && sutro_active_leave(sblkg, now_ns);
		if (sblkg && !left)
			*pos = sblkg->active.ticket;
		spin_unlock_irq(&sutro_active_lock);
	} while (left);
	return sblkg;
}

/* cftype.seq_start and so on, of io.sutro.active. */
void *sutro_active_start(struct seq_file *sf, loff_t *pos) __acquires(RCU)
{
	rcu_read_lock();
	return sutro_active_from(pos);
}

void *sutro_active_next(struct seq_file *sf, void *v, loff_t *pos)
{
	++*pos;
	return sutro_active_from(pos);
}

void sutro_active_stop(struct seq_file *sf, void *v) __releases(RCU)
{
	rcu_read_unlock();
}

int sutro_active_show(struct seq_file *sf, void *v)
{
	struct sutro_blkg *sblkg = v;
	struct gendisk *disk = READ_ONCE(sutro_to_blkg(sblkg)->q->disk);

	if (!disk)
		return SEQ_SKIP;
	seq_printf(sf, "%u:%u %llu", disk->major, disk->first_minor,
		   sutro_cgroup_id(sblkg));
	sutro_show_stat(sf, sblkg);
	return 0;
}
