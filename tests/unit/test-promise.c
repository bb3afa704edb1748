/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The keys of [X-Sutro]: what is read, what is refused, and lists of promises. */

#include <limits.h>

#include "fake.h"
#include "promise.h"

#define INF PROMISE_INFINITY

/* A key and what stands behind it, as in a file; aborts if it is refused. */
static struct promise parse(const char *key, const char *text)
{
	const char *allowed = NULL;
	struct promise p = {};
	enum promise_key k;

	check(promise_key_from_name(key, &k) == 0);
	if (promise_parse(k, text, "test:1", &p, &allowed) < 0)
		fprintf(stderr, "%s=%s: %s\n", key, text, allowed);
	check(p.key == k && p.source && streq(p.source, "test:1"));
	return p;
}

static void expect(const char *key, const char *text, const char *path,
		   uint64_t value)
{
	struct promise p = parse(key, text);

	if (p.value != value || strcmp(path ?: "", p.path ?: ""))
		fprintf(stderr, "%s=%s: %s %llu\n", key, text, p.path,
			(unsigned long long)p.value);
	check(p.value == value && !p.reset);
	check(path ? p.path && streq(p.path, path) : !p.path);
	promise_done(&p);
}

/* Refused, with the sentence of the key or the one about paths. */
static void refuse(const char *key, const char *text, bool path)
{
	const struct promise untouched = { .value = 7 };
	struct promise p = untouched;
	const char *allowed = NULL;
	enum promise_key k;
	int r;

	check(promise_key_from_name(key, &k) == 0);
	r = promise_parse(k, text, "test:1", &p, &allowed);
	if (r != -EINVAL || path == (allowed == promise_info(k)->allowed))
		fprintf(stderr, "%s=%s: %d, %s\n", key, text, r, allowed);
	check(r == -EINVAL && allowed);
	check(path == !!strstr(allowed, "absolute path"));
	check(path || streq(allowed, promise_info(k)->allowed));
	check(!memcmp(&p, &untouched, sizeof(p)));
}

static void test_keys(void)
{
	static const struct {
		const char *name;
		enum promise_kind kind;
		enum promise_unit unit;
		bool write;
	} keys[] = {
		{ "ReadBandwidthMin", PROMISE_KIND_FLOOR, PROMISE_UNIT_BYTES,
		  0 },
		{ "WriteBandwidthMin", PROMISE_KIND_FLOOR, PROMISE_UNIT_BYTES,
		  1 },
		{ "ReadIOPSMin", PROMISE_KIND_FLOOR, PROMISE_UNIT_IOS, 0 },
		{ "WriteIOPSMin", PROMISE_KIND_FLOOR, PROMISE_UNIT_IOS, 1 },
		{ "ReadBandwidthMax", PROMISE_KIND_CEILING, PROMISE_UNIT_BYTES,
		  0 },
		{ "WriteBandwidthMax", PROMISE_KIND_CEILING, PROMISE_UNIT_BYTES,
		  1 },
		{ "ReadIOPSMax", PROMISE_KIND_CEILING, PROMISE_UNIT_IOS, 0 },
		{ "WriteIOPSMax", PROMISE_KIND_CEILING, PROMISE_UNIT_IOS, 1 },
		{ "LatencyTarget", PROMISE_KIND_TARGET, PROMISE_UNIT_USEC, 0 },
		{ "Weight", PROMISE_KIND_WEIGHT, PROMISE_UNIT_NUMBER, 0 },
		{ "Class", PROMISE_KIND_CLASS, PROMISE_UNIT_NUMBER, 0 },
		{ "Importance", PROMISE_KIND_IMPORTANCE, PROMISE_UNIT_NUMBER,
		  0 },
	};
	enum promise_key k;

	check(ARRAY_SIZE(keys) == PROMISE_KEYS);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct promise_info *info;
		struct promise p;

		check(promise_key_from_name(keys[i].name, &k) == 0);
		info = promise_info(k);
		check(streq(info->name, keys[i].name));
		check(info->kind == keys[i].kind && info->unit == keys[i].unit);
		check(info->write == keys[i].write);
		check(info->allowed && *info->allowed);
		p = parse(keys[i].name, "");
		check(p.reset && !p.path);
		promise_done(&p);
	}
	check(promise_key_from_name("readbandwidthmin", &k) == -EINVAL);
	check(promise_key_from_name("ReadBandwidth", &k) == -EINVAL);
	check(promise_key_from_name("", &k) == -EINVAL);
}

