/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_METRICS_H
#define SUTRO_EXPORTER_METRICS_H

#include "exporter/format.h"
#include "exporter/scrape.h"
#include "exporter/writer.h"

/** metrics_write() - all families that have samples, in an order that does not change */
void metrics_write(const struct scrape *s, enum format format,
		   struct writer *w);

#endif
