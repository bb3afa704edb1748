// SPDX-License-Identifier: GPL-2.0-only
/* Simulated time: a tree of events.  An event that was added cannot be removed; its
 * function has to check whether the event is still needed.
 */
#include "event.h"

#include <stdlib.h>

#include <linux/minmax.h>

/* An event; among those of the same time, the one added first is first. */
struct event {
	struct rb_node node;
	u64 at_ns;
	event_fn *fn;
	void *context;
};

static bool event_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct event, node)->at_ns <
	       rb_entry(b, struct event, node)->at_ns;
}

static struct event *clock_next(struct clock *clock)
{
	struct rb_node *node = rb_first_cached(&clock->events);

	return node ? rb_entry(node, struct event, node) : NULL;
}

void clock_init(struct clock *clock, u64 now_ns)
{
	*clock = (struct clock){ .now_ns = now_ns, .events = RB_ROOT_CACHED };
}

void clock_exit(struct clock *clock)
{
	struct event *event, *next;

	rbtree_postorder_for_each_entry_safe(event, next,
					     &clock->events.rb_root, node)
		free(event);
}

void clock_at(struct clock *clock, u64 at_ns, event_fn *fn, void *context)
{
	struct event *event = malloc(sizeof(*event));

	if (!event)
		abort();
	event->at_ns = max(at_ns, clock->now_ns);
	event->fn = fn;
	event->context = context;
	rb_add_cached(&event->node, &clock->events, event_less);
}

/* Let everything happen up to a time; it is then that time. */
void clock_run(struct clock *clock, u64 until_ns)
{
	struct event *event;

	while ((event = clock_next(clock)) && event->at_ns <= until_ns) {
		rb_erase_cached(&event->node, &clock->events);
		clock->now_ns = event->at_ns;
		event->fn(event->context, event->at_ns);
		free(event);
	}
	clock->now_ns = until_ns;
}