/* Sizes: what systemd's own test of parse_size() with base 1000 says. */
static void test_sizes(void)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{ "111", 111 },
		{ "111.4", 111 },
		{ "1112 B", 1112 },
		{ "1112.6 B", 1112 },
		{ "3.5 K", 3500 },
		{ "3. 11 K", 0 },
		{ "3.5 M", 3500000 },
		{ "4.11118G", 4111180000 },
		{ "1G 500M", 1500000000 },
		{ "1G500M3.25K", 1500003250 },
		{ "5 M 2B", 5000002 },
		{ "12P", 0 },
		{ "1P", 1000000000000000 },
		{ "1000T", 1000000000000000 },
		{ "1000T 1", 0 },
		{ "0.001K", 1 },
		{ "0.0009K", 0 },
		{ "0", 0 },
		{ "0.9", 0 },
		{ "-1", 0 },
		{ "+1", 0 },
		{ "1.", 0 },
		{ ".5M", 0 },
		{ "1,5M", 0 },
		{ "1e3", 0 },
		{ "0x10", 0 },
		{ "1k", 0 },
		{ "1MB", 0 },
		{ "1MiB", 0 },
		{ "1M/s", 0 },
		{ "1M 1G", 0 },
		{ "1M 1M", 0 },
		{ "1 1", 0 },
		{ "1M -1K", 0 },
		{ "50%", 0 },
		{ "many", 0 },
		{ "18446744073709551615", 0 },
		{ "18446744073709551616", 0 },
		{ "99999999999999999999999999999999999G", 0 },
		{ "18446744073709551615P", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_free_ char *text =
			asprintf_or_null("/dev/sda %s", good[i].text);

		if (good[i].value) {
			expect("ReadBandwidthMin", text, "/dev/sda",
			       good[i].value);
			expect("WriteIOPSMax", text, "/dev/sda", good[i].value);
		} else {
			refuse("WriteBandwidthMin", text, false);
			refuse("ReadIOPSMax", text, false);
		}
	}
	expect("WriteBandwidthMax", "/ infinity", "/", INF);
	expect("ReadIOPSMax", "/ infinity", "/", INF);
	refuse("WriteBandwidthMin", "/ infinity", false);
	refuse("LatencyTarget", "/ infinity", false);
	refuse("ReadBandwidthMax", "/ Infinity", false);
	refuse("ReadBandwidthMax", "/ infinity M", false);
	refuse("ReadBandwidthMin", "/dev/sda", false);
}

