/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * sutrod.conf(5): inih parses, a table has the keys.
 *
 * As in systemd, the main file is read first, then all drop-ins sorted by file
 * name whatever their directory; of two with the same name the one in /etc wins,
 * then /run. A later assignment adds to a list, an empty one resets it.
 *
 * A mistake is reported, and the assignment is ignored. All others hold: a typing error must not
 * leave disks without weights.
 *
 * inih passes no line number to its handler, but it reads through a function of this
 * file, which counts. A line longer than the buffer of inih reads as an empty one.
 */

#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "host/resync.h"
#include "policy/conf.h"
#include "policy/dropin.h"

#define RECONCILE_DEFAULT_SEC 60U
#define RECONCILE_MAX_SEC 3600U
/* As large as the kernel's read-ahead. The least that it accepts is a page. */
#define MAX_SECTORS_DEFAULT_KB 128U
#define MAX_SECTORS_LEAST_KB 4U
#define MAX_SECTORS_MOST_KB 65536U
/* Most disks of a SATA port have 64, too few for several cgroups that write files. */
#define NR_REQUESTS_DEFAULT 256U
/* The bounds of the kernel. */
#define NR_REQUESTS_LEAST 4U
#define NR_REQUESTS_MOST 2048U

struct source {
	FILE *file;
	const char *path;
	unsigned int line;
	struct conf *conf;
	char ***errors;
	bool is_oom;
	int error;
};

static bool are_absolute(const char *words)
{
	for (words += strspn(words, " \t"); *words;
	     words += strspn(words, " \t")) {
		if (*words != '/')
			return false;
		words += strcspn(words, " \t");
	}
	return true;
}

static int parse_paths(struct conf *c, const char *value, void *field)
{
	_cleanup_free_ char *copy = strdup(value);
	char ***list = field, *save = NULL;
	int err;

	if (!copy)
		return -ENOMEM;
	if (!are_absolute(value))
		return -EINVAL;
	if (!*value) {
		strv_free(*list);
		*list = NULL;
	}
	for (char *word = strtok_r(copy, " \t", &save); word;
	     word = strtok_r(NULL, " \t", &save)) {
		err = strv_add(list, word);
		if (err)
			return err;
	}
	return 0;
}

static int parse_sec(struct conf *c, const char *value, void *field)
{
	uint64_t sec, *usec = field;
	int err = parse_u64(value, &sec);

	if (err)
		return err;
	if (sec < 1 || sec > RECONCILE_MAX_SEC)
		return -ERANGE;
	*usec = sec * 1000000;
	return 0;
}

/* A number within limits, or 0. */
static int parse_number(const char *value, uint64_t least, uint64_t most,
			unsigned int *ret)
{
	uint64_t number;
	int err = parse_u64(value, &number);

	if (err)
		return err;
	if (number && (number < least || number > most))
		return -ERANGE;
	*ret = number;
	return 0;
}

static int parse_max_sectors(struct conf *c, const char *value, void *field)
{
	return parse_number(value, MAX_SECTORS_LEAST_KB, MAX_SECTORS_MOST_KB,
			    field);
}

static int parse_nr_requests(struct conf *c, const char *value, void *field)
{
	return parse_number(value, NR_REQUESTS_LEAST, NR_REQUESTS_MOST, field);
}

static int parse_resync(struct conf *c, const char *value, void *field)
{
	struct promise p = {};
	const char *allowed;
	int err;

	err = promise_parse(PROMISE_WEIGHT, value,
			    "ResyncWeight= in sutrod.conf", &p, &allowed);
	if (!err)
		err = promises_apply(field, &p, NULL);
	promise_done(&p);
	return err;
}

static int parse_capacity(struct conf *c, const char *value, void *field)
{
	return capacities_parse(field, value);
}

static int parse_admission(struct conf *c, const char *value, void *field)
{
	bool *refuse = field;

	if (!streq(value, "warn") && !streq(value, "refuse"))
		return -EINVAL;
	*refuse = streq(value, "refuse");
	return 0;
}

static const struct key {
	const char *section;
	const char *name;
	int (*parse)(struct conf *c, const char *value, void *field);
	size_t offset;
	const char *allowed;
} keys[] = {
	{ "Leaves", "Use", parse_paths, offsetof(struct conf, use),
	  "absolute paths or globs of devices, separated by spaces" },
	{ "Leaves", "MaxSectorsKB", parse_max_sectors,
	  offsetof(struct conf, max_sectors_kb),
	  "KiB, 4 to 65536, or 0 for the size of the disk" },
	{ "Leaves", "NrRequests", parse_nr_requests,
	  offsetof(struct conf, nr_requests),
	  "4 to 2048, or 0 for the number of the kernel" },
	{ "Capacity", "Device", parse_capacity,
	  offsetof(struct conf, capacities),
	  "a path, then one or more of read=, write=, read-iops= and "
	  "write-iops= with rates such as 400M" },
	{ "Capacity", "Admission", parse_admission,
	  offsetof(struct conf, refuse), "warn or refuse" },
	{ "Daemon", "ResyncWeight", parse_resync, offsetof(struct conf, resync),
	  "a weight of 1 to 10000, or a path and a weight" },
	{ "Daemon", "ReconcileSec", parse_sec,
	  offsetof(struct conf, reconcile_usec), "seconds, 1 to 3600" },
};

