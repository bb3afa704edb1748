/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Values that lines of cgroup files had before the daemon wrote them.
 *
 * The record of a line is a line of a file below /run/sutro, for each kind of cgroup file (record.c). Its
 * value is "VALUE / WRITTEN": the value of others and the last one of the daemon. Another program has
 * changed a value that differs from the latter, of the four limits of io.max each.
 *
 * Example: a unit has IOReadBandwidthMax=9M, and a policy has ReadBandwidthMax=5M. The record is "8:16
 * /a.service TAB rbps=9000000 ... / rbps=5000000 ...". The records of former versions had "VALUE" alone
 * for files other than io.max.
 *
 * A record is made before its line is written, and the daemon may end between the two. When the line
 * has an earlier value of the daemon, the record is "VALUE / WRITTEN / BEFORE", and a value that differs
 * from both is one of another program. Once the line is written, BEFORE is dropped in memory.
 *
 * The numbers of devices are those of the devices in the file "devices", which has "DISKSEQ QUEUE" for
 * each. Another device with the number of a former one has neither.
 */

#include <stdio.h>

#include "host/cgrecord.h"

#define SEPARATOR " / "

#define DEVICES "devices"
/* A record has a path. */
#define OF_DEVICE "/"

/* Find the record of a line. */
static const char *find_record(const struct cgrecords *records,
			       const struct cgroup *c, enum cgfile file,
			       dev_t devno)
{
	if (!cgformat(file)->record)
		return NULL;
	return record_get(&records->files[file], c->path, devno);
}

/* End @text at its first separator. Return: the text after it, or NULL. */
static char *split(char *text)
{
	char *at = text ? strstr(text, SEPARATOR) : NULL;

	if (!at)
		return NULL;
	*at = '\0';
	return at + strlen(SEPARATOR);
}

/* Return: is there a value of the daemon? */
static bool parse_record(enum cgfile file, const char *text,
			 struct cgvalue *former, struct cgvalue *written,
			 struct cgvalue *before)
{
	_cleanup_free_ char *first = strdup(text);
	char *second = split(first), *third = split(second);

	if (!first || cgvalue_parse(file, first, former) < 0)
		*former = cgvalue_unset(file);
	if (!second || cgvalue_parse(file, second, written) < 0)
		return false;
	if (!third || cgvalue_parse(file, third, before) < 0)
		*before = *written;
	return true;
}

bool cgrecord_former(const struct cgrecords *records, const struct cgroup *c,
		     enum cgfile file, dev_t devno, struct cgvalue *ret)
{
	const char *text = find_record(records, c, file, devno);
	struct cgvalue written, before;

	if (!text)
		return false;
	parse_record(file, text, ret, &written, &before);
	return true;
}

struct cgvalue cgrecord_of_others(const struct cgrecords *records,
				  const struct cgroup *c,
				  const struct cglines *present, dev_t devno)
{
	const char *text = find_record(records, c, present->file, devno);
	struct cgvalue is = cglines_get(present, devno);
	struct cgvalue theirs, written, before;

	if (!text)
		return is;
	if (parse_record(present->file, text, &theirs, &written, &before))
		for (size_t i = 0; i < CGFILE_NUMBERS; i++)
			if (is.number[i] != written.number[i] &&
			    is.number[i] != before.number[i])
				theirs.number[i] = is.number[i];
	return theirs;
}

static char *record_text(const struct cgrecords *records,
			 const struct cgroup *c, const struct cglines *before,
			 dev_t devno, const struct cgvalue *value)
{
	struct cgvalue theirs = cgrecord_of_others(records, c, before, devno);
	struct cgvalue is = cglines_get(before, devno);
	_cleanup_free_ char *text = cgvalue_text(before->file, &theirs);
	_cleanup_free_ char *written = cgvalue_text(before->file, value);
	_cleanup_free_ char *was = cgvalue_text(before->file, &is);

	if (!text || !written || !was)
		return NULL;
	if (cgvalue_equal(&theirs, &is))
		return asprintf_or_null("%s" SEPARATOR "%s", text, written);
	return asprintf_or_null("%s" SEPARATOR "%s" SEPARATOR "%s", text,
				written, was);
}

int cgrecord_save(struct cgrecords *records, const struct cgroup *c,
		  const struct cglines *before, dev_t devno,
		  const struct cgvalue *value, char **ret)
{
	enum cgfile file = before->file;
	const char *was = find_record(records, c, file, devno);
	_cleanup_free_ char *text = NULL;

	if (!cgformat(file)->record)
		return 0;
	*ret = was ? strdup(was) : NULL;
	text = record_text(records, c, before, devno, value);
	if (!text || (was && !*ret))
		return -ENOMEM;
	return record_set(&records->files[file], c->path, devno, text);
}

void cgrecord_confirm(struct cgrecords *records, const struct cgroup *c,
		      enum cgfile file, dev_t devno,
		      const struct cgvalue *value)
{
	const char *text = find_record(records, c, file, devno), *end;
	struct cgvalue theirs, written, before;

	end = text ? strstr(text, SEPARATOR) : NULL;
	end = end ? strstr(end + 1, SEPARATOR) : NULL;
	if (end && parse_record(file, text, &theirs, &written, &before) &&
	    cgvalue_equal(&written, value))
		record_cut(&records->files[file], c->path, devno, end - text);
}

