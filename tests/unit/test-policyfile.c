/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One file with policies: lines, sections, mistakes, and the files themselves. */

#include <sys/stat.h>

#include "fake.h"
#include "line.h"
#include "policyfile.h"

#define X "[X-Sutro]\n"
#define MATCH "[Match]\nUnit=db.service\n"

static struct policyfile parse(const char *name, const char *text)
{
	struct policyfile f = { .path = strdup(name),
				.kind = policyfile_kind_of(name) };
	_cleanup_free_ char *copy = strdup(text);

	check(f.path && copy);
	policyfile_parse(&f, copy, NULL);
	return f;
}

/* "unit unit; Key=value (line); ..." */
static char *describe(const struct policyfile *f)
{
	struct text t = {};

	text_add(&t, "%s", "");
	for (char **u = f->units; u && *u; u++)
		text_add(&t, "%s%s", u == f->units ? "" : " ", **u ? *u : "-");
	for (size_t i = 0; i < f->promises.n; i++) {
		const struct promise *p = &f->promises.items[i];
		_cleanup_free_ char *value = promise_format(p);

		text_add(&t, "; %s=%s (%s)", promise_info(p->key)->name, value,
			 p->source + strlen(f->path) + 1);
	}
	return t.p;
}

static void expect(const char *name, const char *text, const char *expected)
{
	struct policyfile f = parse(name, text);
	_cleanup_free_ char *found = describe(&f);

	for (char **e = f.errors; e && *e; e++)
		fprintf(stderr, "%s\n", *e);
	if (!streq(found, expected))
		fprintf(stderr, "%s\n", found);
	check(!f.errors && f.good);
	check(streq(found, expected));
	policyfile_done(&f);
}

/* All sentences, one a line; nothing of the file is used. */
static void refuse(const char *name, const char *text, const char *sentences)
{
	struct policyfile f = parse(name, text);
	_cleanup_(text_freep) struct text t = {};

	text_add(&t, "%s", "");
	for (char **e = f.errors; e && *e; e++)
		text_add(&t, "%s\n", *e);
	if (!streq(t.p, sentences))
		fprintf(stderr, "%s", t.p);
	check(streq(t.p, sentences));
	check(!f.good && !f.units && !f.promises.n);
	policyfile_done(&f);
}

static void test_policy(void)
{
	expect("db.policy",
	       "# databases\n[Match]\nUnit=postgresql.service kubepods-*.slice\n"
	       "\n" X "ReadBandwidthMin=/dev/vg/db 200M\n"
	       "  Weight = 300 \r\n;Weight=1\n#Weight=2\nClass=rt",
	       "postgresql.service kubepods-*.slice; "
	       "ReadBandwidthMin=/dev/vg/db 200M (6); Weight=300 (7); "
	       "Class=rt (10)");
	/* Sections may come again; lists add up; empty ones reset. */
	expect("db.policy",
	       X "Weight=1\n[Match]\nUnit=a.service\nUnit=\n" X
		 "Weight=\n[Match]\nUnit=\tb.slice  user-[12]*.slice\n",
	       "a.service - b.slice user-[12]*.slice; Weight=1 (2); Weight= (7)");
	/* A policy that promises nothing is no mistake. */
	expect("db.policy", MATCH, "db.service");
	/* The byte order mark of editors of another system. */
	expect("db.policy", "\xef\xbb\xbf" MATCH X "Weight=1",
	       "db.service; Weight=1 (4)");
	expect("db.policy.d/a.conf", X "Weight=1\n", "; Weight=1 (2)");
	expect("x/db.policy.d/a.conf", "[Match]\nUnit=\n", "-");
	expect("db.policy.d/a.conf", "", "");
}

