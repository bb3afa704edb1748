/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_DUMP_H
#define SUTRO_DUMP_H

#include "bus/bus.h"

/** dump_daemon() - the whole state as text; to be freed */
int dump_daemon(const struct bus *b, char **ret);

#endif
