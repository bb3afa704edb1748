/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_WRITER_H
#define SUTRO_EXPORTER_WRITER_H

#include "host/util.h"

/** enum number_kind - what a number counts, and how it is written */
enum number_kind {
	NUMBER_NONE, /* there is no value, and no line */
	NUMBER_COUNT, /* "12" */
	NUMBER_NANO, /* billionths: 1500000000 is "1.5" */
	NUMBER_MICRO, /* millionths */
	NUMBER_REAL, /* a double, with a point: "1.0" */
};

/** struct number - a value of a metric; @real for NUMBER_REAL, else @count */
struct number {
	enum number_kind kind;
	union {
		uint64_t count;
		double real;
	};
};

static inline struct number number_none(void)
{
	return (struct number){ NUMBER_NONE };
}

static inline struct number number_of(enum number_kind kind, uint64_t count)
{
	return (struct number){ kind, { .count = count } };
}

static inline struct number number_real(double real)
{
	return (struct number){ NUMBER_REAL, { .real = real } };
}

/**
 * struct writer - a growing text, not terminated
 * @error: 0 or -ENOMEM: the text has a gap, and nothing more is written
 */
struct writer {
	char *p;
	size_t length;
	size_t size;
	int error;
};

static inline void writer_done(struct writer *w)
{
	free(w->p);
	*w = (struct writer){};
}

/** writer_bytes() - add @length bytes */
void writer_bytes(struct writer *w, const char *s, size_t length);

/** writer_text() - add a string */
static inline void writer_text(struct writer *w, const char *s)
{
	writer_bytes(w, s, strlen(s));
}

/** writer_escaped() - add the value of a label: \, " and line breaks get a backslash */
void writer_escaped(struct writer *w, const char *s);

/** writer_label() - add a label, and a comma before it unless the text begins here or at @start */
void writer_label(struct writer *w, size_t start, const char *name,
		  const char *value);

/** struct piece - a part of a line */
struct piece {
	const char *p;
	size_t length;
};

/**
 * writer_line() - add the pieces, a number, and the end of the line
 *
 * The nearest double of the text is that of the number; counts are exact.
 */
void writer_line(struct writer *w, const struct piece *pieces, size_t n_pieces,
		 struct number number);

#endif
