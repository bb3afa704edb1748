/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_UEVENT_H
#define SUTRO_UEVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

/**
 * struct uevents - the events of udev about block devices
 * @changed: devices have changed
 */
struct uevents {
	void (*changed)(void *userdata);
	void *userdata;
	sd_event_source *source;
};

/**
 * uevents_start() - begin to listen
 * @u: with @changed and @userdata
 *
 * The socket is that of sutrod-uevents.socket, or a new one where the daemon runs without it.
 */
int uevents_start(struct uevents *u, sd_event *event);
void uevents_stop(struct uevents *u);

/**
 * uevent_is_of_block() - is it a message of udev about a block device?
 * @text: as received, of @size bytes
 */
bool uevent_is_of_block(const char *text, size_t size);

#endif
