/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The pieces of a line in the formats of Prometheus:
 *
 *	sutro_cgroup_reads_total{cgroup="/a",leaf="/dev/sda",unit=""} 42
 *	                         \_________/ \____________/            \ number
 *	                            label         label
 *
 * A scrape writes 22,000 lines, so nothing here is formatted by printf(3), except fractions that are
 * not decimal.
 */

#include <math.h>
#include <stdio.h>

#include "exporter/writer.h"

/* More than any number: UINT64_MAX and a point, or a double. */
#define NUMBER_BYTES 32U

/* Doubles below are whole numbers if they have no fraction. */
#define WHOLE_MAX 1e15

/* Room for @length more bytes, NULL: no memory. */
static char *reserve(struct writer *w, size_t length)
{
	if (w->error)
		return NULL;
	if (w->size - w->length < length) {
		size_t size = w->size + length > 4096 ? w->size + length : 4096;
		char *p = realloc(w->p, size * 2);

		if (!p) {
			w->error = -ENOMEM;
			return NULL;
		}
		w->p = p;
		w->size = size * 2;
	}
	return w->p + w->length;
}

void writer_bytes(struct writer *w, const char *s, size_t length)
{
	char *p = reserve(w, length);

	if (!p)
		return;
	memcpy(p, s, length);
	w->length += length;
}

void writer_escaped(struct writer *w, const char *s)
{
	for (;;) {
		size_t plain = strcspn(s, "\\\"\n");

		writer_bytes(w, s, plain);
		s += plain;
		if (!*s)
			return;
		writer_bytes(w,
			     *s == '\n'	 ? "\\n"
			     : *s == '"' ? "\\\""
					 : "\\\\",
			     2);
		s++;
	}
}

void writer_label(struct writer *w, size_t start, const char *name,
		  const char *value)
{
	if (w->length > start)
		writer_bytes(w, ",", 1);
	writer_text(w, name);
	writer_bytes(w, "=\"", 2);
	writer_escaped(w, value);
	writer_bytes(w, "\"", 1);
}

/* Write the digits of @n, at least @width of them, and return their end. */
static char *put_digits(char *p, uint64_t n, size_t width)
{
	size_t length = 1;

	for (uint64_t rest = n / 10; rest; rest /= 10)
		length++;
	length = length < width ? width : length;
	for (size_t i = length; i > 0; i--, n /= 10)
		p[i - 1] = '0' + n % 10;
	return p + length;
}

/* 1500000 of 10^6 is "1.5", 2000000 is "2.0". */
static char *put_decimal(char *p, uint64_t n, uint64_t one, size_t places)
{
	p = put_digits(p, n / one, 1);
	*p++ = '.';
	p = put_digits(p, n % one, places);
	while (p[-1] == '0' && p[-2] != '.')
		p--;
	return p;
}

/* The fewest digits that are this double, out of 15 and 17. */
static char *put_real(char *p, double real)
{
	int length;

	if (isnan(real))
		return stpcpy(p, "NaN");
	if (isinf(real))
		return stpcpy(p, real > 0 ? "+Inf" : "-Inf");
	if (fabs(real) < WHOLE_MAX && real == trunc(real)) {
		*p = '-';
		p = put_digits(p + !!signbit(real), fabs(real), 1);
		return stpcpy(p, ".0");
	}
	length = snprintf(p, NUMBER_BYTES, "%.15g", real);
	if (strtod(p, NULL) != real)
		length = snprintf(p, NUMBER_BYTES, "%.17g", real);
	return p + length;
}

/* At most NUMBER_BYTES. */
static char *put_number(char *p, struct number n)
{
	switch (n.kind) {
	case NUMBER_NONE:
		break;
	case NUMBER_COUNT:
		return put_digits(p, n.count, 1);
	case NUMBER_NANO:
		return put_decimal(p, n.count, 1000000000, 9);
	case NUMBER_MICRO:
		return put_decimal(p, n.count, 1000000, 6);
	case NUMBER_REAL:
		return put_real(p, n.real);
	}
	return p;
}

void writer_line(struct writer *w, const struct piece *pieces, size_t n_pieces,
		 struct number number)
{
	size_t length = NUMBER_BYTES + 1;
	char *p;

	for (size_t i = 0; i < n_pieces; i++)
		length += pieces[i].length;
	p = reserve(w, length);
	if (!p)
		return;
	for (size_t i = 0; i < n_pieces; i++)
		if (pieces[i].length)
			p = mempcpy(p, pieces[i].p, pieces[i].length);
	p = put_number(p, number);
	*p++ = '\n';
	w->length = p - w->p;
}
