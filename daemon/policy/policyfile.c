/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One file that states policies: *.policy, a drop-in of one, or a unit file.
 *
 *	[Match]
 *	Unit=postgresql.service kubepods-*.slice
 *	[X-Sutro]
 *	ReadBandwidthMin=/dev/vg/db 200M
 *
 * 1. A file is used whole or not at all. A mistake is a sentence: file, line, the
 *    text, the allowed values. The first MISTAKES_MAX are named: a file of another
 *    format would have thousands.
 * 2. Assignments stay in their order, resets among them, because drop-ins go on
 *    where the file ends: policies.c replays them.
 * 3. In unit files only [X-Sutro] is read. systemd reports mistakes in the rest.
 *
 * Files belong to root, but their content may come from anywhere: sizes are bounded, only
 * regular files are read, and messages show their content as plain text.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "policy/line.h"
#include "policy/policyfile.h"

#define BLANKS " \t"

#define MISTAKES_MAX 20U

/* Bytes of a wrong text that a message shows: enough to find it. */
#define TEXT_MAX_BYTES 160U

#define SECTION "X-Sutro"

static const char too_many[] = "at most 256 assignments and names in one file";

/* ---- mistakes ---- */

/**
 * struct parser - a file being read
 * @file: its settings; thrown away if there is a mistake
 * @errors: mistakes up to now
 */
struct parser {
	struct policyfile file;
	char **errors;
};

static int complain(struct parser *p, unsigned int line, const char *text,
		    const char *allowed)
{
	_cleanup_(text_freep) struct text t = {};
	int err;

	err = text_add_plain(&t, p->file.path, PATH_MAX);
	if (!err)
		err = line ? text_add(&t, ":%u: \"", line)
			   : text_add(&t, ": \"");
	if (!err)
		err = text_add_plain(&t, text, TEXT_MAX_BYTES);
	if (!err)
		err = text_add(&t, "\": %s", allowed);
	return err ?: strv_add(&p->errors, t.p);
}

/* ---- lines ---- */

static size_t n_statements(const struct policyfile *f)
{
	return f->promises.n + match_length(&f->match);
}

/* Is "policy.control/db.service.policy" named after "db.service"? */
static int is_named_after(const char *path, const char *subject)
{
	_cleanup_free_ char *name = control_name(subject);
	const char *slash = strrchr(path, '/'), *rest;

	if (!name)
		return -ENOMEM;
	rest = startswith(slash ? slash + 1 : path, name);
	return rest && streq(rest, ".policy");
}

/* Such a line would never apply: the cgroup of a unit has the policies of the unit's name only. */
static int complain_of_unit(struct parser *p, const struct line *l,
			    const char *text, const char *unit)
{
	_cleanup_free_ char *allowed = NULL;

	allowed = asprintf_or_null("cgroups that are no units; this is the "
				   "cgroup of a unit, so write Unit=%s",
				   unit);
	return allowed ? complain(p, l->number, text, allowed) : -ENOMEM;
}

/* Add one word of Unit= or Cgroup=. */
static int on_pattern(struct parser *p, const struct line *l, const char *text,
		      const char *word)
{
	const char *mistake = match_mistake(l->key, word);
	const char *unit = NULL;
	int named = 1;

	if (mistake)
		return complain(p, l->number, text, mistake);
	/* The path of a control file was checked against the cgroups that were there. */
	if (streq(l->key, "Cgroup") && p->file.kind != POLICYFILE_CONTROL)
		unit = match_unit_of(word);
	if (unit)
		return complain_of_unit(p, l, text, unit);
	if (p->file.kind == POLICYFILE_CONTROL)
		named = is_named_after(p->file.path, word);
	if (named < 0)
		return named;
	if (!named)
		return complain(
			p, l->number, text,
			"the unit or cgroup that the file is named after");
	if (n_statements(&p->file) >= POLICYFILE_STATEMENTS_MAX)
		return complain(p, l->number, text, too_many);
	return strv_add(match_list(&p->file.match, l->key), word);
}

static int on_match(struct parser *p, const struct line *l, const char *text)
{
	char ***list = match_list(&p->file.match, l->key);
	_cleanup_free_ char *copy = strdup(l->value);
	unsigned int errors = strv_length(p->errors);
	char *save = NULL;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	if (!list)
		return complain(p, l->number, text, "[Match] Unit= or Cgroup=");
	if (!*l->value)
		return strv_add(list, "");
	/* Report one mistake for a line. */
	for (char *word = strtok_r(copy, BLANKS, &save);
	     word && !err && strv_length(p->errors) == errors;
	     word = strtok_r(NULL, BLANKS, &save))
		err = on_pattern(p, l, text, word);
	return err;
}

