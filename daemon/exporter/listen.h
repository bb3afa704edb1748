/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_LISTEN_H
#define SUTRO_EXPORTER_LISTEN_H

/**
 * listen_on() - a listening TCP socket at "ADDRESS:PORT", "[::1]:9788" for IPv6
 * @ret_error: on failure a message of static storage
 *
 * Return: the socket; -EINVAL: it is no ADDRESS:PORT; or another -errno.
 */
int listen_on(const char *address, const char **ret_error);

#endif
