/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_HISTOGRAM_H
#define SUTRO_HISTOGRAM_H

#include "host/latency-map.h"
#include "host/sample.h"

/** struct histogram - requests by latency, in the buckets of latency-map.h */
struct histogram {
	double count[HISTOGRAM_BUCKETS];
};

/** histogram_begin_us(), histogram_end_us() - the limits of bucket @i */
double histogram_begin_us(size_t i);
double histogram_end_us(size_t i);

/** histogram_sum() - number of requests */
double histogram_sum(const struct histogram *h);

/** histogram_add() - add all requests of @more */
void histogram_add(struct histogram *h, const struct histogram *more);

/** histogram_add_leaf() - add reads as a leaf's elevator counted them */
void histogram_add_leaf(struct histogram *h, const struct latencies *reads);

/**
 * histogram_percentile_us() - a latency that the part @part of all requests is within
 * @part: 0.95 for P95
 *
 * Requests are taken to lie evenly in their bucket. Return: 0 without requests.
 */
double histogram_percentile_us(const struct histogram *h, double part);

#endif
