/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The writer of cgroup files.
 *
 * Others write io.weight, io.bfq.weight, io.max and io.sutro.class, too. The value that a line had before is
 * recorded in /run/sutro before the line is written, and is restored when the line is withdrawn. A
 * later value of others takes its place.
 * All device lines of the other files belong to the daemon: when they are withdrawn, a device has
 * no line.
 *
 * A line of io.max has four limits, and others may set and change some of them at any time. The
 * lower one of each limit is written (cgrecord.c).
 *
 * Only lines that differ are written, and every write is read back. A line whose write failed or
 * had no effect is remembered (struct cgrefusal) and not written again with each event.
 */

#include "host/cgfile.h"
#include "host/diskcall.h"
#include "host/event.h"

/* Does the error mean that the cgroup or disk was removed? That is normal. */
static bool is_gone(int err)
{
	return err == -ENOENT || err == -ENODEV;
}

static const char *name_of(enum cgfile file)
{
	return cgformat(file)->name;
}

static void log_failure(int level, int err, const struct cgroup *c,
			enum cgfile file, const char *line)
{
	const char *end = is_gone(err) ? ", ignoring." : ".";

	if (is_gone(err))
		level = LOG_DEBUG;
	if (line)
		log_write(level, err, "%s: cannot write \"%s\" to %s: %m%s",
			  c->shown, line, name_of(file), end);
	else
		log_write(level, err, "%s: cannot read %s: %m%s", c->shown,
			  name_of(file), end);
}

int cgfile_read(const struct cgroup *c, enum cgfile file, struct cglines *ret)
{
	_cleanup_free_ char *text = NULL;
	int r = cgroup_read(c, name_of(file), &text);

	if (r) {
		if (r != -ENOENT && r != -ENOMEM)
			log_failure(LOG_WARNING, r, c, file, NULL);
		return r;
	}
	r = cglines_parse(file, text, ret);
	if (r > 0)
		log_warning("%s: ignoring %d invalid line(s) of %s.", c->shown,
			    r, name_of(file));
	return r < 0 ? r : 0;
}

/* ---- echoes ---- */

