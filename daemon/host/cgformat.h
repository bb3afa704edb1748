/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CGFORMAT_H
#define SUTRO_CGFORMAT_H

#include "host/cgroup.h"

/** enum cgfile - cgroup files with settings; cgformat.c has a row for each */
enum cgfile {
	CGFILE_WEIGHT, /* io.weight */
	CGFILE_BFQ_WEIGHT, /* io.bfq.weight */
	CGFILE_SUTRO_WEIGHT, /* io.sutro.weight */
	CGFILE_MAX, /* io.max */
	CGFILE_SUTRO_CLASS, /* io.sutro.class */
	CGFILE_SUTRO_RESERVE, /* io.sutro.reserve */
	CGFILE_SUTRO_LATENCY, /* io.sutro.latency */
	CGFILES,
};

/* Numbers of a line: rbps, wbps, riops and wiops in io.max, one in the other files. */
#define CGFILE_NUMBERS 4U

/* In place of a device: the default line. */
#define CGFILE_DEFAULT ((dev_t)0)

/* "max" in io.max */
#define CGFILE_NO_LIMIT UINT64_MAX

/** struct cgword - a word that stands for a number */
struct cgword {
	const char *text;
	uint64_t number;
};

/**
 * struct cgformat - lines of one cgroup file, and how cgfile.c restores them
 * @record: file in /run/sutro with the values that lines had before; NULL: no other program
 *	writes device lines
 * @keys: "KEY=" of each number; none: the value is one number
 * @words: words in place of numbers, NULL: none
 * @min, @max: limits of numbers that are no words
 * @unset: number of a device that has no line
 * @owns_default: without @record, the default line belongs to the daemon; written as that of a
 *	device that has no line, it is the one of the kernel again
 * @is_merged: a line holds limits of others, too, and the lower one of each number is written
 * @has_echo: cgfile_take_echo() is about this file
 */
struct cgformat {
	const char *name;
	const char *record;
	const char *keys[CGFILE_NUMBERS];
	const struct cgword *words;
	uint64_t min;
	uint64_t max;
	uint64_t unset;
	bool owns_default;
	bool is_merged;
	bool has_echo;
};

const struct cgformat *cgformat(enum cgfile file);

/** struct cgvalue - value of a line; where a line has one number, the others are 0 */
struct cgvalue {
	uint64_t number[CGFILE_NUMBERS];
};

static inline struct cgvalue cgvalue(uint64_t number)
{
	return (struct cgvalue){ { number } };
}

bool cgvalue_equal(const struct cgvalue *a, const struct cgvalue *b);

/** cgvalue_unset() - value of a device that has no line in @file */
struct cgvalue cgvalue_unset(enum cgfile file);

/** cgvalue_parse() - value of @text, "200", "idle", "rbps=5000 wbps=max" */
int cgvalue_parse(enum cgfile file, const char *text, struct cgvalue *ret);

/** cgvalue_text() - the inverse of cgvalue_parse(); NULL: out of memory */
char *cgvalue_text(enum cgfile file, const struct cgvalue *value);

/** cgline_text() - "default 200", "8:16 300", "8:16 default"; NULL: out of memory */
char *cgline_text(enum cgfile file, dev_t devno, struct cgvalue value);

/**
 * cgline_change_text() - the text that changes a line from @before to @value
 *
 * Limits that stay are not in it, so that a change by others since @before is not undone.
 */
char *cgline_change_text(enum cgfile file, dev_t devno, struct cgvalue value,
			 const struct cgvalue *before);

/** struct cglines - content of a cgroup file */
struct cglines {
	enum cgfile file;
	struct cgline {
		dev_t devno;
		struct cgvalue value;
	} *lines;
	size_t n_lines;
};

/**
 * cglines_parse() - parse @text, which is modified
 *
 * Return: the number of invalid lines, which are left out, or -ENOMEM.
 */
int cglines_parse(enum cgfile file, char *text, struct cglines *ret);
void cglines_done(struct cglines *l);

/** cglines_get() - value of the line for @devno, cgvalue_unset() when there is none */
struct cgvalue cglines_get(const struct cglines *l, dev_t devno);

#endif
