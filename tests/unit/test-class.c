/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Class= of the policy of the cgroup /a as the default line of io.sutro.class. */

#include "control/class.h"
#include "fake.h"
#include "policy/policy.h"

#define CLASS "/sys/fs/cgroup/a/io.sutro.class"
#define RECORD "/run/sutro/classes"

static struct roots roots;
static struct cgfiles files;
static struct cgroup *a;

static void state(enum promise_class class)
{
	struct promise p = { .key = PROMISE_CLASS, .value = class };

	promises_done(&a->policy->promises);
	check(promises_add(&a->policy->promises, &p) == 0);
	check(class_apply(&files, a) == 0);
}

static void withdraw(void)
{
	promises_done(&a->policy->promises);
	check(class_apply(&files, a) == 0);
}

int main(void)
{
	struct cgroup_tree *tree;

	fake_new(&roots);
	fake_file(&roots, CLASS, "default rt\n");
	a = fake_writer(&roots, &files, &tree);

	/* Without Class= the file is left alone. */
	withdraw();
	check(fake_writes(&roots) == 0);
	/* A line that is already there needs no record. */
	state(PROMISE_CLASS_RT);
	check(fake_writes(&roots) == 0 && fake_has(&roots, RECORD, ""));
	state(PROMISE_CLASS_IDLE);
	check(fake_has(&roots, CLASS, "default idle\n"));
	state(PROMISE_CLASS_BE);
	check(fake_has(&roots, CLASS, "default be\n"));
	/* The last line counts. */
	check(fake_has(&roots, RECORD, "/a\trt / idle\n/a\trt / be / idle\n"));
	withdraw();
	check(fake_has(&roots, CLASS, "default rt\n"));
	check(fake_has(&roots, RECORD, ""));

	fake_writer_remove(&roots, &files, tree);
	return 0;
}
