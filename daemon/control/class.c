/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Class=rt, be or idle: the default line of io.sutro.class, on all sutro leaves. Where
 * nothing was said about a class the file is left alone. It is not there while no
 * leaf has the scheduler sutro; bfq and iocost know nothing like it.
 */

#include "control/class.h"
#include "policy/policy.h"

#define FILE_NAME "io.sutro.class"

/* The first line: "default be". */
static int present_class(const struct cgroup *c, char **ret)
{
	_cleanup_free_ char *text = NULL;
	const char *value;
	int err = cgroup_read(c, FILE_NAME, &text);

	if (err)
		return err;
	text[strcspn(text, "\n")] = '\0';
	value = startswith(text, "default ");
	if (!value)
		return -EIO;
	*ret = strdup(value);
	return *ret ? 0 : -ENOMEM;
}

static int write_class(struct classes *s, struct cgroup *c, const char *class)
{
	_cleanup_free_ char *before = NULL, *now = NULL, *line = NULL;
	int err = present_class(c, &before);

	if (err || streq(before, class))
		return err;
	if (s->dry_run) {
		log_info("%s: would write \"default %s\" to " FILE_NAME ".",
			 c->path, class);
		return 0;
	}
	line = asprintf_or_null("default %s", class);
	if (!line)
		return -ENOMEM;
	if (!record_get(&s->record, c->path))
		err = record_set(&s->record, c->path, before);
	if (!err)
		err = cgroup_write(c, FILE_NAME, line);
	if (!err)
		err = present_class(c, &now);
	if (!err && !streq(now, class))
		err = -EIO;
	if (!err)
		log_info("%s: class %s -> %s.", c->path, before, now);
	return err;
}

static int give_back(struct classes *s, struct cgroup *c)
{
	const char *value = record_get(&s->record, c->path);
	_cleanup_free_ char *before = value ? strdup(value) : NULL;
	int err;

	if (!value || s->dry_run)
		return 0;
	if (!before)
		return -ENOMEM;
	err = write_class(s, c, before);
	return err ?: record_drop(&s->record, c->path);
}

int classes_apply(struct classes *s, struct cgroup *c)
{
	const struct promise *p =
		promises_find(&c->policy->promises, PROMISE_CLASS, NULL);
	int err = p ? write_class(s, c, promise_class_name(p->value))
		    : give_back(s, c);

	if (err == -ENOMEM)
		return err;
	if (err && err != -ENOENT && err != -ENODEV && !c->refused) {
		log_warning_errno(err, "%s: cannot write " FILE_NAME ": %m",
				  c->path);
		c->refused = true;
	}
	return 0;
}

void classes_cgroup_gone(struct classes *s, const struct cgroup *c)
{
	if (record_drop(&s->record, c->path) < 0)
		log_debug("%s is still in %s.", c->path, s->record.path);
}

int classes_restore(struct classes *s, struct cgroup *top)
{
	int err = 0;

	for (struct cgroup *c = top; c && err != -ENOMEM;
	     c = cgroup_next(top, c))
		err = give_back(s, c);
	return err == -ENOMEM ? err : 0;
}

int classes_init(struct classes *s, const struct roots *roots)
{
	*s = (struct classes){};
	return record_open(&s->record, roots, "classes");
}

void classes_done(struct classes *s)
{
	record_done(&s->record);
}
