/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_HOST_COUNTERS_H
#define SUTRO_HOST_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Counts of reads by their latency in io.sutro.stat, "rlat=". */
#define LATENCY_BUCKETS 40U

/** struct latencies - reads by how long they took */
struct latencies {
	uint32_t count[LATENCY_BUCKETS];
};

/* The counters of one device in a file, in the order of the fields of struct usage: first those
 * that only grow (COUNTERS_GROWING), then those of the moment.
 */
enum counter {
	COUNTER_TIME_NS,
	COUNTER_RBYTES,
	COUNTER_WBYTES,
	COUNTER_RIOS,
	COUNTER_WIOS,
	COUNTER_WAIT_NS,
	COUNTER_PENDING_NS,
	COUNTER_BUSY_NS,
	COUNTER_BACKLOG_NS,
	COUNTERS_GROWING,
	COUNTER_QUEUED = COUNTERS_GROWING,
	COUNTER_IN_FLIGHT,
	COUNTER_LATENCY,
	COUNTERS,
};

/* COUNTER_LATENCY of a device with a target; without one, 0. */
#define STATE_TIMED 1U
#define STATE_UNREACHABLE 2U

/**
 * counters_parse() - the text behind the device of a line of io.sutro.stat or io.stat
 * @s: "time_ns=1 rbytes=2 ... queued=4": keys in any order, others are passed over
 * @ret: an element for each enum counter; those that are not in the text stay as they are
 * @latencies: for the counts of reads by latency, or NULL
 *
 * Return: does @latencies have the counts of the text?
 */
bool counters_parse(const char *s, uint64_t *ret, struct latencies *latencies);

#endif
