/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Walks over the cgroups of a tree, in pre-order.
 *
 * Users can make any number of cgroups. So the event loop takes CGROUP_BATCH of them at a time, and
 * a cursor is where it goes on. Between two batches cgroups come and go:
 *
 *	/a	before the cursor: it has been taken
 *	/b	at the cursor. It is removed, and the cursor moves to /c
 *	/c
 *	/d	made after the walk began: it is taken, too, for it is the last one beside /c
 *
 * A cgroup that is made below /a is not taken. The tree's owner gets a call when it is made.
 */

#include "host/cgroup.h"

struct cgroup *cgroup_next(const struct cgroup *top, struct cgroup *c)
{
	return TAILQ_FIRST(&c->children) ?: cgroup_next_beside(top, c);
}

struct cgroup *cgroup_next_beside(const struct cgroup *top, struct cgroup *c)
{
	struct cgroup *next = NULL;

	while (!next && c != top) {
		next = TAILQ_NEXT(c, siblings);
		c = c->parent;
	}
	return next;
}

/* A cursor is in the list of its tree while it has a next cgroup. */
static void set_next(struct cgroup_cursor *k, struct cgroup *c)
{
	k->next = c;
	if (!c)
		LIST_REMOVE(k, others);
}

void cgroup_cursor_begin(struct cgroup_cursor *k, struct cgroup *root)
{
	if (!k->next)
		LIST_INSERT_HEAD(cgroup_tree_cursors(root->tree), k, others);
	k->top = root;
	k->next = root;
}

struct cgroup *cgroup_cursor_next(struct cgroup_cursor *k)
{
	struct cgroup *c = k->next;

	if (c)
		set_next(k, cgroup_next(k->top, c));
	return c;
}

void cgroup_cursor_end(struct cgroup_cursor *k)
{
	if (k->next)
		set_next(k, NULL);
}

void cgroup_cursors_pass(struct cgroup_cursors *cursors, struct cgroup *gone)
{
	struct cgroup_cursor *k, *other;

	for (k = LIST_FIRST(cursors); k; k = other) {
		other = LIST_NEXT(k, others);
		if (k->next == gone)
			set_next(k, cgroup_next_beside(k->top, gone));
	}
}
