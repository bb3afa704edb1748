/* SPDX-License-Identifier: GPL-2.0-only */
/* The algorithm alone: groups, and requests that are numbers. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdio.h>
#include <stdlib.h>

#include "sutro-core.h"

#define MS NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

/* Unlike assert(), this prints the condition and its numbers. */
#define check(condition, ...)                                                \
	do {                                                                 \
		if (!(condition)) {                                          \
			fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, \
				__LINE__, __func__, #condition);             \
			fprintf(stderr, "\t" __VA_ARGS__);                   \
			fputc('\n', stderr);                                 \
			abort();                                             \
		}                                                            \
	} while (0)

#define check_equal(a, b)                                                    \
	do {                                                                 \
		long long got_ = (long long)(a), due_ = (long long)(b);      \
                                                                             \
		check(got_ == due_, "%s is %lld, not %lld", #a, got_, due_); \
	} while (0)

/* A request at the device. */
struct flight {
	struct sutro_group *group;
	u64 estimate_ns;
	u64 cost_ns;
};

#define MAX_FLIGHTS 256

/**
 * struct world - groups on a leaf
 * @group:	group 0 is the root
 * @served_ns:	device time used by each
 * @flight:	requests at the device, oldest first
 */
struct world {
	struct sutro_core core;
	struct sutro_group *group;
	u64 *served_ns;
	u32 nr;
	struct flight flight[MAX_FLIGHTS];
	u32 flights;
	u64 now_ns;
};

struct world *world_new(u32 groups, bool rotational);
void world_free(struct world *world);
void world_group(struct world *world, u32 group, u32 parent, u32 weight);
void world_class(struct world *world, u32 group, enum sutro_class class);
void world_queue(struct world *world, u32 group, u32 nr, bool far);
bool world_pass(struct world *world, u32 group, u64 cost_ns);
void world_forget(struct world *world);
enum sutro_verdict world_send(struct world *world, u64 cost_ns, u32 *ret_group);
void world_finish(struct world *world, u32 depth);
void world_complete(struct world *world, u32 flight);
void world_check(struct world *world);

#endif /* SIM_WORLD_H */
