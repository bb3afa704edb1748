/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LEAF_H
#define SUTRO_LEAF_H

#include "host/topology.h"

/* The time for a switch, after which the disk is reported. */
#define LEAF_LIMIT_SEC 10U

/**
 * struct leaf_result - the result of switching a leaf
 * @previous: the scheduler before
 * @wanted: the scheduler to be written, NULL: there is nothing to write
 * @changed: it has another scheduler now
 * @error: for people, NULL when all is well
 */
struct leaf_result {
	char *previous;
	char *wanted;
	bool changed;
	char *error;
};

void leaf_result_done(struct leaf_result *r);

/**
 * leaf_begin() - switch @leaf to sutro, or back to the scheduler that it had
 * @use: to sutro; the former scheduler is recorded
 * @ret: if it has @wanted, leaf_write_scheduler() and leaf_end() follow
 *
 * Return: 0, also with an error in @ret, or -ENOMEM.
 */
int leaf_begin(const struct roots *roots, const struct device *leaf, bool use,
	       bool dry_run, struct leaf_result *ret);

/**
 * leaf_write_scheduler() - write the scheduler, which may take as long as the requests of the disk
 * @leaf: its name
 */
int leaf_write_scheduler(const struct roots *roots, const char *leaf,
			 const char *scheduler);

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
 * leaf_is_known() - was it switched or released since the boot?
 *
 * The configuration does not apply to a known leaf.
 */
bool leaf_is_known(const struct roots *roots, const struct device *leaf);

#endif
