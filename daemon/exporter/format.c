/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "exporter/format.h"
#include "host/util.h"

#define OPENMETRICS "application/openmetrics-text"

const char *format_type(enum format format)
{
	return format == FORMAT_OPENMETRICS
		       ? OPENMETRICS "; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* As choose_encoder() of prometheus_client: weights (";q=0.5") do not count. */
enum format format_accepted(const char *accept)
{
	const size_t length = strlen(OPENMETRICS);

	while (accept && *accept) {
		accept += strspn(accept, " \t,");
		if (startswith(accept, OPENMETRICS) &&
		    strchr(" \t,;", accept[length]))
			return FORMAT_OPENMETRICS;
		accept += strcspn(accept, ",");
	}
	return FORMAT_TEXT;
}
