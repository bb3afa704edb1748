/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LEAF_H
#define SUTRO_LEAF_H

#include "host/machine.h"

/* The time for a switch, after which the disk is reported. */
#define LEAF_LIMIT_SEC 10U

/**
 * struct leaf_result - the result of switching a leaf
 * @previous: the scheduler before
 * @wanted: the scheduler to be written, NULL: there is nothing to write
 * @max_sectors_kb: the largest request to be written with it; 0: that stays
 * @size_is_reported: it was reported before that the size stays as it is
 * @nr_requests: the least number of request slots with it; 0: as the kernel sets it
 * @slots_raised: it had fewer, and they were raised
 * @changed: it has another scheduler now
 * @error: for people, NULL when all is well
 */
struct leaf_result {
	char *previous;
	char *wanted;
	unsigned int max_sectors_kb;
	bool size_is_reported;
	unsigned int nr_requests;
	bool slots_raised;
	bool changed;
	char *error;
};

void leaf_result_done(struct leaf_result *r);

/**
 * leaf_begin() - switch @leaf to sutro, or back to the scheduler that it had
 * @use: to sutro; the former scheduler and size of requests are recorded
 * @ret: if it has @wanted, leaf_write() and leaf_end() follow
 *
 * Return: 0, also with an error in @ret, or -ENOMEM.
 */
int leaf_begin(const struct machine *m, const struct device *leaf, bool use,
	       struct leaf_result *ret);

/**
 * leaf_write() - write what @r has, which may take as long as the requests of the disk
 * @leaf: its name
 *
 * Return: 0, or -errno of the scheduler; leaf_end() reports numbers that were refused.
 */
int leaf_write(const struct roots *roots, const char *leaf,
	       struct leaf_result *r);

/**
 * leaf_end() - read the scheduler back, and complete @ret and the record
 * @err: of the write; -ETIMEDOUT: it is still under way
 *
 * Return: 0, also with an error in @ret, or -ENOMEM.
 */
int leaf_end(const struct roots *roots, struct device *leaf, bool use, int err,
	     struct leaf_result *ret);

/** leaf_is_managed() - did the daemon switch it, and is it still sutro? */
bool leaf_is_managed(const struct roots *roots, const struct device *leaf);

/**
 * leaf_report_removed() - log that a leaf in use was removed
 * @leaf: of the topology before
 * @is_replaced: another disk has its number
 */
void leaf_report_removed(const struct roots *roots, const struct device *leaf,
			 bool is_replaced);

/**
 * leaf_is_known() - was it switched or released since the boot?
 *
 * The configuration does not apply to a known leaf. A leaf is not known if the daemon ended before
 * its switch.
 */
bool leaf_is_known(const struct roots *roots, const struct device *leaf);

#endif
