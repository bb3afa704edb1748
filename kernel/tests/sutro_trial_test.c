// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of trials (sutro-trial.c) and windows (sutro-window.c): a favoured group with one
 * small request at a time, beside another with one large request at a time.
 *
 * The bus of the device takes one request after another.  A large one then keeps a part of the
 * device busy, which a small one does not need: one that has waited for the bus completes first.
 */
#include "sutro_test.h"

#define STEP_NS (MS / 20)
#define SMALL_NS STEP_NS
#define LARGE_NS (15 * MS / 2)
#define FLASH_NS MS
#define SECOND_NS (1000 * MS)

/**
 * struct client - a group with one request at a time
 * @group:	the group
 * @bus_ns:	time of a request on the bus
 * @flash_ns:	time that it takes after that
 * @think_ns:	time from a completion to the next request
 * @next_ns:	when that arrives, 0 while there is one
 * @done_ns:	when the request at the device completes, 0 without
 * @nr:		requests that have completed
 */
struct client {
	struct sutro_group *group;
	u64 bus_ns;
	u64 flash_ns;
	u64 think_ns;
	u64 next_ns;
	u64 done_ns;
	int nr;
};

static void client_step(struct sutro_test *t, struct client *client)
{
	if (client->done_ns && client->done_ns <= t->now_ns) {
		sutro_core_complete(&t->core, client->group, 1, client->bus_ns,
				    client->bus_ns, t->now_ns);
		client->nr++;
		client->next_ns = t->now_ns + client->think_ns;
		client->done_ns = 0;
	}
	if (client->next_ns && client->next_ns <= t->now_ns) {
		client->next_ns = 0;
		arrive_far(t, client->group, 1);
	}
}

static void clients_run(struct sutro_test *t, struct client *clients,
			u64 length_ns)
{
	u64 end_ns = t->now_ns + length_ns, bus_ns = t->now_ns;
	enum sutro_verdict verdict;
	struct sutro_group *group;
	struct client *client;

	clients[0].nr = 0;
	clients[1].nr = 0;
	for (; t->now_ns < end_ns; t->now_ns += STEP_NS) {
		client_step(t, &clients[0]);
		client_step(t, &clients[1]);
		for (group = choose(t, &verdict); group;
		     group = choose(t, &verdict)) {
			client = group == clients[0].group ? &clients[0]
							   : &clients[1];
			sutro_core_dispatch(&t->core, group, client->bus_ns);
			bus_ns = max(bus_ns, t->now_ns) + client->bus_ns;
			client->done_ns = bus_ns + client->flash_ns;
		}
	}
}

/* The part of its requests alone that a, of @weight, has beside e that thinks for @think_ns. */
static int few_percent(struct kunit *test, u32 weight, u64 think_ns)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct client clients[] = {
		{ .group = &t->a,
		  .bus_ns = SMALL_NS,
		  .think_ns = MS,
		  .next_ns = t->now_ns },
		{ .group = &t->e,
		  .bus_ns = LARGE_NS,
		  .flash_ns = FLASH_NS,
		  .think_ns = think_ns,
		  .next_ns = t->now_ns },
	};

	t->core.tunables.protect = 97;
	sutro_group_set_weight(&t->a, weight);
	clients_run(t, clients, 2 * SECOND_NS);
	clients_run(t, clients, 8 * SECOND_NS);
	KUNIT_EXPECT_GE(test, clients[1].nr, 1);
	return clients[0].nr * 100ULL * (MS + SMALL_NS) / (8 * SECOND_NS);
}

/* The large request completes just after the small one that has waited for it. */
static void sutro_test_trial_of_waiting(struct kunit *test)
{
	KUNIT_EXPECT_GE(test, few_percent(test, 500, 0), 92);
}

/* Cycles are longer than a large request, although nothing happens while it is at the device. */
static void sutro_test_trial_of_long_requests(struct kunit *test)
{
	KUNIT_EXPECT_GE(test, few_percent(test, 200, 0), 92);
}

