/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EXPORTER_FORMAT_H
#define SUTRO_EXPORTER_FORMAT_H

/** enum format - the formats that Prometheus reads */
enum format {
	FORMAT_TEXT, /* 0.0.4 */
	FORMAT_OPENMETRICS, /* 1.0.0 */
};

/** format_type() - the media type */
const char *format_type(enum format format);

/** format_accepted() - the format for the header Accept of a request; NULL: it has none */
enum format format_accepted(const char *accept);

#endif
