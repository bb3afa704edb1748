/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_WEIGHTS_H
#define SUTRO_WEIGHTS_H

#include "host/util.h"

/**
 * struct weights - the content of a cgroup weight file
 *
 *	default 100
 *	8:16 300
 *
 * @fallback: the default line; 0: there is none
 */
struct weights {
	uint64_t fallback;
	struct weight_line {
		dev_t devno;
		uint64_t weight;
	} *lines;
	size_t n_lines;
};

/**
 * weights_parse() - read @text
 *
 * Lines that are no weight, or one outside 1..10000, are left out.
 * Return: the number of lines left out, or -ENOMEM.
 */
int weights_parse(struct weights *w, const char *text);
void weights_done(struct weights *w);

/** weights_get() - the weight of the line for @devno, 0 when there is none */
uint64_t weights_get(const struct weights *w, dev_t devno);

#endif
