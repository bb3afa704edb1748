/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CGRECORD_H
#define SUTRO_CGRECORD_H

#include "host/cgfile.h"

/* Between cgfile.c and cgrecord.c. */

/** cgfile_is_gone() - a cgroup or disk that is gone is normal */
static inline bool cgfile_is_gone(int err)
{
	return err == -ENOENT || err == -ENODEV;
}

static inline const char *cgfile_name(enum cgfile file)
{
	return cgformat(file)->name;
}

/** cgrecord_is_about() - is @line of a record file about @c, and on which device? */
bool cgrecord_is_about(const char *line, const struct cgroup *c, dev_t *ret);

/** cgrecord_exists() - has a line of @file of @c a record? */
bool cgrecord_exists(const struct cgfiles *files, const struct cgroup *c,
		     enum cgfile file);

/** cgrecord_of_others() - the line before ours for @devno, with changes of others since */
struct cgvalue cgrecord_of_others(const struct cgfiles *files,
				  const struct cgroup *c,
				  const struct cglines *present, dev_t devno);

/**
 * cgrecord_save() - record what is restored when the line of @ch is withdrawn
 * @ret: the record before, NULL: there was none
 */
int cgrecord_save(struct cgfiles *files, const struct cgroup *c,
		  const struct cglines *before, const struct cgchange *ch,
		  char **ret);

/**
 * cgrecord_take_back() - the line was not written: the record is what it was before
 * @was: from cgrecord_save()
 */
void cgrecord_take_back(struct cgfiles *files, const struct cgroup *c,
			enum cgfile file, dev_t devno, const char *was);

/** cgrecord_drop_restored() - a line with its former value belongs to the daemon no more */
void cgrecord_drop_restored(struct cgfiles *files, const struct cgroup *c,
			    const struct cglines *before,
			    const struct cgchange *ch);

#endif
