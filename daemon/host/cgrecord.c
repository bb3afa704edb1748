/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Values that lines of cgroup files had before the daemon wrote them.
 *
 * The record of a line is "CGROUP TAB VALUE", with a device "8:16 CGROUP TAB VALUE", in a file below
 * /run/sutro for each kind of cgroup file. A path with a tab begins with a backslash, and has "\t" for the
 * tab and "\\" for a backslash. Of a file with merged limits (io.max), the value is "VALUE /
 * WRITTEN": the limits of others and the last ones of the daemon. Another program has changed a
 * limit that differs from the latter.
 *
 * Example: a unit has IOReadBandwidthMax=9M, and a policy has ReadBandwidthMax=5M. The record is "8:16
 * /a.service TAB rbps=9000000 ... / rbps=5000000 ...".
 */

#include <sys/sysmacros.h>

#include "host/cgrecord.h"

/* The path of a cgroup as records have it. A line has its first tab behind it. */
static char *escape(const char *path)
{
	char *escaped, *to;

	if (!strpbrk(path, "\t\n"))
		return strdup(path);
	escaped = to = malloc(2 * strlen(path) + 2);
	if (!escaped)
		return NULL;
	*to++ = '\\';
	for (const char *s = path; *s; s++) {
		if (*s == '\t' || *s == '\n' || *s == '\\')
			*to++ = '\\';
		*to++ = *s == '\t' ? 't' : *s == '\n' ? 'n' : *s;
	}
	*to = '\0';
	return escaped;
}

/* The path in a line. Return: NULL: out of memory, or the line has none. */
static char *unescape(const char *line)
{
	const char *s = strpbrk(line, "/\\");
	bool is_escaped = s && *s == '\\';
	char *path = s ? strndup(s + is_escaped, strcspn(s, "\t") - is_escaped)
		       : NULL;
	char *to = path;

	for (const char *from = path; is_escaped && path && *from; from++) {
		if (*from == '\\' && from[1]) {
			from++;
			*to++ = *from == 't'   ? '\t'
				: *from == 'n' ? '\n'
					       : *from;
		} else {
			*to++ = *from;
		}
	}
	if (is_escaped && path)
		*to = '\0';
	return path;
}

static char *record_key(const struct cgroup *c, dev_t devno)
{
	_cleanup_free_ char *path = escape(c->path);

	if (!path || devno == CGFILE_DEFAULT)
		return TAKE_PTR(path);
	return asprintf_or_null("%u:%u %s", major(devno), minor(devno), path);
}

bool cgrecord_is_about(const char *line, const struct cgroup *c, dev_t *ret)
{
	_cleanup_free_ char *path = NULL;
	dev_t devno = CGFILE_DEFAULT;
	const char *rest = line;

	if (skip_devno(&rest, &devno) && *rest++ != ' ')
		return false;
	path = *rest == '/' || *rest == '\\' ? unescape(rest) : NULL;
	if (!path || !streq(path, c->path))
		return false;
	*ret = devno;
	return true;
}

/* Find the record of a line: "VALUE", or "VALUE / WRITTEN" if the line was merged. */
static const char *find_record(const struct cgrecords *records,
			       const struct cgroup *c, enum cgfile file,
			       dev_t devno)
{
	_cleanup_free_ char *key = NULL;

	if (!cgformat(file)->record)
		return NULL;
	key = record_key(c, devno);
	return key ? record_get(&records->files[file], key) : NULL;
}

static bool parse_record(enum cgfile file, const char *text,
			 struct cgvalue *former, struct cgvalue *written)
{
	const char *slash = strstr(text, " / ");
	_cleanup_free_ char *first = NULL;

	first = strndup(text, slash ? (size_t)(slash - text) : strlen(text));
	if (!first || cgvalue_parse(file, first, former) < 0)
		*former = cgvalue_unset(file);
	return slash && cgvalue_parse(file, slash + 3, written) == 0;
}

bool cgrecord_former(const struct cgrecords *records, const struct cgroup *c,
		     enum cgfile file, dev_t devno, struct cgvalue *ret)
{
	const char *text = find_record(records, c, file, devno);
	struct cgvalue written;

	if (!text)
		return false;
	parse_record(file, text, ret, &written);
	return true;
}