static void test_times(void)
{
	static const struct {
		const char *text;
		uint64_t usec;
	} times[] = {
		{ "5ms", 5000 },
		{ "5 msec", 5000 },
		{ "1s 500us", 1000500 },
		{ "1s500us", 1000500 },
		{ "5", 5000000 },
		{ "0.25", 250000 },
		{ "1.5ms", 1500 },
		{ "250usec", 250 },
		{ "250µs", 250 },
		{ "250μs", 250 },
		{ "1min", 60000000 },
		{ "1m", 60000000 },
		{ "0.5 minutes", 30000000 },
		{ "2 seconds", 2000000 },
		{ "1 sec 1", 0 },
		{ "1us", 1 },
		{ "0.5us", 0 },
		{ "0", 0 },
		{ "1min 1us", 0 },
		{ "61", 0 },
		{ "1h", 0 },
		{ "500us 1s", 0 },
		{ "-5ms", 0 },
		{ "5 ns", 0 },
		{ "ms", 0 },
		{ "5msms", 0 },
		{ "5MS", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		_cleanup_free_ char *text =
			asprintf_or_null("/srv %s", times[i].text);

		if (times[i].usec)
			expect("LatencyTarget", text, "/srv", times[i].usec);
		else
			refuse("LatencyTarget", text, false);
	}
}

static void test_words(void)
{
	expect("Weight", "1", NULL, 1);
	expect("Weight", "10000", NULL, 10000);
	expect("Weight", "/srv 300", "/srv", 300);
	refuse("Weight", "0", false);
	refuse("Weight", "10001", false);
	refuse("Weight", "-1", false);
	refuse("Weight", "100 200", false);
	refuse("Weight", "1K", false);
	refuse("Weight", "/srv", false);
	refuse("Weight", "/srv 0", false);
	refuse("Weight", "/srv 1 2", false);
	refuse("Weight", "srv 100", false);
	refuse("Weight", "/../srv 100", true);
	expect("Class", "rt", NULL, PROMISE_CLASS_RT);
	expect("Class", "be", NULL, PROMISE_CLASS_BE);
	expect("Class", "idle", NULL, PROMISE_CLASS_IDLE);
	refuse("Class", "RT", false);
	refuse("Class", "best-effort", false);
	refuse("Class", "/srv idle", false);
	check(streq(promise_class_name(PROMISE_CLASS_IDLE), "idle"));
	expect("Importance", "0", NULL, 0);
	expect("Importance", "1000", NULL, 1000);
	refuse("Importance", "1001", false);
	refuse("Importance", "-1", false);
	refuse("Importance", "high", false);
	refuse("Importance", "18446744073709551716", false);
}

static void test_paths(void)
{
	static const char *const good[][2] = {
		{ "/", "/" },
		{ "//", "/" },
		{ "/./", "/" },
		{ "/dev/vg/db", "/dev/vg/db" },
		{ "/dev//vg/./db/", "/dev/vg/db" },
		{ "/a/.../..b/.c", "/a/.../..b/.c" },
		{ "\"/srv/my data\"", "/srv/my data" },
		{ "'/srv/my data'", "/srv/my data" },
		{ "/srv/my\" \"data", "/srv/my data" },
		{ "/srv/my\\ data", "/srv/my data" },
		{ "\"/a\\\"b\"", "/a\"b" },
		{ "'/a\"b'", "/a\"b" },
		{ "/by-label/a\\\\x20b", "/by-label/a\\x20b" },
		{ "/srv/%i", "/srv/%i" },
		{ "/srv/Ü/ö", "/srv/Ü/ö" },
	};
	static const char *const bad[] = {
		"vg/db",     "./db",	      "..",
		"/..",	     "/a/../b",	      "/a/..",
		"\"/../\"",  "/.\\./b",	      "\"/srv",
		"'/srv\"",   "\"\"",	      "\"/a\tb\"",
		"/a\x01c",   "/a\x1b[31m",    "/a\x7f",
		"/\xff",     "/\xc0\xaf",     "/\xed\xa0\x80",
		"/\xc2\x85", "/\xef\xbf\xbf", "/\xf4\x90\x80\x80",
		"/\xe2\x82", "\"/a\nb\"",     "50M",
		"\"\\",
	};
	_cleanup_free_ char *path = NULL, *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_free_ char *t =
			asprintf_or_null("%s \t 1K", good[i][0]);

		expect("ReadIOPSMin", t, good[i][1], 1000);
	}
	/* Its blank belongs to the path; nothing is left for the value. */
	refuse("ReadIOPSMin", "/srv\\ 1K", false);
	refuse("ReadIOPSMin", "/srv 1K\\", false);
	refuse("ReadIOPSMin", "/srv\\", true);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_free_ char *t = asprintf_or_null("%s 1K", bad[i]);

		refuse("ReadIOPSMin", t, true);
	}
	/* 4095 bytes are a path, 4096 are not. */
	path = malloc(PATH_MAX + 2);
	check(path);
	path[0] = '/';
	for (size_t i = 1; i <= PATH_MAX; i++)
		path[i] = i % 100 ? 'x' : '/';
	path[PATH_MAX - 1] = '\0';
	text = asprintf_or_null("%s 5", path);
	expect("ReadIOPSMin", text, path, 5);
	path[PATH_MAX - 1] = 'x';
	path[PATH_MAX] = '\0';
	free(text);
	text = asprintf_or_null("%s 5", path);
	refuse("ReadIOPSMin", text, true);
}

static uint64_t random_below(uint64_t n)
{
	return (((uint64_t)random() << 31) ^ random()) % n;
}

