/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The level of the log, as org.freedesktop.LogControl1(5):
 *
 *	systemctl service-log-level sutrod.service debug
 *
 * The bus lets only root set properties (dist/org.sutro1.conf). sd-bus could check the caller
 * itself, but would wait for the bus.
 */

#include "bus/log-control.h"
#include "host/event.h"
#include "host/util.h"

#define LOG_PATH "/org/freedesktop/LogControl1"
#define LOG_INTERFACE "org.freedesktop.LogControl1"

static const char *const levels[] = {
	[LOG_EMERG] = "emerg",	   [LOG_ALERT] = "alert",
	[LOG_CRIT] = "crit",	   [LOG_ERR] = "err",
	[LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
	[LOG_INFO] = "info",	   [LOG_DEBUG] = "debug",
};

static int property_level(sd_bus *bus, const char *path, const char *interface,
			  const char *property, sd_bus_message *reply,
			  void *userdata, sd_bus_error *error)
{
	return sd_bus_message_append(reply, "s", levels[log_get_max_level()]);
}

/* The change is logged at any level: messages of a lower priority are missing from then on. */
static void report(sd_bus_message *call, int before, int after)
{
	log_set_max_level(LOG_DEBUG);
	if (before != after)
		log_event(EVENT_LOG_LEVEL_SET, LOG_NOTICE,
			  EVENT_FIELDS({ "SUTRO_LEVEL", levels[after] },
				       { "SUTRO_PREVIOUS", levels[before] },
				       { "SUTRO_CLIENT",
					 sd_bus_message_get_sender(call) }),
			  "The level of the log is %s now, and was %s before.",
			  levels[after], levels[before]);
	log_set_max_level(after);
}

static int set_level(sd_bus *bus, const char *path, const char *interface,
		     const char *property, sd_bus_message *value,
		     void *userdata, sd_bus_error *error)
{
	const char *name;
	int r = sd_bus_message_read(value, "s", &name);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (streq(levels[i], name)) {
			report(value, log_get_max_level(), (int)i);
			return 0;
		}
	return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
				"The level is one of emerg, alert, crit, err, "
				"warning, notice, info and debug.");
}

static int property_target(sd_bus *bus, const char *path, const char *interface,
			   const char *property, sd_bus_message *reply,
			   void *userdata, sd_bus_error *error)
{
	return sd_bus_message_append(
		reply, "s", getenv("JOURNAL_STREAM") ? "journal" : "console");
}

static int property_identifier(sd_bus *bus, const char *path,
			       const char *interface, const char *property,
			       sd_bus_message *reply, void *userdata,
			       sd_bus_error *error)
{
	return sd_bus_message_append(reply, "s", "sutrod");
}

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", property_level, set_level, 0,
				 SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_PROPERTY("LogTarget", "s", property_target, 0, 0),
	SD_BUS_PROPERTY("SyslogIdentifier", "s", property_identifier, 0,
			SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_VTABLE_END,
};

int bus_add_log_control(sd_bus *connection)
{
	return sd_bus_add_object_vtable(connection, NULL, LOG_PATH,
					LOG_INTERFACE, vtable, NULL);
}