static void test_continuation(void)
{
	expect("db.policy",
	       "[Match]\nUnit=a.service \\\n# not this\n  ; nor this\n"
	       "   b.service\\\n\tc.service\n" X "Weight=1\n",
	       "a.service b.service c.service; Weight=1 (8)");
	/* An empty line ends it, and so does the end. */
	expect("db.policy", "[Match]\nUnit=a.service \\\n\n" X "Weight=1\\",
	       "a.service; Weight=1 (5)");
	expect("db.policy", "\\\n[Match]\\\r\n\nUnit=\\\na.service\n",
	       "a.service");
	/* Two backslashes are one, and none is left for the end of the line. */
	expect("a.service", X "ReadIOPSMin=/a\\\\ \\\n5\nWeight=1\n",
	       "; ReadIOPSMin=\"/a\\\\\" 5 (2); Weight=1 (4)");
	expect("a.service",
	       "[Service]\nExecStart=a\\\\\n" X "Weight=1\n[Service]\n"
	       "ExecStart=a\\\\\\\n" X "Weight=2\n",
	       "; Weight=1 (4)");
	/* A header within a continued line is no header. */
	expect("a.service",
	       "[Service]\nExecStart=/bin/sh -c \\\n" X "Weight=1\nUser=x\n" X
	       "Weight=2\n",
	       "; Weight=2 (7)");
}

static void test_unit_file(void)
{
	expect("db.service",
	       "[Unit]\nDescription=[X-Sutro] Weight=5\n= what\nnonsense\n[\n"
	       "[Service]\nWeight=many\n\x01\xff\n" X
	       "Importance=5\n[X-Other]\nImportance=no\n[Match]\nUnit=/\n",
	       "; Importance=5 (10)");
	expect("db.service", "", "");
	expect("db.service", "no section at all\n", "");
	refuse("db.service", "[Service]\nWeight=x\n" X "Weight=x\nnonsense\n",
	       "db.service:4: \"[X-Sutro] Weight=x\": 1 to 10000, or a path "
	       "and 1 to 10000, such as /dev/vg/db 300\n"
	       "db.service:5: \"nonsense\": a [Section], Key=value, or a "
	       "comment that begins with # or ;\n");
}

static void test_mistakes(void)
{
	refuse("db.policy",
	       MATCH X "ReadBandwidthMin=/dev/vg/db many\n"
		       "LatencyTarget=srv 5ms\n\nClass=fast\n",
	       "db.policy:4: \"[X-Sutro] ReadBandwidthMin=/dev/vg/db many\": a "
	       "path and bytes per second, such as /dev/vg/db 200M, at most "
	       "1000T (K, M, G, T: powers of 1000)\n"
	       "db.policy:5: \"[X-Sutro] LatencyTarget=srv 5ms\": first an "
	       "absolute path without \"..\" and control characters, in quotes "
	       "if it has blanks, at most 4095 bytes\n"
	       "db.policy:7: \"[X-Sutro] Class=fast\": rt, be or idle\n");
	refuse("db.policy", MATCH X "Wait=5\n",
	       "db.policy:4: \"[X-Sutro] Wait=5\": ReadBandwidthMin=, "
	       "WriteBandwidthMin=, ReadIOPSMin=, WriteIOPSMin=, "
	       "ReadBandwidthMax=, WriteBandwidthMax=, ReadIOPSMax=, "
	       "WriteIOPSMax=, LatencyTarget=, Weight=, Class=, Importance=\n");
	refuse("db.policy", "[Match]\nUnits=db.service\n",
	       "db.policy:2: \"[Match] Units=db.service\": [Match] Unit=\n");
	refuse("db.policy", X "Weight=1\n",
	       "db.policy: \"[Match] Unit=\": is missing: names or globs of "
	       "units, separated by blanks, such as db.service "
	       "kubepods-*.slice\n");
	refuse("db.policy", "Weight=1\n",
	       "db.policy:1: \"Weight=1\": first a section, [Match] or "
	       "[X-Sutro]\n");
	refuse("db.policy", MATCH "[X-Sutra]\nWeight=1\n",
	       "db.policy:3: \"X-Sutra\": [Match] or [X-Sutro]\n");
	refuse("db.policy.d/a.conf", "[Service]\nWeight=1\n",
	       "db.policy.d/a.conf:1: \"Service\": [Match] or [X-Sutro]\n");
	refuse("db.policy", MATCH "[X-Sutro\nWeight=1\n",
	       "db.policy:3: \"[X-Sutro\": a [Section], Key=value, or a comment "
	       "that begins with # or ;\n"
	       "db.policy:4: \"[Match] Weight=1\": [Match] Unit=\n");
	refuse("db.policy", MATCH X "=5\n[]\n",
	       "db.policy:4: \"=5\": a [Section], Key=value, or a comment that "
	       "begins with # or ;\n"
	       "db.policy:5: \"[]\": a [Section], Key=value, or a comment that "
	       "begins with # or ;\n");
	/* What is shown is fit for a terminal and the bus. */
	refuse("db.policy", MATCH X "Class=\x1b[31m\xff\xc3\xa4\n",
	       "db.policy:4: \"[X-Sutro] Class=?[31m?\xc3\xa4\": rt, be or "
	       "idle\n");
}

