/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "roots.h"
#include "util.h"

int roots_init(struct roots *r, const char *prefix)
{
	static const char *const dirs[] = {
		"/etc/sutro/sutrod.conf.d",
		"/run/sutro/sutrod.conf.d",
		"/usr/lib/sutro/sutrod.conf.d",
	};
	int err = 0;

	*r = (struct roots){
		.prefix = strdup(prefix),
		.sysfs = asprintf_or_null("%s/sys", prefix),
		.run = asprintf_or_null("%s/run/sutro", prefix),
		.mountinfo = asprintf_or_null("%s/proc/self/mountinfo", prefix),
		.conf = asprintf_or_null("%s/etc/sutro/sutrod.conf", prefix),
	};
	if (*prefix)
		r->cgroup = asprintf_or_null("%s/sys/fs/cgroup", prefix);
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && !err; i++) {
		_cleanup_free_ char *dir = NULL;

		dir = asprintf_or_null("%s%s", prefix, dirs[i]);
		err = dir ? strv_add(&r->conf_dirs, dir) : -ENOMEM;
	}
	if (err || !r->prefix || !r->sysfs || !r->run || !r->mountinfo ||
	    !r->conf || (*prefix && !r->cgroup)) {
		roots_done(r);
		return -ENOMEM;
	}
	return 0;
}

void roots_done(struct roots *r)
{
	free(r->prefix);
	free(r->sysfs);
	free(r->cgroup);
	free(r->run);
	free(r->mountinfo);
	free(r->conf);
	strv_free(r->conf_dirs);
	*r = (struct roots){};
}

bool roots_are_real(const struct roots *r)
{
	return r->prefix[0] == '\0';
}
