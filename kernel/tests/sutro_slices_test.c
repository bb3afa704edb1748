// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of slices on flash (sutro-slices.c): a has a few small requests at once, e has two
 * large ones, and the device serves one after the other.
 */
#include "sutro_test.h"

#define SMALL_NS (MS / 2)
#define LARGE_NS (15 * MS / 2)
#define FEW 4
#define SECOND_NS (1000 * MS)
#define QUEUE 16U

/**
 * struct bus - the device, and the clients
 * @t:		the leaf
 * @queue:	groups of requests at the device, in the order in which they are served
 * @nr:		how many
 * @small:	requests that a has at once
 * @think_ns:	from the completion of the last one of them to the next ones
 * @next_ns:	when these arrive, 0 while there are any
 * @alone:	e sends no more
 * @steady:	completed bytes grow at a constant rate
 * @slower:	the device takes this many times as long as its requests are charged
 * @a_nr:	requests of a that have completed
 * @e_nr:	those of e
 */
struct bus {
	struct sutro_test *t;
	struct sutro_group *queue[QUEUE];
	unsigned int nr;
	unsigned int small;
	u64 think_ns;
	u64 next_ns;
	bool alone;
	bool steady;
	unsigned int slower;
	unsigned int a_nr;
	unsigned int e_nr;
};

static void bus_new(struct kunit *test, struct bus *bus, unsigned int small,
		    u64 think_ns)
{
	struct sutro_test *t = sutro_test_new(test, false);

	*bus = (struct bus){
		.t = t, .small = small, .think_ns = think_ns, .slower = 1
	};
	t->core.tunables.protect = 97;
	bus->next_ns = t->now_ns;
	arrive_far(t, &t->e, 2);
}

static u64 bus_cost_ns(const struct bus *bus, const struct sutro_group *group)
{
	return group == &bus->t->a ? SMALL_NS : LARGE_NS;
}

/* Send what may be sent. */
static void bus_fill(struct bus *bus)
{
	struct sutro_test *t = bus->t;
	enum sutro_verdict verdict;
	struct sutro_group *group;

	if (bus->next_ns && bus->next_ns <= t->now_ns) {
		bus->next_ns = 0;
		arrive_far(t, &t->a, bus->small);
	}
	while ((group = choose(t, &verdict))) {
		sutro_core_dispatch(&t->core, group, bus_cost_ns(bus, group));
		KUNIT_ASSERT_GT(t->test, QUEUE, bus->nr);
		bus->queue[bus->nr++] = group;
	}
}

/* The oldest request completes.  With a pause, a sends anew when all of its requests have. */
static void bus_serve(struct bus *bus)
{
	struct sutro_test *t = bus->t;
	struct sutro_group *group = bus->queue[0];
	u64 cost_ns = bus_cost_ns(bus, group);

	memmove(bus->queue, bus->queue + 1, --bus->nr * sizeof(*bus->queue));
	t->now_ns += (bus->slower - 1) * cost_ns;
	finish(t, group, cost_ns, cost_ns);
	if (group == &t->e) {
		bus->e_nr++;
		if (!bus->alone)
			arrive_far(t, group, 1);
		return;
	}
	bus->a_nr++;
	if (!bus->think_ns)
		arrive_far(t, group, 1);
	else if (!group->queued && !group->in_flight)
		bus->next_ns = t->now_ns + bus->think_ns;
}

static void bus_run(struct bus *bus, u64 length_ns)
{
	u64 end_ns = bus->t->now_ns + length_ns;

	bus->a_nr = 0;
	bus->e_nr = 0;
	while (bus->t->now_ns < end_ns) {
		bus_fill(bus);
		if (bus->nr)
			bus_serve(bus);
		else
			bus->t->now_ns += MS / 20;
		if (bus->steady)
			bus->t->core.tunables.done_bytes = bus->t->now_ns;
	}
}

/* Percent of the time that the requests of a took, after the first trials. */
static u32 few_percent(struct bus *bus)
{
	bus_run(bus, 4 * SECOND_NS);
	bus_run(bus, 16 * SECOND_NS);
	return bus->a_nr * SMALL_NS / (16 * SECOND_NS / 100);
}

