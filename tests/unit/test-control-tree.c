/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Cgroups in cgroups, several promises of one, leaves without weights, verdicts other
 * than that floors do not fit, and carrying over to another plant: on plants whose
 * numbers can be worked out by hand.
 */

#include <math.h>
#include <stdio.h>

#include "control-machine.h"

static void use(struct control *c, uint32_t node, double time, double backlog)
{
	*control_use(c, node, 0) = (struct control_use){
		.time = time, .backlog = backlog, .queued = backlog, .ios = 100
	};
}

static uint32_t node_below(struct control *c, uint32_t parent)
{
	uint32_t n;

	check(control_add_node(c, parent, &n) == 0);
	return n;
}

/* Two cgroups below the root on one leaf. */
static struct control *siblings(uint32_t *unit, uint32_t *others)
{
	struct control *c;

	check(control_new(1, &c) == 0);
	*unit = node_below(c, 0);
	*others = node_below(c, 0);
	return c;
}

static uint32_t promise_of(struct control *c, uint32_t node, double floor,
			   uint64_t importance, uint32_t traffic)
{
	struct control_promise p = { .node = node,
				     .floor = floor,
				     .importance = importance,
				     .traffic = traffic };
	uint32_t leaf = 0, n;

	check(control_add_promise(c, &p, &leaf, 1, &n) == 0);
	return n;
}

static void say(struct control *c, uint32_t promise, double rate,
		double fraction)
{
	control_promise(c, promise)->rate = rate;
	control_promise(c, promise)->fraction = fraction;
}

static void ticks(struct control *c, int n)
{
	while (n--)
		control_tick(c, TICK_S);
}

static double part(struct control *c, uint32_t node, uint32_t other)
{
	double w = control_weight(c, node, 0);

	return w / (w + control_weight(c, other, 0));
}

/*
 *	/ -- slice, floor 0.4 of the disk -- service, floor 0.3
 *	  |                               `- batch
 *	  `- others
 *
 * The slice needs 0.4, not 0.7; of that the service gets its 0.3. It gets as much in a
 * slice without a floor, beside a batch of weight 5000.
 */
static void test_nested(void)
{
	for (int is_promised = 1; is_promised >= 0; is_promised--) {
		uint32_t slice, others, p, q;
		struct control *c = siblings(&slice, &others);
		uint32_t service = node_below(c, slice);
		uint32_t batch = node_below(c, slice);
		double top;

		control_set_nominal(c, others, 0, 1000);
		control_set_nominal(c, batch, 0, is_promised ? 100 : 5000);
		q = promise_of(c, service, 300, 100, 0);
		p = is_promised ? promise_of(c, slice, 400, 100, 0) : q;
		use(c, others, 0.6, 1);
		use(c, slice, 0.4, 1);
		use(c, service, 0.3, 1);
		use(c, batch, 0.1, 1);
		say(c, p, 400, 1);
		say(c, q, 300, 1);
		ticks(c, 12);
		top = part(c, slice, others);
		near(top * part(c, service, batch), 0.3 * 1.04, 0.05);
		/* And batch does not starve. */
		check(top * part(c, batch, service) > 0.004);
		if (is_promised) {
			check(control_promise(c, p)->phi == 1);
			check(control_promise(c, q)->phi == 1);
			near(top, 0.4 * 1.04, 0.03);
			check(control_weight(c, others, 0) == 1000);
			check(control_weight(c, batch, 0) == 100);
		}
		control_free(c);
	}
}

/* A cgroup's own requests compete with its children at the fixed weight 100. */
static void test_own(void)
{
	struct control *c;
	uint32_t unit, p;
	double w;

	check(control_new(1, &c) == 0);
	unit = node_below(c, 0);
	p = promise_of(c, unit, 100, 100, 0);
	use(c, 0, 1, 1);
	use(c, unit, 0.5, 1);
	say(c, p, 100, 1);
	ticks(c, 12);
	w = control_weight(c, unit, 0);
	near(w / (w + 100), 0.5 * 1.04, 0.03);
	check(control_weight(c, 0, 0) == 100);
	control_free(c);
}

