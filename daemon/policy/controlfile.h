/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CONTROLFILE_H
#define SUTRO_CONTROLFILE_H

#include "host/roots.h"
#include "policy/assignment.h"

/**
 * enum policy_lifetime - how long a policy stays that is set at run time
 * @POLICY_PERSISTENT: in /etc
 * @POLICY_RUNTIME: in /run, until the next boot
 */
enum policy_lifetime {
	POLICY_PERSISTENT,
	POLICY_RUNTIME,
	POLICY_LIFETIMES,
};

/** controlfile_dir() - the folder of the control files with this lifetime */
const char *controlfile_dir(const struct roots *roots,
			    enum policy_lifetime lifetime);

/**
 * controlfile_find() - the control file of a unit or cgroup
 * @ret_name: its name without ".policy", to be freed
 * @ret_path: to be freed; the file need not exist
 *
 * Return: 0; -EINVAL: @subject cannot have one; -ENOMEM.
 */
int controlfile_find(const struct roots *roots, const char *subject,
		     enum policy_lifetime lifetime, char **ret_name,
		     char **ret_path);

/**
 * controlfile_write() - change a control file; see policies_write()
 * @may_create: false: -E2BIG unless the file has settings already
 */
int controlfile_write(const struct roots *roots, const char *subject,
		      enum policy_lifetime lifetime, bool may_create,
		      const struct assignment *assignments, size_t n,
		      char **ret_error);

/** controlfile_erase() - see policies_erase() */
int controlfile_erase(const struct roots *roots, const char *subject,
		      enum policy_lifetime lifetime);

#endif
