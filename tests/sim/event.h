/* SPDX-License-Identifier: GPL-2.0-only */
/* Simulated time: things that happen, in order. */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include <linux/types.h>

typedef void event_fn(void *context, u64 now_ns);

/**
 * struct event - something that will happen
 * @at_ns:	when
 * @order:	among events of the same time, the one added first is first
 * @fn:		what
 * @context:	its first argument
 */
struct event {
	u64 at_ns;
	u64 order;
	event_fn *fn;
	void *context;
};

/**
 * struct clock - the events to come
 * @heap:	binary heap, the next event at index 0
 */
struct clock {
	u64 now_ns;
	struct event *heap;
	size_t nr;
	size_t size;
	u64 order;
};

void clock_init(struct clock *clock, u64 now_ns);
void clock_exit(struct clock *clock);
void clock_at(struct clock *clock, u64 at_ns, event_fn *fn, void *context);
void clock_run(struct clock *clock, u64 until_ns);

#endif /* SIM_EVENT_H */
