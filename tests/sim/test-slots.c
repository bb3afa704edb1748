// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: test-slots [RUNS [SEED]]
 *
 * No submitter waits while all slots are free.  kernel/sutro-slots.c, sutro-turn.c and
 * sutro-quota.c are run as they are, with the algorithm, by tasks that wait, look again, are woken
 * and preempted in random order: a task is a thread, and one of them runs at a time.  Groups have
 * random weights, classes and parents, and there are up to 64 for 4 to 16 slots.
 *
 * After some time no task sends anything more.  When the last request has completed, each task that
 * still waits for a slot is given WAIT_JIFFIES: in the kernel, a switch of the scheduler waits for
 * it.
 *
 * Before that: a part that was split from a bio has the limit of the rest of the bio.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/string.h>

#include "random.h"

#include "sutro-arrival.h"
#include "sutro-cgroup.h"
#include "sutro-report.h"
#include "sutro-service.h"

#define TASKS 48
#define GROUPS 64
#define REQUESTS 256
#define WAIT_JIFFIES (30UL * HZ)
#define NS_PER_JIFFY (NSEC_PER_SEC / HZ)

/* A task of a group; @begins: it is to send a request. */
struct submitter {
	struct task_struct task;
	pthread_t thread;
	pthread_cond_t is_running;
	struct sutro_blkg *blkg;
	unsigned long looks_at;
	bool begins;
	bool sleeps;
	bool is_preempted;
};

/* A request, its end in two steps, and the note of its cost, which a later dispatch takes. */
enum step { FREE, QUEUED, IN_FLIGHT, WITHOUT_SLOT };

struct io {
	enum step step;
	struct sutro_blkg *blkg;
	u64 estimate_ns;
	bool is_noted;
};

static struct {
	struct sutro_queue sq;
	struct request_queue q;
	struct elevator_queue elevator;
	struct blk_mq_tag_set set;
	struct blk_mq_tags tags;
	struct sutro_blkg group[GROUPS];
	unsigned int nr_groups;
	struct io io[REQUESTS];
	u64 now_ns;
	u64 idle_until_ns;
	unsigned int
		delay; /* for how long others run before a task that is preempted */
} leaf;

static struct submitter submitter[TASKS];
static struct sutro_blkg *bio_group; /* the owner of all bios */
static u64 seed;

struct task_struct *current;
unsigned long jiffies;
unsigned int locks_held;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t main_is_running = PTHREAD_COND_INITIALIZER;
static struct submitter *running; /* NULL: the main thread */

static u64 below(u64 n)
{
	return random_below(&seed, n);
}

static void switch_to(struct submitter *next, struct submitter *self)
{
	running = next;
	current = next ? &next->task : NULL;
	pthread_cond_signal(next ? &next->is_running : &main_is_running);
	while (running != self)
		pthread_cond_wait(self ? &self->is_running : &main_is_running,
				  &mutex);
}

void preempt(void)
{
	struct submitter *self = running;

	if (!self || locks_held || below(4))
		return;
	self->is_preempted = true;
	switch_to(NULL, self);
	self->is_preempted = false;
}

long io_schedule_timeout(long timeout)
{
	struct submitter *self = running;

	assert(!locks_held);
	if (current->state == TASK_RUNNING)
		return timeout;
	self->looks_at = jiffies + timeout;
	self->sleeps = true;
	switch_to(NULL, self);
	self->sleeps = false;
	current->state = TASK_RUNNING;
	return 0;
}

/* Functions of other files that the three call. */

struct sutro_blkg *sutro_current_blkg(struct request_queue *q)
{
	return running->blkg;
}

struct sutro_blkg *sutro_bio_blkg(struct request_queue *q, struct bio *bio)
{
	return bio_group;
}

u64 ktime_get_ns(void)
{
	return leaf.now_ns;
}

void sutro_active_enter(struct sutro_blkg *sblkg)
{
}

void sutro_collect(struct sutro_queue *sq)
{
}

void sutro_report_refused(struct sutro_queue *sq, struct sutro_blkg *sblkg,
			  unsigned int used, unsigned int limit)
{
}

bool sutro_direct_takes(struct sutro_queue *sq, blk_opf_t opf,
			struct blk_mq_hw_ctx *hctx)
{
	return false;
}

static unsigned int *tags_in_use(void)
{
	return &leaf.tags.bitmap_tags.sb.used;
}

static struct io *any_io(enum step step, const struct sutro_group *group)
{
	unsigned int first = below(REQUESTS), i;

	for (i = 0; i < REQUESTS; i++) {
		struct io *io = &leaf.io[(first + i) % REQUESTS];

		if (io->step == step && (step != FREE || !io->is_noted) &&
		    (!group || &io->blkg->group == group))
			return io;
	}
	return NULL;
}

