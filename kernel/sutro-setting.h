/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sutro I/O scheduler: settings of cgroups, as numbers and as text.
 */
#ifndef SUTRO_SETTING_H
#define SUTRO_SETTING_H

#include <linux/types.h>

#include "sutro-tree.h"

/* Settings of a cgroup, on all leaves or one; each has a file. */
enum sutro_setting {
	SUTRO_SETTING_WEIGHT,
	SUTRO_SETTING_CLASS,
	SUTRO_SETTING_RESERVE,
	SUTRO_SETTING_LATENCY,
	SUTRO_SETTINGS,
};

/* The longest text of a setting, "10000000", and its end. */
#define SUTRO_SETTING_TEXT_BYTES 12

extern const char *const sutro_class_names[SUTRO_CLASS_NR];

/* A class as a setting, where 0 means that none is set. */
static inline u32 sutro_class_setting(enum sutro_class class)
{
	return class + 1;
}

static inline enum sutro_class sutro_setting_class(u32 value)
{
	return value - 1;
}

/* Likewise a part of the time, of SUTRO_RESERVE_WHOLE. */
static inline u32 sutro_reserve_setting(u32 reserve)
{
	return reserve + 1;
}

static inline u32 sutro_setting_reserve(u32 value)
{
	return value - 1;
}

/* Likewise a latency target in us. */
static inline u32 sutro_latency_setting(u32 target_us)
{
	return target_us + 1;
}

static inline u32 sutro_setting_latency(u32 value)
{
	return value - 1;
}

bool sutro_setting_is_privileged(enum sutro_setting setting);
const char *sutro_setting_of_default(const char *text);
int sutro_number_parse(const char *text, s64 min, s64 max, s64 *ret_number);
int sutro_setting_parse(enum sutro_setting setting, const char *text,
			u32 *ret_value);
void sutro_setting_format(enum sutro_setting setting, u32 value,
			  char text[SUTRO_SETTING_TEXT_BYTES]);

#endif /* SUTRO_SETTING_H */
