/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Class=rt, be or idle: the default line of io.sutro.class, which counts for all sutro leaves. The
 * file exists while the module sutro is loaded; bfq and iocost have no classes of cgroups.
 */

#include "control/class.h"
#include "policy/policy.h"

int class_apply(struct cgfiles *files, struct cgroup *c)
{
	const struct promise *p =
		promises_find(&c->policy->promises, PROMISE_CLASS, NULL);
	struct cgchange change = { .devno = CGFILE_DEFAULT };

	if (p && cgvalue_parse(CGFILE_SUTRO_CLASS, promise_class_name(p->value),
			       &change.value) == -ENOMEM)
		return -ENOMEM;
	return cgfile_set(files, c, CGFILE_SUTRO_CLASS, &change, p ? 1 : 0);
}