/* As blk-mq allocates a request: limit_depth, then a tag, for which it waits if there is none. */
static void send(struct submitter *self)
{
	struct blk_mq_alloc_data data = {
		.q = &leaf.q,
		.hctx = &leaf.q.hctx,
		.nr_tags = 1,
	};
	struct io *io;

	sutro_limit_depth(REQ_OP_READ, &data);
	while (*tags_in_use() >= sutro_all_slots(&leaf.q)) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		io_schedule_timeout(1);
	}
	(*tags_in_use())++;
	io = any_io(FREE, NULL);
	*io = (struct io){
		.step = QUEUED,
		.blkg = self->blkg,
		.estimate_ns = random_between(&seed, 100000, 8000000),
	};
	sutro_slot_taken(self->blkg);
	sutro_core_queue(&leaf.sq.core, &self->blkg->group, false, leaf.now_ns);
}

static void *submit(void *context)
{
	struct submitter *self = context;

	pthread_mutex_lock(&mutex);
	while (running != self)
		pthread_cond_wait(&self->is_running, &mutex);
	for (;;) {
		if (self->begins)
			send(self);
		self->begins = false;
		switch_to(NULL, self);
	}
	return NULL;
}

/* One task that can go on does. */
static bool run_task(void)
{
	unsigned int first = below(TASKS), i;

	for (i = 0; i < TASKS; i++) {
		struct submitter *one = &submitter[(first + i) % TASKS];

		if (!one->begins || (one->sleeps && one->task.state &&
				     time_before(jiffies, one->looks_at)))
			continue;
		if (one->is_preempted && *tags_in_use() && below(leaf.delay))
			continue;
		switch_to(one, NULL);
		return true;
	}
	return false;
}

/* Charge the groups for requests that are done. */
static void fold(void)
{
	unsigned int i;
	u64 took_ns;

	for (i = 0; i < REQUESTS; i++) {
		struct io *io = &leaf.io[i];

		if (!io->is_noted)
			continue;
		took_ns = io->estimate_ns * random_between(&seed, 5, 25) / 10;
		sutro_core_complete(&leaf.sq.core, &io->blkg->group, 1,
				    io->estimate_ns, took_ns, leaf.now_ns);
		io->is_noted = false;
	}
}

static void dispatch(void)
{
	struct sutro_core *core = &leaf.sq.core;
	enum sutro_verdict verdict;
	struct sutro_group *group;
	struct io *io;

	fold();
	while (sutro_core_forget(core, leaf.now_ns))
		;
	group = sutro_core_select(core, leaf.now_ns, &verdict);
	leaf.idle_until_ns = verdict == SUTRO_IDLE ? core->idle_until_ns : 0;
	if (verdict != SUTRO_SERVE)
		return;
	io = any_io(QUEUED, group);
	assert(io);
	io->step = IN_FLIGHT;
	sutro_core_dispatch(core, group, io->estimate_ns);
}

/* An interrupt: first a slot is free, then the tag. */
static void complete(void)
{
	struct io *io = any_io(IN_FLIGHT, NULL);

	if (io && below(2)) {
		io->is_noted = true;
		sutro_slot_freed(&leaf.sq, io->blkg);
		io->step = WITHOUT_SLOT;
	}
	io = any_io(WITHOUT_SLOT, NULL);
	if (io && below(2)) {
		(*tags_in_use())--;
		io->step = FREE;
	}
}

static void leaf_init(void)
{
	struct sutro_queue *sq = &leaf.sq;
	unsigned int slots = 4 << below(3), i;

	for (i = 0; i < leaf.nr_groups; i++)
		sutro_protect_exit(&leaf.group[i].group);
	memset(&leaf, 0, sizeof(leaf));
	leaf.now_ns = NSEC_PER_SEC;
	leaf.set.reserved_tags = below(2);
	leaf.set.queue_depth = 32;
	leaf.elevator.elevator_data = sq;
	leaf.q = (struct request_queue){
		.elevator = &leaf.elevator,
		.nr_requests = slots + leaf.set.reserved_tags,
		.nr_hw_queues = 1,
		.tag_set = &leaf.set,
		.hctx.sched_tags = &leaf.tags,
	};
	sq->q = &leaf.q;
	leaf.delay = 1 + below(3) * 50;
	leaf.nr_groups = random_between(&seed, 2, GROUPS);
	sutro_group_init(&leaf.group[0].group, NULL, 100);
	sutro_core_init(&sq->core, &leaf.group[0].group);
	sq->core.tunables.slice_ns = 4000000;
	sq->core.tunables.depth_ns = 4000000;
	sq->core.tunables.group_idle_ns = 1000000;
	sq->core.tunables.protect = below(2) ? SUTRO_PROTECT_DFL : 0;
	for (i = 1; i < leaf.nr_groups; i++) {
		struct sutro_group *parent = &leaf.group[0].group;

		if (!below(3))
			parent = &leaf.group[below(i)].group;
		if (parent->depth > 3)
			parent = &leaf.group[0].group;
		sutro_group_init(&leaf.group[i].group, parent,
				 below(2) ? 100
					  : random_magnitude(&seed, 10000));
		if (!below(8))
			sutro_tree_set_class(&leaf.group[i].group, below(3));
	}
	for (i = 0; i < TASKS; i++)
		submitter[i].blkg =
			&leaf.group[below(4) ? below(leaf.nr_groups) : 0];
}

