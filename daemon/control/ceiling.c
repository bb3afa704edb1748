/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Ceilings: ReadBandwidthMax= and its like become lines of io.max.
 *
 *	ReadBandwidthMax=/dev/vg/db 50M
 *	WriteIOPSMax=/dev/vg/db 200
 *
 *	253:0 rbps=50000000 wbps=max riops=max wiops=200
 *
 * The kernel throttles bios where they are submitted, so the line is for the logical
 * device itself and says exactly what is meant. A partition has no line of its own:
 * there it is its disk. Where the kernel takes no line for the device, its leaves get
 * one each: the whole value where each leaf carries all (writes to a mirror), else
 * an equal part.
 *
 * Others write to io.max, too: IOReadBandwidthMax= of systemd. A ceiling of ours
 * replaces what the line said, which is remembered in /run/sutro/ceilings and
 * comes back when the ceiling goes.
 */

#include <inttypes.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "control/ceiling.h"
#include "host/topology.h"
#include "policy/policy.h"

#define FILE_NAME "io.max"

enum limit {
	LIMIT_RBPS,
	LIMIT_WBPS,
	LIMIT_RIOPS,
	LIMIT_WIOPS,
	LIMITS,
};

static const struct {
	const char *name;
	enum promise_key key;
} limits[] = {
	[LIMIT_RBPS] = { "rbps=", PROMISE_READ_BANDWIDTH_MAX },
	[LIMIT_WBPS] = { "wbps=", PROMISE_WRITE_BANDWIDTH_MAX },
	[LIMIT_RIOPS] = { "riops=", PROMISE_READ_IOPS_MAX },
	[LIMIT_WIOPS] = { "wiops=", PROMISE_WRITE_IOPS_MAX },
};

/** struct line - limits of one device; PROMISE_INFINITY is "max" */
struct line {
	dev_t devno;
	uint64_t limit[LIMITS];
};

/** struct wanted - lines that follow from the promises of a cgroup */
struct wanted {
	struct line *lines;
	size_t n;
};

static struct line *find_line(const struct wanted *w, dev_t devno)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->lines[i].devno == devno)
			return &w->lines[i];
	return NULL;
}