/* Others have no requests for a moment, after each of theirs. */
static void sutro_test_trial_beside_pauses(struct kunit *test)
{
	KUNIT_EXPECT_GE(test, few_percent(test, 200, 3 * MS), 92);
	KUNIT_EXPECT_GE(test, few_percent(test, 1000, 3 * MS), 92);
}

/* a has one small request at a time and thinks between them, e one large request at a time. */
static struct sutro_test *beside_large(struct kunit *test,
				       struct client *clients)
{
	struct sutro_test *t = sutro_test_new(test, false);

	clients[0] = (struct client){ .group = &t->a,
				      .bus_ns = SMALL_NS,
				      .think_ns = MS,
				      .next_ns = t->now_ns };
	clients[1] = (struct client){ .group = &t->e,
				      .bus_ns = LARGE_NS,
				      .flash_ns = FLASH_NS,
				      .next_ns = t->now_ns };
	t->core.tunables.protect = 97;
	sutro_group_set_weight(&t->a, 500);
	return t;
}

/* a is protected, and e has had no request for half a second. */
static struct sutro_test *left_alone(struct kunit *test, struct client *clients)
{
	struct sutro_test *t = beside_large(test, clients);

	clients_run(t, clients, 2 * SECOND_NS);
	clients[1].think_ns = 100 * SECOND_NS;
	clients_run(t, clients, SECOND_NS / 2);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(&t->a));
	return t;
}

/* Protection ends if others stay away. */
static void sutro_test_trial_without_others(struct kunit *test)
{
	struct client clients[2];
	struct sutro_test *t = left_alone(test, clients);

	clients_run(t, clients, 3 * SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(&t->a));
}

/*
 * The begin of a flush is dated when a dispatcher learns of it, which may be after its end.  a has
 * one of 0.1 ms each 20 ms beside 32 reads, so it receives what it can use.
 */
static void sutro_test_trial_of_flushes(struct kunit *test)
{
	int rotational, i;

	for (rotational = 0; rotational < 2; rotational++) {
		struct sutro_test *t = sutro_test_new(test, rotational);
		u64 read_ns = rotational ? 8 * MS : MS / 10;

		t->core.tunables.protect = 97;
		sutro_group_set_weight(&t->a, 300);
		t->a.think_ns = 20 * MS;
		t->a.empty_since_ns = t->now_ns - 20 * MS;
		arrive_far(t, &t->e, 32);
		for (i = 0; i < 32; i++)
			sutro_core_dispatch(&t->core, &t->e, read_ns);
		for (i = 0; i < 40; i++) {
			arrive(t, &t->a, 1);
			sutro_core_dispatch(&t->core, &t->a, 0);
			sutro_core_complete(&t->core, &t->a, 1, 0, MS / 10,
					    t->now_ns - MS / 200);
			KUNIT_ASSERT_NOT_NULL(test, t->a.protect);
			KUNIT_EXPECT_FALSE(test, t->a.protect->needed);
			t->now_ns += 20 * MS;
			forget(t);
			sutro_core_complete(&t->core, &t->e, 2, 2 * read_ns,
					    2 * 8 * MS, t->now_ns);
			arrive_far(t, &t->e, 2);
			sutro_core_dispatch(&t->core, &t->e, read_ns);
			sutro_core_dispatch(&t->core, &t->e, read_ns);
		}
	}
}

/* No trial is long enough to end with a request that completed before it began. */
static void sutro_test_trial_begins_late(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, true);

	t->core.tunables.protect = 97;
	sutro_group_set_weight(&t->a, 300);
	t->a.think_ns = 20 * MS;
	arrive_far(t, &t->e, 1);
	arrive_far(t, &t->a, 1);
	sutro_core_dispatch(&t->core, &t->a, MS);
	sutro_core_dispatch(&t->core, &t->e, 50 * MS);
	KUNIT_ASSERT_NOT_NULL(test, t->a.protect);
	sutro_trial_begin(&t->core.protect, t->a.protect, t->now_ns + MS);
	sutro_core_complete(&t->core, &t->e, 1, 50 * MS, 50 * MS, t->now_ns);
	sutro_core_complete(&t->core, &t->a, 1, MS, MS, t->now_ns);
	KUNIT_EXPECT_EQ(test, t->a.protect->nr, 1);
}