static uint64_t hash_of(const struct cgroup *c, const char *name)
{
	_cleanup_free_ char *text = NULL;
	uint64_t hash = 0xcbf29ce484222325ULL;

	if (cgroup_read(c, name, &text) < 0)
		return 0;
	for (const char *s = text; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3ULL;
	return hash;
}

bool cgfile_take_echo(struct cgroup *c)
{
	bool is_echo = c->echo && c->echo == hash_of(c, name_of(CGFILE_WEIGHT));

	c->echo = 0;
	return is_echo;
}

/* ---- refusals ---- */

static struct cgrefusal *find_refusal(const struct cgroup *c, enum cgfile file,
				      dev_t devno)
{
	struct cgrefusal *r = c->refusals;

	while (r && (r->file != file || r->devno != devno))
		r = r->next;
	return r;
}

/* A disk that is only busy takes the line when it has finished its requests. */
const struct cgrefusal *cgfile_refusal(const struct cgroup *c, enum cgfile file,
				       dev_t devno)
{
	const struct cgrefusal *r = find_refusal(c, file, devno);
	bool is_pending = r && r->error == -ETIMEDOUT &&
			  diskcall_is_pending(devno) &&
			  !diskcall_is_hung(devno);

	return is_pending ? NULL : r;
}

char *cgrefusal_text(const struct cgrefusal *r)
{
	_cleanup_free_ char *line = cgline_text(r->file, r->devno, r->value);

	if (!line)
		return NULL;
	if (r->is_of_record)
		return asprintf_or_null("\"%s\" was not written to %s, because "
					"the former value cannot be recorded "
					"in /run/sutro: %s",
					line, name_of(r->file),
					strerror(-r->error));
	if (r->error == -ETIMEDOUT)
		return asprintf_or_null("\"%s\" was not taken for %s: the disk "
					"hangs, see journalctl --dmesg",
					line, name_of(r->file));
	if (!r->error)
		return asprintf_or_null("the kernel ignored \"%s\" for %s",
					line, name_of(r->file));
	return asprintf_or_null("the kernel refused \"%s\" for %s: %s", line,
				name_of(r->file), strerror(-r->error));
}

static int remember_refusal(struct cgroup *c, enum cgfile file,
			    const struct cgchange *ch, int error)
{
	struct cgrefusal *r = find_refusal(c, file, ch->devno);

	if (!r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return -ENOMEM;
		*r = (struct cgrefusal){ .next = c->refusals,
					 .file = file,
					 .devno = ch->devno };
		c->refusals = r;
	}
	r->value = ch->value;
	r->error = error;
	r->is_of_record = ch->is_of_record;
	return 0;
}

static void forget_refusal(struct cgroup *c, enum cgfile file, dev_t devno)
{
	struct cgrefusal **at = &c->refusals, *r;

	while (*at && ((*at)->file != file || (*at)->devno != devno))
		at = &(*at)->next;
	r = *at;
	if (r) {
		*at = r->next;
		free(r);
	}
}

void cgfile_retry(struct cgroup *c)
{
	while (c->refusals) {
		struct cgrefusal *r = c->refusals;

		c->refusals = r->next;
		free(r);
	}
}

/* ---- values that lines had before ---- */

struct cgvalue cgfile_of_others(const struct cgfiles *files,
				const struct cgroup *c,
				const struct cglines *present, dev_t devno)
{
	return cgrecord_of_others(&files->records, c, present, devno);
}

struct cgvalue cgfile_merge(const struct cgfiles *files, const struct cgroup *c,
			    const struct cglines *present, dev_t devno,
			    const struct cgvalue *ours)
{
	struct cgvalue v = cgfile_of_others(files, c, present, devno);

	for (size_t i = 0; i < CGFILE_NUMBERS; i++)
		if (ours->number[i] < v.number[i])
			v.number[i] = ours->number[i];
	return v;
}

/* A line with its former value no longer belongs to the daemon. */
static void follow_record(struct cgfiles *files, const struct cgroup *c,
			  const struct cglines *before,
			  const struct cgchange *ch)
{
	enum cgfile file = before->file;
	struct cgvalue former;

	/* The disk may still take a line that was written before. */
	if (files->dry_run || diskcall_is_pending(ch->devno) ||
	    !cgrecord_former(&files->records, c, file, ch->devno, &former))
		return;
	if (!ch->written)
		former = cgrecord_of_others(&files->records, c, before,
					    ch->devno);
	if (ch->is_of_record)
		return;
	if (ch->error ? is_gone(ch->error) : cgvalue_equal(&former, &ch->value))
		cgrecord_drop(&files->records, c, file, ch->devno);
	else if (!ch->error)
		cgrecord_confirm(&files->records, c, file, ch->devno,
				 &ch->value);
}

void cgfiles_prune(struct cgfiles *files, const struct cgroup_tree *tree)
{
	if (!files->dry_run)
		cgrecords_prune(&files->records, tree);
}

void cgfiles_device_gone(struct cgfiles *files, dev_t devno, bool is_replaced)
{
	if (!files->dry_run)
		cgrecords_device_gone(&files->records, devno, is_replaced);
}

void cgfiles_follow_devices(struct cgfiles *files, const struct topology *t)
{
	if (!files->dry_run)
		cgrecords_follow_devices(&files->records, t);
}

void cgfiles_cgroup_gone(struct cgfiles *files, const struct cgroup *c)
{
	if (!files->dry_run)
		cgrecords_cgroup_gone(&files->records, c);
}

/* ---- writing ---- */

bool cgchange_is_untaken(const struct cgchange *ch)
{
	return !ch->is_of_record &&
	       (ch->error == -EINVAL || ch->error == -ENODEV ||
		ch->error == -EOPNOTSUPP);
}

/* Log the first failure of a line for people, and further ones for debugging. */
static int level_of_failure(const struct cgroup *c, enum cgfile file,
			    const struct cgchange *ch)
{
	return ch->is_of_user || find_refusal(c, file, ch->devno) ? LOG_DEBUG
								  : LOG_WARNING;
}

/* Without a record, a write could not be undone. */
static int refuse_unrecorded(struct cgroup *c, enum cgfile file,
			     struct cgchange *ch, const char *line)
{
	ch->is_of_record = true;
	log_write(level_of_failure(c, file, ch), ch->error,
		  "%s: cannot record the former value of %s, not writing "
		  "\"%s\": %m",
		  c->shown, name_of(file), line);
	return remember_refusal(c, file, ch, ch->error);
}

static int write_line(struct cgfiles *files, struct cgroup *c,
		      const struct cglines *before, struct cgchange *ch)
{
	enum cgfile file = before->file;
	struct cgvalue was = cglines_get(before, ch->devno);
	_cleanup_free_ char *line =
		cgline_change_text(file, ch->devno, ch->value, &was);
	_cleanup_free_ char *recorded = NULL;
	bool is_recorded;

	if (!line)
		return -ENOMEM;
	if (files->dry_run) {
		log_info("%s: would write \"%s\" to %s%s%s", c->shown, line,
			 name_of(file), ch->reason ? ": " : "",
			 ch->reason ?: ".");
		return 0;
	}
	/* The record of a line that the disk has not taken yet stays as it is. */
	if (diskcall_is_pending(ch->devno)) {
		ch->error = -ETIMEDOUT;
		return remember_refusal(c, file, ch, ch->error);
	}
	ch->error = cgrecord_save(&files->records, c, before, ch->devno,
				  &ch->value, &recorded);
	is_recorded = !ch->error;
	if (is_recorded && ch->devno == CGFILE_DEFAULT)
		ch->error = cgroup_write(c, name_of(file), line);
	else if (is_recorded)
		ch->error =
			cgroup_write_device(c, name_of(file), line, ch->devno);
	if (!ch->error) {
		ch->written = true;
		return 0;
	}
	/* The line may still be taken when the disk answers, and the record is needed then. */
	if (is_recorded && ch->error == -ETIMEDOUT)
		return remember_refusal(c, file, ch, ch->error);
	cgrecord_take_back(&files->records, c, file, ch->devno, recorded);
	if (ch->error == -ENOMEM)
		return -ENOMEM;
	if (!is_recorded)
		return refuse_unrecorded(c, file, ch, line);
	if (ch->is_attempt && cgchange_is_untaken(ch))
		return 0;
	log_failure(level_of_failure(c, file, ch), ch->error, c, file, line);
	return is_gone(ch->error) ? 0
				  : remember_refusal(c, file, ch, ch->error);
}

/* Does a line have the written values? Other programs may have changed other limits in it. */
static bool has_taken(enum cgfile file, const struct cgchange *ch,
		      const struct cgvalue *was, const struct cgvalue *is)
{
	const struct cgformat *f = cgformat(file);
	struct cgvalue unset = cgvalue_unset(file);
	const struct cgvalue *wanted = &ch->value;

	/* The kernel shows its own default. */
	if (f->owns_default && ch->devno == CGFILE_DEFAULT &&
	    cgvalue_equal(wanted, &unset))
		return true;
	for (size_t i = 0; i < CGFILE_NUMBERS; i++)
		if (is->number[i] != wanted->number[i] &&
		    !(f->is_merged && wanted->number[i] == was->number[i]))
			return false;
	return true;
}

/* The kernel may accept a write and do something else, or another program may have written
 * since.
 */
static int check_line(struct cgfiles *files, struct cgroup *c,
		      const struct cglines *before, const struct cglines *after,
		      struct cgchange *ch)
{
	struct cgvalue was = cglines_get(before, ch->devno);
	struct cgvalue is = cglines_get(after, ch->devno);
	_cleanup_free_ char *wrote =
		cgline_text(before->file, ch->devno, ch->value);
	_cleanup_free_ char *old = cgline_text(before->file, ch->devno, was);
	_cleanup_free_ char *new = cgline_text(before->file, ch->devno, is);
	const char *name = name_of(before->file);

	if (!wrote || !old || !new)
		return -ENOMEM;
	if (!has_taken(before->file, ch, &was, &is)) {
		ch->error = -EIO;
		log_event(EVENT_WEIGHT_REFUSED,
			  level_of_failure(c, before->file, ch),
			  EVENT_FIELDS({ "SUTRO_CGROUP", c->path },
				       { "SUTRO_FILE", name }),
			  "%s: wrote \"%s\" to %s, but read back \"%s\".",
			  c->shown, wrote, name, new);
		return remember_refusal(c, before->file, ch, 0);
	}
	forget_refusal(c, before->file, ch->devno);
	log_write(ch->is_routine ? LOG_DEBUG : LOG_INFO, 0,
		  "%s: %s \"%s\" -> \"%s\"%s%s", c->shown, name, old, new,
		  ch->reason ? ": " : "", ch->reason ?: ".");
	if (files->changed)
		files->changed(c, ch, before, after, files->userdata);
	return 0;
}

static int read_back(struct cgfiles *files, struct cgroup *c,
		     const struct cglines *before, struct cgchange *changes,
		     size_t n)
{
	const struct cgformat *f = cgformat(before->file);
	struct cglines after = {};
	int err;

	if (f->has_echo)
		c->echo = hash_of(c, f->name);
	err = cgfile_read(c, before->file, &after);
	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; i < n && !err; i++)
		if (changes[i].written)
			err = check_line(files, c, before, &after, &changes[i]);
	cglines_done(&after);
	return err;
}

