/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LINE_H
#define SUTRO_LINE_H

#include <stdbool.h>

/** enum line_kind - "[section]", "key=value", neither */
enum line_kind {
	LINE_SECTION,
	LINE_ASSIGNMENT,
	LINE_OTHER,
};

/**
 * struct line - a line of a unit file, its continuation lines joined
 * @number: of the first of them
 * @section: in which it stands, for LINE_SECTION which begins; NULL before the first
 * @key: and
 * @value: for LINE_ASSIGNMENT, without blanks around them
 * @text: for LINE_OTHER
 */
struct line {
	enum line_kind kind;
	unsigned int number;
	const char *section;
	const char *key;
	const char *value;
	const char *text;
};

/** struct line_reader - initialise with line_reader_init() */
struct line_reader {
	char *next;
	unsigned int number;
	const char *section;
};

/** line_reader_init() - @text is changed, and results point into it */
void line_reader_init(struct line_reader *r, char *text);

/** line_next() - false: there is no more; comments and empty lines are left out */
bool line_next(struct line_reader *r, struct line *ret);

#endif
