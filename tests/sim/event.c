// SPDX-License-Identifier: GPL-2.0-only
/* Simulated time: a binary heap of events.  What was added cannot be removed;
 * whom an event no longer concerns must notice that himself.
 */
#include "event.h"

#include <stdlib.h>

#include <linux/minmax.h>

void clock_init(struct clock *clock, u64 now_ns)
{
	*clock = (struct clock){ .now_ns = now_ns };
}

void clock_exit(struct clock *clock)
{
	free(clock->heap);
}

static bool event_less(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void event_swap(struct event *a, struct event *b)
{
	struct event c = *a;

	*a = *b;
	*b = c;
}

void clock_at(struct clock *clock, u64 at_ns, event_fn *fn, void *context)
{
	struct event *heap = clock->heap;
	size_t i = clock->nr++;

	if (clock->nr > clock->size) {
		clock->size = 2 * clock->nr;
		heap = realloc(heap, clock->size * sizeof(*heap));
		if (!heap)
			abort();
		clock->heap = heap;
	}
	heap[i] = (struct event){ max(at_ns, clock->now_ns), clock->order++, fn,
				  context };
	for (; i && event_less(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		event_swap(&heap[i], &heap[(i - 1) / 2]);
}

static struct event clock_pop(struct clock *clock)
{
	struct event *heap = clock->heap, first = heap[0];
	size_t i = 0, child;

	heap[0] = heap[--clock->nr];
	for (; (child = 2 * i + 1) < clock->nr; i = child) {
		if (child + 1 < clock->nr &&
		    event_less(&heap[child + 1], &heap[child]))
			child++;
		if (!event_less(&heap[child], &heap[i]))
			break;
		event_swap(&heap[child], &heap[i]);
	}
	return first;
}

/* Let everything happen up to a time; it is then that time. */
void clock_run(struct clock *clock, u64 until_ns)
{
	while (clock->nr && clock->heap[0].at_ns <= until_ns) {
		struct event event = clock_pop(clock);

		clock->now_ns = event.at_ns;
		event.fn(event.context, event.at_ns);
	}
	clock->now_ns = until_ns;
}
