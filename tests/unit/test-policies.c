/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The catalogue: which files count, what holds of all that is said, and setting it. */

#include <sys/stat.h>

#include "fake.h"
#include "policies.h"

#define X "[X-Sutro]\n"
#define MATCH "[Match]\nUnit=db.service\n"
#define VENDOR "/usr/lib/sutro/policy.d/"
#define RUN "/run/sutro/policy.d/"
#define ETC "/etc/sutro/policy.d/"
#define CONTROL "/etc/sutro/policy.control/"
#define CONTROL_RUN "/run/sutro/policy.control/"
#define OWN "/etc/systemd/system/db.service"

static struct policies *catalogue(const struct roots *r)
{
	struct policies *p;

	check(policies_new(r, &p) == 0);
	check(policies_load(p, NULL) == 0);
	return p;
}

/* "Key=value FILE:LINE; ...", files without the path of the machine. */
static char *describe(const struct roots *r, const struct promises *l)
{
	struct text t = {};

	text_add(&t, "%s", "");
	for (size_t i = 0; i < l->n; i++) {
		const struct promise *p = &l->items[i];
		_cleanup_free_ char *value = promise_format(p);

		text_add(&t, "%s%s=%s %s", i ? "; " : "",
			 promise_info(p->key)->name, value,
			 startswith(p->source, r->prefix) ?: p->source);
	}
	return t.p;
}

static void expect_more(const struct roots *r, const struct policies *p,
			const struct promises *more, const char *in_force,
			const char *overridden)
{
	const struct promises *const list[] = { more };
	_cleanup_free_ char *holds = NULL, *hidden = NULL;
	struct stated s;

	check(policies_state(p, "db.service", list, more ? 1 : 0, &s) == 0);
	holds = describe(r, &s.in_force);
	hidden = describe(r, &s.overridden);
	if (!streq(holds, in_force) || !streq(hidden, overridden))
		fprintf(stderr, "%s\nhides %s\n", holds, hidden);
	check(streq(holds, in_force));
	check(streq(hidden, overridden));
	stated_done(&s);
}

/* What holds for db.service when everything is read for the first time. */
static void expect(const struct roots *r, const char *in_force,
		   const char *overridden)
{
	struct policies *p = catalogue(r);

	expect_more(r, p, NULL, in_force, overridden);
	policies_free(p);
}

static void test_directories(struct roots *r)
{
	expect(r, "", "");
	fake_file(r, VENDOR "20-b.policy", MATCH X "Weight=20\n");
	fake_file(r, VENDOR "10-a.policy", MATCH X "Weight=10\nClass=rt\n");
	fake_file(r, RUN "30-c.policy",
		  "[Match]\nUnit=other.slice\n" X "Weight=3\n");
	fake_file(r, ETC "README", "not read");
	fake_file(r, ETC ".hidden.policy", "not read");
	expect(r,
	       "Class=rt " VENDOR "10-a.policy:5; Weight=20 " VENDOR
	       "20-b.policy:4",
	       "Weight=10 " VENDOR "10-a.policy:4");
	/* A file of the same name in /run, and then in /etc, is read instead. */
	fake_file(r, RUN "20-b.policy", MATCH X "Weight=21\n");
	expect(r,
	       "Class=rt " VENDOR "10-a.policy:5; Weight=21 " RUN
	       "20-b.policy:4",
	       "Weight=10 " VENDOR "10-a.policy:4");
	fake_file(r, ETC "20-b.policy", MATCH X "Weight=22\n");
	expect(r,
	       "Class=rt " VENDOR "10-a.policy:5; Weight=22 " ETC
	       "20-b.policy:4",
	       "Weight=10 " VENDOR "10-a.policy:4");
	/* A link to /dev/null hides it and says nothing. */
	fake_link(r, ETC "20-b.policy", "/dev/null");
	expect(r,
	       "Weight=10 " VENDOR "10-a.policy:4; Class=rt " VENDOR
	       "10-a.policy:5",
	       "");
}

