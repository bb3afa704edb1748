/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Control files: settings of one unit or cgroup that a user made at run time, in
 * policy.control/NAME.policy below /etc/sutro or /run/sutro.
 */

#include <limits.h>
#include <unistd.h>

#include "host/store.h"
#include "policy/controlfile.h"

const char *controlfile_dir(const struct roots *roots,
			    enum policy_lifetime lifetime)
{
	return lifetime == POLICY_PERSISTENT ? roots->control
					     : roots->control_run;
}

int controlfile_find(const struct roots *roots, const char *subject,
		     enum policy_lifetime lifetime, char **ret_name,
		     char **ret_path)
{
	_cleanup_free_ char *name = NULL;

	if (!unit_name_is_valid(subject) && !cgroup_path_is_valid(subject))
		return -EINVAL;
	name = control_name(subject);
	if (!name)
		return -ENOMEM;
	if (strlen(name) + strlen(".policy") > NAME_MAX)
		return -EINVAL;
	*ret_path = asprintf_or_null("%s/%s.policy",
				     controlfile_dir(roots, lifetime), name);
	if (!*ret_path)
		return -ENOMEM;
	*ret_name = TAKE_PTR(name);
	return 0;
}

/* The present settings of the control file, which may have been edited by hand. */
static int read_settings(const char *path, struct promises *ret,
			 char **ret_error)
{
	struct policyfile f = { .path = strdup(path),
				.kind = POLICYFILE_CONTROL };
	int err = f.path ? policyfile_read(&f, NULL) : -ENOMEM;

	if (err == -ENOENT)
		err = 0;
	if (err == -EBADMSG) {
		*ret_error = asprintf_or_null("%s; correct the file or reset "
					      "the policy",
					      f.errors[0]);
		err = *ret_error ? err : -ENOMEM;
	}
	for (size_t i = 0; i < f.promises.n && !err; i++)
		err = promises_apply(ret, &f.promises.items[i], NULL);
	policyfile_done(&f);
	return err;
}

/* A file without settings is removed. */
static int replace(const char *subject, const char *file, const char *dir,
		   bool may_create, const struct promises *l, char **ret_error)
{
	_cleanup_free_ char *text = NULL;
	int r;

	if (!l->n) {
		r = store_remove(dir, file);
		return r < 0 ? r : 0;
	}
	if (!may_create)
		return -E2BIG;
	text = policyfile_format(subject, l);
	if (!text)
		return -ENOMEM;
	/* A file that is too large would not be read again. */
	if (strlen(text) > POLICYFILE_BYTES_MAX) {
		*ret_error = asprintf_or_null(
			"the file of all its settings would have more than "
			"%u KiB; shorten paths, or reset settings",
			POLICYFILE_BYTES_MAX / 1024);
		return *ret_error ? -EINVAL : -ENOMEM;
	}
	return store_put(dir, file, text);
}

int controlfile_write(const struct roots *roots, const char *subject,
		      enum policy_lifetime lifetime, bool may_create,
		      const struct assignment *assignments, size_t n,
		      char **ret_error)
{
	_cleanup_free_ char *name = NULL, *path = NULL;
	_cleanup_close_ int lock = -1;
	struct promises l = {};
	int err = controlfile_find(roots, subject, lifetime, &name, &path);
	bool is_other = false;

	if (err == -EINVAL)
		return refusal(ret_error, err, subject,
			       "the name of a service, slice, scope, socket, "
			       "mount or swap unit, at most 248 bytes, or the "
			       "path of a cgroup, at most 241 bytes as "
			       "systemd-escape --path prints it");
	if (err)
		return err;
	lock = store_lock(controlfile_dir(roots, lifetime));
	err = lock < 0 ? lock : read_settings(path, &l, ret_error);
	if (!err)
		err = promises_assign(&l, assignments, n, "", ret_error);
	is_other = err > 0;
	if (err >= 0)
		err = replace(subject, strrchr(path, '/') + 1,
			      controlfile_dir(roots, lifetime), may_create, &l,
			      ret_error);
	promises_done(&l);
	return err ?: is_other;
}

int controlfile_erase(const struct roots *roots, const char *subject,
		      enum policy_lifetime lifetime)
{
	const char *dir = controlfile_dir(roots, lifetime);
	_cleanup_close_ int lock = -1;
	_cleanup_free_ char *name = NULL, *path = NULL;
	int err = controlfile_find(roots, subject, lifetime, &name, &path);

	if (err)
		return err;
	lock = store_lock(dir);
	return lock < 0 ? lock : store_remove(dir, strrchr(path, '/') + 1);
}
