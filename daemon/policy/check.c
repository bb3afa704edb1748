/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Looking at files before they are in force: no bus, no root, no devices. */

#include <stdio.h>

#include "policy/check.h"
#include "policy/policyfile.h"

/* Report how many settings a file has, without those that a reset in it removes. */
static int report(const struct policyfile *f)
{
	struct promises l = {};
	int err = 0;

	for (size_t i = 0; i < f->promises.n && !err; i++)
		err = promises_apply(&l, &f->promises.items[i], NULL);
	if (f->mask && f->kind != POLICYFILE_UNIT)
		printf("%s: hides files of this name in other folders: fine\n",
		       f->path);
	else if (f->kind == POLICYFILE_UNIT)
		printf("%s: promises: %zu: fine\n", f->path, l.n);
	else
		printf("%s: patterns: %zu, promises: %zu: fine\n", f->path,
		       match_patterns(&f->match), l.n);
	promises_done(&l);
	return err;
}

static int check_file(const char *path)
{
	struct policyfile f = { .path = strdup(path),
				.kind = policyfile_kind_of(path) };
	int err = f.path ? policyfile_read(&f, NULL) : -ENOMEM;

	if (!err)
		err = report(&f);
	for (char **e = f.errors; e && *e; e++)
		fprintf(stderr, "%s\n", *e);
	if (err == -ENOENT)
		fprintf(stderr, "%s: no such file\n", path);
	policyfile_done(&f);
	return err;
}

int check_files(char *const *paths)
{
	int bad = 0;

	for (; *paths; paths++) {
		int err = check_file(*paths);

		if (err == -ENOMEM)
			return err;
		bad += err != 0;
	}
	return bad;
}