static void test_names(void)
{
	static const char *const globs[] = {
		"db.service",	    "*",	   "user-*.slice",
		"*.service",	    "db*",	   "db.servic?",
		"-.slice",	    "a@*.service", "db.s[elc]*",
		"dev-a\\x2db.swap",
	};
	static const char *const bad[] = { "postgresql",  "db.timer",
					   "/db.service", "a/*.service",
					   "db.service,", ".service",
					   "db.\x01*" };

	for (size_t i = 0; i < ARRAY_SIZE(globs); i++) {
		_cleanup_free_ char *text =
			asprintf_or_null("[Match]\nUnit=%s\n", globs[i]);

		expect("a.policy", text, globs[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_free_ char *text = asprintf_or_null(
			"[Match]\nUnit=a.service %s\n", bad[i]);
		struct policyfile f = parse("a.policy", text);

		if (!f.errors)
			fprintf(stderr, "%s\n", bad[i]);
		check(strv_length(f.errors) == 1 && !f.good);
		check(startswith(f.errors[0], "a.policy:2: \"[Match] Unit="));
		policyfile_done(&f);
	}
}

static void test_match(void)
{
	static const struct {
		const char *globs[4];
		const char *unit;
		bool match;
	} cases[] = {
		{ { "db.service" }, "db.service", true },
		{ { "db.service" }, "db.servic", false },
		{ { "a.slice", "d*" }, "db.service", true },
		{ { "d*", "a.slice" }, "db.service", true },
		{ { "db.service", "" }, "db.service", false },
		{ { "db.service", "", "db*" }, "db.service", true },
		{ { "kubepods-*.slice" }, "kubepods-burstable.slice", true },
		{ { "kubepods-*.slice" }, "kubepods.slice", false },
		{ { "dev-a\\x2db.swap" }, "dev-a\\x2db.swap", true },
		{ { "dev-a\\x2d*" }, "dev-a\\x2db.swap", true },
		{ { "dev-ax2db.swap" }, "dev-a\\x2db.swap", false },
		{ { NULL }, "db.service", false },
	};
	char stars[256], name[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(units_match((char **)cases[i].globs, cases[i].unit) ==
		      cases[i].match);
	check(!units_match(NULL, "db.service"));
	/* A glob that is slow in bad matchers; a test that hangs is a failure. */
	memset(name, 'a', 255);
	name[255] = '\0';
	for (size_t i = 0; i < 250; i++)
		stars[i] = i % 2 ? 'a' : '*';
	strcpy(stars + 250, "b*");
	check(!units_match((char *[]){ stars, NULL }, name));
}

static void test_unit_names(void)
{
	static const char *const good[] = { "db.service",    "-.slice",
					    "a.scope",	     "a@b.service",
					    "a@b@c.service", "dev-a\\x2db.swap",
					    "a:b_c.mount" };
	static const char *const bad[] = {
		"",
		"db",
		"db.timer",
		".service",
		"../a.service",
		"a/b.service",
		"a b.service",
		"a*.service",
		"@.service",
		"a@.service",
		"@b.service",
		"..service",
		"a\n.service",
		"\xc3\xa4.service",
	};
	char name[300];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		check(unit_name_is_valid(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (unit_name_is_valid(bad[i]))
			fprintf(stderr, "%s\n", bad[i]);
		check(!unit_name_is_valid(bad[i]));
	}
	memset(name, 'a', sizeof(name));
	strcpy(name + 255 - strlen(".slice"), ".slice");
	check(unit_name_is_valid(name));
	memset(name, 'a', sizeof(name));
	strcpy(name + 256 - strlen(".slice"), ".slice");
	check(!unit_name_is_valid(name));
}

static void test_bounds(void)
{
	_cleanup_(text_freep) struct text t = {};
	struct policyfile f;

	/* 256 names and assignments are enough for anybody, 257 a mistake. */
	text_add(&t, MATCH X);
	for (int i = 0; i < 255; i++)
		text_add(&t, "ReadIOPSMin=/%d 1\n", i);
	f = parse("db.policy", t.p);
	check(f.good && f.promises.n == 255);
	policyfile_done(&f);
	text_add(&t, "Weight=1\n");
	refuse("db.policy", t.p,
	       "db.policy:259: \"[X-Sutro] Weight=1\": at most 256 assignments "
	       "and names in one file\n");
	/* A file of thousands of mistakes names twenty. */
	t.length = 0;
	for (int i = 0; i < 5000; i++)
		text_add(&t, "what is this\n");
	f = parse("db.policy", t.p);
	check(strv_length(f.errors) == 20);
	policyfile_done(&f);
	/* A long line is no problem, and is not shown whole. */
	t.length = 0;
	text_add(&t, MATCH X "Class=");
	for (int i = 0; i < 50000; i++)
		text_add(&t, "xyz ");
	f = parse("db.policy", t.p);
	check(strv_length(f.errors) == 1 && strlen(f.errors[0]) < 400);
	policyfile_done(&f);
}

static struct policyfile at(const struct roots *r, const char *path)
{
	struct policyfile f = { .path = asprintf_or_null("%s%s", r->prefix,
							 path),
				.kind = policyfile_kind_of(path) };

	check(f.path);
	return f;
}

static void expect_error(const struct policyfile *f, const char *sentence)
{
	check(strv_length(f->errors) == 1);
	if (!strstr(f->errors[0], sentence))
		fprintf(stderr, "%s\n", f->errors[0]);
	check(strstr(f->errors[0], sentence));
}

static void test_read(struct roots *r)
{
	struct policyfile f = at(r, "/a.policy");
	_cleanup_strv_ char **new_errors = NULL;
	_cleanup_free_ char *large = malloc(1024 * 1024 + 2);
	_cleanup_free_ char *fifo = NULL;

	check(policyfile_read(&f, &new_errors) == -ENOENT && !new_errors);
	fake_file(r, "/a.policy", MATCH X "Weight=7\n");
	check(policyfile_read(&f, &new_errors) == 0);
	check(f.good && !f.mask && f.promises.n == 1 && !new_errors);
	/* A mistake: the good version stays, and it is said once. */
	fake_file(r, "/a.policy", MATCH X "Weight=9\nWeight=0\n");
	check(policyfile_read(&f, &new_errors) == -EBADMSG);
	check(f.good && f.promises.items[0].value == 7);
	expect_error(&f, "/a.policy:5: \"[X-Sutro] Weight=0\": ");
	check(strv_length(new_errors) == 1);
	check(policyfile_read(&f, &new_errors) == -EBADMSG);
	check(strv_length(new_errors) == 1);
	fake_file(r, "/a.policy", MATCH X "Weight=9\n");
	check(policyfile_read(&f, &new_errors) == 0);
	check(!f.errors && f.promises.items[0].value == 9);
	/* What is no text file is a mistake, and nothing waits for a pipe. */
	fake_file(r, "/a.policy", MATCH "%c" X, '\0');
	check(policyfile_read(&f, NULL) == -EBADMSG);
	expect_error(&f, "/a.policy: \"zero byte\": text");
	memset(large, '\n', 1024 * 1024 + 1);
	large[1024 * 1024 + 1] = '\0';
	memcpy(large, MATCH X, strlen(MATCH X));
	fake_file(r, "/a.policy", "%s", large);
	check(policyfile_read(&f, NULL) == -EBADMSG);
	expect_error(&f, "/a.policy: \"too large\": at most 1 MiB");
	large[1024 * 1024] = '\0';
	fake_file(r, "/a.policy", "%s", large);
	check(policyfile_read(&f, NULL) == 0 && !f.promises.n);
	policyfile_done(&f);
	f = at(r, "/pipe.policy");
	fifo = asprintf_or_null("%s/pipe.policy", r->prefix);
	check(mkfifo(fifo, 0600) == 0);
	check(policyfile_read(&f, NULL) == -EBADMSG);
	expect_error(&f, "/pipe.policy: \"no regular file\": ");
	policyfile_done(&f);
	fake_dir(r, "/dir.policy");
	f = at(r, "/dir.policy");
	check(policyfile_read(&f, NULL) == -EBADMSG);
	expect_error(&f, "/dir.policy: \"no regular file\": ");
	policyfile_done(&f);
	fake_link(r, "/loop.policy", "loop.policy");
	f = at(r, "/loop.policy");
	check(policyfile_read(&f, NULL) == -EBADMSG);
	expect_error(&f, "/loop.policy: \"Too many levels of symbolic links\": "
			 "a readable file");
	policyfile_done(&f);
}

static void test_mask(struct roots *r)
{
	struct policyfile f = at(r, "/a.policy");

	fake_link(r, "/a.policy", "/dev/null");
	check(policyfile_read(&f, NULL) == 0 && f.mask && f.good);
	fake_file(r, "/b", MATCH X "Weight=7\n");
	fake_link(r, "/a.policy", "b");
	check(policyfile_read(&f, NULL) == 0 && !f.mask && f.promises.n == 1);
	fake_file(r, "/b", "%s", "");
	check(policyfile_read(&f, NULL) == 0 && f.mask && !f.promises.n);
	fake_link(r, "/a.policy", "/dev/full");
	check(policyfile_read(&f, NULL) == -EBADMSG && f.mask);
	policyfile_done(&f);
}

/* Text that is written for a control file says the same when it is read. */
static void test_control(void)
{
	struct policyfile f, again;
	_cleanup_free_ char *text = NULL;

	f = parse(
		"/x/policy.control/dev-a\\x2db.swap.policy",
		"[Match]\nUnit=dev-a\\x2db.swap\n" X
		"ReadIOPSMin='/srv/my data' 1.5K\nReadIOPSMax=/a\\\\\\\\ infinity\n"
		"LatencyTarget=\"/#;=[x]\" 1.5ms\nClass=idle\nWeight=5\n"
		"Weight=/ 6\n");
	check(f.good && f.kind == POLICYFILE_CONTROL && f.promises.n == 6);
	text = policyfile_format("dev-a\\x2db.swap", &f.promises);
	check(text);
	again = parse("/y/policy.control/dev-a\\x2db.swap.policy", text);
	check(again.good && strv_length(again.units) == 1);
	check(streq(again.units[0], f.units[0]));
	check(again.promises.n == f.promises.n);
	for (size_t i = 0; i < f.promises.n; i++) {
		const struct promise *p = &f.promises.items[i];
		const struct promise *q = &again.promises.items[i];

		check(p->key == q->key && p->value == q->value);
		check(p->path ? streq(p->path, q->path) : !q->path);
	}
	policyfile_done(&f);
	policyfile_done(&again);
	refuse("/x/policy.control/db.service.policy", "[Match]\nUnit=db*\n",
	       "/x/policy.control/db.service.policy:2: \"[Match] Unit=db*\": "
	       "the unit that the file is named after\n");
}

int main(void)
{
	static void (*const tests[])(struct roots *) = { test_read, test_mask };

	test_policy();
	test_continuation();
	test_unit_file();
	test_mistakes();
	test_names();
	test_match();
	test_unit_names();
	test_bounds();
	test_control();
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct roots r;

		fake_new(&r);
		tests[i](&r);
		fake_remove(&r);
	}
	return 0;
}
