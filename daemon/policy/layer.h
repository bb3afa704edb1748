/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LAYER_H
#define SUTRO_LAYER_H

#include "policy/dropin.h"
#include "policy/policyfile.h"

/**
 * struct layer - a file with its drop-ins, which are one set of settings
 * @name: file name of a policy, name of the unit for its own files
 * @files: the file itself, then its drop-ins as they are applied
 * @match: Unit= and Cgroup= of all, one after the other
 * @promises: one for each key and path
 * @displaced: settings that later files of the layer override
 */
struct layer {
	char *name;
	struct policyfile *files;
	size_t n_files;
	struct match match;
	struct promises promises;
	struct promises displaced;
};

/** struct layers - sorted by name, which is what they are found by */
struct layers {
	struct layer *items;
	size_t n;
};

/** layer_add_file() - add a file, which is not read yet */
int layer_add_file(struct layer *l, const char *path,
		   enum policyfile_kind kind);

/** layer_give() - set the text of the file that was added last, which is then not read */
int layer_give(struct layer *l, const char *text);

/**
 * layer_freeze() - copy the file that was added last from @present, where it is; it is then not read
 * @present: may be NULL
 */
int layer_freeze(struct layer *l, const struct layer *present);

/**
 * layer_read() - read all files and merge their settings
 * @before: the layer as it was; the last good version of a file of the same name is
 *	taken from there, unless the file has one; may be NULL
 *
 * Return: 0, also with mistakes; -ENOMEM.
 */
int layer_read(struct layer *l, struct layer *before, char ***new_errors);

/** layer_is_empty() - is the layer without promises and mistakes? */
bool layer_is_empty(const struct layer *l);

void layer_done(struct layer *l);

struct layer *layers_find(const struct layers *l, const char *name);

/** layers_put() - take over @layer, and replace the layer of the same name */
int layers_put(struct layers *l, struct layer *layer);

void layers_remove(struct layers *l, const char *name);

/** layers_move() - move the layer of that name, if there is one, to another list */
int layers_move(struct layers *to, struct layers *from, const char *name);

void layers_done(struct layers *l);

/** layers_list() - append the first file of each layer, by the name of the layer with a suffix */
int layers_list(const struct layers *l, const char *suffix,
		struct dropins *found);

/** layer_list_dropins() - append the files after the first one */
int layer_list_dropins(const struct layer *l, struct dropins *found);

/** layers_errors() - add the mistakes of all files */
int layers_errors(const struct layers *l, char ***errors);

/**
 * layers_mistaken() - add the paths of all files with mistakes, each once
 * @replaced: of those whose last good version is in force
 * @unused: of those that have none
 */
int layers_mistaken(const struct layers *l, char ***replaced, char ***unused);

#endif
