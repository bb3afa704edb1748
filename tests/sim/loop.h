/* SPDX-License-Identifier: GPL-2.0-only */
/* The closed loop: leaves, cgroups, clients, and the daemon's control law. */
#ifndef SIM_LOOP_H
#define SIM_LOOP_H

#include "client.h"
#include "control/law.h"

/* The largest numbers of the parts of a loop. */
#define LOOP_LEAVES 16
#define LOOP_VOLUMES 32
#define LOOP_CGROUPS 320
#define LOOP_CLIENTS 320
#define LOOP_PROMISES 64
#define LOOP_EVENTS 256
#define LOOP_TICKS 4096
/* Numbers of a disk that change at once. */
#define LOOP_NUMBERS 8

/**
 * struct loop_cgroup - a cgroup; number 0 is the root
 * @parent:	comes before it
 * @weight:	the weight that is set on all leaves
 * @class:	enum sutro_class
 * @latency_us:	its latency target on all leaves, 0 = none
 * @on:		the cgroup on each leaf
 * @leaves:	where it has requests in reserved time
 */
struct loop_cgroup {
	u32 parent;
	u32 weight;
	u32 class;
	u32 latency_us;
	struct leaf_group on[LOOP_LEAVES];
	struct {
		u64 time_ns;
		u64 wait_ns;
		u64 pending_ns;
		u64 busy_ns;
		u64 backlog_ns;
		u64 ios;
	} last[LOOP_LEAVES];
	struct sutro_leaves leaves;
};

/**
 * struct loop_client - reads or writes
 * @first, @last: its part of the volume, 0..1
 * @ticks_bytes: completed bytes in each tick
 * @ticks_late: the part of its requests that took longer than job.late_ns
 */
struct loop_client {
	u32 cgroup;
	u32 volume;
	double first;
	double last;
	struct job job;
	struct client client;
	u64 last_bytes;
	u64 last_ios;
	u64 tick_bytes;
	u64 tick_ios;
	u64 last_late;
	u64 ticks_bytes[LOOP_TICKS];
	double ticks_late[LOOP_TICKS];
};

/**
 * struct loop_promise - a floor
 * @reads, @writes: of which it is
 * @ios:	requests per second, else bytes
 * @part:	of the time, 0 = it is a rate; then @floor is what that is worth
 * @rate, @state, @phi, @gain, @reserve: of each tick
 * @weight:	of its cgroup, in force on each leaf after the tick
 */
struct loop_promise {
	u32 cgroup;
	u32 volume;
	bool reads;
	bool writes;
	bool ios;
	double floor;
	double part;
	u64 importance;
	struct {
		double rate;
		enum control_state state;
		double phi;
		double gain;
		double reserve;
		u32 weight[LOOP_LEAVES];
	} ticks[LOOP_TICKS];
};

/**
 * struct loop_event - something changes
 * @happen:	applies the change
 * @leaf:	the disk that changes
 * @number, @value: the changed number of the disk
 * @cgroup, @weight: a cgroup gets a weight
 * @client, @first, @last: a client goes to another part of its volume
 * @promise, @like: a promise costs what the other one cost
 */
struct loop_event {
	struct loop *loop;
	u64 at_ns;
	void (*happen)(struct loop *loop, const struct loop_event *event);
	u32 leaf;
	const struct mdisk_number *number[LOOP_NUMBERS];
	u32 value[LOOP_NUMBERS];
	u32 cgroup;
	u32 weight;
	u32 client;
	double first;
	double last;
	u32 promise;
	u32 like;
};

/**
 * struct loop_truth - use of a leaf by a cgroup, without those in it
 * @counts:	by the drive's model
 * @charged_ns:	by the elevator
 */
struct loop_truth {
	struct mdisk_counts counts;
	u64 charged_ns;
};

/**
 * struct loop_window - cycles of a leaf with protected groups (sutro-window.c)
 * @part:	shared part, of SUTRO_PROTECT_WHOLE; the whole without such groups
 * @cycle_ns:	length
 * @late_ns:	&leaf.late_ns
 */
struct loop_window {
	u32 part;
	u64 cycle_ns;
	u64 late_ns;
};

/**
 * struct loop - everything
 * @is_controlled: the daemon runs
 * @tick_ns:	how often it looks
 * @lag_ns:	from its look to the weights
 * @warmup_ns:	latencies before are not counted
 * @noise:	part by which what it reads is wrong
 * @all_bytes:	&client.all_bytes
 * @writes:	weights that were changed
 * @truth:	for each tick, leaf and cgroup the exact use so far; NULL: not recorded
 * @window:	for each tick and leaf, likewise
 */
struct loop {
	struct clock clock;
	struct leaf leaf[LOOP_LEAVES];
	struct volume volume[LOOP_VOLUMES];
	struct loop_cgroup cgroup[LOOP_CGROUPS];
	struct loop_client client[LOOP_CLIENTS];
	struct loop_promise promise[LOOP_PROMISES];
	struct loop_event event[LOOP_EVENTS];
	u32 leaves;
	u32 volumes;
	u32 cgroups;
	u32 clients;
	u32 promises;
	u32 events;

	bool is_controlled;
	u64 tick_ns;
	u64 lag_ns;
	u64 run_ns;
	u64 warmup_ns;
	u64 seed;
	double noise;

	struct control *control;
	u64 begin_ns;
	u64 random;
	u64 all_bytes;
	u32 ticks;
	u64 writes;
	struct loop_truth *truth;
	struct loop_window *window;
};

struct loop *loop_new(void);
void loop_free(struct loop *loop);

void loop_change_disk(struct loop *loop, const struct loop_event *event);
void loop_change_weight(struct loop *loop, const struct loop_event *event);
void loop_move_client(struct loop *loop, const struct loop_event *event);
void loop_recall(struct loop *loop, const struct loop_event *event);
void loop_run(struct loop *loop);

#endif /* SIM_LOOP_H */