/* A slice whose services have all of it by promise: nothing is left, nothing moves. */
static void test_all_promised(void)
{
	struct control *c;
	uint32_t slice, others, a, b;

	c = siblings(&slice, &others);
	a = node_below(c, slice);
	b = node_below(c, slice);
	promise_of(c, a, 100, 100, 0);
	promise_of(c, b, 100, 100, 0);
	for (int t = 0; t < 80; t++) {
		/* Sums that are a hair above or below. */
		double off = between(0.97, 1.03);

		use(c, others, 0.3, 1);
		use(c, slice, 0.7 * off, 1);
		use(c, a, 0.4 * off, 1);
		use(c, b, 0.3 * off, 1);
		say(c, 0, 100 * off, 1);
		say(c, 1, 100 * off, 1);
		ticks(c, 1);
		if (t < 8)
			continue;
		near(part(c, slice, others), 0.7 * 1.04, 0.04);
		near(part(c, a, b), 0.4 / 0.7, 0.04);
		check(control_weight(c, a, 0) < 200);
	}
	control_free(c);
}

/* A busy disk that is charged for 0.8 s in a second: parts of it are parts of 0.8. */
static void test_capacity(void)
{
	uint32_t unit, others;
	struct control *c = siblings(&unit, &others);

	promise_of(c, unit, 100, 100, 0);
	use(c, 0, 0.8, 1);
	use(c, unit, 0.4, 1);
	use(c, others, 0.4, 1);
	say(c, 0, 100, 1);
	ticks(c, 60);
	near(control_need(c, 0, 0), 0.5, 0.01);
	near(part(c, unit, others), 0.5 * 1.04, 0.03);
	/* A leaf that is not busy is no evidence. */
	use(c, 0, 0.5, 0.3);
	ticks(c, 60);
	near(control_need(c, 0, 0), 0.5, 0.01);
	control_free(c);
}

/* A cost that doubled is believed in a tick, half a cost is not. */
static void test_jump(void)
{
	struct control *c;
	uint32_t unit;

	check(control_new(1, &c) == 0);
	unit = node_below(c, 0);
	promise_of(c, unit, 100, 100, 0);
	*control_use(c, unit, 0) = (struct control_use){
		.time = 0.3, .backlog = 1, .queued = 1, .ios = 1000
	};
	say(c, 0, 100, 1);
	ticks(c, 20);
	near(control_cost(c, 0, 0), 0.003, 1e-3);
	control_use(c, unit, 0)->time = 0.6;
	ticks(c, 1);
	check(control_cost(c, 0, 0) > 0.005);
	ticks(c, 20);
	control_use(c, unit, 0)->time = 0.3;
	ticks(c, 1);
	check(control_cost(c, 0, 0) > 0.0045);
	/* Of nine requests it may be chance. */
	ticks(c, 40);
	*control_use(c, unit, 0) = (struct control_use){
		.time = 0.6, .backlog = 1, .queued = 1, .ios = 9
	};
	ticks(c, 1);
	check(control_cost(c, 0, 0) < 0.0045);
	control_free(c);
}

/* Siblings that were shrunk have their weights back when the ratio fits again. */
static void test_shrink(void)
{
	uint32_t unit, others;
	struct control *c = siblings(&unit, &others);

	control_set_nominal(c, others, 0, 8000);
	promise_of(c, unit, 100, 100, 0);
	use(c, others, 0.2, 1);
	use(c, unit, 0.8, 1);
	say(c, 0, 100, 1);
	ticks(c, 20);
	check(control_weight(c, others, 0) < 4000);
	near(part(c, unit, others), 0.8 * 1.04, 0.03);
	use(c, unit, 0.2, 1);
	ticks(c, 40);
	check(control_weight(c, others, 0) == 8000);
	control_free(c);
}

/* Bytes and requests of the same reads need the larger; reads and writes the sum. */
static void test_traffic(void)
{
	for (uint32_t same = 0; same < 2; same++) {
		uint32_t unit, others, p, q;
		struct control *c = siblings(&unit, &others);

		p = promise_of(c, unit, 200, 100, 0);
		q = promise_of(c, unit, 3, 100, same ? 0 : 1);
		use(c, unit, 0.5, 1);
		use(c, others, 0.5, 1);
		say(c, p, 200, same ? 1 : 0.4);
		say(c, q, 3, same ? 1 : 0.6);
		ticks(c, 12);
		near(control_cost(c, p, 0), (same ? 0.5 : 0.2) / 200, 1e-6);
		near(part(c, unit, others), 0.5 * 1.04, 0.03);
		control_free(c);
	}
}

