/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * All settings of units and of cgroups that are no units, and those in force.
 *
 * Sources of settings of db.service, the weakest first:
 *
 *	1. policy.d/10-all.policy	Unit=*.service	Weight=100
 *	   policy.d/20-db.policy	Unit=db.service	ReadIOPSMin=/srv 100
 *	2. db.service, [X-Sutro]	Weight=300	ReadIOPSMin=/srv 200
 *	3. /etc/sutro/policy.control/db.service.policy	WriteIOPSMin=/srv 20
 *	4. /run/sutro/policy.control/db.service.policy	ReadIOPSMin=/srv 400
 *	5. clients of the bus
 *
 * For each key and path the strongest holds: Weight=300, 400 reads, 20 writes. Each
 * source is a layer (layer.c): a file with its drop-ins, the fragment of a unit with
 * its own. A reset removes settings of its own layer, not those of weaker ones. A file
 * that is masked or overridden by name in policy.d has no settings.
 *
 * A cgroup that is no unit, such as /batch/job_7, has the same sources but the second: Cgroup=
 * matches its path, and its control files are named after it (control_name()).
 *
 * Control files are found by their name, policies by globs; units without a section
 * [X-Sutro], nearly all, are not kept.
 */

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "host/store.h"
#include "policy/dropin.h"
#include "policy/goodfile.h"
#include "policy/layer.h"
#include "policy/policies.h"

/**
 * struct policies
 * @base: of a catalogue that policies_propose() makes: the catalogue that it was made from
 * @proposals: set while policies_propose() reads files
 * @good: of the files in @own, also of units that are gone
 */
struct policies {
	const struct roots *roots;
	const struct policies *base;
	struct proposals proposals;
	struct layers files;
	struct layers own;
	struct goodfiles good;
	struct layers control[POLICY_LIFETIMES];
};

int policies_new(const struct roots *roots, struct policies **ret)
{
	struct policies *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->roots = roots;
	*ret = p;
	return 0;
}

struct policies *policies_free(struct policies *p)
{
	if (!p)
		return NULL;
	layers_done(&p->files);
	layers_done(&p->own);
	goodfiles_done(&p->good);
	for (size_t i = 0; i < POLICY_LIFETIMES; i++)
		layers_done(&p->control[i]);
	free(p);
	return NULL;
}

void stated_done(struct stated *s)
{
	promises_done(&s->in_force);
	promises_done(&s->overridden);
	promises_done(&s->hidden);
}

/* ---- reading ---- */

/* @present: in a catalogue that is proposed the layer in force, whose files are not read again */
static int add_file(const struct policies *p, struct layer *layer,
		    const struct layer *present, const char *path,
		    enum policyfile_kind kind)
{
	const char *text = proposals_text(&p->proposals, path);
	int err = layer_add_file(layer, path, kind);

	if (err)
		return err;
	return text ? layer_give(layer, text) : layer_freeze(layer, present);
}

/* Takes over *name. */
static int put_layer(struct layers *l, struct layer *layer, char *name,
		     struct layers *before, char ***new_errors)
{
	int err;

	layer->name = name;
	if (!name)
		return -ENOMEM;
	err = layer_read(layer, layers_find(before, name), new_errors);
	return err ?: layers_put(l, layer);
}

static int add_dropins(const struct policies *p, struct layer *layer,
		       const struct layer *present, const char *name)
{
	_cleanup_free_ char *folder = asprintf_or_null("%s.d", name);
	struct dropins found = {};
	int err;

	if (!folder)
		return -ENOMEM;
	err = present ? layer_list_dropins(present, &found)
		      : dropins_list(p->roots->policy_dirs, folder, ".conf",
				     &found);
	if (!err)
		err = proposals_put(&p->proposals, POLICYFILE_DROPIN, folder,
				    &found);
	for (size_t i = 0; i < found.n && !err; i++)
		err = add_file(p, layer, present, found.items[i].path,
			       POLICYFILE_DROPIN);
	dropins_done(&found);
	return err;
}

/* A layer whose drop-ins cannot be listed stays in @l as it is in force. */
static int load_file(struct policies *p, struct layers *l,
		     const struct dropin *d, char ***new_errors)
{
	const struct layer *present =
		p->base ? layers_find(&p->base->files, d->name) : NULL;
	struct layer layer = {};
	int err = add_file(p, &layer, present, d->path, POLICYFILE_POLICY);

	if (!err) {
		err = add_dropins(p, &layer, present, d->name);
		if (err && err != -ENOMEM &&
		    layers_move(l, &p->files, d->name) < 0)
			err = -ENOMEM;
	}
	err = err
		      ?: put_layer(l, &layer, strdup(d->name), &p->files,
				   new_errors);
	layer_done(&layer);
	return err;
}

