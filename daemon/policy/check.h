/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_CHECK_H
#define SUTRO_CHECK_H

/**
 * check_files() - sutrod --check: print the mistakes of policy files, unit files and sutrod.conf
 * @paths: ends with NULL
 *
 * Return: the number of files with mistakes; -ENOMEM.
 */
int check_files(char *const *paths);

#endif