static enum control_state state_after(struct control *c, double seconds)
{
	ticks(c, (int)(seconds / TICK_S));
	return control_promise(c, 0)->state;
}

/* A unit with a request a second, first with more: the state follows, and does not alternate. */
static void test_state_does_not_alternate(void)
{
	uint32_t unit, others, changes = 0;
	struct control *c = siblings(&unit, &others);
	enum control_state state;

	promise_of(c, unit, 100, 100, 0);
	use(c, others, 0.5, 1);
	use(c, unit, 0.25, 0.8);
	say(c, 0, 50, 1);
	state = state_after(c, 5);
	check(state == CONTROL_LIMITED);
	for (int tick = 0; tick < 120; tick++) {
		bool has_request = tick % 4 == 0;
		enum control_state next;

		use(c, unit, has_request ? 0.05 : 0, 0);
		say(c, 0, has_request ? 10 : 0, 1);
		next = state_after(c, TICK_S);
		changes += next != state;
		state = next;
	}
	check(changes <= 2);
	control_free(c);
}

/* The cause of a missed promise follows from evidence. */
static void test_causes(void)
{
	uint32_t unit, others;
	struct control *c = siblings(&unit, &others);

	promise_of(c, unit, 100, 100, 0);
	use(c, others, 0.5, 1);

	/* Gets it. */
	use(c, unit, 0.5, 1);
	say(c, 0, 100, 1);
	check(state_after(c, 3) == CONTROL_HELD);
	/* Has little to do, and waits for nothing. */
	use(c, unit, 0.1, 0.05);
	say(c, 0, 20, 1);
	check(state_after(c, 3) == CONTROL_HELD);
	/* Now it waits, and it is soon. */
	use(c, unit, 0.45, 1);
	say(c, 0, 90, 1);
	check(state_after(c, 1.5) == CONTROL_SETTLING);
	/* The unit is entitled to half of the disk by weight, and uses a quarter. */
	use(c, unit, 0.25, 0.8);
	say(c, 0, 50, 1);
	check(state_after(c, 5) == CONTROL_LIMITED);
	/* Other traffic of its own, four times as much. */
	use(c, unit, 0.8, 1);
	say(c, 0, 32, 0.2);
	check(state_after(c, 5) == CONTROL_CROWDED);
	/* On a leaf without weights nothing is steered, and the state reports that. */
	control_set_weighted(c, 0, false);
	say(c, 0, 50, 1);
	check(state_after(c, 5) == CONTROL_UNWEIGHTED);
	check(control_weight(c, unit, 0) == 100);
	control_set_weighted(c, 0, true);
	/* Bytes arrive, and no cgroup on the leaf is charged for them. */
	*control_use(c, unit, 0) = (struct control_use){};
	say(c, 0, 60, 1);
	check(state_after(c, 12) == CONTROL_UNATTRIBUTED);
	/* It stops, which does not mean that the floor holds. */
	say(c, 0, 0, 1);
	for (int tick = 0; tick < 40; tick++) {
		enum control_state state = state_after(c, TICK_S);

		check(state == CONTROL_UNATTRIBUTED || state == CONTROL_IDLE);
	}
	check(state_after(c, TICK_S) == CONTROL_IDLE);
	/* Well again, for long enough. */
	use(c, unit, 0.5, 1);
	say(c, 0, 100, 1);
	check(state_after(c, 5) == CONTROL_HELD);
	/* It stops. */
	use(c, unit, 0, 0);
	say(c, 0, 0, 1);
	check(state_after(c, 7) == CONTROL_IDLE);
	for (int s = 0; s < _CONTROL_STATE_MAX; s++)
		check(control_state_to_string(s)[0]);
	control_free(c);
}

