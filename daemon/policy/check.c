/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Looking at files before they are in force: no bus, no root, no devices.
 *
 * The name and the folder of a file decide what it is. A file of another name is refused: read as a
 * unit file it would have no mistake, as only its section [X-Sutro] would count.
 */

#include <stdio.h>
#include <unistd.h>

#include "policy/check.h"
#include "policy/conf.h"
#include "policy/policyfile.h"

/* The smallest request of most programs. */
#define PAGE_BYTES 4096U

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

/* Report a rate of a few bytes, whose suffix may be missing: no mistake, either. */
static int report_rate(const struct promise *p)
{
	const struct promise_info *info = promise_info(p->key);
	_cleanup_free_ char *value = NULL;

	if (info->unit != PROMISE_UNIT_BYTES || p->part ||
	    p->value >= PAGE_BYTES)
		return 0;
	value = promise_format(p);
	if (!value)
		return -ENOMEM;
	fprintf(stderr,
		"%s: %s=%s is less than a page of %u bytes per second; rates "
		"have the suffixes K, M, G and T, such as 200M\n",
		p->source, info->name, value, PAGE_BYTES);
	return 0;
}

static int report_replaced(const struct promise *old, const struct promise *by)
{
	_cleanup_free_ char *value = promise_format(old);
	_cleanup_free_ char *later = promise_format(by);
	const char *key = promise_info(by->key)->name;

	if (!value || !later)
		return -ENOMEM;
	fprintf(stderr, "%s: %s=%s has no effect: %s=%s follows; remove one\n",
		old->source, key, value, key, later);
	return 0;
}

/* Apply the next assignment of a file, and report one that it replaces: that is no mistake. */
static int apply(struct promises *l, const struct promise *next)
{
	struct promises gone = {};
	int err = promises_apply(l, next, &gone);

	/* A reset takes back what stands before it on purpose. */
	for (size_t i = 0; i < gone.n && !err && !next->reset; i++)
		err = report_replaced(&gone.items[i], next);
	promises_done(&gone);
	return err;
}

/* Report how many settings a file has, without those that a reset in it removes. */
static int report(const struct policyfile *f)
{
	struct promises l = {};
	int err = 0;

	for (size_t i = 0; i < f->promises.n && !err; i++)
		err = apply(&l, &f->promises.items[i]);
	for (size_t i = 0; i < l.n && !err; i++)
		err = report_floor(&l, &l.items[i]) ?: report_rate(&l.items[i]);
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

static void print_errors(char **errors)
{
	for (; errors && *errors; errors++)
		fprintf(stderr, "%s\n", *errors);
}

static int check_policyfile(const char *path, enum policyfile_kind kind)
{
	struct policyfile f = { .path = strdup(path), .kind = kind };
	int err = f.path ? policyfile_read(&f, NULL) : -ENOMEM;

	if (!err)
		err = report(&f);
	print_errors(f.errors);
	policyfile_done(&f);
	return err;
}

static int check_conf(const char *path)
{
	_cleanup_strv_ char **errors = NULL;
	int err = conf_check(path, &errors);

	print_errors(errors);
	if (!err && errors)
		return -EBADMSG;
	if (!err)
		printf("%s: fine\n", path);
	return err;
}

/* ---- kinds ---- */

enum kind {
	KIND_POLICY, /* a policy file, a unit file, or a drop-in of one */
	KIND_CONF, /* sutrod.conf, or a drop-in of it */
	KIND_OTHER,
};

static const char kinds_allowed[] =
	"NAME.policy, NAME.policy.d/NAME.conf, a unit file such as "
	"NAME.service, NAME.slice or NAME.scope, a drop-in such as "
	"NAME.service.d/NAME.conf, sutrod.conf or sutrod.conf.d/NAME.conf";

/* The kind of a file NAME.conf in a folder with this path. */
static enum kind kind_of_dropin(const char *folder)
{
	const char *slash = strrchr(folder, '/');
	const char *name = slash ? slash + 1 : folder;
	_cleanup_free_ char *unit = NULL;

	if (streq(name, "sutrod.conf.d"))
		return KIND_CONF;
	if (!endswith(name, ".d"))
		return KIND_OTHER;
	/* The folder of all services is service.d. */
	unit = asprintf_or_null("x.%.*s", (int)(strlen(name) - strlen(".d")),
				name);
	return unit && unit_file_is_valid(unit) ? KIND_POLICY : KIND_OTHER;
}

static enum kind kind_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	_cleanup_free_ char *folder = strndup(path, slash ? slash - path : 0);

	if (policyfile_kind_of(path) != POLICYFILE_UNIT ||
	    unit_file_is_valid(name))
		return KIND_POLICY;
	if (streq(name, "sutrod.conf"))
		return KIND_CONF;
	return folder && endswith(name, ".conf") ? kind_of_dropin(folder)
						 : KIND_OTHER;
}

/* The path of a file with the real one of its folder; to be freed, NULL: no memory. */
static char *in_real_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder = NULL, *real = NULL;

	folder = slash ? strndup(path, slash + 1 - path) : strdup(".");
	if (!folder)
		return NULL;
	real = realpath(folder, NULL);
	return real ? asprintf_or_null("%s/%s", real, slash ? slash + 1 : path)
		    : strdup(path);
}

static int check_file(const char *path)
{
	_cleanup_free_ char *full = NULL;
	const char *known = path;
	enum kind kind;
	int err;

	/* "x.conf" and "./x.conf" do not have the name of the folder. */
	if (kind_of(path) == KIND_OTHER)
		known = full = in_real_folder(path);
	if (!known)
		return -ENOMEM;
	kind = kind_of(known);
	if (kind == KIND_OTHER && access(path, F_OK) == 0) {
		fprintf(stderr,
			"%s: no file with settings has this name: allowed is %s\n",
			path, kinds_allowed);
		return -EBADMSG;
	}
	if (kind == KIND_CONF)
		err = check_conf(path);
	else
		err = check_policyfile(path, policyfile_kind_of(known));
	if (err == -ENOENT)
		fprintf(stderr, "%s: no such file\n", path);
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
