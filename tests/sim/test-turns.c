// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of submitters that wait for request slots, with kernel/sutro-turn.c and
 * kernel/sutro-quota.c themselves; the simulation has submitters of its own (leaf-slots.c).
 *
 * 60 groups are active on a leaf with 64 slots, so that submitters take turns.
 */
#include <linux/string.h>

#include <kunit/test.h>

#include "sutro-arrival.h"

#define GROUPS 60
#define SLOTS 64
#define REQUEST_NS 1000000

static struct task_struct nobody;
struct task_struct *current = &nobody;
unsigned long jiffies = 100000;
unsigned int locks_held;

void preempt(void)
{
}

struct sutro_blkg *sutro_bio_blkg(struct request_queue *q, struct bio *bio)
{
	return NULL;
}

struct rig {
	struct sutro_queue sq;
	struct request_queue q;
	struct blk_mq_tag_set set;
	struct blk_mq_tags tags;
	struct sutro_blkg root;
	struct sutro_blkg group[GROUPS];
	u64 now_ns;
};

/* A submitter, which is the running task while it waits, looks or ends. */
struct submitter {
	struct task_struct task;
	struct sutro_waiter waiter;
	struct sutro_blkg *blkg;
};

static struct rig *rig_new(struct kunit *test, unsigned int reserved_tags)
{
	struct rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);
	unsigned int i;

	rig->set.reserved_tags = reserved_tags;
	rig->q.nr_requests = SLOTS + reserved_tags;
	rig->q.nr_hw_queues = 1;
	rig->q.tag_set = &rig->set;
	rig->q.hctx.sched_tags = &rig->tags;
	rig->sq.q = &rig->q;
	rig->now_ns = 1000000000;
	sutro_group_init(&rig->root.group, NULL, 100);
	sutro_core_init(&rig->sq.core, &rig->root.group);
	rig->sq.core.tunables.slice_ns = 4000000;
	rig->sq.core.tunables.depth_ns = 4000000;
	for (i = 0; i < GROUPS; i++) {
		sutro_group_init(&rig->group[i].group, &rig->root.group, 100);
		sutro_core_queue(&rig->sq.core, &rig->group[i].group, false,
				 rig->now_ns);
		rig->group[i].nr_requests.counter = 1;
	}
	return rig;
}

/* The next request goes to the device. */
static struct sutro_group *rig_dispatch(struct rig *rig)
{
	enum sutro_verdict verdict;
	struct sutro_group *group =
		sutro_core_select(&rig->sq.core, rig->now_ns, &verdict);

	sutro_core_dispatch(&rig->sq.core, group, REQUEST_NS);
	return group;
}

/* A request of a group completes, after @took_ns. */
static void rig_complete(struct rig *rig, struct sutro_group *group,
			 u64 took_ns)
{
	rig->now_ns += took_ns;
	sutro_core_complete(&rig->sq.core, group, 1, REQUEST_NS, took_ns,
			    rig->now_ns);
}

/* Begin to wait for a slot of the leaf. */
static void wait_for_slot(struct rig *rig, struct submitter *submitter,
			  struct sutro_blkg *blkg)
{
	*submitter =
		(struct submitter){ .waiter.since = jiffies, .blkg = blkg };
	current = &submitter->task;
	sutro_turns_wait(&rig->sq, blkg, &rig->sq.turns, &rig->root.group,
			 &submitter->waiter);
}

/* The slots that it finds when it looks again, as it does each 0.1 s. */
static int look(struct rig *rig, struct submitter *submitter)
{
	struct sutro_quota quota;

	current = &submitter->task;
	quota = sutro_quota_of(&rig->sq, submitter->blkg, NULL, &rig->sq.turns);
	return sutro_quota_left(&quota);
}

static void end_waiting(struct rig *rig, struct submitter *submitter)
{
	current = &submitter->task;
	sutro_turns_end(&rig->sq, &rig->sq.turns, &submitter->waiter);
}

