/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_SIZE_H
#define SUTRO_SIZE_H

#include <systemd/sd-bus.h>

/**
 * bus_message_bytes() - about the bytes of the arguments of a message, which is read from its begin
 *	afterwards
 * @max: the result for a message with as many bytes, or more
 *
 * Return: 0, or -errno for a message that is not valid.
 */
int bus_message_bytes(sd_bus_message *m, size_t max, size_t *ret);

#endif