void cgrecord_drop(struct cgrecords *records, const struct cgroup *c,
		   enum cgfile file, dev_t devno)
{
	int err = record_drop(&records->files[file], c->path, devno);

	if (err)
		log_write(LOG_WARNING, err,
			  "%s: %s still has a value of %s to restore: %m",
			  c->shown, records->files[file].path,
			  cgformat(file)->name);
}

void cgrecord_take_back(struct cgrecords *records, const struct cgroup *c,
			enum cgfile file, dev_t devno, const char *was)
{
	if (!cgformat(file)->record)
		return;
	if (!was)
		cgrecord_drop(records, c, file, devno);
	else if (record_set(&records->files[file], c->path, devno, was) < 0)
		log_warning("%s: the record of %s is wrong.", c->shown,
			    cgformat(file)->name);
}

const struct record_subject *cgrecord_find(const struct cgrecords *records,
					   const struct cgroup *c,
					   enum cgfile file)
{
	return record_find(&records->files[file], c->path);
}

/* ---- records that nothing needs any more ---- */

static void report(const struct record *r, int err)
{
	if (err)
		log_write(LOG_WARNING, err, "Cannot change %s: %m", r->path);
}

static bool is_outside(const char *path, dev_t devno, const void *userdata)
{
	return !cgroup_find(userdata, path) && cgroup_is_gone(userdata, path);
}

void cgrecords_prune(struct cgrecords *records, const struct cgroup_tree *tree)
{
	for (enum cgfile f = 0; f < CGFILES; f++)
		report(&records->files[f],
		       record_prune(&records->files[f], is_outside, tree));
}

/** struct gone - a removed device, in a walk over the records of a file */
struct gone {
	const struct record *records;
	enum cgfile file;
	dev_t devno;
	bool is_replaced;
};

/* Has the daemon written a line, rather than withdrawn one of others? */
static bool has_line(const struct gone *g, const char *text)
{
	struct cgvalue unset = cgvalue_unset(g->file), former, written, before;

	return text &&
	       parse_record(g->file, text, &former, &written, &before) &&
	       !cgvalue_equal(&written, &unset);
}

/* The daemon may have written lines for the new device already, by the topology before. A record of
 * the former one with a written line does no harm: the new device does not have that line. Records
 * of withdrawn lines cannot be distinguished.
 */
static bool is_of_gone(const char *path, dev_t devno, const void *userdata)
{
	const struct gone *g = userdata;

	if (!devno || devno != g->devno)
		return false;
	return !g->is_replaced ||
	       !has_line(g, record_get(g->records, path, devno));
}

static bool is_other_device(const struct cgrecords *records,
			    const struct device *d)
{
	const char *text = record_get(&records->disks, OF_DEVICE, d->devno);
	unsigned long long diskseq, queue;

	return text && sscanf(text, "%llu %llu", &diskseq, &queue) == 2 &&
	       !device_is_same(d, diskseq, queue);
}

static int record_device(struct cgrecords *records, const struct device *d)
{
	_cleanup_free_ char *text =
		asprintf_or_null("%llu %llu", (unsigned long long)d->diskseq,
				 (unsigned long long)d->queue);

	return text ? record_set(&records->disks, OF_DEVICE, d->devno, text)
		    : -ENOMEM;
}

void cgrecords_follow_devices(struct cgrecords *records,
			      const struct topology *t)
{
	int err = 0;

	for (size_t i = 0; i < t->n_devices; i++) {
		const struct device *d = t->devices[i];

		if (is_other_device(records, d))
			cgrecords_device_gone(records, d->devno, true);
		err = record_device(records, d) ?: err;
	}
	report(&records->disks, err);
}

void cgrecords_device_gone(struct cgrecords *records, dev_t devno,
			   bool is_replaced)
{
	if (!is_replaced)
		report(&records->disks,
		       record_drop(&records->disks, OF_DEVICE, devno));
	for (enum cgfile f = 0; f < CGFILES; f++) {
		struct record *r = &records->files[f];
		const struct gone g = { r, f, devno, is_replaced };

		report(r, record_prune(r, is_of_gone, &g));
	}
}

void cgrecords_cgroup_gone(struct cgrecords *records, const struct cgroup *c)
{
	for (enum cgfile f = 0; f < CGFILES; f++)
		report(&records->files[f],
		       record_drop_path(&records->files[f], c->path));
}

/* ---- beginning and end ---- */

int cgrecords_open(struct cgrecords *records, const struct roots *roots)
{
	int err = record_open(&records->disks, roots, DEVICES);

	for (enum cgfile f = 0; f < CGFILES && !err; f++)
		if (cgformat(f)->record)
			err = record_open(&records->files[f], roots,
					  cgformat(f)->record);
	return err;
}

void cgrecords_done(struct cgrecords *records)
{
	for (enum cgfile f = 0; f < CGFILES; f++)
		record_done(&records->files[f]);
	record_done(&records->disks);
}
