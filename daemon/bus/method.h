/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BUS_METHOD_H
#define SUTRO_BUS_METHOD_H

/* What the files that implement members of the bus interface share. */

#include <systemd/sd-bus.h>

#include "manager.h"

#define ERROR_NO_SUCH_UNIT "org.sutro1.Error.NoSuchUnit"
#define ERROR_NO_SUCH_PATH "org.sutro1.Error.NoSuchPath"
#define ERROR_BAD_POLICY "org.sutro1.Error.BadPolicy"
#define ERROR_NO_SUCH_PROMISE "org.sutro1.Error.NoSuchPromise"
#define ERROR_NO_QUEUE "org.sutro1.Error.NoQueue"
#define ERROR_NOT_SUPPORTED "org.sutro1.Error.NotSupported"

/** bus_method_t - a method that runs later; it sends its reply itself */
typedef int (*bus_method_t)(struct manager *m, sd_bus_message *call,
			    sd_bus_error *error);

/**
 * bus_with_authority() - run @change for root at once, for others if polkit says yes
 * @action: what polkit is asked about, a constant
 *
 * The answer of polkit comes later; @call is kept until then.
 */
int bus_with_authority(struct manager *m, sd_bus_message *call,
		       const char *action, bus_method_t change,
		       sd_bus_error *error);

#define ACTION_MANAGE_DEVICES "org.sutro1.manage-devices"
#define ACTION_MANAGE_POLICIES "org.sutro1.manage-policies"

/** bus_caller_uid() - the effective user of the caller */
int bus_caller_uid(sd_bus_message *call, uid_t *ret);

/**
 * bus_with_samples() - run @method as soon as there are samples of the last second
 *
 * They are taken while somebody asks; the first call is kept for a second.
 */
int bus_with_samples(struct manager *m, sd_bus_message *call,
		     bus_method_t method, sd_bus_error *error);

/** bus_resolve() - a path of a caller to a device with leaves, or a bus error */
int bus_resolve(struct manager *m, const char *path, struct device **ret,
		sd_bus_error *error);

/** bus_append_devno() - {"devno": "8:16"} */
int bus_append_devno(sd_bus_message *r, const struct device *d);

/** bus_open_list(), bus_close_list() - a value of type aa{sv} in a dictionary */
int bus_open_list(sd_bus_message *r, const char *key);
int bus_close_list(sd_bus_message *r);

/**
 * bus_error() - set an error whose text may quote anything a caller said
 *
 * What is not fit to be shown is replaced: a reply that is cut within a character
 * would not be sent at all.
 * Return: a negative errno, for the method to return.
 */
int bus_error(sd_bus_error *error, const char *name, const char *format, ...)
	_printf_(3, 4);

/** bus_no_such_unit() - set the error about a unit that is not there */
int bus_no_such_unit(sd_bus_error *error, const char *unit);

/** bus_send() - send @reply unless making it failed with @r */
int bus_send(sd_bus_message *reply, int r);

/* admission.c */
int method_check_policies(sd_bus_message *call, void *userdata,
			  sd_bus_error *error);

/* devices.c */
int method_list_devices(sd_bus_message *call, void *userdata,
			sd_bus_error *error);
int method_resolve_path(sd_bus_message *call, void *userdata,
			sd_bus_error *error);
int method_use_devices(sd_bus_message *call, void *userdata,
		       sd_bus_error *error);
int method_release_devices(sd_bus_message *call, void *userdata,
			   sd_bus_error *error);

/* explain.c */
int method_list_units(sd_bus_message *call, void *userdata,
		      sd_bus_error *error);
int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error);
void bus_drop_waiters(struct manager *m);

/* promise.c */
int method_list_promises(sd_bus_message *call, void *userdata,
			 sd_bus_error *error);
int method_history(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* usage.c */
int method_list_usage(sd_bus_message *call, void *userdata,
		      sd_bus_error *error);

/* policy.c */
int method_set_policy(sd_bus_message *call, void *userdata,
		      sd_bus_error *error);
int method_reset_policy(sd_bus_message *call, void *userdata,
			sd_bus_error *error);
int method_get_policy(sd_bus_message *call, void *userdata,
		      sd_bus_error *error);
int method_reload_policies(sd_bus_message *call, void *userdata,
			   sd_bus_error *error);
int property_policy_errors(sd_bus *bus, const char *path, const char *interface,
			   const char *property, sd_bus_message *reply,
			   void *userdata, sd_bus_error *error);

#endif
