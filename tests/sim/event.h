/* SPDX-License-Identifier: GPL-2.0-only */
/* Simulated time: things that happen, in order. */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include <linux/rbtree.h>
#include <linux/types.h>

typedef void event_fn(void *context, u64 now_ns);

/* The events to come. */
struct clock {
	u64 now_ns;
	struct rb_root_cached events;
};

void clock_init(struct clock *clock, u64 now_ns);
void clock_exit(struct clock *clock);
void clock_at(struct clock *clock, u64 at_ns, event_fn *fn, void *context);
void clock_run(struct clock *clock, u64 until_ns);

#endif /* SIM_EVENT_H */
