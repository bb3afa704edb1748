/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_STORE_H
#define SUTRO_STORE_H

/**
 * store_put() - write a file so that it is there whole or as before, also after a
 * loss of power
 * @dir: made if it is missing, with the folder above it; not followed if it is a link
 * @name: of the file, no path; 0644
 */
int store_put(const char *dir, const char *name, const char *text);

/** store_remove() - 0 also if it is not there */
int store_remove(const char *dir, const char *name);

#endif
