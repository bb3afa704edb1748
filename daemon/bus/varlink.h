/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_VARLINK_H
#define SUTRO_VARLINK_H

#define VARLINK_SOCKET "io.sutro.Status"

struct bus;
struct varlink;

/**
 * varlink_open() - serve io.sutro.Status on the socket io.sutro.Status below /run/sutro
 *
 * Return: 0, or -errno; -EOPNOTSUPP if it was built without varlink.
 */
int varlink_open(struct bus *b, struct varlink **ret);
void varlink_close(struct varlink *v);

#endif
