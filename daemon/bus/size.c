/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The size of a message.
 *
 * libsystemd does not return it, so the values are counted. A list of a million values takes tens
 * of milliseconds. So each value counts for VALUE_BYTES more than its text, and the count ends at
 * the limit.
 *
 *	("db.service", ["/srv", "/home"])	3 * 64 + 10 + 4 + 5 bytes
 */

#include <stdbool.h>
#include <string.h>

#include "bus/size.h"

#define VALUE_BYTES 64U

/* Count a value that is no container. */
static int add_value(sd_bus_message *m, char type, size_t *sum)
{
	union {
		const char *text;
		uint64_t number;
		double real;
	} value = {};
	int r = sd_bus_message_read_basic(m, type, &value);

	*sum += VALUE_BYTES;
	if (r >= 0 &&
	    (type == SD_BUS_TYPE_STRING || type == SD_BUS_TYPE_OBJECT_PATH ||
	     type == SD_BUS_TYPE_SIGNATURE))
		*sum += strlen(value.text);
	return r;
}

static int add_all(sd_bus_message *m, size_t max, size_t *sum);

static int add_container(sd_bus_message *m, char type, const char *contents,
			 size_t max, size_t *sum)
{
	int r = sd_bus_message_enter_container(m, type, contents);

	if (r >= 0)
		r = add_all(m, max, sum);
	return r <= 0 ? r : sd_bus_message_exit_container(m);
}

/* Count the rest of the open container. Return: 1; 0: there are @max bytes; -errno. */
static int add_all(sd_bus_message *m, size_t max, size_t *sum)
{
	const char *contents;
	char type;
	int r;

	while ((r = sd_bus_message_at_end(m, false)) == 0) {
		if (*sum >= max)
			return 0;
		r = sd_bus_message_peek_type(m, &type, &contents);
		if (r >= 0)
			r = contents
				    ? add_container(m, type, contents, max, sum)
				    : add_value(m, type, sum);
		if (r <= 0)
			return r;
	}
	return r < 0 ? r : 1;
}

int bus_message_bytes(sd_bus_message *m, size_t max, size_t *ret)
{
	size_t sum = 0;
	int r = sd_bus_message_rewind(m, true);

	if (r >= 0)
		r = add_all(m, max, &sum);
	if (r >= 0)
		r = sd_bus_message_rewind(m, true);
	if (r < 0)
		return r;
	*ret = sum < max ? sum : max;
	return 0;
}
