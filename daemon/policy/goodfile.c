/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The last good versions of the files of units. Units come and go, and a unit that starts is a new
 * layer; instances of a template share one file. So the files are kept by path:
 *
 *	j@.service	Weight=7	j@1.service starts
 *	j@.service	Weight=x	j@2.service starts, and has Weight=7
 *
 * Nearly all files have no section [X-Sutro], and are not kept.
 */

#include <unistd.h>

#include "policy/goodfile.h"

/* The number of files that sort before @path. */
static size_t position(const struct goodfiles *l, const char *path)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(l->items[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct goodfiles *l, size_t i, const char *path)
{
	return i < l->n && streq(l->items[i].path, path);
}

static void remove_at(struct goodfiles *l, size_t i)
{
	policyfile_done(&l->items[i]);
	l->n--;
	memmove(&l->items[i], &l->items[i + 1], (l->n - i) * sizeof(*l->items));
}

/* Make room for a file at place @i. */
static int insert(struct goodfiles *l, size_t i, const struct policyfile *f)
{
	struct policyfile *grown,
		new = { .path = strdup(f->path), .kind = f->kind };

	grown = new.path ? reallocarray(l->items, l->n + 1, sizeof(*grown))
			 : NULL;
	if (!grown) {
		free(new.path);
		return -ENOMEM;
	}
	l->items = grown;
	memmove(&grown[i + 1], &grown[i], (l->n - i) * sizeof(*grown));
	grown[i] = new;
	l->n++;
	return 0;
}

int goodfiles_take(const struct goodfiles *l, struct policyfile *f)
{
	size_t i = position(l, f->path);

	return is_at(l, i, f->path) ? policyfile_copy(f, &l->items[i]) : 0;
}

int goodfiles_keep(struct goodfiles *l, const struct policyfile *f)
{
	size_t i = position(l, f->path);
	int err = 0;

	if (!f->promises.n) {
		if (is_at(l, i, f->path))
			remove_at(l, i);
		return 0;
	}
	if (!is_at(l, i, f->path))
		err = insert(l, i, f);
	return err ?: policyfile_copy(&l->items[i], f);
}

void goodfiles_drop_removed(struct goodfiles *l)
{
	for (size_t i = l->n; i-- > 0;)
		if (access(l->items[i].path, F_OK) < 0 && errno == ENOENT)
			remove_at(l, i);
}

void goodfiles_done(struct goodfiles *l)
{
	for (size_t i = 0; i < l->n; i++)
		policyfile_done(&l->items[i]);
	free(l->items);
	*l = (struct goodfiles){};
}