static void test_dropins(struct roots *r)
{
	fake_file(r, VENDOR "a.policy",
		  MATCH X "ReadIOPSMin=/a 1\nReadIOPSMin=/b 2\nWeight=5\n");
	fake_file(r, VENDOR "a.policy.d/20.conf", X "ReadIOPSMin=/a 3\n");
	fake_file(r, RUN "a.policy.d/10.conf", X "ReadIOPSMin=/a 4\n");
	fake_file(r, ETC "a.policy.d/not-read", "nonsense\n");
	fake_file(r, ETC "b.policy.d/10.conf", MATCH X "Weight=9\n");
	expect(r,
	       "ReadIOPSMin=/b 2 " VENDOR "a.policy:5; Weight=5 " VENDOR
	       "a.policy:6; ReadIOPSMin=/a 3 " VENDOR "a.policy.d/20.conf:2",
	       "ReadIOPSMin=/a 1 " VENDOR "a.policy:4; ReadIOPSMin=/a 4 " RUN
	       "a.policy.d/10.conf:2");
	/* Drop-ins are masked by name, too, and may reset and match. */
	fake_link(r, ETC "a.policy.d/10.conf", "/dev/null");
	fake_file(r, ETC "a.policy.d/30.conf",
		  "[Match]\nUnit=\nUnit=db*\n" X "ReadIOPSMin=\nWeight=6\n");
	expect(r, "Weight=6 " ETC "a.policy.d/30.conf:6",
	       "ReadIOPSMin=/a 1 " VENDOR "a.policy:4; ReadIOPSMin=/b 2 " VENDOR
	       "a.policy:5; ReadIOPSMin=/a 3 " VENDOR
	       "a.policy.d/20.conf:2; Weight=5 " VENDOR "a.policy:6");
	fake_file(r, ETC "a.policy.d/40.conf",
		  "[Match]\nUnit=\nUnit=x.slice\n");
	expect(r, "", "");
	/* Without the file its drop-ins say nothing. */
	fake_file(r, ETC "a.policy.d/40.conf", MATCH);
	fake_link(r, ETC "a.policy", "/dev/null");
	expect(r, "", "");
}

static void test_order(struct roots *r)
{
	struct policies *p;
	struct promises client = {};
	char *dropins[] = { OWN ".d/10.conf", OWN ".d/gone.conf", NULL };
	const struct said said[] = { { "ReadIOPSMin", "/a 6" },
				     { "ReadIOPSMax", "/a infinity" } };

	fake_file(r, ETC "a.policy",
		  MATCH X "ReadIOPSMin=/a 1\nReadIOPSMax=/a 9\nClass=be\n");
	fake_file(r, OWN,
		  "[Service]\nExecStart=/bin/true\n" X
		  "ReadIOPSMin=/a 2\nWeight=2\nImportance=2\n");
	fake_file(r, OWN ".d/10.conf", X "ReadIOPSMin=/a 3\n");
	fake_file(r, CONTROL "db.service.policy",
		  MATCH X "ReadIOPSMin=/a 4\nImportance=4\n");
	fake_file(r, CONTROL_RUN "db.service.policy",
		  MATCH X "ReadIOPSMin=/a 5\nWeight=\n");
	p = catalogue(r);
	check(policies_load_unit(p, "db.service", OWN, dropins, NULL) == 0);
	check(promises_say(&client, said, 2, "client :1.7", NULL) == 0);
	expect_more(r, p, &client,
		    "Class=be " ETC "a.policy:6; Weight=2 " OWN
		    ":5; Importance=4 " CONTROL
		    "db.service.policy:5; ReadIOPSMin=/a 6 client :1.7; "
		    "ReadIOPSMax=/a infinity client :1.7",
		    "ReadIOPSMin=/a 2 " OWN ":4; ReadIOPSMin=/a 1 " ETC
		    "a.policy:4; ReadIOPSMin=/a 3 " OWN
		    ".d/10.conf:2; Importance=2 " OWN
		    ":6; ReadIOPSMin=/a 4 " CONTROL
		    "db.service.policy:4; ReadIOPSMin=/a 5 " CONTROL_RUN
		    "db.service.policy:4; ReadIOPSMax=/a 9 " ETC "a.policy:5");
	/* The control file of another unit says nothing about this one. */
	fake_file(r, CONTROL "x.service.policy", MATCH X "Weight=77\n");
	promises_done(&client);
	policies_forget_unit(p, "db.service");
	check(policies_reset(p, "db.service", POLICY_RUNTIME) == 0);
	check(policies_reset(p, "db.service", POLICY_RUNTIME) == 0);
	check(policies_load(p, NULL) == 0);
	expect_more(r, p, NULL,
		    "ReadIOPSMax=/a 9 " ETC "a.policy:5; Class=be " ETC
		    "a.policy:6; ReadIOPSMin=/a 4 " CONTROL
		    "db.service.policy:4; Importance=4 " CONTROL
		    "db.service.policy:5",
		    "ReadIOPSMin=/a 1 " ETC "a.policy:4");
	policies_free(p);
}

