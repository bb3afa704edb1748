/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* sutrod.conf: order of files, lists, and what is said about mistakes. */

#include "conf.h"
#include "fake.h"

#define CONF "/etc/sutro/sutrod.conf"

static void expect_use(const struct roots *r, const char *use)
{
	_cleanup_strv_ char **errors = NULL;
	_cleanup_(text_freep) struct text t = {};
	struct conf *c;

	check(conf_load(r, &c, &errors) == 0);
	check(!errors);
	text_add(&t, "%s", "");
	for (char **u = c->use; u && *u; u++)
		text_add(&t, "%s%s", u == c->use ? "" : " ", *u);
	if (!streq(t.p, use))
		fprintf(stderr, "Use=%s\n", t.p);
	check(streq(t.p, use));
	conf_free(c);
}

/* The sentences about the mistakes, each with the path of the machine cut off. */
static void expect_errors(const struct roots *r, const char *sentences)
{
	_cleanup_strv_ char **errors = NULL;
	_cleanup_(text_freep) struct text t = {};
	struct conf *c = NULL;

	check(conf_load(r, &c, &errors) == -EBADMSG);
	check(!c);
	for (char **e = errors; e && *e; e++)
		text_add(&t, "%s\n", startswith(*e, r->prefix));
	if (!streq(t.p, sentences))
		fprintf(stderr, "%s\n", t.p);
	check(streq(t.p, sentences));
}

static void test_good(struct roots *r)
{
	struct conf *c;

	expect_use(r, "");
	fake_file(r, CONF,
		  "# nothing\n[Leaves]\nUse=/dev/sda  /dev/disk/by-id/*\n"
		  "Use=/srv\n; more\n[Daemon]\nReconcileSec=5\n");
	expect_use(r, "/dev/sda /dev/disk/by-id/* /srv");
	check(conf_load(r, &c, NULL) == 0);
	check(c->reconcile_usec == 5000000);
	conf_free(c);
	fake_file(r, CONF, "[Leaves]\nUse=/dev/sda\nUse=\nUse=/dev/sdb\n");
	expect_use(r, "/dev/sdb");
}

static void test_dropins(struct roots *r)
{
	fake_file(r, CONF, "[Leaves]\nUse=/main\n");
	fake_file(r, "/usr/lib/sutro/sutrod.conf.d/20-b.conf",
		  "[Leaves]\nUse=/vendor-b\n");
	fake_file(r, "/usr/lib/sutro/sutrod.conf.d/10-a.conf",
		  "[Leaves]\nUse=/vendor-a\n");
	fake_file(r, "/run/sutro/sutrod.conf.d/30-c.conf",
		  "[Leaves]\nUse=/run-c\n");
	fake_file(r, "/etc/sutro/sutrod.conf.d/25-x.conf",
		  "[Leaves]\nUse=/etc-x\n");
	fake_file(r, "/etc/sutro/sutrod.conf.d/README", "not read\n");
	expect_use(r, "/main /vendor-a /vendor-b /etc-x /run-c");
	/* The same name in /etc replaces the one of the vendor. */
	fake_file(r, "/etc/sutro/sutrod.conf.d/10-a.conf",
		  "[Leaves]\nUse=\nUse=/etc-a\n");
	expect_use(r, "/etc-a /vendor-b /etc-x /run-c");
}

static void test_mistakes(struct roots *r)
{
	char line[400];

	fake_file(r, CONF, "[Leaves]\nUse=/dev/sda\nUse=sdb\n");
	expect_errors(r, CONF ":3: \"[Leaves] Use=sdb\": absolute paths or "
			      "globs of devices, separated by spaces\n");
	fake_file(r, CONF,
		  "[Daemon]\nReconcileSec=0\n\nReconcileSec=soon\n"
		  "ReconcileSec=-1\nReconcileSec=3601\n");
	expect_errors(r,
		      CONF ":2: \"[Daemon] ReconcileSec=0\": seconds, 1 to "
			   "3600\n" CONF
			   ":4: \"[Daemon] ReconcileSec=soon\": seconds, 1 to "
			   "3600\n" CONF
			   ":5: \"[Daemon] ReconcileSec=-1\": seconds, 1 to "
			   "3600\n" CONF
			   ":6: \"[Daemon] ReconcileSec=3601\": seconds, 1 to "
			   "3600\n");
	fake_file(r, CONF, "[Leaves]\nUser=/dev/sda\n[Leafs]\nUse=/dev/sda\n");
	expect_errors(r, CONF ":2: \"[Leaves] User=/dev/sda\": [Leaves] Use=, "
			      "[Daemon] ReconcileSec=\n" CONF
			      ":4: \"[Leafs] Use=/dev/sda\": [Leaves] Use=, "
			      "[Daemon] ReconcileSec=\n");
	fake_file(r, CONF, "[Leaves]\nUse=/dev/sda\nnonsense\n");
	expect_errors(r, CONF ":3: \"...\": a [Section], Key=value, or a "
			      "comment that begins with # or ;\n");
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	fake_file(r, CONF, "[Leaves]\nUse=/%s\nUse=/dev/sda\n", line);
	{
		_cleanup_strv_ char **errors = NULL;
		struct conf *c;

		check(conf_load(r, &c, &errors) == -EBADMSG);
		check(strv_length(errors) == 1);
		check(strstr(errors[0], ":2: ") &&
		      strstr(errors[0], "the line is too long"));
	}
	/* A mistake in one drop-in does not hide one in the next. */
	fake_file(r, CONF, "%s", "");
	fake_file(r, "/etc/sutro/sutrod.conf.d/1.conf", "[Leaves]\nUse=a\n");
	fake_file(r, "/etc/sutro/sutrod.conf.d/2.conf", "[Leaves]\nUse=b\n");
	expect_errors(r, "/etc/sutro/sutrod.conf.d/1.conf:2: \"[Leaves] "
			 "Use=a\": absolute paths or globs of devices, "
			 "separated by spaces\n"
			 "/etc/sutro/sutrod.conf.d/2.conf:2: \"[Leaves] "
			 "Use=b\": absolute paths or globs of devices, "
			 "separated by spaces\n");
}

int main(void)
{
	static void (*const tests[])(struct roots *) = {
		test_good,
		test_dropins,
		test_mistakes,
	};

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct roots r;

		fake_new(&r);
		tests[i](&r);
		fake_remove(&r);
	}
	return 0;
}
