/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A file and its drop-ins, and lists of such.
 *
 *	db.policy		[Match] Unit=db.service
 *				ReadIOPSMin=/srv 100
 *				ReadIOPSMin=/home 50
 *	db.policy.d/10.conf	ReadIOPSMin=/srv 200
 *	db.policy.d/20.conf	Unit=mirror.service
 *
 * give db.service and mirror.service 200 on /srv and 50 on /home together; the 100 are
 * replaced. An empty assignment in a drop-in removes earlier settings of the same
 * layer, not those of another.
 *
 * While a file has mistakes, the last version of that name without mistakes stays in
 * force, whichever folder it was in. So a new file in /etc with a typing error does not
 * end the promises of the vendor's file.
 */

#include <limits.h>

#include "policy/layer.h"

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int layer_add_file(struct layer *l, const char *path, enum policyfile_kind kind)
{
	struct policyfile *grown, f = { .path = strdup(path), .kind = kind };

	grown = f.path ? reallocarray(l->files, l->n_files + 1, sizeof(f))
		       : NULL;
	if (!grown) {
		free(f.path);
		return -ENOMEM;
	}
	l->files = grown;
	grown[l->n_files++] = f;
	return 0;
}

int layer_give(struct layer *l, const char *text)
{
	struct policyfile *f = &l->files[l->n_files - 1];

	free(f->given);
	f->given = strdup(text);
	return f->given ? 0 : -ENOMEM;
}

int layer_freeze(struct layer *l, const struct layer *present)
{
	struct policyfile *f = &l->files[l->n_files - 1];

	for (size_t i = 0; present && i < present->n_files; i++)
		if (streq(present->files[i].path, f->path)) {
			f->frozen = true;
			return policyfile_copy(f, &present->files[i]);
		}
	return 0;
}

/* A unit has drop-ins in several folders (db.service.d, service.d) that may have
 * the same name; their paths distinguish them.
 */
static bool is_same(const struct policyfile *f, const struct policyfile *old)
{
	if (!old->path || f->kind != old->kind)
		return false;
	return f->kind == POLICYFILE_UNIT
		       ? streq(f->path, old->path)
		       : streq(file_name(f->path), file_name(old->path));
}

static void inherit(struct policyfile *f, struct layer *before)
{
	for (size_t i = 0; before && i < before->n_files; i++) {
		struct policyfile *old = &before->files[i];

		if (is_same(f, old)) {
			char *path = f->path;

			free(old->path);
			*f = *old;
			f->path = path;
			*old = (struct policyfile){};
			return;
		}
	}
}

/* A drop-in has no effect if its policy file is missing or masked. */
static bool is_void(const struct layer *l)
{
	return l->n_files && l->files[0].kind == POLICYFILE_POLICY &&
	       (l->files[0].mask || !l->files[0].good);
}

static int settle(struct layer *l)
{
	int err = 0;

	for (size_t i = 0; i < l->n_files && !err && !is_void(l); i++) {
		const struct policyfile *f = &l->files[i];

		err = match_append(&l->match, &f->match);
		for (size_t j = 0; j < f->promises.n && !err; j++)
			err = promises_apply(&l->promises,
					     &f->promises.items[j],
					     &l->displaced);
	}
	return err;
}

int layer_read(struct layer *l, struct layer *before, char ***new_errors)
{
	int err = 0;

	for (size_t i = 0; i < l->n_files && !err; i++) {
		struct policyfile *f = &l->files[i];

		if (f->frozen)
			continue;
		if (!f->good)
			inherit(f, before);
		err = policyfile_read(f, new_errors);
		if (err == -ENOENT) {
			policyfile_clear(f);
			err = 0;
		}
		if (err == -EBADMSG)
			err = 0;
	}
	return err ?: settle(l);
}

bool layer_is_empty(const struct layer *l)
{
	for (size_t i = 0; i < l->n_files; i++)
		if (l->files[i].errors || l->files[i].promises.n)
			return false;
	return true;
}

