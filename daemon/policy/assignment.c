/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Assignments that a client of the bus sends, and refusals of wrong ones. */

#include <limits.h>

#include "policy/assignment.h"

int refusal(char **ret_error, int error, const char *text, const char *allowed)
{
	_cleanup_(text_freep) struct text t = {};

	if (text_add(&t, "\"") < 0 || text_add_plain(&t, text, PATH_MAX) < 0 ||
	    text_add(&t, "\": %s", allowed) < 0)
		return -ENOMEM;
	*ret_error = TAKE_PTR(t.p);
	return error;
}

static int refuse_key(char **ret_error, const char *key)
{
	_cleanup_(text_freep) struct text t = {};
	int err = text_add(&t, "one of ");

	for (size_t i = 0; i < PROMISE_KEYS && !err; i++)
		err = text_add(&t, "%s%s", i ? ", " : "",
			       promise_info(i)->name);
	return err ?: refusal(ret_error, -EINVAL, key, t.p);
}

static int assign_one(struct promises *l, const struct assignment *assignment,
		      const char *source, char **ret_error)
{
	_cleanup_free_ char *text = NULL;
	const char *allowed = NULL;
	struct promise promise;
	enum promise_key key;
	int err;

	if (promise_key_from_name(assignment->key, &key) < 0)
		return refuse_key(ret_error, assignment->key);
	text = asprintf_or_null("%s=%s", assignment->key, assignment->value);
	if (!text)
		return -ENOMEM;
	err = promise_parse(key, assignment->value, source, &promise, &allowed);
	if (err == -EINVAL)
		return refusal(ret_error, err, text, allowed);
	if (err)
		return err;
	err = promises_apply(l, &promise, NULL);
	promise_done(&promise);
	if (!err && l->n > POLICYFILE_STATEMENTS_MAX - 1)
		return refusal(ret_error, -EINVAL, text,
			       "too many, at most 255 for one unit");
	return err;
}

/* Each key and path occurs once in a list. */
static bool have_equal_values(const struct promises *a,
			      const struct promises *b)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct promise *p = &a->items[i];
		const struct promise *q = promises_find(b, p->key, p->path);

		if (!q || p->value != q->value || p->part != q->part ||
		    p->percentile != q->percentile)
			return false;
	}
	return a->n == b->n;
}

int promises_assign(struct promises *l, const struct assignment *assignments,
		    size_t n, const char *source, char **ret_error)
{
	struct promises all = {};
	bool is_other;
	int err = 0;

	for (size_t i = 0; i < l->n && !err; i++)
		err = promises_add(&all, &l->items[i]);
	for (size_t i = 0; i < n && !err; i++)
		err = assign_one(&all, &assignments[i], source, ret_error);
	if (err) {
		promises_done(&all);
		return err;
	}
	is_other = !have_equal_values(l, &all);
	promises_done(l);
	*l = all;
	return is_other;
}