static void expect_errors(const struct policies *p, size_t n, const char *part)
{
	_cleanup_strv_ char **errors = NULL;

	check(policies_errors(p, &errors) == 0);
	for (char **e = errors; e && *e && strv_length(errors) != n; e++)
		fprintf(stderr, "%s\n", *e);
	check(strv_length(errors) == n);
	check(!n || strstr(errors[0], part));
}

static void test_last_good(struct roots *r)
{
	_cleanup_strv_ char **errors = NULL;
	char *dropins[] = { OWN ".d/10.conf", NULL };
	struct policies *p;

	fake_file(r, VENDOR "a.policy", MATCH X "Weight=1\n");
	fake_file(r, VENDOR "a.policy.d/1.conf", X "Class=rt\n");
	fake_file(r, OWN, X "Importance=1\n");
	fake_file(r, CONTROL "db.service.policy", MATCH X "ReadIOPSMin=/a 1\n");
	p = catalogue(r);
	check(policies_load_unit(p, "db.service", OWN, NULL, &errors) == 0);
	expect_errors(p, 0, "");
	/* Mistakes everywhere: what was in force is still. */
	fake_file(r, VENDOR "a.policy", MATCH X "Weight=2\nWeight=x\n");
	fake_file(r, VENDOR "a.policy.d/1.conf", X "Class=x\n");
	fake_file(r, OWN, X "Importance=x\n");
	fake_file(r, CONTROL "db.service.policy", MATCH X "ReadIOPSMin=x\n");
	for (int i = 0; i < 3; i++) {
		check(policies_load(p, &errors) == 0);
		check(policies_load_unit(p, "db.service", OWN, NULL, &errors) ==
		      0);
		expect_errors(p, 4,
			      VENDOR "a.policy:5: \"[X-Sutro] Weight=x\": ");
		/* Each mistake is news once. */
		check(strv_length(errors) == 4);
		expect_more(r, p, NULL,
			    "Weight=1 " VENDOR "a.policy:4; Class=rt " VENDOR
			    "a.policy.d/1.conf:2; Importance=1 " OWN
			    ":2; ReadIOPSMin=/a 1 " CONTROL
			    "db.service.policy:4",
			    "");
	}
	/* A new file of the same name with a mistake does not end it either. */
	fake_file(r, ETC "a.policy", MATCH X "Weight=y\n");
	fake_file(r, OWN ".d/10.conf", X "Importance=y\n");
	check(policies_load(p, &errors) == 0);
	check(policies_load_unit(p, "db.service", OWN, dropins, &errors) == 0);
	check(strv_length(errors) == 6);
	expect_errors(p, 5, ETC "a.policy:4: ");
	expect_more(r, p, NULL,
		    "Weight=1 " VENDOR "a.policy:4; Class=rt " VENDOR
		    "a.policy.d/1.conf:2; Importance=1 " OWN
		    ":2; ReadIOPSMin=/a 1 " CONTROL "db.service.policy:4",
		    "");
	/* Corrected, removed. */
	fake_file(r, ETC "a.policy", MATCH X "Weight=3\n");
	fake_file(r, VENDOR "a.policy.d/1.conf", X);
	fake_file(r, OWN, "%s", "");
	check(policies_load(p, &errors) == 0);
	check(policies_load_unit(p, "db.service", OWN, NULL, &errors) == 0);
	check(policies_reset(p, "db.service", POLICY_PERSISTENT) == 0);
	expect_errors(p, 0, "");
	expect_more(r, p, NULL, "Weight=3 " ETC "a.policy:4", "");
	policies_free(p);
	/* A daemon that starts has no last good version. */
	fake_file(r, ETC "a.policy", MATCH X "Weight=y\n");
	expect(r, "", "");
}

