/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_LOG_CONTROL_H
#define SUTRO_LOG_CONTROL_H

#include <systemd/sd-bus.h>

/** bus_add_log_control() - serve org.freedesktop.LogControl1 on @connection until it is closed */
int bus_add_log_control(sd_bus *connection);

#endif
