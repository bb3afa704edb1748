/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The subjects of policies: names of units, paths of cgroups that are no units, and the patterns
 * of [Match] for both.
 *
 *	Unit=db.service kubepods-*.slice
 *	Cgroup=/delegated/batch/job_?
 *
 * A subject that begins with "/" is a path, all others are names of units. A unit has the policies
 * of its name only, so that two patterns never compete for one cgroup.
 */

#include <fnmatch.h>
#include <limits.h>

#include "policy/match.h"

#define UNIT_NAME_MAX 255U

#define LETTERS                                                \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789"
#define NAME_LETTERS LETTERS ":-_.\\@"
#define GLOB_LETTERS NAME_LETTERS "*?[]!^"
#define PATH_LETTERS NAME_LETTERS "+,=~/"

/* Units that have a cgroup. */
static const char *const suffixes[] = { ".service", ".slice", ".scope",
					".socket",  ".mount", ".swap" };

static bool has_suffix(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (endswith(name, suffixes[i]))
			return true;
	return false;
}

bool unit_name_is_valid(const char *name)
{
	const char *at = strchr(name, '@');

	if (strlen(name) > UNIT_NAME_MAX || !has_suffix(name) ||
	    name[strspn(name, NAME_LETTERS)])
		return false;
	/* Neither "@.service" nor a template is the name of a unit. */
	return name[0] != '.' && at != name && !(at && at[1] == '.');
}

bool unit_file_is_valid(const char *name)
{
	return strlen(name) <= UNIT_NAME_MAX && has_suffix(name) &&
	       name[0] != '.' && !name[strspn(name, NAME_LETTERS)];
}

/* Is it a clean path, and not the root, which has no settings? */
static bool is_clean(const char *path)
{
	size_t n;

	if (*path != '/' || strlen(path) >= PATH_MAX)
		return false;
	for (; *path; path += n) {
		n = strcspn(++path, "/");
		if (!n || (n <= 2 && !strncmp(path, "..", n)))
			return false;
	}
	return true;
}

bool cgroup_path_is_valid(const char *path)
{
	/* A backslash at the end of a line would continue it. */
	return is_clean(path) && !path[strspn(path, PATH_LETTERS)] &&
	       !endswith(path, "\\");
}

char *control_name(const char *subject)
{
	_cleanup_(text_freep) struct text t = {};
	int err = 0;

	if (*subject != '/')
		return strdup(subject);
	for (const char *s = subject + 1; *s && !err; s++) {
		bool as_is = strchr(LETTERS ":_", *s) ||
			     (*s == '.' && s != subject + 1);

		err = *s == '/' ? text_add(&t, "-")
		      : as_is	? text_add(&t, "%c", *s)
				: text_add(&t, "\\x%02x", (unsigned char)*s);
	}
	err = err ?: text_add(&t, ".cgroup");
	return err ? NULL : TAKE_PTR(t.p);
}

const char *cgroup_name_to_unit(const char *name)
{
	return name + (*name == '_');
}

/* ---- patterns ---- */

char ***match_list(struct match *m, const char *key)
{
	if (streq(key, "Unit"))
		return &m->units;
	return streq(key, "Cgroup") ? &m->cgroups : NULL;
}

/* "w@.service" and "*@.service": units have the names of instances. */
static bool is_template(const char *word)
{
	const char *dot = strrchr(word, '.');

	return dot && dot > word && dot[-1] == '@' && has_suffix(word);
}

/* "[" without a "]" behind it stands for itself, which no unit has in its name. */
static bool is_open(const char *word)
{
	const char *bracket = strrchr(word, '[');

	return bracket && !strchr(bracket, ']');
}

/* A name that can match nothing, such as "postgresql" or "a.service,b.service", is a mistake, too. */
static const char *unit_mistake(const char *word)
{
	if (strlen(word) > UNIT_NAME_MAX || word[strspn(word, GLOB_LETTERS)] ||
	    is_open(word))
		return MATCH_UNITS_ALLOWED;
	if (!has_suffix(word) && !strchr("*?]", word[strlen(word) - 1]))
		return "names with the type of a unit that has a cgroup: "
		       ".service, .slice, .scope, .socket, .mount or .swap";
	if (is_template(word))
		return "names of units; no unit has the name of a template, "
		       "so match its instances, as with w@*.service";
	if (streq(word, ROOT_SLICE))
		return "slices below the root, which has no settings, such as "
		       "system.slice user.slice";
	return NULL;
}

const char *match_mistake(const char *key, const char *word)
{
	bool is_path = streq(key, "Cgroup");

	if (!text_is_plain(word) || (is_path && !is_clean(word)))
		return is_path ? MATCH_CGROUPS_ALLOWED : MATCH_UNITS_ALLOWED;
	return is_path ? NULL : unit_mistake(word);
}

const char *match_unit_of(const char *path)
{
	const char *name = cgroup_name_to_unit(strrchr(path, '/') + 1);

	if (strpbrk(path, "*?[") || !unit_name_is_valid(name) ||
	    streq(name, ROOT_SLICE))
		return NULL;
	for (const char *end = path; (end = strchr(end + 1, '/'));) {
		_cleanup_free_ char *above = strndup(path, end - path);

		if (!above || !endswith(above, ".slice"))
			return NULL;
	}
	return name;
}

static int append(char ***to, char *const *from)
{
	int err = 0;

	for (; from && *from && !err; from++)
		err = strv_add(to, *from);
	return err;
}

int match_append(struct match *m, const struct match *more)
{
	return append(&m->units, more->units)
		       ?: append(&m->cgroups, more->cgroups);
}

size_t match_length(const struct match *m)
{
	return strv_length(m->units) + strv_length(m->cgroups);
}

static size_t count(char *const *l)
{
	size_t n = 0;

	for (; l && *l; l++)
		n = **l ? n + 1 : 0;
	return n;
}

size_t match_patterns(const struct match *m)
{
	return count(m->units) + count(m->cgroups);
}

bool match_covers(const struct match *m, const char *subject)
{
	char *const *l = *subject == '/' ? m->cgroups : m->units;
	bool found = false;

	/* Names of units contain backslashes, so FNM_NOESCAPE. */
	for (; l && *l; l++)
		found = **l &&
			(found || fnmatch(*l, subject,
					  FNM_NOESCAPE | FNM_PATHNAME) == 0);
	return found;
}

void match_done(struct match *m)
{
	strv_free(m->units);
	strv_free(m->cgroups);
	*m = (struct match){};
}