/* Drop-ins of a unit may have one name in two folders: each keeps its own version. */
static void test_own_dropins(struct roots *r)
{
	static const char service[] = "/etc/systemd/system/service.d/10.conf";
	char *dropins[] = { (char *)service, OWN ".d/10.conf", NULL };
	struct policies *p = catalogue(r);

	fake_file(r, service, X "Weight=1\nClass=rt\n");
	fake_file(r, OWN ".d/10.conf", X "Weight=2\n");
	check(policies_load_unit(p, "db.service", "", dropins, NULL) == 0);
	fake_file(r, service, X "Weight=x\n");
	fake_file(r, OWN ".d/10.conf", X "Weight=y\n");
	for (int i = 0; i < 2; i++) {
		check(policies_load_unit(p, "db.service", "", dropins, NULL) ==
		      0);
		expect_errors(p, 2, "Weight=x");
		expect_more(r, p, NULL,
			    "Class=rt /etc/systemd/system/service.d/10.conf:3; "
			    "Weight=2 " OWN ".d/10.conf:2",
			    "Weight=1 /etc/systemd/system/service.d/10.conf:2");
	}
	/* A unit that is gone says nothing, and its mistakes are forgotten. */
	policies_forget_unit(p, "db.service");
	policies_forget_unit(p, "db.service");
	expect_errors(p, 0, "");
	expect_more(r, p, NULL, "", "");
	policies_free(p);
}

static int set(struct policies *p, enum policy_lifetime lifetime,
	       const char *key, const char *value, const char *error)
{
	const struct said said[] = { { "Importance", "7" }, { key, value } };
	_cleanup_free_ char *sentence = NULL;
	int r = policies_set(p, "db.service", lifetime, said, 2, &sentence);

	if (strcmp(sentence ?: "", error))
		fprintf(stderr, "%s\n", sentence);
	check(streq(sentence ?: "", error));
	return r;
}

static void test_set(struct roots *r)
{
	struct policies *p = catalogue(r);
	const struct said reset[] = { { "ReadIOPSMin", "" },
				      { "Importance", "" } };
	_cleanup_free_ char *text = NULL, *path = NULL, *error = NULL;
	mode_t mask = umask(077);
	struct stat st;

	fake_dir(r, "/etc");
	check(set(p, POLICY_PERSISTENT, "ReadIOPSMin", "/a 1", "") == 0);
	check(set(p, POLICY_PERSISTENT, "ReadIOPSMin", "'/b c' 2K", "") == 0);
	check(set(p, POLICY_PERSISTENT, "ReadIOPSMin", "/a/ 3", "") == 0);
	umask(mask);
	text = fake_read(r, CONTROL "db.service.policy");
	check(strstr(text, "[Match]\nUnit=db.service\n\n" X
			   "ReadIOPSMin=\"/b c\" 2K\nImportance=7\n"
			   "ReadIOPSMin=/a 3"));
	path = asprintf_or_null("%s" CONTROL "db.service.policy", r->prefix);
	check(stat(path, &st) == 0 && (st.st_mode & 07777) == 0644);
	*strrchr(path, '/') = '\0';
	check(stat(path, &st) == 0 && (st.st_mode & 07777) == 0755);
	*strrchr(path, '/') = '\0';
	check(stat(path, &st) == 0 && (st.st_mode & 07777) == 0755);
	check(set(p, POLICY_RUNTIME, "ReadIOPSMin", "/a 4", "") == 0);
	expect_more(r, p, NULL,
		    "ReadIOPSMin=\"/b c\" 2K " CONTROL
		    "db.service.policy:6; Importance=7 " CONTROL_RUN
		    "db.service.policy:6; ReadIOPSMin=/a 4 " CONTROL_RUN
		    "db.service.policy:7",
		    "Importance=7 " CONTROL
		    "db.service.policy:7; ReadIOPSMin=/a 3 " CONTROL
		    "db.service.policy:8");
	/* The same after a restart. */
	policies_free(p);
	p = catalogue(r);
	/* All or nothing: the Importance=7 before the mistake is not set. */
	check(policies_reset(p, "db.service", POLICY_RUNTIME) == 0);
	check(set(p, POLICY_RUNTIME, "ReadIOPSMin", "a 1",
		  "\"ReadIOPSMin=a 1\": first an absolute path without \"..\" "
		  "and control characters, in quotes if it has blanks, at most "
		  "4095 bytes") == -EINVAL);
	check(set(p, POLICY_RUNTIME, "Wait", "1",
		  "\"Wait\": one of ReadBandwidthMin, WriteBandwidthMin, "
		  "ReadIOPSMin, WriteIOPSMin, ReadBandwidthMax, "
		  "WriteBandwidthMax, ReadIOPSMax, WriteIOPSMax, LatencyTarget, "
		  "Weight, Class, Importance") == -EINVAL);
	expect_more(r, p, NULL,
		    "ReadIOPSMin=\"/b c\" 2K " CONTROL
		    "db.service.policy:6; Importance=7 " CONTROL
		    "db.service.policy:7; ReadIOPSMin=/a 3 " CONTROL
		    "db.service.policy:8",
		    "");
	/* With nothing left there is no file. */
	check(policies_set(p, "db.service", POLICY_PERSISTENT, reset, 2,
			   &error) == 0);
	expect_more(r, p, NULL, "", "");
	free(path);
	path = asprintf_or_null("%s" CONTROL "db.service.policy", r->prefix);
	check(stat(path, &st) < 0 && errno == ENOENT);
	check(policies_set(p, "db.service", POLICY_PERSISTENT, reset, 2,
			   &error) == 0);
	check(!error);
	policies_free(p);
}