/* The lower of two ceilings for one device holds. */
static int want(struct wanted *w, dev_t devno, enum limit limit, uint64_t value)
{
	struct line *l = find_line(w, devno), *grown;

	if (!l) {
		grown = reallocarray(w->lines, w->n + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		w->lines = grown;
		l = &grown[w->n++];
		l->devno = devno;
		for (size_t i = 0; i < LIMITS; i++)
			l->limit[i] = PROMISE_INFINITY;
	}
	if (value < l->limit[limit])
		l->limit[limit] = value;
	return 0;
}

/* The kernel counts IOPS in 32 bits and says "max" for more. */
static bool is_limit(const struct promise *p)
{
	return promise_info(p->key)->unit == PROMISE_UNIT_BYTES ||
	       p->value < UINT32_MAX;
}

static int want_all(struct wanted *w, const struct promises *promises)
{
	int err = 0;

	for (size_t i = 0; i < promises->n && !err; i++) {
		const struct promise *p = &promises->items[i];
		const struct device *d = p->device;

		if (!d || !d->n_leaves || !is_limit(p))
			continue;
		if (d->kind == DEVICE_PARTITION)
			d = d->leaves[0];
		for (size_t l = 0; l < LIMITS && !err; l++)
			if (limits[l].key == p->key)
				err = want(w, d->devno, l, p->value);
	}
	return err;
}

/* ---- lines as text ---- */

static void print_line(const struct line *l, char *text, size_t size)
{
	size_t n =
		snprintf(text, size, "%u:%u", major(l->devno), minor(l->devno));

	for (size_t i = 0; i < LIMITS; i++) {
		if (l->limit[i] == PROMISE_INFINITY)
			n += snprintf(text + n, size - n, " %smax",
				      limits[i].name);
		else
			n += snprintf(text + n, size - n, " %s%" PRIu64,
				      limits[i].name, l->limit[i]);
	}
}

static int parse_line(char *text, struct line *ret)
{
	char *rest = NULL, *word = strtok_r(text, " ", &rest);
	struct line l;

	for (size_t i = 0; i < LIMITS; i++)
		l.limit[i] = PROMISE_INFINITY;
	if (!word || parse_devno(word, &l.devno) < 0)
		return -EINVAL;
	while ((word = strtok_r(NULL, " ", &rest)))
		for (size_t i = 0; i < LIMITS; i++) {
			const char *v = startswith(word, limits[i].name);

			/* "max" is what it is already. */
			if (v)
				parse_u64(v, &l.limit[i]);
		}
	*ret = l;
	return 0;
}

/* What io.max of @c says about @devno; no line: no limits. */
static int present_line(const struct cgroup *c, dev_t devno, struct line *ret)
{
	_cleanup_free_ char *text = NULL;
	char *rest = NULL;
	int err = cgroup_read(c, FILE_NAME, &text);

	if (err)
		return err;
	*ret = (struct line){ .devno = devno };
	for (size_t i = 0; i < LIMITS; i++)
		ret->limit[i] = PROMISE_INFINITY;
	for (char *l = strtok_r(text, "\n", &rest); l;
	     l = strtok_r(NULL, "\n", &rest)) {
		struct line line;

		if (parse_line(l, &line) == 0 && line.devno == devno)
			*ret = line;
	}
	return 0;
}

static bool same(const struct line *a, const struct line *b)
{
	return memcmp(a->limit, b->limit, sizeof(a->limit)) == 0;
}

/* ---- writing ---- */

static char *record_key(const struct cgroup *c, dev_t devno)
{
	return asprintf_or_null("%u:%u %s", major(devno), minor(devno),
				c->path);
}

/* Remember what was there, write, read back. */
static int write_line(struct ceilings *s, struct cgroup *c,
		      const struct line *before, const struct line *want)
{
	_cleanup_free_ char *key = record_key(c, want->devno);
	char old[160], new[160];
	struct line now;
	bool is_new;
	int err = 0;

	if (!key)
		return -ENOMEM;
	print_line(before, old, sizeof(old));
	print_line(want, new, sizeof(new));
	if (s->dry_run) {
		log_info("%s: would write \"%s\" to " FILE_NAME ".", c->path,
			 new);
		return 0;
	}
	is_new = !record_get(&s->record, key);
	if (is_new)
		err = record_set(&s->record, key, old);
	if (err)
		return err;
	err = cgroup_write(c, FILE_NAME, new);
	/* What was not written is not ours to give back. */
	if (err && is_new && record_drop(&s->record, key) < 0)
		log_debug("%s is still in %s.", key, s->record.path);
	if (!err)
		err = present_line(c, want->devno, &now);
	if (err)
		return err;
	if (!same(&now, want))
		return -EIO;
	log_info("%s: " FILE_NAME " \"%s\", was \"%s\".", c->path, new, old);
	return 0;
}

static int give_back(struct ceilings *s, struct cgroup *c, dev_t devno)
{
	_cleanup_free_ char *key = record_key(c, devno), *old = NULL;
	const char *value;
	int err;

	if (!key)
		return -ENOMEM;
	value = record_get(&s->record, key);
	if (!value || s->dry_run)
		return 0;
	old = strdup(value);
	if (!old)
		return -ENOMEM;
	err = cgroup_write(c, FILE_NAME, old);
	if (err && err != -ENOENT && err != -ENODEV)
		log_warning_errno(err,
				  "%s: cannot write \"%s\" back to " FILE_NAME
				  ": %m",
				  c->path, old);
	else if (!err)
		log_info("%s: " FILE_NAME " \"%s\" again.", c->path, old);
	return record_drop(&s->record, key);
}

/* All leaves carry all that is written to a mirror. */
static bool is_mirror(const struct device *d)
{
	return d->kind == DEVICE_RAID1 || d->kind == DEVICE_MIRROR;
}

static int apply_at_leaves(struct ceilings *s, struct cgroup *c,
			   const struct device *d, const struct line *want)
{
	int err = 0;

	for (size_t i = 0; i < d->n_leaves && !err; i++) {
		struct line part = *want, before;

		part.devno = d->leaves[i]->devno;
		for (size_t l = 0; l < LIMITS; l++) {
			bool write = l == LIMIT_WBPS || l == LIMIT_WIOPS;

			if (part.limit[l] == PROMISE_INFINITY ||
			    (write && is_mirror(d)))
				continue;
			part.limit[l] =
				(part.limit[l] + d->n_leaves - 1) / d->n_leaves;
		}
		err = present_line(c, part.devno, &before);
		if (!err && !same(&before, &part))
			err = write_line(s, c, &before, &part);
	}
	return err;
}

static int apply_line(struct ceilings *s, struct cgroup *c,
		      const struct line *want)
{
	const struct device *d = topology_by_devno(s->topology, want->devno);
	struct line before;
	int err;

	err = present_line(c, want->devno, &before);
	if (err || same(&before, want))
		return err;
	err = write_line(s, c, &before, want);
	if ((err == -EINVAL || err == -ENODEV || err == -EOPNOTSUPP) && d &&
	    !d->leaf)
		err = apply_at_leaves(s, c, d, want);
	return err;
}

static bool is_wanted(const struct ceilings *s, const struct wanted *w,
		      dev_t devno)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct device *d =
			topology_by_devno(s->topology, w->lines[i].devno);

		if (w->lines[i].devno == devno)
			return true;
		for (size_t l = 0; d && !d->leaf && l < d->n_leaves; l++)
			if (d->leaves[l]->devno == devno)
				return true;
	}
	return false;
}

