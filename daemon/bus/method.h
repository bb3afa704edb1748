/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BUS_METHOD_H
#define SUTRO_BUS_METHOD_H

/* The members of the bus interface, by the file that implements them. */

#include <systemd/sd-bus.h>

/* admission.c */
int method_check_policies(sd_bus_message *call, void *userdata,
			  sd_bus_error *error);

/* capacity.c */
int method_list_capacities(sd_bus_message *call, void *userdata,
			   sd_bus_error *error);

/* devices.c */
int method_list_devices(sd_bus_message *call, void *userdata,
			sd_bus_error *error);
int method_resolve_path(sd_bus_message *call, void *userdata,
			sd_bus_error *error);

/* leaves.c */
int method_use_devices(sd_bus_message *call, void *userdata,
		       sd_bus_error *error);
int method_release_devices(sd_bus_message *call, void *userdata,
			   sd_bus_error *error);

/* dump.c */
int method_dump(sd_bus_message *call, void *userdata, sd_bus_error *error);

/*
 * The lists of ListDevices, ListUnits, ListPromises and ListCapacities, of type aa{sv}, which
 * varlink.c shows, too: devices.c, explain.c, promise.c, capacity.c.
 */
int bus_append_devices(struct bus *b, sd_bus_message *m);
int bus_append_capacities(struct bus *b, sd_bus_message *m);

/* The entries of a cgroup in two of them, see pieces.h. */
int bus_append_units(struct bus *b, sd_bus_message *m, const struct cgroup *c);
int bus_append_promises(struct bus *b, sd_bus_message *m,
			const struct cgroup *c);

/* explain.c */
int method_list_units(sd_bus_message *call, void *userdata,
		      sd_bus_error *error);
int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* latency.c */
int method_list_latencies(sd_bus_message *call, void *userdata,
			  sd_bus_error *error);

/* promise.c */
int method_list_promises(sd_bus_message *call, void *userdata,
			 sd_bus_error *error);
int method_list_promise_states(sd_bus_message *call, void *userdata,
			       sd_bus_error *error);
int method_history(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* resync.c */
int method_list_resyncs(sd_bus_message *call, void *userdata,
			sd_bus_error *error);

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
int property_mistaken_policy_files(sd_bus *bus, const char *path,
				   const char *interface, const char *property,
				   sd_bus_message *reply, void *userdata,
				   sd_bus_error *error);

#endif
