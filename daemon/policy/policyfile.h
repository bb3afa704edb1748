/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_POLICYFILE_H
#define SUTRO_POLICYFILE_H

#include "policy/match.h"
#include "policy/promise.h"

/* Most settings of one file: a control file of a user must not grow without end. */
#define POLICYFILE_STATEMENTS_MAX 256U

/* Unit files have some KiB. systemd itself cuts a line at this size. */
#define POLICYFILE_BYTES_MAX (1024U * 1024)

/**
 * enum policyfile_kind - the sections that a file may have
 * @POLICYFILE_POLICY: *.policy: [Match], which it must have, and [X-Sutro]
 * @POLICYFILE_DROPIN: *.policy.d/\*.conf: the same, [Match] may be missing
 * @POLICYFILE_CONTROL: policy.control/NAME.policy, about the unit or cgroup in its name only,
 *	see control_name()
 * @POLICYFILE_UNIT: a unit file or its drop-in: only [X-Sutro] is looked at
 */
enum policyfile_kind {
	POLICYFILE_POLICY,
	POLICYFILE_DROPIN,
	POLICYFILE_CONTROL,
	POLICYFILE_UNIT,
};

/** policyfile_kind_of() - the kind of a file, by its name and that of its folder */
enum policyfile_kind policyfile_kind_of(const char *path);

/**
 * struct policyfile - one file, as it was when it last had no mistake
 * @match: values of Unit= and Cgroup=
 * @promises: assignments in their order, with resets
 * @given: a text that is taken for the file's; NULL: the file is read
 * @frozen: it is not read: its content is a copy of that in force
 * @mask: it is empty or a link to /dev/null, and hides others of its name
 * @good: it was ever read without a mistake
 * @errors: the mistakes it has now, sentences; then the rest is from before
 */
struct policyfile {
	char *path;
	enum policyfile_kind kind;
	char *given;
	bool frozen;
	struct match match;
	struct promises promises;
	bool mask;
	bool good;
	char **errors;
};

/**
 * policyfile_read() - read the file at @f->path
 * @new_errors: mistakes that @f->errors did not have are added; may be NULL
 *
 * A file with a mistake is not used: only @f->errors changes.
 *
 * Return: 0; -EBADMSG: it has mistakes; -ENOENT: it is not there (any more), no
 * mistake; -ENOMEM.
 */
int policyfile_read(struct policyfile *f, char ***new_errors);

/** policyfile_parse() - the same for a text, which is changed; for tests */
int policyfile_parse(struct policyfile *f, char *text, char ***new_errors);

/** policyfile_copy() - set the content and the mistakes of @f to those of @from */
int policyfile_copy(struct policyfile *f, const struct policyfile *from);

/** policyfile_clear() - remove all settings */
void policyfile_clear(struct policyfile *f);

void policyfile_done(struct policyfile *f);

/**
 * policyfile_format() - the text of a control file: @promises for a unit or a cgroup path
 *
 * To be freed; NULL: no memory.
 */
char *policyfile_format(const char *subject, const struct promises *promises);

#endif
