/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What can be said about a unit: a table of keys, and how their values are written.
 *
 *	ReadBandwidthMin="/srv/my data" 1.5G
 *	\______________/ \____________/ \__/
 *	      key             path      value: 1500000000 bytes per second
 *
 * 1. A path is one word as in systemd: in quotes, single or double, if it has
 *    blanks; a backslash takes the next character as it is. It is absolute, has no
 *    ".." (nobody can say where that leads without asking the file system) and no
 *    control characters, and gets shorter where that changes nothing: "//", "/./"
 *    and a "/" at the end go.
 *    Or it is the word "any": each volume that the unit uses. Weight=any 300 is
 *    Weight=300: that is what a weight without a path means.
 * 2. Sizes and times are sums of parts, the largest suffix first: "1G 500M" is
 *    1500000000, "1s 500us" is 1000500 us. Fractions are exact, what is less than
 *    one goes. Sizes are those of IOReadBandwidthMax=: K is 1000.
 * 3. Written back, a value has the largest suffix that needs no more than one digit
 *    behind the point: 1500000000 is "1.5G", 1250000000 is "1250M". What is read
 *    again is the same number.
 *
 * 4. A floor may be a percentage of what the device can do, 1% to 100% with at most
 *    two decimals, as systemd's percentages have: "12.5%".
 *
 * Values end at 10^15 (1000T) and at a minute: products with small factors fit into
 * 64 bits, and more can only be a mistake.
 */

#include <limits.h>

#include "promise.h"

#define BLANKS " \t"
#define DIGITS "0123456789"

#define RATE_MAX 1000000000000000ULL
#define LATENCY_MAX_USEC 60000000ULL

#define BYTES_ALLOWED                                                          \
	"a path and bytes per second, such as /dev/vg/db 200M, at most 1000T " \
	"(K, M, G, T: powers of 1000)"
#define IOS_ALLOWED                                                             \
	"a path and requests per second, such as /dev/vg/db 5K, at most 1000T " \
	"(K, M, G, T: powers of 1000)"
#define OR_PERCENT "; or 1% to 100% of what the device can do"
#define OR_INFINITY "; infinity: no limit"

static const char path_allowed[] =
	"first an absolute path without \"..\" and control characters, in "
	"quotes if it has blanks, at most 4095 bytes, or the word any: each "
	"volume that the unit uses";

static const char percent_allowed[] =
	"a path and 1% to 100% of what the device can do, with at most two "
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
				     PROMISE_UNIT_USEC, false,
				     "a path and a time from 1us to 1min, such "
				     "as /dev/vg/db 5ms" },
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

/* ---- sizes and times ---- */

struct suffix {
	const char *name;
	uint64_t factor;
};

/* Largest first, and of those that begin alike the longest first. */
static const struct suffix size_suffixes[] = {
	{ "P", 1000000000000000ULL },
	{ "T", 1000000000000ULL },
	{ "G", 1000000000ULL },
	{ "M", 1000000ULL },
	{ "K", 1000ULL },
	{ "B", 1 },
	{ "", 1 },
};

static const struct suffix time_suffixes[] = {
	{ "minutes", 60000000 },
	{ "minute", 60000000 },
	{ "min", 60000000 },
	{ "msec", 1000 },
	{ "ms", 1000 },
	{ "m", 60000000 },
	{ "seconds", 1000000 },
	{ "second", 1000000 },
	{ "sec", 1000000 },
	{ "s", 1000000 },
	{ "usec", 1 },
	{ "us", 1 },
	{ "µs", 1 },
	{ "μs", 1 }, /* U+00B5, U+03BC */
	{ "", 1000000 },
	{},
};

/* "200", ".5" as far as it goes: what comes behind the point, times @factor. */
static uint64_t take_fraction(const char **s, uint64_t factor)
{
	uint64_t sum = 0;

	for (; **s >= '0' && **s <= '9'; ++*s) {
		factor /= 10;
		sum += factor * (**s - '0');
	}
	return sum;
}

/* One part, "1.5G": *s moves behind it and the blanks that follow. */
static int take_part(const char **s, const struct suffix *suffixes,
		     uint64_t *factor, uint64_t *value)
{
	const struct suffix *f = suffixes;
	unsigned long long whole;
	const char *fraction;
	char *end;

	if (**s < '0' || **s > '9')
		return -EINVAL;
	errno = 0;
	whole = strtoull(*s, &end, 10);
	if (errno)
		return -ERANGE;
	fraction = *end == '.' ? end + 1 : "";
	if (*end == '.' && !strspn(fraction, DIGITS))
		return -EINVAL;
	*s = *fraction ? fraction + strspn(fraction, DIGITS) : end;
	*s += strspn(*s, BLANKS);
	while (!startswith(*s, f->name))
		f++;
	*s = startswith(*s, f->name);
	*s += strspn(*s, BLANKS);
	if (__builtin_mul_overflow(whole, f->factor, value) ||
	    __builtin_add_overflow(*value, take_fraction(&fraction, f->factor),
				   value))
		return -ERANGE;
	*factor = f->factor;
	return 0;
}

