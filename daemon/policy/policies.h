/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_POLICIES_H
#define SUTRO_POLICIES_H

#include "host/roots.h"
#include "policy/controlfile.h"
#include "policy/policyfile.h"
#include "policy/proposal.h"

/* Units and cgroups that may have policies set at run time, in each of the two folders. */
#define POLICIES_CONTROL_MAX 4096U

/**
 * struct stated - the settings of one unit
 * @in_force: one promise for each key and path, each with its source
 * @overridden: settings of files that another file with the same key and path hides, or that a
 *	reset removed; promises_find() in @in_force has the one in force
 * @hidden: the same of those that a setting at run time hides: they are in force again when it
 *	ends, which needs no change of a file
 */
struct stated {
	struct promises in_force;
	struct promises overridden;
	struct promises hidden;
};

void stated_done(struct stated *s);

/** struct policies - the settings of all files */
struct policies;

/** policies_new() - make an empty catalogue; @roots must outlive it */
int policies_new(const struct roots *roots, struct policies **ret);
struct policies *policies_free(struct policies *p);
DEFINE_CLEANUP(struct policies *, policies_free);

/**
 * policies_load() - read all policy and control files, and those of units, again if they were read
 * @new_errors: sentences about mistakes that were not there before are added
 *
 * Of a file with mistakes the last good version stays, and all files of a folder that cannot be
 * read. A policy file whose drop-ins cannot be listed stays as it is in force, with its drop-ins.
 *
 * Return: 0, also with mistakes; -errno of a folder, after the others are read; -ENOMEM.
 */
int policies_load(struct policies *p, char ***new_errors);

/**
 * policies_propose() - the catalogue that @base would be with other files
 * @base: has the files that are not proposed, as they are in force; must outlive it
 * @l: *.policy files take the place of those with their names, drop-ins and unit files
 *	that of those with their paths; used up to the return
 * @ret_error: on -EINVAL and -EBADMSG a sentence, to be freed
 *
 * Return: 0; -EINVAL: a path that names no unit; -EBADMSG: a proposed file has mistakes;
 * -ENOMEM.
 */
int policies_propose(const struct policies *base, const struct proposals *l,
		     struct policies **ret, char **ret_error);

/** policies_named() - add the units and cgroups that files name without a glob, each once */
int policies_named(const struct policies *p, char ***names);

/** policies_controlled() - add the units and cgroups with settings made at run time, each once */
int policies_controlled(const struct policies *p, char ***names);

/** policies_each_path() - call @fn for each path of all settings */
void policies_each_path(const struct policies *p, paths_fn *fn, void *userdata);

/**
 * policies_load_unit() - read the [X-Sutro] of a unit's own files
 * @unit: its settings are mistakes if it is ROOT_SLICE
 * @fragment: FragmentPath of systemd, "" for none
 * @dropins: DropInPaths, in systemd's order
 * @new_errors: as above
 */
int policies_load_unit(struct policies *p, const char *unit,
		       const char *fragment, char *const *dropins,
		       char ***new_errors);

/** policies_load_units() - read the files of all units again, also of those that do not run */
int policies_load_units(struct policies *p, char ***new_errors);

/**
 * policies_forget_unit() - drop the state of a removed unit
 *
 * Its policies stay, and the last good versions of its files until these are removed.
 */
void policies_forget_unit(struct policies *p, const char *unit);

/** policies_errors() - all mistakes there are now, sentences are added */
int policies_errors(const struct policies *p, char ***errors);

/** policies_mistaken() - the files with mistakes; see layers_mistaken() */
int policies_mistaken(const struct policies *p, char ***replaced,
		      char ***unused);

/**
 * policies_state() - the settings of a unit or of a cgroup that is none
 * @subject: name of the unit, or path of the cgroup
 * @more: settings above all files, the strongest last (clients of the bus)
 */
int policies_state(const struct policies *p, const char *subject,
		   const struct promises *const *more, size_t n_more,
		   struct stated *ret);

/**
 * policies_write() - change the control file of a unit or cgroup, all or nothing
 * @subject: as in policies_state()
 * @ret_error: for -EINVAL and -EBADMSG a sentence, to be freed; else not touched
 *
 * It waits for the disk, so a child process of the daemon calls it; policies_take() follows. A file in
 * which nothing is left is removed.
 *
 * Return: 1; 0: the file had these values before; another -errno of the file system; or
 *
 *	-EINVAL		a setting has a mistake, or @subject is not valid
 *	-EBADMSG	the file was edited by hand and has a mistake; a write would lose it
 *	-E2BIG		too many subjects have a file
 */
int policies_write(const struct policies *p, const char *subject,
		   enum policy_lifetime lifetime,
		   const struct assignment *assignments, size_t n,
		   char **ret_error);

/**
 * policies_erase() - remove the control file of @subject, as policies_write()
 *
 * Return: 1; 0: there is none; -errno.
 */
int policies_erase(const struct policies *p, const char *subject,
		   enum policy_lifetime lifetime);

/**
 * policies_take() - read the control file of @subject, which was written or removed
 * @ret_error: for -EBADMSG a sentence, to be freed; else not touched
 *
 * Return: 0; -EBADMSG: the file cannot be read back, the last good version stays in force; -errno.
 */
int policies_take(struct policies *p, const char *subject,
		  enum policy_lifetime lifetime, char **ret_error);

#endif
