/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Policy keys: a table of them, and the syntax of their values.
 *
 *	ReadBandwidthMin="/srv/my data" 1.5G
 *	\______________/ \____________/ \__/
 *	      key             path      value: 1500000000 bytes per second
 *
 * 1. A path is one word as in systemd: in quotes, single or double, if it has
 *    blanks; a backslash takes the next character as it is. It is absolute, has no
 *    ".." (its target depends on links in the file system) and no
 *    control characters, and gets shorter where that changes nothing: "//", "/./"
 *    and a "/" at the end go.
 *    Or it is the word "any": each volume that the unit uses. Weight=any 300 is
 *    Weight=300: that is what a weight without a path means.
 * 2. Values are sizes, times, numbers or words; a floor may be a percentage, and a
 *    target's time may have a percentile behind it. value.c reads and writes them.
 */

#include <limits.h>

#include "policy/promise.h"

#define BLANKS " \t"

#define BYTES_ALLOWED                                                          \
	"a path and bytes per second, such as /dev/vg/db 200M, at most 1000T " \
	"(K, M, G, T: powers of 1000)"
#define IOS_ALLOWED                                                             \
	"a path and requests per second, such as /dev/vg/db 5K, at most 1000T " \
	"(K, M, G, T: powers of 1000)"
#define LATENCY_ALLOWED                                                      \
	"a path and a time from 1us to 1min, then a percentile from P50 to " \
	"P99.9 (without one: P95), such as /dev/vg/db 5ms or "               \
	"/dev/vg/db 5ms P99"
#define OR_PERCENT "; or 1% to 100% of the capacity of the device"
#define OR_INFINITY "; infinity: no limit"

static const char path_allowed[] =
	"first an absolute path without \"..\" and control characters, in "
	"quotes if it has blanks, at most 4095 bytes, or the word any: each "
	"volume that the unit uses";

static const char percent_allowed[] =
	"a path and 1% to 100% of the capacity of the device, with at most two "
	"decimals, such as /dev/vg/db 12.5%";

static const struct promise_info infos[] = {
	[PROMISE_READ_BANDWIDTH_MIN] = { "ReadBandwidthMin", PROMISE_KIND_FLOOR,
					 PROMISE_UNIT_BYTES, false,
					 BYTES_ALLOWED OR_PERCENT },
	[PROMISE_WRITE_BANDWIDTH_MIN] = { "WriteBandwidthMin",
					  PROMISE_KIND_FLOOR,
					  PROMISE_UNIT_BYTES, true,
					  BYTES_ALLOWED OR_PERCENT },
	[PROMISE_READ_IOPS_MIN] = { "ReadIOPSMin", PROMISE_KIND_FLOOR,
				    PROMISE_UNIT_IOS, false,
				    IOS_ALLOWED OR_PERCENT },
	[PROMISE_WRITE_IOPS_MIN] = { "WriteIOPSMin", PROMISE_KIND_FLOOR,
				     PROMISE_UNIT_IOS, true,
				     IOS_ALLOWED OR_PERCENT },
	[PROMISE_READ_BANDWIDTH_MAX] = { "ReadBandwidthMax",
					 PROMISE_KIND_CEILING,
					 PROMISE_UNIT_BYTES, false,
					 BYTES_ALLOWED OR_INFINITY },
	[PROMISE_WRITE_BANDWIDTH_MAX] = { "WriteBandwidthMax",
					  PROMISE_KIND_CEILING,
					  PROMISE_UNIT_BYTES, true,
					  BYTES_ALLOWED OR_INFINITY },
	[PROMISE_READ_IOPS_MAX] = { "ReadIOPSMax", PROMISE_KIND_CEILING,
				    PROMISE_UNIT_IOS, false,
				    IOS_ALLOWED OR_INFINITY },
	[PROMISE_WRITE_IOPS_MAX] = { "WriteIOPSMax", PROMISE_KIND_CEILING,
				     PROMISE_UNIT_IOS, true,
				     IOS_ALLOWED OR_INFINITY },
	[PROMISE_LATENCY_TARGET] = { "LatencyTarget", PROMISE_KIND_TARGET,
				     PROMISE_UNIT_USEC, false, LATENCY_ALLOWED,
				     LATENCY_READ },
	[PROMISE_WRITE_LATENCY_TARGET] = { "WriteLatencyTarget",
					   PROMISE_KIND_TARGET,
					   PROMISE_UNIT_USEC, true,
					   LATENCY_ALLOWED, LATENCY_WRITE },
	[PROMISE_FSYNC_LATENCY_TARGET] = { "FsyncLatencyTarget",
					   PROMISE_KIND_TARGET,
					   PROMISE_UNIT_USEC, true,
					   LATENCY_ALLOWED, LATENCY_FSYNC },
	[PROMISE_WEIGHT] = { "Weight", PROMISE_KIND_WEIGHT, PROMISE_UNIT_NUMBER,
			     false,
			     "1 to 10000, or a path and 1 to 10000, such as "
			     "/dev/vg/db 300" },
	[PROMISE_CLASS] = { "Class", PROMISE_KIND_CLASS, PROMISE_UNIT_NUMBER,
			    false, "rt, be or idle" },
	[PROMISE_IMPORTANCE] = { "Importance", PROMISE_KIND_IMPORTANCE,
				 PROMISE_UNIT_NUMBER, false, "0 to 1000" },
};

