/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Looking at files before they are in force: no bus, no root, no devices. */

#include <stdio.h>

#include "policy/check.h"
#include "policy/policyfile.h"

/* The ceiling of the same requests and path as the floor @p; NULL: there is none. */
static const struct promise *find_ceiling(const struct promises *l,
					  const struct promise *p)
{
	const struct promise_info *of = promise_info(p->key);

	for (size_t i = 0; i < l->n && of->kind == PROMISE_KIND_FLOOR; i++) {
		const struct promise_info *info = promise_info(l->items[i].key);

		if (info->kind == PROMISE_KIND_CEILING &&
		    info->unit == of->unit && info->write == of->write &&
		    streq(l->items[i].path, p->path))
			return &l->items[i];
	}
	return NULL;
}

/* Report a floor that is above a ceiling of its own file: no mistake, for the daemon takes both. */
static int report_floor(const struct promises *l, const struct promise *p)
{
	const struct promise *ceiling = find_ceiling(l, p);
	_cleanup_free_ char *floor = NULL, *limit = NULL;

	if (!ceiling || p->value <= ceiling->value)
		return 0;
	floor = promise_format(p);
	limit = promise_format(ceiling);
	if (!floor || !limit)
		return -ENOMEM;
	fprintf(stderr, "%s: %s=%s cannot hold: %s=%s is less; change one\n",
		p->source, promise_info(p->key)->name, floor,
		promise_info(ceiling->key)->name, limit);
	return 0;
}

/* Report how many settings a file has, without those that a reset in it removes. */
static int report(const struct policyfile *f)
{
	struct promises l = {};
	int err = 0;

	for (size_t i = 0; i < f->promises.n && !err; i++)
		err = promises_apply(&l, &f->promises.items[i], NULL);
	for (size_t i = 0; i < l.n && !err; i++)
		err = report_floor(&l, &l.items[i]);
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
