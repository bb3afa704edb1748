/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CEILING_H
#define SUTRO_CEILING_H

#include "host/cgroup.h"
#include "host/record.h"

/**
 * struct ceilings - writes ceilings of promises to io.max
 * @record: what the lines said before, "MAJ:MIN CGROUP" -> "rbps=max ..."
 */
struct ceilings {
	struct record record;
	const struct topology *topology;
	bool dry_run;
};

int ceilings_init(struct ceilings *s, const struct roots *roots);
void ceilings_done(struct ceilings *s);

/**
 * ceilings_apply() - make io.max of @c say what its promises say, and no more
 *
 * Return: 0 or -ENOMEM; what else fails is logged.
 */
int ceilings_apply(struct ceilings *s, struct cgroup *c);

/** ceilings_cgroup_gone() - @c and its lines are no more */
void ceilings_cgroup_gone(struct ceilings *s, const struct cgroup *c);

/** ceilings_restore() - give @top and all below the lines back they had before */
int ceilings_restore(struct ceilings *s, struct cgroup *top);

#endif