static void tick(u64 ns)
{
	leaf.now_ns += ns;
	jiffies = 100000 + leaf.now_ns / NS_PER_JIFFY;
}

static unsigned int waiting(void)
{
	unsigned int i, nr = 0;

	for (i = 0; i < TASKS; i++)
		nr += submitter[i].begins;
	return nr;
}

/* From how many slots may writeback of a group choose, for a part that was split from a bio? */
static unsigned int slots_of_part(struct sutro_blkg *sblkg)
{
	struct blk_mq_alloc_data data = { .q = &leaf.q, .hctx = &leaf.q.hctx };
	struct block_device disk = { .bd_queue = &leaf.q };
	struct bio rest = { .bi_opf = REQ_OP_WRITE, .bi_bdev = &disk };
	struct bio_list list = { .head = &rest };
	struct task_struct flusher = { .flags = PF_KTHREAD, .bio_list = &list };

	bio_group = sblkg;
	current = &flusher;
	sutro_limit_depth(REQ_OP_WRITE | REQ_NOMERGE, &data);
	bio_group = NULL;
	return data.shallow_depth;
}

/* The example of sutro-slots.c. */
static bool parts_are_limited(void)
{
	struct sutro_blkg *heavy = &leaf.group[1], *light = &leaf.group[2];
	unsigned int i;

	leaf_init();
	leaf.set.reserved_tags = 0;
	leaf.q.nr_requests = 64;
	sutro_group_init(&heavy->group, &leaf.group[0].group, 1000);
	sutro_group_init(&light->group, &leaf.group[0].group, 100);
	for (i = 0; i < 40; i++) {
		struct sutro_blkg *sblkg = i % 2 ? heavy : light;

		(*tags_in_use())++;
		sutro_slot_taken(sblkg);
		sutro_core_queue(&leaf.sq.core, &sblkg->group, false,
				 leaf.now_ns);
	}
	return slots_of_part(light) == 12 && slots_of_part(heavy) == 48;
}

/* Returns how many tasks wait in the end, with all slots free. */
static unsigned int run(void)
{
	unsigned int steps = random_between(&seed, 100, 600), i;
	unsigned long idle_since = 0;

	leaf_init();
	for (i = 0; i < TASKS; i++)
		submitter[i].task.state = TASK_RUNNING;
	tick(0);
	while (steps || *tags_in_use() || waiting()) {
		struct submitter *one = &submitter[below(TASKS)];

		if (steps) {
			steps--;
			if (below(2))
				one->begins = true;
		}
		if (below(2))
			run_task();
		if (below(2) && leaf.sq.core.queued)
			dispatch();
		if (!below(8))
			fold();
		complete();
		tick(below(100000));
		if (leaf.idle_until_ns > leaf.now_ns && !below(20))
			tick(leaf.idle_until_ns - leaf.now_ns);
		if (!*tags_in_use() && !steps) {
			/* Only the tasks are left: let time pass until the next one looks. */
			if (!idle_since)
				idle_since = jiffies;
			if (time_after(jiffies, idle_since + WAIT_JIFFIES))
				return waiting();
			if (!run_task())
				tick(NS_PER_JIFFY);
		} else {
			idle_since = 0;
		}
	}
	return 0;
}

int main(int argc, char *argv[])
{
	unsigned int runs = argc > 1 ? atoi(argv[1]) : 4000, left = 0, i;
	u64 first = argc > 2 ? atoll(argv[2]) : 1;

	if (!parts_are_limited()) {
		printf("a part that was split from a bio has no limit\n");
		return 1;
	}
	pthread_mutex_lock(&mutex);
	for (i = 0; i < TASKS; i++)
		pthread_cond_init(&submitter[i].is_running, NULL);
	for (i = 0; i < TASKS; i++)
		pthread_create(&submitter[i].thread, NULL, submit,
			       &submitter[i]);
	for (i = 0; i < runs && !left; i++) {
		seed = first + i;
		left = run();
		if (left)
			printf("seed %llu: %u tasks wait, and all %u slots are free\n",
			       (unsigned long long)(first + i), left,
			       sutro_all_slots(&leaf.q));
	}
	printf("%u runs\n", i);
	fflush(stdout);
	/* The threads go on waiting. */
	_Exit(left ? 1 : 0);
}
