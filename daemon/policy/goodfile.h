/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_GOODFILE_H
#define SUTRO_GOODFILE_H

#include "policy/policyfile.h"

/**
 * struct goodfiles - files of units that have settings, as they were when they last had no mistake
 * @items: sorted by path
 */
struct goodfiles {
	struct policyfile *items;
	size_t n;
};

/** goodfiles_take() - copy the last good version of the file at @f->path to @f, if there is one */
int goodfiles_take(const struct goodfiles *l, struct policyfile *f);

/** goodfiles_keep() - keep the settings of @f, which was read */
int goodfiles_keep(struct goodfiles *l, const struct policyfile *f);

/** goodfiles_drop_removed() - drop the files that do not exist any more */
void goodfiles_drop_removed(struct goodfiles *l);

void goodfiles_done(struct goodfiles *l);

#endif
