/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_GOVERNED_H
#define SUTRO_GOVERNED_H

#include "control/law.h"
#include "control/target.h"
#include "host/cgroup.h"
#include "host/partition.h"
#include "policy/promise.h"

/* A row of the history is a second; ten minutes are kept. */
#define HISTORY_ROWS 600U

/**
 * struct history - rates of a floor in the past
 * @next: where the next row goes
 * @row: when, the rate, the rate that was promised then, the part of it granted
 * @n: rows there are
 */
struct history {
	struct history_row {
		uint64_t usec;
		double got;
		double promised;
		double granted;
	} row[HISTORY_ROWS];
	unsigned int next;
	unsigned int n;
};

/**
 * struct governed - a floor that is being kept, or a target, see target.c
 * @cgroup: cgroup of the floor; NULL when it is gone
 * @key, @path, @floor, @source: the promise, see promise.h
 * @part: of the promise; @floor is then the rate that it is worth now, 0: not known
 * @devno: of the logical device
 * @partition: counters of the device, if it is a partition
 * @number: of the promise in the plant
 * @rate: units per second in the last tick
 * @got: the same over the last second
 * @reserve: part of the time that was reserved for it in the last tick
 * @target: NULL for a floor; of a target @floor is the goal and @got the percentile
 *	of latency, in us
 * @is_enforceable: of a target, elevators with io.sutro.latency can enforce it
 * @bytes, @leaf_bytes: at the logical device and at its leaves, older ones weigh less
 * @copies: @leaf_bytes for each of @bytes, 0: unknown
 * @crowded_ticks: ticks in which it was short while requests waited above the leaves (above.c)
 * @crowded: @crowded_ticks is large enough to be the cause
 * @lost_bytes: written to dm-crypt, but not sent below for long: these do not wait there
 * @passed_bytes, @passed_usec: counters of its writes through dm-crypt, and when they changed
 * @state: as reported last
 * @cause: why it does not hold, for people
 * @cause_usec: when @cause was found
 * @complained: the journal has a message that it does not hold
 * @history: rates of the past
 * @remembered_usec: when its last row was made, 0: it has none
 */
struct governed {
	struct cgroup *cgroup;
	enum promise_key key;
	char *path;
	uint64_t floor;
	uint32_t part;
	char *source;
	dev_t devno;
	struct partition partition;
	uint32_t number;
	double rate;
	double got;
	double reserve;
	struct target *target;
	bool is_enforceable;
	double bytes;
	double leaf_bytes;
	double copies;
	unsigned int crowded_ticks;
	bool crowded;
	uint64_t lost_bytes;
	uint64_t passed_bytes;
	uint64_t passed_usec;
	enum control_state state;
	char *cause;
	uint64_t cause_usec;
	bool complained;
	struct history *history;
	uint64_t remembered_usec;
};

/** governed_percentile() - of a target as in struct promise, 0 for a floor */
static inline uint32_t governed_percentile(const struct governed *f)
{
	return f->target ? f->target->percentile * PART_ALL + 0.5 : 0;
}

#endif
