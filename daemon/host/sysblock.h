/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_SYSBLOCK_H
#define SUTRO_SYSBLOCK_H

#include "host/roots.h"
#include "host/topology.h"
#include "host/util.h"

/**
 * struct sysblock - a series of reads from /sys/class/block
 * @error: the first error that does not mean a missing file; 0: none
 */
struct sysblock {
	const struct roots *roots;
	int error;
};

/** sysblock_note() - store @err in @s unless it means a missing file; returns @err */
int sysblock_note(struct sysblock *s, int err);

/**
 * sysblock_read() - read an attribute of the device @name
 * @ret: the text, to be freed
 */
int sysblock_read(struct sysblock *s, const char *name, const char *attribute,
		  char **ret);

/** sysblock_has() - does the device @name have the attribute? */
bool sysblock_has(struct sysblock *s, const char *name, const char *attribute);

/** sysblock_number() - the value of a numeric attribute; 0 if it cannot be read */
uint64_t sysblock_number(struct sysblock *s, const char *name,
			 const char *attribute);

/** queue_inode() - inode of the folder of the request queue of @name, 0: there is none */
uint64_t queue_inode(const struct roots *roots, const char *name);

/**
 * queue_read() - read an attribute of the request queue of @d, "scheduler"
 *
 * Return: 0; -ETIMEDOUT: the queue is being switched, or the disk is busy or hangs;
 * or another -errno.
 */
int queue_read(const struct roots *roots, const struct device *d,
	       const char *attribute, char **ret);

/** queue_number() - read a numeric attribute of the request queue of @d */
int queue_number(const struct roots *roots, const struct device *d,
		 const char *attribute, uint64_t *ret);

#endif
