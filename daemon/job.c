/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The reason of a stop: for good, and all written lines are restored; or "systemctl restart"
 * and an upgrade of the package, and the next daemon takes over the lines. The signal is
 * the same in both cases, but systemd keeps a restart as one job: its type is "restart"
 * until the old process is gone.
 */

#include <systemd/sd-login.h>

#include "host/util.h"
#include "job.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define UNITS_PATH "/org/freedesktop/systemd1/unit"

/* The time for an answer, while systemd waits for the daemon to end. Without one, all lines
 * are restored.
 */
#define ANSWER_USEC 2000000U

static int job_type(sd_bus *bus, const char *unit, char **ret)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_free_ char *path = NULL;
	const char *job;
	uint32_t id = 0;
	int r;

	r = sd_bus_path_encode(UNITS_PATH, unit, &path);
	if (r >= 0)
		r = sd_bus_get_property(bus, SYSTEMD, path, SYSTEMD ".Unit",
					"Job", NULL, &reply, "(uo)");
	if (r >= 0)
		r = sd_bus_message_read(reply, "(uo)", &id, &job);
	if (r < 0)
		return r;
	if (!id)
		return -ENODATA;
	return sd_bus_get_property_string(bus, SYSTEMD, job, SYSTEMD ".Job",
					  "JobType", NULL, ret);
}

enum job job_kind(sd_bus *bus)
{
	_cleanup_free_ char *unit = NULL, *type = NULL;
	int r = sd_pid_get_unit(0, &unit);

	if (r >= 0)
		r = sd_bus_set_method_call_timeout(bus, ANSWER_USEC);
	if (r >= 0)
		r = job_type(bus, unit, &type);
	if (r < 0)
		return JOB_NONE;
	return streq(type, "restart") ? JOB_RESTART
	       : streq(type, "stop")  ? JOB_STOP
				      : JOB_NONE;
}
