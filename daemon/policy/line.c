/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The lines of unit files, as systemd.syntax(7) has them.
 *
 *	1	[Service]
 *	2	ExecStart=/bin/sh -c \		a backslash at the end: the next
 *	3	# with a comment in it		line belongs to this one, comments
 *	4		'true;'			between them do not
 *	5
 *	6	[X-Sutro]
 *	7	Weight = 300			blanks around "=" do not count
 *
 * reads as: section Service; line 2: ExecStart, "/bin/sh -c  'true;'"; section
 * X-Sutro; line 7: Weight, "300".
 *
 * inih, which reads sutrod.conf, is not sufficient. The distributions build it for lines of
 * 200 bytes, while a path may have 4095. It has no continuation lines, and a blank with ";"
 * begins a comment.
 *
 * It works in the text itself: a joined line is never longer than its parts.
 */

#include "host/util.h"
#include "policy/line.h"

#define BLANKS " \t\r"

/* Does a line end in a backslash that is not itself escaped? An even number of them are pairs. */
static bool is_continued(const char *s, size_t n)
{
	bool odd = false;

	while (n > 0 && s[--n] == '\\')
		odd = !odd;
	return odd;
}

void line_reader_init(struct line_reader *r, char *text)
{
	const char *rest =
		startswith(text, "\xef\xbb\xbf"); /* byte order mark */

	*r = (struct line_reader){ .next = text + (rest ? rest - text : 0) };
}

/* The next line with its continuation lines, "" at the end. */
static char *next_joined(struct line_reader *r, unsigned int *ret_number)
{
	char *text = r->next, *to = text;
	bool more = true, begun = false;

	while (more && *r->next) {
		const char *from = r->next + strspn(r->next, BLANKS);
		size_t n = strcspn(from, "\n");

		r->next = (char *)from + n + (from[n] == '\n');
		r->number++;
		if (*from == '#' || *from == ';')
			continue;
		if (n > 0 && from[n - 1] == '\r')
			n--;
		if (!begun)
			*ret_number = r->number;
		begun = true;
		more = is_continued(from, n);
		memmove(to, from, n);
		to += n;
		if (more)
			to[-1] = ' ';
		/* Skip an empty line. */
		if (to == text && !more) {
			begun = false;
			more = true;
		}
	}
	while (to > text && strchr(BLANKS, to[-1]))
		to--;
	*to = '\0';
	return text;
}

bool line_next(struct line_reader *r, struct line *ret)
{
	struct line l = { .kind = LINE_OTHER };
	char *text, *equals, *end;

	do
		text = next_joined(r, &l.number);
	while (!*text && *r->next);
	if (!*text)
		return false;
	text += strspn(text, BLANKS);
	end = text + strlen(text);
	equals = strchr(text, '=');
	if (text[0] == '[' && end - text > 2 && end[-1] == ']') {
		l.kind = LINE_SECTION;
		end[-1] = '\0';
		r->section = text + 1;
	} else if (text[0] != '[' && equals && equals > text) {
		l.kind = LINE_ASSIGNMENT;
		l.key = text;
		l.value = equals + 1 + strspn(equals + 1, BLANKS);
		while (strchr(BLANKS, equals[-1]))
			equals--;
		*equals = '\0';
	} else {
		l.text = text;
	}
	l.section = r->section;
	*ret = l;
	return true;
}