/* Groups have slices for the sake of a.  Returns the leaf. */
static struct sutro_core *bus_with_slices(struct kunit *test, struct bus *bus)
{
	bus_new(test, bus, FEW, 0);
	few_percent(bus);
	KUNIT_EXPECT_TRUE(test, sutro_is_fair(&bus->t->core));
	return &bus->t->core;
}

/* Four requests at once keep the device busy: a has its half of the time, with slices. */
static void sutro_test_slices_pay(struct kunit *test)
{
	struct bus bus;

	bus_new(test, &bus, FEW, 0);
	bus.t->core.tunables.protect = 0;
	KUNIT_EXPECT_LE(test, few_percent(&bus), 40);

	bus_new(test, &bus, FEW, 0);
	EXPECT_NEAR(test, few_percent(&bus), 50, 4);
	KUNIT_EXPECT_TRUE(test, sutro_is_fair(&bus.t->core));
}

/* With pauses, the device would idle: e keeps what it has without slices, but for the tries. */
static void sutro_test_slices_do_not_pay(struct kunit *test)
{
	struct bus bus;
	unsigned int without;

	bus_new(test, &bus, FEW, 6 * MS);
	bus.t->core.tunables.group_idle_ns = 8 * MS;
	bus.t->core.tunables.protect = 0;
	few_percent(&bus);
	without = bus.e_nr;

	bus_new(test, &bus, FEW, 6 * MS);
	bus.t->core.tunables.group_idle_ns = 8 * MS;
	few_percent(&bus);
	KUNIT_EXPECT_GE(test, 100 * bus.e_nr, 95 * without);
	KUNIT_EXPECT_GT(test, bus.t->core.slices.rest_ns, 0);
}

static void bus_with_pauses(struct kunit *test, struct bus *bus, bool steady)
{
	bus_new(test, bus, FEW, 3 * MS);
	bus->t->core.tunables.group_idle_ns = 8 * MS;
	bus->steady = steady;
	few_percent(bus);
}

/* Slices last if all groups transfer as many bytes as without, although charges show idle time. */
static void sutro_test_slices_transfer_as_much(struct kunit *test)
{
	struct bus bus;

	bus_with_pauses(test, &bus, false);
	KUNIT_EXPECT_GT(test, bus.t->core.slices.rest_ns, 0);
	bus_with_pauses(test, &bus, true);
	KUNIT_EXPECT_TRUE(test, sutro_is_fair(&bus.t->core));
	KUNIT_EXPECT_EQ(test, bus.t->core.slices.rest_ns, 0);
}

/* One or two requests at once are not worth a try. */
static void sutro_test_slices_of_two(struct kunit *test)
{
	struct bus bus;

	bus_new(test, &bus, 2, 0);
	few_percent(&bus);
	KUNIT_EXPECT_EQ(test, bus.t->core.slices.since_ns, 0);
}

/* They end when a group is protected, and do not come back at once. */
static void sutro_test_slices_beside_protected(struct kunit *test)
{
	struct bus bus;
	struct sutro_core *core = bus_with_slices(test, &bus);

	sutro_slices_prevent(core, core->now_ns);
	KUNIT_EXPECT_FALSE(test, sutro_is_fair(core));
	bus_run(&bus, SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_is_fair(core));
	bus_run(&bus, 4 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_is_fair(core));
}

/* After some time, a trial without slices decides anew; it takes a moment. */
static void sutro_test_slices_anew(struct kunit *test)
{
	unsigned int without = 0, i;
	struct bus bus;

	bus_new(test, &bus, FEW, 0);
	few_percent(&bus);
	for (i = 0; i < 400; i++) {
		bus_run(&bus, SECOND_NS / 10);
		without += !sutro_is_fair(&bus.t->core);
	}
	KUNIT_EXPECT_GE(test, without, 1);
	KUNIT_EXPECT_LE(test, without, 16);
}

