/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Usage: fuzz-policyfile [libFuzzer's arguments, FILES]
 *
 * A libFuzzer target: the first byte selects the kind of file, the rest is its text. The
 * text is refused with sentences that are fit to be shown, or accepted. Accepted settings
 * are within bounds, a control file made of them has the same settings when it is read
 * again, and so has each promise that a client of the bus would send.
 *
 * `meson test` runs it on the files in fuzz-policyfile/ and inputs made from them, for
 * a fixed seed and number; without arguments it runs until it finds something, and a
 * FILE that it wrote shows it again.
 */

#include <limits.h>

#include "fake.h"
#include "policy/policies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	const char *path;
	enum policyfile_kind kind;
} kinds[] = {
	{ "/etc/sutro/policy.d/a.policy", POLICYFILE_POLICY },
	{ "/etc/sutro/policy.d/a.policy.d/a.conf", POLICYFILE_DROPIN },
	{ "/etc/systemd/system/a.service", POLICYFILE_UNIT },
	{ "/etc/sutro/policy.control/a.service.policy", POLICYFILE_CONTROL },
	{ "/etc/sutro/policy.control/a-b.cgroup.policy", POLICYFILE_CONTROL },
};

static void check_promise(const struct promise *p)
{
	const struct promise_info *info = promise_info(p->key);

	check(p->key < PROMISE_KEYS && p->source);
	if (p->path) {
		check(p->path[0] == '/' && strlen(p->path) < PATH_MAX);
		check(text_is_plain(p->path));
		check(!strstr(p->path, "//") && !strstr(p->path, "/../"));
		check(!endswith(p->path, "/..") && !endswith(p->path, "/"));
	}
	if (p->reset)
		return;
	switch (info->kind) {
	case PROMISE_KIND_CEILING:
		check(p->value >= 1);
		check(p->value <= 1000000000000000 ||
		      p->value == PROMISE_INFINITY);
		break;
	case PROMISE_KIND_FLOOR:
		check(p->value >= 1 && p->value <= 1000000000000000);
		break;
	case PROMISE_KIND_TARGET:
		check(p->value >= 1 && p->value <= 60000000);
		break;
	case PROMISE_KIND_WEIGHT:
		check(weight_is_valid(p->value));
		break;
	case PROMISE_KIND_CLASS:
		check(p->value < PROMISE_CLASSES && !p->path);
		break;
	case PROMISE_KIND_IMPORTANCE:
		check(p->value <= 1000 && !p->path);
		break;
	}
}

/* One for each key and path, as policies.c replays a file. */
static struct promises replay(const struct promises *l)
{
	struct promises all = {};

	for (size_t i = 0; i < l->n; i++)
		check(promises_apply(&all, &l->items[i], NULL) == 0);
	return all;
}

static void check_equal(const struct promises *a, const struct promises *b)
{
	check(a->n == b->n);
	for (size_t i = 0; i < a->n; i++) {
		const struct promise *p = &a->items[i], *q = &b->items[i];

		check(p->key == q->key && p->value == q->value);
		check(p->path ? q->path && streq(p->path, q->path) : !q->path);
		check(!p->reset && !q->reset);
	}
}

static void check_written(const struct promises *l, const char *path,
			  const char *subject)
{
	struct policyfile again = { .path = strdup(path),
				    .kind = POLICYFILE_CONTROL };
	_cleanup_free_ char *text = policyfile_format(subject, l);

	check(again.path && text);
	check(policyfile_parse(&again, text, NULL) == 0);
	check_equal(l, &again.promises);
	policyfile_done(&again);
}

static void check_said(const struct promises *l)
{
	struct promises all = {};

	for (size_t i = 0; i < l->n; i++) {
		_cleanup_free_ char *value = promise_format(&l->items[i]);
		_cleanup_free_ char *error = NULL;
		const struct assignment assignment = {
			.key = promise_info(l->items[i].key)->name,
			.value = value,
		};

		check(promises_assign(&all, &assignment, 1, "a client",
				      &error) >= 0);
	}
	check_equal(l, &all);
	promises_done(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t kind = size ? data[0] % ARRAY_SIZE(kinds) : 0;
	struct policyfile f = { .path = strdup(kinds[kind].path),
				.kind = policyfile_kind_of(kinds[kind].path) };
	char *text = strndup(size ? (const char *)data + 1 : "",
			     size ? size - 1 : 0);
	struct promises l;
	int r;

	check(f.path && text && f.kind == kinds[kind].kind);
	r = policyfile_parse(&f, text, NULL);
	free(text);
	check(r == (f.errors ? -EBADMSG : 0) && f.good == !f.errors);
	for (char **e = f.errors; e && *e; e++)
		check(text_is_plain(*e) && startswith(*e, f.path) &&
		      strlen(*e) < 600);
	check(strv_length(f.errors) <= 20);
	check(f.good || (!f.promises.n && !match_length(&f.match)));
	check(f.promises.n + match_length(&f.match) <= 257);
	for (size_t i = 0; i < f.promises.n; i++)
		check_promise(&f.promises.items[i]);
	match_covers(&f.match, "user-1000.slice");
	match_covers(&f.match, "/batch/job_7");
	l = replay(&f.promises);
	if (l.n < POLICYFILE_STATEMENTS_MAX) {
		check_written(&l, kinds[3].path, "a.service");
		check_written(&l, kinds[4].path, "/a/b");
		check_said(&l);
	}
	promises_done(&l);
	policyfile_done(&f);
	return 0;
}
