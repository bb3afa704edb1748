/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_PROMISES_H
#define SUTRO_EXPORTER_PROMISES_H

#include "exporter/format.h"
#include "exporter/scrape.h"
#include "exporter/writer.h"

/** promises_write() - the families of capacities, and then those of promises */
void promises_write(const struct scrape *s, enum format format,
		    struct writer *w);

#endif
