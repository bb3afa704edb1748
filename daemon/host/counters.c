/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The counters of a cgroup on a device, as the kernel writes them:
 *
 *	8:16 time_ns=120 rbytes=4096 wbytes=0 rios=1 wios=0 ... queued=2
 *
 * io.stat of other devices has some of these keys, and keys of other schedulers.
 */

#include <string.h>

#include "host/counters.h"
#include "host/util.h"

/* "0,0,7,1": missing numbers are 0. */
static const char *parse_latencies(const char *s, struct latencies *ret)
{
	*ret = (struct latencies){};
	for (size_t i = 0; i < LATENCY_BUCKETS && *s >= '0' && *s <= '9'; i++) {
		uint64_t count;

		s = skip_u64(s, &count);
		ret->count[i] = count;
		s += *s == ',';
	}
	return s;
}

/* The counter with the name @key; COUNTERS: an unknown name. The kernel writes counters in
 * one order: @next is the counter behind the last one found.
 */
static enum counter counter_of(const char *key, size_t length,
			       enum counter next)
{
	static const struct {
		const char *name;
		size_t length;
	} names[] = {
		[COUNTER_TIME_NS] = { "time_ns", 7 },
		[COUNTER_RBYTES] = { "rbytes", 6 },
		[COUNTER_WBYTES] = { "wbytes", 6 },
		[COUNTER_RIOS] = { "rios", 4 },
		[COUNTER_WIOS] = { "wios", 4 },
		[COUNTER_WAIT_NS] = { "wait_ns", 7 },
		[COUNTER_PENDING_NS] = { "pending_ns", 10 },
		[COUNTER_BUSY_NS] = { "busy_ns", 7 },
		[COUNTER_BACKLOG_NS] = { "backlog_ns", 10 },
		[COUNTER_QUEUED] = { "queued", 6 },
		[COUNTER_IN_FLIGHT] = { "in_flight", 9 },
		[COUNTER_LATENCY] = { "latency", 7 },
	};
	enum counter i = next;

	for (size_t tries = 0; tries < COUNTERS; tries++) {
		i = i < COUNTERS ? i : 0;
		if (names[i].length == length &&
		    !memcmp(names[i].name, key, length))
			return i;
		i++;
	}
	return COUNTERS;
}

/* The state of a latency target, as a number above 0. */
static uint64_t parse_state(const char *s)
{
	return startswith(s, "unreachable") ? STATE_UNREACHABLE : STATE_TIMED;
}

bool counters_parse(const char *s, uint64_t *ret, struct latencies *latencies)
{
	enum counter next = 0;
	bool found = false;

	while (*s) {
		const char *key = s;
		enum counter i;

		while (*s && *s != '=' && *s != ' ')
			s++;
		if (*s == '=') {
			i = counter_of(key, s - key, next);
			next = i < COUNTERS ? i + 1 : next;
			if (i == COUNTER_LATENCY)
				ret[i] = parse_state(s + 1);
			else if (i < COUNTERS)
				s = skip_u64(s + 1, &ret[i]);
			else if (latencies && startswith(key, "rlat=")) {
				s = parse_latencies(s + 1, latencies);
				found = true;
			}
		}
		while (*s && *s != ' ')
			s++;
		s += *s == ' ';
	}
	return found;
}