static void test_set_edited(struct roots *r)
{
	struct policies *p = catalogue(r);

	/* What somebody wrote by hand meanwhile is kept. */
	check(set(p, POLICY_RUNTIME, "Weight", "5", "") == 0);
	fake_file(r, CONTROL_RUN "db.service.policy", MATCH X "Class=idle\n");
	check(set(p, POLICY_RUNTIME, "Weight", "6", "") == 0);
	expect_more(r, p, NULL,
		    "Class=idle " CONTROL_RUN
		    "db.service.policy:6; Importance=7 " CONTROL_RUN
		    "db.service.policy:7; Weight=6 " CONTROL_RUN
		    "db.service.policy:8",
		    "");
	/* A mistake in it is not written over. */
	fake_file(r, CONTROL_RUN "db.service.policy", MATCH X "Class=no\n");
	{
		const struct said said[] = { { "Weight", "7" } };
		_cleanup_free_ char *error = NULL, *text = NULL;

		check(policies_set(p, "db.service", POLICY_RUNTIME, said, 1,
				   &error) == -EBADMSG);
		check(strstr(error, "db.service.policy:4: \"[X-Sutro] "
				    "Class=no\": rt, be or idle; correct"));
		text = fake_read(r, CONTROL_RUN "db.service.policy");
		check(streq(text, MATCH X "Class=no"));
	}
	check(policies_reset(p, "db.service", POLICY_RUNTIME) == 0);
	check(set(p, POLICY_RUNTIME, "Weight", "7", "") == 0);
	policies_free(p);
}

static void test_set_trust(struct roots *r)
{
	static const char *const names[] = {
		"../../x.service", "a/b.service", "db",	      "",
		"db*.service",	   "a\n.service", ".service", "foo@.service",
	};
	const struct said said[] = { { "Weight", "7" } };
	struct policies *p = catalogue(r);
	_cleanup_free_ char *text = NULL, *outside = NULL;
	char name[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *error = NULL;

		check(policies_set(p, names[i], POLICY_RUNTIME, said, 1,
				   &error) == -EINVAL);
		check(strstr(error, "the name of a service"));
		check(policies_reset(p, names[i], POLICY_RUNTIME) == -EINVAL);
	}
	/* 248 bytes fit into a file name, 249 are refused. */
	for (size_t n = 248; n <= 249; n++) {
		_cleanup_free_ char *error = NULL;

		memset(name, 'a', n);
		strcpy(name + n - strlen(".scope"), ".scope");
		check(policies_set(p, name, POLICY_RUNTIME, said, 1, &error) ==
		      (n == 248 ? 0 : -EINVAL));
		check(!error == (n == 248));
	}
	/* Links are replaced, not followed. */
	fake_file(r, "/outside", "untouched\n");
	outside = asprintf_or_null("%s/outside", r->prefix);
	fake_link(r, CONTROL_RUN ".new", outside);
	fake_link(r, CONTROL_RUN "db.service.policy", "/dev/null");
	check(set(p, POLICY_RUNTIME, "Weight", "7", "") == 0);
	expect_more(r, p, NULL,
		    "Importance=7 " CONTROL_RUN
		    "db.service.policy:6; Weight=7 " CONTROL_RUN
		    "db.service.policy:7",
		    "");
	text = fake_read(r, "/outside");
	check(streq(text, "untouched"));
	fake_dir(r, "/elsewhere");
	fake_link(r, "/etc/sutro/policy.control", "../../elsewhere");
	check(set(p, POLICY_PERSISTENT, "Weight", "7", "") == -ENOTDIR);
	policies_free(p);
}