/* Is the record "MAJ:MIN CGROUP TAB ..." about @c? */
static bool is_about(const char *line, const struct cgroup *c, dev_t *ret)
{
	size_t length = strlen(c->path), blank = strcspn(line, " ");
	char devno[32];

	if (blank >= sizeof(devno) ||
	    strncmp(line + blank + 1, c->path, length) ||
	    line[blank + 1 + length] != '\t')
		return false;
	memcpy(devno, line, blank);
	devno[blank] = '\0';
	return parse_devno(devno, ret) == 0;
}

/* Lines that were ours and are wanted no more. */
static int withdraw(struct ceilings *s, struct cgroup *c,
		    const struct wanted *w)
{
	int err = 0;

	for (size_t i = strv_length(s->record.lines); i-- > 0 && !err;) {
		dev_t devno;

		if (is_about(s->record.lines[i], c, &devno) &&
		    !is_wanted(s, w, devno))
			err = give_back(s, c, devno);
	}
	return err;
}

void ceilings_cgroup_gone(struct ceilings *s, const struct cgroup *c)
{
	for (size_t i = strv_length(s->record.lines); i-- > 0;) {
		_cleanup_free_ char *key = NULL;
		dev_t devno;

		if (!is_about(s->record.lines[i], c, &devno))
			continue;
		key = record_key(c, devno);
		if (!key || record_drop(&s->record, key) < 0)
			log_debug("%s is still in %s.", c->path,
				  s->record.path);
	}
}

static int settle(struct ceilings *s, struct cgroup *c, const struct wanted *w)
{
	int err = s->record.lines ? withdraw(s, c, w) : 0;

	for (size_t i = 0; i < w->n && !err; i++) {
		char text[160];

		err = apply_line(s, c, &w->lines[i]);
		if (!err || err == -ENOMEM)
			continue;
		print_line(&w->lines[i], text, sizeof(text));
		if (err != -ENOENT && err != -ENODEV && !c->refused)
			log_warning_errno(
				err,
				"%s: cannot write \"%s\" to " FILE_NAME ": %m",
				c->path, text);
		c->refused = true;
		err = 0;
	}
	return err;
}

int ceilings_apply(struct ceilings *s, struct cgroup *c)
{
	struct wanted w = {};
	int err = want_all(&w, &c->policy->promises);

	if (!err && (w.n || s->record.lines))
		err = settle(s, c, &w);
	free(w.lines);
	return err == -ENOMEM ? err : 0;
}

int ceilings_restore(struct ceilings *s, struct cgroup *top)
{
	int err = 0;

	for (struct cgroup *c = top; c && err != -ENOMEM;
	     c = cgroup_next(top, c))
		err = withdraw(s, c, &(struct wanted){});
	return err;
}

int ceilings_init(struct ceilings *s, const struct roots *roots)
{
	*s = (struct ceilings){};
	return record_open(&s->record, roots, "ceilings");
}

void ceilings_done(struct ceilings *s)
{
	record_done(&s->record);
}