static int unknown_key(struct parser *p, const struct line *l, const char *text)
{
	_cleanup_(text_freep) struct text names = {};
	int err = 0;

	for (size_t i = 0; i < PROMISE_KEYS && !err; i++)
		err = text_add(&names, "%s%s=", i ? ", " : "",
			       promise_info(i)->name);
	return err ?: complain(p, l->number, text, names.p);
}

/* Is it a file of the root of the hierarchy, "-.slice" or a drop-in of it? */
static bool is_of_root(const struct policyfile *f)
{
	return f->kind == POLICYFILE_UNIT &&
	       (endswith(f->path, "/" ROOT_SLICE) ||
		strstr(f->path, "/" ROOT_SLICE ".d/"));
}

static int on_promise(struct parser *p, const struct line *l, const char *text)
{
	_cleanup_free_ char *source = NULL;
	const char *allowed = NULL;
	struct promise promise;
	enum promise_key key;
	struct text t = {};
	int err;

	if (is_of_root(&p->file))
		return complain(p, l->number, text,
				"in a file of a slice below the root, which "
				"has no settings, such as system.slice");
	if (promise_key_from_name(l->key, &key) < 0)
		return unknown_key(p, l, text);
	if (n_statements(&p->file) >= POLICYFILE_STATEMENTS_MAX)
		return complain(p, l->number, text, too_many);
	err = text_add_plain(&t, p->file.path, PATH_MAX)
		      ?: text_add(&t, ":%u", l->number);
	source = t.p;
	if (!err)
		err = promise_parse(key, l->value, source, &promise, &allowed);
	if (err == -EINVAL)
		return complain(p, l->number, text, allowed);
	if (err)
		return err;
	err = promises_add(&p->file.promises, &promise);
	promise_done(&promise);
	return err;
}

static int on_assignment(struct parser *p, const struct line *l)
{
	_cleanup_free_ char *text = NULL;

	text = asprintf_or_null("[%s] %s=%s", l->section ?: "", l->key,
				l->value);
	if (!text)
		return -ENOMEM;
	if (l->section && streq(l->section, SECTION))
		return on_promise(p, l, text);
	if (p->file.kind == POLICYFILE_UNIT)
		return 0;
	if (l->section && streq(l->section, "Match"))
		return on_match(p, l, text);
	/* For a wrong section, report its name only. */
	return l->section ? 0
			  : complain(p, l->number, text + strlen("[] "),
				     "first a section, [Match] or [X-Sutro]");
}

static int on_line(struct parser *p, const struct line *l)
{
	bool unit = p->file.kind == POLICYFILE_UNIT;

	switch (l->kind) {
	case LINE_ASSIGNMENT:
		return on_assignment(p, l);
	case LINE_SECTION:
		if (unit || streq(l->section, SECTION) ||
		    streq(l->section, "Match"))
			return 0;
		return complain(p, l->number, l->section,
				"[Match] or [X-Sutro]");
	case LINE_OTHER:
		if (unit && !(l->section && streq(l->section, SECTION)))
			return 0;
		return complain(p, l->number, l->text,
				"a [Section], Key=value, or a comment that "
				"begins with # or ;");
	}
	return 0;
}

static int parse(struct parser *p, char *text)
{
	struct line_reader reader;
	struct line l;
	int err = 0;

	line_reader_init(&reader, text);
	while (!err && strv_length(p->errors) < MISTAKES_MAX &&
	       line_next(&reader, &l))
		err = on_line(p, &l);
	if (!err && !p->errors && !p->file.mask &&
	    (p->file.kind == POLICYFILE_POLICY ||
	     p->file.kind == POLICYFILE_CONTROL) &&
	    !match_patterns(&p->file.match))
		err = complain(p, 0, "[Match] Unit=",
			       "is missing: " MATCH_UNITS_ALLOWED
			       "; or Cgroup=: " MATCH_CGROUPS_ALLOWED);
	return err;
}

/* ---- files ---- */

/* A whole file, or a mistake of it; @ret is NULL for a mistake and a mask. */
static int read_text(struct parser *p, int fd, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t length = 0;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return complain(p, 0, strerror(errno), "a readable file");
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
		p->file.mask = true;
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return complain(p, 0, "no regular file",
				"a regular file, or a link to one or to "
				"/dev/null");
	text = malloc(POLICYFILE_BYTES_MAX + 2);
	if (!text)
		return -ENOMEM;
	do {
		n = read(fd, text + length, POLICYFILE_BYTES_MAX + 1 - length);
		if (n < 0 && errno != EINTR)
			return complain(p, 0, strerror(errno),
					"a readable file");
		length += n > 0 ? n : 0;
	} while (n && length <= POLICYFILE_BYTES_MAX);
	text[length] = '\0';
	if (length > POLICYFILE_BYTES_MAX)
		return complain(p, 0, "too large", "at most 1 MiB");
	if (strlen(text) != length)
		return complain(p, 0, "zero byte", "text");
	p->file.mask = !length;
	*ret = TAKE_PTR(text);
	return 0;
}

