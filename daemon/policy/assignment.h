/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ASSIGNMENT_H
#define SUTRO_ASSIGNMENT_H

#include "policy/policyfile.h"

/**
 * refusal() - set a sentence that quotes @text and states the allowed values
 * @ret_error: the sentence, to be freed
 *
 * Return: @error, or -ENOMEM.
 */
int refusal(char **ret_error, int error, const char *text, const char *allowed);

/**
 * struct assignment - an assignment as a client of the bus sends it
 * @key: "ReadBandwidthMin"
 * @value: as in a file; "" resets
 */
struct assignment {
	const char *key;
	const char *value;
};

/**
 * promises_assign() - apply assignments to a list, all or none
 * @source: of the added settings
 * @ret_error: on -EINVAL a sentence that names the key, to be freed
 *
 * Return: 1: the list has changed; 0: it had these values before; -EINVAL: a mistake, or more than
 * POLICYFILE_STATEMENTS_MAX; -ENOMEM.
 */
int promises_assign(struct promises *l, const struct assignment *assignments,
		    size_t n, const char *source, char **ret_error);

#endif
