/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "host/roots.h"
#include "host/util.h"

static int add_dirs(const char *prefix, const char *folder, char ***ret)
{
	static const char *const before[] = { "/etc", "/run", "/usr/lib" };
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(before) && !err; i++) {
		_cleanup_free_ char *dir = NULL;

		dir = asprintf_or_null("%s%s/sutro/%s", prefix, before[i],
				       folder);
		err = dir ? strv_add(ret, dir) : -ENOMEM;
	}
	return err;
}

int roots_init(struct roots *r, const char *prefix)
{
	int err;

	*r = (struct roots){
		.prefix = strdup(prefix),
		.sysfs = asprintf_or_null("%s/sys", prefix),
		.run = asprintf_or_null("%s/run/sutro", prefix),
		.costs = asprintf_or_null("%s/var/lib/sutro/costs", prefix),
		.mountinfo = asprintf_or_null("%s/proc/1/mountinfo", prefix),
		.mdstat = asprintf_or_null("%s/proc/mdstat", prefix),
		.conf = asprintf_or_null("%s/etc/sutro/sutrod.conf", prefix),
		.control =
			asprintf_or_null("%s/etc/sutro/policy.control", prefix),
		.control_run =
			asprintf_or_null("%s/run/sutro/policy.control", prefix),
	};
	if (*prefix)
		r->cgroup = asprintf_or_null("%s/sys/fs/cgroup", prefix);
	err = add_dirs(prefix, "sutrod.conf.d", &r->conf_dirs)
		      ?: add_dirs(prefix, "policy.d", &r->policy_dirs);
	if (err || !r->prefix || !r->sysfs || !r->run || !r->costs ||
	    !r->mountinfo || !r->mdstat || !r->conf || !r->control ||
	    !r->control_run || (*prefix && !r->cgroup)) {
		roots_done(r);
		return -ENOMEM;
	}
	/* A file of a fake machine reports no changes. */
	err = mounts_new(r->mountinfo, roots_are_real(r), &r->mounts);
	if (err)
		roots_done(r);
	return err;
}

void roots_done(struct roots *r)
{
	free(r->prefix);
	free(r->sysfs);
	free(r->cgroup);
	free(r->run);
	free(r->costs);
	free(r->mountinfo);
	mounts_free(r->mounts);
	free(r->mdstat);
	free(r->conf);
	strv_free(r->conf_dirs);
	strv_free(r->policy_dirs);
	free(r->control);
	free(r->control_run);
	*r = (struct roots){};
}

bool roots_are_real(const struct roots *r)
{
	return r->prefix[0] == '\0';
}