static int take_given(struct parser *p, const char *given, char **ret)
{
	if (strlen(given) > POLICYFILE_BYTES_MAX)
		return complain(p, 0, "too large", "at most 1 MiB");
	p->file.mask = !*given;
	*ret = strdup(given);
	return *ret ? 0 : -ENOMEM;
}

/* Either the new content or the mistakes become those of @f. */
static int finish(struct policyfile *f, struct parser *p, int err,
		  char ***new_errors)
{
	bool bad = p->errors;

	for (char **e = p->errors; e && *e && !err && new_errors; e++)
		if (!strv_contains(f->errors, *e))
			err = strv_add(new_errors, *e);
	if (!err) {
		strv_free(f->errors);
		f->errors = TAKE_PTR(p->errors);
	}
	if (!err && !bad) {
		match_done(&f->match);
		promises_done(&f->promises);
		f->match = p->file.match;
		p->file.match = (struct match){};
		f->promises = p->file.promises;
		p->file.promises = (struct promises){};
		f->mask = p->file.mask;
		f->good = true;
	}
	strv_free(p->errors);
	match_done(&p->file.match);
	promises_done(&p->file.promises);
	return err ?: bad ? -EBADMSG : 0;
}

int policyfile_parse(struct policyfile *f, char *text, char ***new_errors)
{
	struct parser p = { .file = { .path = f->path, .kind = f->kind } };

	return finish(f, &p, parse(&p, text), new_errors);
}

int policyfile_read(struct policyfile *f, char ***new_errors)
{
	struct parser p = { .file = { .path = f->path, .kind = f->kind } };
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	int err = 0;

	if (f->given) {
		err = take_given(&p, f->given, &text);
		if (!err && text)
			err = parse(&p, text);
		return finish(f, &p, err, new_errors);
	}
	/* Do not wait for a pipe, and do not get a controlling terminal. */
	fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT) {
		if (!path_is_link(f->path))
			return -ENOENT;
		err = complain(&p, 0, "a link to no file",
			       "a link to a regular file or to /dev/null");
	} else if (fd < 0) {
		err = complain(&p, 0, strerror(errno), "a readable file");
	}
	if (fd >= 0)
		err = read_text(&p, fd, &text);
	if (!err && text)
		err = parse(&p, text);
	return finish(f, &p, err, new_errors);
}

int policyfile_copy(struct policyfile *f, const struct policyfile *from)
{
	bool frozen = f->frozen;
	int err;

	policyfile_clear(f);
	f->frozen = frozen;
	err = match_append(&f->match, &from->match);
	for (size_t i = 0; i < from->promises.n && !err; i++)
		err = promises_add(&f->promises, &from->promises.items[i]);
	for (char **e = from->errors; e && *e && !err; e++)
		err = strv_add(&f->errors, *e);
	f->mask = from->mask;
	f->good = from->good;
	return err;
}

void policyfile_clear(struct policyfile *f)
{
	match_done(&f->match);
	strv_free(f->errors);
	promises_done(&f->promises);
	*f = (struct policyfile){ .path = f->path,
				  .kind = f->kind,
				  .given = f->given };
}

void policyfile_done(struct policyfile *f)
{
	policyfile_clear(f);
	free(f->path);
	free(f->given);
	*f = (struct policyfile){};
}

enum policyfile_kind policyfile_kind_of(const char *path)
{
	_cleanup_free_ char *folder = NULL;
	const char *slash = strrchr(path, '/');

	folder = strndup(path, slash ? slash - path : 0);
	if (endswith(path, ".policy"))
		return folder && endswith(folder, "/policy.control")
			       ? POLICYFILE_CONTROL
			       : POLICYFILE_POLICY;
	return folder && endswith(folder, ".policy.d") &&
			       endswith(path, ".conf")
		       ? POLICYFILE_DROPIN
		       : POLICYFILE_UNIT;
}

char *policyfile_format(const char *subject, const struct promises *promises)
{
	struct text t = {};
	int err;

	err = text_add(&t,
		       "# Written by sutrod(8); see sutroctl(1), policy set, "
		       "and sutro.policy(5).\n[Match]\n%s=%s\n\n[" SECTION
		       "]\n",
		       *subject == '/' ? "Cgroup" : "Unit", subject);
	for (size_t i = 0; i < promises->n && !err; i++) {
		const struct promise *p = &promises->items[i];
		_cleanup_free_ char *value = promise_format(p);

		err = value ? text_add(&t, "%s=%s\n",
				       promise_info(p->key)->name, value)
			    : -ENOMEM;
	}
	if (err) {
		free(t.p);
		return NULL;
	}
	return t.p;
}
