/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_VALUE_H
#define SUTRO_VALUE_H

#include "host/util.h"

/* Parts are numbers of 1/10000, like systemd's permyriads. */
#define PART_MIN 100U
#define PART_ALL 10000U

/* Percentiles are numbers of 1/10000, too, with at most one decimal in percent. */
#define PERCENTILE_MIN 5000U
#define PERCENTILE_MAX 9990U
#define PERCENTILE_DEFAULT 9500U

/** value_parse_size() - "1.5G", 1 to 1000T; -EINVAL, -ERANGE */
int value_parse_size(const char *s, uint64_t *ret);
/** value_parse_time() - "1s 500us", 1us to 1min; -EINVAL, -ERANGE */
int value_parse_time(const char *s, uint64_t *ret_usec);
/** value_parse_percent() - "12.5%", PART_MIN to PART_ALL; -EINVAL, -ERANGE */
int value_parse_percent(const char *s, uint32_t *ret_part);
/** value_parse_percentile() - "P99.9", PERCENTILE_MIN to _MAX; -EINVAL, -ERANGE */
int value_parse_percentile(const char *s, uint32_t *ret_percentile);

/* The result is to be freed; NULL: no memory. */
char *value_format_size(uint64_t value);
char *value_format_time(uint64_t usec);
char *value_format_percent(uint32_t part);
char *value_format_percentile(uint32_t percentile);

#endif