/* A task of the root cgroup comes after a group of weight 10000 that has had less. */
static void root_takes_turns(struct kunit *test)
{
	struct rig *rig = rig_new(test, 0);
	struct sutro_blkg heavy = {};
	struct submitter of_heavy, of_root;
	unsigned int i;

	sutro_core_queue(&rig->sq.core, &rig->root.group, false, rig->now_ns);
	for (i = 0; i < GROUPS + 1; i++) {
		struct sutro_group *group = rig_dispatch(rig);

		rig_complete(rig, group, REQUEST_NS);
		if (group != &rig->root.group)
			sutro_core_queue(&rig->sq.core, group, false,
					 rig->now_ns);
	}
	sutro_group_init(&heavy.group, &rig->root.group, 10000);
	rig->tags.bitmap_tags.sb.used = SLOTS;
	wait_for_slot(rig, &of_root, &rig->root);
	wait_for_slot(rig, &of_heavy, &heavy);
	sutro_core_wait_slot(&rig->sq.core, &heavy.group, rig->now_ns);
	sutro_turns_serve(&rig->sq, SLOTS, SLOTS - 1);
	KUNIT_EXPECT_EQ(test, of_heavy.task.woken, 1U);
	KUNIT_EXPECT_EQ(test, of_root.task.woken, 0U);
	end_waiting(rig, &of_heavy);
	end_waiting(rig, &of_root);
}

/* The root's only task takes a slot that is free. */
static void root_finds_slot(struct kunit *test)
{
	struct rig *rig = rig_new(test, 0);
	struct submitter submitter;

	wait_for_slot(rig, &submitter, &rig->root);
	KUNIT_EXPECT_GT(test, look(rig, &submitter), 0);
	end_waiting(rig, &submitter);
}

/*
 * The next submitter takes a free slot also if its group was charged since it began to wait.
 * No request is left that would wake it when it ends.
 */
static void charged_meanwhile(struct kunit *test)
{
	struct rig *rig = rig_new(test, 0);
	struct sutro_group *group = rig_dispatch(rig);
	struct submitter first, second;

	wait_for_slot(rig, &first, sutro_blkg_of(group));
	KUNIT_EXPECT_GT(test, look(rig, &first), 0);
	rig_complete(rig, group, 3 * REQUEST_NS);
	KUNIT_EXPECT_GT(test, look(rig, &first), 0);
	/* One that is not the next has no slot by itself, but a turn. */
	wait_for_slot(rig, &second, &rig->group[GROUPS - 1]);
	KUNIT_EXPECT_NE(test, look(rig, &first) > 0, look(rig, &second) > 0);
	end_waiting(rig, &first);
	KUNIT_EXPECT_GT(test, look(rig, &second), 0);
	end_waiting(rig, &second);
}

/* Each request that is done wakes one submitter, which finds a tag. */
static void tags_of_drivers(struct kunit *test)
{
	struct rig *rig = rig_new(test, 1);
	struct submitter submitter[GROUPS];
	unsigned int *used = &rig->tags.bitmap_tags.sb.used;
	unsigned int i, done, woken;

	*used = SLOTS;
	KUNIT_EXPECT_EQ(test, sutro_free_slots(&rig->sq), 0U);
	for (i = 0; i < GROUPS; i++)
		wait_for_slot(rig, &submitter[i], &rig->group[i]);
	for (done = 0; done < GROUPS; done++) {
		/* The request that ends still has its tag here. */
		sutro_turns_serve(&rig->sq, sutro_all_slots(&rig->q),
				  *used - 1);
		(*used)--;
		for (i = 0, woken = 0; i < GROUPS; i++) {
			if (!submitter[i].waiter.is_promised)
				continue;
			end_waiting(rig, &submitter[i]);
			submitter[i].waiter.is_promised = false;
			woken++;
		}
		*used += woken;
		KUNIT_EXPECT_EQ(test, *used, (unsigned int)SLOTS);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(root_takes_turns),
	KUNIT_CASE(root_finds_slot),
	KUNIT_CASE(charged_meanwhile),
	KUNIT_CASE(tags_of_drivers),
	{},
};

static struct kunit_suite suite = {
	.name = "turns",
	.test_cases = cases,
};
kunit_test_suite(suite);
