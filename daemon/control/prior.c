/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Costs of floors, remembered beyond the units that had them.
 *
 * A unit that starts has no traffic by which its floor could be measured. Most units
 * are like a former one: the same service after a restart, another instance of its
 * template (job@1.service, job@2.service), another unit that the same line of a policy
 * is about (run-u7.service by "[Match] Unit=run-*.service"). Its first weight follows
 * from the cost of the former unit on the same device, and is corrected within a second.
 *
 * The costs are kept in /run/sutro/learnt over a restart of the daemon, a line for a
 * promise on a leaf:
 *
 *	KEY DEVICE LEAF[/DISKSEQ] COST USEC UNIT TAB SOURCE
 */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "control/prior.h"
#include "host/util.h"

static void prior_done(struct prior *p)
{
	free(p->unit);
	free(p->source);
}

void priors_done(struct priors *l)
{
	for (size_t i = 0; i < l->n; i++)
		prior_done(&l->items[i]);
	free(l->items);
	*l = (struct priors){};
}

/* "job@1.service" and "job@2.service" */
static bool same_template(const char *a, const char *b)
{
	const char *at = strchr(a, '@'), *type_a = strrchr(a, '.');
	const char *type_b = strrchr(b, '.');

	return at && type_a > at && type_b && streq(type_a, type_b) &&
	       strncmp(a, b, at - a + 1) == 0;
}

enum likeness {
	LIKENESS_NONE,
	LIKENESS_STATEMENT,
	LIKENESS_TEMPLATE,
	LIKENESS_UNIT,
};

static enum likeness likeness(const struct prior *a, const struct prior *b)
{
	if (a->key != b->key || a->device != b->device || a->leaf != b->leaf ||
	    a->leaf_seq != b->leaf_seq)
		return LIKENESS_NONE;
	if (streq(a->unit, b->unit))
		return LIKENESS_UNIT;
	if (same_template(a->unit, b->unit))
		return LIKENESS_TEMPLATE;
	return *a->source && streq(a->source, b->source) ? LIKENESS_STATEMENT
							 : LIKENESS_NONE;
}

const struct prior *priors_find(const struct priors *l,
				const struct prior *like)
{
	enum likeness most = LIKENESS_NONE;
	const struct prior *found = NULL;

	for (size_t i = 0; i < l->n; i++) {
		const struct prior *p = &l->items[i];
		enum likeness now = likeness(p, like);

		if (now == LIKENESS_NONE || now < most ||
		    p->usec + PRIOR_AGE_USEC < like->usec ||
		    (now == most && p->usec <= found->usec))
			continue;
		most = now;
		found = p;
	}
	return found;
}

static struct prior *find_own(const struct priors *l, const struct prior *p)
{
	for (size_t i = 0; i < l->n; i++)
		if (likeness(&l->items[i], p) == LIKENESS_UNIT)
			return &l->items[i];
	return NULL;
}

static struct prior *find_oldest(const struct priors *l)
{
	struct prior *oldest = l->items;

	for (size_t i = 1; i < l->n; i++)
		if (l->items[i].usec < oldest->usec)
			oldest = &l->items[i];
	return oldest;
}

static int add(struct priors *l, const struct prior *p)
{
	struct prior *grown, new = *p;

	new.unit = strdup(p->unit);
	new.source = strdup(p->source);
	if (!new.unit || !new.source) {
		prior_done(&new);
		return -ENOMEM;
	}
	if (l->n == PRIORS_MAX) {
		grown = find_oldest(l);
		prior_done(grown);
		*grown = new;
		return 0;
	}
	grown = reallocarray(l->items, l->n + 1, sizeof(*grown));
	if (!grown) {
		prior_done(&new);
		return -ENOMEM;
	}
	l->items = grown;
	grown[l->n++] = new;
	return 0;
}

int priors_set(struct priors *l, const struct prior *p)
{
	const struct prior *like = priors_find(l, p);
	struct prior *own;

	if (like && like->cost_s == p->cost_s)
		return 0;
	own = find_own(l, p);
	if (!own)
		return add(l, p);
	own->cost_s = p->cost_s;
	own->usec = p->usec;
	return 0;
}

/* ---- the file ---- */

static int load_line(struct priors *l, char *line)
{
	char key[32], device[32], leaf[64], *tab, *seq;
	struct prior p = {};
	int at = 0;

	if (sscanf(line, "%31s %31s %63s %lf %" SCNu64 " %n", key, device, leaf,
		   &p.cost_s, &p.usec, &at) != 5 ||
	    !at || !(p.cost_s > 0))
		return -EBADMSG;
	seq = strchr(leaf, '/');
	if (seq)
		*seq++ = '\0';
	tab = strchr(line + at, '\t');
	if (!tab || promise_key_from_name(key, &p.key) < 0 ||
	    parse_devno(device, &p.device) < 0 ||
	    parse_devno(leaf, &p.leaf) < 0 ||
	    (seq && parse_u64(seq, &p.leaf_seq) < 0))
		return -EBADMSG;
	*tab = '\0';
	p.unit = line + at;
	p.source = tab + 1;
	return find_own(l, &p) ? 0 : add(l, &p);
}

int priors_load(struct priors *l, const char *path)
{
	_cleanup_free_ char *text = NULL;
	char *save = NULL;
	int err;

	err = read_file_at(AT_FDCWD, path, &text);
	if (err)
		return err == -ENOMEM ? err : 0;
	for (char *line = strtok_r(text, "\n", &save); line && err != -ENOMEM;
	     line = strtok_r(NULL, "\n", &save))
		err = load_line(l, line);
	return err == -ENOMEM ? err : 0;
}

int priors_save(const struct priors *l, const char *path)
{
	_cleanup_free_ char *new = asprintf_or_null("%s.new", path);
	int err = 0;
	FILE *f;

	if (!new)
		return -ENOMEM;
	f = fopen(new, "we");
	if (!f)
		return -errno;
	/* Nine digits would make a cost that was read look like a new one. */
	for (size_t i = 0; i < l->n; i++) {
		const struct prior *p = &l->items[i];

		fprintf(f,
			"%s %u:%u %u:%u/%" PRIu64 " %.17g %" PRIu64 " %s\t%s\n",
			promise_info(p->key)->name, major(p->device),
			minor(p->device), major(p->leaf), minor(p->leaf),
			p->leaf_seq, p->cost_s, p->usec, p->unit, p->source);
	}
	if (ferror(f))
		err = -EIO;
	if (fclose(f) != 0 && !err)
		err = -errno;
	if (!err && rename(new, path) < 0)
		err = -errno;
	return err;
}