/* Without others that wait, nothing is steered. */
static void test_alone(void)
{
	uint32_t unit, others;
	struct control *c = siblings(&unit, &others);

	control_set_nominal(c, others, 0, 1000);
	promise_of(c, unit, 100, 100, 0);
	use(c, unit, 0.9, 1);
	use(c, others, 0.05, 0.01);
	say(c, 0, 100, 1);
	for (int t = 0; t < 40; t++) {
		ticks(c, 1);
		check(control_weight(c, unit, 0) == 100);
		check(control_weight(c, others, 0) == 1000);
	}
	/* Others come; and while they pause, the weight waits for them. */
	use(c, others, 0.1, 1);
	ticks(c, 1);
	check(control_weight(c, unit, 0) > 1000);
	use(c, others, 0, 0);
	ticks(c, 20);
	check(control_weight(c, unit, 0) > 1000);
	ticks(c, 40);
	check(control_weight(c, unit, 0) == 100);
	control_free(c);
}

/* A plant that is built anew goes on where the old one was. */
static void test_inherit(void)
{
	for (unsigned int n = 0; n < CASES / 10; n++) {
		uint32_t leaf_of[MAX_LEAVES];
		struct control *from;
		struct machine m;

		random_machine(&m);
		scale_floors(&m, 0.9);
		build(&m);
		run(&m, 2 + below(3));
		from = m.c;
		for (uint32_t l = 0; l < m.leaves; l++)
			leaf_of[l] = l;
		build(&m);
		for_each_unit(u, &m)
			control_inherit_node(m.c, u->node, from, u->node,
					     leaf_of);
		for_each_floor(u, &m)
			control_inherit(m.c, u->promise, from, u->promise,
					leaf_of);
		control_inherit_node(m.c, 0, from, 0, leaf_of);
		for (int t = 0; t < 8; t++) {
			struct control *now = m.c;

			for_each_unit(u, &m)
				for_each_leaf(l, &m)
					check(control_weight(from, u->node,
							     l) ==
					      control_weight(now, u->node, l));
			run(&m, TICK_S);
			m.c = from;
			run(&m, TICK_S);
			m.c = now;
		}
		control_free(from);
		control_free(m.c);
	}
}

/* A cost that was kept over a restart is as good as a measured one. */
static void test_learnt(void)
{
	uint32_t unit, others;
	struct control *c = siblings(&unit, &others);
	double w;

	promise_of(c, unit, 100, 100, 0);
	control_learnt(c, 0, 0, 0.007);
	near(control_cost(c, 0, 0), 0.007, 1e-9);
	use(c, others, 1, 1);
	ticks(c, 4);
	w = control_weight(c, unit, 0);
	near(w / (w + 100), 0.7 * 1.04, 0.03);
	control_learnt(c, 0, 0, NAN);
	control_learnt(c, 0, 0, -1);
	near(control_cost(c, 0, 0), 0.007, 1e-9);
	control_free(c);
}

/* Mistakes of a caller change nothing. */
static void test_mistakes(void)
{
	const uint32_t leaves[] = { 0, 1, 0 };
	struct control_promise p = { .floor = 1 };
	struct control *c;

	check(control_new(2, &c) == 0);
	check(control_add_node(c, 1, NULL) < 0);
	check(control_add_node(c, CONTROL_NONE, NULL) < 0);
	check(control_add_promise(c, &p, leaves, 3, NULL) < 0);
	p.node = 7;
	check(control_add_promise(c, &p, leaves, 2, NULL) < 0);
	p.node = 0;
	p.floor = 0;
	check(control_add_promise(c, &p, leaves, 2, NULL) < 0);
	p.floor = NAN;
	check(control_add_promise(c, &p, leaves, 2, NULL) < 0);
	p.floor = 1;
	check(control_add_promise(c, &p, (uint32_t[]){ 2 }, 1, NULL) < 0);
	check(control_add_promise(c, &p, NULL, 0, NULL) == 0);
	ticks(c, 3);
	control_set_nominal(c, 0, 0, 0);
	check(control_weight(c, 0, 0) == 1);
	control_set_nominal(c, 0, 0, 20000);
	check(control_weight(c, 0, 0) == 10000);
	control_free(c);
}

int main(void)
{
	test_nested();
	test_own();
	test_all_promised();
	test_capacity();
	test_jump();
	test_shrink();
	test_traffic();
	test_causes();
	test_state_does_not_alternate();
	test_alone();
	test_inherit();
	test_learnt();
	test_mistakes();
	return 0;
}