static void test_format(void)
{
	static const struct {
		const char *key;
		const char *text;
		const char *again;
	} texts[] = {
		{ "ReadBandwidthMin", "/dev/vg/db 200M", "/dev/vg/db 200M" },
		{ "ReadBandwidthMin", "/dev//vg/db/ 1500M", "/dev/vg/db 1.5G" },
		{ "ReadBandwidthMin", "/x 1.25G", "/x 1250M" },
		{ "ReadBandwidthMin", "/x 0.5G", "/x 500M" },
		{ "ReadBandwidthMin", "/x 1P", "/x 1000T" },
		{ "ReadBandwidthMin", "/x 1234567", "/x 1234567" },
		{ "ReadIOPSMax", "'/my data' infinity",
		  "\"/my data\" infinity" },
		{ "ReadIOPSMax", "'/a\"b\\c' 1", "\"/a\\\"bc\" 1" },
		{ "ReadIOPSMax", "/a\\\\b 1", "\"/a\\\\b\" 1" },
		{ "LatencyTarget", "/x 1min", "/x 60s" },
		{ "LatencyTarget", "/x 0.005", "/x 5ms" },
		{ "LatencyTarget", "/x 1.5ms", "/x 1.5ms" },
		{ "LatencyTarget", "/x 1s 1us", "/x 1000001us" },
		{ "Weight", "300", "300" },
		{ "Weight", "/x 300", "/x 300" },
		{ "Class", "idle", "idle" },
		{ "Importance", "0", "0" },
		{ "ReadIOPSMin", "", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct promise p = parse(texts[i].key, texts[i].text);
		_cleanup_free_ char *again = promise_format(&p);

		if (!again || !streq(again, texts[i].again))
			fprintf(stderr, "%s: %s\n", texts[i].text, again);
		check(again && streq(again, texts[i].again));
		promise_done(&p);
	}
}

/* Whatever is said, written and read again it says the same. */
static void test_format_random(void)
{
	static const char letters[] = "ab. \t\"'\\%#;=[]-/\xc3\xa4";
	static const uint64_t max[PROMISE_KEYS] = {
		[PROMISE_LATENCY_TARGET] = 60000000,
		[PROMISE_WEIGHT] = 10000,
		[PROMISE_CLASS] = PROMISE_CLASSES,
		[PROMISE_IMPORTANCE] = 1000,
	};
	static const uint64_t rounds[] = { 1, 1, 10, 100, 1000, 1000000 };

	srandom(1);
	for (unsigned int i = 0; i < cases(200000); i++) {
		char path[40] = "/x";
		struct promise p = {
			.key = random_below(PROMISE_KEYS),
			.path = path,
		}, q;
		uint64_t n = random_below(30), round;
		_cleanup_free_ char *text = NULL;

		round = rounds[random_below(ARRAY_SIZE(rounds))];
		for (size_t j = 2; j < n; j++) {
			char c = letters[random_below(sizeof(letters) - 1)];

			/* Whole characters, and no ".." or "/": they go. */
			path[j] = c < 0 ? 'z' : strchr("./", c) ? 'y' : c;
			/* A tab is a control character. */
			if (c == '\t')
				path[j] = ' ';
		}
		p.value = random_below(max[p.key] ?: 1000000000000000);
		p.value = p.value / round * round + (p.value < round);
		if (p.key == PROMISE_CLASS)
			p.value = random_below(PROMISE_CLASSES);
		if (p.key == PROMISE_CLASS || p.key == PROMISE_IMPORTANCE ||
		    (p.key == PROMISE_WEIGHT && random_below(2)))
			p.path = NULL;
		text = promise_format(&p);
		check(text);
		q = parse(promise_info(p.key)->name, text);
		if (q.value != p.value)
			fprintf(stderr, "%s: %llu\n", text,
				(unsigned long long)p.value);
		check(q.value == p.value && !q.reset);
		check(p.path ? q.path && streq(p.path, q.path) : !q.path);
		promise_done(&q);
	}
}

/* A sum of parts is the sum, counted in thousandths. */
static void test_sum_random(void)
{
	static const struct {
		const char *suffix;
		uint64_t factor;
	} parts[] = { { "T", 1000000000000 },
		      { "G", 1000000000 },
		      { "M", 1000000 },
		      { "K", 1000 },
		      { "B", 1 } };

	srandom(2);
	for (unsigned int i = 0; i < cases(100000); i++) {
		_cleanup_(text_freep) struct text t = {};
		uint64_t sum = 0;

		text_add(&t, "/x ");
		for (size_t j = 0; j < ARRAY_SIZE(parts); j++) {
			unsigned int whole = random_below(200);
			unsigned int thousandths = random_below(1000);

			if (random_below(2))
				continue;
			text_add(&t, "%u.%03u%s%s%s", whole, thousandths,
				 random_below(2) ? " " : "", parts[j].suffix,
				 random_below(2) ? " " : "");
			sum += whole * parts[j].factor +
			       thousandths * parts[j].factor / 1000;
		}
		/* The reader of files takes blanks at the end off; so here. */
		while (t.p[t.length - 1] == ' ')
			t.p[--t.length] = '\0';
		if (sum)
			expect("ReadBandwidthMax", t.p, "/x", sum);
		else
			refuse("ReadBandwidthMax", t.p, false);
	}
}

/* "key path value; ..." of a list, in order. */
static void expect_list(const struct promises *l, const char *expected)
{
	_cleanup_(text_freep) struct text t = {};

	text_add(&t, "%s", "");
	for (size_t i = 0; i < l->n; i++) {
		_cleanup_free_ char *text = promise_format(&l->items[i]);

		text_add(&t, "%s%s=%s", i ? "; " : "",
			 promise_info(l->items[i].key)->name, text);
	}
	if (!streq(t.p, expected))
		fprintf(stderr, "%s\n", t.p);
	check(streq(t.p, expected));
}

static void say(struct promises *l, const char *key, const char *text,
		struct promises *displaced)
{
	struct promise p = parse(key, text);

	check(promises_apply(l, &p, displaced) == 0);
	promise_done(&p);
}

static void test_lists(void)
{
	struct promises l = {}, gone = {};

	check(promises_importance(&l) == 100);
	say(&l, "ReadIOPSMin", "/a 1", &gone);
	say(&l, "ReadIOPSMin", "/b 2", &gone);
	say(&l, "WriteIOPSMin", "/a 3", &gone);
	say(&l, "Weight", "4", &gone);
	say(&l, "Weight", "/a 5", &gone);
	say(&l, "Importance", "6", &gone);
	expect_list(&gone, "");
	expect_list(&l,
		    "ReadIOPSMin=/a 1; ReadIOPSMin=/b 2; WriteIOPSMin=/a 3; "
		    "Weight=4; Weight=/a 5; Importance=6");
	/* The later one for the same key and path holds. */
	say(&l, "ReadIOPSMin", "/a/ 7", &gone);
	say(&l, "Weight", "8", &gone);
	expect_list(&gone, "ReadIOPSMin=/a 1; Weight=4");
	expect_list(&l, "ReadIOPSMin=/b 2; WriteIOPSMin=/a 3; Weight=/a 5; "
			"Importance=6; ReadIOPSMin=/a 7; Weight=8");
	check(promises_find(&l, PROMISE_READ_IOPS_MIN, "/a")->value == 7);
	check(promises_find(&l, PROMISE_WEIGHT, NULL)->value == 8);
	check(promises_find(&l, PROMISE_WEIGHT, "/a")->value == 5);
	check(!promises_find(&l, PROMISE_WEIGHT, "/b"));
	check(!promises_find(&l, PROMISE_READ_IOPS_MIN, NULL));
	check(promises_importance(&l) == 6);
	/* A reset is about all paths of its key and is not kept itself. */
	say(&l, "ReadIOPSMin", "", NULL);
	say(&l, "Weight", "", &gone);
	expect_list(&l, "WriteIOPSMin=/a 3; Importance=6");
	expect_list(&gone, "ReadIOPSMin=/a 1; Weight=4; Weight=/a 5; Weight=8");
	promises_done(&l);
	promises_done(&gone);
}

static void test_plain(void)
{
	_cleanup_(text_freep) struct text t = {};
	char many[400];

	check(text_is_plain("") && text_is_plain("aä€😀"));
	check(text_add_plain(&t, "a\tb\xff\x1b[1mä\xc3", 160) == 0);
	check(streq(t.p, "a?b??[1mä?"));
	memset(many, 'x', sizeof(many));
	many[399] = '\0';
	t.length = 0;
	check(text_add_plain(&t, many, 160) == 0);
	check(t.length == 163 && streq(t.p + 157, "xxx..."));
}

int main(void)
{
	test_keys();
	test_sizes();
	test_times();
	test_words();
	test_paths();
	test_format();
	test_format_random();
	test_sum_random();
	test_lists();
	test_plain();
	return 0;
}