int cgfile_write(struct cgfiles *files, struct cgroup *c,
		 const struct cglines *before, struct cgchange *changes,
		 size_t n)
{
	enum cgfile file = before->file;
	bool written = false;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		struct cgchange *ch = &changes[i];
		struct cgvalue was = cglines_get(before, ch->devno);
		const struct cgrefusal *refusal =
			find_refusal(c, file, ch->devno);

		ch->written = false;
		ch->error = 0;
		ch->is_of_record = false;
		if (cgvalue_equal(&was, &ch->value))
			continue;
		if (refusal && cgvalue_equal(&refusal->value, &ch->value)) {
			ch->error = refusal->error ?: -EIO;
			ch->is_of_record = refusal->is_of_record;
		} else {
			err = write_line(files, c, before, ch);
		}
		written |= ch->written;
	}
	if (!err && written)
		err = read_back(files, c, before, changes, n);
	for (size_t i = 0; i < n && !err; i++)
		follow_record(files, c, before, &changes[i]);
	return err;
}

/* ---- withdrawing ---- */

/** struct changes - a growing list */
struct changes {
	struct cgchange *items;
	size_t n;
};

static int add_change(struct changes *l, dev_t devno, struct cgvalue value,
		      bool is_routine)
{
	struct cgchange *grown =
		reallocarray(l->items, l->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	l->items = grown;
	grown[l->n++] = (struct cgchange){ .devno = devno,
					   .value = value,
					   .reason = "restored",
					   .is_routine = is_routine };
	return 0;
}

static bool is_kept(const struct cgchange *keep, size_t n, dev_t devno)
{
	for (size_t i = 0; i < n; i++)
		if (keep[i].devno == devno)
			return true;
	return false;
}

/* Lines with a recorded value get it back. */
static int add_recorded(struct changes *l, const struct cgfiles *files,
			const struct cgroup *c, const struct cglines *present,
			const struct cgchange *keep, size_t n, bool is_routine)
{
	const struct record_subject *s =
		cgrecord_find(&files->records, c, present->file);
	int err = 0;

	for (size_t i = 0; s && i < s->n && !err; i++) {
		dev_t devno = s->lines[i].devno;

		if (!is_kept(keep, n, devno))
			err = add_change(l, devno,
					 cgrecord_of_others(&files->records, c,
							    present, devno),
					 is_routine);
	}
	return err;
}

/* In a file without records, withdraw all lines of devices; @at_end: and the default line if it is
 * the daemon's. The kernel shows a number for that, set or not, so it is written in any case.
 */
static int add_present(struct changes *l, const struct cglines *present,
		       const struct cgchange *keep, size_t n, bool at_end)
{
	bool with_default = at_end && cgformat(present->file)->owns_default;
	int err = 0;

	for (size_t i = 0; i < present->n_lines && !err; i++) {
		dev_t devno = present->lines[i].devno;

		if (is_kept(keep, n, devno) ||
		    (devno == CGFILE_DEFAULT && !with_default))
			continue;
		err = add_change(l, devno, cgvalue_unset(present->file),
				 at_end);
		/* A deep cgroup takes no weight. */
		if (!err)
			l->items[l->n - 1].is_attempt = devno == CGFILE_DEFAULT;
	}
	return err;
}

static int withdraw(struct cgfiles *files, struct cgroup *c, enum cgfile file,
		    const struct cgchange *keep, size_t n, bool at_end)
{
	bool has_record = cgformat(file)->record;
	struct cglines present = {};
	struct changes l = {};
	int err;

	if (has_record && !cgrecord_find(&files->records, c, file))
		return 0;
	err = cgfile_read(c, file, &present);
	if (!err && has_record)
		err = add_recorded(&l, files, c, &present, keep, n, at_end);
	else if (!err)
		err = add_present(&l, &present, keep, n, at_end);
	if (!err && l.n)
		err = cgfile_write(files, c, &present, l.items, l.n);
	cglines_done(&present);
	free(l.items);
	return err == -ENOMEM ? err : 0;
}

int cgfile_withdraw(struct cgfiles *files, struct cgroup *c, enum cgfile file,
		    const struct cgchange *keep, size_t n_keep)
{
	return withdraw(files, c, file, keep, n_keep, false);
}

int cgfile_set(struct cgfiles *files, struct cgroup *c, enum cgfile file,
	       struct cgchange *changes, size_t n)
{
	struct cglines present = {};
	int err = cgfile_withdraw(files, c, file, changes, n);

	if (err || !n)
		return err;
	err = cgfile_read(c, file, &present);
	if (!err)
		err = cgfile_write(files, c, &present, changes, n);
	cglines_done(&present);
	return err == -ENOMEM ? err : 0;
}

int cgfiles_restore(struct cgfiles *files, struct cgroup *top)
{
	int err = 0;

	if (files->dry_run)
		return 0;
	for (struct cgroup *c = top; c && !err; c = cgroup_next(top, c)) {
		/* No later comparison would write these lines again. */
		cgfile_retry(c);
		for (enum cgfile f = 0; f < CGFILES && !err; f++)
			err = withdraw(files, c, f, NULL, 0, true);
	}
	return err;
}

/* ---- beginning and end ---- */

int cgfiles_init(struct cgfiles *files, const struct roots *roots, bool dry_run)
{
	*files = (struct cgfiles){ .dry_run = dry_run };
	return cgrecords_open(&files->records, roots);
}

void cgfiles_done(struct cgfiles *files)
{
	cgrecords_done(&files->records);
	*files = (struct cgfiles){};
}
