/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CLASS_H
#define SUTRO_CLASS_H

#include "host/cgroup.h"
#include "host/record.h"

/**
 * struct classes - writes Class= to io.sutro.class
 * @record: what the default line said before, by cgroup
 */
struct classes {
	struct record record;
	bool dry_run;
};

int classes_init(struct classes *s, const struct roots *roots);
void classes_done(struct classes *s);

/**
 * classes_apply() - make io.sutro.class of @c say what its policy says, if anything
 *
 * Return: 0 or -ENOMEM; what else fails is logged.
 */
int classes_apply(struct classes *s, struct cgroup *c);

/** classes_cgroup_gone() - @c and its file are no more */
void classes_cgroup_gone(struct classes *s, const struct cgroup *c);

/** classes_restore() - give @top and all below the class back they had before */
int classes_restore(struct classes *s, struct cgroup *top);

#endif
