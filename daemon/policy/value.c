/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sizes, times and percentages, as people write them.
 *
 * 1. Sizes and times are sums of parts, the largest suffix first: "1G 500M" is
 *    1500000000, "1s 500us" is 1000500 us. Fractions are exact, and the rest below
 *    one is dropped. Sizes are those of IOReadBandwidthMax=: K is 1000.
 * 2. Written back, a value has the largest suffix that needs no more than one digit
 *    behind the point: 1500000000 is "1.5G", 1250000000 is "1250M". Read again,
 *    it gives the same number.
 * 3. A percentage has at most two decimals, as those of systemd: "12.5%".
 *
 * Values end at 10^15 (1000T) and at a minute: products with small factors fit into
 * 64 bits, and more can only be a mistake.
 */

#include "policy/value.h"

#define BLANKS " \t"
#define DIGITS "0123456789"

#define SIZE_MOST 1000000000000000ULL
#define TIME_MOST_USEC 60000000ULL

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

/* The digits behind the point of "1.5", as a fraction of @factor. */
static uint64_t take_fraction(const char **s, uint64_t factor)
{
	uint64_t sum = 0;

	for (; **s >= '0' && **s <= '9'; ++*s) {
		factor /= 10;
		sum += factor * (**s - '0');
	}
	return sum;
}

/* Parse one part, "1.5G". *s moves behind it and the blanks that follow. */
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

int value_parse_size(const char *s, uint64_t *ret)
{
	return parse_sum(s, size_suffixes, SIZE_MOST, ret);
}

int value_parse_time(const char *s, uint64_t *ret_usec)
{
	return parse_sum(s, time_suffixes, TIME_MOST_USEC, ret_usec);
}

char *value_format_size(uint64_t value)
{
	static const struct suffix sizes[] = {
		{ "T", 1000000000000ULL },
		{ "G", 1000000000ULL },
		{ "M", 1000000ULL },
		{ "K", 1000ULL },
		{ "", 1 },
	};

	return format_sum(value, sizes);
}

char *value_format_time(uint64_t usec)
{
	static const struct suffix times[] = {
		{ "s", 1000000 },
		{ "ms", 1000 },
		{ "us", 1 },
	};

	return format_sum(usec, times);
}

/* "12.5" in 1/100, with at most @decimals_max decimals; *s moves behind it. */
static int take_hundredths(const char **s, size_t decimals_max, uint32_t *ret)
{
	size_t digits = strspn(*s, DIGITS), decimals;
	uint32_t sum;

	if (digits < 1 || digits > 3)
		return -EINVAL;
	sum = strtoul(*s, NULL, 10) * 100;
	*s += digits;
	if (**s == '.') {
		decimals = strspn(++*s, DIGITS);
		if (decimals < 1 || decimals > decimals_max)
			return -EINVAL;
		sum += take_fraction(s, 100);
	}
	*ret = sum;
	return 0;
}

int value_parse_percent(const char *s, uint32_t *ret)
{
	uint32_t part;
	int err = take_hundredths(&s, 2, &part);

	if (err || !streq(s, "%"))
		return -EINVAL;
	if (part < PART_MIN || part > PART_ALL)
		return -ERANGE;
	*ret = part;
	return 0;
}

int value_parse_percentile(const char *s, uint32_t *ret)
{
	uint32_t percentile;

	if (*s++ != 'P' || take_hundredths(&s, 1, &percentile) < 0 || *s)
		return -EINVAL;
	if (percentile < PERCENTILE_MIN || percentile > PERCENTILE_MAX)
		return -ERANGE;
	*ret = percentile;
	return 0;
}

char *value_format_percent(uint32_t part)
{
	unsigned int whole = part / 100, rest = part % 100;

	if (!rest)
		return asprintf_or_null("%u%%", whole);
	return rest % 10 ? asprintf_or_null("%u.%02u%%", whole, rest)
			 : asprintf_or_null("%u.%u%%", whole, rest / 10);
}

char *value_format_percentile(uint32_t percentile)
{
	unsigned int whole = percentile / 100, tenth = percentile % 100 / 10;

	return tenth ? asprintf_or_null("P%u.%u", whole, tenth)
		     : asprintf_or_null("P%u", whole);
}