static int load_files(struct policies *p, char ***new_errors)
{
	struct dropins found = {};
	struct layers l = {};
	int err, also;

	err = p->base ? layers_list(&p->base->files, "", &found)
		      : dropins_list(p->roots->policy_dirs, "", ".policy",
				     &found);
	if (err)
		return err;
	err = proposals_put(&p->proposals, POLICYFILE_POLICY, "", &found);
	for (size_t i = 0; i < found.n && err != -ENOMEM; i++) {
		also = load_file(p, &l, &found.items[i], new_errors);
		err = err && also != -ENOMEM ? err : also;
	}
	dropins_done(&found);
	layers_done(&p->files);
	p->files = l;
	return err;
}

static const struct layer *present_control(const struct policies *p,
					   enum policy_lifetime lifetime,
					   const char *name)
{
	return p->base ? layers_find(&p->base->control[lifetime], name) : NULL;
}

static int load_control(struct policies *p, enum policy_lifetime lifetime,
			char ***new_errors)
{
	char *dirs[] = { (char *)controlfile_dir(p->roots, lifetime), NULL };
	struct layers l = {};
	struct dropins found = {};
	int err;

	err = p->base ? layers_list(&p->base->control[lifetime], ".policy",
				    &found)
		      : dropins_list(dirs, "", ".policy", &found);
	if (err)
		return err;
	/* Proposed files of other folders are persistent ones. */
	err = proposals_put(&p->proposals, POLICYFILE_CONTROL,
			    lifetime == POLICY_RUNTIME ? dirs[0] : "", &found);
	for (size_t i = 0; i < found.n && !err; i++) {
		const struct dropin *d = &found.items[i];
		_cleanup_free_ char *name = NULL;
		struct layer layer = {};

		name = strndup(d->name, strlen(d->name) - strlen(".policy"));
		err = name ? add_file(p, &layer,
				      present_control(p, lifetime, name),
				      d->path, POLICYFILE_CONTROL)
			   : -ENOMEM;
		err = err
			      ?: put_layer(&l, &layer, TAKE_PTR(name),
					   &p->control[lifetime], new_errors);
		layer_done(&layer);
	}
	dropins_done(&found);
	layers_done(&p->control[lifetime]);
	p->control[lifetime] = l;
	return err;
}

/* Read the files of a unit. Most units have no section for the daemon, and are not kept. */
static int put_own(struct policies *p, struct layer *layer, char ***new_errors)
{
	int err = 0;

	for (size_t i = 0; i < layer->n_files && !err; i++)
		err = goodfiles_take(&p->good, &layer->files[i]);
	err = err
		      ?: layer_read(layer, layers_find(&p->own, layer->name),
				    new_errors);
	for (size_t i = 0; i < layer->n_files && !err; i++)
		err = goodfiles_keep(&p->good, &layer->files[i]);
	if (!err && layer_is_empty(layer))
		layers_remove(&p->own, layer->name);
	else if (!err)
		err = layers_put(&p->own, layer);
	return err;
}

static int load_own(struct policies *p, const struct layer *own,
		    char ***new_errors)
{
	struct layer layer = { .name = strdup(own->name) };
	int err = layer.name ? 0 : -ENOMEM;

	for (size_t i = 0; i < own->n_files && !err; i++)
		err = layer_add_file(&layer, own->files[i].path,
				     POLICYFILE_UNIT);
	err = err ?: put_own(p, &layer, new_errors);
	layer_done(&layer);
	return err;
}

int policies_load_units(struct policies *p, char ***new_errors)
{
	int err = 0;

	/* From the end, because a layer may be removed. */
	for (size_t i = p->own.n; i-- > 0 && !err;)
		err = load_own(p, &p->own.items[i], new_errors);
	goodfiles_drop_removed(&p->good);
	return err;
}

int policies_load(struct policies *p, char ***new_errors)
{
	int err = load_files(p, new_errors), also;

	for (size_t i = 0; i < POLICY_LIFETIMES && err != -ENOMEM; i++) {
		also = load_control(p, i, new_errors);
		err = err ?: also;
	}
	also = err == -ENOMEM ? 0 : policies_load_units(p, new_errors);
	return err ?: also;
}

static int add_own_file(const struct policies *p, struct layer *layer,
			const char *path)
{
	_cleanup_free_ char *full = NULL;

	/* A drop-in of all slices is right for those below the root. */
	if (streq(layer->name, ROOT_SLICE) && strstr(path, "/slice.d/"))
		return 0;
	full = asprintf_or_null("%s%s", p->roots->prefix, path);
	return full ? layer_add_file(layer, full, POLICYFILE_UNIT) : -ENOMEM;
}