/* Bytes that complete in reserved windows are no part of a trial. */
static void sutro_test_trial_bytes(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_protect *protect = &t->core.protect;

	protect->clear = true;
	t->core.tunables.done_bytes = 3000;
	sutro_protect_completed(&t->core, &t->a, 1, MS, t->now_ns);
	protect->clear = false;
	t->core.tunables.done_bytes = 4000;
	sutro_protect_completed(&t->core, &t->a, 1, MS, t->now_ns);
	KUNIT_EXPECT_EQ(test, protect->shared_bytes, 1000);
}

/* Reserved time is counted late, and may be more than the time since the trial began. */
static void sutro_test_trial_in_reserved_windows(struct kunit *test)
{
	struct sutro_test *t = sutro_test_new(test, false);
	struct sutro_group_protect own = {};
	struct sutro_protect *protect = &t->core.protect;
	u64 shared_ns;

	sutro_trial_begin(protect, &own, t->now_ns);
	protect->withheld_ns += 3 * MS;
	shared_ns = sutro_trial_shared_ns(protect, &own, t->now_ns + 4 * MS);
	KUNIT_EXPECT_EQ(test, shared_ns, MS);
	shared_ns = sutro_trial_shared_ns(protect, &own, t->now_ns + 2 * MS);
	KUNIT_EXPECT_EQ(test, shared_ns, 0);
}

/* Others that came after a dispatcher had taken the time have come: protection goes on. */
static void sutro_test_trial_then_others(struct kunit *test)
{
	struct client clients[2];
	struct sutro_test *t = left_alone(test, clients);
	struct sutro_protect *protect = &t->core.protect;
	enum sutro_verdict verdict;
	u64 later_ns;

	/* A cycle begins. */
	t->now_ns = protect->begin_ns + protect->cycle_ns;
	later_ns = t->now_ns + MS / 200;
	sutro_core_queue(&t->core, &t->e, false, later_ns);
	sutro_core_dispatch(&t->core, &t->e, 0);
	sutro_core_complete(&t->core, &t->e, 1, 0, 0, later_ns);
	arrive_far(t, &t->a, 1);
	t->now_ns = later_ns;
	forget(t);
	sutro_core_select(&t->core, later_ns - MS / 200, &verdict);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(&t->a));
}

/* A weight that is written while others have no requests holds at once. */
static void sutro_test_trial_then_weight(struct kunit *test)
{
	struct client clients[2];
	struct sutro_test *t = left_alone(test, clients);

	sutro_group_set_weight(&t->a, 100);
	sutro_protect_changed(&t->core);
	clients_run(t, clients, 10 * MS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(&t->a));
}

/* A trial of costs that are guessed takes longer, as they will be measured soon. */
static void sutro_test_trial_of_guesses(struct kunit *test)
{
	struct client clients[2];
	struct sutro_test *t = beside_large(test, clients);

	t->core.tunables.guessing = true;
	clients_run(t, clients, SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_group_protected(&t->a));
	clients_run(t, clients, SECOND_NS / 4);
	KUNIT_EXPECT_TRUE(test, sutro_group_protected(&t->a));
}

static struct kunit_case sutro_trial_cases[] = {
	KUNIT_CASE(sutro_test_trial_of_waiting),
	KUNIT_CASE(sutro_test_trial_of_long_requests),
	KUNIT_CASE(sutro_test_trial_beside_pauses),
	KUNIT_CASE(sutro_test_trial_without_others),
	KUNIT_CASE(sutro_test_trial_of_flushes),
	KUNIT_CASE(sutro_test_trial_begins_late),
	KUNIT_CASE(sutro_test_trial_bytes),
	KUNIT_CASE(sutro_test_trial_in_reserved_windows),
	KUNIT_CASE(sutro_test_trial_then_others),
	KUNIT_CASE(sutro_test_trial_then_weight),
	KUNIT_CASE(sutro_test_trial_of_guesses),
	{},
};

sutro_suite(sutro_trial, "Sutro's trials and windows");