static void complain(struct source *s, const char *text, const char *allowed)
{
	_cleanup_(text_freep) struct text t = {};
	int err;

	err = text_add(&t, "%s:%u: \"", s->path, s->line);
	err = err ?: text_add_plain(&t, text, PATH_MAX);
	err = err ?: text_add(&t, "\": %s, ignoring.", allowed);
	if (err || strv_add(s->errors, t.p) < 0)
		s->is_oom = true;
}

/* The lines before hold, those behind are missing. */
static int complain_of_file(const char *path, int error, char ***errors)
{
	_cleanup_free_ char *message = NULL;

	message = asprintf_or_null("%s: %s, ignoring.", path, strerror(error));
	return message ? strv_add(errors, message) : -ENOMEM;
}

static int on_assignment(void *userdata, const char *section, const char *name,
			 const char *value)
{
	struct source *s = userdata;
	_cleanup_free_ char *text = NULL;
	struct text known = {};
	int err;

	text = asprintf_or_null("[%s] %s=%s", section, name, value);
	if (!text) {
		s->is_oom = true;
		return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct key *k = &keys[i];

		text_add(&known, "%s[%s] %s=", i ? ", " : "", k->section,
			 k->name);
		if (!streq(k->section, section) || !streq(k->name, name))
			continue;
		err = k->parse(s->conf, value, (char *)s->conf + k->offset);
		if (err == -ENOMEM)
			s->is_oom = true;
		else if (err)
			complain(s, text, k->allowed);
		free(known.p);
		return 1;
	}
	complain(s, text, known.p ?: "");
	free(known.p);
	return 1;
}

static char *read_line(char *buffer, int size, void *userdata)
{
	struct source *s = userdata;
	char *line = fgets(buffer, size, s->file);

	if (!line && ferror(s->file))
		s->error = errno;
	if (!line)
		return NULL;
	s->line++;
	if (strlen(line) == (size_t)size - 1 && line[size - 2] != '\n') {
		int c;

		complain(s, line,
			 "the line is too long; write several, a later "
			 "assignment adds to a list");
		while ((c = getc(s->file)) != '\n' && c != EOF)
			;
		strcpy(line, "\n");
	}
	return line;
}

static int load_file(struct conf *c, const char *path, char ***errors)
{
	struct source s = { .path = path, .conf = c, .errors = errors };
	int line, err = 0;

	s.file = fopen(path, "re");
	if (!s.file) {
		err = errno;
		return err == ENOENT && !path_is_link(path)
			       ? 0
			       : complain_of_file(path, err, errors);
	}
	line = ini_parse_stream(read_line, &s, on_assignment, &s);
	if (s.error)
		err = complain_of_file(path, s.error, errors);
	fclose(s.file);
	if (err)
		return err;
	/* If several lines are no assignment, inih returns the number of the first. */
	if (line > 0) {
		s.line = line;
		complain(&s, "...",
			 "a [Section], Key=value, or a comment that "
			 "begins with # or ;");
	}
	return s.is_oom || line == -2 ? -ENOMEM : 0;
}

int conf_load(const struct roots *roots, struct conf **ret, char ***errors)
{
	_cleanup_(conf_freep) struct conf *c = calloc(1, sizeof(*c));
	struct dropins l = {};
	int err;

	if (!c)
		return -ENOMEM;
	c->max_sectors_kb = MAX_SECTORS_DEFAULT_KB;
	c->nr_requests = NR_REQUESTS_DEFAULT;
	c->reconcile_usec = RECONCILE_DEFAULT_SEC * 1000000ULL;
	err = load_file(c, roots->conf, errors);
	if (!err)
		err = dropins_list(roots->conf_dirs, "", ".conf", &l);
	for (size_t i = 0; i < l.n && !err; i++)
		err = load_file(c, l.items[i].path, errors);
	dropins_done(&l);
	if (err)
		return err;
	*ret = TAKE_PTR(c);
	return 0;
}

struct conf *conf_free(struct conf *c)
{
	if (!c)
		return NULL;
	strv_free(c->use);
	promises_done(&c->resync);
	capacities_done(&c->capacities);
	free(c);
	return NULL;
}

int conf_check(const char *path, char ***errors)
{
	_cleanup_(conf_freep) struct conf *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (access(path, F_OK) < 0 && errno == ENOENT && !path_is_link(path))
		return -ENOENT;
	return load_file(c, path, errors);
}

/* The weakest source comes first. */
static int put_first(struct promises *l, const struct promise *p)
{
	struct promise new;
	int err = promises_add(l, p);

	if (err)
		return err;
	new = l->items[l->n - 1];
	memmove(&l->items[1], l->items, (l->n - 1) * sizeof(new));
	l->items[0] = new;
	return 0;
}

int conf_add_resync(const struct conf *c, const char *unit, struct stated *l)
{
	int err = 0;

	if (!streq(unit, RESYNC_UNIT))
		return 0;
	for (size_t i = c->resync.n; i-- > 0 && !err;) {
		const struct promise *p = &c->resync.items[i];
		bool is_other = promises_find(&l->in_force, p->key, p->path);

		err = put_first(is_other ? &l->overridden : &l->in_force, p);
	}
	return err;
}
