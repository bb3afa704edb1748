/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BUS_METHOD_H
#define SUTRO_BUS_METHOD_H

/* What the files that implement members of the bus interface share. */

#include <systemd/sd-bus.h>

#include "manager.h"

#define ERROR_NO_SUCH_UNIT "org.sutro1.Error.NoSuchUnit"
#define ERROR_NO_SUCH_PATH "org.sutro1.Error.NoSuchPath"
#define ERROR_NO_QUEUE "org.sutro1.Error.NoQueue"
#define ERROR_NOT_SUPPORTED "org.sutro1.Error.NotSupported"

/** bus_change_t - a method that changes something; it sends its reply itself */
typedef int (*bus_change_t)(struct manager *m, sd_bus_message *call,
			    sd_bus_error *error);

/**
 * bus_with_authority() - run @change for root at once, for others if polkit says yes
 *
 * The answer of polkit comes later; @call is kept until then.
 */
int bus_with_authority(struct manager *m, sd_bus_message *call,
		       bus_change_t change, sd_bus_error *error);

/**
 * bus_catch_up() - look at the machine again if @path is on a device not known yet
 *
 * A node is there before udev has announced its device. Devices found before are
 * gone after this.
 */
void bus_catch_up(struct manager *m, const char *path);

/** bus_resolve() - a path of a caller to a device with leaves, or a bus error */
int bus_resolve(struct manager *m, const char *path, struct device **ret,
		sd_bus_error *error);

/** bus_append_devno() - {"devno": "8:16"} */
int bus_append_devno(sd_bus_message *r, const struct device *d);

/** bus_send() - send @reply unless making it failed with @r */
int bus_send(sd_bus_message *reply, int r);

/* bus-devices.c */
int method_list_devices(sd_bus_message *call, void *userdata,
			sd_bus_error *error);
int method_resolve_path(sd_bus_message *call, void *userdata,
			sd_bus_error *error);
int method_use_devices(sd_bus_message *call, void *userdata,
		       sd_bus_error *error);
int method_release_devices(sd_bus_message *call, void *userdata,
			   sd_bus_error *error);

/* bus-explain.c */
int method_list_units(sd_bus_message *call, void *userdata,
		      sd_bus_error *error);
int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error);
void bus_drop_waiters(struct manager *m);

#endif
