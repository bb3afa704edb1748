/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_SAMPLE_LINES_H
#define SUTRO_SAMPLE_LINES_H

/* Declarations that only sample.c and sampler.c share; sample.h is the interface. */

#include "host/cgroup.h"
#include "host/counters.h"
#include "host/usage.h"

/** struct latency_line - reads by latency: the counters, and the difference of the last pass */
struct latency_line {
	struct latencies total;
	struct latencies use;
};

/**
 * struct line - counters of one device
 * @total: of the cgroup, as read last
 * @use: difference of the last pass, also of all below, if the device is a sutro leaf; NULL if
 *	the last two passes had nothing of the cgroup: most of a large machine are idle
 * @known: @total was read; false: the line is only for those below
 * @sutro: @total is from a file about sutro leaves
 * @seen: in this pass
 * @latency: NULL where it is not sampled
 */
struct line {
	dev_t devno;
	uint64_t total[COUNTERS_GROWING];
	struct usage *use;
	bool known;
	bool sutro;
	bool seen;
	struct latency_line *latency;
};

/**
 * struct sample - the last reading of a cgroup, and the difference to the one before
 * @c: the cgroup
 * @others: in the list of its sampler while @is_busy: @touched or @was_touched
 * @passes: readings taken, 0..2
 * @active: a line has something new
 * @touched: in this pass a line was taken or a file was read
 * @was_touched: the same of the pass before
 */
struct sample {
	struct cgroup *c;
	LIST_ENTRY(sample) others;
	bool is_busy;
	struct line *l;
	size_t n;
	unsigned int passes;
	bool has_files;
	bool active;
	bool touched;
	bool was_touched;
};

/** sample_free() - free it and its lines, NULL: nothing */
struct sample *sample_free(struct sample *s);

/** sample_find() - the line of a device, or NULL */
struct line *sample_find(const struct sample *s, dev_t devno);

/** sample_find_or_add() - the same with a new line, NULL: no memory; other lines may move */
struct line *sample_find_or_add(struct sample *s, dev_t devno);

/** sample_remove() - remove a line; the last one takes its place */
void sample_remove(struct sample *s, struct line *l);

/** sample_clear() - clear the differences. One that the last pass did not touch has none */
void sample_clear(struct sample *s);

/**
 * counters_hold() - times that end at the moment of reading do not fall
 * @now: as read; times below those of @before become these
 */
void counters_hold(uint64_t *now, const uint64_t *before);

/** counters_difference() - the use of a device between two readings */
struct usage counters_difference(const uint64_t *now, const uint64_t *before);

/** line_add_usage() - add to the difference. Return: 0 or -ENOMEM */
int line_add_usage(struct line *l, const struct usage *u);

/** line_read_latencies() - with @compare, add to the difference. Return: 0 or -ENOMEM */
int line_read_latencies(struct line *l, const struct latencies *now,
			bool compare);

#endif
