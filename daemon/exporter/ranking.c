/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which cgroups have series: the number of these is the number of cgroups without a bound. Used time
 * is a sum since the boot, so the order changes slowly.
 */

#include "exporter/ranking.h"

static void forget(struct ranking *r)
{
	folders_done(&r->kept);
	for (size_t i = 0; i < r->n_promised; i++)
		free(r->promised[i]);
	free(r->promised);
	r->promised = NULL;
	r->n_promised = 0;
	r->n_omitted = 0;
}

void ranking_done(struct ranking *r)
{
	forget(r);
	*r = (struct ranking){};
}

static bool is_due(const struct ranking *r, const struct state_promise *p,
		   size_t n, uint64_t now_usec)
{
	if (!r->n_omitted || now_usec >= r->until_usec || n != r->n_promised)
		return true;
	for (size_t i = 0; i < n; i++)
		if (!streq(p[i].cgroup, r->promised[i]))
			return true;
	return false;
}

static int remember(struct ranking *r, const struct state_promise *p, size_t n)
{
	r->promised = calloc(n ?: 1, sizeof(*r->promised));
	if (!r->promised)
		return -ENOMEM;
	for (; r->n_promised < n; r->n_promised++) {
		char *cgroup = strdup(p[r->n_promised].cgroup);

		if (!cgroup)
			return -ENOMEM;
		r->promised[r->n_promised] = cgroup;
	}
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_rank(const void *a, const void *b)
{
	const struct folder *f = *(struct folder *const *)a;
	const struct folder *g = *(struct folder *const *)b;

	if (f->is_promised != g->is_promised)
		return f->is_promised ? -1 : 1;
	if (f->used != g->used)
		return f->used > g->used ? -1 : 1;
	return strcmp(folder_shown(f), folder_shown(g));
}

/* Those with counters, each shown path once; the number of them. */
static size_t find_used(const struct folders *l, struct folder **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->items[i]->is_used)
			ret[n++] = l->items[i];
	return n;
}

/* Set @is_kept of at most @most cgroups. Return: -ENOMEM or 0, with the number of others. */
static int choose(const struct folders *l, const struct state_promise *p,
		  size_t n_promises, size_t most, size_t *ret_omitted)
{
	_cleanup_free_ struct folder **used = calloc(l->n ?: 1, sizeof(*used));
	_cleanup_free_ const char **promised =
		calloc(n_promises ?: 1, sizeof(*promised));
	size_t n = used ? find_used(l, used) : 0;

	if (!used || !promised)
		return -ENOMEM;
	*ret_omitted = n > most ? n - most : 0;
	if (n > most) {
		for (size_t i = 0; i < n_promises; i++)
			promised[i] = p[i].cgroup;
		qsort(promised, n_promises, sizeof(*promised), by_text);
		for (size_t i = 0; i < n; i++) {
			const char *shown = folder_shown(used[i]);

			used[i]->is_promised =
				bsearch(&shown, promised, n_promises,
					sizeof(*promised), by_text);
		}
		qsort(used, n, sizeof(*used), by_rank);
	}
	for (size_t i = 0; i < n; i++)
		used[i]->is_kept = i < most;
	return 0;
}

/* Read the files of all cgroups, and choose. */
static int rank(struct ranking *r, int hierarchy, struct leaves *leaves,
		const struct state_promise *p, size_t n, struct uses *ret)
{
	int err;

	forget(r);
	err = folders_walk(hierarchy, &r->kept);
	err = err ?: uses_read(hierarchy, &r->kept, leaves, ret);
	err = err ?: choose(&r->kept, p, n, r->most, &r->n_omitted);
	r->has_others = ret->has_others;
	if (err || !r->n_omitted)
		return err;
	uses_filter(ret);
	folders_filter(&r->kept);
	return remember(r, p, n);
}

int ranking_read(struct ranking *r, int hierarchy, struct leaves *leaves,
		 const struct state_promise *promises, size_t n_promises,
		 uint64_t now_usec, struct uses *ret)
{
	bool due = is_due(r, promises, n_promises, now_usec);
	struct uses uses = {};
	int err = 0;

	if (!due) {
		err = uses_read(hierarchy, &r->kept, leaves, &uses);
		/* Which of them count others below is not known. */
		due = uses.has_others && !r->has_others;
	}
	if (due) {
		uses_done(&uses);
		err = rank(r, hierarchy, leaves, promises, n_promises, &uses);
		r->until_usec = now_usec + RANKING_USEC;
	}
	err = err ?: uses_read_weights(hierarchy, &uses);
	if (err) {
		uses_done(&uses);
		/* The next reading has a new choice. */
		forget(r);
		return err;
	}
	if (r->kept.are_shared)
		uses_merge(&uses);
	*ret = uses;
	return 0;
}