/* Only a trial that is wholly without slices decides whether groups have them again. */
static void sutro_test_slices_whole_trial(struct kunit *test)
{
	u64 trial_ns, until_ns, since_ns, end_ns;
	unsigned int begins = 0;
	struct sutro_core *core;
	struct bus bus;

	bus_new(test, &bus, FEW, 0);
	core = &bus.t->core;
	few_percent(&bus);
	end_ns = bus.t->now_ns + 100 * SECOND_NS;
	while (bus.t->now_ns < end_ns) {
		since_ns = core->slices.since_ns;
		until_ns = core->slices.until_ns;
		trial_ns = bus.t->a.protect->trial_ns;
		bus_run(&bus, 1);
		if (since_ns == core->slices.since_ns)
			continue;
		KUNIT_EXPECT_GE(test, trial_ns, until_ns);
		begins++;
	}
	KUNIT_EXPECT_GE(test, begins, 2);
}

/* A device that is slower seems to be used less.  Slices go on while costs count as guesses. */
static void sutro_test_slices_of_guesses(struct kunit *test)
{
	struct bus bus;
	struct sutro_core *core = bus_with_slices(test, &bus);

	bus.slower = 5;
	core->tunables.guessing = true;
	bus_run(&bus, 3 * SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_is_fair(core));
	core->tunables.guessing = false;
	bus_run(&bus, SECOND_NS);
	KUNIT_EXPECT_TRUE(test, sutro_is_fair(core));

	bus_with_slices(test, &bus);
	bus.slower = 5;
	bus_run(&bus, 3 * SECOND_NS);
	KUNIT_EXPECT_FALSE(test, sutro_is_fair(&bus.t->core));
}

/* Slices that have begun for another group are not kept for the one that had them before. */
static void sutro_test_slices_of_another(struct kunit *test)
{
	struct sutro_group_protect other = {};
	struct bus bus;
	struct sutro_core *core = bus_with_slices(test, &bus);

	core->slices.until_ns = core->now_ns;
	other.group = &bus.t->e;
	sutro_slices_begin(core, &other, core->now_ns);
	bus_run(&bus, SECOND_NS / 2);
	KUNIT_EXPECT_TRUE(test, sutro_is_fair(core));
	bus_run(&bus, SECOND_NS * 3 / 5);
	KUNIT_EXPECT_FALSE(test, sutro_is_fair(core));
}

/* They end soon after the other group has left: requests of the one that is alone may pass. */
static void sutro_test_slices_of_one(struct kunit *test)
{
	struct bus bus;
	struct sutro_core *core = bus_with_slices(test, &bus);

	bus.alone = true;
	bus_run(&bus, 3 * SECOND_NS / 2);
	KUNIT_EXPECT_FALSE(test, sutro_is_fair(core));
}

/* So they do when the knob protect is 0. */
static void sutro_test_slices_are_off(struct kunit *test)
{
	struct bus bus;
	struct sutro_core *core = bus_with_slices(test, &bus);

	core->tunables.protect = 0;
	bus_run(&bus, 3 * SECOND_NS / 2);
	KUNIT_EXPECT_FALSE(test, sutro_is_fair(core));
}

static struct kunit_case sutro_slices_cases[] = {
	KUNIT_CASE(sutro_test_slices_pay),
	KUNIT_CASE(sutro_test_slices_do_not_pay),
	KUNIT_CASE(sutro_test_slices_transfer_as_much),
	KUNIT_CASE(sutro_test_slices_of_two),
	KUNIT_CASE(sutro_test_slices_beside_protected),
	KUNIT_CASE(sutro_test_slices_anew),
	KUNIT_CASE(sutro_test_slices_whole_trial),
	KUNIT_CASE(sutro_test_slices_of_guesses),
	KUNIT_CASE(sutro_test_slices_of_another),
	KUNIT_CASE(sutro_test_slices_of_one),
	KUNIT_CASE(sutro_test_slices_are_off),
	{}
};

sutro_suite(sutro_slices, "Sutro's slices on flash");