void layer_done(struct layer *l)
{
	for (size_t i = 0; i < l->n_files; i++)
		policyfile_done(&l->files[i]);
	free(l->files);
	free(l->name);
	match_done(&l->match);
	promises_done(&l->promises);
	promises_done(&l->displaced);
	*l = (struct layer){};
}

/* ---- lists ---- */

/* The number of layers that sort before @name. */
static size_t position(const struct layers *l, const char *name)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(l->items[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct layer *layers_find(const struct layers *l, const char *name)
{
	size_t i = position(l, name);

	return i < l->n && streq(l->items[i].name, name) ? &l->items[i] : NULL;
}

int layers_put(struct layers *l, struct layer *layer)
{
	struct layer *old = layers_find(l, layer->name), *grown;
	size_t i = position(l, layer->name);

	if (old) {
		layer_done(old);
	} else {
		grown = reallocarray(l->items, l->n + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->items = grown;
		memmove(&grown[i + 1], &grown[i], (l->n - i) * sizeof(*grown));
		l->n++;
	}
	l->items[i] = *layer;
	*layer = (struct layer){};
	return 0;
}

void layers_remove(struct layers *l, const char *name)
{
	struct layer *old = layers_find(l, name);
	size_t i;

	if (!old)
		return;
	i = old - l->items;
	layer_done(old);
	l->n--;
	memmove(old, old + 1, (l->n - i) * sizeof(*old));
}

int layers_move(struct layers *to, struct layers *from, const char *name)
{
	struct layer *old = layers_find(from, name);
	size_t i;
	int err;

	if (!old)
		return 0;
	i = old - from->items;
	err = layers_put(to, old);
	if (err)
		return err;
	from->n--;
	memmove(old, old + 1, (from->n - i) * sizeof(*old));
	return 0;
}

void layers_done(struct layers *l)
{
	for (size_t i = 0; i < l->n; i++)
		layer_done(&l->items[i]);
	free(l->items);
	*l = (struct layers){};
}

int layers_list(const struct layers *l, const char *suffix,
		struct dropins *found)
{
	int err = 0;

	for (size_t i = 0; i < l->n && !err; i++) {
		_cleanup_free_ char *name = NULL;

		name = asprintf_or_null("%s%s", l->items[i].name, suffix);
		err = name ? dropins_append(found, name,
					    l->items[i].files[0].path)
			   : -ENOMEM;
	}
	return err;
}

int layer_list_dropins(const struct layer *present, struct dropins *found)
{
	int err = 0;

	for (size_t i = 1; i < present->n_files && !err; i++) {
		const char *path = present->files[i].path;
		const char *slash = strrchr(path, '/');

		err = dropins_append(found, slash ? slash + 1 : path, path);
	}
	return err;
}

int layers_errors(const struct layers *l, char ***errors)
{
	int err = 0;

	for (size_t i = 0; i < l->n; i++)
		for (size_t j = 0; j < l->items[i].n_files; j++) {
			char **e = l->items[i].files[j].errors;

			/* Instances of a template share its mistakes. */
			for (; e && *e && !err; e++)
				if (!strv_contains(*errors, *e))
					err = strv_add(errors, *e);
		}
	return err;
}

/* Add the path of a file with a mistake, as the mistake has it. */
static int add_mistaken(char ***list, const struct policyfile *f)
{
	_cleanup_(text_freep) struct text path = {};
	int err = text_add_plain(&path, f->path, PATH_MAX);

	return err || strv_contains(*list, path.p) ? err
						   : strv_add(list, path.p);
}

int layers_mistaken(const struct layers *l, char ***replaced, char ***unused)
{
	int err = 0;

	for (size_t i = 0; i < l->n; i++)
		for (size_t j = 0; j < l->items[i].n_files && !err; j++) {
			const struct policyfile *f = &l->items[i].files[j];

			if (f->errors)
				err = add_mistaken(f->good ? replaced : unused,
						   f);
		}
	return err;
}
