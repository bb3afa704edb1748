// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: fuzz-setting [libFuzzer's arguments, FILES]
 *
 * A libFuzzer target: the first byte selects one of the files io.sutro.weight, io.sutro.class,
 * io.sutro.reserve and io.sutro.latency, the others are written to it, as the text of a default or
 * of a device.  A text that is taken is a setting within its limits, which is shown as a text of
 * the same setting; another one leaves the setting as it was.
 */
#include <stdlib.h>

#include <linux/errno.h>
#include <linux/string.h>

#include "sutro-setting.h"

#define UNTOUCHED 0xdeadbeef

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void check_limits(enum sutro_setting setting, u32 value)
{
	check(value);
	switch (setting) {
	case SUTRO_SETTING_WEIGHT:
		check(value >= SUTRO_WEIGHT_MIN && value <= SUTRO_WEIGHT_MAX);
		break;
	case SUTRO_SETTING_CLASS:
		check(sutro_setting_class(value) < SUTRO_CLASS_NR);
		break;
	case SUTRO_SETTING_RESERVE:
		check(sutro_setting_reserve(value) <= SUTRO_RESERVE_WHOLE);
		break;
	case SUTRO_SETTING_LATENCY:
		check(sutro_setting_latency(value) <=
		      SUTRO_LATENCY_TARGET_MAX_US);
		break;
	case SUTRO_SETTINGS:
		abort();
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	enum sutro_setting setting = size ? data[0] % SUTRO_SETTINGS : 0;
	char *text = strndup(size ? (const char *)data + 1 : "",
			     size ? size - 1 : 0);
	char shown[SUTRO_SETTING_TEXT_BYTES];
	u32 value = UNTOUCHED, again = 0;
	int ret;

	check(text);
	ret = sutro_setting_parse(setting, sutro_setting_of_default(text),
				  &value);
	free(text);
	if (ret) {
		check(ret == -EINVAL || ret == -ERANGE);
		check(value == UNTOUCHED);
		return 0;
	}
	check_limits(setting, value);
	sutro_setting_format(setting, value, shown);
	check(!sutro_setting_parse(setting, shown, &again));
	check(again == value);
	return 0;
}
