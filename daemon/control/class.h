/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CLASS_H
#define SUTRO_CLASS_H

#include "host/cgfile.h"

/**
 * class_apply() - write Class= of the policy of @c to io.sutro.class; without Class=
 *	restore the class that was there before
 *
 * Return: 0 or -ENOMEM; another failure is logged.
 */
int class_apply(struct cgfiles *files, struct cgroup *c);

#endif
