/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_VARLINK_INTERFACE_H
#define SUTRO_VARLINK_INTERFACE_H

#include <systemd/sd-varlink-idl.h>

#define STATUS_INTERFACE "io.sutro.Status"

extern const sd_varlink_interface vl_interface_status;

#endif