static void test_set_many(struct roots *r)
{
	struct policies *p = catalogue(r);
	struct promises l = {};
	_cleanup_free_ char *error = NULL;

	for (int i = 0; i < 255; i++) {
		_cleanup_free_ char *value = asprintf_or_null("/%d 1", i);
		const struct said said[] = { { "ReadIOPSMin", value } };

		check(promises_say(&l, said, 1, "", &error) == 0);
	}
	{
		const struct said said[] = { { "Weight", "1" } };

		check(promises_say(&l, said, 1, "", &error) == -EINVAL);
		check(streq(error,
			    "\"Weight=1\": too many, at most 255 for one unit"));
	}
	check(l.n == 255);
	promises_done(&l);
	policies_free(p);
}

static uint64_t random_below(uint64_t n)
{
	return random() % n;
}

/* Random sources in all places; the oracle goes through them from the strongest and
 * takes the first word on each key.
 */
static void test_random(struct roots *r)
{
	static const char *const files[] = { ETC "a.policy",
					     ETC "a.policy.d/1.conf",
					     ETC "a.policy.d/2.conf",
					     VENDOR "b.policy",
					     OWN,
					     OWN ".d/1.conf",
					     CONTROL "db.service.policy",
					     CONTROL_RUN "db.service.policy" };
	/* Files with the same number are one layer. */
	static const int layer[] = { 0, 0, 0, 1, 2, 2, 3, 4 };
	static const char *const keys[] = { "ReadIOPSMin=/a", "ReadIOPSMin=/b",
					    "WriteIOPSMax=/a", "Weight=" };
	char *dropins[] = { OWN ".d/1.conf", NULL };

	srandom(4);
	for (unsigned int round = 0; round < cases(300); round++) {
		uint64_t values[ARRAY_SIZE(files)][ARRAY_SIZE(keys)] = {};
		bool resets[ARRAY_SIZE(files)] = {};
		struct policies *p;
		struct stated s;
		size_t n = 0;

		for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
			_cleanup_(text_freep) struct text t = {};

			text_add(&t, "%s" X, f == 4 || f == 5 ? "" : MATCH);
			resets[f] = random_below(3) == 0;
			if (resets[f])
				text_add(&t, "ReadIOPSMin=\nWriteIOPSMax=\n"
					     "Weight=\n");
			for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
				if (random_below(2))
					continue;
				values[f][k] = 1 + random_below(10000);
				text_add(&t, "%s %d\n", keys[k],
					 (int)values[f][k]);
			}
			fake_file(r, files[f], "%s", t.p);
		}
		p = catalogue(r);
		check(policies_load_unit(p, "db.service", OWN, dropins, NULL) ==
		      0);
		check(policies_state(p, "db.service", NULL, 0, &s) == 0);
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			static const enum promise_key number[] = {
				PROMISE_READ_IOPS_MIN, PROMISE_READ_IOPS_MIN,
				PROMISE_WRITE_IOPS_MAX, PROMISE_WEIGHT
			};
			const char *path = strchr(keys[k], '/');
			struct promise *holds;
			uint64_t value = 0;
			int ended = -1;

			for (int f = ARRAY_SIZE(files) - 1; f >= 0 && !value;
			     f--)
				if (layer[f] != ended) {
					value = values[f][k];
					if (resets[f])
						ended = layer[f];
				}
			holds = promises_find(&s.in_force, number[k], path);
			check(holds ? holds->value == value : !value);
			n += !!value;
		}
		check(s.in_force.n == n);
		stated_done(&s);
		policies_free(p);
	}
}

int main(void)
{
	static void (*const tests[])(struct roots *) = {
		test_directories, test_dropins, test_order,	 test_last_good,
		test_own_dropins, test_set,	test_set_edited, test_set_trust,
		test_set_many,	  test_random,
	};

	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		struct roots r;

		fake_new(&r);
		tests[i](&r);
		fake_remove(&r);
	}
	return 0;
}