int policies_load_unit(struct policies *p, const char *unit,
		       const char *fragment, char *const *dropins,
		       char ***new_errors)
{
	struct layer layer = { .name = strdup(unit) };
	int err = layer.name ? 0 : -ENOMEM;

	if (!err && *fragment == '/')
		err = add_own_file(p, &layer, fragment);
	for (; dropins && *dropins && !err; dropins++)
		if (**dropins == '/')
			err = add_own_file(p, &layer, *dropins);
	err = err ?: put_own(p, &layer, new_errors);
	layer_done(&layer);
	return err;
}

void policies_forget_unit(struct policies *p, const char *unit)
{
	layers_remove(&p->own, unit);
}

int policies_errors(const struct policies *p, char ***errors)
{
	int err = layers_errors(&p->files, errors)
			  ?: layers_errors(&p->own, errors);

	for (size_t i = 0; i < POLICY_LIFETIMES && !err; i++)
		err = layers_errors(&p->control[i], errors);
	return err;
}

int policies_mistaken(const struct policies *p, char ***replaced,
		      char ***unused)
{
	int err = layers_mistaken(&p->files, replaced, unused)
			  ?: layers_mistaken(&p->own, replaced, unused);

	for (size_t i = 0; i < POLICY_LIFETIMES && !err; i++)
		err = layers_mistaken(&p->control[i], replaced, unused);
	return err;
}

/* ---- proposed files ---- */

/* The files of a unit, with the proposed ones. */
static int propose_own(struct policies *p, const char *unit, char ***errors)
{
	const struct layer *own = layers_find(&p->base->own, unit);
	struct layer layer = {};
	int err = 0;

	for (size_t i = 0; own && i < own->n_files && !err; i++)
		err = add_file(p, &layer, own, own->files[i].path,
			       POLICYFILE_UNIT);
	for (size_t i = 0; i < p->proposals.n && !err; i++) {
		const char *path = p->proposals.items[i].path;
		_cleanup_free_ char *of = proposal_unit(path);
		bool known = false;

		for (size_t f = 0; f < layer.n_files; f++)
			known |= streq(layer.files[f].path, path);
		if (!of)
			err = -ENOMEM;
		else if (policyfile_kind_of(path) == POLICYFILE_UNIT &&
			 streq(of, unit) && !known)
			err = add_file(p, &layer, NULL, path, POLICYFILE_UNIT);
	}
	err = err ?: put_layer(&p->own, &layer, strdup(unit), &p->own, errors);
	layer_done(&layer);
	return err;
}

static int propose(struct policies *p, char ***errors, char **ret_error)
{
	int err = policies_load(p, errors);

	for (size_t i = 0; i < p->proposals.n && !err; i++) {
		const char *path = p->proposals.items[i].path;
		_cleanup_free_ char *unit = proposal_unit(path);

		if (!unit)
			return -ENOMEM;
		if (policyfile_kind_of(path) != POLICYFILE_UNIT)
			continue;
		if (!*unit)
			return refusal(ret_error, -EINVAL, path,
				       "a file NAME.policy, a drop-in of one, "
				       "or a file of a unit");
		if (!layers_find(&p->own, unit))
			err = propose_own(p, unit, errors);
	}
	return err;
}

int policies_propose(const struct policies *base, const struct proposals *l,
		     struct policies **ret, char **ret_error)
{
	_cleanup_(policies_freep) struct policies *p = NULL;
	_cleanup_strv_ char **errors = NULL;
	int err = policies_new(base->roots, &p);

	if (err)
		return err;
	p->base = base;
	p->proposals = *l;
	err = propose(p, &errors, ret_error);
	p->proposals = (struct proposals){};
	if (!err && errors) {
		*ret_error = TAKE_PTR(errors[0]);
		for (size_t i = 1; errors[i]; i++)
			free(errors[i]);
		return -EBADMSG;
	}
	if (!err)
		*ret = TAKE_PTR(p);
	return err;
}

static int add_name(char ***names, const char *name)
{
	if (!(unit_name_is_valid(name) || cgroup_path_is_valid(name)) ||
	    strv_contains(*names, name))
		return 0;
	return strv_add(names, name);
}

static int add_covered(const struct match *m, char *const *words, char ***names)
{
	int err = 0;

	for (; words && *words && !err; words++)
		if (match_covers(m, *words))
			err = add_name(names, *words);
	return err;
}

int policies_controlled(const struct policies *p, char ***names)
{
	int err = 0;

	for (size_t i = 0; i < POLICY_LIFETIMES; i++)
		for (size_t j = 0; j < p->control[i].n && !err; j++) {
			const struct layer *l = &p->control[i].items[j];

			err = add_name(names, l->name)
				      ?: add_covered(&l->match,
						     l->match.cgroups, names);
		}
	return err;
}