struct cgvalue cgrecord_of_others(const struct cgrecords *records,
				  const struct cgroup *c,
				  const struct cglines *present, dev_t devno)
{
	const char *text = find_record(records, c, present->file, devno);
	struct cgvalue is = cglines_get(present, devno), theirs, written;

	if (!text)
		return is;
	if (parse_record(present->file, text, &theirs, &written))
		for (size_t i = 0; i < CGFILE_NUMBERS; i++)
			if (is.number[i] != written.number[i])
				theirs.number[i] = is.number[i];
	return theirs;
}

static char *record_text(const struct cgrecords *records,
			 const struct cgroup *c, const struct cglines *before,
			 dev_t devno, const struct cgvalue *value)
{
	struct cgvalue theirs = cgrecord_of_others(records, c, before, devno);
	_cleanup_free_ char *text = cgvalue_text(before->file, &theirs);
	_cleanup_free_ char *written = cgvalue_text(before->file, value);

	if (!text || !written || !cgformat(before->file)->is_merged)
		return TAKE_PTR(text);
	return asprintf_or_null("%s / %s", text, written);
}

int cgrecord_save(struct cgrecords *records, const struct cgroup *c,
		  const struct cglines *before, dev_t devno,
		  const struct cgvalue *value, char **ret)
{
	enum cgfile file = before->file;
	const char *was = find_record(records, c, file, devno);
	_cleanup_free_ char *key = record_key(c, devno), *text = NULL;
	int err = 0;

	if (!cgformat(file)->record)
		return 0;
	*ret = was ? strdup(was) : NULL;
	text = record_text(records, c, before, devno, value);
	if (!key || !text || (was && !*ret))
		return -ENOMEM;
	if (!was || cgformat(file)->is_merged)
		err = record_set(&records->files[file], key, text);
	return err;
}

void cgrecord_drop(struct cgrecords *records, const struct cgroup *c,
		   enum cgfile file, dev_t devno)
{
	_cleanup_free_ char *key = record_key(c, devno);
	int err = key ? record_drop(&records->files[file], key) : -ENOMEM;

	if (err)
		log_write(LOG_WARNING, err,
			  "%s: %s still has a value of %s to restore: %m",
			  c->shown, records->files[file].path,
			  cgformat(file)->name);
}

void cgrecord_take_back(struct cgrecords *records, const struct cgroup *c,
			enum cgfile file, dev_t devno, const char *was)
{
	_cleanup_free_ char *key = record_key(c, devno);

	if (!cgformat(file)->record)
		return;
	if (!was)
		cgrecord_drop(records, c, file, devno);
	else if (!key || record_set(&records->files[file], key, was) < 0)
		log_warning("%s: the record of %s is wrong.", c->shown,
			    cgformat(file)->name);
}

bool cgrecord_exists(const struct cgrecords *records, const struct cgroup *c,
		     enum cgfile file)
{
	char *const *lines = records->files[file].lines;
	dev_t devno;

	for (; lines && *lines; lines++)
		if (cgrecord_is_about(*lines, c, &devno))
			return true;
	return false;
}

/* ---- records that nothing needs any more ---- */

static void prune(struct cgrecords *records,
		  bool (*is_over)(const char *line, const void *userdata),
		  const void *userdata)
{
	for (enum cgfile f = 0; f < CGFILES; f++) {
		struct record *r = &records->files[f];
		int err = record_prune(r, is_over, userdata);

		if (err)
			log_write(LOG_WARNING, err, "Cannot change %s: %m",
				  r->path);
	}
}

static bool is_outside(const char *line, const void *userdata)
{
	_cleanup_free_ char *path = unescape(line);

	return path && !cgroup_find(userdata, path) &&
	       cgroup_is_gone(userdata, path);
}

void cgrecords_prune(struct cgrecords *records, const struct cgroup_tree *tree)
{
	prune(records, is_outside, tree);
}

static bool is_for(const char *line, const void *userdata)
{
	const dev_t *devno = userdata;
	dev_t of;

	return skip_devno(&line, &of) && of == *devno;
}

void cgrecords_device_gone(struct cgrecords *records, dev_t devno)
{
	prune(records, is_for, &devno);
}

static bool is_of(const char *line, const void *userdata)
{
	dev_t devno;

	return cgrecord_is_about(line, userdata, &devno);
}

void cgrecords_cgroup_gone(struct cgrecords *records, const struct cgroup *c)
{
	prune(records, is_of, c);
}