static const char *const class_names[] = {
	[PROMISE_CLASS_RT] = "rt",
	[PROMISE_CLASS_BE] = "be",
	[PROMISE_CLASS_IDLE] = "idle",
};

const struct promise_info *promise_info(enum promise_key key)
{
	return &infos[key];
}

int promise_key_from_name(const char *name, enum promise_key *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(infos); i++)
		if (streq(infos[i].name, name)) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

const char *promise_class_name(enum promise_class class)
{
	return class_names[class];
}

static char *format_target(uint64_t usec, uint32_t percentile)
{
	_cleanup_free_ char *time = value_format_time(usec), *word = NULL;

	if (!time || percentile == PERCENTILE_DEFAULT)
		return TAKE_PTR(time);
	word = value_format_percentile(percentile);
	return word ? asprintf_or_null("%s %s", time, word) : NULL;
}

char *promise_format_value(enum promise_key key, uint64_t value, uint32_t part,
			   uint32_t percentile)
{
	if (part)
		return value_format_percent(part);
	if (infos[key].kind == PROMISE_KIND_CEILING &&
	    value == PROMISE_INFINITY)
		return strdup("infinity");
	if (infos[key].kind == PROMISE_KIND_CLASS)
		return strdup(value < PROMISE_CLASSES ? class_names[value]
						      : "?");
	switch (infos[key].unit) {
	case PROMISE_UNIT_BYTES:
	case PROMISE_UNIT_IOS:
		return value_format_size(value);
	case PROMISE_UNIT_USEC:
		return format_target(value, percentile);
	case PROMISE_UNIT_NUMBER:
		break;
	}
	return asprintf_or_null("%llu", (unsigned long long)value);
}

static int parse_class(const char *s, uint64_t *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(class_names); i++)
		if (streq(s, class_names[i])) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