static int add_names(const struct layers *l, char ***names)
{
	int err = 0;

	for (size_t i = 0; i < l->n && !err; i++)
		err = add_name(names, l->items[i].name);
	return err;
}

int policies_named(const struct policies *p, char ***names)
{
	int err = 0;

	for (size_t i = 0; i < p->files.n && !err; i++) {
		const struct match *m = &p->files.items[i].match;

		err = add_covered(m, m->units, names)
			      ?: add_covered(m, m->cgroups, names);
	}
	err = err ?: policies_controlled(p, names);
	err = err ?: add_names(&p->own, names);
	return err || !p->base ? err : add_names(&p->base->own, names);
}

static void each_path(const struct layers *l, paths_fn *fn, void *userdata)
{
	for (size_t i = 0; i < l->n; i++)
		promises_each_path(&l->items[i].promises, fn, userdata);
}

void policies_each_path(const struct policies *p, paths_fn *fn, void *userdata)
{
	each_path(&p->files, fn, userdata);
	each_path(&p->own, fn, userdata);
	for (size_t i = 0; i < POLICY_LIFETIMES; i++)
		each_path(&p->control[i], fn, userdata);
}

/* ---- settings in force ---- */

/* @displaced: receives the settings that are no longer in force */
static int apply(struct stated *s, const struct promises *l,
		 struct promises *displaced)
{
	int err = 0;

	for (size_t i = 0; i < l->n && !err; i++)
		err = promises_apply(&s->in_force, &l->items[i], displaced);
	return err;
}

static int apply_layer(struct stated *s, const struct layer *l,
		       struct promises *displaced)
{
	int err = 0;

	for (size_t i = 0; l && i < l->displaced.n && !err; i++)
		err = promises_add(&s->overridden, &l->displaced.items[i]);
	return l && !err ? apply(s, &l->promises, displaced) : err;
}

int policies_state(const struct policies *p, const char *subject,
		   const struct promises *const *more, size_t n_more,
		   struct stated *ret)
{
	_cleanup_free_ char *control = control_name(subject);
	const struct layer *own = layers_find(&p->own, subject);
	struct stated s = {};
	int err = control ? 0 : -ENOMEM;

	if (!own && p->base)
		own = layers_find(&p->base->own, subject);
	for (size_t i = 0; i < p->files.n && !err; i++)
		if (match_covers(&p->files.items[i].match, subject))
			err = apply_layer(&s, &p->files.items[i],
					  &s.overridden);
	if (!err)
		err = apply_layer(&s, own, &s.overridden);
	for (size_t i = 0; i < POLICY_LIFETIMES && !err; i++)
		err = apply_layer(&s, layers_find(&p->control[i], control),
				  &s.hidden);
	for (size_t i = 0; i < n_more && !err; i++)
		err = apply(&s, more[i], &s.hidden);
	if (err) {
		stated_done(&s);
		return err;
	}
	*ret = s;
	return 0;
}

/* ---- settings at run time ---- */

int policies_write(const struct policies *p, const char *subject,
		   enum policy_lifetime lifetime,
		   const struct assignment *assignments, size_t n,
		   char **ret_error)
{
	_cleanup_free_ char *name = control_name(subject);
	const struct layers *l = &p->control[lifetime];

	if (!name)
		return -ENOMEM;
	return controlfile_write(p->roots, subject, lifetime,
				 l->n < POLICIES_CONTROL_MAX ||
					 layers_find(l, name),
				 assignments, n, ret_error);
}

int policies_erase(const struct policies *p, const char *subject,
		   enum policy_lifetime lifetime)
{
	return controlfile_erase(p->roots, subject, lifetime);
}

/* Return: 0; -EBADMSG: the file could not be read back, and its last good version is in force. */
static int first_mistake(const struct layer *layer, char **ret_error)
{
	char **errors = layer->files[0].errors;

	if (!errors)
		return 0;
	*ret_error = strdup(errors[0]);
	return *ret_error ? -EBADMSG : -ENOMEM;
}

int policies_take(struct policies *p, const char *subject,
		  enum policy_lifetime lifetime, char **ret_error)
{
	_cleanup_free_ char *name = NULL, *path = NULL;
	struct layers *l = &p->control[lifetime];
	struct layer layer = {};
	int err = controlfile_find(p->roots, subject, lifetime, &name, &path);

	if (err)
		return err;
	if (access(path, F_OK) < 0 && errno == ENOENT) {
		layers_remove(l, name);
		return 0;
	}
	err = layer_add_file(&layer, path, POLICYFILE_CONTROL)
		      ?: put_layer(l, &layer, strdup(name), l, NULL);
	layer_done(&layer);
	if (!err)
		err = first_mistake(layers_find(l, name), ret_error);
	return err;
}
