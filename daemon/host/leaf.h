/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LEAF_H
#define SUTRO_LEAF_H

#include "host/topology.h"

/**
 * struct leaf_result - the result of switching a leaf
 * @previous: the scheduler before
 * @changed: it has another scheduler now
 * @error: for people, NULL when all is well
 */
struct leaf_result {
	char *previous;
	bool changed;
	char *error;
};

void leaf_result_done(struct leaf_result *r);

/**
 * leaf_use() - switch @leaf to sutro and remember what it had
 * leaf_release() - give it back to what it had, if leaf_use() switched it
 *
 * Return: 0, also when @ret->error says why it did not work, or -ENOMEM.
 */
int leaf_use(const struct roots *roots, struct device *leaf, bool dry_run,
	     struct leaf_result *ret);
int leaf_release(const struct roots *roots, struct device *leaf, bool dry_run,
		 struct leaf_result *ret);

/** leaf_is_managed() - was it switched by us, and is it still sutro? */
bool leaf_is_managed(const struct roots *roots, const struct device *leaf);

/** leaves_configure() - switch the leaves that @use, [Leaves] Use=, names */
int leaves_configure(const struct roots *roots, char *const *use,
		     const struct topology *t, bool dry_run);

#endif
