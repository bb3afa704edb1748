/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BACKGROUND_H
#define SUTRO_BACKGROUND_H

#include "bus/bus.h"

/**
 * struct bus_background - a method whose work is done in a child process, see helper.h
 * @limit_usec: the work ends after this time
 * @work: runs in the child; writes its output to @fd
 * @then: sends the reply; @err is 0, -ETIMEDOUT or another -errno
 * @free: frees the userdata, NULL: there is none
 */
struct bus_background {
	uint64_t limit_usec;
	int (*work)(struct bus *b, void *userdata, int fd);
	int (*then)(struct bus *b, sd_bus_message *call, void *userdata,
		    int err, const char *output, sd_bus_error *error);
	void (*free)(void *userdata);
};

/**
 * bus_in_background() - begin @method for @call, which is kept until the reply
 * @userdata: is freed in any case
 *
 * Return: 1, or -errno.
 */
int bus_in_background(struct bus *b, sd_bus_message *call,
		      const struct bus_background *method, void *userdata,
		      sd_bus_error *error);

/** bus_drop_background() - end all of them without a reply */
void bus_drop_background(struct bus *b);

#endif
