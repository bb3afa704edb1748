/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ROOTS_H
#define SUTRO_ROOTS_H

#include "host/mounts.h"

/**
 * struct roots - where the daemon finds the machine
 * @prefix: "" for this machine; a directory that holds a fake one in tests
 * @sysfs: PREFIX/sys
 * @cgroup: PREFIX/sys/fs/cgroup, or NULL: libcgroup finds the mount
 * @run: PREFIX/run/sutro, state that survives a restart of the daemon
 * @costs: PREFIX/var/lib/sutro/costs, measured costs of requests, which survive a boot
 * @mountinfo: PREFIX/proc/1/mountinfo
 * @mounts: read from @mountinfo
 * @mdstat: PREFIX/proc/mdstat
 * @conf: PREFIX/etc/sutro/sutrod.conf
 * @conf_dirs: directories of drop-ins, the first wins where names are equal
 * @policy_dirs: directories of *.policy files, the first wins
 * @control: PREFIX/etc/sutro/policy.control, policies set over the bus, persistent
 * @control_run: PREFIX/run/sutro/policy.control, until the next boot
 *
 * Nothing else in the daemon names an absolute path.
 */
struct roots {
	char *prefix;
	char *sysfs;
	char *cgroup;
	char *run;
	char *costs;
	char *mountinfo;
	struct mounts *mounts;
	char *mdstat;
	char *conf;
	char **conf_dirs;
	char **policy_dirs;
	char *control;
	char *control_run;
};

/**
 * roots_init() - fill @r for a machine below @prefix
 * @prefix: "" for the real one
 */
int roots_init(struct roots *r, const char *prefix);
void roots_done(struct roots *r);

/** roots_are_real() - is it this machine, with udev, device nodes and mounts? */
bool roots_are_real(const struct roots *r);

#endif
