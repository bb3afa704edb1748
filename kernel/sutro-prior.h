/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: costs that were measured before, as text (sutro-prior.c).
 *
 * Pure C.  The caller serializes all calls about a device.
 */
#ifndef SUTRO_PRIOR_H
#define SUTRO_PRIOR_H

#include "sutro-cost.h"

/* Of the text; a change of the classes or of the meaning of a cost needs another one. */
#define SUTRO_PRIOR_VERSION 1U
/* The first line, and "write 262144 1000000000" and a newline for each class, and the end. */
#define SUTRO_PRIOR_TEXT_BYTES (16 + SUTRO_READ_WRITE_CLASSES * 24)

/**
 * struct sutro_prior - costs of reads and writes
 * @ns:		by class, 0 = not known
 */
struct sutro_prior {
	u64 ns[SUTRO_READ_WRITE_CLASSES];
};

int sutro_prior_parse(const char *text, struct sutro_prior *ret);
void sutro_prior_format(const struct sutro_prior *prior,
			char text[SUTRO_PRIOR_TEXT_BYTES]);
void sutro_prior_read(const struct sutro_device *device,
		      struct sutro_prior *ret);
int sutro_prior_write(struct sutro_device *device,
		      const struct sutro_prior *prior);

#endif /* SUTRO_PRIOR_H */
