/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For KUnit tests: a with one small request at a time, beside others with large ones, on a device
 * that serves requests one after another, in the order in which they were sent.
 */
#ifndef SUTRO_LOAD_TEST_H
#define SUTRO_LOAD_TEST_H

#include "sutro_test.h"

#define SMALL_NS (MS / 10)
#define LARGE_NS (8 * MS)
#define SECOND_NS (1000 * MS)
#define DEEP 32
/* Requests of @few in a second, if it is alone and thinks for SMALL_NS. */
#define ALONE_NR ((int)(SECOND_NS / (2 * SMALL_NS)))

/**
 * struct load - group @few with one small request at a time, beside others with large ones
 * @think_ns:	time from a completion of @few to its next request
 * @next_ns:	when the next request of @few arrives
 * @few_nr:	completed requests of @few
 * @many_nr:	completed requests of @many
 * @equal_nr:	completed requests of @equal
 * @few_slow:	requests of @few that took longer than twice their device time
 */
struct load {
	struct sutro_test *t;
	struct sutro_group *few;
	struct sutro_group *many;
	struct sutro_group *equal;
	u64 think_ns;
	u64 next_ns;
	u64 sent_ns;
	struct sutro_group *at_device[2 * DEEP + 1];
	int first;
	int nr;
	int few_nr;
	int many_nr;
	int equal_nr;
	int few_slow;
};

static inline u64 load_cost_ns(const struct load *load,
			       const struct sutro_group *group)
{
	return group == load->few ? SMALL_NS : LARGE_NS;
}

/* Return: when to look again, if nothing happens before. */
static inline u64 load_send(struct load *load)
{
	struct sutro_test *t = load->t;
	enum sutro_verdict verdict = SUTRO_WAIT;
	struct sutro_group *group = NULL;

	while (load->nr <= 2 * DEEP) {
		group = choose(t, &verdict);
		if (!group)
			break;
		sutro_core_dispatch(&t->core, group, load_cost_ns(load, group));
		load->at_device[(load->first + load->nr++) % (2 * DEEP + 1)] =
			group;
	}
	return !group && verdict == SUTRO_IDLE ? t->core.idle_until_ns
					       : U64_MAX;
}

/* The oldest request at the device completes. */
static inline void load_finish(struct load *load)
{
	struct sutro_group *group = load->at_device[load->first];
	u64 cost_ns = load_cost_ns(load, group);
	struct sutro_test *t = load->t;

	load->first = (load->first + 1) % (2 * DEEP + 1);
	load->nr--;
	t->now_ns += cost_ns;
	if (group == load->few) {
		u64 took_ns = t->now_ns - load->sent_ns;
		u64 slow_ns = sutro_protect_slow_ns(group);

		sutro_protect_took(&t->core, group, 1, took_ns / 1000,
				   slow_ns && took_ns > slow_ns, t->now_ns);
		load->few_slow += took_ns > 2 * SMALL_NS;
		load->few_nr++;
		load->next_ns = t->now_ns + load->think_ns;
	} else if (group == load->many) {
		load->many_nr++;
	} else {
		sutro_protect_took(&t->core, group, 1, 0, 0, t->now_ns);
		load->equal_nr++;
	}
	sutro_core_complete(&t->core, group, 1, cost_ns, cost_ns, t->now_ns);
	if (group != load->few)
		arrive_far(t, group, 1);
}

/* The next request of @few arrived while one was at the device. */
static inline void load_arrival(struct load *load)
{
	struct sutro_test *t = load->t;
	u64 now_ns = t->now_ns;

	t->now_ns = load->next_ns;
	load->sent_ns = load->next_ns;
	load->next_ns = 0;
	arrive_far(t, load->few, 1);
	t->now_ns = now_ns;
}

static inline void load_run(struct load *load, u64 length_ns)
{
	struct sutro_test *t = load->t;
	u64 end_ns = t->now_ns + length_ns, look_ns;

	load->few_nr = 0;
	load->many_nr = 0;
	load->equal_nr = 0;
	load->few_slow = 0;
	while (sutro_before(t->now_ns, end_ns)) {
		if (load->next_ns && !sutro_before(t->now_ns, load->next_ns))
			load_arrival(load);
		look_ns = load_send(load);
		if (load->nr) {
			load_finish(load);
			continue;
		}
		if (load->next_ns)
			look_ns = min(look_ns, load->next_ns);
		t->now_ns = max(min(look_ns, end_ns), t->now_ns + SMALL_NS / 4);
	}
}

/* The requests of ten seconds count, after four in which the elevator measures. */
static inline void load_measure(struct load *load)
{
	load_run(load, 4 * SECOND_NS);
	load_run(load, 10 * SECOND_NS);
}

/* a has one small request at a time, e DEEP large ones. */
static inline struct load *load_new(struct kunit *test, u64 think_ns)
{
	struct load *load = kunit_kzalloc(test, sizeof(*load), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, load);
	load->t = sutro_test_new(test, false);
	load->t->core.tunables.protect = 98;
	load->few = &load->t->a;
	load->many = &load->t->e;
	load->equal = &load->t->b;
	load->think_ns = think_ns;
	load->next_ns = load->t->now_ns;
	arrive_far(load->t, load->many, DEEP);
	return load;
}

#endif /* SUTRO_LOAD_TEST_H */
