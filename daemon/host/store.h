/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_STORE_H
#define SUTRO_STORE_H

/**
 * store_put() - write a file so that it is there whole or as before, also after a
 * loss of power
 * @dir: not followed if it is a link; the caller has its lock
 * @name: of the file, no path; 0644
 */
int store_put(const char *dir, const char *name, const char *text);

/**
 * store_lock() - wait until no other process changes files in @dir, which is made if it is missing
 *
 * Return: a file descriptor, which holds the lock until it is closed, or -errno.
 */
int store_lock(const char *dir);

/**
 * store_remove() - remove a file
 *
 * Return: 1; 0: it is not there; -errno.
 */
int store_remove(const char *dir, const char *name);

#endif
