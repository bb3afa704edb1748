/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "host/weights.h"

static int parse_line(struct weights *w, char *line)
{
	char *blank = strchr(line, ' ');
	struct weight_line *grown;
	uint64_t weight;
	dev_t devno;

	/* One number alone is the default, as the files accept it. */
	if (parse_u64(blank ? blank + 1 : line, &weight) < 0 ||
	    !weight_is_valid(weight))
		return 1;
	if (!blank) {
		w->fallback = weight;
		return 0;
	}
	*blank = '\0';
	if (streq(line, "default")) {
		w->fallback = weight;
		return 0;
	}
	if (parse_devno(line, &devno) < 0)
		return 1;
	grown = reallocarray(w->lines, w->n_lines + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	w->lines = grown;
	grown[w->n_lines++] = (struct weight_line){ devno, weight };
	return 0;
}

int weights_parse(struct weights *w, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char *save = NULL;
	int bad = 0, n;

	*w = (struct weights){};
	if (!copy)
		return -ENOMEM;
	for (char *line = strtok_r(copy, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		n = parse_line(w, line);
		if (n < 0) {
			weights_done(w);
			return n;
		}
		bad += n;
	}
	return bad;
}

void weights_done(struct weights *w)
{
	free(w->lines);
	*w = (struct weights){};
}

uint64_t weights_get(const struct weights *w, dev_t devno)
{
	for (size_t i = 0; i < w->n_lines; i++)
		if (w->lines[i].devno == devno)
			return w->lines[i].weight;
	return 0;
}