static int parse_between(const char *s, uint64_t min, uint64_t max,
			 uint64_t *ret)
{
	uint64_t value;
	int err = parse_u64(s, &value);

	if (err)
		return err;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

static bool is_percent(enum promise_key key, const char *s)
{
	return infos[key].kind == PROMISE_KIND_FLOOR && endswith(s, "%");
}

/* Parse "5ms" or "1s 500us P99". */
static int parse_target(const char *s, struct promise *ret)
{
	_cleanup_free_ char *time = NULL;
	const char *word = strchr(s, 'P');

	ret->percentile = PERCENTILE_DEFAULT;
	if (!word)
		return value_parse_time(s, &ret->value);
	if (word == s || !strchr(BLANKS, word[-1]))
		return -EINVAL;
	time = strndup(s, word - s);
	if (!time)
		return -ENOMEM;
	return value_parse_time(time, &ret->value)
		       ?: value_parse_percentile(word, &ret->percentile);
}

static int parse_value(enum promise_key key, const char *s, struct promise *p)
{
	uint64_t *ret = &p->value;

	switch (infos[key].kind) {
	case PROMISE_KIND_CEILING:
		if (streq(s, "infinity")) {
			*ret = PROMISE_INFINITY;
			return 0;
		}
		return value_parse_size(s, ret);
	case PROMISE_KIND_FLOOR:
		return is_percent(key, s) ? value_parse_percent(s, &p->part)
					  : value_parse_size(s, ret);
	case PROMISE_KIND_TARGET:
		return parse_target(s, p);
	case PROMISE_KIND_WEIGHT:
		return parse_between(s, WEIGHT_MIN, WEIGHT_MAX, ret);
	case PROMISE_KIND_CLASS:
		return parse_class(s, ret);
	case PROMISE_KIND_IMPORTANCE:
		return parse_between(s, 0, IMPORTANCE_MAX, ret);
	}
	return -EINVAL;
}

/* ---- paths ---- */

/* The first word of *s, without its quotes, into @to, which is long enough. */
static int take_word(const char **s, char *to)
{
	char quote = '\0';

	for (; **s && (quote || !strchr(BLANKS, **s)); ++*s) {
		if (**s == quote) {
			quote = '\0';
			continue;
		}
		if (!quote && (**s == '"' || **s == '\'')) {
			quote = **s;
			continue;
		}
		if (**s == '\\' && !*++*s)
			return -EINVAL;
		*to++ = **s;
	}
	*to = '\0';
	*s += strspn(*s, BLANKS);
	return quote ? -EINVAL : 0;
}

/* Remove empty and "." components in place. ".." is refused. */
static int simplify_path(char *path)
{
	const char *from = path;
	char *to = path;

	if (*path != '/' || strlen(path) >= PATH_MAX || !text_is_plain(path))
		return -EINVAL;
	while (*(from += strspn(from, "/"))) {
		size_t n = strcspn(from, "/");

		if (n == 2 && from[0] == '.' && from[1] == '.')
			return -EINVAL;
		if (n != 1 || from[0] != '.') {
			*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
	return 0;
}

static int add_path(struct text *t, const char *path)
{
	int err;

	if (!strpbrk(path, BLANKS "\\\"'"))
		return text_add(t, "%s", path);
	err = text_add(t, "\"");
	for (; *path && !err; path++)
		err = text_add(t, strchr("\\\"", *path) ? "\\%c" : "%c", *path);
	return err ?: text_add(t, "\"");
}

/* ---- assignments ---- */

static bool is_any_word(const char *text)
{
	const char *rest = startswith(text, PROMISE_ANY);

	return rest && strchr(BLANKS, *rest);
}

static bool has_path(enum promise_key key, const char *text)
{
	switch (infos[key].kind) {
	case PROMISE_KIND_CLASS:
	case PROMISE_KIND_IMPORTANCE:
		return false;
	case PROMISE_KIND_WEIGHT:
		return strchr("/\"'", *text) || is_any_word(text);
	default:
		return true;
	}
}

bool promise_is_any(const struct promise *p)
{
	return p->path && streq(p->path, PROMISE_ANY);
}

bool promise_is_governed(const struct promise *p)
{
	enum promise_kind kind = infos[p->key].kind;

	return kind == PROMISE_KIND_FLOOR || kind == PROMISE_KIND_TARGET;
}

int promise_parse(enum promise_key key, const char *text, const char *source,
		  struct promise *ret, const char **ret_allowed)
{
	struct promise p = { .key = key, .reset = !*text };
	int err = 0;

	if (!p.reset && has_path(key, text)) {
		p.path = malloc(strlen(text) + 1);
		if (!p.path)
			return -ENOMEM;
		if (take_word(&text, p.path) < 0 ||
		    (!promise_is_any(&p) && simplify_path(p.path) < 0)) {
			free(p.path);
			*ret_allowed = path_allowed;
			return -EINVAL;
		}
	}
	if (key == PROMISE_WEIGHT && promise_is_any(&p)) {
		free(p.path);
		p.path = NULL;
	}
	if (!p.reset)
		err = parse_value(key, text, &p);
	if (err) {
		free(p.path);
		*ret_allowed = is_percent(key, text) ? percent_allowed
						     : infos[key].allowed;
		return err == -ENOMEM ? err : -EINVAL;
	}
	p.source = strdup(source);
	if (!p.source) {
		free(p.path);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

void promise_done(struct promise *p)
{
	free(p->path);
	free(p->source);
	*p = (struct promise){};
}

char *promise_format(const struct promise *p)
{
	_cleanup_free_ char *value = NULL;
	struct text t = {};

	if (p->reset)
		return strdup("");
	value = promise_format_value(p->key, p->value, p->part, p->percentile);
	if (!value ||
	    (p->path && (add_path(&t, p->path) < 0 || text_add(&t, " ") < 0)) ||
	    text_add(&t, "%s", value) < 0) {
		free(t.p);
		return NULL;
	}
	return t.p;
}

/* ---- lists ---- */

static int reserve(struct promises *l, size_t more)
{
	struct promise *grown;

	if (!more)
		return 0;
	grown = reallocarray(l->items, l->n + more, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	l->items = grown;
	return 0;
}

static int copy(const struct promise *p, struct promise *ret)
{
	struct promise c = *p;

	c.path = p->path ? strdup(p->path) : NULL;
	c.source = p->source ? strdup(p->source) : NULL;
	if ((p->path && !c.path) || (p->source && !c.source)) {
		promise_done(&c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

int promises_add(struct promises *l, const struct promise *p)
{
	int err = reserve(l, 1);

	if (!err)
		err = copy(p, &l->items[l->n]);
	if (!err)
		l->n++;
	return err;
}

static bool displaces(const struct promise *p, const struct promise *old)
{
	if (p->key != old->key)
		return false;
	return p->reset || (p->path && old->path ? streq(p->path, old->path)
						 : p->path == old->path);
}

int promises_apply(struct promises *l, const struct promise *p,
		   struct promises *displaced)
{
	struct promise added = {};
	size_t kept = 0, gone = 0;
	int err;

	for (size_t i = 0; i < l->n; i++)
		gone += displaces(p, &l->items[i]);
	err = reserve(l, 1);
	if (!err && displaced)
		err = reserve(displaced, gone);
	if (!err && !p->reset)
		err = copy(p, &added);
	if (err)
		return err;
	for (size_t i = 0; i < l->n; i++) {
		struct promise *old = &l->items[i];

		if (!displaces(p, old))
			l->items[kept++] = *old;
		else if (displaced)
			displaced->items[displaced->n++] = *old;
		else
			promise_done(old);
	}
	if (!p->reset)
		l->items[kept++] = added;
	l->n = kept;
	return 0;
}

struct promise *promises_find(const struct promises *l, enum promise_key key,
			      const char *path)
{
	const struct promise wanted = { .key = key, .path = (char *)path };

	for (size_t i = 0; i < l->n; i++)
		if (displaces(&wanted, &l->items[i]))
			return &l->items[i];
	return NULL;
}

uint64_t promises_importance(const struct promises *l)
{
	const struct promise *p = promises_find(l, PROMISE_IMPORTANCE, NULL);

	return p ? p->value : IMPORTANCE_DEFAULT;
}

void promises_each_path(const struct promises *l, paths_fn *fn, void *userdata)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].path)
			fn(l->items[i].path, userdata);
}

void promises_done(struct promises *l)
{
	for (size_t i = 0; i < l->n; i++)
		promise_done(&l->items[i]);
	free(l->items);
	*l = (struct promises){};
}