static int parse_sum(const char *s, const struct suffix *suffixes, uint64_t max,
		     uint64_t *ret)
{
	uint64_t sum = 0, before = UINT64_MAX;

	do {
		uint64_t factor, value;
		int err = take_part(&s, suffixes, &factor, &value);

		if (err)
			return err;
		if (factor >= before)
			return -EINVAL;
		before = factor;
		if (__builtin_add_overflow(sum, value, &sum))
			return -ERANGE;
	} while (*s);
	if (sum < 1 || sum > max)
		return -ERANGE;
	*ret = sum;
	return 0;
}

static char *format_sum(uint64_t value, const struct suffix *suffixes)
{
	const struct suffix *f = suffixes;
	uint64_t tenth;

	while (f->factor > 1 && (value < f->factor || value % (f->factor / 10)))
		f++;
	tenth = f->factor > 1 ? value % f->factor / (f->factor / 10) : 0;
	if (tenth)
		return asprintf_or_null("%llu.%llu%s",
					(unsigned long long)(value / f->factor),
					(unsigned long long)tenth, f->name);
	return asprintf_or_null(
		"%llu%s", (unsigned long long)(value / f->factor), f->name);
}

static char *format_part(uint32_t part)
{
	unsigned int whole = part / 100, rest = part % 100;

	if (!rest)
		return asprintf_or_null("%u%%", whole);
	return rest % 10 ? asprintf_or_null("%u.%02u%%", whole, rest)
			 : asprintf_or_null("%u.%u%%", whole, rest / 10);
}

char *promise_format_value(enum promise_key key, uint64_t value, uint32_t part)
{
	static const struct suffix sizes[] = {
		{ "T", 1000000000000ULL },
		{ "G", 1000000000ULL },
		{ "M", 1000000ULL },
		{ "K", 1000ULL },
		{ "", 1 },
	};
	static const struct suffix times[] = {
		{ "s", 1000000 },
		{ "ms", 1000 },
		{ "us", 1 },
	};

	if (part)
		return format_part(part);
	if (infos[key].kind == PROMISE_KIND_CEILING &&
	    value == PROMISE_INFINITY)
		return strdup("infinity");
	if (infos[key].kind == PROMISE_KIND_CLASS)
		return strdup(value < PROMISE_CLASSES ? class_names[value]
						      : "?");
	switch (infos[key].unit) {
	case PROMISE_UNIT_BYTES:
	case PROMISE_UNIT_IOS:
		return format_sum(value, sizes);
	case PROMISE_UNIT_USEC:
		return format_sum(value, times);
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

/* "12.5%" is 1250. */
static int parse_percent(const char *s, uint32_t *ret)
{
	size_t digits = strspn(s, DIGITS), decimals = 0;
	uint32_t part;

	if (digits < 1 || digits > 3)
		return -EINVAL;
	part = strtoul(s, NULL, 10) * 100;
	s += digits;
	if (*s == '.') {
		decimals = strspn(++s, DIGITS);
		if (decimals < 1 || decimals > 2)
			return -EINVAL;
		part += (s[0] - '0') * 10;
		part += decimals > 1 ? s[1] - '0' : 0;
	}
	if (!streq(s + decimals, "%"))
		return -EINVAL;
	if (part < PART_MIN || part > PART_ALL)
		return -ERANGE;
	*ret = part;
	return 0;
}

static int parse_value(enum promise_key key, const char *s, uint64_t *ret,
		       uint32_t *ret_part)
{
	switch (infos[key].kind) {
	case PROMISE_KIND_CEILING:
		if (streq(s, "infinity")) {
			*ret = PROMISE_INFINITY;
			return 0;
		}
		return parse_sum(s, size_suffixes, RATE_MAX, ret);
	case PROMISE_KIND_FLOOR:
		return is_percent(key, s)
			       ? parse_percent(s, ret_part)
			       : parse_sum(s, size_suffixes, RATE_MAX, ret);
	case PROMISE_KIND_TARGET:
		return parse_sum(s, time_suffixes, LATENCY_MAX_USEC, ret);
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

/* Empty and "." components go, ".." is refused; in place. */
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
		err = parse_value(key, text, &p.value, &p.part);
	if (err) {
		free(p.path);
		*ret_allowed = is_percent(key, text) ? percent_allowed
						     : infos[key].allowed;
		return -EINVAL;
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
	value = promise_format_value(p->key, p->value, p->part);
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

void promises_done(struct promises *l)
{
	for (size_t i = 0; i < l->n; i++)
		promise_done(&l->items[i]);
	free(l->items);
	*l = (struct promises){};
}
